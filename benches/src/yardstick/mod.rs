//! What the machine does without a store: the figures that a store's are held against.

mod bare_log;
mod digests;
mod random;
mod sequential;

pub use bare_log::BareLog;
pub use digests::Digests;
pub use random::RandomPages;
pub use sequential::{Write, drop_caches, read_cold, write_sequential};
