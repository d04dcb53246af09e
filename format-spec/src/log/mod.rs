//! The log: section 10 of `FORMAT.md`.
//!
//! [`scan`] finds the frames of one segment, valid or not; `chain` finds the segments that make up the log; `walk` goes through them,
//! tells corruption from the end of the log, and hands commits on. None of them knows what edits mean.

pub(crate) mod chain;
pub mod scan;
mod sealed;
mod track;
pub(crate) mod walk;

pub(crate) use sealed::check_sealed;

use crate::{Id16, Id32};

/// The log of a store, as it was walked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// Its segments, from the replay segment on.
    pub segments: Vec<LogSegment>,
    /// Where it ends.
    pub end: End,
}

/// A segment of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSegment {
    /// Its id.
    pub id: u64,
    /// Its epoch.
    pub epoch: Id16,
    /// Where its frames end.
    pub end: u64,
    /// Whether a valid seal stands there.
    pub sealed: bool,
}

/// The end of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The last segment.
    pub segment: u64,
    /// Offset in it.
    pub offset: u64,
    /// The next LSN; none if it is not known because of damage.
    pub next_lsn: Option<u64>,
    /// The chain hash there; none likewise.
    pub chain: Option<Id32>,
    /// The engine's time of the last commit.
    pub hw: u64,
    /// Torn: the first byte from there on that is not zero.
    pub torn: Option<u64>,
}
