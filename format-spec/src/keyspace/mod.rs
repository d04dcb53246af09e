//! Keys and values of the catalog: section 12 of `FORMAT.md`.
//!
//! It does not know what values stand in the store beside them, so it does not compare one with another.

mod artifact;
mod ownership;
mod upload;
mod values;

pub use artifact::{Artifact, Flags, OwnerKind};
pub use ownership::{
    Claim, Claimed, Conversation, ConversationState, Fence, FenceKey, OfAccountKey, Run, RunState, Skipped,
};
pub use upload::{PageEntry, Upload};
pub(crate) use values::DataPlace;
pub use values::{Account, Blob, BulkSegment, Chunk, Op, Tenant};

use crate::error::{Error, Result};
use crate::fields::Fields;
use crate::{Id16, Id32, limits};

/// An artifact's place: the key of keyspace 9.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are those of the table")]
pub struct ArtifactKey {
    pub tenant: u32,
    pub account: Id16,
    pub artifact: Id16,
}

/// The key of keyspaces 2, 3, 4 and 24.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are those of the table")]
pub struct AccountKey {
    pub tenant: u32,
    pub scope: Id16,
}

/// The key of keyspace 12.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are those of the table")]
pub struct OwnerKey {
    pub tenant: u32,
    pub account: Id16,
    pub owner_kind: OwnerKind,
    pub owner: Id16,
    pub attach_lsn: u64,
    pub position: u32,
}

/// The key of keyspace 16, of kind artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are those of the table")]
pub struct DueKey {
    pub time: u64,
    pub artifact: ArtifactKey,
}

/// The key of keyspaces 17 and 18.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are those of the table")]
pub struct OpKey {
    pub begin_lsn: u64,
    pub scope: Id16,
    pub op: Id16,
}

/// What has no references: the key of keyspace 20.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ZeroKey {
    /// A chunk or a page, by its id.
    Chunk(Id32),
    /// A blob, by its key.
    Blob(Id32),
}

/// A key of any keyspace that has a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are those of the table")]
pub enum Key {
    Tenant(Id16),
    Account(AccountKey),
    Conversation(AccountKey),
    Run(AccountKey),
    Upload(Id16),
    Artifact(ArtifactKey),
    Blob(Id32),
    Chunk(Id32),
    ByOwner(OwnerKey),
    Due(DueKey),
    Op(OpKey),
    Identity(OpKey),
    Fence(FenceKey),
    Zero(ZeroKey),
    Segment(u64),
    OfAccount(OfAccountKey),
    Claim(AccountKey),
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the table")]
pub enum Entry {
    Tenant(Id16, Tenant),
    Account(AccountKey, Account),
    Conversation(AccountKey, Conversation),
    Run(AccountKey, Run),
    Upload(Id16, Upload),
    Artifact(ArtifactKey, Box<Artifact>),
    Blob(Id32, Blob),
    Chunk(Id32, Chunk),
    ByOwner(OwnerKey, Id16),
    Due(DueKey),
    Op(OpKey, Op),
    Identity(OpKey, Id16),
    Fence(FenceKey, Fence),
    Zero(ZeroKey),
    Segment(u64, BulkSegment),
    OfAccount(OfAccountKey),
    Claim(AccountKey, Claim),
}

impl Entry {
    /// Its key.
    pub fn key(&self) -> Key {
        match self {
            Self::Tenant(key, _) => Key::Tenant(*key),
            Self::Account(key, _) => Key::Account(*key),
            Self::Conversation(key, _) => Key::Conversation(*key),
            Self::Run(key, _) => Key::Run(*key),
            Self::Upload(key, _) => Key::Upload(*key),
            Self::Artifact(key, _) => Key::Artifact(*key),
            Self::Blob(key, _) => Key::Blob(*key),
            Self::Chunk(key, _) => Key::Chunk(*key),
            Self::ByOwner(key, _) => Key::ByOwner(*key),
            Self::Due(key) => Key::Due(*key),
            Self::Op(key, _) => Key::Op(*key),
            Self::Identity(key, _) => Key::Identity(*key),
            Self::Fence(key, _) => Key::Fence(*key),
            Self::Zero(key) => Key::Zero(*key),
            Self::Segment(key, _) => Key::Segment(*key),
            Self::OfAccount(key) => Key::OfAccount(*key),
            Self::Claim(key, _) => Key::Claim(*key),
        }
    }
}

/// The name of a keyspace that has a format.
pub fn keyspace_name(number: u8) -> Option<&'static str> {
    Some(match number {
        1 => "tenant",
        2 => "account",
        3 => "conversation",
        4 => "run",
        5 => "upload",
        9 => "artifact",
        10 => "blob",
        11 => "chunk",
        12 => "by owner",
        16 => "due",
        17 => "op",
        18 => "identity",
        19 => "fence",
        20 => "zero",
        21 => "segment",
        23 => "of account",
        24 => "claim",
        _ => return None,
    })
}

impl Key {
    /// The number of its keyspace.
    pub fn keyspace(&self) -> u8 {
        match self {
            Self::Tenant(_) => 1,
            Self::Account(_) => 2,
            Self::Conversation(_) => 3,
            Self::Run(_) => 4,
            Self::Upload(_) => 5,
            Self::Artifact(_) => 9,
            Self::Blob(_) => 10,
            Self::Chunk(_) => 11,
            Self::ByOwner(_) => 12,
            Self::Due(_) => 16,
            Self::Op(_) => 17,
            Self::Identity(_) => 18,
            Self::Fence(_) => 19,
            Self::Zero(_) => 20,
            Self::Segment(_) => 21,
            Self::OfAccount(_) => 23,
            Self::Claim(_) => 24,
        }
    }

    /// How long it is.
    pub fn length(&self) -> u64 {
        match self {
            Self::Tenant(_) | Self::Upload(_) => 16,
            Self::Account(_) | Self::Conversation(_) | Self::Run(_) | Self::Claim(_) => 20,
            Self::Artifact(_) => 36,
            Self::Blob(_) | Self::Chunk(_) => 32,
            Self::ByOwner(_) => 49,
            Self::Due(_) | Self::OfAccount(_) => 45,
            Self::Op(_) | Self::Identity(_) => 40,
            Self::Fence(_) => 17,
            Self::Zero(_) => 33,
            Self::Segment(_) => 8,
        }
    }

    /// Reads a key of a keyspace that has a format; `base` is where it stands.
    pub fn parse(keyspace: u8, bytes: &[u8], base: u64) -> Result<Self> {
        let mut f = Fields::new("key", bytes, base);
        let key = match keyspace {
            1 => Self::Tenant(f.array("scope hash")?),
            2 => Self::Account(scope_key(&mut f)?),
            3 => Self::Conversation(scope_key(&mut f)?),
            4 => Self::Run(scope_key(&mut f)?),
            5 => Self::Upload(f.array("upload id")?),
            9 => Self::Artifact(artifact_key(&mut f)?),
            10 => Self::Blob(f.array("blob key")?),
            11 => Self::Chunk(f.array("id")?),
            12 => Self::ByOwner(OwnerKey {
                tenant: tenant(&mut f)?,
                account: f.array("account")?,
                owner_kind: OwnerKind::parse(&mut f)?,
                owner: f.array("owner id")?,
                attach_lsn: f.ordered_u64("attach LSN")?,
                position: f.ordered_u32("position")?,
            }),
            16 => {
                let time = f.ordered_u64("time")?;
                let kind = f.u8("kind")?;
                f.check(kind == 1, Error::Value)?;
                Self::Due(DueKey { time, artifact: artifact_key(&mut f)? })
            }
            17 => Self::Op(op_key(&mut f)?),
            18 => Self::Identity(op_key(&mut f)?),
            19 => {
                let kind = f.u8("kind")?;
                f.check((1..=6).contains(&kind), Error::Value)?;
                Self::Fence(FenceKey { kind, scope: f.array("scope hash")? })
            }
            20 => match f.u8("kind")? {
                1 => Self::Zero(ZeroKey::Chunk(f.array("id")?)),
                2 => Self::Zero(ZeroKey::Blob(f.array("id")?)),
                _ => return Err(Error::Value(f.place())),
            },
            21 => {
                let id = f.ordered_u64("segment id")?;
                f.check(limits::is_file_id(id), Error::Bound)?;
                Self::Segment(id)
            }
            23 => {
                let (tenant, account) = (tenant(&mut f)?, f.array("account")?);
                let kind = f.u8("kind")?;
                f.check(kind == 1 || kind == 3, Error::Value)?;
                let (lsn, scope) = (f.ordered_u64("LSN")?, f.array("scope hash")?);
                Self::OfAccount(OfAccountKey { tenant, account, kind, lsn, scope })
            }
            24 => Self::Claim(scope_key(&mut f)?),
            _ => return Err(Error::Newer(f.place())),
        };
        f.end()?;
        Ok(key)
    }

    /// Reads the value that belongs to this key; `base` is where it stands.
    pub fn value(self, bytes: &[u8], base: u64) -> Result<Entry> {
        let mut f = Fields::new(keyspace_name(self.keyspace()).unwrap_or("value"), bytes, base);
        let f = &mut f;
        let entry = match self {
            Self::Tenant(key) => Entry::Tenant(key, Tenant::parse(f)?),
            Self::Account(key) => Entry::Account(key, Account::parse(f)?),
            Self::Conversation(key) => Entry::Conversation(key, Conversation::parse(f)?),
            Self::Run(key) => Entry::Run(key, Run::parse(f)?),
            Self::Upload(key) => Entry::Upload(key, Upload::parse(f)?),
            Self::Artifact(key) => Entry::Artifact(key, Box::new(Artifact::parse(f, &key)?)),
            Self::Blob(key) => Entry::Blob(key, Blob::parse(f)?),
            Self::Chunk(key) => Entry::Chunk(key, Chunk::parse(f)?),
            Self::ByOwner(key) => Entry::ByOwner(key, f.array("artifact id")?),
            Self::Due(key) => Entry::Due(key),
            Self::Op(key) => Entry::Op(key, Op::parse(f)?),
            Self::Identity(key) => Entry::Identity(key, f.array("artifact id")?),
            Self::Fence(key) => Entry::Fence(key, Fence::parse(f)?),
            Self::Zero(key) => Entry::Zero(key),
            Self::Segment(key) => Entry::Segment(key, BulkSegment::parse(f)?),
            Self::OfAccount(key) => Entry::OfAccount(key),
            Self::Claim(key) => Entry::Claim(key, Claim::parse(f)?),
        };
        f.end()?;
        Ok(entry)
    }
}

fn tenant(f: &mut Fields<'_>) -> Result<u32> {
    let tenant = f.ordered_u32("tenant")?;
    f.check(tenant > 0, Error::Value)?;
    Ok(tenant)
}

fn scope_key(f: &mut Fields<'_>) -> Result<AccountKey> {
    Ok(AccountKey { tenant: tenant(f)?, scope: f.array("scope hash")? })
}

fn op_key(f: &mut Fields<'_>) -> Result<OpKey> {
    Ok(OpKey { begin_lsn: f.ordered_u64("begin LSN")?, scope: f.array("scope hash")?, op: f.array("op hash")? })
}

fn artifact_key(f: &mut Fields<'_>) -> Result<ArtifactKey> {
    Ok(ArtifactKey { tenant: tenant(f)?, account: f.array("account")?, artifact: f.array("artifact id")? })
}
