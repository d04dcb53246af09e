//! Randomness, as the engine sees it: ids, epochs, keys.

use crate::error::{Error, Kind, Result};
use crate::sync::{AtomicU64, Ordering};

/// Source of random bytes.
pub trait Entropy: Send + Sync {
    /// Fills the buffer, or says that it cannot.
    fn fill(&self, bytes: &mut [u8]) -> Result<()>;
}

/// A random array.
pub(crate) fn random<const N: usize>(entropy: &dyn Entropy) -> Result<[u8; N]> {
    let mut bytes = [0; N];
    entropy.fill(&mut bytes)?;
    Ok(bytes)
}

/// The randomness of the operating system.
#[derive(Debug, Default, Clone, Copy)]
pub struct OsEntropy;

impl Entropy for OsEntropy {
    fn fill(&self, bytes: &mut [u8]) -> Result<()> {
        getrandom::fill(bytes).map_err(|_| Error::new(Kind::Io, "the operating system gave no random bytes"))
    }
}

/// Bytes that a seed decides, by the `SplitMix64` generator: for runs that must repeat, never for a store that anybody uses.
#[derive(Debug, Default)]
pub struct SeededEntropy(AtomicU64);

impl SeededEntropy {
    /// Equal seeds give equal bytes.
    pub const fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    fn next(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut z = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

impl Entropy for SeededEntropy {
    fn fill(&self, bytes: &mut [u8]) -> Result<()> {
        for piece in bytes.chunks_mut(8) {
            piece.copy_from_slice(&self.next().to_le_bytes()[..piece.len()]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_bytes_that_do_not_repeat() {
        let [one, same, other] = [7, 7, 8].map(SeededEntropy::new);
        let first: [u8; 37] = random(&one).expect("never fails");
        assert_eq!(random::<37>(&same).expect("never fails"), first);
        assert_ne!(random::<37>(&other).expect("never fails"), first);
        assert_ne!(random::<37>(&one).expect("never fails"), first);
    }

    #[test]
    fn the_generator_is_the_published_one() {
        // The first output of SplitMix64 for the seed 1234567.
        let bytes: [u8; 8] = random(&SeededEntropy::new(1_234_567)).expect("never fails");
        assert_eq!(u64::from_le_bytes(bytes), 6_457_827_717_110_365_317);
    }

    #[test]
    fn the_operating_system_gives_bytes() {
        let [a, b] = [(); 2].map(|()| random::<32>(&OsEntropy).expect("the system has some"));
        assert_ne!(a, b);
    }
}
