//! The manifest (FORMAT.md section 4): tenants, segments and tables, immutable, in two equal files.

use super::{
    Bad, Decoded, VERSION,
    fields::Cursor,
    is_file_id, is_frame_offset,
    keyspace::{Keyspace, key_holds},
    table::PAGES_MAX,
};
use crate::{
    checksum::crc,
    digest::tenant_check,
    ids::{Epoch, FileId, Lsn, StoreUuid, TenantNumber, Time},
    limits::{KEY_LEN_MAX, MANIFEST_SEGMENTS_MAX, MANIFEST_TABLES_MAX, TENANTS_MAX},
};

const MAGIC: &[u8; 8] = b"HFMANIFT";
const WHAT: &str = "manifest";
const HEADER_LEN: u64 = 96;
const TENANT_LEN: u64 = 56;
const SEGMENT_LEN: u64 = 40;
const SUMS_LEN: u64 = 64;
const TABLE_LEN_MAX: u64 = 32 + 2 * (4 + KEY_LEN_MAX as u64);
/// Length of the longest manifest.
pub const LEN_MAX: u64 = HEADER_LEN
    + TENANT_LEN * TENANTS_MAX as u64
    + SEGMENT_LEN * MANIFEST_SEGMENTS_MAX as u64
    + SUMS_LEN
    + TABLE_LEN_MAX * MANIFEST_TABLES_MAX as u64
    + 8;
const MIRRORED: u32 = 1;

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

/// A table that the manifest names. Tables of one range of LSNs are one run: none of their keys overlap.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ManifestTable {
    /// Its id.
    pub id: FileId,
    /// Its pages.
    pub pages: u32,
    /// It has a second copy.
    pub mirrored: bool,
    /// It holds edits from this LSN
    pub first_lsn: Lsn,
    /// to this one.
    pub last_lsn: Lsn,
    /// Its first key,
    pub first: (Keyspace, Vec<u8>),
    /// and its last.
    pub last: (Keyspace, Vec<u8>),
}

/// What the tables add up to, and what replay from the manifest's position would not know any more.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Sums {
    /// Engine time of the last commit before the position.
    pub hw: Time,
    /// Artifact records.
    pub artifacts: u64,
    /// Sum of their sizes.
    pub logical_bytes: u64,
    /// Blobs.
    pub blobs: u64,
    /// Chunks with references, without pages.
    pub chunks: u64,
    /// Their raw bytes.
    pub unique_bytes: u64,
    /// Bytes of all referenced frames.
    pub live_bytes: u64,
    /// Bytes of chunk and page frames in log segments before the replay segment.
    pub log_bytes: u64,
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
    /// Without tables all zero, and not in the file.
    pub sums: Sums,
    /// Tables by rising LSN, those of one run by rising key.
    pub tables: Vec<ManifestTable>,
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
        out.extend_from_slice(&count(self.tables.len()));
        // A ledger head of zeros.
        out.extend_from_slice(&[0; 44]);
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
        if !self.tables.is_empty() {
            for number in self.sums.numbers() {
                out.extend_from_slice(&number.to_le_bytes());
            }
        }
        for table in &self.tables {
            encode_table(&mut out, table);
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
        let table_count = c.u32()?;
        c.reserved(44)?;
        let fixed = TENANT_LEN * u64::from(tenant_count) + SEGMENT_LEN * u64::from(segment_count) + 4;
        if !(1..=TENANTS_MAX).contains(&tenant_count)
            || !(1..=MANIFEST_SEGMENTS_MAX).contains(&segment_count)
            || table_count > MANIFEST_TABLES_MAX
            || (c.remaining() as u64) < fixed
        {
            return Err(Bad::damaged("manifest counts"));
        }
        let tenants = (0..tenant_count).map(|_| decode_tenant(&mut c)).collect::<Decoded<Vec<_>>>()?;
        let segments = (0..segment_count).map(|_| decode_segment(&mut c)).collect::<Decoded<Vec<_>>>()?;
        let sums = if table_count > 0 { Sums::decode(&mut c)? } else { Sums::default() };
        let tables = (0..table_count).map(|_| decode_table(&mut c)).collect::<Decoded<Vec<_>>>()?;
        c.reserved(4)?;
        c.end()?;
        let ordered = tenants.is_sorted_by(|a, b| a.number < b.number)
            && segments.is_sorted_by(|a, b| a.id < b.id)
            && tables.is_sorted_by(stands_before);
        let manifest = Self { uuid, generation, tenants, segments, sums, tables };
        if ordered { Ok(manifest) } else { Err(Bad::damaged("manifest order")) }
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

impl Sums {
    const fn numbers(&self) -> [u64; 8] {
        [
            self.hw.0,
            self.artifacts,
            self.logical_bytes,
            self.blobs,
            self.chunks,
            self.unique_bytes,
            self.live_bytes,
            self.log_bytes,
        ]
    }

    fn decode(c: &mut Cursor<'_>) -> Decoded<Self> {
        Ok(Self {
            hw: Time(c.u64()?),
            artifacts: c.u64()?,
            logical_bytes: c.u64()?,
            blobs: c.u64()?,
            chunks: c.u64()?,
            unique_bytes: c.u64()?,
            live_bytes: c.u64()?,
            log_bytes: c.u64()?,
        })
    }
}

fn encode_table(out: &mut Vec<u8>, table: &ManifestTable) {
    out.extend_from_slice(&table.id.0.to_le_bytes());
    out.extend_from_slice(&table.pages.to_le_bytes());
    out.extend_from_slice(&if table.mirrored { MIRRORED } else { 0 }.to_le_bytes());
    out.extend_from_slice(&table.first_lsn.0.to_le_bytes());
    out.extend_from_slice(&table.last_lsn.0.to_le_bytes());
    for (keyspace, key) in [&table.first, &table.last] {
        out.extend_from_slice(&[*keyspace as u8, 0]);
        out.extend_from_slice(&u16::try_from(key.len()).expect("a key is bounded").to_le_bytes());
        out.extend_from_slice(key);
    }
}

fn decode_table(c: &mut Cursor<'_>) -> Decoded<ManifestTable> {
    let bad = Bad::damaged("manifest table");
    let (id, pages, flags) = (FileId(c.u64()?), c.u32()?, c.u32()?);
    let (first_lsn, last_lsn) = (Lsn(c.u64()?), Lsn(c.u64()?));
    let mut bound = || {
        let keyspace = Keyspace::from_number(c.u8()?).ok_or(Bad::newer("keyspace of a table"))?;
        c.reserved(1)?;
        let len = usize::from(c.u16()?);
        let key = c.take(len)?.to_vec();
        if key_holds(keyspace, &key) { Ok((keyspace, key)) } else { Err(bad) }
    };
    let (first, last) = (bound()?, bound()?);
    let holds = is_file_id(id)
        && (2..=PAGES_MAX).contains(&pages)
        && flags <= MIRRORED
        && Lsn::NONE < first_lsn
        && first_lsn <= last_lsn
        && first <= last;
    let mirrored = flags == MIRRORED;
    if holds { Ok(ManifestTable { id, pages, mirrored, first_lsn, last_lsn, first, last }) } else { Err(bad) }
}

/// True for two tables of one run that do not overlap, and for two runs of which the first is older.
fn stands_before(a: &ManifestTable, b: &ManifestTable) -> bool {
    if (a.first_lsn, a.last_lsn) == (b.first_lsn, b.last_lsn) { a.last < b.first } else { a.last_lsn < b.first_lsn }
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
            sums: Sums::default(),
            tables: Vec::new(),
        }
    }

    fn with_tables() -> Manifest {
        let table = |id, lsns: (u64, u64), first, last| ManifestTable {
            id: FileId(id),
            pages: 7,
            mirrored: id != 4,
            first_lsn: Lsn::FIRST.plus(lsns.0),
            last_lsn: Lsn::FIRST.plus(lsns.1),
            first: (Keyspace::Chunk, vec![first; 32]),
            last: (Keyspace::Chunk, vec![last; 32]),
        };
        let tables = vec![table(5, (0, 8), 1, 3), table(4, (0, 8), 4, 9), table(6, (9, 9), 0, 9)];
        Manifest { sums: Sums { hw: Time(1), artifacts: 2, log_bytes: 8, ..Sums::default() }, tables, ..sample() }
    }

    #[test]
    fn tables_come_back_and_none_may_overlap() {
        let decode = |manifest: &Manifest| Manifest::decode(&manifest.encode(), StoreUuid([1; 16]), 3);
        assert_eq!(decode(&with_tables()), Ok(with_tables()));
        for (a, b) in [(0, 1), (1, 2), (0, 2)] {
            let mut other = with_tables();
            other.tables.swap(a, b);
            assert!(decode(&other).is_err(), "{a} {b}");
        }
        let mut overlaps = with_tables();
        overlaps.tables[1].first.1 = vec![3; 32];
        assert!(decode(&overlaps).is_err());
        let mut longer = with_tables();
        longer.tables[2].pages = 4097;
        assert!(decode(&longer).is_err());
    }

    #[test]
    fn a_manifest_comes_back() {
        assert_eq!(Manifest::decode(&sample().encode(), StoreUuid([1; 16]), 3), Ok(sample()));
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_found() {
        let good = with_tables().encode();
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
