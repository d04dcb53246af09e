//! Making segments: prepared files of the log lane, and the bulk lane's aligned appends.

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
    limits::{BLOCK, BLOCK_LEN, BULK_WRITE, FRAMES_START},
    sync::Arc,
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

/// A bulk segment that takes frames. Memory: one buffer of 1 MiB and 64 bytes a frame.
///
/// A full disk fails the call alone, and the writer is not to be used again. A failed sync, or a write that failed for another
/// reason, lets the latch of the store fall: what the disk has is unknown.
pub struct BulkWriter {
    /// Its id.
    pub id: FileId,
    /// Its epoch.
    pub epoch: Epoch,
    file: Box<dyn File>,
    name: Name,
    salt: FrameSalt,
    capacity: u64,
    buffer: AlignedBuffer,
    /// Where the buffer's bytes belong: a multiple of 4,096.
    flushed: u64,
    entries: Vec<FooterEntry>,
    /// Up to here a commit relies on it.
    committed: u64,
    health: Arc<Health>,
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
        let mut writer = Self {
            id,
            epoch,
            file,
            name,
            salt: FrameSalt::new(uuid, epoch),
            capacity,
            buffer: AlignedBuffer::with_capacity(
                BULK_WRITE.min(usize::try_from(capacity).unwrap_or(BULK_WRITE)).next_multiple_of(BLOCK_LEN),
            ),
            flushed: 0,
            entries: Vec::new(),
            committed: 0,
            health,
        };
        let made = writer.push(&header.encode()).and_then(|()| writer.write_buffer());
        let made = made.and_then(|()| sync_dir(disk).map_err(|e| writer.health.fail(e)));
        if let Err(error) = made {
            // Once the latch has fallen nothing is removed any more.
            if writer.health.is_writable() {
                let _ = disk.unlink(&writer.name);
            }
            return Err(error);
        }
        Ok(writer)
    }

    fn position(&self) -> u64 {
        self.flushed + self.buffer.len() as u64
    }

    /// True if a frame of this payload fits with padding, footer and seal.
    pub fn has_room(&self, stored: u64) -> bool {
        let closing = closing_len(self.entries.len() as u64 + 1);
        self.position() + frame_len(stored) + BLOCK + closing <= self.capacity
    }

    /// True if it holds no frame yet: then it takes one of any length.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Appends a chunk or page frame.
    pub fn append(&mut self, draft: &FrameDraft<'_>) -> Result<Location> {
        let offset = self.position();
        let header = draft.header(&self.salt, offset);
        self.push(&header)?;
        self.push(draft.payload)?;
        self.push(draft.fill())?;
        self.entries.push(FooterEntry::of_draft(draft, offset));
        Ok(Location { segment: self.id, offset })
    }

    fn push(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let taken = self.buffer.extend_from_slice(bytes);
            bytes = &bytes[taken..];
            if self.buffer.len() == self.buffer.capacity() {
                self.write_buffer()?;
            }
        }
        Ok(())
    }

    fn write_buffer(&mut self) -> Result<()> {
        // The latch may have fallen for somebody else since this stream began.
        self.health.check()?;
        write(&*self.file, &self.name, self.buffer.as_slice(), self.flushed).map_err(|e| self.failed_write(e))?;
        self.flushed += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// A full disk is the request's trouble; every other failed write is the store's.
    fn failed_write(&self, error: Error) -> Error {
        if error.kind() == Kind::NoSpace { error } else { self.health.fail(error) }
    }

    /// Closes the last block with a padding frame, writes what is buffered and syncs. Gives the offset up to which a commit may
    /// rely on the segment.
    pub fn flush(&mut self) -> Result<u64> {
        let gap = self.position().next_multiple_of(BLOCK) - self.position();
        if gap > 0 {
            let zeros = [0; BLOCK_LEN];
            let payload = &zeros[..usize::try_from(gap).expect("below a block") - HEADER_LEN];
            let padding = FrameDraft::raw(FrameKind::Padding, [0; 32], 0, payload);
            let header = padding.header(&self.salt, self.position());
            self.push(&header)?;
            self.push(padding.payload)?;
        }
        if !self.buffer.is_empty() {
            self.write_buffer()?;
        }
        if !canary::sings(Canary::BulkNotSynced) {
            sync(&*self.file, &self.name).map_err(|e| self.health.fail(e))?;
        }
        Ok(self.flushed)
    }

    /// Flushes, then writes footer and seal and syncs. Gives the end of the segment.
    pub fn seal(&mut self) -> Result<u64> {
        let at = self.flush()?;
        // Where footer and seal do not stand, the next open seals: no commit relies on them yet.
        let end =
            write_seal(&*self.file, &self.name, &self.salt, &mut self.entries, at).map_err(|e| self.failed_write(e))?;
        sync(&*self.file, &self.name).map_err(|e| self.health.fail(e))?;
        Ok(end)
    }

    /// A commit that is durable relies on it up to here.
    pub const fn committed(&mut self, end: u64) {
        self.committed = end;
    }

    /// Gives the disk back what no commit relies on, after a call that found the disk full: else a put that failed for want of room
    /// would leave none to those that need little. True: nothing is left of it. Once the latch has fallen nothing is removed.
    pub fn give_back(self, disk: &dyn Disk) -> bool {
        if !self.health.is_writable() {
            return false;
        }
        if self.committed == 0 {
            drop(self.file);
            return destroy(disk, &self.name).is_ok();
        }
        // If this fails, the next open cuts it there.
        let _ = self.file.set_len(self.committed);
        false
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
