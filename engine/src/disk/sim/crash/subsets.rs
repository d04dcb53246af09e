//! Subsets of pieces: all of them while they are few, else those that are known to find mistakes, and some at random.

use crate::disk::sim::random::Random;

/// Random subsets of each density.
const RANDOM: u64 = 16;
/// In tenths: how many of the pieces a random subset keeps.
const DENSITIES: [u64; 3] = [1, 5, 9];

/// The subsets of `pieces` pieces that are looked at.
pub(super) struct Subsets {
    pieces: u64,
    exhaustive: bool,
    seed: u64,
}

impl Subsets {
    /// All subsets of up to `exhaustive_max` pieces, which is at most 16.
    pub(super) fn new(pieces: u64, exhaustive_max: u64, seed: u64) -> Self {
        Self { pieces, exhaustive: pieces <= exhaustive_max, seed }
    }

    /// How many there are; none of nothing.
    pub(super) fn count(&self) -> u64 {
        match self.pieces {
            0 => 0,
            n if self.exhaustive => 1 << n,
            n => n + n + (n - 1) + RANDOM * DENSITIES.len() as u64,
        }
    }

    /// Whether a subset has a piece. In order: without one, with one alone, without the first, at random.
    pub(super) fn has(&self, subset: u64, piece: u64) -> bool {
        let n = self.pieces;
        if self.exhaustive {
            return subset >> piece & 1 == 1;
        }
        if subset < n {
            return piece != subset;
        }
        if subset < 2 * n {
            return piece == subset - n;
        }
        if subset < 3 * n - 1 {
            return piece > subset - 2 * n;
        }
        let density = usize::try_from((subset - (3 * n - 1)) / RANDOM).expect("one of three");
        Random::of(self.seed, &[subset, piece]).below(10) < DENSITIES[density]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn subsets(pieces: u64, exhaustive_max: u64) -> Vec<Vec<u64>> {
        let all = Subsets::new(pieces, exhaustive_max, 3);
        (0..all.count()).map(|subset| (0..pieces).filter(|piece| all.has(subset, *piece)).collect()).collect()
    }

    #[test]
    fn few_pieces_give_every_subset() {
        let all = subsets(4, 4);
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), 16);
        assert!(subsets(0, 4).is_empty());
    }

    #[test]
    fn many_pieces_give_the_subsets_that_find_mistakes() {
        let all = subsets(11, 10);
        assert_eq!(all.len(), 11 + 11 + 10 + 48);
        for piece in 0..11 {
            let without: Vec<u64> = (0..11).filter(|other| *other != piece).collect();
            assert!(all[..11].contains(&without));
            assert!(all[11..22].contains(&vec![piece]));
        }
        for first in 1..11 {
            assert!(all[22..32].contains(&(first..11).collect()));
        }
        let kept = |range: std::ops::Range<usize>| all[range].iter().map(Vec::len).sum::<usize>();
        // 16 subsets of 11 pieces: about 18, 88 and 158 are kept.
        assert!(kept(32..48) < 50 && (60..120).contains(&kept(48..64)) && kept(64..80) > 130);
    }
}
