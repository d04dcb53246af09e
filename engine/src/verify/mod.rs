//! Checking a store without changing it: files, frames, records, references.
//!
//! Plain: superblock, manifests, commit chain, frame headers, footers, recipes, indexes. Deep: every payload, every keyed id, and the SHA-256
//! of every blob. References: a recount from artifacts, uploads and recipes. Nothing is mapped; memory is the catalog's and a read ahead, and
//! when deep a header a chunk.
//!
//! Deep reads each byte once: the blobs first, in their order, and then of the segments what no blob has.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    budget::Budget,
    catalog::Published,
    disk::{Disk, LockMode},
    error::{Kind, Result},
    format::{frame::FrameHeader, keyspace::Keyspace},
    ids::{ChunkId, Location, Sha256},
    limits::INGEST_MEMORY,
    ownership::Door,
    read::Reader,
    recovery::{self, Problem, Rebuilt, finish},
    sync::Arc,
};

mod blobs;
mod medium;
mod records;
mod references;
mod tables;

/// What is checked besides the structure.
#[derive(Clone, Copy, Debug)]
pub struct VerifyOptions {
    /// Every payload and every blob's SHA-256.
    pub deep: bool,
    /// A recount of references.
    pub refs: bool,
    /// Memory for reading ahead, in bytes; without it all is read on the calling thread.
    pub memory: u64,
}

impl Default for VerifyOptions {
    /// The structure alone.
    fn default() -> Self {
        Self { deep: false, refs: false, memory: INGEST_MEMORY }
    }
}

/// What was looked at and what is wrong.
#[derive(Clone, Default, Debug)]
pub struct VerifyReport {
    /// Artifact records.
    pub artifacts: u64,
    /// Blobs.
    pub blobs: u64,
    /// Referenced chunks, without recipe pages.
    pub chunks: u64,
    /// Bytes of frames that were checked.
    pub bytes: u64,
    /// What is wrong; empty if nothing is. No place is named twice for the same artifact.
    pub problems: Vec<Problem>,
    /// Names that are not the store's. It leaves them alone.
    pub strange_files: Vec<String>,
    /// Files of the store that nothing names: the next open for writing destroys them, unless there is damage.
    pub unnamed_files: Vec<String>,
}

/// Called with bytes done and bytes to do.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64);

/// Verifies the store on a disk, under a shared lock. `LOCKED`: a writer has it. Damage is in the report, also where the store could
/// not be opened.
pub fn verify(disk: &Arc<dyn Disk>, options: &VerifyOptions, progress: Progress<'_>) -> Result<VerifyReport> {
    let _lock = recovery::lock(&**disk, LockMode::Shared, "verify")?;
    let mut rebuilt = match recovery::rebuild(disk) {
        Ok(rebuilt) => rebuilt,
        Err(e) if e.kind() == Kind::Corrupt => {
            return Ok(VerifyReport { problems: vec![Problem::from(&e)], ..VerifyReport::default() });
        }
        Err(e) => return Err(e),
    };
    let catalog = Arc::new(Published::new(std::mem::take(&mut rebuilt.catalog)));
    let door = Arc::new(Door::new(&rebuilt.superblock.secret, &rebuilt.manifest.tenants));
    let budget = Budget::new(options.memory);
    let reader = Reader::new(Arc::clone(&catalog), Arc::clone(&rebuilt.segments), Arc::clone(&door), budget);
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
        sums: BTreeMap::new(),
        read: BTreeMap::new(),
        confirmed: 0,
        damaged: BTreeMap::new(),
    };
    run.count_bytes()?;
    if options.deep {
        run.blobs()?;
    }
    run.files()?;
    run.records()?;
    if options.refs {
        run.references()?;
    }
    let catalog = catalog.read();
    report.artifacts = catalog.count(Keyspace::Artifact)?;
    report.blobs = catalog.count(Keyspace::Blob)?;
    report.chunks = catalog.usage().chunks;
    let stray = finish::stray(&**disk, &rebuilt.superblock, catalog, &rebuilt.segments)?;
    report.strange_files = stray.strange;
    report.unnamed_files = stray.unnamed.iter().map(ToString::to_string).collect();
    once_each(&mut report.problems);
    Ok(report)
}

/// Leaves one problem of each place and artifact: what finds the log and what walks its files may meet the same damage. Those without a
/// place are told apart by what they are.
fn once_each(problems: &mut Vec<Problem>) {
    let mut seen = BTreeSet::new();
    problems.retain(|problem| {
        let what = problem.file.is_none().then(|| problem.what.clone());
        seen.insert((
            problem.kind.as_str(),
            problem.file.clone(),
            problem.offset,
            problem.artifact.map(|id| id.0),
            what,
        ))
    });
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
    /// SHA-256 of blobs that were read, by root.
    sums: BTreeMap<ChunkId, Sha256>,
    /// Frames whose payload was checked when a blob was read, and that the walk over the segments has not met yet.
    read: BTreeMap<Location, FrameHeader>,
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
