//! The seeded bug [`Canary::DedupUncommitted`]: an index of chunks that is filled when a frame is written, and not when a commit
//! inserts it. Without the feature nothing is kept.

#[cfg(feature = "canaries")]
use std::collections::BTreeMap;

#[cfg(feature = "canaries")]
use crate::{
    canary::{self, Canary},
    sync::Mutex,
};
use crate::{format::value::ChunkValue, ids::ChunkId};

/// Chunks of all streams since the store was opened.
#[derive(Default)]
pub(super) struct Seen {
    #[cfg(feature = "canaries")]
    chunks: Mutex<BTreeMap<ChunkId, ChunkValue>>,
}

#[cfg(feature = "canaries")]
impl Seen {
    pub(super) fn note(&self, id: ChunkId, value: &ChunkValue) {
        if canary::sings(Canary::DedupUncommitted) {
            self.chunks.lock().insert(id, *value);
        }
    }

    pub(super) fn get(&self, id: ChunkId) -> Option<ChunkValue> {
        if canary::sings(Canary::DedupUncommitted) { self.chunks.lock().get(&id).copied() } else { None }
    }
}

#[cfg(not(feature = "canaries"))]
#[expect(clippy::unused_self, reason = "the other build has something to look at")]
impl Seen {
    pub(super) const fn note(&self, _: ChunkId, _: &ChunkValue) {}

    pub(super) const fn get(&self, _: ChunkId) -> Option<ChunkValue> {
        None
    }
}
