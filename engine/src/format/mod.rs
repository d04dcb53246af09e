//! Bytes to structs and back, one structure a file. FORMAT.md gives the tables; the code here does not repeat them.
//!
//! Pure: no I/O, no clock, no keys but those that are passed in. Every byte is hostile until it was checked.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

pub mod artifact;
pub mod commit;
pub mod fields;
pub mod frame;
pub mod keyspace;
pub mod manifest;
pub mod page;
pub mod seal;
pub mod segment_header;
pub mod superblock;
pub mod upload;
pub mod value;

/// Why bytes are not what they should be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bad {
    /// The structure and the field.
    pub what: &'static str,
    /// True if a newer release may read it.
    pub newer: bool,
}

impl Bad {
    /// Damage.
    pub const fn damaged(what: &'static str) -> Self {
        Self { what, newer: false }
    }

    /// A version, tag or keyspace of a later release.
    pub const fn newer(what: &'static str) -> Self {
        Self { what, newer: true }
    }
}

/// Result of a decoder.
pub type Decoded<T> = Result<T, Bad>;

/// The only format version that this release reads and writes.
pub const VERSION: u32 = 1;
