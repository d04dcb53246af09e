//! Files kept ready: prepared log segments, and the reserve whose blocks make room when the disk is full.

use crate::{
    canary::{self, Canary},
    disk::{self, Disk, File, OpenOptions},
    error::{Error, Kind, Result},
    ids::FileId,
    limits::{BLOCK, PREPARED_MAX, RESERVES_MAX},
    segment::{self, Segments, writer},
    superblock::Root,
    sync::Arc,
};

/// Steps in which the reserve gives blocks back.
const STEP: u64 = 1 << 20;

/// A prepared segment.
struct Prepared {
    id: FileId,
    file: Box<dyn File>,
    len: u64,
    /// Its zeros were synced by this process. Those of an earlier one may be only in the page cache.
    fresh: bool,
}

/// Prepared segments and reserves of the open store.
pub struct Spare {
    disk: Arc<dyn Disk>,
    root: Arc<Root>,
    prepared: Vec<Prepared>,
    reserves: Vec<(FileId, Box<dyn File>)>,
    reserve_target: u64,
}

impl Spare {
    /// Takes over what the superblock names, but for segments that the log has entered since. A file that is missing is left out: it is
    /// not needed to go on.
    pub fn open(disk: Arc<dyn Disk>, root: Arc<Root>, segments: &Segments, reserve_target: u64) -> Result<Self> {
        let superblock = root.current();
        let mut spare = Self { disk, root, prepared: Vec::new(), reserves: Vec::new(), reserve_target };
        for id in superblock.prepared.into_iter().filter(|id| segments.epoch(*id).is_none()) {
            if let Some((file, len)) = spare.open_file(&segment::name(id))? {
                spare.prepared.push(Prepared { id, file, len, fresh: false });
            }
        }
        for id in superblock.reserves {
            if let Some((file, _)) = spare.open_file(&segment::reserve_name(id))? {
                spare.reserves.push((id, file));
            }
        }
        Ok(spare)
    }

    fn open_file(&self, name: &disk::Name) -> Result<Option<(Box<dyn File>, u64)>> {
        match disk::retry(|| self.disk.open(name, OpenOptions::WRITE)) {
            Ok(file) => {
                let len = disk::retry(|| file.len()).map_err(|e| Error::io(e, name, "read a length"))?;
                Ok(Some((file, len)))
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Error::io(e, name, "open a spare file")),
        }
    }

    /// Ids of the prepared segments, as the superblock should name them.
    pub fn prepared_ids(&self) -> Vec<FileId> {
        self.prepared.iter().map(|p| p.id).collect()
    }

    /// A segment of zeros, synced by this process, of at least `needed` bytes. When the disk is full, `privileged` work may
    /// take from the reserve.
    pub fn take(&mut self, needed: u64, wanted: u64, privileged: bool) -> Result<(FileId, Box<dyn File>, u64)> {
        if let Some(at) = self.prepared.iter().position(|p| p.len >= needed) {
            let prepared = &self.prepared[at];
            if !prepared.fresh && !canary::sings(Canary::PreparedNotZeroed) {
                let name = segment::name(prepared.id);
                self.with_reserve(privileged, || writer::zero_and_sync(&*prepared.file, &name, 0, prepared.len))?;
            }
            let Prepared { id, file, len, .. } = self.prepared.remove(at);
            return Ok((id, file, len));
        }
        match self.make(wanted.max(needed)) {
            Err(e) if e.kind() == Kind::NoSpace && privileged => loop {
                // The smallest that does: the reserve is for many such works.
                match self.make(needed) {
                    Err(e) if e.kind() == Kind::NoSpace && self.shrink_reserve()? => {}
                    result => break result,
                }
            },
            result => result,
        }
    }

    /// The prepared segment of this id, zeroed again, for a seal that already names it.
    pub fn take_named(&mut self, id: FileId) -> Result<(Box<dyn File>, u64)> {
        let name = segment::name(id);
        let at = self.prepared.iter().position(|p| p.id == id);
        let (file, len) = match at.map(|at| self.prepared.remove(at)) {
            Some(prepared) => (prepared.file, prepared.len),
            None => self
                .open_file(&name)?
                .ok_or_else(|| Error::corrupt(&name, 0, "a seal names a successor that is missing"))?,
        };
        // A disk that lied about its zeros may have left it short.
        let len = len.next_multiple_of(BLOCK).max(self.root.current().options.log_segment_first);
        self.with_reserve(true, || writer::zero_and_sync(&*file, &name, 0, len))?;
        Ok((file, len))
    }

    fn make(&self, len: u64) -> Result<(FileId, Box<dyn File>, u64)> {
        let len = len.next_multiple_of(BLOCK);
        self.room_for(len)?;
        let id = self.root.allocate_file()?;
        Ok((id, writer::prepare(&*self.disk, id, len)?, len))
    }

    /// Refuses what the disk has no room for. Without it each commit on a disk that is nearly full would write it full and give the
    /// room back, and others would find none meanwhile.
    fn room_for(&self, len: u64) -> Result<()> {
        match disk::retry(|| self.disk.free_bytes()) {
            Ok(free) if free < len => Err(Error::new(Kind::NoSpace, "the disk has no room for another segment")),
            _ => Ok(()),
        }
    }

    /// Runs a step again after each megabyte that the reserve gives back, while it fails for want of space.
    fn with_reserve(&self, privileged: bool, step: impl Fn() -> Result<()>) -> Result<()> {
        loop {
            match step() {
                Err(e) if e.kind() == Kind::NoSpace && privileged && self.shrink_reserve()? => {}
                result => return result,
            }
        }
    }

    /// Gives a step of the reserve back to the disk; false when there is none left.
    fn shrink_reserve(&self) -> Result<bool> {
        for (id, file) in &self.reserves {
            let name = segment::reserve_name(*id);
            let len = disk::retry(|| file.len()).map_err(|e| Error::io(e, &name, "read a length"))?;
            if len > 0 {
                let io = |e| Error::io(e, &name, "shrink the reserve");
                disk::retry(|| file.set_len(len.saturating_sub(STEP))).map_err(io)?;
                disk::retry(|| file.sync(disk::SyncKind::All)).map_err(io)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Prepares a segment of `len` if none is ready, and fills the reserve, as far as the disk has room. The
    /// superblock may have to name another set of files than before, also when this fails.
    pub fn replenish(&mut self, len: u64) -> Result<()> {
        if self.prepared.is_empty() {
            let (id, file, len) = match self.make(len) {
                Err(e) if e.kind() == Kind::NoSpace => return Ok(()),
                result => result?,
            };
            self.prepared.push(Prepared { id, file, len, fresh: true });
        }
        debug_assert!(self.prepared.len() <= PREPARED_MAX);
        self.fill_reserve()
    }

    /// Grows the reserve to its target; a full disk ends that quietly.
    fn fill_reserve(&mut self) -> Result<()> {
        if self.reserves.is_empty() && self.reserve_target > 0 {
            let id = self.root.allocate_file()?;
            let name = segment::reserve_name(id);
            let file = match disk::retry(|| self.disk.open(&name, OpenOptions::CREATE)) {
                Ok(file) => file,
                Err(e) if Error::io(std::io::Error::from(e.kind()), &name, "").kind() == Kind::NoSpace => {
                    return Ok(());
                }
                Err(e) => return Err(Error::io(e, &name, "make the reserve")),
            };
            writer::sync_dir(&*self.disk)?;
            self.reserves.push((id, file));
        }
        debug_assert!(self.reserves.len() <= RESERVES_MAX);
        let Some((id, file)) = self.reserves.first() else { return Ok(()) };
        let name = segment::reserve_name(*id);
        let len = disk::retry(|| file.len()).map_err(|e| Error::io(e, &name, "read a length"))?;
        if len < self.reserve_target && self.room_for(self.reserve_target - len).is_ok() {
            match writer::zero_and_sync(&**file, &name, len, self.reserve_target) {
                Err(e) if e.kind() == Kind::NoSpace => {
                    // What was written of the step is given back: a reserve that fills the disk would be the first to starve it.
                    let _ = file.set_len(len);
                }
                result => return result,
            }
        }
        Ok(())
    }

    /// Ids of the reserves, as the superblock should name them.
    pub fn reserve_ids(&self) -> Vec<FileId> {
        self.reserves.iter().map(|(id, _)| *id).collect()
    }
}
