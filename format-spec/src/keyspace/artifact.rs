//! The artifact record: section 12.2.

use super::ArtifactKey;
use super::values::{tenant_number, text};
use crate::error::{Error, Result};
use crate::fields::Fields;
use crate::{Id16, Id32};
use std::fmt;

/// What owns an artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are those of the table")]
pub enum OwnerKind {
    Run = 1,
    Upload = 2,
    Conversation = 3,
    Account = 4,
}

impl OwnerKind {
    pub(crate) fn parse(f: &mut Fields<'_>) -> Result<Self> {
        match f.u8("owner kind")? {
            1 => Ok(Self::Run),
            2 => Ok(Self::Upload),
            3 => Ok(Self::Conversation),
            4 => Ok(Self::Account),
            _ => Err(Error::Value(f.place())),
        }
    }
}

/// The flags of an artifact that are not the presence of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the table")]
#[expect(clippy::struct_excessive_bools, reason = "they are the bits of the table")]
pub struct Flags {
    pub truncated: bool,
    pub tree: bool,
    pub detach: bool,
    pub deleted: bool,
}

/// An artifact. Names, keys and types are a person's, so `Debug` leaves them out.
#[derive(Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the table")]
pub struct Artifact {
    pub id: Id16,
    pub tenant: u32,
    pub flags: Flags,
    pub account: Id16,
    pub owner_kind: OwnerKind,
    pub origin: u8,
    pub position: u32,
    pub owner: Id16,
    pub born_account: Id16,
    pub born_run: Option<Id16>,
    pub born_order: Option<u64>,
    pub born_lsn: u64,
    pub born_time: u64,
    pub token_lsn: u64,
    pub attach_lsn: u64,
    pub size: u64,
    pub sha256: Id32,
    pub blob_root: Id32,
    pub logical_size: Option<u64>,
    pub expires_at: Option<u64>,
    pub version: u64,
    pub link_of: Option<Id16>,
    pub supersedes: Option<Id16>,
    pub derived_from: Option<Id16>,
    pub name: String,
    pub key: Option<String>,
    pub media_type: String,
    pub detected_type: String,
}

impl fmt::Debug for Artifact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Artifact")
            .field("tenant", &self.tenant)
            .field("size", &self.size)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

/// Bits of the flags that say that a field is present.
struct Present(u32);

impl Present {
    /// The value of a field whose presence is a bit of the flags; absent fields are zero.
    fn field<T: Default + PartialEq>(&self, f: &Fields<'_>, bit: u32, value: T) -> Result<Option<T>> {
        let present = self.0 >> bit & 1 == 1;
        f.check(present || value == T::default(), Error::Value)?;
        Ok(present.then_some(value))
    }
}

impl Artifact {
    pub(super) fn parse(f: &mut Fields<'_>, key: &ArtifactKey) -> Result<Self> {
        let id = f.array("id")?;
        f.check(id == key.artifact, Error::Mismatch)?;
        let tenant = tenant_number(f)?;
        f.check(tenant == key.tenant, Error::Mismatch)?;
        let flags = f.u32("flags")?;
        f.check(flags >> 12 == 0, Error::Reserved)?;
        let present = Present(flags);
        let account = f.array("account")?;
        f.check(account == key.account, Error::Mismatch)?;
        let owner_kind = OwnerKind::parse(f)?;
        let origin = f.u8("origin")?;
        f.check((1..=5).contains(&origin), Error::Value)?;
        f.reserved(2)?;
        let position = f.u32("position")?;
        let owner = f.array("owner id")?;
        let born_account = f.array("born.account")?;
        let born_run = f.array("born.run")?;
        let born_run = present.field(f, 3, born_run)?;
        let born_order = f.u64("born.order")?;
        let born_order = present.field(f, 4, born_order)?;
        let born_lsn = f.u64("born.lsn")?;
        let born_time = f.u64("born.time")?;
        let token_lsn = f.u64("token_lsn")?;
        let attach_lsn = f.u64("attach_lsn")?;
        let size = f.u64("size")?;
        let sha256 = f.array("sha256")?;
        let blob_root: Id32 = f.array("blob_root")?;
        f.check((size == 0) == (blob_root == [0; 32]), Error::Mismatch)?;
        let logical_size = f.u64("logical_size")?;
        let logical_size = present.field(f, 6, logical_size)?;
        let expires_at = f.u64("expires_at")?;
        let expires_at = present.field(f, 7, expires_at)?;
        let version = f.u64("version")?;
        f.check(version > 0, Error::Value)?;
        let link_of = f.array("link_of")?;
        let link_of = present.field(f, 8, link_of)?;
        let supersedes = f.array("supersedes")?;
        let supersedes = present.field(f, 9, supersedes)?;
        let derived_from = f.array("derived_from")?;
        let derived_from = present.field(f, 10, derived_from)?;
        let name_len = bounded(f, "length of name", 1, 255)?;
        let key_len = bounded(f, "length of key", 0, 1_024)?;
        f.check(flags >> 5 & 1 == 1 || key_len == 0, Error::Value)?;
        let media_len = bounded(f, "length of media_type", 0, 255)?;
        let detected_len = bounded(f, "length of detected_type", 0, 255)?;
        let name = text(f, "name", name_len)?;
        let key = text(f, "key", key_len)?;
        Ok(Self {
            id,
            tenant,
            flags: Flags {
                truncated: flags & 1 != 0,
                tree: flags & 2 != 0,
                detach: flags & 4 != 0,
                deleted: flags >> 11 & 1 == 1,
            },
            account,
            owner_kind,
            origin,
            position,
            owner,
            born_account,
            born_run,
            born_order,
            born_lsn,
            born_time,
            token_lsn,
            attach_lsn,
            size,
            sha256,
            blob_root,
            logical_size,
            expires_at,
            version,
            link_of,
            supersedes,
            derived_from,
            name,
            key: (flags >> 5 & 1 == 1).then_some(key),
            media_type: text(f, "media_type", media_len)?,
            detected_type: text(f, "detected_type", detected_len)?,
        })
    }
}

fn bounded(f: &mut Fields<'_>, field: &'static str, least: u16, most: u16) -> Result<u16> {
    let length = f.u16(field)?;
    f.check((least..=most).contains(&length), Error::Bound)?;
    Ok(length)
}
