//! Long streams: their frames go into a bulk segment as they come, and every so often a commit makes them the upload's.

use super::{
    Begun, Ingest,
    bulk::Lease,
    commit::{self, Final, Outcome, Progress},
    intake::{Intake, Lane},
    small::Drafts,
    source::Cutter,
};
use crate::{
    entropy,
    error::Result,
    format::{frame::FrameDraft, upload::Upload},
    ids::{Location, Time, UploadId},
};

/// A progress commit comes early when its edits would get longer than this: chunks may be much shorter than by default.
const PROGRESS_EDITS_LEN: usize = 1 << 20;

impl Lane for Lease<'_> {
    fn take(&mut self, draft: &FrameDraft<'_>) -> Result<Location> {
        self.append(draft)
    }
}

/// A long stream.
struct Stream<'a> {
    ingest: &'a Ingest,
    intake: Intake<'a>,
    lease: Lease<'a>,
    /// The record that the first progress commit makes.
    begun: Upload,
    /// The record as it stands.
    progress: Option<Progress>,
    /// Bytes since the last commit.
    since: u64,
}

impl Ingest {
    /// Puts a stream of any length in constant memory. If it fails, what it committed is released again.
    pub(super) fn put_long(&self, begun: Begun, intake: Intake<'_>, cutter: &mut Cutter<'_>) -> Result<Outcome> {
        let mut stream = Stream {
            ingest: self,
            intake,
            lease: self.pool.lease()?,
            begun: new_upload(&begun, self.now()),
            progress: None,
            since: 0,
        };
        let taken = stream.take_all(cutter);
        let Stream { intake, lease, progress, .. } = stream;
        let result = taken.and_then(|()| self.finish_long(begun, intake, lease, progress));
        if let (Err(_), Some(progress)) = (&result, progress)
            && self.ground.health.is_writable()
        {
            // If this fails too, the next open does it: the record says that nobody goes on with it.
            let _ = self.ground.commit.run(commit::abort(progress));
        }
        result
    }

    fn finish_long(
        &self,
        begun: Begun,
        intake: Intake<'_>,
        mut lease: Lease<'_>,
        progress: Option<Progress>,
    ) -> Result<Outcome> {
        let (mut increment, content) = intake.finish(&mut lease)?;
        // Before the commit that names them.
        lease.flush()?;
        let last = Final {
            new: begun.new,
            content,
            changes: std::mem::take(&mut increment.changes),
            frames: std::mem::take(&mut increment.frames),
            drafts: Drafts::default(),
            upload: progress.map(|progress| progress.id),
            segments: lease.edits(),
        };
        let outcome = self.ground.commit.run(commit::finish(last, increment.edits_len_max(), progress))?;
        lease.committed();
        Ok(outcome)
    }
}

impl Stream<'_> {
    fn take_all(&mut self, cutter: &mut Cutter<'_>) -> Result<()> {
        while let Some(chunk) = cutter.next()? {
            // Asked before the next chunk and not behind the last one: a stream that just ended needs no record.
            if self.since >= self.ingest.tuning.progress_bytes
                || self.intake.increment.edits_len_max() >= PROGRESS_EDITS_LEN
            {
                self.commit_progress()?;
            }
            self.intake.take(chunk, &mut self.lease)?;
            self.since += chunk.len() as u64;
        }
        Ok(())
    }

    /// Makes durable what the stream gathered, held by its upload.
    fn commit_progress(&mut self) -> Result<()> {
        // Before the commit that names them.
        self.lease.flush()?;
        let id = match self.progress {
            Some(progress) => progress.id,
            None => UploadId(entropy::random(&*self.ingest.ground.entropy)?),
        };
        let record = self.intake.upload(self.begun.clone());
        let mut increment = std::mem::take(&mut self.intake.increment);
        let request = commit::progress(id, &record, &mut increment, self.lease.edits(), self.progress);
        self.ingest.ground.commit.run(request)?;
        self.lease.committed();
        self.progress = Some(Progress { id, held: record.held().count() });
        self.since = 0;
        Ok(())
    }
}

fn new_upload(begun: &Begun, now: Time) -> Upload {
    Upload {
        account: begun.new.account,
        begin_lsn: begun.new.token_lsn,
        created_at: now,
        offset: 0,
        declared: None,
        expires_at: None,
        sha_state: None,
        tail: None,
        right_edge: Vec::new(),
    }
}
