//! The segments of the open store: their epochs, and their files, of which a bounded number is open.

use std::collections::BTreeMap;

use super::{Visits, name, reader};
use crate::{
    disk::{Disk, File, Name, OpenOptions},
    error::{Error, Kind, Result},
    format::{
        frame::{FrameHeader, FrameSalt},
        value::ChunkValue,
    },
    ids::{Epoch, FileId, Location, StoreUuid},
    sync::{Arc, Mutex, OnceLock, RwLock},
};

/// Open files that are kept: well under the usual limit of 1,024 descriptors.
const OPEN_MAX: usize = 128;

/// A segment open for reading.
pub struct SegmentFile {
    /// The file.
    pub file: Box<dyn File>,
    /// Its name.
    pub name: Name,
    /// What its frames are salted with.
    pub salt: FrameSalt,
    /// The same file, opened for long reads past the page cache when the first one comes.
    direct: OnceLock<Option<Box<dyn File>>>,
    /// Which parts a long read began in, a bit each, since the file was opened.
    read: Mutex<Vec<u64>>,
}

/// Length of a part that is remembered as read: a long read is hardly shorter.
const PART: u64 = 1 << 20;

impl SegmentFile {
    /// Notes that a long read begins at an offset. True if one began near it before: what is read a second time may be read a third time,
    /// and belongs into the page cache.
    pub fn is_read_again(&self, offset: u64) -> bool {
        let part = offset / PART;
        let Ok(word) = usize::try_from(part / 64) else { return true };
        let mut read = self.read.lock();
        if read.len() <= word {
            // A segment has 2^40 bytes at most, and a place within it was found before anybody reads there.
            read.resize(word + 1, 0);
        }
        let bit = 1 << (part % 64);
        let before = read[word];
        read[word] |= bit;
        before & bit != 0
    }

    /// Header and payload, as it stands, of a chunk or page whose frame is `bytes`; its checksum is good, its digest is the caller's to
    /// check.
    pub fn frame<'a>(&self, bytes: &'a [u8], chunk: &ChunkValue) -> Result<(FrameHeader, &'a [u8])> {
        let (header, payload) =
            reader::check_known(bytes, &self.name, &self.salt, chunk.location.offset, chunk.stored)?;
        self.is_the_one(&header, chunk)?;
        Ok((header, payload))
    }

    fn is_the_one(&self, header: &FrameHeader, chunk: &ChunkValue) -> Result<()> {
        if header.kind == chunk.kind && header.raw == chunk.raw && header.codec == chunk.codec {
            Ok(())
        } else {
            Err(Error::corrupt(&self.name, chunk.location.offset, "another frame than the catalog names"))
        }
    }
}

/// The known segments.
pub struct Segments {
    disk: Arc<dyn Disk>,
    uuid: StoreUuid,
    epochs: RwLock<BTreeMap<FileId, Epoch>>,
    open: Mutex<Open>,
    visits: Visits,
}

/// Files by segment with the tick of their last use.
#[derive(Default)]
struct Open {
    files: BTreeMap<FileId, (Arc<SegmentFile>, u64)>,
    tick: u64,
}

impl Open {
    fn get(&mut self, id: FileId) -> Option<Arc<SegmentFile>> {
        self.tick += 1;
        let (file, used) = self.files.get_mut(&id)?;
        *used = self.tick;
        Some(Arc::clone(file))
    }

    fn keep(&mut self, id: FileId, file: &Arc<SegmentFile>) {
        if self.files.len() >= OPEN_MAX
            && let Some(oldest) = self.files.iter().min_by_key(|(_, (_, used))| *used).map(|(id, _)| *id)
        {
            self.files.remove(&oldest);
        }
        self.files.insert(id, (Arc::clone(file), self.tick));
    }
}

impl Segments {
    /// Knows none yet.
    pub fn new(disk: Arc<dyn Disk>, uuid: StoreUuid) -> Self {
        Self { disk, uuid, epochs: RwLock::default(), open: Mutex::default(), visits: Visits::default() }
    }

    /// Adds a segment.
    pub fn add(&self, id: FileId, epoch: Epoch) {
        self.epochs.write().insert(id, epoch);
    }

    /// Forgets a segment whose file is gone.
    pub fn remove(&self, id: FileId) {
        self.epochs.write().remove(&id);
        self.open.lock().files.remove(&id);
    }

    /// Who is reading at a place that was looked up.
    pub const fn visits(&self) -> &Visits {
        &self.visits
    }

    /// The known segments.
    pub fn all(&self) -> Vec<(FileId, Epoch)> {
        self.epochs.read().iter().map(|(id, epoch)| (*id, *epoch)).collect()
    }

    /// Epoch of a known segment.
    pub fn epoch(&self, id: FileId) -> Option<Epoch> {
        self.epochs.read().get(&id).copied()
    }

    /// A segment for reading. The least recently used file is closed when there are too many. O(log n), O(n) on eviction.
    pub fn file(&self, id: FileId) -> Result<Arc<SegmentFile>> {
        if let Some(file) = self.open.lock().get(id) {
            return Ok(file);
        }
        let epoch = self.epoch(id).ok_or_else(|| {
            Error::new(Kind::Corrupt, "a chunk lies in a segment that the store does not have").at(name(id), 0)
        })?;
        // Without the lock: a slow disk would hold up the reads of all other segments.
        let file = super::open(&*self.disk, id, OpenOptions::READ)?;
        let salt = FrameSalt::new(self.uuid, epoch);
        let file = SegmentFile { file, name: name(id), salt, direct: OnceLock::new(), read: Mutex::default() };
        let file = Arc::new(file);
        let mut open = self.open.lock();
        if let Some(file) = open.get(id) {
            return Ok(file);
        }
        // A file that is kept would hold the room of a segment that was removed meanwhile.
        if self.epoch(id).is_some() {
            open.keep(id, &file);
        }
        Ok(file)
    }

    /// The same file for long reads past the page cache, if it can be opened.
    pub fn past_cache<'a>(&self, id: FileId, segment: &'a SegmentFile) -> Option<&'a dyn File> {
        segment.direct.get_or_init(|| self.direct(id).ok()).as_deref()
    }

    /// A segment for long reads past the page cache. Nobody keeps it open.
    pub fn direct(&self, id: FileId) -> Result<Box<dyn File>> {
        super::open(&*self.disk, id, OpenOptions { direct: true, ..OpenOptions::READ })
    }

    /// The decoded bytes of a chunk or page, from one read; its checksum is good, its digest is the caller's to check.
    pub fn read(&self, chunk: &ChunkValue) -> Result<Vec<u8>> {
        let Location { segment, offset } = chunk.location;
        let segment = self.file(segment)?;
        let frame = reader::read_known(&*segment.file, &segment.name, &segment.salt, offset, chunk.stored)?;
        segment.is_the_one(&frame.header, chunk)?;
        frame.into_raw().ok_or_else(|| Error::corrupt(&segment.name, offset, "a payload that does not decode"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::sim::SimDisk;

    #[test]
    fn a_long_read_is_a_second_one_where_one_began_in_the_same_part_and_a_closed_file_forgets() {
        let disk = Arc::new(SimDisk::new(1));
        drop(disk.open(&name(FileId(7)), OpenOptions::CREATE).expect("made"));
        let segments = Segments::new(disk, StoreUuid([1; 16]));
        segments.add(FileId(7), Epoch([2; 16]));
        let file = segments.file(FileId(7)).expect("opens");
        for offset in [0, PART, 63 * PART, 64 * PART, (1 << 40) - 1] {
            assert!(!file.is_read_again(offset), "{offset}");
            assert!(file.is_read_again(offset / PART * PART + 5), "{offset}");
        }
        assert!(!file.is_read_again(2 * PART));
        let again = segments.file(FileId(7)).expect("it is open");
        assert!(again.is_read_again(2 * PART));
        assert!(segments.past_cache(FileId(7), &again).is_some());

        segments.remove(FileId(7));
        segments.add(FileId(7), Epoch([2; 16]));
        assert!(!segments.file(FileId(7)).expect("opens").is_read_again(0));
    }
}
