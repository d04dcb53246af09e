//! Files with contents that a seed gives.

use holdfast::{digest::Sha256Stream, ids::Sha256};

use crate::random::Random;

/// A content and its digest.
pub(super) struct Content {
    pub(super) bytes: Vec<u8>,
    pub(super) sha256: Sha256,
}

impl Content {
    /// Random bytes, text that compresses, or repetition.
    pub(super) fn new(random: &mut Random, len: usize) -> Self {
        let mut bytes = vec![0; len];
        match random.below(3) {
            0 => random.fill(&mut bytes),
            1 => {
                let mut word = [0; 8];
                for piece in bytes.chunks_mut(8) {
                    random.fill(&mut word);
                    for b in &mut word {
                        *b = b'a' + *b % 6;
                    }
                    piece.copy_from_slice(&word[..piece.len()]);
                }
            }
            _ => {
                let mut part = vec![0; 1 + random.index(70_000)];
                random.fill(&mut part);
                for (byte, from) in bytes.iter_mut().zip(part.iter().cycle()) {
                    *byte = *from;
                }
            }
        }
        let mut stream = Sha256Stream::default();
        stream.update(&bytes);
        Self { sha256: stream.finish(), bytes }
    }

    /// A length in one of the ranges that the engine treats differently.
    pub(super) fn len(random: &mut Random) -> usize {
        match random.below(10) {
            0 => 0,
            1 => random.index(200),
            2..5 => random.index(64 << 10),
            5..8 => random.index(900 << 10),
            _ => random.index(3 << 20),
        }
    }
}
