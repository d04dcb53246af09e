//! The log: a chain of log segments, appended to under the commit lock, walked by recovery and by `verify`.
//!
//! It does not know what edits mean.

pub mod append;
pub mod group;
pub mod prepared;
pub mod replay;
mod stock;
pub mod witness;

pub use append::{Log, Tail};
pub use group::Group;
