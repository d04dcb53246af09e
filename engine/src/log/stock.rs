//! Making of prepared segments and of the reserve, step by step, so that no group waits for more than one of them.
//!
//! It writes files that no commit rests on yet. What the superblock names, and when, is the business of those who take the files.

use crate::{
    canary::{self, Canary},
    disk::{self, Disk, File, Name, OpenOptions, SyncKind},
    error::{Error, Kind, Result},
    ids::FileId,
    limits::{BLOCK, RESERVES_MAX},
    segment::{self, writer},
    superblock::Root,
    sync::Arc,
};

/// Steps in which zeros are written, or had from the filesystem. Shorter ones cost more calls a byte, longer ones whoever steps.
const ZERO_STEP: u64 = 128 << 10;
/// Steps in which the reserve gives blocks back.
const SHRINK_STEP: u64 = 1 << 20;
/// Past the page cache: zeros that go through it cost memory, and the next sync of the log would wait for them.
const MADE: OpenOptions = OpenOptions { direct: true, ..OpenOptions::CREATE };
const OPENED: OpenOptions = OpenOptions { direct: true, ..OpenOptions::WRITE };

/// How far the next segment should be by now.
#[derive(Clone, Copy)]
pub(super) struct Goal {
    /// Its length; zero: none is needed.
    pub(super) len: u64,
    /// This share of the newest segment...
    pub(super) used: u64,
    /// ... is used.
    pub(super) room: u64,
}

impl Goal {
    /// Zeros that should stand. The next segment is whole when three quarters of the newest are used, so that there is time for
    /// its syncs; between two groups as many zeros are written as the first of them took of the room, in proportion.
    fn zeros(self, len: u64) -> u64 {
        let share = u128::from(len) * u128::from(self.used) * 4 / (u128::from(self.room.max(1)) * 3);
        u64::try_from(share).unwrap_or(len).next_multiple_of(BLOCK).min(len)
    }
}

/// What a file on its way still needs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Zeros,
    Sync,
    Name,
    Nothing,
}

/// A segment on its way to being prepared, or there.
pub(super) struct Making {
    pub(super) id: FileId,
    pub(super) file: Box<dyn File>,
    pub(super) len: u64,
    name: Name,
    zeros: u64,
    missing: Missing,
    /// An earlier process prepared it. Its zeros may be only in the page cache: they are written again before the log enters it.
    named: bool,
}

impl Making {
    fn begin(disk: &dyn Disk, root: &Root, len: u64) -> Result<Self> {
        let id = root.allocate_file()?;
        let name = segment::name(id);
        let file = disk::retry(|| disk.open(&name, MADE)).map_err(|e| Error::io(e, &name, "make a segment"))?;
        Ok(Self { id, file, len, name, zeros: 0, missing: Missing::Zeros, named: false })
    }

    /// One step; false if there is none to take yet.
    fn advance(&mut self, disk: &dyn Disk, zeros: u64) -> Result<bool> {
        match self.missing {
            Missing::Zeros if zeros < self.len && zeros < self.zeros + ZERO_STEP => return Ok(false),
            Missing::Zeros => {
                grow(&*self.file, &self.name, self.zeros, zeros)?;
                self.zeros = zeros;
                if zeros == self.len {
                    self.missing = Missing::Sync;
                }
            }
            Missing::Sync => {
                writer::sync(&*self.file, &self.name)?;
                self.missing = if self.named { Missing::Nothing } else { Missing::Name };
            }
            Missing::Name => {
                writer::sync_dir(disk)?;
                self.missing = Missing::Nothing;
            }
            Missing::Nothing => return Ok(false),
        }
        Ok(true)
    }

    /// All steps that are left.
    fn finish(&mut self, disk: &dyn Disk) -> Result<()> {
        while self.advance(disk, self.len)? {}
        Ok(())
    }
}

/// Writes zeros at the end of a file. Where they went through the page cache they are synced at once: a sync at the end would be of
/// all of them.
fn grow(file: &dyn File, name: &Name, from: u64, to: u64) -> Result<()> {
    disk::retry(|| file.zero(from, to.saturating_sub(from))).map_err(|e| Error::io(e, name, "write zeros"))?;
    if file.align() > 1 { Ok(()) } else { writer::sync(file, name) }
}

/// Blocks that are kept back.
struct Reserve {
    id: FileId,
    file: Box<dyn File>,
    name: Name,
    /// So far from its start it is known to read as zeros: a length may have outlived a crash that its zeros did not.
    zeros: u64,
    synced: bool,
}

impl Reserve {
    fn new(id: FileId, file: Box<dyn File>) -> Self {
        Self { id, file, name: segment::reserve_name(id), zeros: 0, synced: false }
    }

    fn len(&self) -> Result<u64> {
        disk::retry(|| self.file.len()).map_err(|e| Error::io(e, &self.name, "read a length"))
    }

    /// One step of blocks and zeros up to `target`, or the sync behind the last of them; false if nothing is missing.
    fn advance(&mut self, disk: &dyn Disk, target: u64) -> Result<bool> {
        let len = self.len()?;
        let target = target.max(len.next_multiple_of(BLOCK));
        if self.zeros >= target {
            return self.sync();
        }
        if len < target {
            room_for(disk, target - len)?;
        }
        let from = self.zeros / BLOCK * BLOCK;
        let to = target.min(from + ZERO_STEP);
        self.synced = false;
        let taken = disk::retry(|| self.file.allocate(from, to - from));
        if let Err(error) = taken.map_err(|e| Error::io(e, &self.name, "set blocks aside")) {
            // What was taken of the step is given back: a reserve that fills the disk would be the first to starve it.
            let _ = self.file.set_len(len);
            return Err(error);
        }
        self.zeros = to;
        if self.file.align() == 1 {
            writer::sync(&*self.file, &self.name)?;
        }
        Ok(true)
    }

    /// False if nothing was to be synced.
    fn sync(&mut self) -> Result<bool> {
        if self.synced {
            return Ok(false);
        }
        writer::sync(&*self.file, &self.name)?;
        self.synced = true;
        Ok(true)
    }

    /// Gives a step of blocks back; false if there are none.
    fn shrink(&mut self) -> Result<bool> {
        let len = self.len()?;
        if len == 0 {
            return Ok(false);
        }
        let left = len.saturating_sub(SHRINK_STEP);
        let io = |e| Error::io(e, &self.name, "shrink the reserve");
        disk::retry(|| self.file.set_len(left)).map_err(io)?;
        disk::retry(|| self.file.sync(SyncKind::All)).map_err(io)?;
        self.zeros = self.zeros.min(left);
        Ok(true)
    }
}

/// What is being made, and the reserve.
pub(super) struct Stock {
    disk: Arc<dyn Disk>,
    root: Arc<Root>,
    making: Option<Making>,
    reserves: Vec<Reserve>,
    reserve_target: u64,
    /// The reserves are as they should be.
    reserve_is_full: bool,
}

impl Stock {
    pub(super) const fn new(disk: Arc<dyn Disk>, root: Arc<Root>, reserve_target: u64) -> Self {
        let reserve_target = reserve_target.next_multiple_of(BLOCK);
        Self { disk, root, making: None, reserves: Vec::new(), reserve_target, reserve_is_full: reserve_target == 0 }
    }

    /// Takes a prepared segment of the superblock over, to be zeroed again; false if it is missing, or not one to go on with.
    pub(super) fn renew(&mut self, id: FileId) -> Result<bool> {
        let name = segment::name(id);
        let io = |e| Error::io(e, &name, "open a spare file");
        let file = match disk::retry(|| self.disk.open(&name, OPENED)) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            opened => opened.map_err(io)?,
        };
        let len = disk::retry(|| file.len()).map_err(io)?;
        if self.making.is_some() || len == 0 || !len.is_multiple_of(BLOCK) {
            return Ok(false);
        }
        let missing = if canary::sings(Canary::PreparedNotZeroed) { Missing::Nothing } else { Missing::Zeros };
        self.making = Some(Making { id, file, len, name, zeros: 0, missing, named: true });
        Ok(true)
    }

    /// True while a segment is on its way.
    pub(super) const fn is_making(&self) -> bool {
        self.making.is_some()
    }

    /// Lets go of a segment that was taken over: somebody else goes on with it.
    pub(super) fn forget(&mut self, id: FileId) {
        self.making.take_if(|making| making.id == id);
    }

    /// Opens a reserve of the superblock; false if it is missing. One of a store that was closed holds zeros.
    pub(super) fn open_reserve(&mut self, id: FileId, closed: bool) -> Result<bool> {
        let name = segment::reserve_name(id);
        let mut reserve = match disk::retry(|| self.disk.open(&name, OPENED)) {
            Ok(file) => Reserve::new(id, file),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            Err(e) => return Err(Error::io(e, &name, "open a spare file")),
        };
        if closed {
            (reserve.zeros, reserve.synced) = (reserve.len()?, true);
        }
        self.reserve_is_full &= closed;
        self.reserves.push(reserve);
        Ok(true)
    }

    pub(super) fn reserves(&self) -> impl Iterator<Item = FileId> {
        self.reserves.iter().map(|reserve| reserve.id)
    }

    pub(super) const fn lacks_reserve(&self) -> bool {
        !self.reserve_is_full
    }

    /// One step towards the goal, or else of the reserve: some zeros, or one sync. False if there is none to take, or no room for it.
    pub(super) fn advance(&mut self, goal: Goal) -> Result<bool> {
        let stepped = if goal.len > 0 { self.advance_segment(goal) } else { Ok(false) };
        match stepped {
            Ok(false) => self.advance_reserve(),
            Ok(true) => Ok(true),
            Err(error) => {
                self.give_up();
                if error.kind() == Kind::NoSpace { Ok(false) } else { Err(error) }
            }
        }
    }

    fn advance_segment(&mut self, goal: Goal) -> Result<bool> {
        let Self { disk, root, making, .. } = self;
        if let Some(making) = making {
            return making.advance(&**disk, goal.zeros(making.len));
        }
        let len = goal.len.next_multiple_of(BLOCK);
        if goal.zeros(len) < ZERO_STEP.min(len) {
            return Ok(false);
        }
        room_for(&**disk, len)?;
        making.insert(Making::begin(&**disk, root, len)?).advance(&**disk, goal.zeros(len))
    }

    /// A file that cannot be finished would only take room. Its id is burnt; if this fails too, the next open destroys it. One that the
    /// superblock names stays.
    pub(super) fn give_up(&mut self) {
        if let Some(Making { file, name, .. }) = self.making.take_if(|making| !making.named) {
            drop(file);
            let _ = writer::destroy(&*self.disk, &name);
        }
    }

    /// The segment that is ready.
    pub(super) fn take_ready(&mut self) -> Option<Making> {
        self.making.take_if(|making| making.missing == Missing::Nothing)
    }

    /// The segment that is on its way, finished now because the log needs it; `None` if none is, or too short a one.
    pub(super) fn finish(&mut self, needed: u64, privileged: bool) -> Option<Result<Making>> {
        let mut making = self.making.take_if(|making| making.len >= needed)?;
        loop {
            let Err(error) = making.finish(&*self.disk) else { return Some(Ok(making)) };
            let shrunk = match error.kind() {
                Kind::NoSpace if privileged => self.shrink_reserve(),
                _ => Ok(false),
            };
            if !shrunk.as_ref().is_ok_and(|shrunk| *shrunk) {
                self.making = Some(making);
                self.give_up();
                return Some(Err(shrunk.err().unwrap_or(error)));
            }
        }
    }

    /// A segment made in one go. On a full disk privileged work gets the smallest that does, from the reserve, which is for many such
    /// works.
    pub(super) fn make(&mut self, needed: u64, wanted: u64, privileged: bool) -> Result<Making> {
        let mut made = self.make_at_once(wanted.max(needed));
        while made.as_ref().is_err_and(|e| e.kind() == Kind::NoSpace) && privileged {
            made = self.make_at_once(needed);
            if made.as_ref().is_err_and(|e| e.kind() == Kind::NoSpace) && !self.shrink_reserve()? {
                break;
            }
        }
        made
    }

    fn make_at_once(&mut self, len: u64) -> Result<Making> {
        let len = len.next_multiple_of(BLOCK);
        room_for(&*self.disk, len)?;
        let mut making = Making::begin(&*self.disk, &self.root, len)?;
        let Err(error) = making.finish(&*self.disk) else { return Ok(making) };
        drop(making.file);
        let _ = writer::destroy(&*self.disk, &making.name);
        Err(error)
    }

    /// Gives a step of the reserve back to the disk; false when there is none left.
    pub(super) fn shrink_reserve(&mut self) -> Result<bool> {
        for reserve in &mut self.reserves {
            if reserve.shrink()? {
                self.reserve_is_full = false;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// One step of the reserve towards its target; a full disk ends that quietly.
    fn advance_reserve(&mut self) -> Result<bool> {
        if self.reserve_is_full {
            return Ok(false);
        }
        if self.reserves.is_empty() {
            return self.begin_reserve();
        }
        let mut target = self.reserve_target;
        for reserve in &mut self.reserves {
            match reserve.advance(&*self.disk, std::mem::take(&mut target)) {
                Ok(false) => {}
                Err(e) if e.kind() == Kind::NoSpace => return Ok(false),
                stepped => return stepped,
            }
        }
        self.reserve_is_full = true;
        Ok(false)
    }

    /// Syncs what was taken of the reserves, be it all or not.
    pub(super) fn sync_reserves(&mut self) -> Result<()> {
        self.reserves.iter_mut().try_for_each(|reserve| reserve.sync().map(drop))
    }

    fn begin_reserve(&mut self) -> Result<bool> {
        let id = self.root.allocate_file()?;
        let name = segment::reserve_name(id);
        let file =
            match disk::retry(|| self.disk.open(&name, MADE)).map_err(|e| Error::io(e, &name, "make the reserve")) {
                Ok(file) => file,
                Err(e) if e.kind() == Kind::NoSpace => return Ok(false),
                Err(e) => return Err(e),
            };
        writer::sync_dir(&*self.disk)?;
        self.reserves.push(Reserve::new(id, file));
        debug_assert!(self.reserves.len() <= RESERVES_MAX);
        Ok(true)
    }
}

/// Refuses what the disk has no room for. Without it each commit on a disk that is nearly full would write it full and give the
/// room back, and others would find none meanwhile.
fn room_for(disk: &dyn Disk, len: u64) -> Result<()> {
    match disk::retry(|| disk.free_bytes()) {
        Ok(free) if free < len => Err(Error::new(Kind::NoSpace, "the disk has no room for another segment")),
        _ => Ok(()),
    }
}
