//! What must come of one call that went wrong.

use std::ops::ControlFlow;

use holdfast::{
    AccountScope, Error, Kind, Store,
    disk::{
        fault::{Call, Class, Fault},
        sim::{Budget, Crashes, Image, Mode},
    },
};

use super::script::{Bench, Done, Script, Stage, after_look, step};
use crate::{
    coverage::Coverage,
    harness::{
        Machine, Promise, PutStep, Stored, content::Contents, deeds::Deed, run::request, source::Source,
        workload::ACCOUNTS,
    },
    oracle::{self, Checks, Used, logical},
    random::Random,
};

/// Numbers of the errors.
pub mod errno {
    #![expect(missing_docs, reason = "their names are those of the operating system")]
    pub const EINTR: i32 = 4;
    pub const EIO: i32 = 5;
    pub const EMFILE: i32 = 24;
    pub const EFBIG: i32 = 27;
    pub const ENOSPC: i32 = 28;
    pub const EROFS: i32 = 30;
    pub const EDQUOT: i32 = 122;

    /// There is no room, whoever says so: the disk, the quota, the limit on the size of a file.
    pub const NO_ROOM: [i32; 3] = [ENOSPC, EDQUOT, EFBIG];
}

/// What a call is to the store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Role {
    /// A segment of the log.
    Log,
    /// A file of zeros, for later.
    Spare,
    /// A bulk segment.
    Bulk,
    /// The superblock.
    Root,
    /// A table, or its mirror.
    Table,
    /// A manifest.
    Manifest,
    /// The directory, or the lock.
    Directory,
}

/// What went wrong with which call.
#[derive(Clone, Debug)]
pub struct Hit {
    /// The call.
    pub call: Call,
    /// What it is to the store.
    pub role: Role,
    /// What went wrong.
    pub fault: Fault,
    /// Every later call of its class went wrong too.
    pub sticky: bool,
}

impl Hit {
    fn is_errno(&self, numbers: &[i32]) -> bool {
        matches!(self.fault, Fault::Errno(number) if numbers.contains(&number))
    }

    /// True if bytes of a file that a checkpoint makes did not reach it.
    fn spoils_checkpoint(&self) -> bool {
        matches!(self.role, Role::Table | Role::Manifest)
            && matches!(self.call.class, Class::Write | Class::Sync)
            && !self.is_invisible()
    }

    /// True if nobody may notice.
    fn is_invisible(&self) -> bool {
        self.is_errno(&[errno::EINTR]) || matches!(self.fault, Fault::ShortHalf | Fault::ShortOne)
    }

    /// True if a store that was being written to must write no more.
    fn must_latch(&self) -> bool {
        let rests_on_it = matches!(self.role, Role::Log | Role::Root);
        let no_room = self.is_errno(&errno::NO_ROOM);
        match self.call.class {
            _ if self.is_invisible() || self.sticky => false,
            Class::Sync => rests_on_it || self.role == Role::Bulk,
            Class::Write => rests_on_it || (self.role == Role::Bulk && !no_room),
            Class::Read | Class::Meta => false,
        }
    }

    /// True if the store must go on as if nothing had been.
    fn must_not_latch(&self) -> bool {
        let no_room = self.is_errno(&errno::NO_ROOM);
        let files = self.is_errno(&[errno::EMFILE]);
        // What a checkpoint cannot write burns its id; the log has what was to stand in it.
        let burns =
            matches!(self.role, Role::Table | Role::Manifest) && !self.sticky && !self.is_errno(&[errno::EROFS]);
        let spare = matches!(self.role, Role::Spare | Role::Bulk) && self.call.class != Class::Sync;
        self.is_invisible() || self.call.class == Class::Read || files || burns || (no_room && spare && !self.sticky)
    }

    /// Kinds that the failed operation may answer.
    fn kinds(&self) -> &'static [Kind] {
        match self.fault {
            Fault::Errno(errno::ENOSPC | errno::EDQUOT | errno::EFBIG) => {
                &[Kind::NoSpace, Kind::OutcomeUnknown, Kind::Poisoned]
            }
            Fault::Errno(errno::EROFS) => &[Kind::ReadOnly, Kind::OutcomeUnknown, Kind::Poisoned],
            Fault::Errno(errno::EMFILE) => &[Kind::Limit],
            // The end of a file where none should be may be taken for a file that was cut.
            Fault::Zero if self.call.class == Class::Read => &[Kind::Io, Kind::Corrupt],
            Fault::Errno(_) | Fault::Zero | Fault::Hook if self.call.class != Class::Read => {
                &[Kind::Io, Kind::OutcomeUnknown, Kind::Poisoned]
            }
            Fault::Errno(errno::EIO) => &[Kind::Io],
            _ => &[],
        }
    }
}

/// Looks at the answer and at the store behind it; then at the store after a restart, and after a crash.
pub fn judge(
    script: Script,
    bench: &Bench,
    stage: &Stage,
    store: Option<Store>,
    answer: &Result<Done, Error>,
    hit: &Hit,
) -> Result<(), String> {
    if let Err(error) = answer {
        let fails_anyway = script == Script::PutLongFails;
        let own = fails_anyway && error.kind() == Kind::Io;
        if !own && (hit.is_invisible() || !hit.kinds().contains(&error.kind())) {
            return Err(format!("answers {} {error}", error.kind().as_str()));
        }
    } else if script == Script::PutLongFails {
        return Err("a put succeeds whose source failed".to_owned());
    }
    if let Ok(Done::Verified(problems)) = answer
        && *problems > 0
        && hit.fault != Fault::Zero
    {
        return Err(format!("verify finds {problems} problems"));
    }
    let now = stage.machine.world.clock.wall();
    let mut promise = after_look(&bench.promise, now);
    if script == Script::Init {
        promise.made = answer.is_ok();
        return init_again(stage, &promise);
    }
    let put = script.put(bench);
    if let (Ok(Done::Put(reply)), Some(step)) = (answer, &put) {
        promise = with(&promise, stored(step, reply));
    }
    let unknown = match answer {
        Err(error) if error.kind() == Kind::OutcomeUnknown => put.as_ref(),
        _ => None,
    };
    if let Some(store) = store {
        // Neither a new segment nor zeros in place: all that is left to do is to read.
        let no_way_on = script == Script::OpenTorn && hit.sticky && hit.is_errno(&errno::NO_ROOM);
        promise = after_open(&store, promise, &stage.machine, no_way_on)?;
        promise = go_on(script, &store, promise, hit, put.as_ref(), unknown)?;
        if hit.spoils_checkpoint() && script.is_on_open_store() {
            stays_burnt(stage, hit)?;
        }
        drop(store);
    } else if script.is_on_open_store() || script == Script::Verify {
        promise.least = promise.order.len();
    }
    after_end(stage, &promise, unknown)
}

/// Reads go on whatever happened, and show what is durable.
fn after_open(store: &Store, mut promise: Promise, machine: &Machine, read_only: bool) -> Result<Promise, String> {
    let report = store.report();
    if !report.problems.is_empty() || (report.read_only.is_some() && !read_only) {
        return Err(format!("a failed call was taken for damage: {report:?}"));
    }
    let seen = logical::check(store, &promise, logical::Depth::Every)
        .map_err(|what| format!("behind the fault ({} calls): {what}", machine.sim.op_count()))?;
    let order = promise.order[..seen.count].to_vec();
    promise.least = seen.count;
    promise.order = order.into();
    Ok(promise)
}

/// Another put: it works, or the store says that it takes none.
fn go_on(
    script: Script,
    store: &Store,
    promise: Promise,
    hit: &Hit,
    put: Option<&PutStep>,
    unknown: Option<&PutStep>,
) -> Result<Promise, String> {
    let next = step("next", Contents::new(Random::new(78)).new_of(800));
    let answer = store.put(&request(&next, None), &mut Source::new(&next.bytes, next.piece));
    let latched = match &answer {
        Ok(_) => false,
        Err(error) if matches!(error.kind(), Kind::Poisoned | Kind::ReadOnly) => true,
        Err(error) => return Err(format!("the next put: {} {error}", error.kind().as_str())),
    };
    if latched && hit.must_not_latch() {
        return Err("the store takes no more writes".to_owned());
    }
    if !latched && hit.must_latch() && script.is_on_open_store() && !script.only_reads() {
        return Err("the store goes on writing".to_owned());
    }
    if !latched && unknown.is_some() {
        return Err("an outcome is unknown and the store goes on writing".to_owned());
    }
    let Ok(reply) = answer else { return Ok(promise) };
    let mut promise = with(&promise, stored(&next, &reply));
    // Whatever became of the first one: a retry settles it.
    if let Some(put) = put {
        let retry = PutStep { fails_at: None, ..put.clone() };
        let reply = store
            .put(&request(&retry, None), &mut Source::new(&retry.bytes, retry.piece))
            .map_err(|e| format!("a retry: {} {e}", e.kind().as_str()))?;
        let there = promise.order.iter().any(|stored| stored.id == reply.id);
        if there != reply.replayed {
            return Err(format!("a retry: {reply:?}"));
        }
        if !there {
            promise = with(&promise, stored(&retry, &reply));
        }
    }
    store.checkpoint().map_err(|e| format!("a checkpoint: {} {e}", e.kind().as_str()))?;
    logical::check(store, &promise, logical::Depth::Newest)?;
    Ok(promise)
}

/// A file of a checkpoint that could not be written or synced is never tried again, and goes as long as files may be destroyed.
fn stays_burnt(stage: &Stage, hit: &Hit) -> Result<(), String> {
    let calls = stage.faults.trace();
    let at = calls.iter().position(|call| call.fault.is_some()).ok_or("the trace lacks the fault")?;
    let tried = calls[at + 1..]
        .iter()
        .find(|call| call.name == hit.call.name && call.fault.is_none() && matches!(call.method, "write_at" | "sync"));
    if let Some(tried) = tried {
        return Err(format!("a file that could not be written is tried again: {tried}"));
    }
    let is_there = hit.call.name.as_ref().is_some_and(|name| stage.machine.sim.image().len(name).is_some());
    if is_there && !hit.is_errno(&[errno::EROFS]) && !hit.sticky {
        return Err("a file that could not be written is left over".to_owned());
    }
    Ok(())
}

fn stored(step: &PutStep, reply: &holdfast::PutReply) -> Stored {
    Stored {
        account: step.account,
        id: reply.id,
        name: step.name.clone(),
        bytes: std::sync::Arc::clone(&step.bytes),
        sha256: reply.sha256,
        expires_at: None,
        op_id: step.op_id.clone(),
        deed: Deed::default(),
    }
}

fn with(promise: &Promise, stored: Stored) -> Promise {
    let mut promise = promise.clone();
    let mut order: Vec<_> = promise.order.to_vec();
    order.push(std::sync::Arc::new(stored));
    promise.least += 1;
    promise.order = order.into();
    promise
}

/// The process ends. What the page cache shows is opened again, and then that again after a crash; and both crashes at once.
fn after_end(stage: &Stage, promise: &Promise, unknown: Option<&PutStep>) -> Result<(), String> {
    stage.faults.disarm();
    let log = stage.machine.sim.log();
    let mut images: Vec<(&str, Image)> = Vec::new();
    if let Some(last) = log.ops().len().checked_sub(1) {
        let budget = Budget { modes: vec![Mode::DropAll, Mode::KeepAll], ..Budget::default() };
        let _ = Crashes::new(&log, 1, budget).for_each_image(last..last + 1, &mut |image, point| {
            images.push((point.mode.as_str(), image.clone()));
            ControlFlow::Continue(())
        });
    }
    for (mode, image) in images {
        recover(&image, promise, unknown).map_err(|what| format!("after a crash {mode}: {what}"))?;
    }
    restart(stage, promise, unknown).map_err(|what| format!("after a restart: {what}"))
}

/// The same machine goes on with another process; what that one shows stays, also after a crash.
fn restart(stage: &Stage, promise: &Promise, unknown: Option<&PutStep>) -> Result<(), String> {
    let store = stage.machine.open().map_err(|e| format!("open: {} {e}", e.kind().as_str()))?;
    let promise = settled(&store, promise, unknown)?;
    let promise = after_open(&store, promise, &stage.machine, false)?;
    let log = stage.machine.sim.log();
    let last = log.ops().len() - 1;
    drop(store);
    let budget = Budget { modes: vec![Mode::DropAll], ..Budget::default() };
    let mut outcome = Ok(());
    let _ = Crashes::new(&log, 1, budget).for_each_image(last..last + 1, &mut |image, _| {
        outcome = recover(image, &promise, None).map_err(|what| format!("and a crash: {what}"));
        ControlFlow::Continue(())
    });
    outcome
}

/// The whole oracle, on an image.
fn recover(image: &Image, promise: &Promise, unknown: Option<&PutStep>) -> Result<(), String> {
    let machine = Machine::new(holdfast::disk::sim::SimDisk::from_image(image, 1), promise.wall, 2);
    let store = machine.open().map_err(|e| format!("open: {} {e}", e.kind().as_str()))?;
    let promise = settled(&store, promise, unknown)?;
    drop(store);
    oracle::recover(image, &promise, &Used::new(), 3, Checks::ALL, &Coverage::default()).map(drop)
}

/// Finds out what became of a put whose outcome nobody knows: it is there under its name, whole, or not at all.
fn settled(store: &Store, promise: &Promise, unknown: Option<&PutStep>) -> Result<Promise, String> {
    let Some(step) = unknown else { return Ok(promise.clone()) };
    let scope = AccountScope { tenant: "default", account: ACCOUNTS[step.account] };
    let page = store.list(scope, None, 1000).map_err(|e| format!("list: {e}"))?;
    let found = page.artifacts.iter().find(|info| promise.order.iter().all(|stored| stored.id != info.id));
    let Some(info) = found else { return Ok(promise.clone()) };
    Ok(with(
        promise,
        Stored {
            account: step.account,
            id: info.id,
            name: step.name.clone(),
            bytes: std::sync::Arc::clone(&step.bytes),
            sha256: info.sha256,
            expires_at: None,
            op_id: step.op_id.clone(),
            deed: Deed::default(),
        },
    ))
}

/// A store whose making was spoilt can be made, unless it is there.
fn init_again(stage: &Stage, promise: &Promise) -> Result<(), String> {
    stage.faults.disarm();
    let image = stage.machine.sim.image();
    oracle::recover(&image, promise, &Used::new(), 3, Checks::ALL, &Coverage::default()).map(drop)
}
