//! Reading ahead: two workers read and check runs, the caller's thread takes them in order.
//!
//! A worker plans a run, reads it and checks it, so that on two cores one hashes while the other waits for the disk or copies. One plans at a
//! time, and in order; what is ahead of the caller is bounded in bytes, however slow it is. The workers are scoped: they end with the
//! read, and at once when the caller stops early. Nothing here knows recipes or frames; those are the plan's and the run's.

use std::collections::VecDeque;

use super::{
    Reader,
    run::{Outcome, Plan},
};
use crate::{
    digest::TenantKeys,
    error::Result,
    limits::READ_RUN,
    sync::{Condvar, Mutex, thread},
};

const WORKERS: usize = 2;

/// Takes runs in order.
pub(super) type Take<'a> = &'a mut dyn FnMut(Outcome) -> Result<()>;

/// Gives the runs of a plan to `take` until its end or the first error of either, at most about `window` bytes ahead.
pub(super) fn read_ahead(
    reader: &Reader,
    keys: &TenantKeys,
    plan: Plan<'_>,
    window: u64,
    take: Take<'_>,
) -> Result<()> {
    let queue = Mutex::new(Queue::default());
    let (ready, room) = (Condvar::new(), Condvar::new());
    let ahead = Ahead { reader, keys, plan: Mutex::new(plan), queue, ready, room, window };
    // The panic of a worker goes on in the caller when the scope ends.
    thread::scope(|scope| {
        let _stop = Stop(&ahead);
        let started = (0..WORKERS).filter(|_| thread::Builder::new().spawn_scoped(scope, || ahead.work()).is_ok());
        if started.count() == 0 {
            // The system has no thread to give.
            return read_inline(reader, keys, &mut ahead.plan.lock(), take);
        }
        while let Some((outcome, cost)) = ahead.next() {
            take(outcome)?;
            ahead.give_back(cost);
        }
        Ok(())
    })
}

/// The same on the caller's thread alone, a run at a time.
pub(super) fn read_inline(reader: &Reader, keys: &TenantKeys, plan: &mut Plan<'_>, take: Take<'_>) -> Result<()> {
    while let Some(run) = plan.next()? {
        take(reader.read_run(keys, &run))?;
    }
    Ok(())
}

/// Where the workers and the caller meet.
struct Ahead<'a> {
    reader: &'a Reader,
    keys: &'a TenantKeys,
    /// Whoever holds it plans the next run.
    plan: Mutex<Plan<'a>>,
    queue: Mutex<Queue>,
    /// The caller looks again: a run was read, the plan is at its end, or a worker is gone.
    ready: Condvar,
    /// A worker looks again: a run was given back, or nobody takes any more.
    room: Condvar,
    window: u64,
}

/// Runs that were planned and not yet taken, in order.
#[derive(Default)]
struct Queue {
    /// What was read, with its cost.
    slots: VecDeque<Option<(Outcome, u64)>>,
    /// How many left at the front.
    taken: usize,
    /// Cost of all that was planned and not given back.
    bytes: u64,
    /// No run comes behind those in `slots`.
    planned: bool,
    /// The caller left, or a worker panicked.
    stopped: bool,
}

impl Ahead<'_> {
    fn work(&self) {
        let _leave = Leave(self);
        loop {
            let mut plan = self.plan.lock();
            if !self.wait_for_room() {
                return;
            }
            let run = plan.next();
            let cost = match &run {
                Ok(Some(run)) => run.cost(),
                Ok(None) => return self.end_plan(),
                Err(_) => 0,
            };
            let place = self.reserve(cost);
            drop(plan);
            let outcome = match run {
                Ok(run) => self.reader.read_run(self.keys, &run.expect("the plan was not at its end")),
                Err(error) => Outcome::failed(error),
            };
            self.fill(place, outcome, cost);
        }
    }

    /// True if another run may be planned, whose cost is not known yet.
    fn wait_for_room(&self) -> bool {
        let mut queue = self.queue.lock();
        while !queue.stopped && !queue.planned && queue.bytes > 0 && queue.bytes + READ_RUN as u64 > self.window {
            self.room.wait(&mut queue);
        }
        !queue.stopped && !queue.planned
    }

    fn end_plan(&self) {
        self.queue.lock().planned = true;
        self.ready.notify_all();
    }

    fn reserve(&self, cost: u64) -> usize {
        let mut queue = self.queue.lock();
        queue.bytes += cost;
        queue.slots.push_back(None);
        queue.taken + queue.slots.len() - 1
    }

    fn fill(&self, place: usize, outcome: Outcome, cost: u64) {
        let mut queue = self.queue.lock();
        let at = place - queue.taken;
        // Behind an error nothing is taken.
        queue.planned |= outcome.error.is_some();
        queue.slots[at] = Some((outcome, cost));
        if at == 0 {
            self.ready.notify_all();
        }
    }

    /// The next run in order.
    fn next(&self) -> Option<(Outcome, u64)> {
        let mut queue = self.queue.lock();
        loop {
            match queue.slots.front() {
                _ if queue.stopped => return None,
                Some(front) if front.is_some() => {
                    queue.taken += 1;
                    return queue.slots.pop_front().flatten();
                }
                None if queue.planned => return None,
                _ => self.ready.wait(&mut queue),
            }
        }
    }

    fn give_back(&self, cost: u64) {
        self.queue.lock().bytes -= cost;
        self.room.notify_one();
    }

    fn stop(&self) {
        self.queue.lock().stopped = true;
        self.ready.notify_all();
        self.room.notify_all();
    }
}

/// Ends the reading when the caller leaves, by an error or a panic too.
struct Stop<'a, 'b>(&'a Ahead<'b>);

impl Drop for Stop<'_, '_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Ends the reading when a worker panics: nobody shall wait for its run.
struct Leave<'a, 'b>(&'a Ahead<'b>);

impl Drop for Leave<'_, '_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.stop();
        }
    }
}
