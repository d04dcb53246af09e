//! Reads a whole closed store: superblock, manifest, log, and the state that its commits give.
//!
//! [`Store::read`] names damage of the medium with file and offset, and goes on. [`StoreImage::check`] compares the records with each
//! other and with the stored bytes. Neither writes, and neither holds more than one frame and the records in memory.

mod blob;
mod catalog;
mod check;
mod medium;
mod recount;
mod sums;
mod tables;

pub use blob::BlobError;
pub use catalog::Catalog;

use crate::Id32;
use crate::bytes::{Bytes, read_vec};
use crate::derive::{StoreKeys, TenantKeys, digest};
use crate::error::{Error, Place};
use crate::files::{FileName, Files, manifest_names, segment_name};
use crate::frame::{Kind, Rules};
use crate::limits;
use crate::log::Log;
use crate::log::chain::{Finder, peek};
use crate::log::scan::{Found, scan};
use crate::log::walk::Walk;
use crate::manifest::Manifest;
use crate::problem::Problems;
pub use crate::problem::{Problem, ProblemKind, Unreadable};
use crate::seal::FooterEntry;
use crate::superblock::{self, Choice, CopyState, Superblock};
use std::collections::BTreeMap;
use std::fmt;

/// The reader of whole stores.
#[derive(Debug)]
pub struct Store;

/// A store that was read.
pub struct StoreImage<'f> {
    files: &'f dyn Files,
    /// Its state.
    pub superblock: Superblock,
    /// What the four copies of the superblock are.
    pub copies: Vec<CopyState>,
    /// The manifest that the superblock names.
    pub manifest: Manifest,
    /// The log as it was walked.
    pub log: Log,
    /// The state that the commits give.
    pub catalog: Catalog,
    /// Chunk and page frames that are valid and count, by segment and offset.
    pub frames: BTreeMap<(u64, u64), FooterEntry>,
    /// What is wrong with the files.
    pub problems: Vec<Problem>,
    /// Files with a name of the format that nothing names.
    pub orphans: Vec<String>,
    /// Files with other names.
    pub strangers: Vec<String>,
    store_keys: StoreKeys,
    tenant_keys: BTreeMap<u32, TenantKeys>,
}

impl fmt::Debug for StoreImage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreImage").field("log", &self.log).field("problems", &self.problems).finish_non_exhaustive()
    }
}

impl Store {
    /// Reads a store that no process has open.
    pub fn read(files: &dyn Files) -> Result<StoreImage<'_>, Unreadable> {
        let mut problems = Problems::default();
        let Choice { superblock, copies } = read_superblock(files, &mut problems)?;
        let manifest = read_manifest(files, &superblock, &mut problems)?;
        let links = Finder { files, superblock: &superblock, problems: &mut problems }.find()?;
        let mut catalog = tables::read(files, &superblock, &manifest, &mut problems)?;
        sums::check(&catalog, &manifest, &mut problems);
        let mut frames = BTreeMap::new();
        let log = Walk::new(files, &superblock, &mut problems, &mut frames, &mut catalog).run(&links)?;
        medium::Medium { files, superblock: &superblock, manifest: &manifest, log: &log, catalog: &catalog }
            .check(&mut problems, &mut frames)?;
        sums::check_log(&manifest, superblock.replay.segment, &frames, &mut problems);
        let (orphans, strangers) = unnamed(files, &superblock, &manifest, &log, &catalog);
        let store_keys = StoreKeys::new(&superblock.secret);
        let tenant_keys = manifest.tenants.iter().map(|tenant| (tenant.number, TenantKeys::new(&tenant.key))).collect();
        Ok(StoreImage {
            files,
            superblock,
            copies,
            manifest,
            log,
            catalog,
            frames,
            problems: problems.0,
            orphans,
            strangers,
            store_keys,
            tenant_keys,
        })
    }

    /// Reads a store and checks it: all problems, of the files and of the records.
    pub fn check(files: &dyn Files) -> Result<Vec<Problem>, Unreadable> {
        let mut image = Self::read(files)?;
        let mut problems = std::mem::take(&mut image.problems);
        problems.extend(image.check());
        Ok(problems)
    }
}

fn read_superblock(files: &dyn Files, problems: &mut Problems) -> Result<Choice, Unreadable> {
    let name = "superblock";
    let bytes = match files.open(name)? {
        Some(bytes) => read_vec(&*bytes, 0, bytes.len().min(superblock::LEN + 1))?,
        None => Vec::new(),
    };
    let choice = match superblock::choose(&bytes) {
        Ok(choice) => choice,
        Err(error) if error.is_newer() => return Err(Unreadable::Newer(error)),
        Err(_) if unfinished(files)? => return Err(Unreadable::Unfinished),
        Err(error) => return Err(Unreadable::Superblock(error)),
    };
    if bytes.len() as u64 > superblock::LEN {
        problems.add(ProblemKind::Copy, name, (superblock::LEN, 1), "the file is longer than four copies");
    }
    for (start, copy) in (0..).step_by(4_096).zip(&choice.copies) {
        let what = match copy {
            CopyState::Damaged(error) => error.to_string(),
            CopyState::Different => "of the same sequence as the state, and different".to_owned(),
            CopyState::Current | CopyState::Older(_) | CopyState::Newer(_) => continue,
        };
        problems.add(ProblemKind::Copy, name, (start, limits::BLOCK), what);
    }
    Ok(choice)
}

/// Whether a directory without a state of the store is one whose `init` did not come to its end: section 14.
fn unfinished(files: &dyn Files) -> Result<bool, Unreadable> {
    for name in files.names() {
        match FileName::parse(&name) {
            Some(FileName::Manifest(generation, _)) if generation > 1 => return Ok(false),
            Some(FileName::Segment(id)) if id != 1 => return Ok(false),
            Some(FileName::Reserve(_) | FileName::Table(..)) => return Ok(false),
            _ => {}
        }
    }
    // Without a header nothing can be read of the segment, and `init` writes the header before the commit.
    let (Some(bytes), Some(header)) = (files.open(&segment_name(1))?, peek(files, 1)?) else { return Ok(true) };
    let rules = Rules { uuid: header.uuid, epoch: header.epoch, lane: header.lane, chunk_max: limits::CHUNK };
    let mut commits = 0;
    scan(&*bytes, limits::FRAMES_START, bytes.len(), &rules, &mut |found| {
        commits += u32::from(matches!(found, Found::Frame(frame) if frame.header.kind == Kind::Commit));
        Ok(())
    })?;
    Ok(commits <= 1)
}

/// One copy of the manifest: its bytes, if they are what the superblock says.
fn manifest_copy(bytes: &dyn Bytes, superblock: &Superblock) -> Result<Vec<u8>, Error> {
    let at = |field| Place { structure: "manifest", field, offset: 0 };
    if bytes.len() != superblock.manifest_length {
        return Err(Error::Mismatch(at("length")));
    }
    let content = read_vec(bytes, 0, bytes.len())?;
    if digest(&content) == superblock.manifest_digest { Ok(content) } else { Err(Error::Identity(at("digest"))) }
}

fn read_manifest(files: &dyn Files, superblock: &Superblock, problems: &mut Problems) -> Result<Manifest, Unreadable> {
    let names = manifest_names(superblock.manifest_generation);
    let missing = Error::Short(Place { structure: "manifest", field: "file", offset: 0 });
    let mut good: Option<Vec<u8>> = None;
    let mut bad = Vec::new();
    for name in &names {
        let copy = match files.open(name)? {
            Some(bytes) => manifest_copy(&*bytes, superblock),
            None => Err(missing.clone()),
        };
        match copy {
            Ok(content) => good = Some(content),
            Err(error) => bad.push((name, error)),
        }
    }
    let Some(good) = good else {
        let (_, error) = bad.into_iter().next().expect("without a good copy both are bad");
        return Err(Unreadable::Manifest(error));
    };
    for (name, error) in bad {
        let kind = if error == missing { ProblemKind::Missing } else { ProblemKind::Copy };
        let place = difference(files, name, &good)?;
        problems.add(kind, name, place, error.to_string());
    }
    let manifest = Manifest::parse(&good)
        .map_err(|error| if error.is_newer() { Unreadable::Newer(error) } else { Unreadable::Manifest(error) })?;
    if manifest.uuid != superblock.uuid || manifest.generation != superblock.manifest_generation {
        let place = Place { structure: "manifest", field: "generation", offset: 16 };
        return Err(Unreadable::Manifest(Error::Mismatch(place)));
    }
    Ok(manifest)
}

/// From where on a bad copy differs from the good one.
fn difference(files: &dyn Files, name: &str, good: &[u8]) -> Result<(u64, u64), Unreadable> {
    let Some(bytes) = files.open(name)? else { return Ok((0, 0)) };
    let content = read_vec(&*bytes, 0, bytes.len().min(good.len() as u64))?;
    let same = content.iter().zip(good).take_while(|(one, other)| one == other).count() as u64;
    Ok((same, bytes.len().max(good.len() as u64) - same))
}

/// Files that nothing names, and files that are not of the format.
fn unnamed(
    files: &dyn Files,
    superblock: &Superblock,
    manifest: &Manifest,
    log: &Log,
    catalog: &Catalog,
) -> (Vec<String>, Vec<String>) {
    let mut orphans = Vec::new();
    let mut strangers = Vec::new();
    for name in files.names() {
        let named = match FileName::parse(&name) {
            None => {
                strangers.push(name);
                continue;
            }
            Some(FileName::Superblock | FileName::Lock) => true,
            Some(FileName::Manifest(generation, _)) => generation == superblock.manifest_generation,
            Some(FileName::Table(id, mirror)) => {
                manifest.tables.iter().any(|table| table.id == id && (table.mirrored || !mirror))
            }
            Some(FileName::Reserve(id)) => superblock.reserve.contains(&id),
            Some(FileName::Segment(id)) => {
                superblock.prepared.contains(&id)
                    || manifest.segments.iter().any(|segment| segment.id == id)
                    || log.segments.iter().any(|segment| segment.id == id)
                    || catalog.segments.contains_key(&id)
            }
        };
        if !named {
            orphans.push(name);
        }
    }
    (orphans, strangers)
}

impl StoreImage<'_> {
    /// The id of the blob of an artifact: the key of keyspace 10.
    pub fn blob_key(&self, artifact: &crate::keyspace::Artifact) -> Option<Id32> {
        Some(self.tenant_keys.get(&artifact.tenant)?.blob_key(&artifact.sha256, artifact.size))
    }

    fn open_segment(&self, id: u64) -> Result<Option<Box<dyn Bytes + '_>>, Error> {
        self.files.open(&segment_name(id))
    }
}
