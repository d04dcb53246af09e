//! The manifest: section 4 of `FORMAT.md`.
//!
//! It does not know the superblock that names it, nor whether its segments are there.

use crate::derive::{Secret, tenant_check};
use crate::error::{Error, Result};
use crate::fields::{Fields, crc};
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
        let tables = f.u32("table count")?;
        f.check(tables == 0, Error::Value)?;
        f.reserved(4)?;
        let ledger_lsn = f.u64("ledger head LSN")?;
        f.check(ledger_lsn == 0, Error::Value)?;
        let ledger_hash: Id32 = f.array("ledger head hash")?;
        f.check(ledger_hash == [0; 32], Error::Value)?;
        let tenants = tenants(&mut f, tenant_count)?;
        let segments = segments(&mut f, segment_count)?;
        f.reserved(4)?;
        let body_len = bytes.len() - f.left();
        let sum = f.u32("checksum")?;
        let body = bytes.get(..body_len).unwrap_or_default();
        f.check(sum == crc(&[&uuid, &generation.to_le_bytes()], body), Error::Checksum)?;
        f.end()?;
        Ok(Self { uuid, generation, tenants, segments })
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
