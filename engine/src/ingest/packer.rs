//! Frames of a long stream on their way into bulk segments.

use super::{
    bulk::Maker,
    intake::Lane,
    output::{ByJobs, Job, Jobs},
};
use crate::{
    error::Result,
    format::frame::FrameDraft,
    ids::Location,
    segment::{
        window::{Ahead, Fetch},
        writer::BulkWriter,
    },
    sync::thread,
};

/// Packs frames into the buffers of a leased segment; a full one is sealed and the next one begun.
pub(super) struct Packer<'a, J: Jobs> {
    maker: Maker<'a>,
    writer: Option<BulkWriter>,
    /// Frames were appended since the last flush.
    is_dirty: bool,
    pub(super) jobs: J,
}

impl<'a, J: Jobs> Packer<'a, J> {
    /// Goes on where the writer stands.
    pub(super) const fn new(maker: Maker<'a>, writer: Option<BulkWriter>, jobs: J) -> Self {
        Self { maker, writer, is_dirty: false, jobs }
    }

    /// Has every appended frame made durable.
    pub(super) fn flush(&mut self) -> Result<()> {
        if self.is_dirty
            && let Some(mut writer) = self.writer.take()
        {
            let end = writer.close_block(&mut ByJobs(&mut self.jobs))?;
            self.jobs.ask(Job::Sync(writer.file().clone(), end))?;
            self.writer = Some(writer);
        }
        self.is_dirty = false;
        Ok(())
    }

    fn seal(&mut self, writer: BulkWriter) -> Result<()> {
        let (file, entries, at) = writer.close(&mut ByJobs(&mut self.jobs))?;
        self.jobs.ask(Job::Seal(file, entries, at))
    }
}

impl<J: Jobs> Ahead for Packer<'_, J> {
    fn is_apart(&self) -> bool {
        self.jobs.is_apart()
    }

    fn fetch(&mut self, fetch: Fetch) {
        // Without an answer the stream reads by itself.
        let _ = self.jobs.ask(Job::Fetch(fetch));
    }
}

impl<J: Jobs> Lane for Packer<'_, J> {
    fn take(&mut self, draft: &FrameDraft<'_>) -> Result<Location> {
        let has_room = |w: &BulkWriter| w.is_empty() || w.has_room(draft.payload.len() as u64);
        // A writer that fails is not put back.
        let mut writer = match self.writer.take() {
            Some(writer) if has_room(&writer) => writer,
            full => {
                full.map(|writer| self.seal(writer)).transpose()?;
                self.maker.create()?
            }
        };
        let location = writer.append_to(draft, &mut ByJobs(&mut self.jobs))?;
        self.writer = Some(writer);
        self.is_dirty = true;
        Ok(location)
    }
}

impl<J: Jobs> Drop for Packer<'_, J> {
    fn drop(&mut self) {
        // In a panic a frame may be half in its buffer. The segment is sealed by the next open.
        if let Some(writer) = self.writer.take()
            && !thread::panicking()
        {
            // Behind all its writes; an error is one that the stream has had already.
            let _ = self.jobs.ask(Job::PutBack(writer));
        }
    }
}
