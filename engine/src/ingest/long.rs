//! Long streams: their frames go into a bulk segment as they come, and every so often a commit makes them the upload's.

use super::{
    Begun, Ingest,
    commit::{self, Final, Outcome},
    intake::{Intake, Whole},
    output::{Job, Jobs, Output},
    packer::Packer,
    pipeline,
    small::Drafts,
    source::Cutter,
};
use crate::{
    digest::Sha256Stream,
    error::{Kind, Result},
    format::upload::Upload,
    ids::Time,
};

/// A progress commit comes early when its edits would get longer than this: chunks may be much shorter than by default.
pub(super) const PROGRESS_EDITS_LEN: usize = 1 << 20;

/// The middle of a long stream: chunks in, jobs out.
pub(super) struct Stream<'a, J: Jobs> {
    ingest: &'a Ingest,
    intake: Intake<'a>,
    packer: Packer<'a, J>,
    /// The record that the first progress commit makes.
    begun: Upload,
    /// Bytes since the last commit.
    since: u64,
}

impl<'a, J: Jobs> Stream<'a, J> {
    pub(super) const fn new(ingest: &'a Ingest, intake: Intake<'a>, packer: Packer<'a, J>, begun: Upload) -> Self {
        Self { ingest, intake, packer, begun, since: 0 }
    }

    /// Takes the next chunk.
    pub(super) fn take(&mut self, chunk: &[u8]) -> Result<()> {
        // A stream that only finds what is there already writes nothing that would notice.
        self.ingest.ground.health.check()?;
        // Asked before the next chunk and not behind the last one: a stream that just ended needs no record.
        if self.since >= self.ingest.tuning.progress_bytes
            || self.intake.increment.edits_len_max() >= PROGRESS_EDITS_LEN
        {
            // Before the commit that names them.
            self.packer.flush()?;
            let record = self.intake.upload(self.begun.clone());
            let increment = Box::new(self.intake.take_increment());
            self.packer.jobs.ask(Job::Progress(record, increment))?;
            self.since = 0;
        }
        self.intake.see_committed(self.packer.jobs.committed());
        self.intake.take(chunk, &mut self.packer)?;
        self.since += chunk.len() as u64;
        Ok(())
    }

    /// Ends the stream. All its frames are durable once the jobs are done.
    pub(super) fn finish(&mut self) -> Result<Whole> {
        let whole = self.intake.finish(&mut self.packer)?;
        // Before the commit that names them.
        self.packer.flush()?;
        Ok(whole)
    }
}

impl Ingest {
    /// Puts a stream of any length in constant memory. If it fails, what it committed is released again.
    pub(super) fn put_long(&self, begun: Begun, intake: Intake<'_>, cutter: &mut Cutter<'_>) -> Result<Outcome> {
        let upload = new_upload(&begun, self.now());
        let mut output = Output::new(self, self.pool.lease()?);
        let taken = match pipeline::Memory::take(self) {
            Some(memory) => pipeline::take_all(self, &memory, intake, &mut output, upload, cutter),
            None => self.take_all(intake, &mut output, upload, cutter),
        };
        let result = taken.and_then(|(whole, sha256)| self.finish_long(begun, whole, sha256, &mut output));
        if result.as_ref().is_err_and(|error| error.kind() == Kind::NoSpace) {
            output.lease.give_back();
        }
        if let (Err(_), Some(progress)) = (&result, output.progress)
            && self.ground.health.is_writable()
        {
            // If this fails too, the next open does it: the record says that nobody goes on with it.
            let _ = self.ground.commit.run(commit::abort(progress));
        }
        result
    }

    /// Takes the stream in on this thread, a chunk at a time.
    fn take_all<'a>(
        &'a self,
        intake: Intake<'a>,
        output: &mut Output<'a>,
        begun: Upload,
        cutter: &mut Cutter<'_>,
    ) -> Result<(Whole, Sha256Stream)> {
        let (maker, writer) = (output.lease.maker(), output.lease.writer());
        let mut stream = Stream::new(self, intake, Packer::new(maker, writer, output), begun);
        let mut sha256 = Sha256Stream::default();
        while let Some(chunk) = cutter.next()? {
            sha256.update(chunk);
            stream.take(chunk)?;
        }
        Ok((stream.finish()?, sha256))
    }

    fn finish_long(
        &self,
        begun: Begun,
        whole: Whole,
        sha256: Sha256Stream,
        output: &mut Output<'_>,
    ) -> Result<Outcome> {
        let Whole { mut increment, root, size } = whole;
        let content = self.content(&begun, sha256, root, size)?;
        let last = Final {
            new: begun.with(&content, &self.ground.door),
            content,
            changes: std::mem::take(&mut increment.changes),
            frames: std::mem::take(&mut increment.frames),
            drafts: Drafts::default(),
            upload: output.progress.map(|progress| progress.id),
            segments: output.lease.edits(),
        };
        let request = commit::finish(last, increment.edits_len_max(), output.progress);
        let outcome = self.ground.commit.run(request)?;
        output.lease.committed();
        Ok(outcome)
    }
}

fn new_upload(begun: &Begun, now: Time) -> Upload {
    Upload {
        account: begun.new.owner.account,
        begin_lsn: begun.new.began,
        created_at: now,
        offset: 0,
        declared: None,
        expires_at: None,
        sha_state: None,
        tail: None,
        right_edge: Vec::new(),
    }
}
