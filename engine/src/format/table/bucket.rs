//! Bucket pages: keys of 32 uniform bytes with values of one length. The page is the hash bucket, so a look-up reads one.

use super::{BODY, Head, PAGE_LEN, Page, PageKind, SUM};
use crate::format::{
    Bad, Decoded,
    fields::{is_zero, put},
    keyspace::Keyspace,
};

/// Length of the keys.
const KEY_LEN: usize = 32;
/// Set in a bucket of which entries stand in overflow pages.
const OVERFLOWS: u32 = 1;
const BAD: Bad = Bad::damaged("table bucket");

/// Length of the values of a keyspace that stands in buckets; `None` for those that stand in trees.
pub const fn value_len(keyspace: Keyspace) -> Option<usize> {
    match keyspace {
        Keyspace::Chunk => Some(40),
        Keyspace::Blob => Some(48),
        _ => None,
    }
}

/// Entries that a bucket holds.
pub const fn capacity(value_len: usize) -> usize {
    (SUM - BODY) / (KEY_LEN + value_len)
}

/// The bucket among `buckets` of a key that stands in a section from `low` to `high`: its first eight bytes as a number, in
/// proportion. A key outside of the section gets the nearest.
pub fn bucket_of(key: &[u8], low: u64, high: u64, buckets: u32) -> u32 {
    let number = ordered_front(key).clamp(low, high);
    let span = u128::from(high - low) + 1;
    let bucket = u128::from(number - low) * u128::from(buckets) / span;
    u32::try_from(bucket).expect("below the number of buckets")
}

/// The first eight bytes of a key as a number, in the order of keys.
pub(super) fn ordered_front(key: &[u8]) -> u64 {
    key.iter().chain(std::iter::repeat(&0)).take(8).fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

/// Writes a page of sorted entries; a deletion has no value.
pub fn encode(keyspace: Keyspace, overflow: bool, overflows: bool, entries: &[(Vec<u8>, Option<Vec<u8>>)]) -> Page {
    let value_len = value_len(keyspace).expect("a keyspace of buckets");
    let kind = if overflow { PageKind::Overflow } else { PageKind::Bucket };
    let mut page = [0; PAGE_LEN];
    let mut head = Head::new(kind, keyspace);
    head.count = u16::try_from(entries.len()).expect("a bucket is bounded");
    head.extra = if overflows { OVERFLOWS } else { 0 };
    for (index, (key, value)) in entries.iter().enumerate() {
        let at = BODY + index * (KEY_LEN + value_len);
        put(&mut page, at, key);
        match value {
            Some(value) => put(&mut page, at + KEY_LEN, value),
            None => head.deleted |= 1 << index,
        }
    }
    head.put(&mut page);
    page
}

/// A bucket or overflow page that was read.
pub struct Bucket<'a> {
    page: &'a Page,
    head: Head,
    value_len: usize,
}

impl<'a> Bucket<'a> {
    /// A page that [`decode`](Self::decode) has taken before: only what it is is checked again.
    pub fn known(page: &'a Page, keyspace: Keyspace, overflow: bool) -> Decoded<Self> {
        let value_len = value_len(keyspace).ok_or(BAD)?;
        let kind = if overflow { PageKind::Overflow } else { PageKind::Bucket };
        let head = Head::expect(page, kind, keyspace)?;
        if usize::from(head.count) > capacity(value_len) {
            return Err(BAD);
        }
        Ok(Self { page, head, value_len })
    }

    /// Checks a page whose checksum is good.
    pub fn decode(page: &'a Page, keyspace: Keyspace, overflow: bool) -> Decoded<Self> {
        let value_len = value_len(keyspace).ok_or(BAD)?;
        let kind = if overflow { PageKind::Overflow } else { PageKind::Bucket };
        let head = Head::expect(page, kind, keyspace)?;
        let count = usize::from(head.count);
        // First: nothing below is defined for more entries than a page has room for, and no page has a bit for each.
        if count > capacity(value_len) {
            return Err(BAD);
        }
        let deletions_hold = head.deleted >> count == 0;
        let extra_holds = head.extra == 0 || (head.extra == OVERFLOWS && !overflow);
        let end = BODY + count * (KEY_LEN + value_len);
        let rest_holds = page.get(end..SUM).is_some_and(is_zero);
        if !deletions_hold || !extra_holds || !rest_holds || (overflow && count == 0) {
            return Err(BAD);
        }
        let bucket = Self { page, head, value_len };
        let sorted = (1..count).all(|index| bucket.key(index - 1) < bucket.key(index));
        let cleared = (0..count).all(|index| !bucket.is_deleted(index) || is_zero(bucket.value(index)));
        if sorted && cleared { Ok(bucket) } else { Err(BAD) }
    }

    /// Entries.
    pub fn count(&self) -> usize {
        usize::from(self.head.count)
    }

    /// True if entries of this bucket stand in overflow pages.
    pub const fn overflows(&self) -> bool {
        self.head.extra == OVERFLOWS
    }

    fn part(&self, index: usize, from: usize, len: usize) -> &'a [u8] {
        let at = BODY + index * (KEY_LEN + self.value_len) + from;
        self.page.get(at..at + len).expect("the count was checked")
    }

    /// Key of an entry.
    pub fn key(&self, index: usize) -> &'a [u8] {
        self.part(index, 0, KEY_LEN)
    }

    fn value(&self, index: usize) -> &'a [u8] {
        self.part(index, KEY_LEN, self.value_len)
    }

    const fn is_deleted(&self, index: usize) -> bool {
        self.head.deleted >> index & 1 == 1
    }

    /// Value of an entry; `None` for a deletion.
    pub fn entry(&self, index: usize) -> Option<&'a [u8]> {
        (!self.is_deleted(index)).then(|| self.value(index))
    }

    /// The entry of a key, or where it would stand. O(log n).
    pub fn find(&self, key: &[u8]) -> Result<usize, usize> {
        let (mut low, mut high) = (0, self.count());
        while low < high {
            let middle = low.midpoint(high);
            match self.key(middle).cmp(key) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Ok(middle),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_rise_with_keys_and_stay_within_their_number() {
        let key = |front: u64| {
            let mut key = [0; 32];
            for (at, byte) in key.iter_mut().take(8).enumerate() {
                *byte = u8::try_from(front >> (56 - 8 * at) & 0xff).expect("a byte");
            }
            key
        };
        assert_eq!(ordered_front(&key(0x0102_0304_0506_0708)), 0x0102_0304_0506_0708);
        assert_eq!(bucket_of(&key(0), 0, u64::MAX, 7), 0);
        assert_eq!(bucket_of(&key(u64::MAX), 0, u64::MAX, 7), 6);
        assert_eq!(bucket_of(&key(5), 5, 5, 1), 0);
        assert_eq!((bucket_of(&key(0), 10, 19, 5), bucket_of(&key(99), 10, 19, 5)), (0, 4), "outside");
        let found: Vec<u32> = (10..20).map(|n| bucket_of(&key(n), 10, 19, 5)).collect();
        assert_eq!(found, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]);
    }

    #[test]
    fn a_bucket_comes_back_with_its_deletions() {
        let entries = vec![(vec![1; 32], Some(vec![7; 40])), (vec![2; 32], None), (vec![3; 32], Some(vec![9; 40]))];
        let page = encode(Keyspace::Chunk, false, true, &entries);
        let bucket = Bucket::decode(&page, Keyspace::Chunk, false).expect("holds");
        assert!(bucket.overflows());
        for (index, (key, value)) in entries.iter().enumerate() {
            assert_eq!(bucket.find(key), Ok(index));
            assert_eq!(bucket.entry(index), value.as_deref());
        }
        assert_eq!(bucket.find(&[2; 31]), Err(1));
        assert!(Bucket::decode(&page, Keyspace::Blob, false).is_err());
        assert!(Bucket::decode(&page, Keyspace::Chunk, true).is_err());
        assert_eq!((capacity(40), capacity(48)), (56, 50));
    }

    #[test]
    fn a_page_that_counts_more_entries_than_it_holds_is_refused() {
        let entries = vec![(vec![1; 32], Some(vec![7; 40]))];
        for count in [57_u16, 63, 64, 65, 200, u16::MAX] {
            let mut page = encode(Keyspace::Chunk, false, false, &entries);
            put(&mut page, 2, &count.to_le_bytes());
            for overflow in [false, true] {
                assert!(Bucket::decode(&page, Keyspace::Chunk, overflow).is_err(), "{count}");
                assert!(Bucket::known(&page, Keyspace::Chunk, overflow).is_err(), "{count}");
            }
        }
    }
}
