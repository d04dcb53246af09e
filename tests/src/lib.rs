//! Campaigns against the store: a seeded workload on a simulated disk, every state that a crash or a failed call could leave, and an
//! oracle that says what must hold in each.
//!
//! This is the only place where the engine and the independent parser of `holdfast-format-spec` meet. Nothing here is part of a
//! release.

pub mod at_rest;
mod binary;
pub mod campaign;
#[cfg(feature = "canaries")]
pub mod canaries;
pub mod coverage;
pub mod crash;
pub mod crowd;
pub mod differential;
pub mod faults;
pub mod harness;
pub mod kills;
pub mod oracle;
pub mod random;
pub mod real;
pub mod small;
