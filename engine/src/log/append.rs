//! The end of the log that takes groups: writing, syncing, marks, and rolling to the next segment.

use std::collections::BTreeSet;

use super::{
    group::Group,
    prepared::{Readiness, Spare},
};
use crate::{
    canary::{self, Canary},
    digest::chain_next,
    disk::{Disk, File, Name},
    entropy::{self, Entropy},
    error::{Kind, Result},
    format::{
        commit::Commit,
        frame::{FrameDraft, FrameKind, FrameSalt, frame_len},
        manifest::{Lane, ManifestSegment, SegmentState},
        seal::{FooterEntry, closing_len},
        segment_header::{Predecessor, SegmentHeader},
        superblock::ReplayPosition,
    },
    health::Health,
    ids::{ChainHash, Epoch, FileId, Location, Lsn, StoreUuid},
    limits::{BLOCK, FRAMES_START, PREPARED_MAX},
    segment::{
        self, Segments,
        seal::{Closing, closing_bytes},
        writer,
    },
    superblock::Root,
    sync::Arc,
};

const MARK_LEN: u64 = frame_len(0);
/// A buffer of a group is kept for the next one up to this capacity.
const BUFFER_KEPT: usize = 1 << 20;

/// Where a log ends: what recovery hands over, and what a clean close writes down.
pub struct Tail {
    /// The newest segment.
    pub id: FileId,
    /// Its epoch.
    pub epoch: Epoch,
    /// Its first LSN.
    pub first_lsn: Lsn,
    /// Length of its file.
    pub capacity: u64,
    /// Where the next frame stands.
    pub offset: u64,
    /// Chain hash there.
    pub chain: ChainHash,
    /// The next LSN.
    pub next_lsn: Lsn,
    /// Chunk and page frames of the segment.
    pub entries: Vec<FooterEntry>,
}

/// What the log stands on.
pub struct Ground {
    /// Files.
    pub disk: Arc<dyn Disk>,
    /// The superblock.
    pub root: Arc<Root>,
    /// Known segments.
    pub segments: Arc<Segments>,
    /// The latch.
    pub health: Arc<Health>,
    /// Epochs.
    pub entropy: Arc<dyn Entropy>,
}

/// The log of a store that is open for writing. All of it happens under the commit lock.
pub struct Log {
    ground: Ground,
    uuid: StoreUuid,
    spare: Spare,
    tail: Tail,
    file: Box<dyn File>,
    name: Name,
    salt: FrameSalt,
    /// How far the newest segment is known to be synced.
    synced: u64,
    /// The superblock's `log_head` names an older segment.
    head_lags: bool,
    /// Bytes of chunk and page frames in all log segments.
    content_bytes: u64,
    /// Lengths of the first and of the longest log segments.
    lens: (u64, u64),
    buffer: Vec<u8>,
    /// The open is over. Until then no file is begun: it would be destroyed as one that nothing names.
    settled: bool,
    /// The segments before the newest, by age.
    older: Vec<ManifestSegment>,
}

/// Where a checkpoint lets replay begin, and what it would not know then of the log before.
pub struct Point {
    /// The position. Everything before it is synced.
    pub replay: ReplayPosition,
    /// The log's segments, up to that of the position.
    pub segments: Vec<ManifestSegment>,
    /// Bytes of chunk and page frames in those before that of the position.
    pub content_before: u64,
}

/// Room that a group may take at most.
#[derive(Clone, Copy, Default, Debug)]
pub struct Bounds {
    /// Chunk and page frames.
    pub frames: u64,
    /// Their bytes.
    pub frame_bytes: u64,
    /// Bytes of the commit's payload.
    pub commit_bytes: u64,
}

impl Bounds {
    /// Both together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            frames: self.frames + other.frames,
            frame_bytes: self.frame_bytes + other.frame_bytes,
            commit_bytes: self.commit_bytes + other.commit_bytes,
        }
    }
}

impl Log {
    /// Takes over the tail that recovery found; all before `tail.offset` is synced.
    pub fn new(ground: Ground, spare: Spare, tail: Tail, file: Box<dyn File>, content_bytes: u64) -> Self {
        let superblock = ground.root.current();
        let (uuid, options) = (superblock.uuid, superblock.options);
        ground.segments.add(tail.id, tail.epoch);
        Self {
            uuid,
            spare,
            file,
            name: segment::name(tail.id),
            salt: FrameSalt::new(uuid, tail.epoch),
            synced: tail.offset,
            head_lags: false,
            content_bytes,
            older: Vec::new(),
            lens: (options.log_segment_first, options.log_segment_max),
            buffer: Vec::new(),
            settled: false,
            ground,
            tail,
        }
    }

    /// Tells the log of the segments that stood before its newest when it was found.
    pub fn remember(&mut self, older: Vec<ManifestSegment>) {
        self.older = older;
    }

    /// The segments before the newest.
    pub fn older(&self) -> &[ManifestSegment] {
        &self.older
    }

    /// Forgets segments that no durable manifest names any more, with this many bytes of chunk and page frames.
    pub fn forget(&mut self, released: &BTreeSet<FileId>, content_bytes: u64) {
        self.older.retain(|segment| !released.contains(&segment.id));
        self.content_bytes = self.content_bytes.saturating_sub(content_bytes);
    }

    /// True if a file of this length would make a segment that the log can use soon.
    pub fn wants(&self, len: u64) -> bool {
        len >= self.next_capacity() && len <= self.lens.1 && self.spare.has_place()
    }

    /// Takes a file over whose zeros and name are synced, to be entered later. The superblock names it with the next chores.
    pub fn adopt(&mut self, id: FileId, file: Box<dyn File>, len: u64) {
        self.spare.adopt(id, file, len);
    }

    /// The position behind everything that is published. The superblock names the newest segment when this returns: the way back from
    /// `log_head` must meet the segment of the position.
    pub fn point(&mut self) -> Result<Point> {
        if self.head_lags {
            self.name_files(None)?;
            self.head_lags = false;
        }
        let offset = if canary::sings(Canary::ReplayTooNew) { self.tail.offset } else { self.synced };
        let replay = ReplayPosition {
            segment: self.tail.id,
            epoch: self.tail.epoch,
            offset,
            lsn: self.tail.next_lsn,
            chain: self.tail.chain,
        };
        let newest = ManifestSegment {
            id: self.tail.id,
            epoch: self.tail.epoch,
            lane: Lane::Log,
            state: SegmentState::Active,
            end: 0,
        };
        let mut segments = self.older.clone();
        segments.push(newest);
        segments.sort_unstable_by_key(|segment| segment.id);
        let here: u64 = self.tail.entries.iter().map(|e| frame_len(u64::from(e.stored))).sum();
        Ok(Point { replay, segments, content_before: self.content_bytes - here })
    }

    /// The tail.
    pub const fn tail(&self) -> &Tail {
        &self.tail
    }

    /// The next LSN.
    pub const fn next_lsn(&self) -> Lsn {
        self.tail.next_lsn
    }

    /// Bytes of chunk and page frames in all log segments.
    pub const fn content_bytes(&self) -> u64 {
        self.content_bytes
    }

    /// Makes sure that a group within the bounds fits before the room kept for footer and seal: rolls if it does not. Failing to
    /// find room fails the group alone; a failed write or sync of the log poisons.
    pub fn make_room(&mut self, bounds: Bounds, privileged: bool) -> Result<()> {
        let group = bounds.frame_bytes + frame_len(bounds.commit_bytes) + MARK_LEN;
        let closing = closing_len(self.tail.entries.len() as u64 + bounds.frames);
        if self.tail.offset + group + closing <= self.tail.capacity {
            return Ok(());
        }
        self.roll(FRAMES_START + group + closing_len(bounds.frames), privileged)
    }

    /// An empty group at the tail.
    pub fn group(&mut self) -> Group {
        Group::new(self.tail.id, self.tail.offset, self.salt, std::mem::take(&mut self.buffer))
    }

    /// Writes a group with its commit and syncs. A failure leaves it unknown what the disk has, so the store takes no more writes.
    pub fn append(&mut self, mut group: Group, commit: &Commit) -> Result<()> {
        debug_assert_eq!(group.base(), self.tail.offset);
        let payload = commit.encode();
        let header = group.close(self.tail.chain.0, self.tail.next_lsn.0, &payload);
        let end = group.end();
        group.fill_to(self.end_of_block(end));
        let health = Arc::clone(&self.ground.health);
        writer::write(&*self.file, &self.name, group.bytes(), group.base()).map_err(|e| health.fail(e))?;
        if !canary::sings(Canary::AckBeforeSync) {
            // Whatever the error: the bytes are there for the next open to see.
            let unknown = |e| health.fail(e).with_kind(Kind::OutcomeUnknown);
            writer::sync(&*self.file, &self.name).map_err(unknown)?;
        }
        self.tail.chain = chain_next(self.tail.chain, &header, &payload);
        self.tail.next_lsn = self.tail.next_lsn.plus(commit.requests.len() as u64);
        self.tail.offset = end;
        self.synced = end;
        let (entries, buffer) = group.into_parts();
        if buffer.capacity() <= BUFFER_KEPT {
            self.buffer = buffer;
        }
        self.content_bytes += entries.iter().map(|e| frame_len(u64::from(e.stored))).sum::<u64>();
        self.tail.entries.extend(entries);
        Ok(())
    }

    /// Where a write ends that begins at the tail: zeros over zeros to the end of its last block. A write of a part of a block that the
    /// page cache does not hold would wait until it is read.
    fn end_of_block(&self, end: u64) -> u64 {
        end.next_multiple_of(BLOCK).min(self.tail.capacity).max(end)
    }

    /// How far the log is known to be synced: what a commit says of those before it.
    pub const fn synced_upto(&self) -> Location {
        Location { segment: self.tail.id, offset: self.synced }
    }

    /// Appends a mark, without a sync: the witness of an idle store's last group.
    pub fn mark(&mut self) -> Result<()> {
        if self.tail.offset + MARK_LEN + closing_len(self.tail.entries.len() as u64) > self.tail.capacity {
            return Ok(());
        }
        let mut bytes = Vec::new();
        FrameDraft::raw(FrameKind::Mark, self.tail.chain.0, self.tail.next_lsn.0, &[]).append_to(
            &mut bytes,
            &self.salt,
            self.tail.offset,
        );
        fill(&mut bytes, self.tail.offset, self.end_of_block(self.tail.offset + MARK_LEN));
        let health = Arc::clone(&self.ground.health);
        writer::write(&*self.file, &self.name, &bytes, self.tail.offset).map_err(|e| health.fail(e))?;
        self.tail.offset += MARK_LEN;
        Ok(())
    }

    /// Makes the marks durable too.
    pub fn sync(&mut self) -> Result<()> {
        let health = Arc::clone(&self.ground.health);
        writer::sync(&*self.file, &self.name).map_err(|e| health.fail(e))?;
        self.synced = self.tail.offset;
        Ok(())
    }

    /// Seals the segment and goes on in the next. The order is the protocol: the sealed segment is synced before the next one's
    /// header names its end, and that header before anything stands behind it.
    fn roll(&mut self, needed: u64, privileged: bool) -> Result<()> {
        let wanted = self.next_capacity();
        let health = Arc::clone(&self.ground.health);
        let epoch = Epoch(entropy::random(&*self.ground.entropy)?);
        let (id, file, capacity) = self.spare.take(needed, wanted, privileged).map_err(|e| health.notice(e))?;
        self.announce(id)?;
        let closing = Closing {
            at: self.tail.offset,
            synced_upto: self.synced,
            log: Some((self.tail.first_lsn, self.tail.next_lsn, self.tail.chain)),
            successor: Some((id, epoch)),
        };
        let mut bytes = closing_bytes(&mut self.tail.entries, &self.salt, &closing);
        let end = closing.at + bytes.len() as u64;
        fill(&mut bytes, closing.at, self.end_of_block(end));
        writer::write(&*self.file, &self.name, &bytes, closing.at)
            .and_then(|()| writer::sync(&*self.file, &self.name))
            .map_err(|e| health.fail(e))?;
        let header = successor_header(self.uuid, &self.tail, end, id, epoch, capacity);
        self.enter(&header, file)
    }

    /// Makes sure that the superblock names a segment before the log enters it. One that was made just now is otherwise known by the
    /// seal before it alone until `log_head` follows: a sector that rots there would hide what was acknowledged behind it.
    fn announce(&self, id: FileId) -> Result<()> {
        if self.ground.root.current().prepared.contains(&id) {
            return Ok(());
        }
        let mut prepared = self.spare.prepared_ids();
        prepared.truncate(PREPARED_MAX - 1);
        prepared.push(id);
        self.ground.root.update(|s| s.prepared = prepared)
    }

    /// Writes a header, syncs it, and makes its segment the newest.
    fn enter(&mut self, header: &SegmentHeader, file: Box<dyn File>) -> Result<()> {
        let health = Arc::clone(&self.ground.health);
        write_header(&*file, header).map_err(|e| health.fail(e))?;
        self.ground.segments.add(header.id, header.epoch);
        self.older.extend(header.predecessor.map(|before| ManifestSegment {
            id: before.id,
            epoch: before.epoch,
            lane: Lane::Log,
            state: SegmentState::Sealed,
            end: before.end,
        }));
        self.name = segment::name(header.id);
        self.salt = FrameSalt::new(self.uuid, header.epoch);
        self.file = file;
        self.synced = FRAMES_START;
        self.tail = Tail {
            id: header.id,
            epoch: header.epoch,
            first_lsn: header.first_lsn,
            capacity: header.capacity,
            offset: FRAMES_START,
            chain: header.chain,
            next_lsn: header.first_lsn,
            entries: Vec::new(),
        };
        self.head_lags = true;
        Ok(())
    }

    /// Log segments start small, twice, and double as the store grows.
    fn next_capacity(&self) -> u64 {
        let (first, max) = self.lens;
        let grown = if self.tail.id == FileId(1) { self.tail.capacity } else { self.tail.capacity.saturating_mul(2) };
        grown.clamp(first, max)
    }

    /// The first write of an open behind what it adopted: the superblock names the newest segment, in all copies and no longer clean;
    /// then a mark says that everything before it is synced.
    pub fn take_office(&mut self, mark: bool) -> Result<()> {
        self.name_files(None)?;
        if mark { self.mark() } else { Ok(()) }
    }

    /// True if the superblock has to be written: it should name the newest segment, or files that became ready.
    pub fn has_chores(&mut self) -> bool {
        self.spare.collect();
        self.head_lags || self.spare.is_unnamed()
    }

    /// Writes the superblock, if it has to be.
    pub fn do_chores(&mut self) -> Result<()> {
        if self.head_lags || self.spare.is_unnamed() { self.name_files(None) } else { Ok(()) }
    }

    /// How far the next files should be by now; `None` if nothing is missing.
    pub fn readiness(&self) -> Option<Readiness> {
        if !self.settled {
            return None;
        }
        self.spare.readiness(self.next_capacity(), self.tail.offset, self.tail.capacity)
    }

    /// All that is otherwise done in steps behind the groups, in one go: for when nobody waits. The steps begin behind it.
    pub fn settle(&mut self) -> Result<()> {
        self.settled = true;
        let refilled = self.spare.replenish(self.next_capacity());
        // Whatever became of the next segment, the superblock must not lag behind two of them.
        self.do_chores()?;
        refilled.map_err(|e| self.ground.health.notice(e))
    }

    fn name_files(&mut self, clean: Option<crate::format::superblock::LogEnd>) -> Result<()> {
        let head = (self.tail.id, self.tail.epoch);
        let (prepared, reserves) = (self.spare.prepared_ids(), self.spare.reserve_ids());
        self.ground.root.update(|s| {
            s.log_head = head;
            s.prepared = prepared;
            s.reserves = reserves;
            s.clean = clean;
        })?;
        self.head_lags = false;
        self.spare.named();
        Ok(())
    }

    /// Writes a mark, syncs, and tells the superblock where the log ends.
    pub fn close(&mut self) -> Result<()> {
        self.ground.health.check()?;
        // What was begun is finished: nobody would know the file any more. Without room for it the store closes all the same.
        let _ = self.settle();
        self.ground.health.check()?;
        if self.synced == self.tail.offset {
            self.mark()?;
        }
        self.sync()?;
        self.name_files(Some(crate::format::superblock::LogEnd {
            offset: self.tail.offset,
            lsn: self.tail.next_lsn,
            chain: self.tail.chain,
        }))
    }

    /// The files that are kept ready.
    #[cfg(test)]
    pub const fn spare(&self) -> &Spare {
        &self.spare
    }
}

/// Zeros behind frames that begin at an offset, up to another.
fn fill(frames: &mut Vec<u8>, from: u64, to: u64) {
    frames.resize(usize::try_from(to - from).expect("a block and less"), 0);
}

/// Header of the segment that follows `tail`, whose frames end at `end`.
pub fn successor_header(
    uuid: StoreUuid,
    tail: &Tail,
    end: u64,
    id: FileId,
    epoch: Epoch,
    capacity: u64,
) -> SegmentHeader {
    SegmentHeader {
        uuid,
        id,
        epoch,
        lane: Lane::Log,
        capacity,
        first_lsn: tail.next_lsn,
        predecessor: Some(Predecessor { id: tail.id, epoch: tail.epoch, end }),
        chain: tail.chain,
    }
}

/// Writes both copies of a header over prepared zeros and syncs.
pub fn write_header(file: &dyn File, header: &SegmentHeader) -> Result<()> {
    let name = segment::name(header.id);
    debug_assert_eq!(header.encode().len() as u64, 2 * BLOCK);
    writer::write(file, &name, &header.encode(), 0)?;
    writer::sync(file, &name)
}
