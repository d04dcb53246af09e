//! Holdfast: a content-addressed, log-structured blob store in which ownership, retention and erasure are primitives of the engine.
//!
//! `docs/ARCHITECTURE.md` gives the floors; `format-spec/FORMAT.md` the bytes.

pub mod clock;
pub mod disk;
pub mod entropy;
mod error;
pub mod ids;
mod sync;

pub use error::{Error, Kind, Place, Result};
