//! Opening a store: the state is rebuilt in memory without a write, then, for a writer, made durable and taken over.
//!
//! Order (every step is synced before the next begins): adopted frames again -> successor's header, if the newest segment cannot take
//! frames -> superblock -> a mark -> first read. If one fails, the open fails.

pub mod adopt;
pub mod finish;
pub mod init;
mod rebuild;

use std::collections::BTreeSet;

use crate::{
    catalog::{Catalog, State as _, Tables, Usage},
    disk::{self, Disk, Lock, LockGuard, LockMode, Name},
    error::{Error, Kind, Result},
    format::{
        keyspace::{Keyspace, segment_of_key},
        manifest::Manifest,
        superblock::Superblock,
        value::SegmentValue,
    },
    ids::{ArtifactId, Time},
    limits::TABLE_CACHE_BYTES,
    log::replay::{self, Damage, Found},
    manifest,
    segment::{self, Segments},
    superblock,
    sync::Arc,
    table::{self, Ground},
};

use rebuild::Rebuild;

/// Something that is wrong with a store, and where.
#[derive(Clone, Debug)]
pub struct Problem {
    /// What to do about it.
    pub kind: Kind,
    /// What it is.
    pub what: String,
    /// File of the store.
    pub file: Option<String>,
    /// Offset in it.
    pub offset: Option<u64>,
    /// The artifact that it concerns.
    pub artifact: Option<ArtifactId>,
}

impl Problem {
    /// Damage at a place.
    pub fn damage(file: impl std::fmt::Display, offset: u64, what: impl Into<String>) -> Self {
        Self {
            kind: Kind::Corrupt,
            what: what.into(),
            file: Some(file.to_string()),
            offset: Some(offset),
            artifact: None,
        }
    }
}

impl From<&Damage> for Problem {
    fn from(damage: &Damage) -> Self {
        Self::damage(&damage.file, damage.offset, damage.what)
    }
}

impl From<&Error> for Problem {
    fn from(error: &Error) -> Self {
        let place = error.place();
        Self {
            kind: error.kind(),
            what: error.message().to_owned(),
            file: place.file.clone(),
            offset: place.offset,
            artifact: place.artifact,
        }
    }
}

/// What an open found and did.
#[derive(Clone, Default, Debug)]
pub struct OpenReport {
    /// Bytes of the log behind the last checkpoint, all of which the open went through.
    pub replayed_bytes: u64,
    /// Commits above the highest witness that were adopted.
    pub adopted_commits: u64,
    /// Bytes behind the end of the log that were never acknowledged.
    pub torn_bytes: u64,
    /// Unfinished puts that were aborted.
    pub aborted_uploads: u64,
    /// Why the store takes no writes, if it does not.
    pub read_only: Option<String>,
    /// Places of the log at which commits are lost. What is not there may have been.
    pub lost: Vec<Problem>,
    /// Damage.
    pub problems: Vec<Problem>,
    /// Files that nothing named and that were destroyed.
    pub destroyed_files: Vec<String>,
    /// Names that are not the store's, in order; left alone.
    pub strange_files: Vec<String>,
}

impl OpenReport {
    /// What a write is told where the store takes none.
    pub fn refusal(&self) -> Option<Error> {
        let why = self.read_only.as_ref()?;
        Some(self.at_loss(Error::new(Kind::ReadOnly, why.clone())))
    }

    /// What a look-up that finds nothing is told. Where commits are lost nobody can say that it never was there.
    pub fn not_found(&self, what: &'static str) -> Error {
        if self.lost.is_empty() {
            return Error::new(Kind::NotFound, what);
        }
        self.at_loss(Error::new(
            Kind::Corrupt,
            format!("{what}, and commits are lost: it may have been in one of them"),
        ))
    }

    /// The error with the first place of a loss.
    fn at_loss(&self, error: Error) -> Error {
        match self.lost.first() {
            Some(Problem { file: Some(file), offset: Some(offset), .. }) => error.at(file, *offset),
            _ => error,
        }
    }
}

/// A store's state, rebuilt in memory.
pub struct Rebuilt {
    /// The superblock that counts.
    pub superblock: Superblock,
    /// The manifest that it names.
    pub manifest: Manifest,
    /// The catalog.
    pub catalog: Catalog,
    /// Every segment that it names.
    pub segments: Arc<Segments>,
    /// Engine time of the last commit.
    pub hw: Time,
    /// The log.
    pub found: Found,
    /// What is wrong.
    pub report: OpenReport,
}

/// Takes the store's lock, which is held until the answer is dropped. `LOCKED`: somebody has it, who is named as far as is known.
pub fn lock(disk: &dyn Disk, mode: LockMode, holder: &str) -> Result<Box<dyn LockGuard>> {
    let by = match disk::retry(|| disk.lock(mode, holder)).map_err(|e| Error::io(e, "LOCK", "lock the store"))? {
        Lock::Held(guard) => return Ok(guard),
        Lock::Busy(by) => by,
    };
    let who = match (by.as_str(), mode) {
        ("", LockMode::Exclusive) => "other processes, which left no name (readers never do)",
        ("", LockMode::Shared) => "a writer that left no name",
        (by, _) => by,
    };
    Err(Error::new(Kind::Locked, format!("the store is in use by {who}")))
}

/// Reads what is needed to go on, writes nothing. O(length of the log behind the replay position, files).
pub fn rebuild(disk: &Arc<dyn Disk>) -> Result<Rebuilt> {
    let read = init::read_superblock(&**disk)?.ok_or_else(|| init::no_superblock(&**disk))?;
    let superblock = read.superblock;
    let mut report = OpenReport::default();
    for (offset, bad) in &read.damaged {
        report.problems.push(Problem::damage(superblock::name(), *offset, bad.what));
    }
    let (manifest, damage) = manifest::read(&**disk, &superblock)?;
    report.problems.extend(damage.iter().map(Problem::from));
    let segments = Arc::new(Segments::new(Arc::clone(disk), superblock.uuid));
    named_files(&**disk, &manifest, &mut report)?;
    for segment in &manifest.segments {
        segments.add(segment.id, segment.epoch);
    }
    let ground = Ground::new(Arc::clone(disk), superblock.uuid, TABLE_CACHE_BYTES);
    let catalog = Catalog::new(Tables::new(Arc::new(ground), &manifest.tables), usage_of(&manifest));
    bulk_of_tables(&catalog, &segments, &mut report)?;
    uploads_of_tables(&catalog, &mut report)?;
    let mut rebuild = Rebuild::new(catalog, Arc::clone(&segments), manifest.sums.hw);
    let found = replay::replay(&**disk, &superblock, &mut rebuild)?;
    for link in &found.links {
        segments.add(link.header.id, link.header.epoch);
    }
    report.adopted_commits = found.adopted;
    report.problems.extend(found.damage.iter().map(Problem::from));
    if let Some(first) = found.lost.first() {
        report.read_only.get_or_insert_with(|| format!("the log is damaged, and commits may be lost: {}", first.what));
        report.lost = found.lost.iter().map(Problem::from).collect();
        rebuild.salvage(disk, &superblock, &found)?;
    }
    let (catalog, hw) = rebuild.into_parts();
    Ok(Rebuilt { superblock, manifest, catalog, segments, hw, found, report })
}

/// What the tables add up to.
const fn usage_of(manifest: &Manifest) -> Usage {
    let sums = &manifest.sums;
    Usage {
        artifacts: sums.artifacts,
        logical_bytes: sums.logical_bytes,
        blobs: sums.blobs,
        chunks: sums.chunks,
        unique_bytes: sums.unique_bytes,
        live_bytes: sums.live_bytes,
    }
}

/// Names what the manifest names and the directory lacks. A table without any copy takes records with it that nothing else has, so
/// that the store must not be written any more.
fn named_files(disk: &dyn Disk, manifest: &Manifest, report: &mut OpenReport) -> Result<()> {
    if manifest.tables.is_empty() {
        return Ok(());
    }
    let listing = disk::retry(|| disk.list()).map_err(|e| Error::io(e, ".", "list the store"))?;
    let there: BTreeSet<Name> = listing.names.into_iter().collect();
    let mut missing = |name: &Name, what: &str| {
        let is_missing = !there.contains(name);
        if is_missing {
            report.problems.push(Problem::damage(name, 0, what));
        }
        is_missing
    };
    let mut lost = None;
    for table in &manifest.tables {
        let names = table::names(table.id);
        let copies = if table.mirrored { 2 } else { 1 };
        let gone = names.iter().take(copies).filter(|name| missing(name, "a table is missing")).count();
        if gone == copies {
            lost = lost.or(names.into_iter().next());
        }
    }
    for segment in &manifest.segments {
        missing(&segment::name(segment.id), "a segment is missing");
    }
    if let Some(name) = lost {
        report.read_only = Some(format!("records are lost with {name}"));
    }
    Ok(())
}

/// Bulk segments that the tables name; commits behind them name the rest.
fn bulk_of_tables(catalog: &Catalog, segments: &Segments, report: &mut OpenReport) -> Result<()> {
    let entries = match catalog.scan(Keyspace::Segment, &[], None, usize::MAX) {
        Err(e) if e.kind() == Kind::Corrupt => {
            report.problems.push(Problem::from(&e));
            report.read_only.get_or_insert_with(|| "the list of segments is damaged".to_owned());
            return Ok(());
        }
        entries => entries?,
    };
    for (key, value) in entries {
        if let (Ok(id), Ok(value)) = (segment_of_key(&key), SegmentValue::decode(&value)) {
            segments.add(id, value.epoch);
        }
    }
    Ok(())
}

/// A writer ends unfinished puts when it opens: it must be able to find them.
fn uploads_of_tables(catalog: &Catalog, report: &mut OpenReport) -> Result<()> {
    match catalog.scan(Keyspace::Upload, &[], None, usize::MAX) {
        Err(e) if e.kind() == Kind::Corrupt => {
            report.problems.push(Problem::from(&e));
            report.read_only.get_or_insert_with(|| "the list of unfinished puts is damaged".to_owned());
            Ok(())
        }
        uploads => uploads.map(drop),
    }
}
