//! Identity: keyed ids of chunks, pages and blobs, hashes of what callers name things, the commit chain, and SHA-256.
//!
//! Contexts and inputs are those of FORMAT.md sections 7.2 and 13.

use sha2::Digest as _;

use crate::ids::{BlobKey, ChainHash, ChunkId, IdentityHash, OpHash, ScopeHash, Sha256, StoreUuid, TenantNumber};

/// What a scope id names. The numbers are format.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum ScopeKind {
    /// A tenant's name.
    Tenant = 1,
    /// An account.
    Account = 2,
    /// A tag.
    Tag = 3,
    /// A conversation.
    Conversation = 4,
    /// A run.
    Run = 5,
    /// A digest.
    Digest = 6,
}

impl ScopeKind {
    /// Reads the number.
    pub fn from_number(number: u8) -> Option<Self> {
        let all = [Self::Tenant, Self::Account, Self::Tag, Self::Conversation, Self::Run, Self::Digest];
        all.into_iter().find(|kind| *kind as u8 == number)
    }
}

/// What two puts into one scope have in common if they are one.
#[derive(Clone, Copy, Debug)]
pub struct Identity<'a> {
    /// Number of the origin.
    pub origin: u8,
    /// Name as it is kept.
    pub name: &'a str,
    /// Type as it is kept.
    pub media_type: &'a str,
    /// Digest of the content.
    pub sha256: Sha256,
    /// Its length.
    pub size: u64,
}

/// Keys derived from the store secret: the door through which ids of callers become hashes.
#[derive(Clone)]
pub struct StoreKeys {
    scope: [u8; 32],
    op: [u8; 32],
    identity: [u8; 32],
}

impl StoreKeys {
    /// Derives them.
    pub fn new(secret: &[u8; 32]) -> Self {
        Self {
            scope: blake3::derive_key("holdfast scope v1", secret),
            op: blake3::derive_key("holdfast op v1", secret),
            identity: blake3::derive_key("holdfast identity v1", secret),
        }
    }

    /// Hash of an id that a caller gave. A tenant's own name is hashed with tenant 0.
    pub fn scope(&self, tenant: TenantNumber, kind: ScopeKind, id: &str) -> ScopeHash {
        let mut hasher = blake3::Hasher::new_keyed(&self.scope);
        hasher.update(&tenant.0.to_le_bytes()).update(&[kind as u8]).update(id.as_bytes());
        ScopeHash(first_16(&hasher.finalize()))
    }

    /// Hash of an identity within a scope.
    pub fn identity(&self, tenant: TenantNumber, scope: ScopeHash, identity: &Identity<'_>) -> IdentityHash {
        let Identity { origin, name, media_type, sha256, size } = *identity;
        let media_len = u16::try_from(media_type.len()).expect("a media type is at most 255 bytes");
        let mut hasher = blake3::Hasher::new_keyed(&self.identity);
        hasher.update(&tenant.0.to_le_bytes()).update(&scope.0).update(&[origin]).update(&sha256.0);
        hasher.update(&size.to_le_bytes()).update(&media_len.to_le_bytes()).update(media_type.as_bytes());
        hasher.update(name.as_bytes());
        IdentityHash(first_16(&hasher.finalize()))
    }

    /// Hash of an op id within a scope.
    pub fn op(&self, tenant: TenantNumber, scope: ScopeHash, op_id: &str) -> OpHash {
        let mut hasher = blake3::Hasher::new_keyed(&self.op);
        hasher.update(&tenant.0.to_le_bytes()).update(&scope.0).update(op_id.as_bytes());
        OpHash(first_16(&hasher.finalize()))
    }
}

/// Keys derived from a tenant's key: two tenants' ids of equal bytes have nothing in common.
#[derive(Clone)]
pub struct TenantKeys {
    chunk: [u8; 32],
    page: [u8; 32],
    blob: [u8; 32],
}

impl TenantKeys {
    /// Derives them.
    pub fn new(key: &[u8; 32]) -> Self {
        Self {
            chunk: blake3::derive_key("holdfast chunk v1", key),
            page: blake3::derive_key("holdfast page v1", key),
            blob: blake3::derive_key("holdfast blob v1", key),
        }
    }

    /// Id of a chunk.
    pub fn chunk(&self, raw: &[u8]) -> ChunkId {
        ChunkId(*blake3::keyed_hash(&self.chunk, raw).as_bytes())
    }

    /// Id of a recipe page.
    pub fn page(&self, payload: &[u8]) -> ChunkId {
        ChunkId(*blake3::keyed_hash(&self.page, payload).as_bytes())
    }

    /// Key of a blob in the catalog.
    pub fn blob(&self, sha256: Sha256, size: u64) -> BlobKey {
        let mut hasher = blake3::Hasher::new_keyed(&self.blob);
        hasher.update(&sha256.0).update(&size.to_le_bytes());
        BlobKey(*hasher.finalize().as_bytes())
    }
}

/// Check value of a tenant key, by which a manifest shows that the key is the one it was given.
pub fn tenant_check(key: &[u8; 32]) -> [u8; 16] {
    let derived = blake3::derive_key("holdfast tenant check v1", key);
    let mut check = [0; 16];
    check.copy_from_slice(&derived[..16]);
    check
}

/// Chain hash before the first commit of a store.
pub fn chain_root(uuid: StoreUuid) -> ChainHash {
    ChainHash(blake3::derive_key("holdfast chain root v1", &uuid.0))
}

/// Chain hash after a commit frame.
pub fn chain_next(previous: ChainHash, header: &[u8; 64], payload: &[u8]) -> ChainHash {
    let mut hasher = blake3::Hasher::new_derive_key("holdfast chain v1");
    hasher.update(&previous.0).update(header).update(payload);
    ChainHash(*hasher.finalize().as_bytes())
}

/// Unkeyed hash of a manifest file.
pub fn file_digest(bytes: &[u8]) -> [u8; 32] {
    *blake3::hash(bytes).as_bytes()
}

fn first_16(hash: &blake3::Hash) -> [u8; 16] {
    let mut out = [0; 16];
    out.copy_from_slice(&hash.as_bytes()[..16]);
    out
}

/// SHA-256 over a stream.
#[derive(Clone, Default)]
pub struct Sha256Stream(sha2::Sha256);

impl Sha256Stream {
    /// Takes more bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all bytes taken.
    pub fn finish(self) -> Sha256 {
        Sha256(self.0.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_equal_text_differ_by_tenant_and_by_kind() {
        let keys = StoreKeys::new(&[7; 32]);
        let account = keys.scope(TenantNumber(1), ScopeKind::Account, "a");
        assert_ne!(account, keys.scope(TenantNumber(2), ScopeKind::Account, "a"));
        assert_ne!(account, keys.scope(TenantNumber(1), ScopeKind::Conversation, "a"));
        assert_ne!(account, StoreKeys::new(&[8; 32]).scope(TenantNumber(1), ScopeKind::Account, "a"));
    }

    #[test]
    fn a_page_with_the_bytes_of_a_chunk_has_another_id() {
        let keys = TenantKeys::new(&[1; 32]);
        assert_ne!(keys.chunk(b"bytes"), keys.page(b"bytes"));
        assert_ne!(keys.chunk(b"bytes"), TenantKeys::new(&[2; 32]).chunk(b"bytes"));
    }

    #[test]
    fn scope_kinds_have_the_numbers_of_the_format() {
        let kinds = [
            (ScopeKind::Tenant, 1),
            (ScopeKind::Account, 2),
            (ScopeKind::Tag, 3),
            (ScopeKind::Conversation, 4),
            (ScopeKind::Run, 5),
            (ScopeKind::Digest, 6),
        ];
        for (kind, number) in kinds {
            assert_eq!(kind as u8, number);
        }
    }

    #[test]
    fn sha256_in_pieces_is_sha256() {
        let mut stream = Sha256Stream::default();
        stream.update(b"a");
        stream.update(b"bc");
        assert_eq!(stream.finish().to_string(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
