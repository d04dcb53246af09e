//! The segments of the open store: their epochs, and their files, of which a bounded number is open.

use std::collections::BTreeMap;

use super::{name, reader};
use crate::{
    disk::{Disk, File, Name, OpenOptions},
    error::{Error, Kind, Result},
    format::{frame::FrameSalt, value::ChunkValue},
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

/// The known segments.
pub struct Segments {
    disk: Arc<dyn Disk>,
    uuid: StoreUuid,
    epochs: RwLock<BTreeMap<FileId, Epoch>>,
    open: Mutex<Open>,
}

/// Files by segment with the tick of their last use.
#[derive(Default)]
struct Open {
    files: BTreeMap<FileId, (Arc<SegmentFile>, u64)>,
    tick: u64,
}

impl Segments {
    /// Knows none yet.
    pub fn new(disk: Arc<dyn Disk>, uuid: StoreUuid) -> Self {
        Self { disk, uuid, epochs: RwLock::default(), open: Mutex::default() }
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
        let mut open = self.open.lock();
        open.tick += 1;
        let tick = open.tick;
        if let Some((file, used)) = open.files.get_mut(&id) {
            *used = tick;
            return Ok(Arc::clone(file));
        }
        let epoch = self.epoch(id).ok_or_else(|| {
            Error::new(Kind::Corrupt, "a chunk lies in a segment that the store does not have").at(name(id), 0)
        })?;
        let file = super::open(&*self.disk, id, OpenOptions::READ)?;
        let file = Arc::new(SegmentFile { file, name: name(id), salt: FrameSalt::new(self.uuid, epoch) });
        if open.files.len() >= OPEN_MAX
            && let Some(oldest) = open.files.iter().min_by_key(|(_, (_, used))| *used).map(|(id, _)| *id)
        {
            open.files.remove(&oldest);
        }
        open.files.insert(id, (Arc::clone(&file), tick));
        Ok(file)
    }

    /// The decoded bytes of a chunk or page, from one read; its checksum is good, its digest is the caller's to check.
    pub fn read(&self, chunk: &ChunkValue) -> Result<Vec<u8>> {
        let Location { segment, offset } = chunk.location;
        let segment = self.file(segment)?;
        let frame = reader::read_known(&*segment.file, &segment.name, &segment.salt, offset, chunk.stored)?;
        if frame.header.kind != chunk.kind || frame.header.raw != chunk.raw || frame.header.codec != chunk.codec {
            return Err(Error::corrupt(&segment.name, offset, "another frame than the catalog names"));
        }
        frame.into_raw().ok_or_else(|| Error::corrupt(&segment.name, offset, "a payload that does not decode"))
    }
}
