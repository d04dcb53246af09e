//! What is where and whose: entries (keyspace, key) -> value.
//!
//! Everything above asks through [`State`] and changes through edits; it cannot tell whether an entry stands in memory or in a
//! table. A look-up costs O(log n) in memory, then a filter a run of tables, and one page.

use std::ops::Bound;

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
        run,
        upload::Upload,
        value::{AccountValue, BlobValue, ChunkValue, OpValue, SegmentValue, TenantValue},
    },
    ids::{ArtifactId, BlobKey, ChunkId, ScopeHash, UploadId},
    sync::Arc,
    table::Entry,
};

mod memtable;
mod published;
mod scan;
mod tables;
#[cfg(test)]
mod tests;

pub use memtable::Memtable;
pub use published::{Published, View};
pub use scan::Merge;
pub use tables::{Run, RunCursor, Tables};

use scan::Slice;

/// A key that is there, and its value.
pub type Pair = (Vec<u8>, Vec<u8>);

/// Entries as a reader or a rule sees them.
pub trait State {
    /// The value of a key.
    fn get(&self, keyspace: Keyspace, key: &[u8]) -> Result<Option<Vec<u8>>>;

    /// Up to `limit` entries whose keys begin with `prefix`, behind `after` if it is given, in the order of keys.
    fn scan(&self, keyspace: Keyspace, prefix: &[u8], after: Option<&[u8]>, limit: usize) -> Result<Vec<Pair>>;

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
    fn run(&self, scope: &ScopeRef) -> Result<Option<run::Run>> {
        decode(self.get(Keyspace::Run, &scope.key())?, run::Run::decode)
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
    /// Blobs.
    pub blobs: u64,
    /// Chunks with references, without pages.
    pub chunks: u64,
    /// Their raw bytes.
    pub unique_bytes: u64,
    /// Bytes of all referenced frames, pages too, with headers and fill.
    pub live_bytes: u64,
}

/// True for keyspaces that the sums are about.
const fn is_counted(keyspace: Keyspace) -> bool {
    matches!(keyspace, Keyspace::Artifact | Keyspace::Blob | Keyspace::Chunk)
}

impl Usage {
    /// An artifact of this size.
    fn artifact(size: u64) -> Self {
        Self { artifacts: 1, logical_bytes: size, ..Self::default() }
    }

    /// A blob.
    fn blob() -> Self {
        Self { blobs: 1, ..Self::default() }
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
        self.artifacts = self.artifacts.saturating_add(other.artifacts);
        self.logical_bytes = self.logical_bytes.saturating_add(other.logical_bytes);
        self.blobs = self.blobs.saturating_add(other.blobs);
        self.chunks = self.chunks.saturating_add(other.chunks);
        self.unique_bytes = self.unique_bytes.saturating_add(other.unique_bytes);
        self.live_bytes = self.live_bytes.saturating_add(other.live_bytes);
    }

    /// Sums that come from a manifest may be less than what goes.
    const fn remove(&mut self, other: Self) {
        self.artifacts = self.artifacts.saturating_sub(other.artifacts);
        self.logical_bytes = self.logical_bytes.saturating_sub(other.logical_bytes);
        self.blobs = self.blobs.saturating_sub(other.blobs);
        self.chunks = self.chunks.saturating_sub(other.chunks);
        self.unique_bytes = self.unique_bytes.saturating_sub(other.unique_bytes);
        self.live_bytes = self.live_bytes.saturating_sub(other.live_bytes);
    }
}

/// The catalog: the edits since the last checkpoint, those that a checkpoint is writing, and the tables. Memory is that of two
/// memtables.
#[derive(Default)]
pub struct Catalog {
    active: Memtable,
    flushing: Option<Arc<Memtable>>,
    tables: Arc<Tables>,
    usage: Usage,
}

impl State for Catalog {
    fn get(&self, keyspace: Keyspace, key: &[u8]) -> Result<Option<Vec<u8>>> {
        match self.in_memory(keyspace, key) {
            Some(found) => Ok(found.map(<[u8]>::to_vec)),
            None => Ok(self.tables.get(keyspace, key)?.flatten()),
        }
    }

    fn scan(&self, keyspace: Keyspace, prefix: &[u8], after: Option<&[u8]>, limit: usize) -> Result<Vec<Pair>> {
        scan::scan(&|after, most| self.slice(keyspace, prefix, after, most), keyspace, prefix, after, limit)
    }
}

impl Catalog {
    /// Tables with what they add up to, before anything was replayed.
    pub fn new(tables: Tables, usage: Usage) -> Self {
        Self { tables: Arc::new(tables), usage, ..Self::default() }
    }

    fn in_memory(&self, keyspace: Keyspace, key: &[u8]) -> Option<Option<&[u8]>> {
        let flushing = || self.flushing.as_ref().and_then(|flushing| flushing.get(keyspace, key));
        self.active.get(keyspace, key).or_else(flushing)
    }

    /// Applies an edit that is durable.
    pub fn apply(&mut self, edit: &Edit) -> Result<()> {
        self.take_over(edit.clone(), None)
    }

    /// The same, with the edit's own bytes, where it may be known what the tables have of the key.
    fn take_over(&mut self, edit: Edit, known: Option<Option<&[u8]>>) -> Result<()> {
        let Edit { keyspace, key, value } = edit;
        if !key_holds(keyspace, &key) {
            return Err(Error::new(Kind::Corrupt, "an edit whose key its keyspace cannot have"));
        }
        let comes = value.as_deref().map_or(Ok(Usage::default()), |value| weigh(keyspace, &key, value))?;
        if is_counted(keyspace) {
            let goes = match (self.in_memory(keyspace, &key), known) {
                (Some(found), _) | (None, Some(found)) => found.map(|old| old_weight(keyspace, old)),
                // Damage is met, and named, by whoever needs the value; the sums alone do not stop a commit.
                (None, None) => {
                    let old = self.tables.get(keyspace, &key).ok().flatten().flatten();
                    old.map(|old| old_weight(keyspace, &old))
                }
            };
            self.usage.add(comes);
            self.usage.remove(goes.transpose()?.unwrap_or_default());
        }
        let forget = self.flushing.is_none() && self.tables.is_empty();
        self.active.set(keyspace, key, value, forget);
        Ok(())
    }

    /// The sums.
    pub const fn usage(&self) -> Usage {
        self.usage
    }

    /// The tables.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Entries of a keyspace.
    #[cfg(test)]
    pub fn count(&self, keyspace: Keyspace) -> usize {
        self.scan(keyspace, &[], None, usize::MAX).expect("readable").len()
    }

    /// Up to `most` entries of memory with a prefix, behind `after`; of a key that both memtables have, the newer.
    fn slice(&self, keyspace: Keyspace, prefix: &[u8], after: Option<&[u8]>, most: usize) -> Slice {
        let start = after.map_or(Bound::Included(prefix), Bound::Excluded);
        let own = |(key, value): (&[u8], Option<&[u8]>)| (key.to_vec(), value.map(<[u8]>::to_vec));
        let take = |memtable: &Memtable| -> Vec<Entry> {
            let within = memtable.range(keyspace, start).take_while(|(key, _)| key.starts_with(prefix));
            within.take(most).map(own).collect()
        };
        let mut entries = take(&self.active);
        let mut complete = entries.len() < most;
        if let Some(flushing) = &self.flushing {
            let older = take(flushing);
            complete &= older.len() < most;
            // Stable: the newer one of two stands first.
            entries.extend(older);
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            entries.dedup_by(|later, first| later.0 == first.0);
            // Behind the end of the shorter of two that go on nothing is known.
            if !complete {
                entries.truncate(most);
            }
        }
        Slice { entries, complete, tables: Arc::clone(&self.tables) }
    }
}

/// What a value adds to the sums. One that does not decode is refused before it is believed.
fn weigh(keyspace: Keyspace, key: &[u8], value: &[u8]) -> Result<Usage> {
    let nothing = Usage::default();
    let weighed = match keyspace {
        Keyspace::Tenant => TenantValue::decode(value).map(|_| nothing),
        Keyspace::Account => AccountValue::decode(value).map(|_| nothing),
        Keyspace::Conversation => Conversation::decode(value).map(|_| nothing),
        Keyspace::Run => run::Run::decode(value).map(|_| nothing),
        Keyspace::Claim => Claim::decode(value).map(|_| nothing),
        Keyspace::Fence => Fence::decode(value).map(|_| nothing),
        Keyspace::Upload => Upload::decode(value).map(|_| nothing),
        Keyspace::Artifact => match Artifact::decode(value) {
            Ok(artifact) if artifact.account.artifact_key(artifact.id) == key => Ok(Usage::artifact(artifact.size)),
            Ok(_) => Err(Bad::damaged("an artifact under another key than its own")),
            Err(bad) => Err(bad),
        },
        Keyspace::Blob => BlobValue::decode(value).map(|_| Usage::blob()),
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
        Keyspace::Blob => Ok(Usage::blob()),
        Keyspace::Chunk => ChunkValue::decode(value).map(|chunk| Usage::chunk(&chunk)),
        _ => Ok(Usage::default()),
    }
    .map_err(bad_value)
}
