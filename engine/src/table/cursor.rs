//! Going through a keyspace of a table in the order of keys.

use super::{Entry, Table};
use crate::{
    error::Result,
    format::{
        Bad,
        keyspace::Keyspace,
        table::{Bucket, Leaf, Page, Section, Shape, bucket_of},
    },
    sync::Arc,
};

/// A place in a keyspace. It holds one page of the table at a time.
pub struct Cursor {
    table: Arc<Table>,
    section: Option<Section>,
    /// The bucket or leaf whose entries come next, and which of them.
    page: u32,
    index: usize,
    /// Among the overflow pages.
    overflow: (u32, usize),
}

impl Cursor {
    /// Begins at the first entry at or behind a key.
    pub fn new(table: Arc<Table>, keyspace: Keyspace, from: &[u8]) -> Result<Self> {
        let section = table.header()?.section(keyspace).copied();
        let mut cursor = Self { table, section, page: 0, index: 0, overflow: (0, 0) };
        let Some(section) = section else { return Ok(cursor) };
        match section.shape {
            Shape::Tree => {
                cursor.page = cursor.table.seek_leaf(&section, from)?;
                let page = cursor.table.page(cursor.page)?;
                cursor.index = cursor.leaf(&page, section.keyspace)?.find(from).unwrap_or_else(|at| at);
            }
            Shape::Buckets => {
                cursor.page = section.first + bucket_of(from, section.low, section.high, section.data);
                let page = cursor.table.page(cursor.page)?;
                cursor.index =
                    cursor.bucket(&page, section.keyspace, false, cursor.page)?.find(from).unwrap_or_else(|at| at);
                cursor.overflow = (section.extra_first(), 0);
                if section.extra > 0 {
                    cursor.overflow = cursor.table.seek_overflow(&section, from)?;
                }
            }
        }
        Ok(cursor)
    }

    fn leaf<'p>(&self, page: &'p Arc<Page>, keyspace: Keyspace) -> Result<Leaf<'p>> {
        Leaf::decode(page, keyspace).map_err(|bad| self.table.bad(self.page, bad))
    }

    fn bucket<'p>(&self, page: &'p Arc<Page>, keyspace: Keyspace, overflow: bool, number: u32) -> Result<Bucket<'p>> {
        Bucket::known(page, keyspace, overflow).map_err(|bad| self.table.bad(number, bad))
    }

    /// The next entry; deletions are entries too.
    pub fn next_entry(&mut self) -> Result<Option<Entry>> {
        let Some(section) = self.section else { return Ok(None) };
        match section.shape {
            Shape::Tree => self.next_of_tree(&section),
            Shape::Buckets => self.next_of_buckets(&section),
        }
    }

    fn next_of_tree(&mut self, section: &Section) -> Result<Option<Entry>> {
        while self.page < section.extra_first() {
            let page = self.table.page(self.page)?;
            let leaf = self.leaf(&page, section.keyspace)?;
            if let Some(entry) = leaf.entries.get(self.index) {
                let value = self.table.value(section, self.page, &leaf, self.index)?;
                let key = entry.key.to_vec();
                self.index += 1;
                return Ok(Some((key, value)));
            }
            (self.page, self.index) = (self.page + 1 + leaf.rest, 0);
        }
        Ok(None)
    }

    fn next_of_buckets(&mut self, section: &Section) -> Result<Option<Entry>> {
        while self.page < section.extra_first() {
            let page = self.table.page(self.page)?;
            let bucket = self.bucket(&page, section.keyspace, false, self.page)?;
            if self.index < bucket.count() {
                let entry = (bucket.key(self.index).to_vec(), bucket.entry(self.index).map(<[u8]>::to_vec));
                self.index += 1;
                return Ok(Some(entry));
            }
            if bucket.overflows()
                && let Some(entry) = self.overflow_of_bucket(section)?
            {
                return Ok(Some(entry));
            }
            (self.page, self.index) = (self.page + 1, 0);
        }
        Ok(None)
    }

    /// The next overflow entry, if it belongs to the bucket at which the cursor stands.
    fn overflow_of_bucket(&mut self, section: &Section) -> Result<Option<Entry>> {
        let (number, index) = self.overflow;
        if number >= section.filter_first() {
            return Ok(None);
        }
        let page = self.table.page(number)?;
        let bucket = self.bucket(&page, section.keyspace, true, number)?;
        if index >= bucket.count() {
            self.overflow = (number + 1, 0);
            return self.overflow_of_bucket(section);
        }
        let key = bucket.key(index);
        let place = section.first + bucket_of(key, section.low, section.high, section.data);
        if place < self.page {
            return Err(self.table.bad(number, Bad::damaged("overflow entries that their bucket does not name")));
        }
        if place > self.page {
            return Ok(None);
        }
        self.overflow = (number, index + 1);
        Ok(Some((key.to_vec(), bucket.entry(index).map(<[u8]>::to_vec))))
    }
}
