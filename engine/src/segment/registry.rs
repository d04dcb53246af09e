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
    sync::{Arc, Mutex, RwLock},
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
}

impl SegmentFile {
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
        let file = Arc::new(SegmentFile { file, name: name(id), salt: FrameSalt::new(self.uuid, epoch) });
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
