//! Randomness, as the engine sees it: ids, epochs, keys.

use crate::error::{Error, Kind, Result};

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
