//! Seal and footer (FORMAT.md section 9): the end of a segment and the list of its frames.

use super::{
    Bad, Content, Decoded,
    fields::{Cursor, Fixed, layout, put},
    frame::{FrameDraft, FrameHeader, FrameKind},
    is_file_id, is_frame_offset,
    manifest::Lane,
};
use crate::{
    codec::Codec,
    ids::{ChunkId, Epoch, FileId, Lsn, TenantNumber},
    limits::FOOTER_ENTRIES_MAX,
};

/// Length of a seal's payload.
pub const LEN: usize = 80;
/// Length of a footer entry.
pub const ENTRY_LEN: usize = 56;

layout! { 80:
    END 8, FOOTER 8, SYNCED_UPTO 8, FIRST_LSN 8, NEXT_LSN 8, FRAMES 8, BYTES 8, SUCCESSOR 8, SUCCESSOR_EPOCH 16,
}

/// What a seal says.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Seal {
    /// Offset behind the seal frame.
    pub end: u64,
    /// Offset of the first footer frame.
    pub footer: u64,
    /// How far the segment was known to be synced when the seal was written.
    pub synced_upto: u64,
    /// First LSN of the segment (log).
    pub first_lsn: Lsn,
    /// The next LSN (log).
    pub next_lsn: Lsn,
    /// Chunk and page frames.
    pub frames: u64,
    /// Their bytes, headers and fill included.
    pub bytes: u64,
    /// The next log segment.
    pub successor: Option<(FileId, Epoch)>,
}

impl Seal {
    /// The payload.
    pub fn encode(&self) -> [u8; LEN] {
        let mut out = [0; LEN];
        let o = &mut out;
        put(o, at::END, &self.end.to_le_bytes());
        put(o, at::FOOTER, &self.footer.to_le_bytes());
        put(o, at::SYNCED_UPTO, &self.synced_upto.to_le_bytes());
        put(o, at::FIRST_LSN, &self.first_lsn.0.to_le_bytes());
        put(o, at::NEXT_LSN, &self.next_lsn.0.to_le_bytes());
        put(o, at::FRAMES, &self.frames.to_le_bytes());
        put(o, at::BYTES, &self.bytes.to_le_bytes());
        if let Some((id, epoch)) = self.successor {
            put(o, at::SUCCESSOR, &id.0.to_le_bytes());
            put(o, at::SUCCESSOR_EPOCH, &epoch.0);
        }
        out
    }

    /// Reads the payload of a seal frame that stands at `offset` of a segment of this lane.
    pub fn decode(payload: &[u8], lane: Lane, offset: u64) -> Decoded<Self> {
        let bytes: &[u8; LEN] = payload.try_into().map_err(|_| Bad::damaged("seal length"))?;
        let f = Fixed(bytes);
        let (id, epoch) = (FileId(f.u64(at::SUCCESSOR)), Epoch(f.bytes(at::SUCCESSOR_EPOCH)));
        let seal = Self {
            end: f.u64(at::END),
            footer: f.u64(at::FOOTER),
            synced_upto: f.u64(at::SYNCED_UPTO),
            first_lsn: Lsn(f.u64(at::FIRST_LSN)),
            next_lsn: Lsn(f.u64(at::NEXT_LSN)),
            frames: f.u64(at::FRAMES),
            bytes: f.u64(at::BYTES),
            successor: (id.0 != 0).then_some((id, epoch)),
        };
        let holds = seal.end == offset + super::frame::frame_len(LEN as u64)
            && is_frame_offset(seal.footer)
            && seal.footer < offset
            && seal.synced_upto <= seal.footer
            && match lane {
                Lane::Log => is_file_id(id) && seal.first_lsn != Lsn::NONE && seal.first_lsn <= seal.next_lsn,
                Lane::Bulk => id.0 == 0 && epoch.is_zero() && (seal.first_lsn, seal.next_lsn) == (Lsn::NONE, Lsn::NONE),
            };
        if holds { Ok(seal) } else { Err(Bad::damaged("seal fields")) }
    }
}

/// A chunk or page frame as the footer lists it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FooterEntry {
    /// Chunk or page id.
    pub id: ChunkId,
    /// Offset of the frame.
    pub offset: u64,
    /// Length of the payload as it stands.
    pub stored: u32,
    /// Its length decoded.
    pub raw: u32,
    /// Whose it is.
    pub tenant: TenantNumber,
    /// Chunk or page.
    pub kind: FrameKind,
    /// True if it is compressed.
    pub zstd: bool,
}

impl FooterEntry {
    /// The entry of a frame.
    pub fn of(header: &FrameHeader, offset: u64) -> Self {
        Self {
            id: header.chunk_id(),
            offset,
            stored: header.stored,
            raw: header.raw,
            tenant: header.tenant(),
            kind: header.kind,
            zstd: header.codec == Codec::Zstd,
        }
    }

    /// The entry of a frame that will stand at an offset.
    pub fn of_draft(draft: &FrameDraft<'_>, offset: u64) -> Self {
        Self {
            id: ChunkId(draft.id),
            offset,
            stored: u32::try_from(draft.payload.len()).expect("a frame is bounded"),
            raw: draft.raw,
            tenant: TenantNumber(u32::try_from(draft.context).expect("the context of a chunk is its tenant")),
            kind: draft.kind,
            zstd: draft.codec == Codec::Zstd,
        }
    }
}

/// Payloads of the footer frames for entries in order; one empty footer for none.
pub fn encode_footers(entries: &[FooterEntry]) -> Vec<Vec<u8>> {
    debug_assert!(entries.is_sorted(), "a footer lists frames by id and offset");
    let encode = |entries: &[FooterEntry]| {
        let mut out = Vec::with_capacity(8 + entries.len() * ENTRY_LEN);
        out.extend_from_slice(&u32::try_from(entries.len()).expect("entries are bounded").to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        for entry in entries {
            out.extend_from_slice(&entry.id.0);
            out.extend_from_slice(&entry.offset.to_le_bytes());
            out.extend_from_slice(&entry.stored.to_le_bytes());
            out.extend_from_slice(&entry.raw.to_le_bytes());
            out.extend_from_slice(&entry.tenant.0.to_le_bytes());
            out.extend_from_slice(&[entry.kind as u8, u8::from(entry.zstd), 0, 0]);
        }
        out
    };
    if entries.is_empty() { vec![encode(entries)] } else { entries.chunks(FOOTER_ENTRIES_MAX).map(encode).collect() }
}

/// Bytes that footer and seal take for a number of entries.
pub fn closing_len(entries: u64) -> u64 {
    let full = entries / FOOTER_ENTRIES_MAX as u64;
    let rest = entries % FOOTER_ENTRIES_MAX as u64;
    let footer = |n: u64| super::frame::frame_len(8 + n * ENTRY_LEN as u64);
    let last = if rest > 0 || entries == 0 { footer(rest) } else { 0 };
    full * footer(FOOTER_ENTRIES_MAX as u64) + last + super::frame::frame_len(LEN as u64)
}

/// Reads one footer frame's payload.
pub fn decode_footer(payload: &[u8]) -> Decoded<Vec<FooterEntry>> {
    let mut c = Cursor::new(payload, "footer");
    let count = c.u32()? as usize;
    c.reserved(4)?;
    if count > FOOTER_ENTRIES_MAX || c.remaining() != count * ENTRY_LEN {
        return Err(Bad::damaged("footer count"));
    }
    let entries = (0..count).map(|_| decode_entry(&mut c)).collect::<Decoded<Vec<_>>>()?;
    let rises = entries.is_sorted_by(|a, b| (a.id, a.offset) < (b.id, b.offset));
    if rises { Ok(entries) } else { Err(Bad::damaged("footer order")) }
}

fn decode_entry(c: &mut Cursor<'_>) -> Decoded<FooterEntry> {
    let bad = Bad::damaged("footer entry");
    let entry = FooterEntry {
        id: ChunkId(c.bytes()?),
        offset: c.u64()?,
        stored: c.u32()?,
        raw: c.u32()?,
        tenant: TenantNumber(c.u32()?),
        kind: FrameKind::from_number(c.u8()?).ok_or(bad)?,
        zstd: Codec::from_number(c.u8()?).ok_or(bad)? == Codec::Zstd,
    };
    c.reserved(2)?;
    let FooterEntry { offset, stored, raw, tenant, kind, .. } = entry;
    let content =
        Content { offset, stored, raw, tenant, codec: if entry.zstd { Codec::Zstd } else { Codec::Raw }, kind };
    if content.holds() { Ok(entry) } else { Err(bad) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::FRAMES_START;

    fn entry(n: u8) -> FooterEntry {
        FooterEntry {
            id: ChunkId([n; 32]),
            offset: 8192 + u64::from(n) * 64,
            stored: 10,
            raw: 20,
            tenant: TenantNumber(1),
            kind: FrameKind::Chunk,
            zstd: true,
        }
    }

    #[test]
    fn a_seal_comes_back_and_only_at_its_place() {
        let seal = Seal {
            end: 9000 * 64 + 192,
            footer: 8000 * 64,
            synced_upto: 7000 * 64,
            first_lsn: Lsn::FIRST,
            next_lsn: Lsn::FIRST.plus(3),
            frames: 1,
            bytes: 128,
            successor: Some((FileId(2), Epoch([1; 16]))),
        };
        assert_eq!(Seal::decode(&seal.encode(), Lane::Log, 9000 * 64), Ok(seal));
        assert!(Seal::decode(&seal.encode(), Lane::Log, 9001 * 64).is_err());
    }

    #[test]
    fn a_seal_of_one_lane_is_none_of_the_other() {
        let bulk = Seal { end: 9000 * 64 + 192, footer: 8000 * 64, synced_upto: 8000 * 64, ..Seal::default() };
        let log =
            Seal { first_lsn: Lsn::FIRST, next_lsn: Lsn::FIRST, successor: Some((FileId(2), Epoch([1; 16]))), ..bulk };
        let decode = |seal: &Seal, lane| Seal::decode(&seal.encode(), lane, 9000 * 64);
        assert_eq!((decode(&bulk, Lane::Bulk), decode(&log, Lane::Log)), (Ok(bulk), Ok(log)));
        assert!(decode(&bulk, Lane::Log).is_err() && decode(&log, Lane::Bulk).is_err());
        let wrong = [
            Seal { first_lsn: Lsn::NONE, ..log },
            Seal { next_lsn: Lsn::NONE, ..log },
            Seal { successor: Some((FileId(u64::MAX), Epoch([1; 16]))), ..log },
            Seal { footer: 8000 * 64 + 1, ..log },
            Seal { footer: 9000 * 64, ..log },
            Seal { synced_upto: 8000 * 64 + 64, ..log },
        ];
        assert!(wrong.iter().all(|seal| decode(seal, Lane::Log).is_err()));
    }

    #[test]
    fn footers_come_back_and_take_the_room_that_was_kept() {
        for count in [0, 1, 3, FOOTER_ENTRIES_MAX, FOOTER_ENTRIES_MAX + 1] {
            let entries: Vec<_> =
                (0..count).map(|n| FooterEntry { offset: FRAMES_START + n as u64 * 64, ..entry(1) }).collect();
            let footers = encode_footers(&entries);
            let back: Vec<_> = footers.iter().flat_map(|f| decode_footer(f).expect("valid")).collect();
            assert_eq!(back, entries);
            let len: u64 = footers.iter().map(|f| super::super::frame::frame_len(f.len() as u64)).sum();
            assert_eq!(len + 192, closing_len(count as u64));
        }
    }

    #[test]
    fn a_footer_with_a_wrong_count_is_refused() {
        let mut footer = encode_footers(&[entry(1), entry(2)]).remove(0);
        footer[0] = 3;
        assert!(decode_footer(&footer).is_err());
        footer[..4].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(decode_footer(&footer).is_err());
    }
}
