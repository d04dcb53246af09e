//! Identity: keyed ids of chunks, pages and blobs, hashes of what callers name things, the commit chain, and SHA-256.
//!
//! Contexts and inputs are those of FORMAT.md sections 7.2 and 13.

mod pair;

use sha2::{
    Digest as _,
    digest::common::hazmat::{SerializableState as _, SerializedState},
};

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

/// As many random ids as are asked for, from one random seed.
#[derive(Clone)]
pub struct RandomIds([u8; 32]);

impl RandomIds {
    /// Of a seed that nobody else has.
    pub const fn new(seed: [u8; 32]) -> Self {
        Self(seed)
    }

    /// The ids, the same each time; there is always another one.
    pub fn iter(&self) -> impl Iterator<Item = [u8; 16]> + use<> {
        let mut stream = blake3::Hasher::new_keyed(&self.0).finalize_xof();
        std::iter::repeat_with(move || {
            let mut id = [0; 16];
            stream.fill(&mut id);
            id
        })
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

/// What `sha2` saves of a stream: eight words, how many blocks, how many bytes since the last block, and those bytes.
type Saved = SerializedState<sha2::Sha256>;
const SAVED_BLOCKS: usize = 32;
const SAVED_REST_LEN: usize = 40;

/// Fewer blocks do not earn the saving and resuming of two states.
const BLOCKS_FOR_TWO: usize = 8;

impl Sha256Stream {
    /// Takes more bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// True if two streams at once are faster than one after the other.
    pub fn two_pay() -> bool {
        pair::pays()
    }

    /// Takes more bytes of two streams, where the CPU has SHA instructions in little more than the time of the longer one.
    pub fn update_two([(one, bytes_one), (two, bytes_two)]: [(&mut Self, &[u8]); 2]) {
        let (bytes_one, bytes_two) = (one.update_to_block(bytes_one), two.update_to_block(bytes_two));
        let (blocks_one, blocks_two) = (bytes_one.as_chunks().0, bytes_two.as_chunks().0);
        let both = blocks_one.len().min(blocks_two.len());
        if both < BLOCKS_FOR_TWO || !pair::pays() {
            one.update(bytes_one);
            two.update(bytes_two);
            return;
        }
        let (mut state_one, mut state_two) = (one.state(), two.state());
        pair::compress([&mut state_one, &mut state_two], [&blocks_one[..both], &blocks_two[..both]]);
        one.resume(state_one, both);
        two.resume(state_two, both);
        one.update(&bytes_one[both * size_of::<pair::Block>()..]);
        two.update(&bytes_two[both * size_of::<pair::Block>()..]);
    }

    /// Takes what the block that was begun lacks, and returns the others.
    fn update_to_block<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let rest_len = usize::from(self.0.serialize()[SAVED_REST_LEN]);
        let missing = if rest_len == 0 { 0 } else { size_of::<pair::Block>() - rest_len };
        let (missing, others) = bytes.split_at(missing.min(bytes.len()));
        self.update(missing);
        others
    }

    fn state(&self) -> pair::State {
        let saved = self.0.serialize();
        let words = saved[..SAVED_BLOCKS].as_chunks().0;
        std::array::from_fn(|index| u32::from_le_bytes(words[index]))
    }

    /// Goes on from a state that has taken `more` blocks, and no bytes behind them.
    fn resume(&mut self, state: pair::State, more: usize) {
        let mut saved: Saved = self.0.serialize();
        for (word, bytes) in state.into_iter().zip(saved[..SAVED_BLOCKS].as_chunks_mut().0) {
            *bytes = word.to_le_bytes();
        }
        let blocks: &mut [u8; 8] = saved[SAVED_BLOCKS..].first_chunk_mut().expect("40 bytes and more");
        *blocks = (u64::from_le_bytes(*blocks) + more as u64).to_le_bytes();
        self.0 = sha2::Sha256::deserialize(&saved).expect("a state that was saved, other words and a higher count");
    }

    /// What [`resumed`](Self::resumed) goes on from, as `sha2` saves it.
    pub fn saved(&self) -> Vec<u8> {
        self.0.serialize().to_vec()
    }

    /// Goes on from a state that was saved; nothing if it is none.
    pub fn resumed(saved: &[u8]) -> Option<Self> {
        let saved = Saved::try_from(saved).ok()?;
        sha2::Sha256::deserialize(&saved).ok().map(Self)
    }

    /// The digest of all bytes taken.
    pub fn finish(self) -> Sha256 {
        Sha256(self.0.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
    fn a_saved_state_of_sha_256_is_that_of_the_format_and_goes_on() {
        let mut stream = Sha256Stream::default();
        stream.update(&[7; 64]);
        stream.update(b"abc");
        let saved = stream.saved();
        assert_eq!(saved.len(), 104);
        assert_eq!((&saved[32..40], saved[40], &saved[41..44]), (&1_u64.to_le_bytes()[..], 3, &b"abc"[..]));
        assert!(saved[44..].iter().all(|byte| *byte == 0));
        // The constants of FIPS 180-4 section 5.3.3, before a block was taken.
        assert_eq!(Sha256Stream::default().saved()[..4], 0x6a09_e667_u32.to_le_bytes());
        let mut resumed = Sha256Stream::resumed(&saved).expect("it was saved");
        for stream in [&mut stream, &mut resumed] {
            stream.update(&[9; 1000]);
        }
        assert_eq!(resumed.finish(), stream.finish());
        for wrong in [&saved[..103], &[&saved[..40], &[64][..], &saved[41..]].concat(), b""] {
            assert!(Sha256Stream::resumed(wrong).is_none());
        }
    }

    #[test]
    fn random_ids_of_a_seed_are_the_same_again_and_all_different() {
        let ids = |seed: u8| RandomIds::new([seed; 32]).iter().take(100).collect::<Vec<_>>();
        assert_eq!(ids(1), ids(1));
        let all: std::collections::BTreeSet<_> = [ids(1), ids(2)].concat().into_iter().collect();
        assert_eq!(all.len(), 200);
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

    proptest! {
        #[test]
        fn two_streams_at_once_have_the_digests_of_each(
            pieces in proptest::collection::vec(proptest::array::uniform2(0..3000_usize), 0..6),
        ) {
            let bytes: Vec<u8> = (0..=250).cycle().take(3000).collect();
            let (mut streams, mut expected) = <([Sha256Stream; 2], [Sha256Stream; 2])>::default();
            for [len_one, len_two] in pieces {
                let (piece_one, piece_two) = (&bytes[..len_one], &bytes[bytes.len() - len_two..]);
                let [one, two] = &mut streams;
                Sha256Stream::update_two([(one, piece_one), (two, piece_two)]);
                expected[0].update(piece_one);
                expected[1].update(piece_two);
            }
            for (stream, expected) in streams.into_iter().zip(expected) {
                prop_assert_eq!(stream.finish(), expected.finish());
            }
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
