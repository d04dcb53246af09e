//! The end of a stream that writes: what its frames and commits ask of the disk, done one after another.
//!
//! Whoever packs frames asks through [`Jobs`], and cannot tell whether a job is done before the call returns or by a thread of its own.
//! The order is the same. A commit stands behind the sync of what it names, so that no job has to know what the others are for.

use std::io::IoSlice;

use super::{
    Ingest,
    bulk::Lease,
    commit::{self, Progress},
    intake::Increment,
};
use crate::{
    disk::AlignedBuffer,
    entropy,
    error::Result,
    format::{seal::FooterEntry, upload::Upload},
    ids::UploadId,
    ownership::upload,
    segment::{
        window::Fetch,
        writer::{BulkFile, BulkWriter, Out},
    },
    sync::{Arc, AtomicU64, Ordering},
};

/// Something to be done behind all that was asked before.
pub(super) enum Job {
    /// Bytes into a file.
    Write(Arc<BulkFile>, AlignedBuffer, u64),
    /// Makes a file durable up to an offset.
    Sync(Arc<BulkFile>, u64),
    /// Syncs a file, ends it with footer and seal at an offset, and syncs again.
    Seal(Arc<BulkFile>, Vec<FooterEntry>, u64),
    /// Commits what was gathered since the last time, with the record as it is to stand.
    Progress(Upload, Box<Increment>),
    /// Reads what the stream will compare next.
    Fetch(Fetch),
    /// Takes back the writer whose buffers these were.
    PutBack(BulkWriter),
}

/// Where jobs go.
pub(super) trait Jobs {
    /// Does it, or has it done. An error may be that of an earlier job.
    fn ask(&mut self, job: Job) -> Result<()>;

    /// Writes a buffer, or has it written; it is empty then.
    fn write(&mut self, file: &Arc<BulkFile>, buffer: &mut AlignedBuffer, at: u64) -> Result<()>;

    /// True if jobs are done by a thread of their own.
    fn is_apart(&self) -> bool {
        false
    }

    /// How many progress commits of the stream are durable.
    fn committed(&self) -> u64;
}

/// What a writer fills goes out by jobs.
pub(super) struct ByJobs<'j, J>(pub(super) &'j mut J);

impl<J: Jobs> Out for ByJobs<'_, J> {
    fn write(&mut self, file: &Arc<BulkFile>, buffer: &mut AlignedBuffer, at: u64) -> Result<()> {
        self.0.write(file, buffer, at)
    }
}

/// Does the jobs of a stream.
pub(super) struct Output<'a> {
    ingest: &'a Ingest,
    pub(super) lease: Lease<'a>,
    /// The record as it stands.
    pub(super) progress: Option<Progress>,
    /// The upload, if a caller began it.
    named: Option<upload::Named>,
    committed: Arc<AtomicU64>,
    /// A file failed: what else was meant for it must not be written.
    has_failed: bool,
    /// A commit failed: those behind it rest on it.
    is_stopped: bool,
}

impl<'a> Output<'a> {
    pub(super) fn new(ingest: &'a Ingest, lease: Lease<'a>) -> Self {
        let committed = Arc::default();
        Self { ingest, lease, progress: None, named: None, committed, has_failed: false, is_stopped: false }
    }

    /// For an upload that a caller began, as it stands.
    pub(super) fn resumed(ingest: &'a Ingest, lease: Lease<'a>, named: &upload::Named, record: &Upload) -> Self {
        let progress = Some(Progress::of(named.id, record));
        Self { progress, named: Some(*named), ..Self::new(ingest, lease) }
    }

    /// Counts the progress commits that are durable.
    pub(super) fn counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.committed)
    }

    /// Does one job. Once a file failed the others are passed over.
    pub(super) fn run(&mut self, job: Job) -> Result<()> {
        if self.has_failed {
            return Ok(());
        }
        match job {
            Job::Fetch(fetch) => {
                fetch.run();
                Ok(())
            }
            Job::Write(file, bytes, at) => self.write(&file, &bytes, at),
            Job::Sync(file, end) => {
                let synced = file.sync();
                self.settle(&file, synced)?;
                self.lease.synced(file, end);
                Ok(())
            }
            Job::Seal(file, mut entries, at) => {
                let sealed = file.sync().and_then(|()| file.seal(&mut entries, at));
                let end = self.settle(&file, sealed)?;
                self.lease.sealed(&file, end);
                Ok(())
            }
            Job::Progress(..) if self.is_stopped => Ok(()),
            Job::Progress(record, increment) => {
                let committed = self.commit(&record, *increment);
                self.is_stopped = committed.is_err();
                committed
            }
            Job::PutBack(writer) => {
                self.lease.put_back(writer);
                Ok(())
            }
        }
    }

    /// Writes a buffer, unless a file failed.
    pub(super) fn write(&mut self, file: &BulkFile, bytes: &AlignedBuffer, at: u64) -> Result<()> {
        if self.has_failed {
            return Ok(());
        }
        let written = file.write(bytes.as_slice(), at);
        self.settle(file, written)
    }

    /// Writes buffers one behind the other, unless a file failed.
    pub(super) fn write_run(&mut self, file: &BulkFile, buffers: &[AlignedBuffer], at: u64) -> Result<()> {
        if self.has_failed {
            return Ok(());
        }
        let mut pieces: Vec<_> = buffers.iter().map(|buffer| IoSlice::new(buffer.as_slice())).collect();
        let written = file.write_pieces(&mut pieces, at);
        self.settle(file, written)
    }

    fn settle<T>(&mut self, file: &BulkFile, result: Result<T>) -> Result<T> {
        result.map_err(|error| {
            self.has_failed = true;
            self.lease.give_up(file, error)
        })
    }

    /// Makes durable what the stream gathered, held by its upload.
    fn commit(&mut self, record: &Upload, mut increment: Increment) -> Result<()> {
        let id = match self.progress {
            Some(progress) => progress.id,
            None => UploadId(entropy::random(&*self.ingest.ground.entropy)?),
        };
        let request = commit::progress(id, record, &mut increment, self.lease.edits(), self.progress, self.named);
        self.ingest.ground.commit.run(request)?;
        self.lease.committed();
        self.progress = Some(Progress::of(id, record));
        self.committed.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }
}

/// On the thread that asks.
impl Jobs for &mut Output<'_> {
    fn ask(&mut self, job: Job) -> Result<()> {
        self.run(job)
    }

    fn write(&mut self, file: &Arc<BulkFile>, buffer: &mut AlignedBuffer, at: u64) -> Result<()> {
        Output::write(self, file, buffer, at)?;
        buffer.clear();
        Ok(())
    }

    fn committed(&self) -> u64 {
        self.committed.load(Ordering::Acquire)
    }
}
