//! Memory that pipelines share, so that a thousand streams at once take no more than a few.
//!
//! Nobody waits here: what is not to be had now is refused, and the caller goes on with less, on its own thread. So a stream whose
//! client stalls holds up nobody, and no two streams wait for each other. Threads go by the same grants: a pipeline starts workers only
//! while it holds one. The budget knows neither what the bytes are for nor whether they are allocated.

use crate::sync::{Arc, AtomicU64, Ordering};

/// So many bytes for all pipelines of a store.
#[derive(Debug)]
pub struct Budget {
    left: AtomicU64,
}

/// Bytes that are the holder's until it drops this.
#[derive(Debug)]
#[must_use = "the bytes go back when the grant is dropped"]
pub struct Grant {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Budget {
    /// A budget that nobody has taken from.
    pub fn new(bytes: u64) -> Arc<Self> {
        Arc::new(Self { left: AtomicU64::new(bytes) })
    }

    /// All of these bytes, or nothing. Never waits.
    pub fn take(self: &Arc<Self>, bytes: u64) -> Option<Grant> {
        let taken = self.left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(bytes));
        taken.ok().map(|_| Grant { budget: Arc::clone(self), bytes })
    }

    /// Bytes that nobody holds.
    pub fn left(&self) -> u64 {
        self.left.load(Ordering::Acquire)
    }
}

impl Grant {
    /// How many bytes were granted.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        self.budget.left.fetch_add(self.bytes, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_refused_and_what_was_taken_comes_back() {
        let budget = Budget::new(100);
        let (first, second) = (budget.take(60).expect("there"), budget.take(40).expect("exactly what is left"));
        assert!(budget.take(1).is_none());
        assert_eq!((first.bytes(), second.bytes(), budget.left()), (60, 40, 0));
        drop(first);
        assert!(budget.take(61).is_none(), "all of it or nothing");
        drop(budget.take(60).expect("it came back"));
        drop(second);
        assert_eq!(budget.left(), 100);
    }

    #[test]
    fn many_threads_never_hold_more_than_there_is() {
        let (budget, held) = (Budget::new(10), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        let Some(grant) = budget.take(3) else { continue };
                        assert!(held.fetch_add(grant.bytes(), Ordering::AcqRel) + grant.bytes() <= 10);
                        held.fetch_sub(grant.bytes(), Ordering::AcqRel);
                    }
                });
            }
        });
        assert_eq!(budget.left(), 10);
    }
}
