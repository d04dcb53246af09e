//! What is wrong with a store, with file and offset.

use crate::error::Error;
use std::fmt;

/// What kind of problem it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ProblemKind {
    /// One copy of something that has several is damaged; the others serve. A crash in the middle of a write leaves this too.
    Copy,
    /// A file that must be there is not.
    Missing,
    /// A segment has no header that holds and fits.
    Header,
    /// Corruption: a place that was synced holds no valid frame.
    Frame,
    /// One or more commits were lost at this place.
    Lost,
    /// A chain hash, an LSN or an end contradicts what stands before it, with no damage between.
    Chain,
    /// A valid commit frame whose payload breaks the format.
    Commit,
    /// Bytes that must be zero are not.
    NotZero,
    /// A seal or footer contradicts the frames of its segment.
    Seal,
    /// A page of a table is damaged, or a table is not built as the format says.
    Table,
    /// The sums of the manifest are not what the tables add up to.
    Sums,
    /// A segment is not as the manifest, the segment keyspace or the superblock says.
    Segment,
    /// An id in use is at or above its ceiling.
    Ceiling,
    /// A chunk or page entry names no such frame, or the frame holds other bytes than its id says.
    Chunk,
    /// A recipe is not as its blob or the cutting rules say.
    Recipe,
    /// A reference count differs from the recount.
    References,
    /// An entry of an index is missing, or has no record.
    Index,
    /// A record contradicts another one.
    Record,
}

/// A problem and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What kind.
    pub kind: ProblemKind,
    /// The file, or `catalog` for what follows from replaying the log.
    pub file: String,
    /// Where the damaged or contradicting place begins; 0 in `catalog`.
    pub offset: u64,
    /// How long it is.
    pub length: u64,
    /// In words, without any payload byte.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {} at {} (+{}): {}", self.kind, self.file, self.offset, self.length, self.what)
    }
}

/// A list of problems that grows.
#[derive(Debug, Default)]
pub(crate) struct Problems(pub(crate) Vec<Problem>);

impl Problems {
    pub(crate) fn add(&mut self, kind: ProblemKind, file: &str, place: (u64, u64), what: impl Into<String>) {
        let (offset, length) = place;
        self.0.push(Problem { kind, file: file.to_owned(), offset, length, what: what.into() });
    }

    pub(crate) fn catalog(&mut self, kind: ProblemKind, what: impl Into<String>) {
        self.add(kind, "catalog", (0, 0), what);
    }
}

/// Why a store cannot be read at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unreadable {
    /// No state of a store, and nothing that a finished store has: an `init` that did not come to its end, or no store.
    #[error("no store, or one whose init did not come to its end")]
    Unfinished,
    /// No two copies of the superblock agree.
    #[error("no two copies of the superblock agree: {0}")]
    Superblock(Error),
    /// Both copies of the manifest are missing or damaged.
    #[error("no good copy of the manifest: {0}")]
    Manifest(Error),
    /// A newer version wrote it.
    #[error(transparent)]
    Newer(Error),
    /// A file could not be opened.
    #[error(transparent)]
    Io(Error),
}

impl From<Error> for Unreadable {
    fn from(error: Error) -> Self {
        if error.is_newer() { Self::Newer(error) } else { Self::Io(error) }
    }
}
