//! Finds the frames of a segment one behind the other, and goes on behind damage.
//!
//! It does not know where the log ends, so what it calls a gap may be damage, a torn end or space that was never written.

use crate::bytes::{Bytes, read_vec};
use crate::error::{Error, Result};
use crate::frame::{self, Frame, Header, Kind, Rules};
use crate::limits;

/// What stands at a place of a segment.
#[derive(Debug)]
pub enum Found<'a> {
    /// A valid frame.
    Frame(&'a Frame),
    /// No valid frame.
    Gap(Gap),
}

/// Bytes without a valid frame, up to the next multiple of 64 that holds a valid header, or to the limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Where it begins.
    pub from: u64,
    /// Where the next valid header stands.
    pub to: u64,
    /// What is wrong at `from`.
    pub error: Error,
    /// The header at `from`, if that holds and only the payload does not.
    pub header: Option<Header>,
}

/// Visits what stands in `from..limit`, up to and including the first valid seal. Holds one frame in memory at a time.
pub fn scan(
    bytes: &dyn Bytes,
    from: u64,
    limit: u64,
    rules: &Rules,
    visit: &mut dyn FnMut(Found<'_>) -> Result<()>,
) -> Result<()> {
    let limit = limit.min(bytes.len());
    let mut at = from;
    while at < limit {
        match frame::read(bytes, at, limit, rules) {
            Ok(frame) => {
                visit(Found::Frame(&frame))?;
                if frame.header.kind == Kind::Seal {
                    return Ok(());
                }
                at = frame.end();
            }
            Err(invalid) => {
                let to = next_header(bytes, at + limits::FRAME_ALIGN, limit, rules)?;
                visit(Found::Gap(Gap { from: at, to, error: invalid.error, header: invalid.header }))?;
                at = to;
            }
        }
    }
    Ok(())
}

/// The first multiple of 64 from `from` on that holds a valid header, or the limit.
fn next_header(bytes: &dyn Bytes, from: u64, limit: u64, rules: &Rules) -> Result<u64> {
    const WINDOW: u64 = 64 * 1024;
    let mut at = from;
    while at < limit {
        let window = read_vec(bytes, at, WINDOW.min(limit - at))?;
        for (place, head) in (at..).step_by(64).zip(window.chunks_exact(64)) {
            let head = head.first_chunk().expect("chunks of 64 bytes were asked for");
            if head.starts_with(b"HFr1") && Header::parse(head, place, rules).is_ok() {
                return Ok(place);
            }
        }
        at += WINDOW;
    }
    Ok(limit)
}
