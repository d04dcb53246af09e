//! A disk in memory that remembers every operation, so that each state that a crash could leave can be built from one run.
//!
//! [`SimDisk`] shows the live view: what the process reads while the machine is up. [`OpLog`] says how it came about;
//! [`Crashes`] builds [`Image`]s from it, and [`SimDisk::from_image`] starts the machine again on one. The disk knows nothing of
//! the store's files; it has no clock, and its only chance is the seed that it is given.

use std::{collections::BTreeMap, fmt, io};

use crate::{
    disk::{BLOCK, Disk, File, Listing, Lock, LockGuard, LockMode, Name, OpenOptions},
    sync::{Arc, Mutex},
};

mod crash;
mod file;
mod image;
mod op;
mod pages;
mod random;
#[cfg(test)]
mod tests;

pub use crash::{Budget, CrashPoint, Crashes, Mode, SECTOR};
pub use image::Image;
pub use op::{Op, OpLog};

use file::SimFile;
use pages::Content;
use random::Random;

/// Numbers of the errors that the operating system would give.
mod errno {
    pub(super) const ENOENT: i32 = 2;
    pub(super) const EIO: i32 = 5;
    pub(super) const EBADF: i32 = 9;
    pub(super) const EEXIST: i32 = 17;
    pub(super) const EINVAL: i32 = 22;
    pub(super) const EMFILE: i32 = 24;
    pub(super) const EFBIG: i32 = 27;
    pub(super) const ENOSPC: i32 = 28;
}

fn os_error<T>(errno: i32) -> io::Result<T> {
    Err(io::Error::from_raw_os_error(errno))
}

/// What a failed sync of a file leaves behind. A failed sync of the directory leaves its names pending: the next may succeed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SyncFault {
    /// Readers keep seeing the new bytes, but their pages count as clean: a later sync succeeds and writes none of them, and a
    /// crash loses them.
    EioKeep,
    /// Readers see the durable bytes again.
    EioRevert,
}

/// A disk in memory. Clones are the same disk.
#[derive(Clone)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
}

/// A file as the running machine sees it, and what of it is durable.
#[derive(Default)]
struct Inode {
    live: Content,
    durable: Content,
    /// Once a failed sync has lost something, durable bytes are no longer a copy of the live ones at some time, but follow from
    /// the operations since.
    since_loss: Option<Vec<Op>>,
    named: bool,
    handles: u32,
}

struct State {
    names: BTreeMap<Name, u64>,
    inodes: BTreeMap<u64, Inode>,
    next_ino: u64,
    /// In pages, over all files that have a name or a handle.
    allocated: u64,
    capacity: u64,
    /// Of all files together.
    handles: u32,
    handles_max: u32,
    log: OpLog,
    records: bool,
    random: Random,
    strange: Vec<String>,
    sync_fault: Option<SyncFault>,
    lock: LockState,
}

/// Who holds the directory locked. As on a real disk the lock has nothing to do with the file that says who it is.
#[derive(Default)]
struct LockState {
    exclusive: bool,
    shared: u32,
}

impl SimDisk {
    /// An empty disk.
    pub fn new(seed: u64) -> Self {
        Self::from_image(&Image::new(), seed)
    }

    /// A disk that holds what a crash, or an edit by hand, left. All of it is durable, nothing is locked.
    pub fn from_image(image: &Image, seed: u64) -> Self {
        let mut names = BTreeMap::new();
        let mut inodes = BTreeMap::new();
        for (name, ino, content) in image.entries() {
            let content = (*content).clone();
            names.insert(name.clone(), ino);
            inodes.insert(ino, Inode { live: content.clone(), durable: content, named: true, ..Inode::default() });
        }
        let allocated = inodes.values().map(|inode: &Inode| inode.live.allocated()).sum();
        let state = State {
            names,
            inodes,
            next_ino: image.next_ino(),
            allocated,
            capacity: u64::MAX,
            handles: 0,
            handles_max: u32::MAX,
            log: OpLog::new(image.clone(), Vec::new()),
            records: true,
            random: Random::new(seed),
            strange: Vec::new(),
            sync_fault: None,
            lock: LockState::default(),
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Gives the disk this many bytes. Less than it holds is allowed: what is allocated can still be overwritten.
    pub fn set_capacity(&self, bytes: u64) {
        self.state.lock().capacity = bytes;
    }

    /// Lets this many files be open at a time; one more is refused as a process is that has no descriptors left.
    pub fn set_handles_max(&self, handles: u32) {
        self.state.lock().handles_max = handles;
    }

    /// Bytes allocated, files that are unlinked but open included.
    pub fn allocated(&self) -> u64 {
        self.state.lock().allocated * BLOCK
    }

    /// Names that are not [`Name`]s, for the next listings.
    pub fn set_strange(&self, names: Vec<String>) {
        self.state.lock().strange = names;
    }

    /// Lets the next sync of a file fail with EIO; `None` takes it back. The next sync of the directory fails too, if it is first.
    pub fn fail_sync(&self, fault: Option<SyncFault>) {
        self.state.lock().sync_fault = fault;
    }

    /// Stops the log, or goes on with it. What happens in between is missing in it, so that only a disk whose crashes nobody
    /// wants may stop.
    pub fn record(&self, on: bool) {
        self.state.lock().records = on;
    }

    /// Marks that the workload learnt of a success.
    pub fn ack(&self, id: u64) {
        self.state.lock().record(Op::Ack(id));
    }

    /// The operations so far.
    pub fn log(&self) -> OpLog {
        self.state.lock().log.clone()
    }

    /// How many operations there are so far.
    pub fn op_count(&self) -> usize {
        self.state.lock().log.ops.len()
    }

    /// The live view: what a machine holds that stops in good order.
    pub fn image(&self) -> Image {
        self.state.lock().image(|inode| &inode.live)
    }
}

impl State {
    fn record(&mut self, op: Op) {
        if self.records {
            self.log.ops.push(op);
        }
    }

    /// Records an operation on the bytes of a file.
    fn record_data(&mut self, op: Op) {
        if let Some(ops) = op.data_ino().and_then(|ino| self.inode(ino).since_loss.as_mut()) {
            ops.push(op.clone());
        }
        self.record(op);
    }

    fn inode(&mut self, ino: u64) -> &mut Inode {
        self.inodes.get_mut(&ino).expect("a file lives as long as its name and its handles")
    }

    fn find(&self, name: &Name) -> io::Result<u64> {
        self.names.get(name).copied().map_or_else(|| os_error(errno::ENOENT), Ok)
    }

    /// Pages that can still be allocated.
    fn room(&self) -> u64 {
        (self.capacity / BLOCK).saturating_sub(self.allocated)
    }

    /// Changes the bytes of a file and keeps the count of allocated pages.
    fn change(&mut self, ino: u64, change: impl FnOnce(&mut Content)) {
        let live = &mut self.inode(ino).live;
        let before = live.allocated();
        change(live);
        let after = live.allocated();
        self.allocated = self.allocated - before + after;
    }

    fn create(&mut self, name: &Name) -> u64 {
        let ino = self.next_ino;
        self.next_ino += 1;
        self.inodes.insert(ino, Inode { named: true, ..Inode::default() });
        self.names.insert(name.clone(), ino);
        ino
    }

    fn open(&mut self, ino: u64) {
        self.handles += 1;
        self.inode(ino).handles += 1;
    }

    fn close(&mut self, ino: u64) {
        self.handles -= 1;
        self.inode(ino).handles -= 1;
        self.let_go(ino);
    }

    /// Frees a file that neither a name nor a handle holds.
    fn let_go(&mut self, ino: u64) {
        let inode = self.inode(ino);
        if !inode.named && inode.handles == 0 {
            self.allocated -= inode.live.allocated();
            self.inodes.remove(&ino);
        }
    }

    fn unname(&mut self, ino: u64) {
        self.inode(ino).named = false;
        self.let_go(ino);
    }

    fn image(&self, which: impl Fn(&Inode) -> &Content) -> Image {
        let mut image = Image::new();
        for (name, ino) in &self.names {
            let inode = &self.inodes[ino];
            // The text of the lock belongs to a process that the image knows nothing of.
            let content = if name.as_str() == "LOCK" { Content::default() } else { which(inode).clone() };
            image.insert_entry(name.clone(), *ino, Arc::new(content));
        }
        image
    }
}

impl Disk for SimDisk {
    fn open(&self, name: &Name, options: OpenOptions) -> io::Result<Box<dyn File>> {
        let mut state = self.state.lock();
        if state.handles >= state.handles_max {
            return os_error(errno::EMFILE);
        }
        let ino = match (state.names.get(name).copied(), options.create_new) {
            (Some(_), true) => return os_error(errno::EEXIST),
            (Some(ino), false) => ino,
            (None, false) => return os_error(errno::ENOENT),
            (None, true) => {
                let ino = state.create(name);
                state.record(Op::Create { ino, name: name.clone() });
                ino
            }
        };
        state.open(ino);
        drop(state);
        let write = options.write || options.create_new;
        Ok(Box::new(SimFile { state: Arc::clone(&self.state), ino, write, direct: options.direct }))
    }

    fn rename(&self, from: &Name, to: &Name) -> io::Result<()> {
        let mut state = self.state.lock();
        let ino = state.find(from)?;
        if from == to {
            return Ok(());
        }
        state.names.remove(from);
        let replaced = state.names.insert(to.clone(), ino);
        state.record(Op::Rename { ino, from: from.clone(), to: to.clone() });
        if let Some(replaced) = replaced {
            state.unname(replaced);
        }
        Ok(())
    }

    fn unlink(&self, name: &Name) -> io::Result<()> {
        let mut state = self.state.lock();
        let ino = state.find(name)?;
        state.names.remove(name);
        state.record(Op::Unlink { ino, name: name.clone() });
        state.unname(ino);
        Ok(())
    }

    fn list(&self) -> io::Result<Listing> {
        let mut state = self.state.lock();
        let mut names: Vec<Name> = state.names.keys().cloned().collect();
        // No code may rely on an order that no filesystem promises.
        state.random.shuffle(&mut names);
        Ok(Listing { names, strange: state.strange.clone() })
    }

    fn sync_dir(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        if state.sync_fault.take().is_some() {
            return os_error(errno::EIO);
        }
        state.record(Op::SyncDir);
        Ok(())
    }

    fn lock(&self, mode: LockMode, holder: &str) -> io::Result<Lock> {
        let name = Name::new("LOCK").expect("LOCK is a name");
        let mut state = self.state.lock();
        let there = state.names.get(&name).copied();
        let exclusive = mode == LockMode::Exclusive;
        if state.lock.exclusive || (exclusive && state.lock.shared > 0) {
            let text = there.map_or_else(Vec::new, |ino| state.inode(ino).live.to_vec());
            return Ok(Lock::Busy(String::from_utf8_lossy(&text).trim_end().to_owned()));
        }
        let file = if exclusive {
            state.lock.exclusive = true;
            let ino = there.unwrap_or_else(|| state.create(&name));
            state.change(ino, |content| content.set_len(0));
            // As on a real disk the text is not worth a refusal.
            if state.room() > 0 {
                state.change(ino, |content| content.write(0, format!("pid 1: {holder}\n").as_bytes()));
            }
            Some(ino)
        } else {
            state.lock.shared += 1;
            there
        };
        if let Some(ino) = file {
            state.record(Op::Lock { ino, name });
            state.open(ino);
        }
        drop(state);
        Ok(Lock::Held(Box::new(SimLock { state: Arc::clone(&self.state), file, exclusive })))
    }

    fn free_bytes(&self) -> io::Result<u64> {
        Ok(self.state.lock().room().saturating_mul(BLOCK))
    }
}

/// Holds the lock.
struct SimLock {
    state: Arc<Mutex<State>>,
    /// The open `LOCK`, where there is one.
    file: Option<u64>,
    exclusive: bool,
}

impl LockGuard for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        if self.exclusive {
            state.lock.exclusive = false;
        } else {
            state.lock.shared -= 1;
        }
        if let Some(ino) = self.file {
            if self.exclusive {
                state.change(ino, |content| content.set_len(0));
            }
            state.close(ino);
        }
    }
}

impl fmt::Debug for SimDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        write!(f, "SimDisk({} files, {} operations)", state.names.len(), state.log.ops.len())
    }
}
