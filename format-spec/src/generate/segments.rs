//! Writes segments: the log with its commits, marks and seals, and bulk segments.
//!
//! It does not know what edits mean, and nothing of superblock and manifest.

use super::encode::{self, FrameHead, len32, log_only};
use super::rng::Rng;
use crate::commit::{Edit, SyncedUpto};
use crate::derive::{next_chain, root_chain};
use crate::files::segment_name;
use crate::frame::{Codec, Kind};
use crate::keyspace::BulkSegment;
use crate::seal::{FooterEntry, Seal};
use crate::segment::{Header, Lane, Predecessor};
use crate::{Id16, Id32, limits};
use std::collections::BTreeMap;

/// Bytes of the seal frame.
const SEAL: u64 = 192;

/// An index into bytes in memory.
pub(super) fn index(offset: u64) -> usize {
    usize::try_from(offset).expect("generated files are small")
}

/// Overwrites bytes of a file in memory.
pub(super) fn overwrite(file: &mut [u8], offset: u64, bytes: &[u8]) {
    let start = index(offset);
    file.get_mut(start..start + bytes.len()).expect("the place is in the file").copy_from_slice(bytes);
}

/// A chunk or page, ready to be stored.
pub(super) struct Data<'a> {
    pub(super) kind: Kind,
    pub(super) codec: Codec,
    pub(super) raw: u32,
    pub(super) id: Id32,
    pub(super) tenant: u32,
    pub(super) payload: &'a [u8],
}

/// A segment that is being written.
pub(super) struct Open {
    pub(super) header: Header,
    pub(super) bytes: Vec<u8>,
    /// Where the next frame goes.
    pub(super) at: u64,
    frames: Vec<FooterEntry>,
}

impl Open {
    fn new(header: Header, capacity: u64) -> Self {
        let mut bytes = vec![0; index(capacity)];
        for copy in 0..2 {
            overwrite(&mut bytes, u64::from(copy) * limits::BLOCK, &encode::segment_header(&header, copy));
        }
        Self { header, bytes, at: limits::FRAMES_START, frames: Vec::new() }
    }

    /// Bytes that footer and seal will need once `more` chunk and page frames were added.
    fn closing(&self, more: usize) -> u64 {
        let entries = (self.frames.len() + more) as u64;
        // Up to four footer frames, each with its header, its count and its fill.
        SEAL + 4 * 192 + (56 * entries).next_multiple_of(64)
    }

    fn frame(&mut self, head: &FrameHead, payload: &[u8]) -> Vec<u8> {
        let frame = encode::frame(&encode::rules(&self.header), self.at, head, payload);
        let end = index(self.at) + frame.len();
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        overwrite(&mut self.bytes, self.at, &frame);
        self.at += frame.len() as u64;
        frame
    }

    pub(super) fn data(&mut self, data: &Data<'_>) -> u64 {
        let offset = self.at;
        let head = FrameHead {
            kind: data.kind,
            codec: data.codec,
            raw: data.raw,
            id: data.id,
            context: u64::from(data.tenant),
        };
        self.frame(&head, data.payload);
        self.frames.push(FooterEntry {
            id: data.id,
            offset,
            stored: len32(data.payload.len()),
            raw: data.raw,
            tenant: data.tenant,
            kind: data.kind,
            codec: data.codec,
        });
        offset
    }

    /// Writes footer frames and the seal.
    fn seal(&mut self, rng: &mut Rng, synced_upto: u64, log: Option<(Id32, u64, (u64, Id16))>) {
        let byte_count = self.frames.iter().map(|frame| 64 + u64::from(frame.stored).next_multiple_of(64)).sum();
        let frame_count = self.frames.len() as u64;
        let footer_offset = self.at;
        let mut entries = std::mem::take(&mut self.frames);
        entries.sort_unstable();
        let footers = if entries.len() > 4 { 1 + rng.below(4) } else { 1 };
        let share = entries.len().div_ceil(index(footers)).max(1);
        let mut parts: Vec<&[FooterEntry]> = entries.chunks(share).collect();
        if parts.is_empty() {
            parts.push(&[]);
        }
        for (place, part) in (0..).zip(parts) {
            let payload = encode::footer(part);
            let head = plain(Kind::Footer, payload.len(), [0; 32], place);
            self.frame(&head, &payload);
        }
        let (chain, next_lsn, successor) =
            log.map_or(([0; 32], 0, None), |(chain, lsn, next)| (chain, lsn, Some(next)));
        let seal = Seal {
            end: self.at + SEAL,
            footer_offset,
            synced_upto,
            first_lsn: self.header.first_lsn,
            next_lsn,
            frame_count,
            byte_count,
            successor,
        };
        let (id, context) = log_only(self.header.lane, chain, next_lsn);
        self.frame(&plain(Kind::Seal, 80, id, context), &encode::seal(&seal));
    }
}

fn plain(kind: Kind, payload: usize, id: Id32, context: u64) -> FrameHead {
    FrameHead { kind, codec: Codec::Raw, raw: len32(payload), id, context }
}

/// A finished segment of the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Finished {
    pub(super) id: u64,
    pub(super) epoch: Id16,
    pub(super) end: u64,
}

/// What a crash can bring the log back to.
#[derive(Clone, Debug)]
pub(super) struct Point {
    pub(super) at: u64,
    pub(super) chain: Id32,
    pub(super) next_lsn: u64,
    pub(super) hw: u64,
}

/// The log.
pub(super) struct LogWriter {
    pub(super) open: Open,
    pub(super) finished: Vec<Finished>,
    pub(super) chain: Id32,
    pub(super) next_lsn: u64,
    pub(super) hw: u64,
    pub(super) synced: SyncedUpto,
    /// Position in the open segment up to which a witness stands in the log.
    pub(super) witness: u64,
}

impl LogWriter {
    pub(super) fn new(uuid: Id16, epoch: Id16, capacity: u64) -> Self {
        let first_lsn = (1 << 48) | 1;
        let chain = root_chain(&uuid);
        let header = Header { uuid, id: 1, epoch, lane: Lane::Log, capacity, first_lsn, predecessor: None, chain };
        Self {
            open: Open::new(header, capacity),
            finished: Vec::new(),
            chain,
            next_lsn: first_lsn,
            hw: 1_700_000_000_000,
            synced: SyncedUpto { segment: 1, offset: limits::FRAMES_START },
            witness: limits::FRAMES_START,
        }
    }

    pub(super) fn point(&self) -> Point {
        Point { at: self.open.at, chain: self.chain, next_lsn: self.next_lsn, hw: self.hw }
    }

    /// Whether a frame with this payload, and `more` entries of the footer, still fit with footer and seal.
    pub(super) fn fits(&self, payload: usize, more: usize) -> bool {
        let frame = 64 + (payload as u64).next_multiple_of(64);
        self.open.at + frame + self.open.closing(more) <= self.open.bytes.len() as u64
    }

    pub(super) fn data(&mut self, data: &Data<'_>) -> u64 {
        self.open.data(data)
    }

    pub(super) fn padding(&mut self, len: usize) {
        let payload = vec![0; len];
        self.open.frame(&plain(Kind::Padding, len, [0; 32], 0), &payload);
    }

    pub(super) fn sync(&mut self) {
        self.synced = SyncedUpto { segment: self.open.header.id, offset: self.open.at };
    }

    pub(super) fn mark(&mut self) {
        self.sync();
        self.witness = self.open.at;
        let (chain, next_lsn) = (self.chain, self.next_lsn);
        self.open.frame(&plain(Kind::Mark, 0, chain, next_lsn), &[]);
    }

    /// Writes a commit; `payload` is that of [`Self::commit_payload`].
    pub(super) fn commit(&mut self, payload: &[u8], requests: usize) {
        if self.synced.segment == self.open.header.id {
            self.witness = self.witness.max(self.synced.offset);
        }
        let before = self.chain;
        let frame = self.open.frame(&plain(Kind::Commit, payload.len(), before, self.next_lsn), payload);
        let head = frame.first_chunk().expect("a frame begins with its header");
        self.chain = next_chain(&before, head, payload);
        self.next_lsn += requests as u64;
    }

    pub(super) fn commit_payload(&self, requests: &[Vec<Edit>]) -> Vec<u8> {
        encode::commit(self.synced, self.hw, requests)
    }

    /// Seals the open segment, and goes on in the next one. Gives the finished file.
    pub(super) fn roll(&mut self, rng: &mut Rng, id: u64, capacity: u64) -> (String, Vec<u8>) {
        let epoch = rng.array();
        let upto = if self.synced.segment == self.open.header.id { self.synced.offset } else { 0 };
        self.open.seal(rng, upto, Some((self.chain, self.next_lsn, (id, epoch))));
        self.next(id, epoch, capacity)
    }

    /// Leaves the open segment without a seal: its bytes behind the last frame do not count. Gives the finished file.
    pub(super) fn next(&mut self, id: u64, epoch: Id16, capacity: u64) -> (String, Vec<u8>) {
        let old = &self.open.header;
        let predecessor = Some(Predecessor { id: old.id, epoch: old.epoch, end: self.open.at });
        let header = Header { id, epoch, capacity, first_lsn: self.next_lsn, predecessor, chain: self.chain, ..*old };
        self.finished.push(Finished { id: old.id, epoch: old.epoch, end: self.open.at });
        let old = std::mem::replace(&mut self.open, Open::new(header, capacity));
        self.witness = limits::FRAMES_START;
        (segment_name(old.header.id), old.bytes)
    }

    /// Forgets what was written behind a point of the open segment; the bytes stay.
    pub(super) fn back_to(&mut self, point: &Point) {
        self.open.at = point.at;
        self.open.frames.retain(|frame| frame.offset < point.at);
        self.chain = point.chain;
        self.next_lsn = point.next_lsn;
        self.hw = point.hw;
        if self.synced.segment == self.open.header.id {
            self.synced.offset = self.synced.offset.min(point.at);
        }
    }
}

/// A bulk segment that is being written.
pub(super) struct BulkWriter {
    pub(super) open: Open,
}

impl BulkWriter {
    pub(super) fn new(uuid: Id16, id: u64, epoch: Id16, capacity: u64) -> Self {
        let lane = Lane::Bulk;
        let header = Header { uuid, id, epoch, lane, capacity, first_lsn: 0, predecessor: None, chain: [0; 32] };
        Self { open: Open::new(header, limits::FRAMES_START) }
    }

    /// Closes the last block of what was added.
    pub(super) fn close_run(&mut self) {
        let left = self.open.at.next_multiple_of(limits::BLOCK) - self.open.at;
        if left > 0 {
            let payload = vec![0; index(left - 64)];
            self.open.frame(&plain(Kind::Padding, payload.len(), [0; 32], 0), &payload);
        }
    }

    pub(super) fn seal(&mut self, rng: &mut Rng) {
        let synced = self.open.at;
        self.open.seal(rng, synced, None);
        let spare = index(64 * rng.below(3));
        self.open.bytes.resize(self.open.bytes.len() + spare, 0);
    }

    pub(super) fn value(&self, sealed: bool) -> BulkSegment {
        BulkSegment { epoch: self.open.header.epoch, sealed, end: self.open.at }
    }

    /// Puts the file among the files of the store.
    pub(super) fn write_to(&self, files: &mut BTreeMap<String, Vec<u8>>) {
        files.insert(segment_name(self.open.header.id), self.open.bytes.clone());
    }
}
