//! Published state, as many threads see it. Memory is behind a lock that is held for a look-up in memory; tables are read without it, so
//! that no reader of a disk keeps a commit waiting.

use std::collections::BTreeMap;

use super::{Catalog, Pair, State, Usage, memtable::Memtable, scan, tables::Tables};
use crate::{
    error::Result,
    format::{commit::Edit, keyspace::Keyspace},
    sync::{Arc, RwLock},
};

/// The catalog of an open store.
#[derive(Default)]
pub struct Published(RwLock<Catalog>);

/// Published state as one look-up, or one page of a list, sees it: each asks for what is newest then.
#[derive(Clone, Copy)]
pub struct View<'a>(&'a Published);

impl Published {
    /// Publishes a catalog.
    pub const fn new(catalog: Catalog) -> Self {
        Self(RwLock::new(catalog))
    }

    /// For reading.
    pub const fn read(&self) -> View<'_> {
        View(self)
    }

    /// Applies edits that are durable, all at once for whoever looks. Only the holder of the commit lock calls it.
    pub fn apply(&self, edits: Vec<Edit>) -> Result<()> {
        // What tables have of the keys is read first, so that the lock is held for memory only.
        let mut old = BTreeMap::new();
        for edit in edits.iter().filter(|edit| super::is_counted(edit.keyspace)) {
            let tables = {
                let catalog = self.0.read();
                if catalog.tables.is_empty() || catalog.in_memory(edit.keyspace, &edit.key).is_some() {
                    continue;
                }
                Arc::clone(&catalog.tables)
            };
            // Only sums rest on it: damage here is met, and named, by whoever needs the value.
            let value = tables.get(edit.keyspace, &edit.key).ok().flatten().flatten();
            old.insert((edit.keyspace, edit.key.clone()), value);
        }
        let mut catalog = self.0.write();
        for edit in edits {
            let known = if old.is_empty() { None } else { old.get(&(edit.keyspace, edit.key.clone())) };
            catalog.take_over(edit, known.map(|value| value.as_deref()))?;
        }
        Ok(())
    }

    /// Memory of the edits since the last freeze.
    pub fn memtable_bytes(&self) -> u64 {
        self.0.read().active.bytes()
    }

    /// Takes the memtable out of the way of further edits, with the sums at that point. The one frozen before must have been
    /// installed.
    pub fn freeze(&self) -> (Arc<Memtable>, Usage) {
        let mut catalog = self.0.write();
        assert!(catalog.flushing.is_none(), "one memtable is written at a time");
        let frozen = Arc::new(std::mem::take(&mut catalog.active));
        catalog.flushing = (!frozen.is_empty()).then(|| Arc::clone(&frozen));
        (frozen, catalog.usage)
    }

    /// Puts tables in the place of those before and, with `flushed`, of the frozen memtable.
    pub fn install(&self, tables: Tables, flushed: bool) {
        let mut catalog = self.0.write();
        catalog.tables = Arc::new(tables);
        if flushed {
            catalog.flushing = None;
        }
    }
}

impl View<'_> {
    /// The sums.
    pub fn usage(self) -> Usage {
        self.0.0.read().usage()
    }

    /// Memory of both memtables.
    #[cfg(test)]
    pub fn memory_bytes(self) -> u64 {
        let catalog = self.0.0.read();
        catalog.active.bytes() + catalog.flushing.as_ref().map_or(0, |flushing| flushing.bytes())
    }

    /// The tables.
    pub fn tables(self) -> Arc<Tables> {
        Arc::clone(&self.0.0.read().tables)
    }

    /// Entries of a keyspace. O(n).
    pub fn count(self, keyspace: Keyspace) -> Result<u64> {
        let (mut count, mut after) = (0, None);
        loop {
            let page = self.scan(keyspace, &[], after.as_deref(), 1000)?;
            count += page.len() as u64;
            match page.into_iter().next_back() {
                Some((key, _)) => after = Some(key),
                None => return Ok(count),
            }
        }
    }
}

impl State for View<'_> {
    fn get(&self, keyspace: Keyspace, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let tables = {
            let catalog = self.0.0.read();
            if let Some(found) = catalog.in_memory(keyspace, key) {
                return Ok(found.map(<[u8]>::to_vec));
            }
            Arc::clone(&catalog.tables)
        };
        Ok(tables.get(keyspace, key)?.flatten())
    }

    fn scan(&self, keyspace: Keyspace, prefix: &[u8], after: Option<&[u8]>, limit: usize) -> Result<Vec<Pair>> {
        scan::scan(&|after, most| self.0.0.read().slice(keyspace, prefix, after, most), keyspace, prefix, after, limit)
    }
}
