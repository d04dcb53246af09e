//! The time that something took.

use std::time::Duration;

/// Measures from its start on. No store sees this clock.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(std::time::Instant);

impl Stopwatch {
    /// Starts.
    #[expect(clippy::disallowed_methods, reason = "the time of a measurement, which no store sees")]
    pub fn start() -> Self {
        Self(std::time::Instant::now())
    }

    /// Time since the start.
    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }

    /// The same in seconds, never zero, so that it can be divided by.
    pub fn seconds(self) -> f64 {
        self.elapsed().as_secs_f64().max(1e-9)
    }
}
