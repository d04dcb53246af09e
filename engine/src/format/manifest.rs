//! The manifest (FORMAT.md section 4): tenants and segments, immutable, in two equal files.

use super::{Bad, Decoded, VERSION, fields::Cursor, is_file_id, is_frame_offset};
use crate::{
    checksum::crc,
    digest::tenant_check,
    ids::{Epoch, FileId, StoreUuid, TenantNumber},
    limits::{MANIFEST_SEGMENTS_MAX, TENANTS_MAX},
};

const MAGIC: &[u8; 8] = b"HFMANIFT";
const WHAT: &str = "manifest";
const HEADER_LEN: u64 = 96;
const TENANT_LEN: u64 = 56;
const SEGMENT_LEN: u64 = 40;
/// Length of the longest manifest.
pub const LEN_MAX: u64 = HEADER_LEN + TENANT_LEN * TENANTS_MAX as u64 + SEGMENT_LEN * MANIFEST_SEGMENTS_MAX as u64 + 8;

/// Lane of a segment. The numbers are format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Lane {
    /// Commits, and chunks of small streams.
    Log = 1,
    /// Chunks of long streams.
    Bulk = 2,
}

impl Lane {
    /// Reads the number.
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Log),
            2 => Some(Self::Bulk),
            _ => None,
        }
    }
}

/// State of a segment. The numbers are format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum SegmentState {
    /// Frames may be appended.
    Active = 1,
    /// It ends with a footer and a seal.
    Sealed = 2,
}

impl SegmentState {
    /// Reads the number.
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Active),
            2 => Some(Self::Sealed),
            _ => None,
        }
    }
}

/// A tenant with its key.
#[derive(Clone, PartialEq, Eq)]
pub struct Tenant {
    /// Its number.
    pub number: TenantNumber,
    /// The key from which its chunk, page and blob keys derive.
    pub key: [u8; 32],
}

impl std::fmt::Debug for Tenant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tenant").field("number", &self.number).finish_non_exhaustive()
    }
}

/// A segment that the manifest names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ManifestSegment {
    /// Its id.
    pub id: FileId,
    /// Its epoch.
    pub epoch: Epoch,
    /// Its lane.
    pub lane: Lane,
    /// Its state.
    pub state: SegmentState,
    /// Where it ends, if sealed.
    pub end: u64,
}

/// A manifest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Manifest {
    /// The store.
    pub uuid: StoreUuid,
    /// The generation, also in its name.
    pub generation: u64,
    /// Tenants by number.
    pub tenants: Vec<Tenant>,
    /// Segments by id.
    pub segments: Vec<ManifestSegment>,
}

impl Manifest {
    /// The bytes of either file.
    pub fn encode(&self) -> Vec<u8> {
        let count = |len: usize| u32::try_from(len).expect("counts are bounded").to_le_bytes();
        let mut out = Vec::new();
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&self.uuid.0);
        out.extend_from_slice(&self.generation.to_le_bytes());
        out.extend_from_slice(&count(self.tenants.len()));
        out.extend_from_slice(&count(self.segments.len()));
        // No tables, and a ledger head of zeros.
        out.extend_from_slice(&[0; 48]);
        for tenant in &self.tenants {
            out.extend_from_slice(&tenant.number.0.to_le_bytes());
            out.extend_from_slice(&[0; 4]);
            out.extend_from_slice(&tenant.key);
            out.extend_from_slice(&tenant_check(&tenant.key));
        }
        for segment in &self.segments {
            out.extend_from_slice(&segment.id.0.to_le_bytes());
            out.extend_from_slice(&segment.epoch.0);
            out.extend_from_slice(&[segment.lane as u8, segment.state as u8, 0, 0, 0, 0, 0, 0]);
            out.extend_from_slice(&segment.end.to_le_bytes());
        }
        out.extend_from_slice(&[0; 4]);
        let checksum = crc(&salt(self.uuid, self.generation), &out);
        out.extend_from_slice(&checksum.to_le_bytes());
        out
    }

    /// Reads either file.
    pub fn decode(bytes: &[u8], uuid: StoreUuid, generation: u64) -> Decoded<Self> {
        let (body, checksum) = bytes.split_last_chunk::<4>().ok_or(Bad::damaged("manifest length"))?;
        if u32::from_le_bytes(*checksum) != crc(&salt(uuid, generation), body) {
            return Err(Bad::damaged("manifest checksum"));
        }
        let mut c = Cursor::new(body, WHAT);
        if &c.bytes::<8>()? != MAGIC {
            return Err(Bad::damaged("manifest magic"));
        }
        if c.u32()? != VERSION {
            return Err(Bad::newer("manifest version"));
        }
        c.reserved(4)?;
        if c.bytes::<16>()? != uuid.0 || c.u64()? != generation {
            return Err(Bad::damaged("manifest of another store or generation"));
        }
        let (tenant_count, segment_count) = (c.u32()?, c.u32()?);
        if c.u32()? != 0 {
            return Err(Bad::newer("manifest tables"));
        }
        c.reserved(44)?;
        let expected = TENANT_LEN * u64::from(tenant_count) + SEGMENT_LEN * u64::from(segment_count) + 4;
        if !(1..=TENANTS_MAX).contains(&tenant_count)
            || !(1..=MANIFEST_SEGMENTS_MAX).contains(&segment_count)
            || c.remaining() as u64 != expected
        {
            return Err(Bad::damaged("manifest counts"));
        }
        let tenants = (0..tenant_count).map(|_| decode_tenant(&mut c)).collect::<Decoded<Vec<_>>>()?;
        let segments = (0..segment_count).map(|_| decode_segment(&mut c)).collect::<Decoded<Vec<_>>>()?;
        c.reserved(4)?;
        let ordered = tenants.is_sorted_by(|a, b| a.number < b.number) && segments.is_sorted_by(|a, b| a.id < b.id);
        if ordered { Ok(Self { uuid, generation, tenants, segments }) } else { Err(Bad::damaged("manifest order")) }
    }
}

fn salt(uuid: StoreUuid, generation: u64) -> [u8; 24] {
    let mut salt = [0; 24];
    let (first, second) = salt.split_at_mut(16);
    first.copy_from_slice(&uuid.0);
    second.copy_from_slice(&generation.to_le_bytes());
    salt
}

fn decode_tenant(c: &mut Cursor<'_>) -> Decoded<Tenant> {
    let number = TenantNumber(c.u32()?);
    c.reserved(4)?;
    let key = c.bytes()?;
    if number.0 == 0 || c.bytes()? != tenant_check(&key) {
        return Err(Bad::damaged("manifest tenant"));
    }
    Ok(Tenant { number, key })
}

fn decode_segment(c: &mut Cursor<'_>) -> Decoded<ManifestSegment> {
    let bad = Bad::damaged("manifest segment");
    let id = FileId(c.u64()?);
    let epoch = Epoch(c.bytes()?);
    let lane = Lane::from_number(c.u8()?).ok_or(bad)?;
    let state = SegmentState::from_number(c.u8()?).ok_or(bad)?;
    c.reserved(6)?;
    let end = c.u64()?;
    let end_holds = if state == SegmentState::Sealed { is_frame_offset(end) } else { end == 0 };
    let holds = is_file_id(id) && end_holds;
    if holds { Ok(ManifestSegment { id, epoch, lane, state, end }) } else { Err(bad) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Manifest {
        Manifest {
            uuid: StoreUuid([1; 16]),
            generation: 3,
            tenants: vec![Tenant { number: TenantNumber(1), key: [2; 32] }],
            segments: vec![
                ManifestSegment {
                    id: FileId(1),
                    epoch: Epoch([3; 16]),
                    lane: Lane::Log,
                    state: SegmentState::Sealed,
                    end: 9024,
                },
                ManifestSegment {
                    id: FileId(9),
                    epoch: Epoch([4; 16]),
                    lane: Lane::Bulk,
                    state: SegmentState::Active,
                    end: 0,
                },
            ],
        }
    }

    #[test]
    fn a_manifest_comes_back() {
        assert_eq!(Manifest::decode(&sample().encode(), StoreUuid([1; 16]), 3), Ok(sample()));
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_found() {
        let good = sample().encode();
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(Manifest::decode(&bad, StoreUuid([1; 16]), 3).is_err(), "bit {bit}");
        }
        for len in 0..good.len() {
            assert!(Manifest::decode(&good[..len], StoreUuid([1; 16]), 3).is_err(), "length {len}");
        }
    }

    #[test]
    fn lanes_and_states_have_the_numbers_of_the_format() {
        assert_eq!((Lane::Log as u8, Lane::Bulk as u8), (1, 2));
        assert_eq!((SegmentState::Active as u8, SegmentState::Sealed as u8), (1, 2));
        assert_eq!(Lane::from_number(0), None);
        assert_eq!(SegmentState::from_number(3), None);
    }
}
