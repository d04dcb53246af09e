//! Who owns what, and what that keeps alive: state in, edits out.
//!
//! Pure: no file, no clock, no lock. Time, LSN and ids are passed in; what comes out goes through the commit door.

mod door;

pub mod artifact;
pub mod names;
pub mod references;
pub mod upload;

pub use door::{AccountScope, Door};
