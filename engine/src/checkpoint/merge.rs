//! Merging runs of tables, a table at a time.
//!
//! A merge takes neighbouring runs, the newest of which are about as long together as the next one, and writes one in their place. Each step
//! writes one table and ends; between two steps commits, reads and checkpoints go on. It does not know when steps are due.

use crate::{
    catalog::{Merge, Run, Tables},
    error::Result,
    format::{keyspace::Keyspace, manifest::ManifestTable},
    ids::{FileId, Lsn},
    table::{Builder, Entry},
};

/// Runs that are worth a merge.
const LEAST: usize = 4;
/// A run joins the newer ones if it is at most so many times as long as they are together.
const RATIO: u64 = 2;

/// A merge that was begun.
pub(super) struct Job {
    /// Those of the runs that it takes.
    pub(super) lsns: (Lsn, Lsn),
    runs: Vec<Run>,
    /// Nothing older has what a deletion would hide.
    forgets: bool,
    keyspace: Keyspace,
    rest: std::vec::IntoIter<Keyspace>,
    merge: Merge,
    /// Tables that are written.
    pub(super) written: Vec<ManifestTable>,
}

/// Runs that a merge would take, from the newest on: how many. Tables of one run are read by key, so that what a look-up costs is the
/// number of runs: this keeps it logarithmic.
pub(super) fn worth_merging(runs: &[Run]) -> Option<usize> {
    let mut sum = runs.first()?.pages();
    let mut count = 1;
    while let Some(run) = runs.get(count).filter(|run| run.pages() <= sum.saturating_mul(RATIO)) {
        sum += run.pages();
        count += 1;
    }
    (count >= LEAST).then_some(count)
}

impl Job {
    /// Begins to merge the newest `count` runs.
    pub(super) fn new(tables: &Tables, count: usize) -> Result<Self> {
        let runs: Vec<Run> = tables.runs().iter().take(count).cloned().collect();
        let lsns = runs.iter().filter_map(|run| run.tables().first()).map(|t| (t.meta.first_lsn, t.meta.last_lsn));
        let (first, last) = lsns.fold((Lsn(u64::MAX), Lsn::NONE), |(a, b), (c, d)| (a.min(c), b.max(d)));
        let mut rest = Keyspace::ALL.to_vec().into_iter();
        let keyspace = rest.next().expect("there are keyspaces");
        let merge = over(&runs, keyspace)?;
        let forgets = count == tables.runs().len();
        Ok(Self { lsns: (first, last), runs, forgets, keyspace, rest, merge, written: Vec::new() })
    }

    fn next(&mut self) -> Result<Option<(Keyspace, Entry)>> {
        loop {
            match self.merge.next_entry()? {
                Some((_, None)) if self.forgets => {}
                Some(entry) => return Ok(Some((self.keyspace, entry))),
                None => {
                    let Some(next) = self.rest.next() else { return Ok(None) };
                    self.keyspace = next;
                    self.merge = over(&self.runs, next)?;
                }
            }
        }
    }

    /// Fills a table; it stays empty once all entries have one. True if there may be more.
    pub(super) fn fill(&mut self, builder: &mut Builder) -> Result<bool> {
        while !builder.is_full() {
            let Some((keyspace, (key, value))) = self.next()? else { return Ok(false) };
            builder.push(keyspace, key, value);
        }
        Ok(true)
    }

    /// The tables with one run in the place of those that were merged; newer runs may have come meanwhile.
    pub(super) fn replace(&self, tables: &Tables) -> Tables {
        let is_merged = |run: &Run| {
            run.tables().first().is_some_and(|t| self.lsns.0 <= t.meta.first_lsn && t.meta.last_lsn <= self.lsns.1)
        };
        let from = tables.runs().iter().take_while(|run| !is_merged(run)).count();
        let count = tables.runs().iter().skip(from).take_while(|run| is_merged(run)).count();
        tables.with_merged(from, from + count, &self.written)
    }

    /// Ids of the tables that are written.
    pub(super) fn ids(&self) -> Vec<FileId> {
        self.written.iter().map(|table| table.id).collect()
    }

    /// The runs that were merged.
    pub(super) fn into_runs(self) -> Vec<Run> {
        self.runs
    }
}

fn over(runs: &[Run], keyspace: Keyspace) -> Result<Merge> {
    let cursors = runs.iter().map(|run| run.cursor(keyspace, &[])).collect::<Result<Vec<_>>>()?;
    Merge::new(Vec::new(), cursors)
}
