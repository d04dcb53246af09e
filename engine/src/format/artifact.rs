//! The artifact record (FORMAT.md section 12.2), with every field that ownership gives it.

use super::{
    Bad, Decoded,
    fields::{Cursor, Fixed, layout, put},
    keyspace::{AccountRef, ListPlace, Owner, OwnerKind},
};
use crate::{
    ids::{ArtifactId, ChunkId, Lsn, ScopeHash, Sha256, TenantNumber, Time},
    limits::{ARTIFACT_KEY_LEN_MAX, MEDIA_TYPE_LEN_MAX, NAME_LEN_MAX},
};

layout! { 288:
    ID 16, TENANT 4, FLAGS 4, ACCOUNT 16, OWNER_KIND 1, ORIGIN 1, RESERVED 2, POSITION 4, OWNER 16,
    BORN_ACCOUNT 16, BORN_RUN 16, BORN_ORDER 8, BORN_LSN 8, BORN_TIME 8, TOKEN_LSN 8, ATTACH_LSN 8,
    SIZE 8, SHA256 32, ROOT 32, LOGICAL_SIZE 8, EXPIRES_AT 8, VERSION 8, LINK_OF 16, SUPERSEDES 16, DERIVED_FROM 16,
    NAME_LEN 2, KEY_LEN 2, MEDIA_LEN 2, DETECTED_LEN 2,
}

/// Where the bytes came from. The numbers are format.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Origin {
    /// A person uploaded it.
    Upload = 1,
    /// A file that a run exported from its sandbox.
    SandboxExport = 2,
    /// What a model wrote.
    ModelOutput = 3,
    /// What a tool wrote.
    ToolOutput = 4,
    /// Made from another artifact.
    Derived = 5,
}

impl Origin {
    /// Every origin.
    pub const ALL: [Self; 5] = [Self::Upload, Self::SandboxExport, Self::ModelOutput, Self::ToolOutput, Self::Derived];

    /// Its stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Upload => "upload",
            Self::SandboxExport => "sandbox_export",
            Self::ModelOutput => "model_output",
            Self::ToolOutput => "tool_output",
            Self::Derived => "derived",
        }
    }

    fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|origin| *origin as u8 == number)
    }
}

/// What never changes about how an artifact came to be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Born {
    /// Account that wrote it.
    pub account: ScopeHash,
    /// Run that wrote it.
    pub run: Option<ScopeHash>,
    /// Origin.
    pub origin: Origin,
    /// The caller's own order.
    pub order: Option<u64>,
    /// LSN of the put.
    pub lsn: Lsn,
    /// Time of the put.
    pub time: Time,
}

/// An artifact: immutable content; only owner, expiry and version change.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "they are flags of the format")]
pub struct Artifact {
    /// Random.
    pub id: ArtifactId,
    /// Tenant and account in whose list it stands.
    pub account: AccountRef,
    /// Its one owner.
    pub owner: Owner,
    /// How it came to be.
    pub born: Born,
    /// LSN that fences are held against.
    pub token_lsn: Lsn,
    /// Where it stands in its owner's list.
    pub place: ListPlace,
    /// File name.
    pub name: String,
    /// Opaque path-like name for adapters; never used as a path.
    pub key: Option<String>,
    /// What the client says it is, where that is well formed.
    pub media_type: String,
    /// What its first bytes say it is; empty if they say nothing.
    pub detected_type: String,
    /// Bytes.
    pub size: u64,
    /// SHA-256 of them.
    pub sha256: Sha256,
    /// Root of the recipe.
    pub blob_root: ChunkId,
    /// Size of what this is a part of.
    pub logical_size: Option<u64>,
    /// True if it is a part.
    pub truncated: bool,
    /// True if it is a directory tree.
    pub tree: bool,
    /// When it ends.
    pub expires_at: Option<Time>,
    /// Rises with each change of owner or expiry.
    pub version: u64,
    /// The artifact that it is a link of.
    pub link_of: Option<ArtifactId>,
    /// True if the author's erasure does not follow it here.
    pub detach: bool,
    /// The artifact that it replaces.
    pub supersedes: Option<ArtifactId>,
    /// The artifact that it was made from.
    pub derived_from: Option<ArtifactId>,
    /// True once its owner deleted it.
    pub deleted: bool,
}

/// Bits of `flags`; 3 to 10 say that a field is present.
mod bit {
    pub(super) const TRUNCATED: u32 = 1;
    pub(super) const TREE: u32 = 1 << 1;
    pub(super) const DETACH: u32 = 1 << 2;
    pub(super) const BORN_RUN: u32 = 1 << 3;
    pub(super) const BORN_ORDER: u32 = 1 << 4;
    pub(super) const KEY: u32 = 1 << 5;
    pub(super) const LOGICAL_SIZE: u32 = 1 << 6;
    pub(super) const EXPIRES_AT: u32 = 1 << 7;
    pub(super) const LINK_OF: u32 = 1 << 8;
    pub(super) const SUPERSEDES: u32 = 1 << 9;
    pub(super) const DERIVED_FROM: u32 = 1 << 10;
    pub(super) const DELETED: u32 = 1 << 11;
    pub(super) const ALL: u32 = (1 << 12) - 1;
}

impl Artifact {
    fn flags(&self) -> u32 {
        [
            (self.truncated, bit::TRUNCATED),
            (self.tree, bit::TREE),
            (self.detach, bit::DETACH),
            (self.born.run.is_some(), bit::BORN_RUN),
            (self.born.order.is_some(), bit::BORN_ORDER),
            (self.key.is_some(), bit::KEY),
            (self.logical_size.is_some(), bit::LOGICAL_SIZE),
            (self.expires_at.is_some(), bit::EXPIRES_AT),
            (self.link_of.is_some(), bit::LINK_OF),
            (self.supersedes.is_some(), bit::SUPERSEDES),
            (self.derived_from.is_some(), bit::DERIVED_FROM),
            (self.deleted, bit::DELETED),
        ]
        .into_iter()
        .fold(0, |flags, (set, bit)| if set { flags | bit } else { flags })
    }

    /// The value.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![0; at::LEN];
        let o = &mut out[..];
        put(o, at::ID, &self.id.0);
        put(o, at::TENANT, &self.account.tenant.0.to_le_bytes());
        put(o, at::FLAGS, &self.flags().to_le_bytes());
        put(o, at::ACCOUNT, &self.account.account.0);
        put(o, at::OWNER_KIND, &[self.owner.kind as u8, self.born.origin as u8]);
        put(o, at::POSITION, &self.place.position.to_le_bytes());
        put(o, at::OWNER, &self.owner.id);
        put(o, at::BORN_ACCOUNT, &self.born.account.0);
        put(o, at::BORN_RUN, &self.born.run.unwrap_or_default().0);
        put(o, at::BORN_ORDER, &self.born.order.unwrap_or_default().to_le_bytes());
        put(o, at::BORN_LSN, &self.born.lsn.0.to_le_bytes());
        put(o, at::BORN_TIME, &self.born.time.0.to_le_bytes());
        put(o, at::TOKEN_LSN, &self.token_lsn.0.to_le_bytes());
        put(o, at::ATTACH_LSN, &self.place.attach_lsn.0.to_le_bytes());
        put(o, at::SIZE, &self.size.to_le_bytes());
        put(o, at::SHA256, &self.sha256.0);
        put(o, at::ROOT, &self.blob_root.0);
        put(o, at::LOGICAL_SIZE, &self.logical_size.unwrap_or_default().to_le_bytes());
        put(o, at::EXPIRES_AT, &self.expires_at.unwrap_or_default().0.to_le_bytes());
        put(o, at::VERSION, &self.version.to_le_bytes());
        put(o, at::LINK_OF, &self.link_of.unwrap_or_default().0);
        put(o, at::SUPERSEDES, &self.supersedes.unwrap_or_default().0);
        put(o, at::DERIVED_FROM, &self.derived_from.unwrap_or_default().0);
        let texts = [&self.name, self.key.as_ref().unwrap_or(&String::new()), &self.media_type, &self.detected_type]
            .map(String::clone);
        for (text, at) in texts.iter().zip([at::NAME_LEN, at::KEY_LEN, at::MEDIA_LEN, at::DETECTED_LEN]) {
            put(&mut out, at, &u16::try_from(text.len()).expect("texts are bounded").to_le_bytes());
        }
        out.extend(texts.iter().flat_map(|text| text.bytes()));
        out
    }

    /// Reads a value.
    pub fn decode(bytes: &[u8]) -> Decoded<Self> {
        let bad = Bad::damaged("artifact value");
        let (fixed, texts) = bytes.split_at_checked(at::LEN).ok_or(bad)?;
        let f = Fixed(fixed);
        f.reserved(at::RESERVED, 2, "artifact reserved bytes")?;
        let flags = f.u32(at::FLAGS);
        if flags & !bit::ALL != 0 {
            return Err(bad);
        }
        let has = |bit: u32| flags & bit != 0;
        let number = |at: usize, bit: u32| match (has(bit), f.u64(at)) {
            (false, 0) => Ok(None),
            (true, n) => Ok(Some(n)),
            _ => Err(bad),
        };
        let id = |at: usize, bit: u32| match (has(bit), f.bytes::<16>(at)) {
            (false, zero) if zero == [0; 16] => Ok(None),
            (true, id) => Ok(Some(id)),
            _ => Err(bad),
        };
        let mut c = Cursor::new(texts, "artifact texts");
        let name = text(&mut c, f.u16(at::NAME_LEN), NAME_LEN_MAX)?;
        let key = text(&mut c, f.u16(at::KEY_LEN), ARTIFACT_KEY_LEN_MAX)?;
        let media_type = text(&mut c, f.u16(at::MEDIA_LEN), MEDIA_TYPE_LEN_MAX)?;
        let detected_type = text(&mut c, f.u16(at::DETECTED_LEN), MEDIA_TYPE_LEN_MAX)?;
        c.end()?;
        let artifact = Self {
            id: ArtifactId(f.bytes(at::ID)),
            account: AccountRef { tenant: TenantNumber(f.u32(at::TENANT)), account: ScopeHash(f.bytes(at::ACCOUNT)) },
            owner: Owner { kind: OwnerKind::from_number(f.u8(at::OWNER_KIND)).ok_or(bad)?, id: f.bytes(at::OWNER) },
            born: Born {
                account: ScopeHash(f.bytes(at::BORN_ACCOUNT)),
                run: id(at::BORN_RUN, bit::BORN_RUN)?.map(ScopeHash),
                origin: Origin::from_number(f.u8(at::ORIGIN)).ok_or(bad)?,
                order: number(at::BORN_ORDER, bit::BORN_ORDER)?,
                lsn: Lsn(f.u64(at::BORN_LSN)),
                time: Time(f.u64(at::BORN_TIME)),
            },
            token_lsn: Lsn(f.u64(at::TOKEN_LSN)),
            place: ListPlace { attach_lsn: Lsn(f.u64(at::ATTACH_LSN)), position: f.u32(at::POSITION) },
            name,
            key: has(bit::KEY).then_some(key),
            media_type,
            detected_type,
            size: f.u64(at::SIZE),
            sha256: Sha256(f.bytes(at::SHA256)),
            blob_root: ChunkId(f.bytes(at::ROOT)),
            logical_size: number(at::LOGICAL_SIZE, bit::LOGICAL_SIZE)?,
            truncated: has(bit::TRUNCATED),
            tree: has(bit::TREE),
            expires_at: number(at::EXPIRES_AT, bit::EXPIRES_AT)?.map(Time),
            version: f.u64(at::VERSION),
            link_of: id(at::LINK_OF, bit::LINK_OF)?.map(ArtifactId),
            detach: has(bit::DETACH),
            supersedes: id(at::SUPERSEDES, bit::SUPERSEDES)?.map(ArtifactId),
            derived_from: id(at::DERIVED_FROM, bit::DERIVED_FROM)?.map(ArtifactId),
            deleted: has(bit::DELETED),
        };
        let key_len = usize::from(f.u16(at::KEY_LEN));
        let holds = artifact.version >= 1
            && !artifact.name.is_empty()
            && (has(bit::KEY) || key_len == 0)
            && artifact.account.tenant.0 != 0
            && artifact.blob_root.is_zero() == (artifact.size == 0);
        if holds { Ok(artifact) } else { Err(bad) }
    }
}

fn text(c: &mut Cursor<'_>, len: u16, max: usize) -> Decoded<String> {
    let len = usize::from(len);
    if len > max { Err(Bad::damaged("artifact text length")) } else { c.text(len) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> Artifact {
        Artifact {
            id: ArtifactId([1; 16]),
            account: AccountRef { tenant: TenantNumber(1), account: ScopeHash([2; 16]) },
            owner: Owner { kind: OwnerKind::Conversation, id: [3; 16] },
            born: Born {
                account: ScopeHash([4; 16]),
                run: Some(ScopeHash([5; 16])),
                origin: Origin::ToolOutput,
                order: Some(0),
                lsn: Lsn(6),
                time: Time(7),
            },
            token_lsn: Lsn(8),
            place: ListPlace { attach_lsn: Lsn(9), position: 10 },
            name: "naïve.txt".into(),
            key: Some(String::new()),
            media_type: "text/plain".into(),
            detected_type: String::new(),
            size: 11,
            sha256: Sha256([12; 32]),
            blob_root: ChunkId([13; 32]),
            logical_size: Some(14),
            truncated: true,
            tree: true,
            expires_at: Some(Time(15)),
            version: 16,
            link_of: Some(ArtifactId([17; 16])),
            detach: true,
            supersedes: Some(ArtifactId([18; 16])),
            derived_from: Some(ArtifactId([19; 16])),
            deleted: true,
        }
    }

    #[test]
    fn a_record_comes_back_with_every_field_and_with_none() {
        let bare = Artifact {
            born: Born { run: None, order: None, ..full().born },
            key: None,
            logical_size: None,
            truncated: false,
            tree: false,
            expires_at: None,
            link_of: None,
            detach: false,
            supersedes: None,
            derived_from: None,
            deleted: false,
            ..full()
        };
        for artifact in [full(), bare] {
            let bytes = artifact.encode();
            assert_eq!(Artifact::decode(&bytes), Ok(artifact.clone()));
            for len in 0..bytes.len() {
                assert!(Artifact::decode(&bytes[..len]).is_err());
            }
        }
    }

    #[test]
    fn a_field_that_is_not_present_must_be_zero() {
        let mut bytes = full().encode();
        let flags = Fixed(&bytes).u32(at::FLAGS) & !bit::EXPIRES_AT;
        put(&mut bytes, at::FLAGS, &flags.to_le_bytes());
        assert!(Artifact::decode(&bytes).is_err());
    }

    #[test]
    fn origins_have_the_numbers_of_the_format() {
        for (index, origin) in Origin::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(origin as u8), index + 1);
        }
        assert_eq!(Origin::from_number(0), None);
        assert_eq!(Origin::from_number(6), None);
    }
}
