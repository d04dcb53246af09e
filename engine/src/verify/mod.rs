//! Checking a store without changing it: files, frames, records, references.
//!
//! Plain: superblock, manifests, commit chain, frame headers, footers, recipes, indexes. Deep: every payload, every keyed id, and the SHA-256
//! of every blob. References: a recount from artifacts, uploads and recipes. Nothing is mapped; memory is the catalog's, and one frame.

use std::collections::BTreeMap;

use crate::{
    catalog::Published,
    disk::{self, Disk, Lock, LockMode},
    error::{Error, Kind, Result},
    format::keyspace::Keyspace,
    ids::Location,
    ownership::Door,
    read::Reader,
    recovery::{self, Problem, Rebuilt},
    sync::Arc,
};

mod medium;
mod records;
mod references;
mod tables;

/// What is checked besides the structure.
#[derive(Clone, Copy, Default, Debug)]
pub struct VerifyOptions {
    /// Every payload and every blob's SHA-256.
    pub deep: bool,
    /// A recount of references.
    pub refs: bool,
}

/// What was looked at and what is wrong.
#[derive(Clone, Default, Debug)]
pub struct VerifyReport {
    /// Artifact records.
    pub artifacts: u64,
    /// Blobs.
    pub blobs: u64,
    /// Chunks and recipe pages in the catalog.
    pub chunks: u64,
    /// Bytes of frames that were checked.
    pub bytes: u64,
    /// What is wrong; empty if nothing is.
    pub problems: Vec<Problem>,
}

/// Called with bytes done and bytes to do.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64);

/// Verifies the store on a disk, under a shared lock. `LOCKED`: a writer has it. Damage is in the report, also where the store could
/// not be opened.
pub fn verify(disk: &Arc<dyn Disk>, options: &VerifyOptions, progress: Progress<'_>) -> Result<VerifyReport> {
    let locked = disk::retry(|| disk.lock(LockMode::Shared, "verify"));
    let _lock = match locked.map_err(|e| Error::io(e, "LOCK", "lock the store"))? {
        Lock::Held(guard) => guard,
        Lock::Busy(by) => return Err(Error::new(Kind::Locked, format!("the store is in use by {by}"))),
    };
    let mut rebuilt = match recovery::rebuild(disk) {
        Ok(rebuilt) => rebuilt,
        Err(e) if e.kind() == Kind::Corrupt => {
            return Ok(VerifyReport { problems: vec![Problem::from(&e)], ..VerifyReport::default() });
        }
        Err(e) => return Err(e),
    };
    let catalog = Arc::new(Published::new(std::mem::take(&mut rebuilt.catalog)));
    let door = Arc::new(Door::new(&rebuilt.superblock.secret, &rebuilt.manifest.tenants));
    let reader = Reader::new(Arc::clone(&catalog), Arc::clone(&rebuilt.segments), Arc::clone(&door));
    let mut report = VerifyReport { problems: std::mem::take(&mut rebuilt.report.problems), ..VerifyReport::default() };
    let mut run = Run {
        disk: &**disk,
        catalog: &catalog,
        door: &door,
        reader: &reader,
        rebuilt: &rebuilt,
        deep: options.deep,
        report: &mut report,
        progress,
        total: 0,
        confirmed: 0,
        damaged: BTreeMap::new(),
    };
    run.files()?;
    run.records()?;
    if options.refs {
        run.references()?;
    }
    let catalog = catalog.read();
    report.artifacts = catalog.count(Keyspace::Artifact)?;
    report.blobs = catalog.count(Keyspace::Blob)?;
    report.chunks = catalog.count(Keyspace::Chunk)?;
    Ok(report)
}

/// One verification.
struct Run<'a> {
    disk: &'a dyn Disk,
    catalog: &'a Published,
    door: &'a Door,
    reader: &'a Reader,
    rebuilt: &'a Rebuilt,
    deep: bool,
    report: &'a mut VerifyReport,
    progress: Progress<'a>,
    total: u64,
    /// Chunk entries whose frame was seen at their place.
    confirmed: u64,
    /// Frames that are damaged, with what is wrong.
    damaged: BTreeMap<Location, &'static str>,
}

impl Run<'_> {
    fn problem(&mut self, file: impl std::fmt::Display, offset: u64, what: impl Into<String>) {
        self.report.problems.push(Problem::damage(file, offset, what));
    }

    fn did(&mut self, bytes: u64) {
        self.report.bytes += bytes;
        (self.progress)(self.report.bytes.min(self.total), self.total);
    }
}
