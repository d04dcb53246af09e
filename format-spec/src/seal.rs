//! Seal and footer: section 9 of `FORMAT.md`.
//!
//! It does not know the frames that they describe.

use crate::error::{Error, Result};
use crate::fields::Fields;
use crate::frame::{Codec, Kind};
use crate::keyspace::DataPlace;
use crate::segment::Lane;
use crate::{Id16, Id32, limits};

/// The payload of a seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the table")]
pub struct Seal {
    pub end: u64,
    pub footer_offset: u64,
    pub synced_upto: u64,
    pub first_lsn: u64,
    pub next_lsn: u64,
    pub frame_count: u64,
    pub byte_count: u64,
    /// Log: the segment that goes on.
    pub successor: Option<(u64, Id16)>,
}

impl Seal {
    /// Reads the payload at `base` of a segment of this lane.
    pub fn parse(payload: &[u8], lane: Lane, base: u64) -> Result<Self> {
        let log = lane == Lane::Log;
        let mut f = Fields::new("seal", payload, base);
        let end = f.u64("end")?;
        // 128 bytes of payload and fill stand behind the header.
        f.check(Some(end) == base.checked_add(128), Error::Mismatch)?;
        let footer_offset = f.u64("footer offset")?;
        // It stands before the header of the seal, which is 64 bytes before the payload.
        f.check(limits::is_frame_offset(footer_offset) && footer_offset < base.saturating_sub(64), Error::Value)?;
        let synced_upto = f.u64("synced_upto")?;
        f.check(synced_upto <= footer_offset, Error::Value)?;
        let first_lsn = f.u64("first LSN")?;
        f.check((first_lsn != 0) == log, Error::Value)?;
        let next_lsn = f.u64("next LSN")?;
        f.check(if log { next_lsn >= first_lsn } else { next_lsn == 0 }, Error::Value)?;
        let frame_count = f.u64("frame count")?;
        let byte_count = f.u64("byte count")?;
        let successor_id = f.u64("successor id")?;
        f.check(if log { limits::is_file_id(successor_id) } else { successor_id == 0 }, Error::Value)?;
        let epoch: Id16 = f.array("successor epoch")?;
        f.check(log || epoch == [0; 16], Error::Value)?;
        f.end()?;
        let successor = log.then_some((successor_id, epoch));
        Ok(Self { end, footer_offset, synced_upto, first_lsn, next_lsn, frame_count, byte_count, successor })
    }
}

/// A chunk or page frame of a sealed segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are those of the table")]
pub struct FooterEntry {
    pub id: Id32,
    pub offset: u64,
    pub stored: u32,
    pub raw: u32,
    pub tenant: u32,
    pub kind: Kind,
    pub codec: Codec,
}

/// Reads the payload of a footer frame at `base`. The order of the entries holds within it.
pub fn footer(payload: &[u8], base: u64) -> Result<Vec<FooterEntry>> {
    let mut f = Fields::new("footer", payload, base);
    let count = f.u32("entry count")?;
    f.check(count <= limits::FOOTER_ENTRIES, Error::Bound)?;
    f.reserved(4)?;
    let mut entries: Vec<FooterEntry> = Vec::new();
    for _ in 0..count {
        let id = f.array("entry id")?;
        let place = f.place();
        let DataPlace { offset, stored, raw, tenant, codec, kind } = DataPlace::parse(&mut f, true)?;
        let entry = FooterEntry { id, offset, stored, raw, tenant, kind, codec };
        if entries.last().is_some_and(|before| (before.id, before.offset) >= (id, offset)) {
            return Err(Error::Order(place));
        }
        entries.push(entry);
    }
    f.end()?;
    Ok(entries)
}
