//! Requests that wait for their group, and who steps.
//!
//! Of all that wait one steps: the first. It takes a group through the commit lock, hands the step on to the first of those that came
//! meanwhile, and gives the answers. All others sleep until their answer or the step is theirs, and never touch the commit lock.

use std::collections::VecDeque;

use super::{COMMIT_FIXED, GROUP_MAX, GROUP_REQUESTS_MAX, Stage, edits_len};
use crate::{
    error::{Error, Kind, Result},
    format::commit::Edit,
    log::append::Bounds,
    sync::{Arc, Condvar, Mutex},
};

type Decide<T> = Box<dyn FnOnce(&mut Stage<'_>) -> Result<(Vec<Edit>, T)> + Send>;

/// A change that somebody wants, and the room that it takes at most.
pub struct Request<T> {
    pub(super) decide: Decide<T>,
    pub(super) bounds: Bounds,
    pub(super) privileged: bool,
    pub(super) forced: bool,
}

impl<T> Request<T> {
    /// A request whose edits take at most `edit_bytes`. `decide` sees staged state and must not block: everything that is slow was
    /// done before.
    pub fn new(
        edit_bytes: usize,
        decide: impl FnOnce(&mut Stage<'_>) -> Result<(Vec<Edit>, T)> + Send + 'static,
    ) -> Self {
        let bounds = Bounds { frames: 0, frame_bytes: 0, commit_bytes: edit_bytes as u64 + 4 };
        Self { decide: Box::new(decide), bounds, privileged: false, forced: false }
    }

    /// ... and places this many chunk and page frames of these bytes at most.
    #[must_use]
    pub const fn with_frames(mut self, frames: u64, frame_bytes: u64) -> Self {
        self.bounds.frames = frames;
        self.bounds.frame_bytes = frame_bytes;
        self
    }

    /// May take from the reserve when the disk is full: for what gives space back.
    #[must_use]
    pub const fn privileged(mut self) -> Self {
        self.privileged = true;
        self
    }

    /// Is written even without edits, for the engine time that a commit carries.
    #[must_use]
    pub const fn forced(mut self) -> Self {
        self.forced = true;
        self
    }
}

/// What the owner of a request is woken for.
pub(super) enum Turn<T> {
    /// Its answer.
    Answer(Result<T>),
    /// It is the first that waits, and nobody steps.
    Step,
}

/// Where the owner of a request waits.
pub(super) struct Slot<T> {
    turn: Mutex<Option<Turn<T>>>,
    changed: Condvar,
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self { turn: Mutex::new(None), changed: Condvar::default() }
    }
}

impl<T> Slot<T> {
    /// Sleeps until it is its turn.
    pub(super) fn wait(&self) -> Turn<T> {
        let mut turn = self.turn.lock();
        loop {
            match turn.take() {
                Some(turn) => return turn,
                None => self.changed.wait(&mut turn),
            }
        }
    }

    fn wake(&self, turn: Turn<T>) {
        *self.turn.lock() = Some(turn);
        self.changed.notify_one();
    }
}

/// A request of any answer.
pub(super) trait Pending: Send {
    fn bounds(&self) -> Bounds;
    fn is_privileged(&self) -> bool;
    fn is_forced(&self) -> bool;
    /// Decides once; no edits also stands for a refusal.
    fn decide(&mut self, stage: &mut Stage<'_>) -> Vec<Edit>;
    /// Gives the answer that was decided, or the error that befell the whole group.
    fn settle(&mut self, failed: Option<&Error>);
    /// Lets its owner step.
    fn call(&self);
}

/// A request with its decision and the place of its answer.
pub(super) struct Waiting<T> {
    request: Option<Decide<T>>,
    bounds: Bounds,
    privileged: bool,
    forced: bool,
    decided: Option<Result<T>>,
    settled: bool,
    slot: Arc<Slot<T>>,
}

impl<T> Waiting<T> {
    pub(super) fn new(request: Request<T>, slot: Arc<Slot<T>>) -> Self {
        let Request { decide, bounds, privileged, forced } = request;
        Self { request: Some(decide), bounds, privileged, forced, decided: None, settled: false, slot }
    }
}

impl<T: Send> Pending for Waiting<T> {
    fn bounds(&self) -> Bounds {
        self.bounds
    }

    fn is_privileged(&self) -> bool {
        self.privileged
    }

    fn is_forced(&self) -> bool {
        self.forced
    }

    fn decide(&mut self, stage: &mut Stage<'_>) -> Vec<Edit> {
        let decide = self.request.take().expect("a request is decided once");
        match decide(stage) {
            Ok((edits, answer)) => {
                assert!(
                    edits_len(&edits) as u64 + 4 <= self.bounds.commit_bytes,
                    "a request's edits fit the room that it asked for"
                );
                self.decided = Some(Ok(answer));
                edits
            }
            Err(error) => {
                self.decided = Some(Err(error));
                Vec::new()
            }
        }
    }

    fn settle(&mut self, failed: Option<&Error>) {
        let answer = match (failed, self.decided.take()) {
            (Some(error), _) => Err(error.again()),
            (None, Some(answer)) => answer,
            (None, None) => Err(Error::new(Kind::OutcomeUnknown, "a request was not decided")),
        };
        self.settled = true;
        self.slot.wake(Turn::Answer(answer));
    }

    fn call(&self) {
        self.slot.wake(Turn::Step);
    }
}

/// Whoever waits gets an answer, also where a panic took the request away undecided.
impl<T> Drop for Waiting<T> {
    fn drop(&mut self) {
        if !self.settled {
            let lost = Error::new(
                Kind::OutcomeUnknown,
                "another request of the same group failed in a way that nobody foresaw",
            );
            self.slot.wake(Turn::Answer(Err(lost)));
        }
    }
}

/// Room that a group takes at most.
pub(super) fn bounds_of(group: &[Box<dyn Pending>]) -> Bounds {
    let fixed = Bounds { commit_bytes: COMMIT_FIXED, ..Bounds::default() };
    group.iter().fold(fixed, |sum, pending| sum.plus(pending.bounds()))
}

/// First in, first out.
#[derive(Default)]
pub(super) struct Queue(Mutex<Line>);

#[derive(Default)]
struct Line {
    waiting: VecDeque<Box<dyn Pending>>,
    /// Somebody steps, or was called to. While this is not so nobody waits.
    stepping: bool,
}

/// Whoever holds it steps; letting go of it hands the step on, also where a panic does.
pub(super) struct Step<'a>(&'a Queue);

impl Drop for Step<'_> {
    fn drop(&mut self) {
        let mut line = self.0.0.lock();
        line.stepping = !line.waiting.is_empty();
        if let Some(first) = line.waiting.front() {
            first.call();
        }
    }
}

impl Queue {
    /// Adds a request. Its owner steps if nobody does.
    pub(super) fn push(&self, pending: Box<dyn Pending>) -> Option<Step<'_>> {
        let mut line = self.0.lock();
        line.waiting.push_back(pending);
        // Made only where it is given: a step that is dropped here would be handed on.
        (!std::mem::replace(&mut line.stepping, true)).then(|| Step(self))
    }

    /// The step of an owner that was called.
    pub(super) const fn called(&self) -> Step<'_> {
        Step(self)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().waiting.is_empty()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.lock().waiting.len()
    }

    /// The requests of the next group: at least one if any waits, and no more than a group holds.
    pub(super) fn take_group(&self) -> (Vec<Box<dyn Pending>>, Bounds) {
        let queue = &mut self.0.lock().waiting;
        let mut group = Vec::new();
        let mut sum = bounds_of(&group);
        while let Some(next) = queue.front() {
            let with_next = sum.plus(next.bounds());
            let fits = with_next.frame_bytes <= GROUP_MAX.frame_bytes
                && with_next.commit_bytes <= GROUP_MAX.commit_bytes
                && group.len() < GROUP_REQUESTS_MAX;
            if !group.is_empty() && !fits {
                break;
            }
            sum = with_next;
            group.extend(queue.pop_front());
        }
        (group, sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_is_lost_in_a_panic_is_answered() {
        let slot = Arc::new(Slot::default());
        drop(Waiting::new(Request::new(0, |_| Ok((Vec::new(), ()))), Arc::clone(&slot)));
        let Turn::Answer(answer) = slot.wait() else { panic!("nobody steps") };
        assert_eq!(answer.expect_err("lost").kind(), Kind::OutcomeUnknown);
    }

    fn request() -> (Arc<Slot<()>>, Box<dyn Pending>) {
        let slot = Arc::new(Slot::default());
        (Arc::clone(&slot), Box::new(Waiting::new(Request::new(0, |_| Ok((Vec::new(), ()))), slot)))
    }

    #[test]
    fn of_all_that_wait_one_steps_and_hands_on_to_the_first_that_came_meanwhile() {
        let queue = Queue::default();
        let (_first, pending) = request();
        let step = queue.push(pending).expect("nobody stepped");
        assert_eq!(queue.take_group().0.len(), 1);
        let (second, pending) = request();
        assert!(queue.push(pending).is_none(), "somebody steps");
        let (_third, pending) = request();
        assert!(queue.push(pending).is_none());
        drop(step);
        assert!(matches!(second.wait(), Turn::Step));
        let step = queue.called();
        assert_eq!(queue.take_group().0.len(), 2);
        drop(step);
        assert!(queue.push(request().1).is_some(), "nobody waited, so nobody was called");
    }
}
