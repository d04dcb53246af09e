//! Small files with contents that a seed and a number give.

use holdfast::{digest::Sha256Stream, ids::Sha256};

use crate::random::Random;

/// Length of the longest. A million of them is what a laptop holds.
const LEN_MAX: u64 = 1500;
/// One in so many has the content of an earlier one.
const SAME: u64 = 8;

/// The content of a file.
pub(super) fn of(seed: u64, number: u64) -> Vec<u8> {
    let mut random = Random::of(seed, &[2, number]);
    if number > 0 && random.one_in(SAME) {
        return of(seed, random.below(number));
    }
    let mut bytes = vec![0; usize::try_from(random.below(LEN_MAX)).expect("short")];
    random.fill(&mut bytes);
    if random.one_in(2) {
        // Text, which compresses.
        for byte in &mut bytes {
            *byte = b'a' + *byte % 6;
        }
    }
    bytes
}

/// A digest.
pub(super) fn sha256(bytes: &[u8]) -> Sha256 {
    let mut stream = Sha256Stream::default();
    stream.update(bytes);
    stream.finish()
}
