//! A disk in front of a disk that counts each call, remembers it, and lets one of them go wrong.
//!
//! A driver runs its work once to learn how many calls it makes, and then once for each of them with a fault there. The disk knows
//! nothing of what the calls mean to the store; what a failed sync does to bytes is the disk's business behind it, see
//! [`Fault::Hook`].

use std::{fmt, io};

use crate::{
    disk::{BLOCK, Disk, File, Listing, Lock, LockMode, Mapped, Name, OpenOptions, SyncKind},
    sync::{Arc, Mutex},
};

/// Kinds of calls.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Class {
    /// `read_at`, `map`.
    Read,
    /// `write_at`, `set_len`, `punch`, `zero`, `allocate`.
    Write,
    /// `sync`, `sync_dir`.
    Sync,
    /// `open`, `rename`, `unlink`, `list`, `lock`, `free_bytes`, `len`, `allocated`.
    Meta,
}

/// What goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The call fails with this number and does nothing, but for `zero` and `allocate`, which have done their first half.
    Errno(i32),
    /// A read or write does half of what it was asked.
    ShortHalf,
    /// A read or write does one byte, or one block of a direct file.
    ShortOne,
    /// A read or write does nothing and says so: the end of the file, or a medium that takes no more.
    Zero,
    /// The hook is called, and then the disk behind: the hook has told it how to fail.
    Hook,
}

/// Which call goes wrong, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    at: u64,
    fault: Fault,
    sticky: bool,
    class: Option<Class>,
    prefix: String,
}

impl Plan {
    /// This fault at the call of this number, from 0 on, counted from the moment when the plan is armed.
    pub fn new(at: u64, fault: Fault) -> Self {
        Self { at, fault, sticky: false, class: None, prefix: String::new() }
    }

    /// Every later call of the same class goes wrong too, until the plan is taken back.
    #[must_use]
    pub fn sticky(mut self) -> Self {
        self.sticky = true;
        self
    }

    /// Counts and hits only calls of this class.
    #[must_use]
    pub fn class(mut self, class: Class) -> Self {
        self.class = Some(class);
        self
    }

    /// Counts and hits only calls on files whose name starts so.
    #[must_use]
    pub fn files(mut self, prefix: &str) -> Self {
        prefix.clone_into(&mut self.prefix);
        self
    }

    fn concerns(&self, call: &Call) -> bool {
        let name = call.name.as_ref().map_or("", Name::as_str);
        self.class.is_none_or(|class| class == call.class) && name.starts_with(&self.prefix)
    }
}

/// One call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Call {
    /// Its class.
    pub class: Class,
    /// Name of the method.
    pub method: &'static str,
    /// The file, by the name under which it was opened; none for calls on the directory.
    pub name: Option<Name>,
    /// Offset, or new length.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
    /// What went wrong with it.
    pub fault: Option<Fault>,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.method)?;
        if let Some(name) = &self.name {
            write!(f, " {name}")?;
        }
        if (self.offset, self.len) != (0, 0) {
            write!(f, " {}+{}", self.offset, self.len)?;
        }
        self.fault.map_or(Ok(()), |fault| write!(f, ": {fault:?}"))
    }
}

type Hook = Arc<dyn Fn() + Send + Sync>;

/// Counts calls and spoils one. Clones are the same disk.
#[derive(Clone)]
pub struct FaultDisk {
    inner: Arc<dyn Disk>,
    state: Arc<Mutex<State>>,
}

struct State {
    plan: Option<Plan>,
    /// Calls that concern the plan, since it was armed.
    concerned: u64,
    /// Class of the first call that was hit.
    stuck: Option<Class>,
    hits: u64,
    calls: u64,
    trace: Option<Vec<Call>>,
    hook: Option<Hook>,
}

impl FaultDisk {
    /// A disk that spoils nothing yet.
    pub fn new(inner: Arc<dyn Disk>) -> Self {
        let trace = Some(Vec::new());
        let state = State { plan: None, concerned: 0, stuck: None, hits: 0, calls: 0, trace, hook: None };
        Self { inner, state: Arc::new(Mutex::new(state)) }
    }

    /// Follows this plan from now on, and no other.
    pub fn arm(&self, plan: Plan) {
        let mut state = self.state.lock();
        (state.plan, state.concerned, state.stuck, state.hits) = (Some(plan), 0, None, 0);
    }

    /// Spoils nothing from now on.
    pub fn disarm(&self) {
        self.state.lock().plan = None;
    }

    /// What [`Fault::Hook`] calls: for instance `move || sim.fail_sync(Some(SyncFault::EioKeep))`.
    pub fn set_hook(&self, hook: impl Fn() + Send + Sync + 'static) {
        self.state.lock().hook = Some(Arc::new(hook));
    }

    /// How many calls the last plan has spoilt: 0 says that the work ended before the plan's call.
    pub fn hits(&self) -> u64 {
        self.state.lock().hits
    }

    /// How many calls there were so far.
    pub fn calls(&self) -> u64 {
        self.state.lock().calls
    }

    /// The calls so far, in order.
    pub fn trace(&self) -> Vec<Call> {
        self.state.lock().trace.clone().unwrap_or_default()
    }

    /// Forgets the calls so far, and remembers the next ones or not. Their count goes on.
    pub fn set_tracing(&self, on: bool) {
        self.state.lock().trace = on.then(Vec::new);
    }

    /// Runs a call that succeeds or fails as a whole.
    fn run<T>(&self, call: Call, inner: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        match self.enter(call) {
            Some(Fault::Errno(errno)) => Err(io::Error::from_raw_os_error(errno)),
            _ => inner(),
        }
    }

    /// Counts a call and says what goes wrong with it.
    fn enter(&self, call: Call) -> Option<Fault> {
        let (fault, hook) = self.state.lock().enter(call);
        // Without the lock: the hook may well come back to this disk.
        if let (Some(Fault::Hook), Some(hook)) = (fault, hook) {
            hook();
        }
        fault
    }
}

impl State {
    fn enter(&mut self, mut call: Call) -> (Option<Fault>, Option<Hook>) {
        self.calls += 1;
        call.fault = self.fault_of(&call);
        let fault = call.fault;
        if let Some(trace) = &mut self.trace {
            trace.push(call);
        }
        (fault, self.hook.clone())
    }

    fn fault_of(&mut self, call: &Call) -> Option<Fault> {
        let plan = self.plan.as_ref().filter(|plan| plan.concerns(call))?;
        let index = self.concerned;
        self.concerned += 1;
        let due = index == plan.at || (plan.sticky && self.stuck == Some(call.class));
        let takes_part = matches!(call.method, "read_at" | "write_at") && call.len > 0;
        let whole = matches!(plan.fault, Fault::Errno(_) | Fault::Hook);
        if !due || !(whole || takes_part) {
            return None;
        }
        self.stuck = self.stuck.or(Some(call.class));
        self.hits += 1;
        Some(plan.fault)
    }
}

fn call(class: Class, method: &'static str, name: Option<&Name>) -> Call {
    Call { class, method, name: name.cloned(), offset: 0, len: 0, fault: None }
}

impl Disk for FaultDisk {
    fn open(&self, name: &Name, options: OpenOptions) -> io::Result<Box<dyn File>> {
        let inner = self.run(call(Class::Meta, "open", Some(name)), || self.inner.open(name, options))?;
        Ok(Box::new(FaultFile { inner, disk: self.clone(), name: name.clone() }))
    }

    fn rename(&self, from: &Name, to: &Name) -> io::Result<()> {
        self.run(call(Class::Meta, "rename", Some(from)), || self.inner.rename(from, to))
    }

    fn unlink(&self, name: &Name) -> io::Result<()> {
        self.run(call(Class::Meta, "unlink", Some(name)), || self.inner.unlink(name))
    }

    fn list(&self) -> io::Result<Listing> {
        self.run(call(Class::Meta, "list", None), || self.inner.list())
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.run(call(Class::Sync, "sync_dir", None), || self.inner.sync_dir())
    }

    fn lock(&self, mode: LockMode, holder: &str) -> io::Result<Lock> {
        self.run(call(Class::Meta, "lock", None), || self.inner.lock(mode, holder))
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.run(call(Class::Meta, "free_bytes", None), || self.inner.free_bytes())
    }
}

impl fmt::Debug for FaultDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FaultDisk({} calls)", self.calls())
    }
}

/// An open file whose calls are counted.
struct FaultFile {
    inner: Box<dyn File>,
    disk: FaultDisk,
    name: Name,
}

impl FaultFile {
    fn call(&self, class: Class, method: &'static str, offset: u64, len: u64) -> Call {
        Call { offset, len, ..call(class, method, Some(&self.name)) }
    }

    /// Says how many of `len` bytes a read or write does.
    fn part(&self, call: Call, len: usize) -> io::Result<usize> {
        let unit = usize::try_from(self.inner.align()).expect("a small number");
        let short = |wanted: usize| (wanted / unit * unit).max(unit).min(len);
        match self.disk.enter(call) {
            None | Some(Fault::Hook) => Ok(len),
            Some(Fault::Errno(errno)) => Err(io::Error::from_raw_os_error(errno)),
            Some(Fault::ShortHalf) => Ok(short(len / 2)),
            Some(Fault::ShortOne) => Ok(short(1)),
            Some(Fault::Zero) => Ok(0),
        }
    }
}

impl FaultFile {
    /// A call that is many writes: one that fails has done its first half, so that a caller does not take it for "nothing was done".
    fn in_halves(
        &self,
        name: &'static str,
        offset: u64,
        len: u64,
        call: impl Fn(u64) -> io::Result<()>,
    ) -> io::Result<()> {
        if let Some(Fault::Errno(errno)) = self.disk.enter(self.call(Class::Write, name, offset, len)) {
            call(len / 2 / BLOCK * BLOCK)?;
            return Err(io::Error::from_raw_os_error(errno));
        }
        call(len)
    }
}

impl File for FaultFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        match self.part(self.call(Class::Read, "read_at", offset, bytes.len() as u64), bytes.len())? {
            0 => Ok(0),
            len => self.inner.read_at(&mut bytes[..len], offset),
        }
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        match self.part(self.call(Class::Write, "write_at", offset, bytes.len() as u64), bytes.len())? {
            0 => Ok(0),
            len => self.inner.write_at(&bytes[..len], offset),
        }
    }

    fn len(&self) -> io::Result<u64> {
        self.disk.run(self.call(Class::Meta, "len", 0, 0), || self.inner.len())
    }

    fn allocated(&self) -> io::Result<u64> {
        self.disk.run(self.call(Class::Meta, "allocated", 0, 0), || self.inner.allocated())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.disk.run(self.call(Class::Write, "set_len", len, 0), || self.inner.set_len(len))
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        self.disk.run(self.call(Class::Write, "punch", offset, len), || self.inner.punch(offset, len))
    }

    fn zero(&self, offset: u64, len: u64) -> io::Result<()> {
        self.in_halves("zero", offset, len, |len| self.inner.zero(offset, len))
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        self.in_halves("allocate", offset, len, |len| self.inner.allocate(offset, len))
    }

    fn sync(&self, kind: SyncKind) -> io::Result<()> {
        self.disk.run(self.call(Class::Sync, "sync", 0, 0), || self.inner.sync(kind))
    }

    fn map(&self, offset: u64, len: usize) -> io::Result<Mapped> {
        self.disk.run(self.call(Class::Read, "map", offset, len as u64), || self.inner.map(offset, len))
    }

    fn align(&self) -> u32 {
        self.inner.align()
    }

    fn drop_cache(&self, offset: u64, len: u64) {
        self.inner.drop_cache(offset, len);
    }
}

#[cfg(test)]
mod tests;
