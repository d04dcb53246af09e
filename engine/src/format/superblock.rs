//! The superblock (FORMAT.md section 3): the root of everything, four times.

use std::collections::BTreeSet;

use super::{
    Bad, Decoded, VERSION,
    fields::{Fixed, layout, put},
};
use crate::{
    checksum::crc,
    chunker::ChunkParams,
    codec::Compression,
    ids::{ChainHash, Epoch, FileId, Lsn, StoreUuid, Time},
    limits::{
        BLOCK, BLOCK_LEN, FILE_ID_MAX, FRAMES_START, LEDGER_PLACES_MAX, PREPARED_MAX, RESERVES_MAX, SEGMENT_LEN_MAX,
        SEGMENT_LEN_MIN,
    },
};

/// Copies in the file.
pub const COPIES: u32 = 4;
/// Length of the file.
pub const FILE_LEN: u64 = BLOCK * COPIES as u64;
/// Length of one copy.
pub const LEN: usize = BLOCK_LEN;
const MAGIC: &[u8; 8] = b"HOLDFAST";
const PLACE_LEN: usize = 256;

layout! { 4096:
    MAGIC 8, VERSION 4, COPY 4, SEQUENCE 8, UUID 16, CREATED_AT 8,
    CHUNK_MIN 4, CHUNK_AVG 4, CHUNK_MAX 4, CHUNK_SINGLE_MAX 4, CHUNKER 1, COMPRESSION 1, COMPRESSION_LEVEL 1, RESERVED_1 1, PROBE 4,
    LOG_SEGMENT_FIRST 8, LOG_SEGMENT_MAX 8, BULK_SEGMENT 8, SECRET 32, INCARNATION 2, RESERVED_2 6,
    MANIFEST_GENERATION 8, MANIFEST_LEN 8, MANIFEST_DIGEST 32,
    REPLAY_SEGMENT 8, REPLAY_EPOCH 16, REPLAY_OFFSET 8, REPLAY_LSN 8, REPLAY_CHAIN 32,
    LOG_HEAD_SEGMENT 8, LOG_HEAD_EPOCH 16, CLEAN 1, RESERVED_3 7, LOG_END_OFFSET 8, LOG_END_LSN 8, LOG_END_CHAIN 32,
    CEILING_FILE 8, CEILING_GENERATION 8, CEILING_TENANT 4, RESERVED_4 4,
    PREPARED_COUNT 4, RESERVE_COUNT 4, PREPARED 16, RESERVES 32, PLACE_COUNT 4, RESERVED_5 4, PLACES 1024, RESERVED_6 2644, CRC 4,
}

/// Options of a store, fixed when it is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Cut points.
    pub chunks: ChunkParams,
    /// Compression of chunks.
    pub compression: Compression,
    /// Length of the first log segments.
    pub log_segment_first: u64,
    /// Length that log segments grow to.
    pub log_segment_max: u64,
    /// Length of bulk segments.
    pub bulk_segment: u64,
}

impl Options {
    /// The defaults of a new store.
    pub const DEFAULT: Self = Self {
        chunks: ChunkParams::DEFAULT,
        compression: Compression::DEFAULT,
        log_segment_first: 4 << 20,
        log_segment_max: 64 << 20,
        bulk_segment: 256 << 20,
    };

    /// What is wrong with them, if anything.
    pub fn check(&self) -> Result<(), &'static str> {
        let segment = |len: u64| (SEGMENT_LEN_MIN..=SEGMENT_LEN_MAX).contains(&len) && len.is_multiple_of(BLOCK);
        if !self.chunks.hold() {
            return Err("chunk sizes: 64 <= min < average < max, the average a power of two from 1,024");
        }
        if self.compression.level > 19 || self.compression.probe == 0 {
            return Err("compression level 0 to 19, probe 1 or more");
        }
        if !segment(self.log_segment_first) || !segment(self.log_segment_max) || !segment(self.bulk_segment) {
            return Err("segment sizes: 16 KiB to 1 TiB, multiples of 4 KiB");
        }
        if self.log_segment_first > self.log_segment_max {
            return Err("the first log segment is larger than the largest");
        }
        Ok(())
    }
}

/// Where replay starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReplayPosition {
    /// Log segment.
    pub segment: FileId,
    /// Its epoch.
    pub epoch: Epoch,
    /// Offset of the first commit frame's group.
    pub offset: u64,
    /// LSN of the first commit from there.
    pub lsn: Lsn,
    /// Chain hash before it.
    pub chain: ChainHash,
}

/// Where the log ended when the store was closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogEnd {
    /// Offset in the log head.
    pub offset: u64,
    /// The next LSN.
    pub lsn: Lsn,
    /// Chain hash there.
    pub chain: ChainHash,
}

/// The state of the superblock, whatever the copy.
#[derive(Clone, PartialEq, Eq)]
pub struct Superblock {
    /// Rises by one with every write.
    pub sequence: u64,
    /// Names the store.
    pub uuid: StoreUuid,
    /// When it was made.
    pub created_at: Time,
    /// Options fixed when it was made.
    pub options: Options,
    /// Keys what callers name.
    pub secret: [u8; 32],
    /// Life of the store.
    pub incarnation: u16,
    /// The manifest: generation, length, digest.
    pub manifest: (u64, u64, [u8; 32]),
    /// Where replay starts.
    pub replay: ReplayPosition,
    /// Newest log segment whose header and directory entry are synced.
    pub log_head: (FileId, Epoch),
    /// Set by a clean close.
    pub clean: Option<LogEnd>,
    /// Ids at or above are not in use.
    pub ceiling_file: FileId,
    /// Generations at or above are not in use.
    pub ceiling_generation: u64,
    /// Tenant numbers at or above are not in use.
    pub ceiling_tenant: u32,
    /// Prepared log segments, at most two.
    pub prepared: Vec<FileId>,
    /// Reserve files, at most four.
    pub reserves: Vec<FileId>,
    /// Second places of the ledger.
    pub ledger_places: Vec<Vec<u8>>,
}

impl std::fmt::Debug for Superblock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The store secret stays out of every log and error.
        f.debug_struct("Superblock").field("sequence", &self.sequence).field("uuid", &self.uuid).finish_non_exhaustive()
    }
}

impl Superblock {
    /// One copy.
    pub fn encode(&self, copy: u32) -> [u8; LEN] {
        debug_assert!(self.prepared.len() <= PREPARED_MAX && self.reserves.len() <= RESERVES_MAX);
        let mut out = [0; LEN];
        let o = &mut out;
        put(o, at::MAGIC, MAGIC);
        put(o, at::VERSION, &VERSION.to_le_bytes());
        put(o, at::COPY, &copy.to_le_bytes());
        put(o, at::SEQUENCE, &self.sequence.to_le_bytes());
        put(o, at::UUID, &self.uuid.0);
        put(o, at::CREATED_AT, &self.created_at.0.to_le_bytes());
        self.encode_options(o);
        put(o, at::SECRET, &self.secret);
        put(o, at::INCARNATION, &self.incarnation.to_le_bytes());
        put(o, at::MANIFEST_GENERATION, &self.manifest.0.to_le_bytes());
        put(o, at::MANIFEST_LEN, &self.manifest.1.to_le_bytes());
        put(o, at::MANIFEST_DIGEST, &self.manifest.2);
        put(o, at::REPLAY_SEGMENT, &self.replay.segment.0.to_le_bytes());
        put(o, at::REPLAY_EPOCH, &self.replay.epoch.0);
        put(o, at::REPLAY_OFFSET, &self.replay.offset.to_le_bytes());
        put(o, at::REPLAY_LSN, &self.replay.lsn.0.to_le_bytes());
        put(o, at::REPLAY_CHAIN, &self.replay.chain.0);
        put(o, at::LOG_HEAD_SEGMENT, &self.log_head.0.0.to_le_bytes());
        put(o, at::LOG_HEAD_EPOCH, &self.log_head.1.0);
        if let Some(end) = &self.clean {
            put(o, at::CLEAN, &[1]);
            put(o, at::LOG_END_OFFSET, &end.offset.to_le_bytes());
            put(o, at::LOG_END_LSN, &end.lsn.0.to_le_bytes());
            put(o, at::LOG_END_CHAIN, &end.chain.0);
        }
        put(o, at::CEILING_FILE, &self.ceiling_file.0.to_le_bytes());
        put(o, at::CEILING_GENERATION, &self.ceiling_generation.to_le_bytes());
        put(o, at::CEILING_TENANT, &self.ceiling_tenant.to_le_bytes());
        self.encode_lists(o);
        let checksum = crc(&salt(self.uuid, copy), out.get(..at::CRC).expect("a copy has a checksum at its end"));
        put(&mut out, at::CRC, &checksum.to_le_bytes());
        out
    }

    fn encode_options(&self, out: &mut [u8]) {
        let Options { chunks, compression, log_segment_first, log_segment_max, bulk_segment } = self.options;
        put(out, at::CHUNK_MIN, &chunks.min.to_le_bytes());
        put(out, at::CHUNK_AVG, &chunks.avg.to_le_bytes());
        put(out, at::CHUNK_MAX, &chunks.max.to_le_bytes());
        put(out, at::CHUNK_SINGLE_MAX, &chunks.single_max.to_le_bytes());
        put(out, at::CHUNKER, &[1]);
        put(out, at::COMPRESSION, &[u8::from(compression.level > 0)]);
        put(out, at::COMPRESSION_LEVEL, &[compression.level]);
        put(out, at::PROBE, &compression.probe.to_le_bytes());
        put(out, at::LOG_SEGMENT_FIRST, &log_segment_first.to_le_bytes());
        put(out, at::LOG_SEGMENT_MAX, &log_segment_max.to_le_bytes());
        put(out, at::BULK_SEGMENT, &bulk_segment.to_le_bytes());
    }

    fn encode_lists(&self, out: &mut [u8]) {
        let count = |len: usize| u32::try_from(len).expect("lists are short").to_le_bytes();
        put(out, at::PREPARED_COUNT, &count(self.prepared.len()));
        for (slot, id) in self.prepared.iter().enumerate() {
            put(out, at::PREPARED + 8 * slot, &id.0.to_le_bytes());
        }
        put(out, at::RESERVE_COUNT, &count(self.reserves.len()));
        for (slot, id) in self.reserves.iter().enumerate() {
            put(out, at::RESERVES + 8 * slot, &id.0.to_le_bytes());
        }
        put(out, at::PLACE_COUNT, &count(self.ledger_places.len()));
        for (slot, place) in self.ledger_places.iter().enumerate() {
            let len = u16::try_from(place.len()).expect("a place is at most 254 bytes");
            put(out, at::PLACES + PLACE_LEN * slot, &len.to_le_bytes());
            put(out, at::PLACES + PLACE_LEN * slot + 2, place);
        }
    }

    /// Reads the copy that stands at place `copy`.
    pub fn decode(bytes: &[u8; LEN], copy: u32) -> Decoded<Self> {
        let f = Fixed(bytes);
        if &f.bytes::<8>(at::MAGIC) != MAGIC {
            return Err(Bad::damaged("superblock magic"));
        }
        let uuid = StoreUuid(f.bytes(at::UUID));
        if f.u32(at::CRC) != crc(&salt(uuid, copy), f.slice(0, at::CRC)) {
            return Err(Bad::damaged("superblock checksum"));
        }
        match f.u32(at::VERSION) {
            VERSION => {}
            0 => return Err(Bad::damaged("superblock version")),
            _ => return Err(Bad::newer("superblock version")),
        }
        if f.u32(at::COPY) != copy {
            return Err(Bad::damaged("superblock copy number"));
        }
        for (at, len) in [
            (at::RESERVED_1, 1),
            (at::RESERVED_2, 6),
            (at::RESERVED_3, 7),
            (at::RESERVED_4, 4),
            (at::RESERVED_5, 4),
            (at::RESERVED_6, 2644),
        ] {
            f.reserved(at, len, "superblock reserved bytes")?;
        }
        let superblock = Self {
            sequence: f.u64(at::SEQUENCE),
            uuid,
            created_at: Time(f.u64(at::CREATED_AT)),
            options: decode_options(&f)?,
            secret: f.bytes(at::SECRET),
            incarnation: f.u16(at::INCARNATION),
            manifest: (f.u64(at::MANIFEST_GENERATION), f.u64(at::MANIFEST_LEN), f.bytes(at::MANIFEST_DIGEST)),
            replay: ReplayPosition {
                segment: file_id(f.u64(at::REPLAY_SEGMENT))?,
                epoch: Epoch(f.bytes(at::REPLAY_EPOCH)),
                offset: f.u64(at::REPLAY_OFFSET),
                lsn: Lsn(f.u64(at::REPLAY_LSN)),
                chain: ChainHash(f.bytes(at::REPLAY_CHAIN)),
            },
            log_head: (file_id(f.u64(at::LOG_HEAD_SEGMENT))?, Epoch(f.bytes(at::LOG_HEAD_EPOCH))),
            clean: decode_clean(&f)?,
            ceiling_file: file_id(f.u64(at::CEILING_FILE))?,
            ceiling_generation: f.u64(at::CEILING_GENERATION),
            ceiling_tenant: f.u32(at::CEILING_TENANT),
            prepared: decode_ids(&f, at::PREPARED_COUNT, at::PREPARED, PREPARED_MAX)?,
            reserves: decode_ids(&f, at::RESERVE_COUNT, at::RESERVES, RESERVES_MAX)?,
            ledger_places: decode_places(&f)?,
        };
        let holds = superblock.sequence >= 1
            && superblock.incarnation >= 1
            && superblock.manifest.0 >= 1
            && superblock.replay.offset >= FRAMES_START
            && superblock.replay.offset.is_multiple_of(64)
            && superblock.replay.lsn != Lsn::NONE;
        if holds { Ok(superblock) } else { Err(Bad::damaged("superblock fields")) }
    }
}

fn salt(uuid: StoreUuid, copy: u32) -> [u8; 20] {
    let mut salt = [0; 20];
    put(&mut salt, 0, &uuid.0);
    put(&mut salt, 16, &copy.to_le_bytes());
    salt
}

fn file_id(number: u64) -> Decoded<FileId> {
    if (1..=FILE_ID_MAX).contains(&number) { Ok(FileId(number)) } else { Err(Bad::damaged("superblock file id")) }
}

fn decode_options(f: &Fixed<'_>) -> Decoded<Options> {
    let level = f.u8(at::COMPRESSION_LEVEL);
    if f.u8(at::CHUNKER) != 1 || f.u8(at::COMPRESSION) != u8::from(level > 0) {
        return Err(Bad::damaged("superblock options"));
    }
    let options = Options {
        chunks: ChunkParams {
            min: f.u32(at::CHUNK_MIN),
            avg: f.u32(at::CHUNK_AVG),
            max: f.u32(at::CHUNK_MAX),
            single_max: f.u32(at::CHUNK_SINGLE_MAX),
        },
        compression: Compression { level, probe: f.u32(at::PROBE) },
        log_segment_first: f.u64(at::LOG_SEGMENT_FIRST),
        log_segment_max: f.u64(at::LOG_SEGMENT_MAX),
        bulk_segment: f.u64(at::BULK_SEGMENT),
    };
    options.check().map_err(|_| Bad::damaged("superblock options"))?;
    Ok(options)
}

fn decode_clean(f: &Fixed<'_>) -> Decoded<Option<LogEnd>> {
    let end = LogEnd {
        offset: f.u64(at::LOG_END_OFFSET),
        lsn: Lsn(f.u64(at::LOG_END_LSN)),
        chain: ChainHash(f.bytes(at::LOG_END_CHAIN)),
    };
    match f.u8(at::CLEAN) {
        0 if end.offset == 0 && end.lsn == Lsn::NONE && end.chain.is_zero() => Ok(None),
        1 if end.offset >= FRAMES_START && end.offset.is_multiple_of(64) && end.lsn != Lsn::NONE => Ok(Some(end)),
        _ => Err(Bad::damaged("superblock clean and log_end")),
    }
}

fn decode_ids(f: &Fixed<'_>, count_at: usize, at: usize, max: usize) -> Decoded<Vec<FileId>> {
    let count = f.u32(count_at) as usize;
    if count > max {
        return Err(Bad::damaged("superblock count"));
    }
    f.reserved(at + 8 * count, 8 * (max - count), "superblock ids past their count")?;
    let ids = (0..count).map(|slot| file_id(f.u64(at + 8 * slot))).collect::<Decoded<Vec<_>>>()?;
    let distinct = ids.iter().collect::<BTreeSet<_>>().len() == ids.len();
    if distinct { Ok(ids) } else { Err(Bad::damaged("superblock id twice")) }
}

fn decode_places(f: &Fixed<'_>) -> Decoded<Vec<Vec<u8>>> {
    let count = f.u32(at::PLACE_COUNT) as usize;
    if count > LEDGER_PLACES_MAX {
        return Err(Bad::damaged("superblock count"));
    }
    f.reserved(at::PLACES + PLACE_LEN * count, PLACE_LEN * (LEDGER_PLACES_MAX - count), "superblock ledger places")?;
    (0..count)
        .map(|slot| {
            let start = at::PLACES + PLACE_LEN * slot;
            let len = usize::from(f.u16(start));
            if !(1..=PLACE_LEN - 2).contains(&len) {
                return Err(Bad::damaged("superblock ledger places"));
            }
            f.reserved(start + 2 + len, PLACE_LEN - 2 - len, "superblock ledger places")?;
            Ok(f.slice(start + 2, len).to_vec())
        })
        .collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn sample() -> Superblock {
        Superblock {
            sequence: 7,
            uuid: StoreUuid([1; 16]),
            created_at: Time(1_700_000_000_000),
            options: Options::DEFAULT,
            secret: [9; 32],
            incarnation: 1,
            manifest: (1, 200, [3; 32]),
            replay: ReplayPosition {
                segment: FileId(1),
                epoch: Epoch([4; 16]),
                offset: FRAMES_START,
                lsn: Lsn::FIRST,
                chain: ChainHash([5; 32]),
            },
            log_head: (FileId(3), Epoch([6; 16])),
            clean: Some(LogEnd { offset: 9000 * 64, lsn: Lsn::FIRST.plus(5), chain: ChainHash([8; 32]) }),
            ceiling_file: FileId(1025),
            ceiling_generation: 2,
            ceiling_tenant: 2,
            prepared: vec![FileId(4)],
            reserves: vec![FileId(2), FileId(5)],
            ledger_places: vec![b"/mnt/second".to_vec()],
        }
    }

    #[test]
    fn a_superblock_comes_back() {
        for clean in [sample().clean, None] {
            let superblock = Superblock { clean, ..sample() };
            assert_eq!(Superblock::decode(&superblock.encode(2), 2), Ok(superblock));
        }
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let good = sample().encode(1);
        for bit in 0..LEN * 8 {
            let mut bad = good;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(Superblock::decode(&bad, 1).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_copy_at_another_place_is_refused() {
        assert!(Superblock::decode(&sample().encode(1), 2).is_err());
    }

    #[test]
    fn a_later_version_is_told_from_damage() {
        let mut bytes = sample().encode(0);
        put(&mut bytes, at::VERSION, &2_u32.to_le_bytes());
        assert!(!Superblock::decode(&bytes, 0).expect_err("checksum is wrong").newer);
        let checksum = crc(&salt(StoreUuid([1; 16]), 0), &bytes[..at::CRC]);
        put(&mut bytes, at::CRC, &checksum.to_le_bytes());
        assert!(Superblock::decode(&bytes, 0).expect_err("version 2").newer);
    }
}
