//! A second reader of Holdfast's files, written from `FORMAT.md` alone and in its order.
//!
//! It shares no code and no constant with the engine, so that a mistake in one of them shows as a difference between the two. It reads
//! whole structures, walks a log, reads a whole closed store and recounts it ([`store`]), prints a file field by field ([`inspect`]) and
//! makes random valid stores ([`generate`]).
//!
//! It does not know the engine, locks, threads or the operating system: files come in through [`Bytes`] and [`Files`]. It never
//! writes to a store, and no error or record of it carries payload bytes, names or keys of a tenant.
#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing)]

mod bytes;
pub mod commit;
pub mod cut;
pub mod derive;
mod error;
mod fields;
mod files;
pub mod frame;
pub mod generate;
pub mod inspect;
pub mod keyspace;
pub mod limits;
pub mod log;
pub mod manifest;
mod problem;
pub mod recipe;
pub mod seal;
pub mod segment;
pub mod store;
pub mod superblock;
pub mod table;

pub use bytes::{Bytes, ReadSeek, first_nonzero, read_vec};
pub use error::{Error, Place, Result};
pub use files::{FileName, Files, manifest_names, reserve_name, segment_name, table_names};

/// The UUID of a store or the epoch of a segment.
pub type Id16 = [u8; 16];
/// An identity: of a chunk, a page, a blob key, a chain hash.
pub type Id32 = [u8; 32];
