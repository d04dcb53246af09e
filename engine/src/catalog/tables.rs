//! The tables of the catalog as runs: the newest run that has a key says what it is.

use std::collections::BTreeSet;

use super::scan::Merge;
use crate::{
    error::Result,
    format::{keyspace::Keyspace, manifest::ManifestTable},
    sync::Arc,
    table::{Cursor, Entry, Ground, Repairs, Table},
};

/// Tables of one range of LSNs, by rising key; none of their keys overlap.
#[derive(Clone)]
pub struct Run {
    tables: Vec<Arc<Table>>,
}

/// The tables that a manifest names. Immutable: a checkpoint puts another value in its place, and who has entered this one goes on
/// with it.
#[derive(Clone, Default)]
pub struct Tables {
    ground: Option<Arc<Ground>>,
    /// The newest first.
    runs: Vec<Run>,
}

impl Tables {
    /// The tables of a manifest, in its order.
    pub fn new(ground: Arc<Ground>, tables: &[ManifestTable]) -> Self {
        let lsns = |table: &ManifestTable| (table.first_lsn, table.last_lsn);
        let mut runs: Vec<Run> = Vec::new();
        for meta in tables {
            let table = Arc::new(Table::new(Arc::clone(&ground), meta.clone()));
            match runs.last_mut() {
                Some(run) if run.tables.last().is_some_and(|last| lsns(&last.meta) == lsns(meta)) => {
                    run.tables.push(table);
                }
                _ => runs.push(Run { tables: vec![table] }),
            }
        }
        runs.reverse();
        Self { ground: Some(ground), runs }
    }

    /// These and a newer run. Tables that are there stay what they are.
    #[must_use]
    pub fn with_run(&self, tables: &[ManifestTable]) -> Self {
        let mut all = self.clone();
        if let (Some(ground), false) = (&self.ground, tables.is_empty()) {
            all.runs.insert(0, Run::new(ground, tables));
        }
        all
    }

    /// These, with the runs from `from` to before `to` (0 is the newest) replaced by one.
    #[must_use]
    pub fn with_merged(&self, from: usize, to: usize, tables: &[ManifestTable]) -> Self {
        let mut all = self.clone();
        if let Some(ground) = &self.ground {
            let merged = (!tables.is_empty()).then(|| Run::new(ground, tables));
            all.runs.splice(from..to, merged);
        }
        all
    }

    /// What the manifest is to say of them.
    pub fn metas(&self) -> Vec<ManifestTable> {
        self.runs.iter().rev().flat_map(|run| &run.tables).map(|table| table.meta.clone()).collect()
    }

    /// Every table.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.runs.iter().flat_map(|run| &run.tables)
    }

    /// The runs, the newest first.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// True without tables.
    pub const fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// What was read from mirrors since the store was opened.
    pub fn repairs(&self) -> Repairs {
        self.ground.as_ref().map_or_else(Repairs::default, |ground| ground.repairs())
    }

    /// Writes again what was found bad and could be read from a mirror. A page that cannot be written stays what it was.
    pub fn mend(&self) {
        let bad = self.ground.as_ref().map_or_else(BTreeSet::new, |ground| ground.take_bad());
        for (id, number) in bad {
            for table in self.all().filter(|table| table.meta.id == id) {
                let _ = table.mend(number);
            }
        }
    }

    /// What the newest table that has a key says of it. A page and a filter a run.
    pub fn get(&self, keyspace: Keyspace, key: &[u8]) -> Result<Option<Option<Vec<u8>>>> {
        for run in &self.runs {
            if let Some(table) = run.table_of(keyspace, key)
                && let Some(found) = table.get(keyspace, key)?
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Goes through a keyspace of all runs.
    pub(super) fn merge(&self, newest: Vec<Entry>, keyspace: Keyspace, from: &[u8]) -> Result<Merge> {
        let runs = self.runs.iter().map(|run| run.cursor(keyspace, from)).collect::<Result<Vec<_>>>()?;
        Merge::new(newest, runs)
    }
}

impl Run {
    fn new(ground: &Arc<Ground>, tables: &[ManifestTable]) -> Self {
        Self { tables: tables.iter().map(|meta| Arc::new(Table::new(Arc::clone(ground), meta.clone()))).collect() }
    }

    /// Its tables.
    pub fn tables(&self) -> &[Arc<Table>] {
        &self.tables
    }

    /// Bytes of its tables.
    pub fn pages(&self) -> u64 {
        self.tables.iter().map(|table| u64::from(table.meta.pages)).sum()
    }

    /// Index of the first table that ends at or behind a key.
    fn first_behind(&self, keyspace: Keyspace, key: &[u8]) -> usize {
        self.tables.partition_point(|table| (table.meta.last.0, table.meta.last.1.as_slice()) < (keyspace, key))
    }

    fn table_of(&self, keyspace: Keyspace, key: &[u8]) -> Option<&Arc<Table>> {
        self.tables.get(self.first_behind(keyspace, key)).filter(|table| table.covers(keyspace, key))
    }

    /// Goes through a keyspace from a key on.
    pub fn cursor(&self, keyspace: Keyspace, from: &[u8]) -> Result<RunCursor> {
        let first = self.first_behind(keyspace, from);
        let rest: Vec<Arc<Table>> =
            self.tables[first..].iter().take_while(|table| table.meta.first.0 <= keyspace).cloned().collect();
        let mut rest = rest.into_iter();
        let here = rest.next().map(|table| Cursor::new(table, keyspace, from)).transpose()?;
        Ok(RunCursor { keyspace, here, rest })
    }
}

/// A place in a keyspace of a run.
pub struct RunCursor {
    keyspace: Keyspace,
    here: Option<Cursor>,
    rest: std::vec::IntoIter<Arc<Table>>,
}

impl RunCursor {
    pub(super) fn next_entry(&mut self) -> Result<Option<Entry>> {
        while let Some(cursor) = &mut self.here {
            if let Some(entry) = cursor.next_entry()? {
                return Ok(Some(entry));
            }
            self.here = self.rest.next().map(|table| Cursor::new(table, self.keyspace, &[])).transpose()?;
        }
        Ok(None)
    }
}
