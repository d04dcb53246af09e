//! The compression function of SHA-256 for two streams at once. The rounds of one stream wait for each other, so that a core with SHA
//! instructions is idle half of the time; the rounds of a second stream fit in between.
//!
//! Knows nothing of lengths, padding and what streams are. Where the instructions are missing, `sha2` does one after the other.

use sha2::block_api::compress256;

/// A state of SHA-256 between blocks.
pub(super) type State = [u32; 8];
/// What is compressed at a time.
pub(super) type Block = [u8; 64];

/// True if two streams at once are faster than one after the other.
pub(super) fn pays() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("sha") && is_x86_feature_detected!("sse4.1") && is_x86_feature_detected!("ssse3");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

/// Compresses as many blocks into the one state as into the other.
pub(super) fn compress(states: [&mut State; 2], blocks: [&[Block]; 2]) {
    assert_eq!(blocks[0].len(), blocks[1].len(), "two streams advance in step");
    #[cfg(target_arch = "x86_64")]
    if pays() {
        #[expect(unsafe_code, reason = "what needs instructions that not every CPU has is called")]
        // SAFETY: `pays` found all instructions that the function is compiled for, and it is safe otherwise.
        return unsafe { x86::compress(states, blocks) };
    }
    for (state, blocks) in states.into_iter().zip(blocks) {
        compress256(state, blocks);
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m128i, _mm_add_epi32, _mm_alignr_epi8, _mm_extract_epi32, _mm_set_epi32, _mm_set_epi64x,
        _mm_sha256msg1_epu32, _mm_sha256msg2_epu32, _mm_sha256rnds2_epu32, _mm_shuffle_epi8, _mm_shuffle_epi32,
    };

    use super::{Block, State};

    /// Round constants (FIPS 180-4, section 4.2.2).
    const K: [u32; 64] = [
        0x428a_2f98,
        0x7137_4491,
        0xb5c0_fbcf,
        0xe9b5_dba5,
        0x3956_c25b,
        0x59f1_11f1,
        0x923f_82a4,
        0xab1c_5ed5,
        0xd807_aa98,
        0x1283_5b01,
        0x2431_85be,
        0x550c_7dc3,
        0x72be_5d74,
        0x80de_b1fe,
        0x9bdc_06a7,
        0xc19b_f174,
        0xe49b_69c1,
        0xefbe_4786,
        0x0fc1_9dc6,
        0x240c_a1cc,
        0x2de9_2c6f,
        0x4a74_84aa,
        0x5cb0_a9dc,
        0x76f9_88da,
        0x983e_5152,
        0xa831_c66d,
        0xb003_27c8,
        0xbf59_7fc7,
        0xc6e0_0bf3,
        0xd5a7_9147,
        0x06ca_6351,
        0x1429_2967,
        0x27b7_0a85,
        0x2e1b_2138,
        0x4d2c_6dfc,
        0x5338_0d13,
        0x650a_7354,
        0x766a_0abb,
        0x81c2_c92e,
        0x9272_2c85,
        0xa2bf_e8a1,
        0xa81a_664b,
        0xc24b_8b70,
        0xc76c_51a3,
        0xd192_e819,
        0xd699_0624,
        0xf40e_3585,
        0x106a_a070,
        0x19a4_c116,
        0x1e37_6c08,
        0x2748_774c,
        0x34b0_bcb5,
        0x391c_0cb3,
        0x4ed8_aa4a,
        0x5b9c_ca4f,
        0x682e_6ff3,
        0x748f_82ee,
        0x78a5_636f,
        0x84c8_7814,
        0x8cc7_0208,
        0x90be_fffa,
        0xa450_6ceb,
        0xbef9_a3f7,
        0xc671_78f2,
    ];

    /// A stream in the registers that the instructions want.
    #[derive(Clone, Copy)]
    struct Registers {
        abef: __m128i,
        cdgh: __m128i,
        /// The last 16 words of the schedule.
        words: [__m128i; 4],
    }

    #[target_feature(enable = "sha,sse4.1,ssse3")]
    pub(super) fn compress([state_one, state_two]: [&mut State; 2], blocks: [&[Block]; 2]) {
        let (mut one, mut two) = (Registers::of(state_one), Registers::of(state_two));
        for (block_one, block_two) in blocks[0].iter().zip(blocks[1]) {
            let (before_one, before_two) = (one, two);
            one.load(block_one);
            two.load(block_two);
            // Written out: in a loop the words would live on the stack, and the gain is lost.
            macro_rules! rounds {
                ($($four:literal)*) => { $(
                    one.four_rounds::<$four>();
                    two.four_rounds::<$four>();
                )* };
            }
            rounds!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
            one.add(&before_one);
            two.add(&before_two);
        }
        *state_one = one.state();
        *state_two = two.state();
    }

    impl Registers {
        #[inline]
        #[target_feature(enable = "sha,sse4.1,ssse3")]
        fn of(state: &State) -> Self {
            let word = |index: usize| state[index].cast_signed();
            Self {
                abef: _mm_set_epi32(word(0), word(1), word(4), word(5)),
                cdgh: _mm_set_epi32(word(2), word(3), word(6), word(7)),
                words: [_mm_set_epi64x(0, 0); 4],
            }
        }

        #[inline]
        #[target_feature(enable = "sha,sse4.1,ssse3")]
        fn state(&self) -> State {
            let state = [
                _mm_extract_epi32::<3>(self.abef),
                _mm_extract_epi32::<2>(self.abef),
                _mm_extract_epi32::<3>(self.cdgh),
                _mm_extract_epi32::<2>(self.cdgh),
                _mm_extract_epi32::<1>(self.abef),
                _mm_extract_epi32::<0>(self.abef),
                _mm_extract_epi32::<1>(self.cdgh),
                _mm_extract_epi32::<0>(self.cdgh),
            ];
            state.map(i32::cast_unsigned)
        }

        /// Takes the words of a block, each of which begins with its highest byte.
        #[inline]
        #[target_feature(enable = "sha,sse4.1,ssse3")]
        fn load(&mut self, block: &Block) {
            let swap = _mm_set_epi64x(0x0c0d_0e0f_0809_0a0b, 0x0405_0607_0001_0203);
            let halves = block.as_chunks::<8>().0;
            for (index, words) in self.words.iter_mut().enumerate() {
                let [low, high] = [halves[2 * index], halves[2 * index + 1]].map(i64::from_le_bytes);
                *words = _mm_shuffle_epi8(_mm_set_epi64x(high, low), swap);
            }
        }

        /// Rounds `4 * FOUR` to `4 * FOUR + 3`.
        #[inline]
        #[target_feature(enable = "sha,sse4.1,ssse3")]
        fn four_rounds<const FOUR: usize>(&mut self) {
            let [now, next, second, last] = [FOUR % 4, (FOUR + 1) % 4, (FOUR + 2) % 4, (FOUR + 3) % 4];
            if FOUR >= 4 {
                let partial = _mm_sha256msg1_epu32(self.words[now], self.words[next]);
                let seven_back = _mm_alignr_epi8::<4>(self.words[last], self.words[second]);
                self.words[now] = _mm_sha256msg2_epu32(_mm_add_epi32(partial, seven_back), self.words[last]);
            }
            let [k0, k1, k2, k3] =
                [K[4 * FOUR], K[4 * FOUR + 1], K[4 * FOUR + 2], K[4 * FOUR + 3]].map(u32::cast_signed);
            let sums = _mm_add_epi32(self.words[now], _mm_set_epi32(k3, k2, k1, k0));
            self.cdgh = _mm_sha256rnds2_epu32(self.cdgh, self.abef, sums);
            self.abef = _mm_sha256rnds2_epu32(self.abef, self.cdgh, _mm_shuffle_epi32::<0x0e>(sums));
        }

        #[inline]
        #[target_feature(enable = "sha,sse4.1,ssse3")]
        fn add(&mut self, before: &Self) {
            self.abef = _mm_add_epi32(self.abef, before.abef);
            self.cdgh = _mm_add_epi32(self.cdgh, before.cdgh);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Any state: what a stream was before must not matter.
        #[test]
        fn two_at_once_are_what_sha2_makes_of_each(
            mut states in any::<[State; 2]>(),
            blocks in proptest::collection::vec(proptest::array::uniform2(proptest::collection::vec(any::<u8>(), 64)), 0..20),
        ) {
            let [one, two] = [0, 1].map(|stream| {
                blocks.iter().map(|pair| Block::try_from(&pair[stream][..]).expect("64")).collect::<Vec<_>>()
            });
            let mut expected = states;
            compress256(&mut expected[0], &one);
            compress256(&mut expected[1], &two);
            let [state_one, state_two] = &mut states;
            compress([state_one, state_two], [&one, &two]);
            prop_assert_eq!(states, expected);
        }
    }
}
