//! Numbers about a store.

use super::Store;
use crate::{
    catalog::State as _,
    disk::{self, OpenOptions},
    error::{Error, Result},
    format::{keyspace::Keyspace, value::SegmentValue},
    limits::FRAMES_START,
};

/// What is in a store, and what it takes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Stats {
    /// Artifact records.
    pub artifacts: u64,
    /// Blobs.
    pub blobs: u64,
    /// Referenced chunks, without recipe pages.
    pub chunks: u64,
    /// Sum of the artifacts' sizes.
    pub logical_bytes: u64,
    /// Raw bytes of referenced chunks, each once.
    pub unique_bytes: u64,
    /// Bytes of referenced frames, with headers and fill.
    pub live_bytes: u64,
    /// Bytes of chunk and page frames without references, and of bulk segments besides their frames.
    pub dead_bytes: u64,
    /// Bytes that the store's files take on the disk.
    pub disk_bytes: u64,
    /// Segments, prepared ones not counted.
    pub segments: u64,
    /// Catalog tables.
    pub tables: u64,
    /// Damaged pages of tables that were read from their mirrors since the open.
    pub mirror_reads: u64,
    /// Of these, pages that were written again since.
    pub mended_pages: u64,
}

impl Store {
    /// Counts. O(files).
    pub fn stats(&self) -> Result<Stats> {
        let published = self.published.read();
        let (usage, tables) = (published.usage(), published.tables());
        let bulk = published.scan(Keyspace::Segment, &[], None, usize::MAX)?;
        let bulk_bytes: u64 = bulk
            .iter()
            .filter_map(|(_, value)| SegmentValue::decode(value).ok())
            .map(|segment| segment.end.saturating_sub(FRAMES_START))
            .fold(0, u64::saturating_add);
        let log_bytes =
            self.writing.as_ref().map_or(self.log_content, |w| w.commit.with_log(|log| log.content_bytes()));
        Ok(Stats {
            artifacts: usage.artifacts,
            blobs: usage.blobs,
            chunks: usage.chunks,
            logical_bytes: usage.logical_bytes,
            unique_bytes: usage.unique_bytes,
            live_bytes: usage.live_bytes,
            dead_bytes: bulk_bytes.saturating_add(log_bytes).saturating_sub(usage.live_bytes),
            disk_bytes: self.disk_bytes()?,
            segments: self.segments.all().len() as u64,
            tables: tables.metas().len() as u64,
            mirror_reads: tables.repairs().from_mirror,
            mended_pages: tables.repairs().mended,
        })
    }

    fn disk_bytes(&self) -> Result<u64> {
        let disk = &*self.world.disk;
        let listing = disk::retry(|| disk.list()).map_err(|e| Error::io(e, ".", "list the store"))?;
        let mut sum = 0;
        for name in listing.names {
            let io = |e| Error::io(e, &name, "read a file's size");
            match disk::retry(|| disk.open(&name, OpenOptions::READ)) {
                Ok(file) => sum += disk::retry(|| file.allocated()).map_err(io)?,
                // A file may go while others are counted.
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
                Err(e) => return Err(io(e)),
            }
        }
        Ok(sum)
    }
}
