//! What callers pass in and get back.

use std::ops::Range;

use crate::{
    format::{artifact::Origin, superblock},
    ids::{ArtifactId, Sha256, Time},
};

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
}

/// A tenant and an account, as the caller names them.
#[derive(Clone, Copy, Debug)]
pub struct AccountScope<'a> {
    /// The tenant; a new store has `default`.
    pub tenant: &'a str,
    /// The account.
    pub account: &'a str,
}

/// A new artifact of an account.
#[derive(Clone, Copy, Debug)]
pub struct Put<'a> {
    /// Whose it is to be.
    pub scope: AccountScope<'a>,
    /// File name, by the name rule.
    pub name: &'a str,
    /// Where the bytes come from.
    pub origin: Origin,
    /// What the client says it is.
    pub media_type: Option<&'a str>,
    /// Names the operation: a retry with the same id gets the same artifact, for seven days.
    pub op_id: Option<&'a str>,
    /// The caller's own order.
    pub order: Option<u64>,
    /// When it ends.
    pub expires_at: Option<Time>,
    /// How long the source is likely to be.
    pub size_hint: Option<u64>,
}

/// What a put gives back: the artifact is durable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PutReply {
    /// Its id.
    pub id: ArtifactId,
    /// Its name, normalised.
    pub name: String,
    /// Its bytes.
    pub size: u64,
    /// Their SHA-256.
    pub sha256: Sha256,
    /// Its media type.
    pub media_type: String,
    /// True if an earlier call with the same op id made it.
    pub replayed: bool,
}

/// What to read.
#[derive(Clone, Default, Debug)]
pub struct Get {
    /// Bytes of the artifact; all of it if not given.
    pub range: Option<Range<u64>>,
    /// Refuse before the first byte if it has another SHA-256.
    pub expect_sha256: Option<Sha256>,
}
