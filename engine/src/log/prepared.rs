//! Files kept ready: prepared log segments, and the reserve whose blocks make room when the disk is full.
//!
//! They are made in steps, behind the answers of the groups and beside the next one: see `stock`.

use super::stock::{Goal, Stock};
use crate::{
    canary::{self, Canary},
    disk::{self, Disk, File, OpenOptions},
    error::{Error, Kind, Result},
    health::Health,
    ids::FileId,
    limits::{BLOCK, FRAMES_START, PREPARED_MAX},
    segment::{self, Segments, writer},
    superblock::Root,
    sync::{Arc, Mutex},
};

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
    prepared: Vec<Prepared>,
    /// The segment of an earlier process that is zeroed again, step by step.
    renewed: Option<FileId>,
    /// Reserves, as the superblock should name them.
    reserve_ids: Vec<FileId>,
    stock: Arc<Mutex<Stock>>,
    /// The superblock names other files than these.
    unnamed: bool,
}

/// How far the next files should be by now.
pub struct Readiness {
    stock: Arc<Mutex<Stock>>,
    goal: Goal,
}

impl Readiness {
    /// Takes one step towards it, unless another thread does. Nothing that a group waits for.
    pub fn advance(self, health: &Health) -> Result<()> {
        let Some(mut stock) = self.stock.try_lock() else { return Ok(()) };
        health.check()?;
        stock.advance(self.goal).map(drop).map_err(|e| health.notice(e))
    }
}

impl Spare {
    /// Takes over what the superblock names, but for segments that the log has entered since. A file that is missing is left out: it is
    /// not needed to go on.
    pub fn open(disk: Arc<dyn Disk>, root: &Arc<Root>, segments: &Segments, reserve_target: u64) -> Result<Self> {
        let superblock = root.current();
        let stock = Stock::new(Arc::clone(&disk), Arc::clone(root), reserve_target);
        let (prepared, reserve_ids) = (Vec::new(), Vec::new());
        let stock = Arc::new(Mutex::new(stock));
        let mut spare = Self { disk, prepared, renewed: None, reserve_ids, stock, unnamed: false };
        for id in superblock.prepared.into_iter().filter(|id| segments.epoch(*id).is_none()) {
            if spare.stock.lock().renew(id)? {
                spare.renewed = Some(id);
            } else if let Some((file, len)) = spare.open_file(&segment::name(id))? {
                spare.prepared.push(Prepared { id, file, len, fresh: false });
            }
        }
        for id in superblock.reserves {
            if spare.stock.lock().open_reserve(id, superblock.clean.is_some())? {
                spare.reserve_ids.push(id);
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
        self.prepared.iter().map(|p| p.id).chain(self.renewed).collect()
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
            let file = self.for_frames(prepared.id)?;
            let Prepared { id, len, .. } = self.prepared.remove(at);
            return Ok((id, file, len));
        }
        let mut stock = self.stock.lock();
        let made = match stock.finish(needed, privileged) {
            Some(made) => made?,
            None => stock.make(needed, wanted, privileged)?,
        };
        drop(stock);
        self.renewed.take_if(|id| *id == made.id);
        Ok((made.id, self.for_frames(made.id)?, made.len))
    }

    /// The file of a segment that the log is about to enter. It was zeroed past the page cache; groups go through it.
    fn for_frames(&self, id: FileId) -> Result<Box<dyn File>> {
        let name = segment::name(id);
        let (file, _) = self.open_file(&name)?.ok_or_else(|| Error::corrupt(&name, 0, "a prepared segment is gone"))?;
        Ok(file)
    }

    /// The prepared segment of this id, zeroed again, for a seal that already names it.
    pub fn take_named(&mut self, id: FileId) -> Result<(Box<dyn File>, u64)> {
        let name = segment::name(id);
        if self.renewed.take_if(|renewed| *renewed == id).is_some() {
            self.stock.lock().forget(id);
        }
        let at = self.prepared.iter().position(|p| p.id == id);
        let (file, len) = match at.map(|at| self.prepared.remove(at)) {
            Some(prepared) => (prepared.file, prepared.len),
            None => self
                .open_file(&name)?
                .ok_or_else(|| Error::corrupt(&name, 0, "a seal names a successor that is missing"))?,
        };
        // As long as it is: on a full disk it was made short, and there is no room for more. A disk that lied about its zeros may have left
        // it shorter than any.
        let len = len.next_multiple_of(BLOCK).max(FRAMES_START + BLOCK);
        self.with_reserve(true, || writer::zero_and_sync(&*file, &name, 0, len))?;
        Ok((file, len))
    }

    /// Runs a step again after each megabyte that the reserve gives back, while it fails for want of space.
    fn with_reserve(&self, privileged: bool, step: impl Fn() -> Result<()>) -> Result<()> {
        loop {
            match step() {
                Err(e) if e.kind() == Kind::NoSpace && privileged && self.stock.lock().shrink_reserve()? => {}
                result => return result,
            }
        }
    }

    /// True if one more segment may be kept ready.
    pub fn has_place(&self) -> bool {
        let on_its_way = self.stock.try_lock().is_none_or(|stock| stock.is_making());
        self.prepared.len() + usize::from(on_its_way) < PREPARED_MAX
    }

    /// Takes over a segment whose zeros and name this process has synced.
    pub fn adopt(&mut self, id: FileId, file: Box<dyn File>, len: u64) {
        self.prepared.push(Prepared { id, file, len, fresh: true });
        debug_assert!(self.prepared.len() <= PREPARED_MAX);
        self.unnamed = true;
    }

    /// Takes over what became ready. Another thread may be making it right now: then it is not ready.
    pub fn collect(&mut self) {
        let Some(mut stock) = self.stock.try_lock() else { return };
        // A step may come late, when others have made what was missing, and begin one more than there is a place for.
        if self.prepared.len() < PREPARED_MAX
            && let Some(made) = stock.take_ready()
        {
            self.unnamed |= self.renewed.take_if(|id| *id == made.id).is_none();
            self.prepared.push(Prepared { id: made.id, file: made.file, len: made.len, fresh: true });
        }
        debug_assert!(self.prepared.len() <= PREPARED_MAX);
        if stock.reserves().ne(self.reserve_ids.iter().copied()) {
            self.reserve_ids = stock.reserves().collect();
            self.unnamed = true;
        }
    }

    /// True if the superblock should name other files than it does, as far as is known.
    pub const fn is_unnamed(&self) -> bool {
        self.unnamed
    }

    /// The superblock names these files.
    pub const fn named(&mut self) {
        self.unnamed = false;
    }

    /// What is missing when this share of the newest segment is used; `None`: nothing.
    pub fn readiness(&self, len: u64, used: u64, room: u64) -> Option<Readiness> {
        let goal = Goal { len: if self.prepared.is_empty() { len } else { 0 }, used, room };
        let lacks = goal.len > 0 || self.stock.try_lock().is_some_and(|stock| stock.lacks_reserve());
        lacks.then(|| Readiness { stock: Arc::clone(&self.stock), goal })
    }

    /// Prepares a segment of `len` if none is ready, finishes one that is on its way all the same, and fills the reserve, as far as the disk
    /// has room, in one go. The superblock may have to name another set of files than before, also when this fails.
    pub fn replenish(&mut self, len: u64) -> Result<()> {
        loop {
            self.collect();
            // One that is zeroed again has its steps as long as the newest segment is not full.
            let none = self.prepared.is_empty() && self.renewed.is_none();
            let mut stock = self.stock.lock();
            if self.prepared.len() >= PREPARED_MAX {
                stock.give_up();
            }
            let begun = stock.is_making() && self.renewed.is_none();
            let goal = Goal { len: if none || begun { len } else { 0 }, used: 1, room: 1 };
            let stepped = stock.advance(goal)?;
            drop(stock);
            if !stepped {
                self.collect();
                return self.stock.lock().sync_reserves();
            }
        }
    }

    /// Ids of the reserves, as the superblock should name them.
    pub fn reserve_ids(&self) -> Vec<FileId> {
        self.reserve_ids.clone()
    }
}
