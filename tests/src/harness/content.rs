//! Bytes for artifacts: of the sizes at which things change, new or like what was there before, so that chunks are shared.

use std::sync::Arc;

use crate::{harness::machine::OPTIONS, random::Random};

/// Sizes beside which something changes: nothing, a digest, a sector, a block, a chunk.
const EDGES: [usize; 17] = [0, 1, 31, 32, 33, 63, 64, 511, 512, 513, 1023, 1025, 4095, 4096, 4097, 8192, 16_384];

/// Makes contents and remembers them.
#[derive(Debug)]
pub struct Contents {
    random: Random,
    made: Vec<Arc<[u8]>>,
}

impl Contents {
    /// Contents that a seed decides.
    pub fn new(random: Random) -> Self {
        Self { random, made: Vec::new() }
    }

    /// Any content.
    pub fn any(&mut self) -> Arc<[u8]> {
        match self.random.below(10) {
            0..=2 if !self.made.is_empty() => self.again(),
            3 if !self.made.is_empty() => self.edited(),
            4 if self.made.len() > 1 => self.joined(),
            _ => {
                let len = self.some_len();
                self.new_of(len)
            }
        }
    }

    /// A size at or near an edge, or any up to 16 KiB.
    fn some_len(&mut self) -> usize {
        match self.random.below(4) {
            0 | 1 => *self.random.pick(&EDGES),
            2 => {
                let chunk = usize::try_from(*self.random.pick(&[OPTIONS.chunks.max, OPTIONS.chunks.single_max]));
                chunk.expect("a small number") - 1 + self.random.index(3)
            }
            _ => self.random.index(16 << 10),
        }
    }

    /// New bytes of this length: random, or such that they compress, or all alike.
    pub fn new_of(&mut self, len: usize) -> Arc<[u8]> {
        let mut bytes = vec![0; len];
        match self.random.below(5) {
            0 => bytes.fill(u8::try_from(self.random.below(3)).expect("small")),
            1 => {
                let mut word = [0; 24];
                self.random.fill(&mut word);
                for (piece, number) in bytes.chunks_mut(32).zip(0u64..) {
                    let head = piece.len().min(24);
                    piece[..head].copy_from_slice(&word[..head]);
                    let tail = piece.len() - head;
                    piece[head..].copy_from_slice(&number.to_le_bytes()[..tail]);
                }
            }
            _ => self.random.fill(&mut bytes),
        }
        self.keep(bytes)
    }

    /// Bytes that were made before.
    pub fn again(&mut self) -> Arc<[u8]> {
        Arc::clone(self.random.pick(&self.made))
    }

    /// Bytes that were made before, with some in the middle replaced, put in or taken out.
    fn edited(&mut self) -> Arc<[u8]> {
        let mut bytes = self.again().to_vec();
        let at = self.random.index(bytes.len() + 1);
        let mut patch = vec![0; self.random.index(40)];
        self.random.fill(&mut patch);
        let end = (at + self.random.index(40)).min(bytes.len());
        bytes.splice(at..end, patch);
        self.keep(bytes)
    }

    /// Two that were made before, one behind the other.
    fn joined(&mut self) -> Arc<[u8]> {
        let mut bytes = self.again().to_vec();
        bytes.extend_from_slice(&self.again());
        bytes.truncate(24 << 10);
        self.keep(bytes)
    }

    fn keep(&mut self, bytes: Vec<u8>) -> Arc<[u8]> {
        let bytes: Arc<[u8]> = bytes.into();
        self.made.push(Arc::clone(&bytes));
        bytes
    }
}
