//! Where a blob is cut into chunks: section 11.2 of `FORMAT.md`.

use crate::superblock::Superblock;
use std::sync::LazyLock;

static GEAR: LazyLock<Vec<u64>> = LazyLock::new(|| {
    (0..=u8::MAX)
        .map(|byte| {
            let derived = blake3::derive_key("holdfast gear v1", &[byte]);
            u64::from_le_bytes(*derived.first_chunk().expect("32 bytes have a first 8"))
        })
        .collect()
});

/// The sizes that decide the cut points of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the superblock")]
pub struct Sizes {
    pub min: u32,
    pub avg: u32,
    pub max: u32,
    pub single_max: u32,
}

impl Sizes {
    /// Those of a store.
    pub fn of(superblock: &Superblock) -> Self {
        Self {
            min: superblock.chunk_min,
            avg: superblock.chunk_avg,
            max: superblock.chunk_max,
            single_max: superblock.chunk_single_max,
        }
    }

    /// The length of the chunk at the front of `bytes`, with `left` bytes to the end of a blob of `size` bytes.
    ///
    /// `bytes` are as many as are at hand. None: no cut point is among them, and more bytes would be needed.
    pub fn chunk_len(&self, bytes: &[u8], left: u64, size: u64) -> Option<u64> {
        if size <= u64::from(self.single_max) || left <= u64::from(self.min) {
            return Some(left);
        }
        let bits = self.avg.ilog2();
        let most = left.min(u64::from(self.max));
        let mut hash = 0u64;
        for (index, byte) in (0..most).zip(bytes).skip(self.min as usize) {
            let gear = GEAR.get(usize::from(*byte)).expect("the table has an entry for every byte");
            hash = (hash << 1).wrapping_add(*gear);
            let high = if index < u64::from(self.avg) { bits + 2 } else { bits - 2 };
            if hash >> (64 - high) == 0 {
                return Some(index + 1);
            }
        }
        (bytes.len() as u64 >= most).then_some(most)
    }

    /// The lengths of all chunks of a blob.
    pub fn cut(&self, blob: &[u8]) -> Vec<u64> {
        let size = blob.len() as u64;
        let mut lengths = Vec::new();
        let mut rest = blob;
        while !rest.is_empty() {
            let length = self.chunk_len(rest, rest.len() as u64, size).expect("the whole rest is at hand");
            rest = usize::try_from(length).ok().and_then(|length| rest.get(length..)).unwrap_or_default();
            lengths.push(length);
        }
        lengths
    }
}
