//! The log: a chain of log segments, appended to under the commit lock, walked by recovery and by `verify`.
//!
//! It does not know what edits mean.

pub mod append;
mod chain;
pub mod group;
pub mod prepared;
pub mod replay;
mod stock;
pub mod witness;

pub use append::{Log, Tail};
pub use group::Group;

impl replay::Found {
    /// Bytes of frames behind a replay position at this offset of the first segment.
    pub fn replayed_bytes(&self, offset: u64) -> u64 {
        let frames = self
            .links
            .iter()
            .map(|link| link.end.min(link.len).saturating_sub(crate::limits::FRAMES_START))
            .fold(0, u64::saturating_add);
        frames.saturating_sub(offset.saturating_sub(crate::limits::FRAMES_START))
    }
}
