//! What is where and whose: entries (keyspace, key) -> value.
//!
//! Everything above asks through [`State`] and changes through edits; it cannot tell whether an entry stands in memory or in a
//! table. Here all entries stand in memory, rebuilt from the log at open: O(log n) a look-up, and memory that grows with the
//! number of entries.

use std::{collections::BTreeMap, ops::Bound};

use crate::{
    digest::ScopeKind,
    error::{Error, Kind, Result},
    format::{
        Bad, Decoded,
        artifact::Artifact,
        claim::Claim,
        commit::Edit,
        conversation::Conversation,
        fence::{Fence, fence_key},
        frame::FrameKind,
        keyspace::{AccountRef, Keyspace, ScopeRef, blob_key, chunk_key, key_holds, upload_key},
        run::Run,
        upload::Upload,
        value::{AccountValue, BlobValue, ChunkValue, OpValue, SegmentValue, TenantValue},
    },
    ids::{ArtifactId, BlobKey, ChunkId, ScopeHash, UploadId},
};

/// An entry: key and value.
pub type Entry = (Vec<u8>, Vec<u8>);

/// Entries as a reader or a rule sees them.
pub trait State {
    /// The value of a key.
    fn get(&self, keyspace: Keyspace, key: &[u8]) -> Result<Option<Vec<u8>>>;

    /// Up to `limit` entries whose keys begin with `prefix`, behind `after` if it is given, in the order of keys.
    fn scan(&self, keyspace: Keyspace, prefix: &[u8], after: Option<&[u8]>, limit: usize) -> Result<Vec<Entry>>;

    /// A chunk or page.
    fn chunk(&self, id: ChunkId) -> Result<Option<ChunkValue>> {
        decode(self.get(Keyspace::Chunk, &chunk_key(id))?, ChunkValue::decode)
    }

    /// A blob.
    fn blob(&self, key: BlobKey) -> Result<Option<BlobValue>> {
        decode(self.get(Keyspace::Blob, &blob_key(key))?, BlobValue::decode)
    }

    /// An artifact of an account.
    fn artifact(&self, account: &AccountRef, id: ArtifactId) -> Result<Option<Artifact>> {
        decode(self.get(Keyspace::Artifact, &account.artifact_key(id))?, Artifact::decode)
    }

    /// An upload.
    fn upload(&self, id: UploadId) -> Result<Option<Upload>> {
        decode(self.get(Keyspace::Upload, &upload_key(id))?, Upload::decode)
    }

    /// An account.
    fn account(&self, account: &AccountRef) -> Result<Option<AccountValue>> {
        decode(self.get(Keyspace::Account, &account.key())?, AccountValue::decode)
    }

    /// A conversation.
    fn conversation(&self, scope: &ScopeRef) -> Result<Option<Conversation>> {
        decode(self.get(Keyspace::Conversation, &scope.key())?, Conversation::decode)
    }

    /// A run.
    fn run(&self, scope: &ScopeRef) -> Result<Option<Run>> {
        decode(self.get(Keyspace::Run, &scope.key())?, Run::decode)
    }

    /// The claim of a run.
    fn claim(&self, run: &ScopeRef) -> Result<Option<Claim>> {
        decode(self.get(Keyspace::Claim, &run.key())?, Claim::decode)
    }

    /// The fence of a scope; one without any boundary if there is none.
    fn fence(&self, kind: ScopeKind, scope: ScopeHash) -> Result<Fence> {
        Ok(decode(self.get(Keyspace::Fence, &fence_key(kind, scope))?, Fence::decode)?.unwrap_or_default())
    }

    /// An op outcome.
    fn op(&self, key: &[u8]) -> Result<Option<OpValue>> {
        decode(self.get(Keyspace::Op, key)?, OpValue::decode)
    }

    /// A bulk segment.
    fn segment(&self, key: &[u8]) -> Result<Option<SegmentValue>> {
        decode(self.get(Keyspace::Segment, key)?, SegmentValue::decode)
    }
}

fn decode<T>(value: Option<Vec<u8>>, decode: impl Fn(&[u8]) -> Decoded<T>) -> Result<Option<T>> {
    value.map(|bytes| decode(&bytes).map_err(bad_value)).transpose()
}

/// A value that passed its frame's checksum and still does not decode: damage in memory, or a bug.
fn bad_value(bad: Bad) -> Error {
    if bad.newer { Error::newer(bad.what) } else { Error::new(Kind::Corrupt, bad.what) }
}

/// Sums over the entries, kept with every change.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Usage {
    /// Artifact records.
    pub artifacts: u64,
    /// Sum of their sizes.
    pub logical_bytes: u64,
    /// Chunks with references, without pages.
    pub chunks: u64,
    /// Their raw bytes.
    pub unique_bytes: u64,
    /// Bytes of all referenced frames, pages too, with headers and fill.
    pub live_bytes: u64,
}

impl Usage {
    /// An artifact of this size.
    fn artifact(size: u64) -> Self {
        Self { artifacts: 1, logical_bytes: size, ..Self::default() }
    }

    /// A chunk or page; nothing while nobody has it.
    fn chunk(chunk: &ChunkValue) -> Self {
        if chunk.references == 0 {
            return Self::default();
        }
        let is_chunk = u64::from(chunk.kind == FrameKind::Chunk);
        Self {
            chunks: is_chunk,
            unique_bytes: is_chunk * u64::from(chunk.raw),
            live_bytes: chunk.frame_len(),
            ..Self::default()
        }
    }

    const fn add(&mut self, other: Self) {
        self.artifacts += other.artifacts;
        self.logical_bytes = self.logical_bytes.saturating_add(other.logical_bytes);
        self.chunks += other.chunks;
        self.unique_bytes += other.unique_bytes;
        self.live_bytes += other.live_bytes;
    }

    const fn remove(&mut self, other: Self) {
        self.artifacts -= other.artifacts;
        self.logical_bytes = self.logical_bytes.saturating_sub(other.logical_bytes);
        self.chunks -= other.chunks;
        self.unique_bytes -= other.unique_bytes;
        self.live_bytes -= other.live_bytes;
    }
}

type Space = BTreeMap<Box<[u8]>, Box<[u8]>>;

/// The catalog.
#[derive(Default)]
pub struct Catalog {
    spaces: BTreeMap<Keyspace, Space>,
    usage: Usage,
}

impl State for Catalog {
    fn get(&self, keyspace: Keyspace, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(self.spaces.get(&keyspace).and_then(|space| space.get(key)).map(|value| value.to_vec()))
    }

    fn scan(&self, keyspace: Keyspace, prefix: &[u8], after: Option<&[u8]>, limit: usize) -> Result<Vec<Entry>> {
        let Some(space) = self.spaces.get(&keyspace) else { return Ok(Vec::new()) };
        let start = after.map_or(Bound::Included(prefix), Bound::Excluded);
        let entries = space.range::<[u8], _>((start, Bound::Unbounded));
        let within = entries.take_while(|(key, _)| key.starts_with(prefix));
        Ok(within.take(limit).map(|(key, value)| (key.to_vec(), value.to_vec())).collect())
    }
}

impl Catalog {
    /// Applies an edit that is durable.
    pub fn apply(&mut self, edit: &Edit) -> Result<()> {
        self.take(edit.clone())
    }

    /// The same, with the edit's own bytes.
    pub fn take(&mut self, edit: Edit) -> Result<()> {
        let Edit { keyspace, key, value } = edit;
        if !key_holds(keyspace, &key) {
            return Err(Error::new(Kind::Corrupt, "an edit whose key its keyspace cannot have"));
        }
        let comes = value.as_deref().map_or(Ok(Usage::default()), |value| weigh(keyspace, &key, value))?;
        let space = self.spaces.entry(keyspace).or_default();
        let old = match value {
            Some(value) => space.insert(key.into(), value.into()),
            None => space.remove(key.as_slice()),
        };
        self.usage.add(comes);
        old.map_or(Ok(()), |old| old_weight(keyspace, &old).map(|goes| self.usage.remove(goes)))
    }

    /// The sums.
    pub const fn usage(&self) -> Usage {
        self.usage
    }

    /// Entries of a keyspace.
    pub fn count(&self, keyspace: Keyspace) -> u64 {
        self.spaces.get(&keyspace).map_or(0, |space| space.len() as u64)
    }
}

/// What a value adds to the sums. One that does not decode is refused before it is believed.
fn weigh(keyspace: Keyspace, key: &[u8], value: &[u8]) -> Result<Usage> {
    let nothing = Usage::default();
    let weighed = match keyspace {
        Keyspace::Tenant => TenantValue::decode(value).map(|_| nothing),
        Keyspace::Account => AccountValue::decode(value).map(|_| nothing),
        Keyspace::Conversation => Conversation::decode(value).map(|_| nothing),
        Keyspace::Run => Run::decode(value).map(|_| nothing),
        Keyspace::Claim => Claim::decode(value).map(|_| nothing),
        Keyspace::Fence => Fence::decode(value).map(|_| nothing),
        Keyspace::Upload => Upload::decode(value).map(|_| nothing),
        Keyspace::Artifact => match Artifact::decode(value) {
            Ok(artifact) if artifact.account.artifact_key(artifact.id) == key => Ok(Usage::artifact(artifact.size)),
            Ok(_) => Err(Bad::damaged("an artifact under another key than its own")),
            Err(bad) => Err(bad),
        },
        Keyspace::Blob => BlobValue::decode(value).map(|_| nothing),
        Keyspace::Chunk => ChunkValue::decode(value).map(|chunk| Usage::chunk(&chunk)),
        Keyspace::Op => OpValue::decode(value).map(|_| nothing),
        Keyspace::Segment => SegmentValue::decode(value).map(|_| nothing),
        Keyspace::ByOwner | Keyspace::Identity if value.len() == 16 => Ok(nothing),
        Keyspace::Due | Keyspace::Zero | Keyspace::OfAccount if value.is_empty() => Ok(nothing),
        Keyspace::ByOwner | Keyspace::Identity | Keyspace::Due | Keyspace::Zero | Keyspace::OfAccount => {
            Err(Bad::damaged("index value"))
        }
    };
    weighed.map_err(bad_value)
}

/// What a value that was there added to the sums.
fn old_weight(keyspace: Keyspace, value: &[u8]) -> Result<Usage> {
    match keyspace {
        Keyspace::Artifact => Artifact::decode(value).map(|artifact| Usage::artifact(artifact.size)),
        Keyspace::Chunk => ChunkValue::decode(value).map(|chunk| Usage::chunk(&chunk)),
        _ => Ok(Usage::default()),
    }
    .map_err(bad_value)
}
