//! What measuring Holdfast has in common: bytes to store, a stopwatch, what the process and its files took, and the yardsticks
//! that a figure is held against.
//!
//! It judges nothing. A figure of one machine says little; the ratio to a yardstick that was measured in the same run says more.

#![forbid(unsafe_code)]

pub mod counted;
pub mod latency;
pub mod noise;
pub mod process;
pub mod stopwatch;
pub mod yardstick;

pub use noise::Noise;
pub use stopwatch::Stopwatch;

/// Bytes of a mebibyte and of a gibibyte, for figures.
pub const MIB: f64 = 1_048_576.0;
/// Bytes of a gibibyte.
pub const GIB: f64 = 1_073_741_824.0;

/// A count as a figure; exact below 2^53.
#[expect(clippy::cast_precision_loss, reason = "no count of a measurement comes near 2^53")]
pub const fn figure(count: u64) -> f64 {
    count as f64
}
