//! Bytes that neither compress nor repeat, of any length, in bounded memory and as fast as memory is copied.
//!
//! A base of random bytes comes round and round; in each KiB of it eight bytes are different every time. So every chunk that is
//! longer than a KiB is new, and no window of a compressor is long enough to see the base come back.

use std::{
    io::{self, Read},
    sync::OnceLock,
};

/// Longer than any chunk, and short enough to stay in a cache: making the bytes must not be what is measured.
const BASE: usize = 4 << 20;
/// Each block of this length begins with a mark of its own.
const BLOCK: u64 = 1 << 10;
const MARK: usize = 8;

/// A stream of such bytes. Two of the same seed are the same.
#[derive(Clone, Debug)]
pub struct Noise {
    seed: u64,
    at: u64,
    end: u64,
    period: u64,
}

impl Noise {
    /// So many bytes, none of them twice.
    pub const fn new(seed: u64, len: u64) -> Self {
        Self { seed, at: 0, end: len, period: u64::MAX }
    }

    /// So many bytes that begin anew after each `period`.
    pub const fn repeating(seed: u64, len: u64, period: u64) -> Self {
        Self { seed, at: 0, end: len, period }
    }

    /// Fills a buffer with the bytes from an offset on.
    pub fn fill(&self, offset: u64, mut out: &mut [u8]) {
        let base = base();
        let mut at = offset;
        while !out.is_empty() {
            let place = at % self.period;
            let within = index(place % BLOCK);
            let left = index((BLOCK - place % BLOCK).min(self.period - place));
            let (piece, rest) = out.split_at_mut(left.min(out.len()));
            let from = index(place % BASE as u64);
            piece.copy_from_slice(&base[from..from + piece.len()]);
            if within < MARK {
                let mark = mix(self.seed ^ mix(place / BLOCK)).to_le_bytes();
                let count = piece.len().min(MARK - within);
                piece[..count].copy_from_slice(&mark[within..within + count]);
            }
            at += piece.len() as u64;
            out = rest;
        }
    }

    /// All of it, in memory.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; index(self.end - self.at)];
        self.fill(self.at, &mut bytes);
        bytes
    }
}

impl Read for Noise {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = bytes.len().min(usize::try_from(self.end - self.at).unwrap_or(usize::MAX));
        self.fill(self.at, &mut bytes[..count]);
        self.at += count as u64;
        Ok(count)
    }
}

fn base() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| {
        let mut bytes = vec![0; BASE];
        blake3::Hasher::new().update(b"noise").finalize_xof().fill(&mut bytes);
        bytes
    })
}

fn index(value: u64) -> usize {
    usize::try_from(value).expect("lengths of pieces in memory")
}

/// The finaliser of splitmix64.
const fn mix(value: u64) -> u64 {
    let z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn reads_of_any_length_give_the_same_bytes() {
        let whole = Noise::new(7, 10_000).to_vec();
        for step in [1, 3, 7, 1000, 1024, 4096] {
            let mut noise = Noise::new(7, 10_000);
            let mut bytes = Vec::new();
            let mut piece = vec![0; step];
            loop {
                match noise.read(&mut piece).expect("it cannot fail") {
                    0 => break,
                    count => bytes.extend_from_slice(&piece[..count]),
                }
            }
            assert!(bytes == whole, "in steps of {step}");
        }
    }

    #[test]
    fn no_piece_of_4_kib_comes_twice_though_the_base_does() {
        let bytes = Noise::new(1, 3 * BASE as u64).to_vec();
        let other = Noise::new(2, 3 * BASE as u64).to_vec();
        let pieces: BTreeSet<_> = bytes.chunks(4096).chain(other.chunks(4096)).collect();
        assert_eq!(pieces.len(), 6 * BASE / 4096);
    }

    #[test]
    fn a_repeating_stream_begins_anew_after_each_period() {
        let bytes = Noise::repeating(1, 10_000, 3_000).to_vec();
        assert!(bytes[..3_000] == bytes[3_000..6_000] && bytes[..1_000] == bytes[9_000..]);
        assert!(bytes[..3_000] == Noise::new(1, 3_000).to_vec());
    }
}
