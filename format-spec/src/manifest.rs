//! The manifest: section 4 of `FORMAT.md`.
//!
//! It does not know the superblock that names it, nor whether its segments are there.

use crate::derive::{Secret, tenant_check};
use crate::error::{Error, Result};
use crate::fields::{Fields, crc};
use crate::keyspace::Key;
use crate::segment::Lane;
use crate::{Id16, Id32, limits};

const NAME: &str = "manifest";

/// A tenant and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenant {
    /// Its number.
    pub number: u32,
    /// The key that all its keys come from.
    pub key: Secret,
}

/// A segment that the manifest names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its id.
    pub id: u64,
    /// Its epoch.
    pub epoch: Id16,
    /// Its lane.
    pub lane: Lane,
    /// Where it ends, if it is sealed.
    pub sealed_end: Option<u64>,
}

/// A table that the manifest names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the table")]
pub struct TableFile {
    pub id: u64,
    pub pages: u32,
    pub mirrored: bool,
    pub first_lsn: u64,
    pub last_lsn: u64,
    pub first: Key,
    pub last: Key,
}

/// What the tables add up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the text")]
pub struct Sums {
    pub hw: u64,
    pub artifacts: u64,
    pub artifact_bytes: u64,
    pub blobs: u64,
    pub chunks: u64,
    pub chunk_bytes: u64,
    pub frame_bytes: u64,
    pub log_frame_bytes: u64,
}

/// A manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The store.
    pub uuid: Id16,
    /// The generation.
    pub generation: u64,
    /// By rising number.
    pub tenants: Vec<Tenant>,
    /// By rising id.
    pub segments: Vec<Segment>,
    /// Only with tables.
    pub sums: Option<Sums>,
    /// In the order of the text.
    pub tables: Vec<TableFile>,
}

impl Manifest {
    /// Reads a whole file.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let mut f = Fields::new(NAME, bytes, 0);
        let magic = f.take("magic", 8)?;
        f.check(magic == b"HFMANIFT", Error::Value)?;
        let version = f.u32("version")?;
        f.check(version <= 1, Error::Newer)?;
        f.check(version == 1, Error::Value)?;
        f.reserved(4)?;
        let uuid: Id16 = f.array("store uuid")?;
        let generation = f.u64("generation")?;
        f.check(generation > 0, Error::Value)?;
        let tenant_count = f.u32("tenant count")?;
        f.check((1..=limits::TENANTS).contains(&tenant_count), Error::Bound)?;
        let segment_count = f.u32("segment count")?;
        f.check((1..=limits::SEGMENTS).contains(&segment_count), Error::Bound)?;
        let table_count = f.u32("table count")?;
        f.check(table_count <= limits::TABLES, Error::Bound)?;
        f.reserved(4)?;
        let ledger_lsn = f.u64("ledger head LSN")?;
        f.check(ledger_lsn == 0, Error::Value)?;
        let ledger_hash: Id32 = f.array("ledger head hash")?;
        f.check(ledger_hash == [0; 32], Error::Value)?;
        let tenants = tenants(&mut f, tenant_count)?;
        let segments = segments(&mut f, segment_count)?;
        let sums = if table_count > 0 { Some(sums(&mut f)?) } else { None };
        let tables = tables(&mut f, table_count)?;
        f.reserved(4)?;
        let body_len = bytes.len() - f.left();
        let sum = f.u32("checksum")?;
        let body = bytes.get(..body_len).unwrap_or_default();
        f.check(sum == crc(&[&uuid, &generation.to_le_bytes()], body), Error::Checksum)?;
        f.end()?;
        Ok(Self { uuid, generation, tenants, segments, sums, tables })
    }

    /// The key of a tenant.
    pub fn tenant(&self, number: u32) -> Option<&Tenant> {
        self.tenants.iter().find(|tenant| tenant.number == number)
    }
}

fn tenants(f: &mut Fields<'_>, count: u32) -> Result<Vec<Tenant>> {
    let mut tenants: Vec<Tenant> = Vec::new();
    for _ in 0..count {
        let number = f.u32("tenant number")?;
        f.check(number > 0, Error::Value)?;
        f.check(tenants.last().is_none_or(|before| before.number < number), Error::Order)?;
        f.reserved(4)?;
        let key = Secret(f.array("tenant key")?);
        let check: Id16 = f.array("tenant check")?;
        f.check(check == tenant_check(&key), Error::Mismatch)?;
        tenants.push(Tenant { number, key });
    }
    Ok(tenants)
}

fn sums(f: &mut Fields<'_>) -> Result<Sums> {
    Ok(Sums {
        hw: f.u64("hw")?,
        artifacts: f.u64("artifacts")?,
        artifact_bytes: f.u64("artifact bytes")?,
        blobs: f.u64("blobs")?,
        chunks: f.u64("chunks")?,
        chunk_bytes: f.u64("chunk bytes")?,
        frame_bytes: f.u64("frame bytes")?,
        log_frame_bytes: f.u64("log frame bytes")?,
    })
}

fn tables(f: &mut Fields<'_>, count: u32) -> Result<Vec<TableFile>> {
    let mut tables: Vec<TableFile> = Vec::new();
    for _ in 0..count {
        let id = f.u64("table id")?;
        f.check(limits::is_file_id(id), Error::Bound)?;
        let pages = f.u32("table pages")?;
        f.check((2..=limits::TABLE_PAGES).contains(&pages), Error::Bound)?;
        let flags = f.u32("table flags")?;
        f.check(flags <= 1, Error::Reserved)?;
        let first_lsn = f.u64("table first LSN")?;
        f.check(first_lsn > 0, Error::Value)?;
        let last_lsn = f.u64("table last LSN")?;
        f.check(first_lsn <= last_lsn, Error::Order)?;
        let first = bound(f)?;
        let last = bound(f)?;
        f.check(first <= last, Error::Order)?;
        if let Some(before) = tables.last() {
            let same_run = (before.first_lsn, before.last_lsn) == (first_lsn, last_lsn);
            let rises = if same_run { before.last < first } else { before.last_lsn < first_lsn };
            f.check(rises, Error::Order)?;
        }
        tables.push(TableFile { id, pages, mirrored: flags == 1, first_lsn, last_lsn, first, last });
    }
    Ok(tables)
}

fn bound(f: &mut Fields<'_>) -> Result<Key> {
    let keyspace = f.u8("bound keyspace")?;
    f.check(crate::keyspace::keyspace_name(keyspace).is_some(), Error::Newer)?;
    f.reserved(1)?;
    let length = f.u16("bound key length")?;
    let base = f.next();
    Key::parse(keyspace, f.take("bound key", usize::from(length))?, base)
}

fn segments(f: &mut Fields<'_>, count: u32) -> Result<Vec<Segment>> {
    let mut segments: Vec<Segment> = Vec::new();
    for _ in 0..count {
        let id = f.u64("segment id")?;
        f.check(limits::is_file_id(id), Error::Bound)?;
        f.check(segments.last().is_none_or(|before| before.id < id), Error::Order)?;
        let epoch = f.array("segment epoch")?;
        let lane = Lane::parse(f, "segment lane")?;
        let state = f.u8("segment state")?;
        f.check(state == 1 || state == 2, Error::Value)?;
        f.reserved(6)?;
        let end = f.u64("segment end")?;
        let holds = if state == 2 { limits::is_frame_offset(end) } else { end == 0 };
        f.check(holds, Error::Value)?;
        segments.push(Segment { id, epoch, lane, sealed_end: (state == 2).then_some(end) });
    }
    Ok(segments)
}
