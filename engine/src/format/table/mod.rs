//! Tables (FORMAT.md section 4b): pages of 4 KiB, each with a checksum that is salted with store, table and page number.
//!
//! A table holds a range of the order (keyspace, key) as sections: one a keyspace, either buckets of a hash table whose keys have all
//! their bytes in place, or a tree of sorted leaves.

use super::{Bad, Decoded};
use crate::{
    checksum::crc,
    format::keyspace::Keyspace,
    ids::{FileId, StoreUuid},
};

mod bucket;
mod filter;
mod header;
mod section;
mod tree;

pub use bucket::{
    Bucket, bucket_of, capacity as bucket_capacity, encode as encode_bucket, value_len as bucket_value_len,
};
pub use filter::{Filter, key_of as filter_key};
pub use header::{Header, SECTIONS_MAX};
pub use section::{Section, Shape};
pub use tree::{
    Branch, LARGE_REST, Leaf, LeafEntry, branch_entry_len, decode_rest, encode_branch, encode_large, encode_leaf,
    entry_len, is_large,
};

/// Length of a page.
pub const PAGE_LEN: usize = 4096;
/// Where what a page holds begins.
pub const BODY: usize = 16;
/// Where its checksum stands.
const SUM: usize = PAGE_LEN - 4;
/// Bytes that a page can hold.
pub const BODY_LEN: usize = SUM - BODY;
/// Pages of a table.
pub const PAGES_MAX: u32 = 4096;

const WHAT: &str = "table page";

/// What a page is. The numbers are format. Page 0 is the header and has a magic instead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum PageKind {
    /// A bucket of a hash table.
    Bucket = 2,
    /// Entries that did not fit into their bucket.
    Overflow = 3,
    /// Sorted entries.
    Leaf = 4,
    /// One entry whose value goes on in the pages behind it.
    Large = 5,
    /// More of that value.
    Rest = 6,
    /// First keys of the pages below.
    Branch = 7,
    /// Fingerprints of a filter.
    Filter = 8,
}

impl PageKind {
    const ALL: [Self; 7] =
        [Self::Bucket, Self::Overflow, Self::Leaf, Self::Large, Self::Rest, Self::Branch, Self::Filter];
}

/// The bytes of a page.
pub type Page = [u8; PAGE_LEN];

/// What page checksums are salted with, but for the number of the page.
#[derive(Clone, Copy, Debug)]
pub struct TableSalt([u8; 24]);

impl TableSalt {
    /// The salt of a table.
    pub fn new(uuid: StoreUuid, table: FileId) -> Self {
        let mut salt = [0; 24];
        super::fields::put(&mut salt, 0, &uuid.0);
        super::fields::put(&mut salt, 16, &table.0.to_le_bytes());
        Self(salt)
    }

    fn sum(&self, page: &Page, number: u32) -> u32 {
        let mut salt = [0; 28];
        super::fields::put(&mut salt, 0, &self.0);
        super::fields::put(&mut salt, 24, &number.to_le_bytes());
        crc(&salt, page.get(..SUM).expect("a page is longer"))
    }

    /// Writes the checksum of a page.
    pub fn close(&self, page: &mut Page, number: u32) {
        let sum = self.sum(page, number);
        super::fields::put(page, SUM, &sum.to_le_bytes());
    }

    /// True if a page is the one of this number, undamaged.
    pub fn holds(&self, page: &Page, number: u32) -> bool {
        super::fields::Fixed(page).u32(SUM) == self.sum(page, number)
    }
}

/// The front of every page but the first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// What it is.
    pub kind: PageKind,
    /// Whose it is.
    pub keyspace: Keyspace,
    /// Entries.
    pub count: u16,
    /// By kind: a flag, a level, a place, or a number of pages.
    pub extra: u32,
    /// Buckets: a bit for each entry that is a deletion.
    pub deleted: u64,
}

impl Head {
    /// A head of this kind, with nothing else said.
    pub const fn new(kind: PageKind, keyspace: Keyspace) -> Self {
        Self { kind, keyspace, count: 0, extra: 0, deleted: 0 }
    }

    /// Writes it to the front of a page.
    pub fn put(&self, page: &mut Page) {
        super::fields::put(page, 0, &[self.kind as u8, self.keyspace as u8]);
        super::fields::put(page, 2, &self.count.to_le_bytes());
        super::fields::put(page, 4, &self.extra.to_le_bytes());
        super::fields::put(page, 8, &self.deleted.to_le_bytes());
    }

    /// Reads it from a page whose checksum is good.
    pub fn read(page: &Page) -> Decoded<Self> {
        let f = super::fields::Fixed(page);
        let kind = PageKind::ALL.into_iter().find(|kind| *kind as u8 == f.u8(0)).ok_or(Bad::damaged(WHAT))?;
        let keyspace = Keyspace::from_number(f.u8(1)).ok_or(Bad::newer("keyspace of a table page"))?;
        Ok(Self { kind, keyspace, count: f.u16(2), extra: f.u32(4), deleted: f.u64(8) })
    }

    /// Reads a head that must be of this kind and keyspace.
    pub fn expect(page: &Page, kind: PageKind, keyspace: Keyspace) -> Decoded<Self> {
        let head = Self::read(page)?;
        if (head.kind, head.keyspace) == (kind, keyspace) { Ok(head) } else { Err(Bad::damaged(WHAT)) }
    }
}

/// The bytes of a page that are its to fill.
pub fn body(page: &Page) -> &[u8] {
    page.get(BODY..SUM).expect("a page is longer")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_good_at_its_own_place_only_and_every_flipped_bit_shows() {
        let salt = TableSalt::new(StoreUuid([1; 16]), FileId(7));
        let mut page = [0; PAGE_LEN];
        Head::new(PageKind::Leaf, Keyspace::Artifact).put(&mut page);
        salt.close(&mut page, 3);
        assert!(salt.holds(&page, 3));
        assert!(!salt.holds(&page, 4), "another page");
        assert!(!TableSalt::new(StoreUuid([1; 16]), FileId(8)).holds(&page, 3), "another table");
        assert!(!TableSalt::new(StoreUuid([2; 16]), FileId(7)).holds(&page, 3), "another store");
        for bit in 0..PAGE_LEN * 8 {
            page[bit / 8] ^= 1 << (bit % 8);
            assert!(!salt.holds(&page, 3), "bit {bit}");
            page[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn page_kinds_have_the_numbers_of_the_format() {
        for (kind, number) in PageKind::ALL.into_iter().zip(2..) {
            assert_eq!(kind as u8, number);
        }
    }
}
