//! Chunks and pages that a put is about to reference: what is pinned is not dropped.
//!
//! A put pins first and looks up then, so that a chunk which it finds stays until its commit references it. The table knows neither
//! where chunks are nor whether they exist.

use std::collections::{BTreeMap, btree_map::Entry};

use crate::{
    ids::ChunkId,
    sync::{Arc, Mutex},
};

/// Ids are uniform, so that puts seldom meet in a shard.
const SHARDS: usize = 64;

/// What stands between a chunk and its removal.
enum Use {
    /// This many pins.
    Pinned(u64),
}

/// The table. Memory is that of the ids that are pinned now.
pub struct Pins {
    shards: [Mutex<BTreeMap<ChunkId, Use>>; SHARDS],
}

/// A chunk is pinned for as long as this lives.
pub struct Pin {
    pins: Arc<Pins>,
    id: ChunkId,
}

impl Pins {
    /// An empty table.
    pub fn new() -> Arc<Self> {
        Arc::new(Self { shards: std::array::from_fn(|_| Mutex::default()) })
    }

    /// Pins a chunk or page, whether it exists or not. O(log n) under the lock of its shard.
    pub fn pin(self: &Arc<Self>, id: ChunkId) -> Pin {
        let mut shard = self.shard(id).lock();
        let Use::Pinned(count) = shard.entry(id).or_insert(Use::Pinned(0));
        *count += 1;
        Pin { pins: Arc::clone(self), id }
    }

    /// True while anybody pins it.
    pub fn is_pinned(&self, id: ChunkId) -> bool {
        self.shard(id).lock().contains_key(&id)
    }

    fn shard(&self, id: ChunkId) -> &Mutex<BTreeMap<ChunkId, Use>> {
        &self.shards[usize::from(id.0[31]) % SHARDS]
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        if let Entry::Occupied(mut entry) = self.pins.shard(self.id).lock().entry(self.id) {
            let Use::Pinned(count) = entry.get_mut();
            *count -= 1;
            if *count == 0 {
                entry.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_stays_pinned_until_its_last_pin_goes() {
        let pins = Pins::new();
        let (id, other) = (ChunkId([1; 32]), ChunkId([65; 32]));
        let (first, second) = (pins.pin(id), pins.pin(id));
        drop(first);
        assert!(pins.is_pinned(id));
        assert!(!pins.is_pinned(other), "another id of the same shard");
        drop(second);
        assert!(!pins.is_pinned(id));
        assert!(pins.shards.iter().all(|shard| shard.lock().is_empty()), "what is not pinned takes no memory");
    }
}
