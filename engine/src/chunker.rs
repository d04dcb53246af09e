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

type Gear = [[u64; 256]; STEP];

/// Bytes of one shift of the hash.
const STEP: usize = 4;
/// Bytes between two looks at whether a half goes on.
const GROUP: usize = 8;
/// Bytes of a half: many, as each begins with hashing the window before it again; few, as what was hashed behind a cut was for nothing.
const HALF_MAX: usize = 4096;
/// Shorter halves do not earn the hashing of the windows before them.
const HALF_MIN: usize = 256;
/// Bytes that a hash depends on: each is shifted out by the 64th behind it.
const WINDOW: usize = 64;
/// Bytes whose hashes raise alarms everywhere can be made: behind so many in one stretch, what is left of it is judged in turn.
const ALARMS_MAX: usize = 16;
/// With fewer zeros asked for, false alarms cost more than two halves at once gain.
const ZEROS_FOR_HALVES: u32 = 13;

/// The table of FORMAT.md, and the same shifted left by 1, 2 and 3.
static GEAR: LazyLock<Gear> = LazyLock::new(|| {
    let gear: [u64; 256] = std::array::from_fn(|byte| {
        let byte = u8::try_from(byte).expect("256 bytes");
        let derived = blake3::derive_key("holdfast gear v1", &[byte]);
        u64::from_le_bytes(derived[..8].try_into().expect("8 of 32 bytes"))
    });
    std::array::from_fn(|shift| gear.map(|value| value << shift))
});

/// Length of the chunk at the front of `bytes`, in O(length of the chunk).
///
/// `bytes` are either all that is left of the blob, or at least `max` of it: only then is the cut the same however the stream
/// was read.
pub fn cut(params: &ChunkParams, bytes: &[u8]) -> usize {
    find(params, bytes, 0).unwrap_or(bytes.len())
}

/// Length of the chunk at the front of `bytes`, whatever stands behind them; `None` if that matters. In the first `looked` of them no
/// chunk ends: nothing was found there before.
pub fn find(params: &ChunkParams, bytes: &[u8], looked: usize) -> Option<usize> {
    let (min, avg, max) = (params.min as usize, params.avg as usize, params.max as usize);
    let hashed = bytes.get(min..bytes.len().min(max))?;
    let bits = params.avg.trailing_zeros();
    let middle = hashed.len().min(avg - min);
    let from = looked.saturating_sub(min).min(hashed.len());
    let found = first(hashed, from.min(middle), middle, bits + 2)
        .or_else(|| first(hashed, from.max(middle), hashed.len(), bits - 2));
    found.map(|found| min + found).or_else(|| (bytes.len() >= max).then_some(max))
}

/// Where the first chunk ends whose last byte is in `bytes[from..to]` and whose hash opens with `zeros`. The hash begins with `bytes`.
fn first(bytes: &[u8], from: usize, to: usize, zeros: u32) -> Option<usize> {
    if zeros < ZEROS_FOR_HALVES {
        return first_in_turn(&GEAR, bytes, from, to, zeros);
    }
    first_by_halves(&GEAR, bytes, from, to, zeros, HALF_MAX)
}

/// `first`, byte by byte.
fn first_in_turn(gear: &Gear, bytes: &[u8], from: usize, to: usize, zeros: u32) -> Option<usize> {
    let judged = judged(zeros);
    let mut hash = hash_before(gear, bytes, from);
    let ends = bytes[from..to].iter().position(|byte| {
        hash = (hash << 1).wrapping_add(gear[0][usize::from(*byte)]);
        hash & judged == 0
    });
    ends.map(|index| from + index + 1)
}

/// `first`, with two halves of each stretch hashed at once: a byte's hash waits for that of the byte before it, and a core has room
/// for the work on a second one meanwhile.
fn first_by_halves(
    gear: &Gear,
    bytes: &[u8],
    mut from: usize,
    mut to: usize,
    zeros: u32,
    half_max: usize,
) -> Option<usize> {
    let mut found = None;
    while from < to {
        let half = ((to - from) / 2).min(half_max) / GROUP * GROUP;
        if half < HALF_MIN.min(half_max) {
            return first_in_turn(gear, bytes, from, to, zeros).or(found);
        }
        match in_halves(gear, bytes, from, half, zeros) {
            None => from += 2 * half,
            // What is left of the front half may hold an earlier end.
            Some((front_judged, end)) => {
                found = Some(end);
                to = end.min(from + half);
                from = front_judged;
            }
        }
    }
    found
}

/// The end that is met first when both halves of `bytes[from..from + 2 * half]` are hashed at once, and the place before which the
/// front half has no other. `half` is whole groups.
fn in_halves(gear: &Gear, bytes: &[u8], from: usize, half: usize, zeros: u32) -> Option<(usize, usize)> {
    let (front, back) = bytes[from..from + 2 * half].split_at(half);
    let (front, back) = (front.as_chunks().0, back.as_chunks().0);
    let (mut group, mut alarms) = (0, 0);
    while group < front.len() {
        let at = from + group * GROUP;
        if alarms == ALARMS_MAX {
            return first_in_turn(gear, bytes, at, from + 2 * half, zeros).map(|end| (end, end));
        }
        let hashes = [hash_before(gear, bytes, at), hash_before(gear, bytes, at + half)];
        group += groups_without_alarm(gear, &front[group..], &back[group..], hashes, judged(zeros))?;
        let at = from + group * GROUP;
        if let Some(end) = first_in_turn(gear, bytes, at, at + GROUP, zeros) {
            return Some((end, end));
        }
        (group, alarms) = (group + 1, alarms + 1);
        if let Some(end) = first_in_turn(gear, bytes, at + half, at + half + GROUP, zeros) {
            return Some((at + GROUP, end));
        }
    }
    None
}

/// Groups before the first in which a chunk might end in either half; `None` if it can end nowhere.
///
/// Bytes are added in steps: the hash is shifted for the whole step first, and each byte takes its value from the table that is
/// shifted by the bytes of the step that follow it. So the hash of the step's first byte stands 3 bits too high and lacks its top 3,
/// and so on: what is asked of all four is that the bits are zero that they have in common. That is one chance in 2 to the
/// `zeros - 3`, for a byte behind which no chunk ends to raise an alarm.
#[inline(never)] // Inlined, the compiler runs out of registers and works on the stack: half the speed.
fn groups_without_alarm(
    gear: &Gear,
    front: &[[u8; GROUP]],
    back: &[[u8; GROUP]],
    [mut front_hash, mut back_hash]: [u64; 2],
    judged: u64,
) -> Option<usize> {
    let judged = judged << (STEP - 1);
    for (group, (front, back)) in front.iter().zip(back).enumerate() {
        for (front, back) in front.as_chunks::<STEP>().0.iter().zip(back.as_chunks::<STEP>().0) {
            front_hash <<= STEP;
            back_hash <<= STEP;
            for (index, (front, back)) in front.iter().zip(back).enumerate() {
                let gear = &gear[STEP - 1 - index];
                front_hash = front_hash.wrapping_add(gear[usize::from(*front)]);
                if front_hash & judged == 0 {
                    return Some(group);
                }
                back_hash = back_hash.wrapping_add(gear[usize::from(*back)]);
                if back_hash & judged == 0 {
                    return Some(group);
                }
            }
        }
    }
    None
}

/// The top bits that are zero where a chunk may end.
fn judged(zeros: u32) -> u64 {
    u64::MAX << (u64::BITS - zeros)
}

/// The hash of what stands before `at`.
fn hash_before(gear: &Gear, bytes: &[u8], at: usize) -> u64 {
    let window = &bytes[at.saturating_sub(WINDOW)..at];
    window.iter().fold(0, |hash: u64, byte| (hash << 1).wrapping_add(gear[0][usize::from(*byte)]))
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
            h = (h << 1).wrapping_add(GEAR[0][usize::from(bytes[i])]);
            let zeros = if i < params.avg as usize { bits + 2 } else { bits - 2 };
            if h.leading_zeros() >= zeros {
                return i + 1;
            }
        }
        end
    }

    const SMALL: ChunkParams = ChunkParams { min: 64, avg: 1024, max: 4096, single_max: 512 };

    fn noise(len: usize) -> Vec<u8> {
        let mut state = 1_u64;
        let next = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        };
        (0..len).map(next).collect()
    }

    /// A window whose hash opens with `zeros`, from noise.
    fn window(zeros: u32) -> Vec<u8> {
        let noise = noise(8 << 20);
        let end = first_in_turn(&GEAR, &noise, WINDOW, noise.len(), zeros).expect("likely");
        noise[end - WINDOW..end].to_vec()
    }

    proptest! {
        #[test]
        fn the_cut_is_the_one_that_the_format_gives(bytes in proptest::collection::vec(any::<u8>(), 0..6000)) {
            prop_assert_eq!(cut(&SMALL, &bytes), cut_as_written(&SMALL, &bytes));
        }

        #[test]
        fn bytes_in_which_no_chunk_ends_need_not_be_looked_at_again(
            bytes in proptest::collection::vec(any::<u8>(), 0..6000),
            known in 0..6000_usize,
        ) {
            let known = known.min(bytes.len());
            let expected = find(&SMALL, &bytes, 0);
            match find(&SMALL, &bytes[..known], 0) {
                None => prop_assert_eq!(find(&SMALL, &bytes, known), expected),
                found => prop_assert_eq!(found, expected),
            }
        }

        /// Few zeros and few letters: ends and false alarms in every group, in both halves, and none in long stretches.
        #[test]
        fn two_halves_at_once_find_what_is_found_in_turn(
            bytes in (1..=u8::MAX).prop_flat_map(|last| proptest::collection::vec(0..=last, 0..3000)),
            from in 0..200_usize,
            zeros in 3..16_u32,
            half_max in (1..40_usize).prop_map(|groups| groups * GROUP),
        ) {
            let from = from.min(bytes.len());
            prop_assert_eq!(
                first_by_halves(&GEAR, &bytes, from, bytes.len(), zeros, half_max),
                first_in_turn(&GEAR, &bytes, from, bytes.len(), zeros)
            );
        }
    }

    #[test]
    fn an_end_is_found_at_every_place_of_both_halves_and_an_earlier_one_is_preferred() {
        let window = window(19);
        let found = |places: &[usize]| {
            let mut bytes = vec![b'.'; 2100];
            for place in places {
                bytes[place - WINDOW..*place].copy_from_slice(&window);
            }
            let found = first_by_halves(&GEAR, &bytes, 0, bytes.len(), 19, 256);
            assert_eq!(found, first_in_turn(&GEAR, &bytes, 0, bytes.len(), 19));
            found
        };
        assert_eq!(found(&[]), None);
        for place in WINDOW..=2100 {
            assert_eq!(found(&[place]), Some(place));
            for behind in [WINDOW, 128, 255, 256, 257, 512, 1000].map(|behind| place + behind) {
                if behind <= 2100 {
                    assert_eq!(found(&[place, behind]), Some(place));
                }
            }
        }
    }

    #[test]
    fn bytes_that_raise_alarms_everywhere_are_cut_as_others() {
        let noise = noise(1 << 20);
        let is_alarm = |window: &&[u8]| (10..13).contains(&hash_before(&GEAR, window, WINDOW).leading_zeros());
        let alarm = noise.windows(WINDOW).find(is_alarm).expect("likely");
        let alarms = alarm.repeat(2 * HALF_MAX / WINDOW);
        assert_eq!(cut_by_halves(&alarms), None);
        let window = window(13);
        for place in (WINDOW..=alarms.len()).step_by(17) {
            let mut bytes = alarms.clone();
            bytes[place - WINDOW..place].copy_from_slice(&window);
            assert_eq!(cut_by_halves(&bytes), first_in_turn(&GEAR, &bytes, 0, bytes.len(), 13));
        }
    }

    fn cut_by_halves(bytes: &[u8]) -> Option<usize> {
        first_by_halves(&GEAR, bytes, 0, bytes.len(), 13, HALF_MAX)
    }

    #[test]
    fn the_cut_is_the_one_that_the_format_gives_at_every_border() {
        const PARAMS: ChunkParams = ChunkParams { min: 8 << 10, avg: 32 << 10, max: 128 << 10, single_max: 512 };
        let (strict, loose) = (window(17), window(13));
        let (min, avg, max) = (PARAMS.min as usize, PARAMS.avg as usize, PARAMS.max as usize);
        let half = min + HALF_MAX;
        for place in
            [min + 1, min + 63, min + 64, half, half + 1, half + 64, half + HALF_MAX, avg, avg + 1, max, max + 1]
        {
            for window in [&strict, &loose] {
                for len in [min, half, avg, max].map(|len| len..len + 2) {
                    for len in len.chain([place - 1, place, place + 1, max + min]) {
                        let mut bytes = vec![b'.'; max + min];
                        bytes[place - WINDOW..place].copy_from_slice(window);
                        let bytes = &bytes[..len];
                        assert_eq!(cut(&PARAMS, bytes), cut_as_written(&PARAMS, bytes), "{place} {len}");
                    }
                }
            }
        }
    }

    #[test]
    fn noise_and_text_are_cut_as_the_format_says() {
        let noise = noise(3 << 20);
        let text: Vec<u8> = noise.iter().map(|byte| b"etaoin shrdlu..."[usize::from(byte >> 4)]).collect();
        for data in [noise, text] {
            for (bits, from) in [(17, 0), (16, 1), (15, 7), (12, 0)] {
                let params = ChunkParams { min: 1 << (bits - 2), avg: 1 << bits, max: 4 << bits, single_max: 1 };
                let mut rest = &data[from..];
                while !rest.is_empty() {
                    let len = cut(&params, rest);
                    assert_eq!(len, cut_as_written(&params, rest), "{bits} {}", rest.len());
                    rest = &rest[len..];
                }
            }
        }
    }

    #[test]
    fn the_gear_table_is_pinned() {
        assert_eq!(
            GEAR[0][0],
            u64::from_le_bytes(blake3::derive_key("holdfast gear v1", &[0])[..8].try_into().expect("8"))
        );
        let mut sum = 0_u64;
        for value in &GEAR[0] {
            sum = sum.rotate_left(1).wrapping_add(*value);
        }
        assert_eq!(sum, 5_956_286_684_364_248_111);
    }

    #[test]
    fn bytes_inserted_at_the_front_leave_later_cuts_where_they_were() {
        let mut data = noise(200_000);
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
