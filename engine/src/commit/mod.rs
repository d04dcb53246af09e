//! The one door through which state changes.
//!
//! *Published* is what is durable, and all that reads see. *Staged* is published plus every edit that has an LSN. A request is decided
//! against staged state under the commit lock, its group is written in one frame and synced, and only then are edits published
//! and answers given: also refusals, since they may rest on an edit that was not durable yet.

use crate::{
    catalog::Published,
    clock::Clock,
    error::{Error, Kind, Result},
    format::commit::{Commit as CommitPayload, Edit, FIXED_LEN},
    health::Health,
    ids::{Lsn, Time},
    limits::{COMMIT_REQUESTS_MAX, FRAME_LEN_MAX, GROUP_EDIT_BYTES, GROUP_FRAME_BYTES},
    log::{Log, append::Bounds, prepared::Readiness},
    sync::{Arc, AtomicU64, Mutex, OnceLock, Ordering},
};

mod queue;
mod stage;

pub use queue::Request;
pub use stage::Stage;

use queue::{Pending, Queue, Slot, Step, Turn, Waiting};
use stage::Overlay;

/// What is done by a thread that has its answer, outside of all locks, before it goes on: what must not fall behind commits.
pub trait Upkeep: Send + Sync {
    /// Refuses a request where what it would add could not be kept within bounds.
    fn admits(&self, commit: &Commit) -> Result<()>;
    /// Called after each request.
    fn after(&self, commit: &Commit);
}

/// The commit door of a store that is open for writing.
pub struct Commit {
    queue: Queue,
    writer: Mutex<Writer>,
    published: Arc<Published>,
    published_lsn: AtomicU64,
    /// Bytes of the log since the last checkpoint's position.
    log_bytes: AtomicU64,
    upkeep: OnceLock<Box<dyn Upkeep>>,
    hw: AtomicU64,
    health: Arc<Health>,
    clock: Arc<dyn Clock>,
}

struct Writer {
    log: Log,
    hw: Time,
}

impl Commit {
    /// Opens the door over a log and the state that was rebuilt from it.
    pub fn new(log: Log, published: Arc<Published>, hw: Time, health: Arc<Health>, clock: Arc<dyn Clock>) -> Self {
        Self {
            queue: Queue::default(),
            published_lsn: AtomicU64::new(log.next_lsn().0 - 1),
            log_bytes: AtomicU64::new(0),
            upkeep: OnceLock::new(),
            hw: AtomicU64::new(hw.0),
            writer: Mutex::new(Writer { log, hw }),
            published,
            health,
            clock,
        }
    }

    /// The highest published LSN.
    pub fn published_lsn(&self) -> Lsn {
        Lsn(self.published_lsn.load(Ordering::Acquire))
    }

    /// The engine time of the last commit.
    pub fn hw(&self) -> Time {
        Time(self.hw.load(Ordering::Acquire))
    }

    /// Decides, makes durable and publishes a request, together with whatever else waits. Blocks until its answer is durable.
    pub fn run<T: Send + 'static>(&self, request: Request<T>) -> Result<T> {
        self.health.check()?;
        if request.bounds.frame_bytes > GROUP_FRAME_BYTES as u64 || request.bounds.commit_bytes > FRAME_LEN_MAX - 4096 {
            return Err(Error::new(Kind::TooMany, "more than one commit can hold: give fewer at a time"));
        }
        if let Some(upkeep) = self.upkeep.get().filter(|_| !request.privileged) {
            upkeep.admits(self)?;
        }
        let slot = Arc::new(Slot::default());
        let mut step = self.queue.push(Box::new(Waiting::new(request, Arc::clone(&slot))));
        let answer = loop {
            if let Some(step) = step.take() {
                self.step(step);
            }
            match slot.wait() {
                Turn::Answer(answer) => break answer,
                Turn::Step => step = Some(self.queue.called()),
            }
        };
        if let Some(upkeep) = self.upkeep.get() {
            upkeep.after(self);
        }
        answer
    }

    /// Sets what is done after commits.
    pub fn keep_up(&self, upkeep: Box<dyn Upkeep>) {
        let _ = self.upkeep.set(upkeep);
    }

    /// Bytes of the log that the next open would replay.
    pub fn log_bytes(&self) -> u64 {
        self.log_bytes.load(Ordering::Relaxed)
    }

    /// Counts bytes of the log that are to be replayed; what was counted before is `forgotten`.
    pub fn count_log_bytes(&self, bytes: u64, forgotten: bool) {
        if forgotten {
            self.log_bytes.store(bytes, Ordering::Relaxed);
        } else {
            self.log_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Requests that wait for the next group.
    #[cfg(test)]
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Runs something on the log under the commit lock.
    pub fn with_log<T>(&self, act: impl FnOnce(&mut Log) -> T) -> T {
        act(&mut self.writer.lock().log)
    }

    /// Takes one group from the queue through decision, sync, publication and answers, and goes on with what nobody waits for.
    fn step(&self, step: Step<'_>) {
        let mut writer = self.writer.lock();
        // Falls before the lock is given back.
        let unwinding = PoisonUnlessDefused(&self.health);
        let (mut group, bounds) = self.queue.take_group();
        let result = self.health.check().and_then(|()| Self::make_room(&mut writer, &mut group, bounds));
        let written = result.and_then(|()| self.commit_group(&mut writer, &mut group));
        let answer = |group: &mut Vec<Box<dyn Pending>>| {
            group.drain(..).for_each(|mut pending| pending.settle(written.as_ref().err()));
        };
        let mut ready = None;
        if written.is_ok() && !group.is_empty() {
            if writer.log.has_chores() {
                answer(&mut group);
            }
            ready = self.after(&mut writer);
        }
        // The next group is under way while this one's owners are woken.
        drop(writer);
        drop(step);
        answer(&mut group);
        if let Some(ready) = ready {
            // A failure here lets the latch fall, if it has to; otherwise the next group tries again.
            let _ = ready.advance(&self.health);
        }
        std::mem::forget(unwinding);
    }

    /// Finds room in the log. On a full disk the requests that may use the reserve go on alone.
    fn make_room(writer: &mut Writer, group: &mut Vec<Box<dyn Pending>>, bounds: Bounds) -> Result<()> {
        let privileged = group.iter().all(|pending| pending.is_privileged());
        let error = match writer.log.make_room(bounds, privileged) {
            Err(error) if error.kind() == Kind::NoSpace && !privileged => error,
            result => return result,
        };
        for pending in group.extract_if(.., |pending| !pending.is_privileged()) {
            let mut pending = pending;
            pending.settle(Some(&error));
        }
        if group.is_empty() { Ok(()) } else { writer.log.make_room(queue::bounds_of(group), true) }
    }

    fn commit_group(&self, writer: &mut Writer, group: &mut [Box<dyn Pending>]) -> Result<()> {
        let wall = self.clock.wall();
        let hw = writer.hw.max(wall);
        let mut frames = writer.log.group();
        let mut overlay = Overlay::default();
        let (mut forced, mut edited) = (false, false);
        {
            let published = self.published.read();
            for (index, pending) in group.iter_mut().enumerate() {
                let lsn = writer.log.next_lsn().plus(index as u64);
                let point = frames.point();
                let mut stage = Stage::new(published, &overlay, &mut frames, lsn, hw);
                let edits = pending.decide(&mut stage);
                if edits.is_empty() {
                    // What a refused or replayed request brought along stays out of the log.
                    frames.back_to(point);
                }
                forced |= pending.is_forced();
                edited |= !edits.is_empty();
                overlay.stage(edits);
            }
        }
        if !forced && !edited {
            // Everything that was decided rests on published state.
            return Ok(());
        }
        let commit = CommitPayload { synced_upto: writer.log.synced_upto(), hw, requests: overlay.into_requests() };
        let before = writer.log.tail().offset;
        writer.log.append(frames, &commit).map_err(|e| match e.kind() {
            Kind::ReadOnly => e,
            _ => e.with_kind(Kind::OutcomeUnknown),
        })?;
        self.count_log_bytes(writer.log.tail().offset - before, false);
        writer.hw = hw;
        self.publish(commit, writer.log.next_lsn())
    }

    fn publish(&self, commit: CommitPayload, next_lsn: Lsn) -> Result<()> {
        let applied = self.published.apply(commit.requests.into_iter().flatten().collect());
        applied.map_err(|e| self.health.fail(e).with_kind(Kind::OutcomeUnknown))?;
        self.published_lsn.store(next_lsn.0 - 1, Ordering::Release);
        self.hw.store(commit.hw.0, Ordering::Release);
        Ok(())
    }

    /// What follows a group: a mark when the queue ran empty, and what the superblock has to say. The answer is how far the next
    /// files should be by now. A failure here has already set the latch, if it had to; otherwise the next group tries again.
    fn after(&self, writer: &mut Writer) -> Option<Readiness> {
        if self.queue.is_empty() && writer.log.synced_upto().offset == writer.log.tail().offset {
            let _ = writer.log.mark();
        }
        let _ = writer.log.do_chores();
        writer.log.readiness()
    }
}

/// A panic on the way through a group leaves it unknown how far the group came.
struct PoisonUnlessDefused<'a>(&'a Health);

impl Drop for PoisonUnlessDefused<'_> {
    fn drop(&mut self) {
        self.0.poison();
    }
}

/// Groups close at these sums.
const GROUP_MAX: Bounds =
    Bounds { frames: u64::MAX, frame_bytes: GROUP_FRAME_BYTES as u64, commit_bytes: GROUP_EDIT_BYTES as u64 };
const GROUP_REQUESTS_MAX: usize = COMMIT_REQUESTS_MAX;

/// Room of the fixed part of a commit.
const COMMIT_FIXED: u64 = FIXED_LEN as u64;

/// Room that edits take in a commit.
pub fn edits_len(edits: &[Edit]) -> usize {
    edits.iter().map(Edit::encoded_len).sum()
}
