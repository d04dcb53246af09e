//! Making segments: prepared files of the log lane, and the bulk lane's aligned appends.

use std::io::IoSlice;

use super::{
    name,
    seal::{Closing, closing_bytes},
};
use crate::{
    canary::{self, Canary},
    disk::{self, AlignedBuffer, Disk, File, Name, OpenOptions, SyncKind},
    error::{Error, Kind, Result},
    format::{
        frame::{FrameDraft, FrameKind, FrameSalt, HEADER_LEN, frame_len},
        manifest::Lane,
        seal::{FooterEntry, closing_len},
        segment_header::SegmentHeader,
    },
    health::Health,
    ids::{ChainHash, Epoch, FileId, Location, Lsn, StoreUuid},
    limits::{BLOCK, BLOCK_LEN, BULK_WRITE, BULK_WRITE_PIPELINED, FRAMES_START},
    sync::{Arc, AtomicU64, Ordering},
};

/// Makes a file of `len` zeros that are written and synced, with its name synced: a prepared log segment.
pub fn prepare(disk: &dyn Disk, id: FileId, len: u64) -> Result<Box<dyn File>> {
    let name = name(id);
    let file =
        disk::retry(|| disk.open(&name, OpenOptions::CREATE)).map_err(|e| Error::io(e, &name, "make a segment"))?;
    let filled = zero_and_sync(&*file, &name, 0, len);
    if let Err(error) = filled.and_then(|()| sync_dir(disk)) {
        // Its id is burnt; the file would only take room. If this fails too, the next open destroys it.
        drop(file);
        let _ = disk.unlink(&name);
        return Err(error);
    }
    Ok(file)
}

/// Overwrites a range with zeros and syncs.
pub fn zero_and_sync(file: &dyn File, name: &Name, from: u64, to: u64) -> Result<()> {
    disk::retry(|| file.zero(from, to.saturating_sub(from))).map_err(|e| Error::io(e, name, "write zeros"))?;
    sync(file, name)
}

/// Makes the bytes of a file durable.
pub fn sync(file: &dyn File, name: &Name) -> Result<()> {
    disk::retry(|| file.sync(SyncKind::Data)).map_err(|e| Error::io(e, name, "sync"))
}

/// Makes names durable.
pub fn sync_dir(disk: &dyn Disk) -> Result<()> {
    if canary::sings(Canary::NoDirectorySync) {
        return Ok(());
    }
    disk::retry(|| disk.sync_dir()).map_err(|e| Error::io(e, ".", "sync the directory"))
}

/// Writes bytes.
pub fn write(file: &dyn File, name: &Name, bytes: &[u8], offset: u64) -> Result<()> {
    disk::write_all(file, bytes, offset).map_err(|e| Error::io(e, name, "write"))
}

/// File of a bulk segment that is being written. It knows where nothing belongs: offsets are the writer's.
///
/// A full disk fails the call alone, and the file is not to be written again. A failed sync, or a write that failed for another
/// reason, lets the latch of the store fall: what the disk has is unknown.
pub struct BulkFile {
    /// Its id.
    pub id: FileId,
    /// Its epoch.
    pub epoch: Epoch,
    file: Box<dyn File>,
    name: Name,
    salt: FrameSalt,
    /// Up to here a commit relies on it.
    committed: AtomicU64,
    health: Arc<Health>,
}

impl BulkFile {
    /// Writes whole blocks.
    pub fn write(&self, bytes: &[u8], at: u64) -> Result<()> {
        // The latch may have fallen for somebody else since this stream began.
        self.health.check()?;
        write(&*self.file, &self.name, bytes, at).map_err(|e| self.failed_write(e))
    }

    /// Writes pieces of whole blocks, one behind the other.
    pub fn write_pieces(&self, pieces: &mut [IoSlice<'_>], at: u64) -> Result<()> {
        self.health.check()?;
        let written = disk::write_all_pieces(&*self.file, pieces, at);
        written.map_err(|e| self.failed_write(Error::io(e, &self.name, "write")))
    }

    /// A full disk is the request's trouble; every other failed write is the store's.
    fn failed_write(&self, error: Error) -> Error {
        if error.kind() == Kind::NoSpace { error } else { self.health.fail(error) }
    }

    /// Makes durable what was written. Only then may a commit rely on it.
    pub fn sync(&self) -> Result<()> {
        if canary::sings(Canary::BulkNotSynced) {
            return Ok(());
        }
        sync(&*self.file, &self.name).map_err(|e| self.health.fail(e))
    }

    /// Writes footer and seal behind what was written and synced, and syncs. Gives the end of the segment.
    pub fn seal(&self, entries: &mut [FooterEntry], at: u64) -> Result<u64> {
        // Where footer and seal do not stand, the next open seals: no commit relies on them yet.
        let end = write_seal(&*self.file, &self.name, &self.salt, entries, at).map_err(|e| self.failed_write(e))?;
        sync(&*self.file, &self.name).map_err(|e| self.health.fail(e))?;
        Ok(end)
    }

    /// A commit that is durable relies on it up to here.
    pub fn committed(&self, end: u64) {
        self.committed.store(end, Ordering::Release);
    }

    /// Gives the disk back what no commit relies on, after a call that found the disk full: else a put that failed for want of room
    /// would leave none to those that need little. True: nothing is left of it. Once the latch has fallen nothing is removed.
    pub fn give_back(&self, disk: &dyn Disk) -> bool {
        if !self.health.is_writable() {
            return false;
        }
        match self.committed.load(Ordering::Acquire) {
            0 => self.remove_unused(disk),
            committed => {
                // If this fails, the next open cuts it there.
                let _ = self.file.set_len(committed);
                false
            }
        }
    }

    /// Removes a file that no commit relies on. True: it is gone. Once the latch has fallen nothing is removed.
    pub fn remove_unused(&self, disk: &dyn Disk) -> bool {
        self.health.is_writable() && self.committed.load(Ordering::Acquire) == 0 && destroy(disk, &self.name).is_ok()
    }
}

/// Takes buffers that a writer filled, in the order in which they belong into the file.
pub trait Out {
    /// Takes the bytes and leaves the buffer empty.
    fn write(&mut self, file: &Arc<BulkFile>, buffer: &mut AlignedBuffer, at: u64) -> Result<()>;
}

/// Writes at once.
pub struct AtOnce;

impl Out for AtOnce {
    fn write(&mut self, file: &Arc<BulkFile>, buffer: &mut AlignedBuffer, at: u64) -> Result<()> {
        file.write(buffer.as_slice(), at)?;
        buffer.clear();
        Ok(())
    }
}

/// A bulk segment that takes frames. Memory: one buffer, and 64 bytes a frame. After a call that failed it is not to be used
/// again.
pub struct BulkWriter {
    file: Arc<BulkFile>,
    capacity: u64,
    buffer: AlignedBuffer,
    /// Where the buffer's bytes belong: a multiple of 4,096.
    flushed: u64,
    entries: Vec<FooterEntry>,
}

/// Capacity of a writer's own buffer.
fn buffer_len(capacity: u64) -> usize {
    BULK_WRITE.min(usize::try_from(capacity).unwrap_or(BULK_WRITE)).next_multiple_of(BLOCK_LEN)
}

/// Capacity of the buffers of a pipelined stream that writes into segments of this capacity.
pub fn pipelined_buffer_len(capacity: u64) -> usize {
    let len = usize::try_from(capacity).unwrap_or(BULK_WRITE_PIPELINED);
    BULK_WRITE_PIPELINED.min(len).next_multiple_of(BLOCK_LEN)
}

impl BulkWriter {
    /// Makes the file with its header, and syncs its name. The header is synced with the first frames.
    pub fn create(
        disk: &dyn Disk,
        uuid: StoreUuid,
        id: FileId,
        epoch: Epoch,
        capacity: u64,
        health: Arc<Health>,
    ) -> Result<Self> {
        health.check()?;
        let name = name(id);
        let options = OpenOptions { direct: true, ..OpenOptions::CREATE };
        let file = disk::retry(|| disk.open(&name, options))
            .map_err(|e| Error::io(e, &name, "make a segment"))
            .map_err(|e| health.notice(e))?;
        let header = SegmentHeader {
            uuid,
            id,
            epoch,
            lane: Lane::Bulk,
            capacity,
            first_lsn: Lsn::NONE,
            predecessor: None,
            chain: ChainHash::ZERO,
        };
        let salt = FrameSalt::new(uuid, epoch);
        let file = Arc::new(BulkFile { id, epoch, file, name, salt, committed: AtomicU64::new(0), health });
        let mut writer = Self { file, capacity, buffer: AlignedBuffer::default(), flushed: 0, entries: Vec::new() };
        let made = writer.push(&header.encode(), &mut AtOnce).and_then(|()| writer.write_buffer(&mut AtOnce));
        let made = made.and_then(|()| sync_dir(disk).map_err(|e| writer.file.health.fail(e)));
        if let Err(error) = made {
            // Once the latch has fallen nothing is removed any more.
            if writer.file.health.is_writable() {
                let _ = disk.unlink(&writer.file.name);
            }
            return Err(error);
        }
        Ok(writer)
    }

    /// Its file.
    pub const fn file(&self) -> &Arc<BulkFile> {
        &self.file
    }

    fn position(&self) -> u64 {
        self.flushed + self.buffer.len() as u64
    }

    /// True if a frame of this payload fits with padding, footer and seal.
    pub fn has_room(&self, stored: u64) -> bool {
        let closing = closing_len(self.entries.len() as u64 + 1);
        self.position() + frame_len(stored) + BLOCK + closing <= self.capacity
    }

    /// Gives its buffer's memory back until the next frame comes.
    pub fn rest(&mut self) {
        if self.buffer.is_empty() {
            self.buffer = AlignedBuffer::default();
        }
    }

    /// True if it holds no frame yet: then it takes one of any length.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Appends a chunk or page frame, written at once as far as its buffer fills.
    pub fn append(&mut self, draft: &FrameDraft<'_>) -> Result<Location> {
        self.append_to(draft, &mut AtOnce)
    }

    /// Makes all frames durable, at once. Gives the offset up to which a commit may rely on the segment.
    pub fn flush(&mut self) -> Result<u64> {
        let end = self.close_block(&mut AtOnce)?;
        self.file.sync()?;
        Ok(end)
    }

    /// Appends a chunk or page frame. One pass over the payload for its checksum, one to copy it.
    pub fn append_to(&mut self, draft: &FrameDraft<'_>, out: &mut impl Out) -> Result<Location> {
        let offset = self.position();
        let header = draft.header(&self.file.salt, offset);
        self.push(&header, out)?;
        self.push(draft.payload, out)?;
        self.push(draft.fill(), out)?;
        self.entries.push(FooterEntry::of_draft(draft, offset));
        Ok(Location { segment: self.file.id, offset })
    }

    fn push(&mut self, mut bytes: &[u8], out: &mut impl Out) -> Result<()> {
        let buffer_len = buffer_len(self.capacity);
        if self.buffer.is_empty() && self.buffer.capacity() < buffer_len {
            self.buffer = AlignedBuffer::with_capacity(buffer_len);
        }
        while !bytes.is_empty() {
            let taken = self.buffer.extend_from_slice(bytes);
            bytes = &bytes[taken..];
            if self.buffer.room() == 0 {
                self.write_buffer(out)?;
            }
        }
        Ok(())
    }

    fn write_buffer(&mut self, out: &mut impl Out) -> Result<()> {
        let len = self.buffer.len() as u64;
        out.write(&self.file, &mut self.buffer, self.flushed)?;
        self.flushed += len;
        Ok(())
    }

    /// Closes the last block with a padding frame and gives out what is buffered. Gives the offset up to which a commit may rely on
    /// the segment once the file is synced.
    pub fn close_block(&mut self, out: &mut impl Out) -> Result<u64> {
        let gap = self.position().next_multiple_of(BLOCK) - self.position();
        if gap > 0 {
            let zeros = [0; BLOCK_LEN];
            let payload = &zeros[..usize::try_from(gap).expect("below a block") - HEADER_LEN];
            let padding = FrameDraft::raw(FrameKind::Padding, [0; 32], 0, payload);
            let header = padding.header(&self.file.salt, self.position());
            self.push(&header, out)?;
            self.push(padding.payload, out)?;
        }
        if !self.buffer.is_empty() {
            self.write_buffer(out)?;
        }
        Ok(self.flushed)
    }

    /// Ends the segment: its file, the frames for its footer, and where that belongs.
    pub fn close(mut self, out: &mut impl Out) -> Result<(Arc<BulkFile>, Vec<FooterEntry>, u64)> {
        let at = self.close_block(out)?;
        Ok((self.file, self.entries, at))
    }
}

/// Writes footer and seal of a bulk segment at `at`, a multiple of 4,096, cuts what lies behind, and syncs. Gives the end.
pub fn seal_bulk(file: &dyn File, name: &Name, salt: &FrameSalt, entries: &mut [FooterEntry], at: u64) -> Result<u64> {
    let end = write_seal(file, name, salt, entries, at)?;
    sync(file, name)?;
    Ok(end)
}

fn write_seal(file: &dyn File, name: &Name, salt: &FrameSalt, entries: &mut [FooterEntry], at: u64) -> Result<u64> {
    debug_assert!(at.is_multiple_of(BLOCK) && at >= FRAMES_START);
    let bytes = closing_bytes(entries, salt, &Closing { at, synced_upto: at, log: None, successor: None });
    let end = at + bytes.len() as u64;
    let mut aligned = AlignedBuffer::zeroed(bytes.len().next_multiple_of(BLOCK_LEN));
    aligned.as_mut_slice()[..bytes.len()].copy_from_slice(&bytes);
    write(file, name, aligned.as_slice(), at)?;
    disk::retry(|| file.set_len(end)).map_err(|e| Error::io(e, name, "cut a sealed segment"))?;
    Ok(end)
}

/// Steps in which a large file is cut before it is unlinked: one large unlink would freeze every commit on a disk that discards.
const SHRINK_STEP: u64 = 1 << 20;

/// Removes a file that nothing names, in steps.
pub fn destroy(disk: &dyn Disk, name: &Name) -> Result<()> {
    let io = |e| Error::io(e, name, "destroy a file that nothing names");
    if let Ok(file) = disk::retry(|| disk.open(name, OpenOptions::WRITE)) {
        let mut len = disk::retry(|| file.len()).map_err(io)?;
        while len > SHRINK_STEP {
            len -= SHRINK_STEP;
            disk::retry(|| file.set_len(len)).map_err(io)?;
        }
    }
    disk::retry(|| disk.unlink(name)).map_err(io)
}
