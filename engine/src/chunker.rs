//! Cut points of a blob: gear hashing with normalised chunk sizes (`FastCDC`: Xia et al., IEEE TPDS 31:9, 2020). Cut points are
//! format (FORMAT.md section 11.2): another cut of the same bytes would end deduplication with what is stored.

use std::sync::LazyLock;

use crate::limits::CHUNK_LEN_MAX;

/// Chunking options of a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChunkParams {
    /// No chunk but the last is shorter.
    pub min: u32,
    /// Aimed at; a power of two.
    pub avg: u32,
    /// No chunk is longer.
    pub max: u32,
    /// A blob up to this is one chunk.
    pub single_max: u32,
}

impl ChunkParams {
    /// 32 KiB, 128 KiB, 512 KiB; blobs up to 64 KiB are one chunk.
    pub const DEFAULT: Self = Self { min: 32 << 10, avg: 128 << 10, max: 512 << 10, single_max: 64 << 10 };

    /// True if the numbers are in the order that the cut needs.
    pub const fn hold(&self) -> bool {
        self.min >= 64
            && self.min < self.avg
            && self.avg < self.max
            && self.avg.is_power_of_two()
            && self.avg >= 1024
            && self.single_max >= 1
            && self.single_max <= self.max
            && self.max <= CHUNK_LEN_MAX
    }
}

static GEAR: LazyLock<[u64; 256]> = LazyLock::new(|| {
    std::array::from_fn(|byte| {
        let byte = u8::try_from(byte).expect("256 bytes");
        let derived = blake3::derive_key("holdfast gear v1", &[byte]);
        u64::from_le_bytes(derived[..8].try_into().expect("8 of 32 bytes"))
    })
});

/// Length of the chunk at the front of `bytes`, in O(length of the chunk).
///
/// `bytes` are either all that is left of the blob, or at least `max` of it: only then is the cut the same however the stream
/// was read.
pub fn cut(params: &ChunkParams, bytes: &[u8]) -> usize {
    let (min, avg) = (params.min as usize, params.avg as usize);
    let end = bytes.len().min(params.max as usize);
    if end <= min {
        return end;
    }
    let bits = params.avg.trailing_zeros();
    let (strict, loose) = (64 - (bits + 2), 64 - (bits - 2));
    let gear: &[u64; 256] = &GEAR;
    let mut hash = 0_u64;
    let middle = end.min(avg);
    for (index, byte) in bytes[min..middle].iter().enumerate() {
        hash = (hash << 1).wrapping_add(gear[usize::from(*byte)]);
        if hash >> strict == 0 {
            return min + index + 1;
        }
    }
    for (index, byte) in bytes[middle..end].iter().enumerate() {
        hash = (hash << 1).wrapping_add(gear[usize::from(*byte)]);
        if hash >> loose == 0 {
            return middle + index + 1;
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The text of FORMAT.md, word for word.
    fn cut_as_written(params: &ChunkParams, bytes: &[u8]) -> usize {
        let bits = (0..32).find(|bits| 1 << bits == params.avg).expect("a power of two");
        if bytes.len() <= params.min as usize {
            return bytes.len();
        }
        let end = bytes.len().min(params.max as usize);
        let mut h = 0_u64;
        for i in params.min as usize..end {
            h = (h << 1).wrapping_add(GEAR[usize::from(bytes[i])]);
            let zeros = if i < params.avg as usize { bits + 2 } else { bits - 2 };
            if h.leading_zeros() >= zeros {
                return i + 1;
            }
        }
        end
    }

    const SMALL: ChunkParams = ChunkParams { min: 64, avg: 1024, max: 4096, single_max: 512 };

    proptest! {
        #[test]
        fn the_cut_is_the_one_that_the_format_gives(bytes in proptest::collection::vec(any::<u8>(), 0..6000)) {
            prop_assert_eq!(cut(&SMALL, &bytes), cut_as_written(&SMALL, &bytes));
        }
    }

    #[test]
    fn the_gear_table_is_pinned() {
        assert_eq!(
            GEAR[0],
            u64::from_le_bytes(blake3::derive_key("holdfast gear v1", &[0])[..8].try_into().expect("8"))
        );
        let mut sum = 0_u64;
        for value in GEAR.iter() {
            sum = sum.rotate_left(1).wrapping_add(*value);
        }
        assert_eq!(sum, 5_956_286_684_364_248_111);
    }

    #[test]
    fn bytes_inserted_at_the_front_leave_later_cuts_where_they_were() {
        let mut state = 1_u64;
        let mut data: Vec<u8> = (0..200_000)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 56) as u8
            })
            .collect();
        let ends = |data: &[u8]| {
            let (mut at, mut ends) = (0, Vec::new());
            while at < data.len() {
                at += cut(&SMALL, &data[at..]);
                ends.push(data.len() - at);
            }
            ends
        };
        let before = ends(&data);
        data.insert(0, 42);
        let after = ends(&data);
        let shared = before.iter().filter(|end| after.contains(end)).count();
        assert!(shared * 10 > before.len() * 9, "{shared} of {}", before.len());
    }
}
