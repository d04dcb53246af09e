//! A stream that gives a piece only when somebody else got on.

use std::{
    io::{self, Read},
    sync::{Condvar, Mutex},
    time::Duration,
};

use holdfast_benches::Noise;

/// Without any progress for so long the others are held up.
const PATIENCE: Duration = Duration::from_mins(1);

/// How far the others are.
#[derive(Default)]
pub(crate) struct Others {
    state: Mutex<(u64, bool)>,
    changed: Condvar,
}

impl Others {
    /// One more is done; says how many are.
    pub(crate) fn one_done(&self) -> u64 {
        let mut state = self.state.lock().expect("nobody panics with the lock");
        state.0 += 1;
        self.changed.notify_all();
        state.0
    }

    /// Nobody waits for them any more.
    pub(crate) fn stop(&self) {
        self.state.lock().expect("nobody panics with the lock").1 = true;
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.state.lock().expect("nobody panics with the lock").1
    }

    /// Waits until more than so many are done, and says how many.
    fn wait_beyond(&self, seen: u64) -> io::Result<u64> {
        let state = self.state.lock().expect("nobody panics with the lock");
        let waited = self.changed.wait_timeout_while(state, PATIENCE, |(done, _)| *done <= seen);
        let (state, timeout) = waited.expect("nobody panics with the lock");
        if timeout.timed_out() {
            return Err(io::Error::other("nobody else got on for a minute"));
        }
        Ok(state.0)
    }
}

/// The stream.
pub(crate) struct SlowReader<'a> {
    others: &'a Others,
    seen: u64,
    bytes: Noise,
}

impl<'a> SlowReader<'a> {
    const PIECE: usize = 64 << 10;
    /// Length of the stream.
    pub(crate) const LEN: u64 = 256 * Self::PIECE as u64;

    pub(crate) fn new(others: &'a Others) -> Self {
        Self { others, seen: 0, bytes: Noise::new(u64::MAX, Self::LEN) }
    }
}

impl Read for SlowReader<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.seen = self.others.wait_beyond(self.seen)?;
        let count = bytes.len().min(Self::PIECE);
        self.bytes.read(&mut bytes[..count])
    }
}
