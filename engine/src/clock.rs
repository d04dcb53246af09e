//! Time, as the engine sees it. Nothing below or above reads a clock of its own.

use crate::ids::Time;
use crate::sync::{AtomicU64, Ordering};

/// Source of time.
pub trait Clock: Send + Sync {
    /// The wall clock. It may jump, forwards and back.
    fn wall(&self) -> Time;
}

/// The clock of the operating system.
#[derive(Debug, Default, Clone, Copy)]
pub struct OsClock;

impl Clock for OsClock {
    fn wall(&self) -> Time {
        #[expect(clippy::disallowed_methods, reason = "this is the seam through which time comes")]
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        // A clock before 1970 counts as 1970: it hides nothing and ends nothing.
        Time(since.map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX)))
    }
}

/// A clock that stands until somebody moves it.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// A clock that shows this time.
    pub const fn new(now: Time) -> Self {
        Self(AtomicU64::new(now.0))
    }

    /// Moves the clock, forwards or back.
    pub fn set(&self, now: Time) {
        self.0.store(now.0, Ordering::Relaxed);
    }

    /// Moves the clock forwards; it stops at the end of time.
    pub fn advance(&self, milliseconds: u64) {
        self.set(Time(self.wall().0.saturating_add(milliseconds)));
    }
}

impl Clock for ManualClock {
    fn wall(&self) -> Time {
        Time(self.0.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_by_hand_only() {
        let clock = ManualClock::new(Time(1000));
        assert_eq!(clock.wall(), Time(1000));
        clock.advance(5);
        assert_eq!(clock.wall(), Time(1005));
        clock.set(Time(3));
        assert_eq!(clock.wall(), Time(3));
        clock.advance(u64::MAX);
        assert_eq!(clock.wall(), Time(u64::MAX));
    }

    #[test]
    fn the_clock_of_the_system_is_past_the_day_it_was_written() {
        assert!(OsClock.wall() > Time(1_700_000_000_000));
    }
}
