//! Recipe pages and how they are cut: section 11.1 of `FORMAT.md`.
//!
//! It does not know where pages are stored.

use crate::error::{Error, Result};
use crate::fields::Fields;
pub use crate::keyspace::PageEntry;
use crate::{Id32, limits};

/// A recipe page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// 0: its entries are chunks. Otherwise pages of one level less.
    pub level: u8,
    /// The sum of the lengths.
    pub total: u64,
    /// In the order of the blob.
    pub entries: Vec<PageEntry>,
}

impl Page {
    /// Reads the payload of a page frame at `base`.
    pub fn parse(payload: &[u8], base: u64) -> Result<Self> {
        let mut f = Fields::new("page", payload, base);
        let level = f.u8("level")?;
        f.check(level <= limits::PAGE_LEVEL, Error::Bound)?;
        f.reserved(1)?;
        let count = f.u16("count")?;
        f.check((1..=limits::PAGE_ENTRIES).contains(&count), Error::Bound)?;
        f.reserved(4)?;
        let total = f.u64("total")?;
        let mut entries = Vec::new();
        let mut left = total;
        for _ in 0..count {
            let entry = PageEntry::parse(&mut f)?;
            left = left.checked_sub(entry.length).ok_or(Error::Mismatch(f.place()))?;
            entries.push(entry);
        }
        f.check(left == 0, Error::Mismatch)?;
        f.end()?;
        Ok(Self { level, total, entries })
    }

    /// The payload of this page.
    pub fn payload(&self) -> Vec<u8> {
        let count = u16::try_from(self.entries.len()).expect("a page has at most 1,024 entries");
        let mut payload = vec![self.level, 0];
        payload.extend_from_slice(&count.to_le_bytes());
        payload.extend_from_slice(&[0; 4]);
        payload.extend_from_slice(&self.total.to_le_bytes());
        for entry in &self.entries {
            payload.extend_from_slice(&entry.id);
            payload.extend_from_slice(&entry.length.to_le_bytes());
        }
        payload
    }
}

/// Whether a page ends after the entry with this id, which is its `count`-th.
pub fn page_ends(id: &Id32, count: usize) -> bool {
    let low = match id {
        [first, second, ..] => u16::from_le_bytes([*first, *second]) & 0x1ff,
    };
    (count >= 2 && low == 0) || count >= usize::from(limits::PAGE_ENTRIES)
}

/// Builds the recipe of a blob from its chunks in order.
///
/// `page` is told of each page that ends, and answers its id.
pub struct Builder<P> {
    levels: Vec<Level>,
    page: P,
}

impl<P> std::fmt::Debug for Builder<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder").field("levels", &self.levels.len()).finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Level {
    entries: Vec<PageEntry>,
    ended: bool,
}

impl<P: FnMut(&Page) -> Id32> Builder<P> {
    /// A builder without chunks.
    pub fn new(page: P) -> Self {
        Self { levels: Vec::new(), page }
    }

    /// Adds the next chunk.
    pub fn push(&mut self, entry: PageEntry) {
        self.push_at(0, entry);
    }

    /// What each level holds that is not in a page yet: the right edge of an upload.
    pub fn right_edge(&self) -> Vec<Vec<PageEntry>> {
        self.levels.iter().map(|level| level.entries.clone()).collect()
    }

    fn push_at(&mut self, index: usize, entry: PageEntry) {
        if self.levels.len() == index {
            self.levels.push(Level::default());
        }
        let level = self.levels.get_mut(index).expect("levels are pushed one by one, from below");
        level.entries.push(entry);
        if page_ends(&entry.id, level.entries.len()) {
            self.end_page(index);
        }
    }

    fn end_page(&mut self, index: usize) {
        let level = self.levels.get_mut(index).expect("a page ends at a level that holds entries");
        level.ended = true;
        let entries = std::mem::take(&mut level.entries);
        let total = entries.iter().map(|entry| entry.length).sum();
        let level = u8::try_from(index).expect("41 levels hold more chunks than a file has bytes");
        let page = Page { level, total, entries };
        let id = (self.page)(&page);
        self.push_at(index + 1, PageEntry { id, length: page.total });
    }

    /// Ends the blob and gives its root.
    pub fn finish(mut self) -> Id32 {
        let mut index = 0;
        while let Some(level) = self.levels.get(index) {
            let top = index + 1 == self.levels.len();
            match level.entries.as_slice() {
                [only] if top && !level.ended => return only.id,
                [] => {}
                _ => self.end_page(index),
            }
            index += 1;
        }
        [0; 32]
    }
}
