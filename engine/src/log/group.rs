//! The frames of one group of requests before they are written: chunks and pages, then the commit frame.

use crate::{
    format::{
        frame::{FrameDraft, FrameKind, FrameSalt, HEADER_LEN},
        seal::FooterEntry,
    },
    ids::{FileId, Location},
};

/// Frames at their future places.
pub struct Group {
    segment: FileId,
    base: u64,
    salt: FrameSalt,
    bytes: Vec<u8>,
    entries: Vec<FooterEntry>,
}

/// A point to which a group can be taken back.
#[derive(Clone, Copy)]
pub struct Point {
    bytes: usize,
    entries: usize,
}

impl Group {
    /// An empty group whose first frame will stand at `base`, in a buffer that was used before.
    pub(super) fn new(segment: FileId, base: u64, salt: FrameSalt, mut buffer: Vec<u8>) -> Self {
        buffer.clear();
        Self { segment, base, salt, bytes: buffer, entries: Vec::new() }
    }

    /// Adds a chunk or page and says where it will stand.
    pub fn place(&mut self, draft: &FrameDraft<'_>) -> Location {
        let offset = self.end();
        draft.append_to(&mut self.bytes, &self.salt, offset);
        self.entries.push(FooterEntry::of_draft(draft, offset));
        Location { segment: self.segment, offset }
    }

    /// Adds the commit frame and gives its header.
    pub(super) fn close(&mut self, id: [u8; 32], lsn: u64, payload: &[u8]) -> [u8; HEADER_LEN] {
        let offset = self.end();
        FrameDraft::raw(FrameKind::Commit, id, lsn, payload).append_to(&mut self.bytes, &self.salt, offset)
    }

    /// Where the next frame would stand.
    pub fn end(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }

    /// The group as it is now.
    pub fn point(&self) -> Point {
        Point { bytes: self.bytes.len(), entries: self.entries.len() }
    }

    /// Takes back what was added since.
    pub fn back_to(&mut self, point: Point) {
        self.bytes.truncate(point.bytes);
        self.entries.truncate(point.entries);
    }

    pub(super) const fn base(&self) -> u64 {
        self.base
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Adds zeros up to an offset. They are no frame: nothing stands there.
    pub(super) fn fill_to(&mut self, offset: u64) {
        let len = usize::try_from(offset - self.base).expect("a group is in memory");
        debug_assert!(len >= self.bytes.len());
        self.bytes.resize(len, 0);
    }

    /// Its frames for the footer, and the buffer.
    pub(super) fn into_parts(self) -> (Vec<FooterEntry>, Vec<u8>) {
        (self.entries, self.bytes)
    }
}
