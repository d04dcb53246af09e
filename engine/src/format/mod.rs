//! Bytes to structs and back, one structure a file. FORMAT.md gives the tables; the code here does not repeat them.
//!
//! Pure: no I/O, no clock, no keys but those that are passed in. Every byte is hostile until it was checked.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

use crate::{
    codec::Codec,
    ids::{FileId, TenantNumber},
    limits::{CHUNK_LEN_MAX, FILE_ID_MAX, FRAME_ALIGN, FRAMES_START},
};
use frame::FrameKind;

pub mod artifact;
pub mod claim;
pub mod commit;
pub mod conversation;
pub mod fence;
pub mod fields;
pub mod frame;
pub mod keyspace;
pub mod manifest;
pub mod page;
pub mod run;
pub mod seal;
pub mod segment_header;
pub mod superblock;
pub mod table;
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

/// True for a number that a file may have.
const fn is_file_id(id: FileId) -> bool {
    1 <= id.0 && id.0 <= FILE_ID_MAX
}

/// True for an offset at which a frame may stand.
const fn is_frame_offset(offset: u64) -> bool {
    offset >= FRAMES_START && offset.is_multiple_of(FRAME_ALIGN)
}

/// What a chunk's value and a footer's entry say of a frame.
#[derive(Clone, Copy)]
struct Content {
    offset: u64,
    stored: u32,
    raw: u32,
    tenant: TenantNumber,
    codec: Codec,
    kind: FrameKind,
}

impl Content {
    /// True if there can be such a chunk or page.
    fn holds(&self) -> bool {
        let Self { offset, stored, raw, tenant, codec, kind } = *self;
        let lengths_hold = match (kind, codec) {
            (FrameKind::Page, Codec::Raw) => {
                raw == stored && (page::LEN_MIN..=page::LEN_MAX).contains(&(stored as usize))
            }
            (FrameKind::Chunk, Codec::Raw) => raw == stored,
            (FrameKind::Chunk, Codec::Zstd) => raw > stored,
            _ => false,
        };
        lengths_hold && is_frame_offset(offset) && stored >= 1 && raw <= CHUNK_LEN_MAX && tenant.0 != 0
    }
}

/// Result of a decoder.
pub type Decoded<T> = Result<T, Bad>;

/// The only format version that this release reads and writes.
pub const VERSION: u32 = 1;
