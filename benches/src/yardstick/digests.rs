//! SHA-256 and BLAKE3 of bytes in memory, on one core.

use std::hint::black_box;

use sha2::Digest as _;

use crate::{Noise, Stopwatch};

/// Longer than the caches of most processors: the bytes come from memory, as a caller's do.
const BYTES: u64 = 64 << 20;
const PIECE: usize = 1 << 20;

/// The bytes to digest.
pub struct Digests(Vec<u8>);

impl Default for Digests {
    fn default() -> Self {
        Self(Noise::new(0, BYTES).to_vec())
    }
}

impl Digests {
    /// Bytes a second of SHA-256 over so many bytes.
    pub fn sha256(&self, len: u64) -> f64 {
        let mut digest = sha2::Sha256::new();
        let rate = self.rate(len, |piece| digest.update(piece));
        black_box(digest.finalize());
        rate
    }

    /// Bytes a second of BLAKE3 over so many bytes.
    pub fn blake3(&self, len: u64) -> f64 {
        let mut digest = blake3::Hasher::new();
        let rate = self.rate(len, |piece| {
            digest.update(piece);
        });
        black_box(digest.finalize());
        rate
    }

    fn rate(&self, len: u64, mut update: impl FnMut(&[u8])) -> f64 {
        let watch = Stopwatch::start();
        let mut left = len;
        for piece in self.0.chunks(PIECE).cycle() {
            let count = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            update(&piece[..count]);
            left -= count as u64;
            if left == 0 {
                break;
            }
        }
        crate::figure(len) / watch.seconds()
    }
}
