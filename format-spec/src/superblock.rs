//! The superblock: section 3 of `FORMAT.md`.
//!
//! It does not know whether the files that it names are there.

use crate::derive::Secret;
use crate::error::{Error, Place, Result};
use crate::fields::{Fields, crc};
use crate::{Id16, Id32, limits};

/// Length of the file.
pub const LEN: u64 = 16_384;
/// Copies in the file.
pub const COPIES: u32 = 4;

const NAME: &str = "superblock";

/// A position in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The segment.
    pub segment: u64,
    /// Its epoch.
    pub epoch: Id16,
    /// Offset in it.
    pub offset: u64,
    /// LSN of the next request from there.
    pub lsn: u64,
    /// The chain hash there.
    pub chain: Id32,
}

/// What a copy says. The number of the copy is not part of it, so that equality is agreement.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the table")]
pub struct Superblock {
    pub sequence: u64,
    pub uuid: Id16,
    pub created_at: u64,
    pub chunk_min: u32,
    pub chunk_avg: u32,
    pub chunk_max: u32,
    pub chunk_single_max: u32,
    /// Whether chunks may be compressed.
    pub zstd: bool,
    pub compression_level: u8,
    pub log_first: u64,
    pub log_largest: u64,
    pub bulk: u64,
    pub secret: Secret,
    pub incarnation: u16,
    pub manifest_generation: u64,
    pub manifest_length: u64,
    pub manifest_digest: Id32,
    pub replay: Position,
    pub log_head: u64,
    pub log_head_epoch: Id16,
    /// While clean: where the log ends, in the `log_head` segment.
    pub log_end: Option<LogEnd>,
    pub ceiling_files: u64,
    pub ceiling_generations: u64,
    pub ceiling_tenants: u32,
    pub prepared: Vec<u64>,
    pub reserve: Vec<u64>,
    /// Paths, as bytes.
    pub ledger_places: Vec<Vec<u8>>,
}

/// Where the log of a clean store ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEnd {
    /// Offset in the `log_head` segment.
    pub offset: u64,
    /// The next LSN.
    pub lsn: u64,
    /// The chain hash.
    pub chain: Id32,
}

/// What one copy is, beside the state that was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyState {
    /// It is the state of the store.
    Current,
    /// Valid and older, as a write leaves it that did not come so far.
    Older(u64),
    /// Valid and newer, but alone: a write that did not come to its end.
    Newer(u64),
    /// Valid, of the same sequence, and different.
    Different,
    /// Not valid.
    Damaged(Error),
}

/// The state of a store, and what its four copies are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The state.
    pub superblock: Superblock,
    /// The copies, by place.
    pub copies: Vec<CopyState>,
}

impl Superblock {
    /// Reads the copy that stands at place `copy`; `bytes` are its 4,096 bytes.
    pub fn parse(bytes: &[u8], copy: u32) -> Result<Self> {
        let base = u64::from(copy) * limits::BLOCK;
        let mut f = Fields::new(NAME, bytes, base);
        let magic = f.take("magic", 8)?;
        f.check(magic == b"HOLDFAST", Error::Value)?;
        check_block(NAME, bytes, base, |uuid| crc_salt(uuid, copy), 24)?;
        let version = f.u32("format version")?;
        f.check(version <= 1, Error::Newer)?;
        f.check(version == 1, Error::Value)?;
        let place = f.u32("copy")?;
        f.check(place == copy, Error::Value)?;
        let superblock = Self::fields(&mut f)?;
        f.reserved(2_644)?;
        f.u32("checksum")?;
        f.end()?;
        Ok(superblock)
    }

    fn fields(f: &mut Fields<'_>) -> Result<Self> {
        let sequence = f.u64("sequence")?;
        f.check(sequence > 0, Error::Value)?;
        let uuid = f.array("store uuid")?;
        let created_at = f.u64("created_at")?;
        let sizes = Sizes::parse(f)?;
        let secret = Secret(f.array("store secret")?);
        let incarnation = f.u16("incarnation")?;
        f.check(incarnation > 0, Error::Value)?;
        f.reserved(6)?;
        let manifest_generation = f.u64("manifest generation")?;
        f.check(manifest_generation > 0, Error::Value)?;
        let manifest_length = f.u64("manifest length")?;
        let manifest_digest = f.array("manifest digest")?;
        let replay = Position {
            segment: file_id(f, "replay segment")?,
            epoch: f.array("replay epoch")?,
            offset: frame_offset(f, "replay offset")?,
            lsn: lsn(f, "replay LSN")?,
            chain: f.array("replay chain")?,
        };
        let log_head = file_id(f, "log_head segment")?;
        let log_head_epoch = f.array("log_head epoch")?;
        let log_end = log_end(f)?;
        let ceiling_files = file_id(f, "ceiling of file ids")?;
        let ceiling_generations = f.u64("ceiling of generations")?;
        let ceiling_tenants = f.u32("ceiling of tenant numbers")?;
        f.reserved(4)?;
        let prepared_count = f.u32("prepared count")?;
        f.check(prepared_count <= 2, Error::Bound)?;
        let reserve_count = f.u32("reserve count")?;
        f.check(reserve_count <= 4, Error::Bound)?;
        Ok(Self {
            sequence,
            uuid,
            created_at,
            chunk_min: sizes.chunk_min,
            chunk_avg: sizes.chunk_avg,
            chunk_max: sizes.chunk_max,
            chunk_single_max: sizes.chunk_single_max,
            zstd: sizes.zstd,
            compression_level: sizes.compression_level,
            log_first: sizes.log_first,
            log_largest: sizes.log_largest,
            bulk: sizes.bulk,
            secret,
            incarnation,
            manifest_generation,
            manifest_length,
            manifest_digest,
            replay,
            log_head,
            log_head_epoch,
            log_end,
            ceiling_files,
            ceiling_generations,
            ceiling_tenants,
            prepared: ids(f, "prepared ids", prepared_count, 2)?,
            reserve: ids(f, "reserve ids", reserve_count, 4)?,
            ledger_places: ledger_places(f)?,
        })
    }
}

struct Sizes {
    chunk_min: u32,
    chunk_avg: u32,
    chunk_max: u32,
    chunk_single_max: u32,
    zstd: bool,
    compression_level: u8,
    log_first: u64,
    log_largest: u64,
    bulk: u64,
}

impl Sizes {
    fn parse(f: &mut Fields<'_>) -> Result<Self> {
        let chunk_min = f.u32("chunk_min")?;
        f.check(chunk_min >= 64, Error::Bound)?;
        let chunk_avg = f.u32("chunk_avg")?;
        f.check(chunk_avg.is_power_of_two() && chunk_avg >= 1_024 && chunk_avg > chunk_min, Error::Value)?;
        let chunk_max = f.u32("chunk_max")?;
        f.check(chunk_max > chunk_avg && chunk_max <= limits::CHUNK, Error::Bound)?;
        let chunk_single_max = f.u32("chunk_single_max")?;
        f.check(chunk_single_max <= chunk_max, Error::Bound)?;
        let chunker = f.u8("chunker")?;
        f.check(chunker == 1, Error::Value)?;
        let compression = f.u8("compression")?;
        f.check(compression <= 1, Error::Value)?;
        let compression_level = f.u8("compression level")?;
        let levels = if compression == 0 { 0..=0 } else { 1..=19 };
        f.check(levels.contains(&compression_level), Error::Value)?;
        f.reserved(1)?;
        let probe = f.u32("probe length")?;
        f.check(probe >= 1, Error::Value)?;
        let log_first = segment_size(f, "log segment size, first", 16_384)?;
        let log_largest = segment_size(f, "log segment size, largest", log_first)?;
        let bulk = segment_size(f, "bulk segment size", 16_384)?;
        Ok(Self {
            chunk_min,
            chunk_avg,
            chunk_max,
            chunk_single_max,
            zstd: compression == 1,
            compression_level,
            log_first,
            log_largest,
            bulk,
        })
    }
}

fn segment_size(f: &mut Fields<'_>, field: &'static str, least: u64) -> Result<u64> {
    let size = f.u64(field)?;
    f.check((least..=1 << 40).contains(&size) && size.is_multiple_of(4_096), Error::Value)?;
    Ok(size)
}

fn file_id(f: &mut Fields<'_>, field: &'static str) -> Result<u64> {
    let id = f.u64(field)?;
    f.check(limits::is_file_id(id), Error::Bound)?;
    Ok(id)
}

fn frame_offset(f: &mut Fields<'_>, field: &'static str) -> Result<u64> {
    let offset = f.u64(field)?;
    f.check(limits::is_frame_offset(offset), Error::Value)?;
    Ok(offset)
}

fn lsn(f: &mut Fields<'_>, field: &'static str) -> Result<u64> {
    let lsn = f.u64(field)?;
    f.check(lsn != 0, Error::Value)?;
    Ok(lsn)
}

fn log_end(f: &mut Fields<'_>) -> Result<Option<LogEnd>> {
    let clean = f.u8("clean")?;
    f.check(clean <= 1, Error::Value)?;
    f.reserved(7)?;
    if clean == 1 {
        let offset = frame_offset(f, "log_end offset")?;
        return Ok(Some(LogEnd { offset, lsn: lsn(f, "log_end LSN")?, chain: f.array("log_end chain")? }));
    }
    let offset = f.u64("log_end offset")?;
    f.check(offset == 0, Error::Value)?;
    let lsn = f.u64("log_end LSN")?;
    f.check(lsn == 0, Error::Value)?;
    let chain: Id32 = f.array("log_end chain")?;
    f.check(chain == [0; 32], Error::Value)?;
    Ok(None)
}

fn ids(f: &mut Fields<'_>, field: &'static str, count: u32, slots: u32) -> Result<Vec<u64>> {
    let mut ids = Vec::new();
    for slot in 0..slots {
        let id = f.u64(field)?;
        if slot < count {
            f.check(limits::is_file_id(id), Error::Bound)?;
            f.check(!ids.contains(&id), Error::Order)?;
            ids.push(id);
        } else {
            f.check(id == 0, Error::Value)?;
        }
    }
    Ok(ids)
}

fn ledger_places(f: &mut Fields<'_>) -> Result<Vec<Vec<u8>>> {
    let count = f.u32("ledger place count")?;
    f.check(count <= 4, Error::Bound)?;
    f.reserved(4)?;
    let mut places = Vec::new();
    for slot in 0..4 {
        if slot >= count {
            f.reserved(256)?;
            continue;
        }
        let length = usize::from(f.u16("ledger place length")?);
        f.check((1..=254).contains(&length), Error::Bound)?;
        places.push(f.take("ledger place path", length)?.to_vec());
        f.reserved(254 - length)?;
    }
    Ok(places)
}

fn crc_salt(uuid: &[u8], copy: u32) -> Vec<u8> {
    [uuid, &copy.to_le_bytes()].concat()
}

/// Checks the checksum at the end of a block of 4,096 bytes. The salt comes from the uuid in the block itself.
pub(crate) fn check_block(
    structure: &'static str,
    bytes: &[u8],
    base: u64,
    salt: impl FnOnce(&[u8]) -> Vec<u8>,
    uuid_at: usize,
) -> Result<()> {
    let at = |field, offset: u64| Place { structure, field, offset: base + offset };
    let (body, sum) = bytes.split_at_checked(4_092).ok_or(Error::Short(at("checksum", 4_092)))?;
    let uuid = body.get(uuid_at..uuid_at + 16).expect("a block is longer than its uuid's place");
    let sum: [u8; 4] = sum.try_into().map_err(|_| Error::Short(at("checksum", 4_092)))?;
    if crc(&[&salt(uuid)], body) == u32::from_le_bytes(sum) {
        Ok(())
    } else {
        Err(Error::Checksum(at("checksum", 4_092)))
    }
}

/// Chooses the state of the store from the bytes of the file `superblock`.
///
/// Fails as [`Error::Newer`] if any copy is of a newer version, and at the first copy's error, or at its sequence, if no two agree.
pub fn choose(file: &[u8]) -> Result<Choice> {
    let blocks = (0..COPIES).map(|copy| {
        let start = (u64::from(copy) * limits::BLOCK).try_into().unwrap_or(usize::MAX);
        let rest = file.get(start..).unwrap_or_default();
        Superblock::parse(rest.get(..4_096).unwrap_or(rest), copy)
    });
    let parsed: Vec<Result<Superblock>> = blocks.collect();
    if let Some(Err(error)) = parsed.iter().find(|copy| matches!(copy, Err(error) if error.is_newer())) {
        return Err(error.clone());
    }
    let valid: Vec<&Superblock> = parsed.iter().flatten().collect();
    let agreed = |one: &&&Superblock| valid.iter().filter(|other| *other == *one).count() >= 2;
    let Some(winner) = valid.iter().filter(agreed).max_by_key(|one| one.sequence) else {
        let place = Place { structure: NAME, field: "sequence", offset: 16 };
        return Err(parsed.into_iter().find_map(Result::err).unwrap_or(Error::Mismatch(place)));
    };
    // Two pairs that differ at one sequence: nothing says which of them was acknowledged.
    if valid.iter().filter(agreed).any(|one| one.sequence == winner.sequence && one != winner) {
        return Err(Error::Mismatch(Place { structure: NAME, field: "sequence", offset: 16 }));
    }
    let superblock = Superblock::clone(winner);
    let copies = parsed.iter().map(|copy| copy_state(copy, &superblock)).collect();
    Ok(Choice { superblock, copies })
}

fn copy_state(copy: &Result<Superblock>, winner: &Superblock) -> CopyState {
    match copy {
        Err(error) => CopyState::Damaged(error.clone()),
        Ok(copy) if copy == winner => CopyState::Current,
        Ok(copy) if copy.sequence < winner.sequence => CopyState::Older(copy.sequence),
        Ok(copy) if copy.sequence > winner.sequence => CopyState::Newer(copy.sequence),
        Ok(_) => CopyState::Different,
    }
}
