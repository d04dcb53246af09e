//! Time, as the engine sees it. Nothing below or above reads a clock of its own.

use crate::ids::Time;

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
