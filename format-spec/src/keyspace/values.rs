//! The short values of section 12.

use crate::error::{Error, Result};
use crate::fields::Fields;
use crate::frame::{Codec, Kind};
use crate::{Id16, Id32, limits};
use std::fmt;

/// A tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the table")]
pub struct Tenant {
    pub number: u32,
    pub created_at: u64,
}

impl Tenant {
    pub(super) fn parse(f: &mut Fields<'_>) -> Result<Self> {
        let number = tenant_number(f)?;
        let status = f.u8("status")?;
        f.check(status == 1, Error::Value)?;
        f.reserved(3)?;
        Ok(Self { number, created_at: f.u64("created_at")? })
    }
}

/// An account. Its text is a person's, so `Debug` leaves it out.
#[derive(Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the table")]
pub struct Account {
    pub created_lsn: u64,
    pub created_at: u64,
    pub text: String,
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account").field("created_lsn", &self.created_lsn).finish_non_exhaustive()
    }
}

impl Account {
    pub(super) fn parse(f: &mut Fields<'_>) -> Result<Self> {
        let created_lsn = f.u64("created LSN")?;
        f.check(created_lsn != 0, Error::Value)?;
        let created_at = f.u64("created_at")?;
        let length = f.u16("text length")?;
        f.check((1..=128).contains(&length), Error::Bound)?;
        Ok(Self { created_lsn, created_at, text: text(f, "text", length)? })
    }
}

/// A blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the table")]
pub struct Blob {
    pub root: Id32,
    pub size: u64,
    pub references: u64,
}

impl Blob {
    pub(super) fn parse(f: &mut Fields<'_>) -> Result<Self> {
        let root = f.array("root")?;
        let size = f.u64("size")?;
        f.check((size == 0) == (root == [0; 32]), Error::Mismatch)?;
        Ok(Self { root, size, references: f.u64("references")? })
    }
}

/// Where a chunk or a recipe page stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the table")]
pub struct Chunk {
    pub segment: u64,
    pub offset: u64,
    pub stored: u32,
    pub raw: u32,
    pub tenant: u32,
    pub codec: Codec,
    pub kind: Kind,
    pub references: u64,
}

impl Chunk {
    pub(super) fn parse(f: &mut Fields<'_>) -> Result<Self> {
        let segment = f.u64("segment")?;
        f.check(limits::is_file_id(segment), Error::Bound)?;
        let place = DataPlace::parse(f, false)?;
        let references = f.u64("references")?;
        let DataPlace { offset, stored, raw, tenant, codec, kind } = place;
        Ok(Self { segment, offset, stored, raw, tenant, codec, kind, references })
    }
}

/// The fields that a chunk's value and a footer entry share, in either order of codec and kind.
pub(crate) struct DataPlace {
    pub(crate) offset: u64,
    pub(crate) stored: u32,
    pub(crate) raw: u32,
    pub(crate) tenant: u32,
    pub(crate) codec: Codec,
    pub(crate) kind: Kind,
}

impl DataPlace {
    pub(crate) fn parse(f: &mut Fields<'_>, kind_first: bool) -> Result<Self> {
        let offset = f.u64("offset")?;
        f.check(limits::is_frame_offset(offset), Error::Value)?;
        let stored = f.u32("stored")?;
        f.check((1..=limits::CHUNK).contains(&stored), Error::Bound)?;
        let raw = f.u32("raw")?;
        f.check((stored..=limits::CHUNK).contains(&raw), Error::Bound)?;
        let tenant = tenant_number(f)?;
        let (kind, codec) = if kind_first {
            let kind = data_kind(f)?;
            (kind, codec(f)?)
        } else {
            let codec = codec(f)?;
            (data_kind(f)?, codec)
        };
        let holds = match (kind, codec) {
            (Kind::Page, Codec::Raw) => (56..=40_976).contains(&stored) && raw == stored,
            (Kind::Page, Codec::Zstd) => false,
            (_, Codec::Raw) => raw == stored,
            (_, Codec::Zstd) => raw > stored,
        };
        f.check(holds, Error::Mismatch)?;
        f.reserved(2)?;
        Ok(Self { offset, stored, raw, tenant, codec, kind })
    }
}

fn codec(f: &mut Fields<'_>) -> Result<Codec> {
    match f.u8("codec")? {
        0 => Ok(Codec::Raw),
        1 => Ok(Codec::Zstd),
        _ => Err(Error::Value(f.place())),
    }
}

fn data_kind(f: &mut Fields<'_>) -> Result<Kind> {
    match f.u8("kind")? {
        1 => Ok(Kind::Chunk),
        2 => Ok(Kind::Page),
        _ => Err(Error::Value(f.place())),
    }
}

/// What an operation that was done once answers again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the table")]
pub struct Op {
    pub artifact: Id16,
    pub code: u32,
    pub lsn: u64,
    pub time: u64,
}

impl Op {
    pub(super) fn parse(f: &mut Fields<'_>) -> Result<Self> {
        let artifact = f.array("artifact id")?;
        let code = f.u32("code")?;
        f.check(code <= 2, Error::Value)?;
        f.reserved(4)?;
        Ok(Self { artifact, code, lsn: f.u64("LSN")?, time: f.u64("time")? })
    }
}

/// A bulk segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the table")]
pub struct BulkSegment {
    pub epoch: Id16,
    pub sealed: bool,
    pub end: u64,
}

impl BulkSegment {
    pub(super) fn parse(f: &mut Fields<'_>) -> Result<Self> {
        let epoch = f.array("epoch")?;
        let lane = f.u8("lane")?;
        f.check(lane == 2, Error::Value)?;
        let state = f.u8("state")?;
        f.check(state == 1 || state == 2, Error::Value)?;
        f.reserved(6)?;
        let end = f.u64("end")?;
        f.check(limits::is_frame_offset(end), Error::Value)?;
        Ok(Self { epoch, sealed: state == 2, end })
    }
}

pub(super) fn tenant_number(f: &mut Fields<'_>) -> Result<u32> {
    let tenant = f.u32("tenant")?;
    f.check(tenant > 0, Error::Value)?;
    Ok(tenant)
}

pub(super) fn text(f: &mut Fields<'_>, field: &'static str, length: u16) -> Result<String> {
    let bytes = f.take(field, usize::from(length))?;
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(Error::Value(f.place())),
    }
}
