//! Opening a store: the state is rebuilt in memory without a write, then, for a writer, made durable and taken over.
//!
//! Order (every step is synced before the next begins): adopted frames again -> successor's header, if the newest segment cannot take
//! frames -> superblock -> a mark -> first read. If one fails, the open fails.

pub mod adopt;
pub mod finish;
pub mod init;
mod rebuild;

use crate::{
    catalog::Catalog,
    disk::{self, Disk, Lock, LockGuard, LockMode},
    error::{Error, Kind, Result},
    format::{manifest::Manifest, superblock::Superblock},
    ids::{ArtifactId, Time},
    log::replay::{self, Damage, Found},
    manifest,
    segment::Segments,
    superblock,
    sync::Arc,
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

/// Reads everything, writes nothing. O(length of the log).
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
    let mut rebuild = Rebuild::new(Arc::clone(&segments));
    let found = replay::replay(&**disk, &superblock, &mut rebuild)?;
    for link in &found.links {
        segments.add(link.header.id, link.header.epoch);
    }
    report.adopted_commits = found.adopted;
    report.problems.extend(found.damage.iter().map(Problem::from));
    if let Some(first) = found.lost.first() {
        report.read_only = Some(format!("the log is damaged, and commits may be lost: {}", first.what));
        report.lost = found.lost.iter().map(Problem::from).collect();
        rebuild.salvage(disk, &superblock, &found)?;
    }
    let (catalog, hw) = rebuild.into_parts();
    Ok(Rebuilt { superblock, manifest, catalog, segments, hw, found, report })
}
