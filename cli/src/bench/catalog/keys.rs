//! Generated keys of chunks: uniform, as keyed ids are, and in order a part at a time, so that no more than a part is in memory.
//!
//! The range of all keys is cut into parts of equal width, and each part has the same count of keys, which are uniform within it. A part
//! is hundreds of buckets of a table long, so that buckets are filled as unevenly as those of a store.

/// Keys of a part, about.
const PART: u64 = 1 << 16;

/// A key.
pub(super) type Key = [u8; 32];

/// Keys by number.
#[derive(Clone, Copy)]
pub(super) struct Keys {
    count: u64,
    parts: u64,
    a_part: u64,
    width: u64,
}

impl Keys {
    /// So many.
    pub(super) const fn new(count: u64) -> Self {
        let parts = if count / PART == 0 { 1 } else { count / PART };
        Self { count, parts, a_part: count.div_ceil(parts), width: u64::MAX / parts }
    }

    /// The key of a number below the count.
    pub(super) fn hit(&self, number: u64) -> Key {
        self.within(number / self.a_part, number)
    }

    /// A key that is none of these.
    pub(super) fn miss(&self, number: u64) -> Key {
        self.within(mix(number) % self.parts, number | 1 << 63)
    }

    fn within(&self, part: u64, number: u64) -> Key {
        let place = (u128::from(mix(number)) * u128::from(self.width)) >> 64;
        let front = part * self.width + u64::try_from(place).expect("below the width");
        // The bytes of a number that is written with its highest byte first are in its order.
        let mut key = [0; 32];
        for (index, byte) in key.iter_mut().enumerate() {
            let word = if index < 8 { front } else { mix(number.wrapping_add(index as u64 / 8)) };
            *byte = u8::try_from((word >> (56 - index % 8 * 8)) & 0xff).expect("one byte");
        }
        key
    }

    /// All keys whose number leaves this remainder, in order.
    pub(super) fn sorted(self, runs: u64, run: u64) -> impl Iterator<Item = Key> {
        (0..self.parts).flat_map(move |part| {
            let numbers = part * self.a_part..((part + 1) * self.a_part).min(self.count);
            let mut keys: Vec<Key> = numbers.filter(|n| n % runs == run).map(|number| self.hit(number)).collect();
            keys.sort_unstable();
            keys
        })
    }
}

/// The finaliser of splitmix64: no two numbers give one.
pub(super) const fn mix(number: u64) -> u64 {
    let z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_key_comes_once_in_order_and_none_of_the_others() {
        for count in [1, 1000, PART + 1, 3 * PART + 17] {
            let keys = Keys::new(count);
            let mut seen = BTreeSet::new();
            for run in 0..3 {
                let sorted: Vec<_> = keys.sorted(3, run).collect();
                assert!(sorted.is_sorted_by(|one, next| one < next));
                seen.extend(sorted);
            }
            assert_eq!(seen.len() as u64, count);
            assert!((0..count).all(|number| seen.contains(&keys.hit(number))));
            assert!((0..1000).all(|number| !seen.contains(&keys.miss(number))));
        }
    }

    #[test]
    fn keys_fall_into_buckets_as_uniform_ones_do() {
        let keys = Keys::new(4 * PART);
        let mut buckets = vec![0_u32; 1 << 12];
        for number in 0..4 * PART {
            let front = keys.hit(number)[..2].iter().fold(0, |front, byte| front << 8 | usize::from(*byte));
            buckets[front >> 4] += 1;
        }
        // 64 on average; a Poisson bucket of these lies outside of 20 to 120 once in ten million.
        let (least, most) = (buckets.iter().min().copied(), buckets.iter().max().copied());
        assert!(least > Some(20) && most < Some(120), "{least:?} {most:?}");
        assert!(least < Some(56) && most > Some(72), "too even: {least:?} {most:?}");
    }
}
