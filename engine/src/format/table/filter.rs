//! Filters: which keys a section may have. A binary fuse filter of 8-bit fingerprints; a hint, which costs a page read when it is
//! wrong and nothing else.

use super::bucket::{ordered_front, value_len};
use crate::{
    digest::file_digest,
    format::{Bad, Decoded, keyspace::Keyspace},
};

/// What a filter knows of a key: the first eight bytes of a uniform one, as a number; of others those of their hash.
pub fn key_of(keyspace: Keyspace, key: &[u8]) -> u64 {
    if value_len(keyspace).is_some() { ordered_front(key) } else { ordered_front(&file_digest(key)) }
}

/// A filter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Filter {
    /// What keys are mixed with.
    pub seed: u64,
    /// A power of two.
    pub segment_len: u32,
    /// Where the third place of a key can begin at most.
    pub segment_count_len: u32,
    /// One byte each.
    pub fingerprints: Vec<u8>,
}

impl Filter {
    /// Checks that every key has its three places.
    pub fn check(self) -> Decoded<Self> {
        let len = u64::from(self.segment_count_len) + 2 * u64::from(self.segment_len);
        let holds = self.segment_len.is_power_of_two()
            && self.segment_count_len > 0
            && self.segment_count_len.is_multiple_of(self.segment_len)
            && self.fingerprints.len() as u64 == len;
        if holds { Ok(self) } else { Err(Bad::damaged("table filter")) }
    }

    /// False if the key is not there for sure.
    pub fn may_have(&self, key: u64) -> bool {
        let hash = mix(key.wrapping_add(self.seed));
        let first = (u128::from(hash) * u128::from(self.segment_count_len)) >> 64;
        let first = u32::try_from(first).expect("below a u32");
        let mask = self.segment_len - 1;
        let low = |number: u64| u32::try_from(number & u64::from(u32::MAX)).expect("32 bits");
        let second = (first + self.segment_len) ^ (low(hash >> 18) & mask);
        let third = (first + 2 * self.segment_len) ^ (low(hash) & mask);
        let at = |place: u32| self.fingerprints.get(place as usize).copied().unwrap_or(0);
        let [fingerprint, ..] = (hash ^ (hash >> 32)).to_le_bytes();
        fingerprint == at(first) ^ at(second) ^ at(third)
    }
}

/// The finaliser of `MurmurHash3`.
fn mix(mut number: u64) -> u64 {
    number = (number ^ (number >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    number = (number ^ (number >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    number ^ (number >> 33)
}
