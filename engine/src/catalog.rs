//! What is where and whose: entries (keyspace, key) -> value.
//!
//! Everything above asks through [`State`] and changes through edits; it cannot tell whether an entry stands in memory or in a
//! table. Here all entries stand in memory, rebuilt from the log at open: O(log n) a look-up, and memory that grows with the
//! number of entries.

use std::{collections::BTreeMap, ops::Bound};

use crate::{
    error::{Error, Kind, Result},
    format::{
        Bad, Decoded,
        artifact::Artifact,
        commit::Edit,
        keyspace::{AccountRef, Keyspace, blob_key, chunk_key, key_holds, upload_key},
        upload::Upload,
        value::{AccountValue, BlobValue, ChunkValue, OpValue, SegmentValue},
    },
    ids::{ArtifactId, BlobKey, ChunkId, UploadId},
};

/// Entries as a reader or a rule sees them.
pub trait State {
    /// The value of a key.
    fn get(&self, keyspace: Keyspace, key: &[u8]) -> Result<Option<Vec<u8>>>;

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
}

impl Catalog {
    /// Applies an edit that is durable.
    pub fn apply(&mut self, edit: &Edit) -> Result<()> {
        if !key_holds(edit.keyspace, &edit.key) {
            return Err(Error::new(Kind::Corrupt, "an edit whose key its keyspace cannot have"));
        }
        check_value(edit)?;
        let space = self.spaces.entry(edit.keyspace).or_default();
        let old = match &edit.value {
            Some(value) => space.insert(edit.key.as_slice().into(), value.as_slice().into()),
            None => space.remove(edit.key.as_slice()),
        };
        self.account(edit.keyspace, old.as_deref(), edit.value.as_deref())
    }

    /// Keeps the sums: what an old value added goes, what the new one adds comes.
    fn account(&mut self, keyspace: Keyspace, old: Option<&[u8]>, new: Option<&[u8]>) -> Result<()> {
        match keyspace {
            Keyspace::Artifact => {
                let size = |bytes: &[u8]| Artifact::decode(bytes).map(|a| a.size).map_err(bad_value);
                if let Some(old) = old {
                    self.usage.artifacts -= 1;
                    self.usage.logical_bytes = self.usage.logical_bytes.saturating_sub(size(old)?);
                }
                if let Some(new) = new {
                    self.usage.artifacts += 1;
                    self.usage.logical_bytes = self.usage.logical_bytes.saturating_add(size(new)?);
                }
            }
            Keyspace::Chunk => {
                let live = |bytes: &[u8]| ChunkValue::decode(bytes).map_err(bad_value);
                if let Some(chunk) = old.map(live).transpose()?.filter(|c| c.references > 0) {
                    let is_chunk = u64::from(chunk.kind == crate::format::frame::FrameKind::Chunk);
                    self.usage.chunks -= is_chunk;
                    self.usage.unique_bytes -= is_chunk * u64::from(chunk.raw);
                    self.usage.live_bytes -= chunk.frame_len();
                }
                if let Some(chunk) = new.map(live).transpose()?.filter(|c| c.references > 0) {
                    let is_chunk = u64::from(chunk.kind == crate::format::frame::FrameKind::Chunk);
                    self.usage.chunks += is_chunk;
                    self.usage.unique_bytes += is_chunk * u64::from(chunk.raw);
                    self.usage.live_bytes += chunk.frame_len();
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The sums.
    pub const fn usage(&self) -> Usage {
        self.usage
    }

    /// Entries of a keyspace.
    pub fn count(&self, keyspace: Keyspace) -> u64 {
        self.spaces.get(&keyspace).map_or(0, |space| space.len() as u64)
    }

    /// Up to `limit` entries whose keys begin with `prefix`, behind `after` if it is given, in the order of keys.
    pub fn scan(
        &self,
        keyspace: Keyspace,
        prefix: &[u8],
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let Some(space) = self.spaces.get(&keyspace) else { return Ok(Vec::new()) };
        let start = after.map_or(Bound::Included(prefix), Bound::Excluded);
        let entries = space.range::<[u8], _>((start, Bound::Unbounded));
        let within = entries.take_while(|(key, _)| key.starts_with(prefix));
        Ok(within.take(limit).map(|(key, value)| (key.to_vec(), value.to_vec())).collect())
    }
}

/// Refuses a value that does not decode, before it is believed.
fn check_value(edit: &Edit) -> Result<()> {
    let Some(value) = &edit.value else { return Ok(()) };
    let checked = match edit.keyspace {
        Keyspace::Tenant => crate::format::value::TenantValue::decode(value).map(drop),
        Keyspace::Account => AccountValue::decode(value).map(drop),
        Keyspace::Upload => Upload::decode(value).map(drop),
        Keyspace::Artifact => match Artifact::decode(value) {
            Ok(artifact) if artifact.account.artifact_key(artifact.id) == edit.key => Ok(()),
            Ok(_) => Err(Bad::damaged("an artifact under another key than its own")),
            Err(bad) => Err(bad),
        },
        Keyspace::Blob => BlobValue::decode(value).map(drop),
        Keyspace::Chunk => ChunkValue::decode(value).map(drop),
        Keyspace::Op => OpValue::decode(value).map(drop),
        Keyspace::Segment => SegmentValue::decode(value).map(drop),
        Keyspace::ByOwner if value.len() == 16 => Ok(()),
        Keyspace::Due | Keyspace::Zero if value.is_empty() => Ok(()),
        Keyspace::ByOwner | Keyspace::Due | Keyspace::Zero => Err(Bad::damaged("index value")),
    };
    checked.map_err(bad_value)
}
