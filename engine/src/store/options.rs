//! What callers pass in and get back.

use std::ops::Range;

use crate::{checkpoint, format::superblock, ids::Sha256, ingest::Tuning, limits::INGEST_MEMORY};

/// Options of a new store.
#[derive(Clone, Copy, Debug)]
pub struct InitOptions {
    /// They go into the superblock and never change.
    pub options: superblock::Options,
}

impl Default for InitOptions {
    fn default() -> Self {
        Self { options: superblock::Options::DEFAULT }
    }
}

/// What a store is opened for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenMode {
    /// Reading and writing; there is one writer at a time, and nobody reads beside it.
    Write,
    /// Reading only: not a byte of the store is changed.
    Read,
}

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// For what.
    pub mode: OpenMode,
    /// What the lock file says of a writer, for whoever finds the store locked.
    pub holder: String,
    /// Where streams change lanes; the defaults are measured.
    pub tuning: Tuning,
    /// When checkpoints are made.
    pub checkpoints: checkpoint::Tuning,
    /// Memory that all long streams share, in and out, in bytes. A stream that finds it used up goes on with 3 MiB of its own, on the
    /// thread that called.
    pub ingest_memory: u64,
}

impl OpenOptions {
    /// Opens with the default tuning.
    pub fn new(mode: OpenMode, holder: impl Into<String>) -> Self {
        Self {
            mode,
            holder: holder.into(),
            tuning: Tuning::default(),
            checkpoints: checkpoint::Tuning::default(),
            ingest_memory: INGEST_MEMORY,
        }
    }
}

/// What to read.
#[derive(Clone, Default, Debug)]
pub struct Get {
    /// Bytes of the artifact; all of it if not given.
    pub range: Option<Range<u64>>,
    /// Refuse before the first byte if it has another SHA-256.
    pub expect_sha256: Option<Sha256>,
}
