//! The descriptor of one section of a table, in its header.

use super::{BODY_LEN, Bad, Decoded, PAGES_MAX, bucket::value_len};
use crate::format::{
    fields::{Fixed, layout, put},
    keyspace::Keyspace,
};

const WHAT: &str = "table section";
const BAD: Bad = Bad::damaged(WHAT);

layout! { 64:
    KEYSPACE 1, SHAPE 1, HEIGHT 1, RESERVED1 1, ENTRIES 4, FIRST 4, DATA 4, EXTRA 4, FILTER 4, LOW 8, HIGH 8, SEED 8,
    SEGMENT 4, SEGMENTS 4, FINGERPRINTS 4, RESERVED2 4,
}

/// Length of a descriptor.
pub(super) const SECTION_LEN: usize = at::LEN;

/// How a section is built. The numbers are format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Shape {
    /// Buckets, then overflow pages.
    Buckets = 1,
    /// Leaves, then branches.
    Tree = 2,
}

/// One keyspace of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Section {
    /// Which.
    pub keyspace: Keyspace,
    /// How it is built.
    pub shape: Shape,
    /// Levels of branches.
    pub height: u8,
    /// Entries, deletions too.
    pub entries: u32,
    /// Its first page.
    pub first: u32,
    /// Buckets, or leaves with what belongs to them.
    pub data: u32,
    /// Overflow pages, or branches.
    pub extra: u32,
    /// Pages of the filter; none if it has no filter.
    pub filter: u32,
    /// Buckets: the front of the first key, as a number.
    pub low: u64,
    /// Buckets: the front of the last key.
    pub high: u64,
    /// Of the filter.
    pub seed: u64,
    /// Of the filter.
    pub segment_len: u32,
    /// Of the filter.
    pub segment_count_len: u32,
    /// Of the filter.
    pub fingerprints: u32,
}

impl Section {
    /// The page behind its last.
    pub const fn end(&self) -> u32 {
        self.first + self.data + self.extra + self.filter
    }

    /// First of the overflow pages or branches.
    pub const fn extra_first(&self) -> u32 {
        self.first + self.data
    }

    /// First page of the filter.
    pub const fn filter_first(&self) -> u32 {
        self.first + self.data + self.extra
    }

    pub(super) fn encode(&self) -> [u8; at::LEN] {
        let mut out = [0; at::LEN];
        put(&mut out, at::KEYSPACE, &[self.keyspace as u8, self.shape as u8, self.height]);
        for (at, number) in [
            (at::ENTRIES, self.entries),
            (at::FIRST, self.first),
            (at::DATA, self.data),
            (at::EXTRA, self.extra),
            (at::FILTER, self.filter),
            (at::SEGMENT, self.segment_len),
            (at::SEGMENTS, self.segment_count_len),
            (at::FINGERPRINTS, self.fingerprints),
        ] {
            put(&mut out, at, &number.to_le_bytes());
        }
        put(&mut out, at::LOW, &self.low.to_le_bytes());
        put(&mut out, at::HIGH, &self.high.to_le_bytes());
        put(&mut out, at::SEED, &self.seed.to_le_bytes());
        out
    }

    pub(super) fn decode(bytes: &[u8], first: u32) -> Decoded<Self> {
        let f = Fixed(bytes);
        let keyspace = Keyspace::from_number(f.u8(at::KEYSPACE)).ok_or(Bad::newer("keyspace of a table"))?;
        let shape = match f.u8(at::SHAPE) {
            1 => Shape::Buckets,
            2 => Shape::Tree,
            _ => return Err(BAD),
        };
        f.reserved(at::RESERVED1, 1, WHAT)?;
        f.reserved(at::RESERVED2, 4, WHAT)?;
        let section = Self {
            keyspace,
            shape,
            height: f.u8(at::HEIGHT),
            entries: f.u32(at::ENTRIES),
            first: f.u32(at::FIRST),
            data: f.u32(at::DATA),
            extra: f.u32(at::EXTRA),
            filter: f.u32(at::FILTER),
            low: f.u64(at::LOW),
            high: f.u64(at::HIGH),
            seed: f.u64(at::SEED),
            segment_len: f.u32(at::SEGMENT),
            segment_count_len: f.u32(at::SEGMENTS),
            fingerprints: f.u32(at::FINGERPRINTS),
        };
        if section.holds(first) { Ok(section) } else { Err(BAD) }
    }

    fn holds(&self, first: u32) -> bool {
        let pages = [self.first, self.data, self.extra, self.filter];
        let small = pages.iter().all(|pages| *pages < PAGES_MAX) && self.entries > 0 && self.data > 0;
        let shape_holds = match self.shape {
            Shape::Buckets => value_len(self.keyspace).is_some() && self.height == 0 && self.low <= self.high,
            Shape::Tree => {
                let root_holds = (self.height == 0) == (self.extra == 0) && u32::from(self.height) <= self.extra;
                value_len(self.keyspace).is_none() && (self.low, self.high) == (0, 0) && root_holds
            }
        };
        let filter_holds = if self.filter == 0 {
            (self.seed, self.segment_len, self.segment_count_len, self.fingerprints) == (0, 0, 0, 0)
        } else {
            (self.fingerprints as usize).div_ceil(BODY_LEN) == self.filter as usize
        };
        small && shape_holds && filter_holds && self.first == first
    }
}
