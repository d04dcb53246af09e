//! Keyspaces and their keys (FORMAT.md section 12). Numbers inside ordered keys stand most significant byte first, so that the
//! order of bytes is the order of numbers.

use super::{Bad, Decoded, fields::Cursor, is_file_id};
use crate::{
    digest::ScopeKind,
    ids::{ArtifactId, BlobKey, ChunkId, FileId, IdentityHash, Lsn, OpHash, ScopeHash, TenantNumber, Time, UploadId},
};

/// A keyspace. The numbers are format; those left out here have no format in this version.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Keyspace {
    /// Tenants by the hash of their name.
    Tenant = 1,
    /// Accounts.
    Account = 2,
    /// Conversations.
    Conversation = 3,
    /// Runs.
    Run = 4,
    /// Uploads in progress.
    Upload = 5,
    /// Artifact records.
    Artifact = 9,
    /// Blobs.
    Blob = 10,
    /// Chunks and recipe pages.
    Chunk = 11,
    /// Artifacts in the order in which they came to their owner.
    ByOwner = 12,
    /// What ends at a time.
    Due = 16,
    /// Outcomes of operations with an op id.
    Op = 17,
    /// Puts of runs and conversations by what they put.
    Identity = 18,
    /// Boundaries in the history of scopes.
    Fence = 19,
    /// Chunks, pages and blobs without references.
    Zero = 20,
    /// Bulk segments.
    Segment = 21,
    /// Runs and conversations of an account, in the order in which they began.
    OfAccount = 23,
    /// What runs gave to conversations.
    Claim = 24,
}

impl Keyspace {
    /// Reads the number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|keyspace| *keyspace as u8 == number)
    }

    /// Every keyspace of this version.
    pub const ALL: [Self; 17] = [
        Self::Tenant,
        Self::Account,
        Self::Conversation,
        Self::Run,
        Self::Upload,
        Self::Artifact,
        Self::Blob,
        Self::Chunk,
        Self::ByOwner,
        Self::Due,
        Self::Op,
        Self::Identity,
        Self::Fence,
        Self::Zero,
        Self::Segment,
        Self::OfAccount,
        Self::Claim,
    ];
}

/// Bytes of a number in an ordered key.
#[expect(
    clippy::big_endian_bytes,
    reason = "ordered keys are the one place where the most significant byte stands first"
)]
fn ordered_u64(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

#[expect(
    clippy::big_endian_bytes,
    reason = "ordered keys are the one place where the most significant byte stands first"
)]
fn ordered_u32(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

#[expect(
    clippy::big_endian_bytes,
    reason = "ordered keys are the one place where the most significant byte stands first"
)]
fn from_ordered_u64(bytes: [u8; 8]) -> u64 {
    u64::from_be_bytes(bytes)
}

#[expect(
    clippy::big_endian_bytes,
    reason = "ordered keys are the one place where the most significant byte stands first"
)]
fn from_ordered_u32(bytes: [u8; 4]) -> u32 {
    u32::from_be_bytes(bytes)
}

/// Whose an artifact is. The numbers are format.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum OwnerKind {
    /// A run.
    Run = 1,
    /// An upload.
    Upload = 2,
    /// A conversation.
    Conversation = 3,
    /// An account.
    Account = 4,
}

impl OwnerKind {
    /// Reads the number.
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Run),
            2 => Some(Self::Upload),
            3 => Some(Self::Conversation),
            4 => Some(Self::Account),
            _ => None,
        }
    }

    /// Its stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Upload => "upload",
            Self::Conversation => "conversation",
            Self::Account => "account",
        }
    }
}

/// An artifact's one owner.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Owner {
    /// What it is.
    pub kind: OwnerKind,
    /// Its hash or id.
    pub id: [u8; 16],
}

/// A tenant and an account of it: the front of every ordered key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct AccountRef {
    /// The tenant.
    pub tenant: TenantNumber,
    /// The account.
    pub account: ScopeHash,
}

impl AccountRef {
    /// Key of the account record.
    pub fn key(&self) -> Vec<u8> {
        [&ordered_u32(self.tenant.0)[..], &self.account.0].concat()
    }

    /// Key of an artifact record.
    pub fn artifact_key(&self, id: ArtifactId) -> Vec<u8> {
        [&self.key()[..], &id.0].concat()
    }

    /// Front of the keys of an owner's list.
    pub fn owner_prefix(&self, owner: Owner) -> Vec<u8> {
        [&self.key()[..], &[owner.kind as u8], &owner.id].concat()
    }

    /// Key of one entry of an owner's list.
    pub fn owner_key(&self, owner: Owner, place: ListPlace) -> Vec<u8> {
        [&self.owner_prefix(owner)[..], &ordered_u64(place.attach_lsn.0), &ordered_u32(place.position)].concat()
    }

    /// Key of an artifact's expiry.
    pub fn due_key(&self, at: Time, id: ArtifactId) -> Vec<u8> {
        [&ordered_u64(at.0)[..], &[DUE_ARTIFACT], &self.artifact_key(id)].concat()
    }
}

/// A run or conversation of a tenant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ScopeRef {
    /// The tenant.
    pub tenant: TenantNumber,
    /// The hash of its id.
    pub scope: ScopeHash,
}

impl ScopeRef {
    /// Key of its record, and of a run's claim.
    pub fn key(&self) -> Vec<u8> {
        [&ordered_u32(self.tenant.0)[..], &self.scope.0].concat()
    }
}

/// What an account has besides artifacts. The numbers are those of owners.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Possession {
    /// A run.
    Run = 1,
    /// A conversation.
    Conversation = 3,
}

impl AccountRef {
    /// Front of the keys of an account's runs or conversations.
    pub fn possession_prefix(&self, kind: Possession) -> Vec<u8> {
        [&self.key()[..], &[kind as u8]].concat()
    }

    /// Key of one of them.
    pub fn possession_key(&self, kind: Possession, began: Lsn, scope: ScopeHash) -> Vec<u8> {
        [&self.possession_prefix(kind)[..], &ordered_u64(began.0), &scope.0].concat()
    }
}

/// The run or conversation of such a key.
pub fn possession_of_key(key: &[u8]) -> Decoded<ScopeHash> {
    key.last_chunk::<16>().map(|hash| ScopeHash(*hash)).ok_or(Bad::damaged("key of an account's run or conversation"))
}

const DUE_ARTIFACT: u8 = 1;
const ZERO_CHUNK: u8 = 1;
const ZERO_BLOB: u8 = 2;

/// Place of an artifact in its owner's list.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct ListPlace {
    /// LSN that attached it.
    pub attach_lsn: Lsn,
    /// Place among what that LSN attached.
    pub position: u32,
}

impl ListPlace {
    /// Reads the end of an owner key.
    pub fn from_owner_key(key: &[u8]) -> Decoded<Self> {
        let tail = key.last_chunk::<12>().ok_or(Bad::damaged("owner key"))?;
        let mut c = Cursor::new(tail, "owner key");
        Ok(Self { attach_lsn: Lsn(from_ordered_u64(c.bytes()?)), position: from_ordered_u32(c.bytes()?) })
    }
}

/// Key of a tenant record.
pub fn tenant_key(name: ScopeHash) -> Vec<u8> {
    name.0.to_vec()
}

/// Key of an upload record.
pub fn upload_key(id: UploadId) -> Vec<u8> {
    id.0.to_vec()
}

/// Key of a blob.
pub fn blob_key(key: BlobKey) -> Vec<u8> {
    key.0.to_vec()
}

/// Key of a chunk or page.
pub fn chunk_key(id: ChunkId) -> Vec<u8> {
    id.0.to_vec()
}

/// Key of an op outcome. `begin` is none for an account.
pub fn op_key(begin: Lsn, scope: ScopeHash, op: OpHash) -> Vec<u8> {
    [&ordered_u64(begin.0)[..], &scope.0, &op.0].concat()
}

/// Key of an identity. `begin` is that of the run or conversation.
pub fn identity_key(begin: Lsn, scope: ScopeHash, identity: IdentityHash) -> Vec<u8> {
    [&ordered_u64(begin.0)[..], &scope.0, &identity.0].concat()
}

/// Key in `zero` of a chunk or page.
pub fn zero_chunk_key(id: ChunkId) -> Vec<u8> {
    [&[ZERO_CHUNK][..], &id.0].concat()
}

/// Key in `zero` of a blob.
pub fn zero_blob_key(key: BlobKey) -> Vec<u8> {
    [&[ZERO_BLOB][..], &key.0].concat()
}

/// Key of a bulk segment.
pub fn segment_key(id: FileId) -> Vec<u8> {
    ordered_u64(id.0).to_vec()
}

/// Segment of a key.
pub fn segment_of_key(key: &[u8]) -> Decoded<FileId> {
    let bytes = key.try_into().map_err(|_| Bad::damaged("segment key"))?;
    Ok(FileId(from_ordered_u64(bytes)))
}

/// True if a keyspace can have this key: its length, and the fields that are not free.
pub fn key_holds(keyspace: Keyspace, key: &[u8]) -> bool {
    let has_tenant = |key: &[u8]| key.first_chunk::<4>().is_some_and(|tenant| *tenant != [0; 4]);
    key.len() == key_len(keyspace)
        && match keyspace {
            Keyspace::Account | Keyspace::Conversation | Keyspace::Run | Keyspace::Claim | Keyspace::Artifact => {
                has_tenant(key)
            }
            Keyspace::OfAccount => {
                let kinds = [Possession::Run as u8, Possession::Conversation as u8];
                has_tenant(key) && key.get(20).is_some_and(|kind| kinds.contains(kind))
            }
            Keyspace::Fence => key.first().copied().and_then(ScopeKind::from_number).is_some(),
            Keyspace::ByOwner => has_tenant(key) && key.get(20).copied().and_then(OwnerKind::from_number).is_some(),
            Keyspace::Due => key.get(8) == Some(&DUE_ARTIFACT) && key.get(9..).is_some_and(has_tenant),
            Keyspace::Zero => matches!(key.first(), Some(&(ZERO_CHUNK | ZERO_BLOB))),
            Keyspace::Segment => segment_of_key(key).is_ok_and(is_file_id),
            Keyspace::Tenant
            | Keyspace::Upload
            | Keyspace::Blob
            | Keyspace::Chunk
            | Keyspace::Op
            | Keyspace::Identity => true,
        }
}

/// Key length that a keyspace has.
pub const fn key_len(keyspace: Keyspace) -> usize {
    match keyspace {
        Keyspace::Tenant | Keyspace::Upload => 16,
        Keyspace::Account | Keyspace::Conversation | Keyspace::Run | Keyspace::Claim => 20,
        Keyspace::Artifact => 36,
        Keyspace::Blob | Keyspace::Chunk => 32,
        Keyspace::ByOwner => 49,
        Keyspace::Due | Keyspace::OfAccount => 45,
        Keyspace::Op | Keyspace::Identity => 40,
        Keyspace::Fence => 17,
        Keyspace::Zero => 33,
        Keyspace::Segment => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keyspaces_have_the_numbers_of_the_format() {
        let numbers = [1, 2, 3, 4, 5, 9, 10, 11, 12, 16, 17, 18, 19, 20, 21, 23, 24];
        for (keyspace, number) in Keyspace::ALL.into_iter().zip(numbers) {
            assert_eq!(keyspace as u8, number);
            assert_eq!(Keyspace::from_number(number), Some(keyspace));
        }
        for unknown in [0, 6, 7, 8, 13, 14, 15, 22, 25, 255] {
            assert_eq!(Keyspace::from_number(unknown), None);
        }
    }

    #[test]
    fn owner_kinds_have_the_numbers_of_the_format() {
        for (kind, number) in
            [(OwnerKind::Run, 1), (OwnerKind::Upload, 2), (OwnerKind::Conversation, 3), (OwnerKind::Account, 4)]
        {
            assert_eq!(kind as u8, number);
            assert_eq!(OwnerKind::from_number(number), Some(kind));
        }
        assert_eq!(OwnerKind::from_number(5), None);
    }

    #[test]
    fn keys_have_their_lengths_and_order_by_number() {
        let account = AccountRef { tenant: TenantNumber(1), account: ScopeHash([2; 16]) };
        let owner = Owner { kind: OwnerKind::Account, id: [2; 16] };
        let place = |lsn, position| ListPlace { attach_lsn: Lsn(lsn), position };
        let keys = [
            (Keyspace::Account, account.key()),
            (Keyspace::Artifact, account.artifact_key(ArtifactId([3; 16]))),
            (Keyspace::ByOwner, account.owner_key(owner, place(1, 2))),
            (Keyspace::Due, account.due_key(Time(1), ArtifactId([3; 16]))),
            (Keyspace::Conversation, ScopeRef { tenant: TenantNumber(1), scope: ScopeHash([2; 16]) }.key()),
            (Keyspace::OfAccount, account.possession_key(Possession::Run, Lsn(7), ScopeHash([2; 16]))),
            (Keyspace::Identity, identity_key(Lsn(1), ScopeHash([1; 16]), IdentityHash([1; 16]))),
            (Keyspace::Op, op_key(Lsn::NONE, ScopeHash([1; 16]), OpHash([1; 16]))),
            (Keyspace::Zero, zero_chunk_key(ChunkId([1; 32]))),
            (Keyspace::Segment, segment_key(FileId(7))),
        ];
        for (keyspace, key) in keys {
            assert!(key_holds(keyspace, &key), "{keyspace:?}");
            assert!(!key_holds(keyspace, &key[1..]), "{keyspace:?}");
        }
        assert!(account.owner_key(owner, place(255, 9)) < account.owner_key(owner, place(256, 0)));
        assert!(account.owner_key(owner, place(256, 255)) < account.owner_key(owner, place(256, 256)));
        assert_eq!(ListPlace::from_owner_key(&account.owner_key(owner, place(300, 5))), Ok(place(300, 5)));
        assert_eq!(segment_of_key(&segment_key(FileId(513))), Ok(FileId(513)));
    }
}
