//! Entries of memory and tables in one order: of a key that several have, the newest counts.

use super::{
    Pair,
    tables::{RunCursor, Tables},
};
use crate::{error::Result, format::keyspace::Keyspace, sync::Arc, table::Entry};

/// Entries of memory that one step takes at most.
const PART: usize = 1024;

/// A part of memory: sorted, deletions included.
pub(super) struct Slice {
    pub(super) entries: Vec<Entry>,
    /// Nothing stands behind the last of them.
    pub(super) complete: bool,
    /// The tables under it.
    pub(super) tables: Arc<Tables>,
}

/// Several sorted sources, the newest first.
pub struct Merge {
    sources: Vec<Source>,
}

struct Source {
    from: From,
    head: Option<Entry>,
}

enum From {
    Memory(std::vec::IntoIter<Entry>),
    Run(RunCursor),
}

impl Source {
    fn new(from: From) -> Result<Self> {
        let mut source = Self { from, head: None };
        source.step()?;
        Ok(source)
    }

    /// Gives the head and reads the next.
    fn step(&mut self) -> Result<Option<Entry>> {
        let next = match &mut self.from {
            From::Memory(entries) => entries.next(),
            From::Run(cursor) => cursor.next_entry()?,
        };
        Ok(std::mem::replace(&mut self.head, next))
    }
}

impl Merge {
    /// Over runs, the newest first, with something newer than all of them.
    pub fn new(newest: Vec<Entry>, runs: Vec<RunCursor>) -> Result<Self> {
        let memory = std::iter::once(From::Memory(newest.into_iter()));
        let sources = memory.chain(runs.into_iter().map(From::Run)).map(Source::new).collect::<Result<_>>()?;
        Ok(Self { sources })
    }

    /// The next key with what the newest source says of it. O(sources).
    pub fn next_entry(&mut self) -> Result<Option<Entry>> {
        let heads = self.sources.iter().filter_map(|source| source.head.as_ref());
        let Some(key) = heads.map(|(key, _)| key).min().cloned() else { return Ok(None) };
        let mut found = None;
        for source in &mut self.sources {
            if source.head.as_ref().is_some_and(|(head, _)| *head == key) {
                let entry = source.step()?;
                found = found.or(entry);
            }
        }
        Ok(found)
    }
}

/// Up to `limit` entries whose keys begin with `prefix`, behind `after` if it is given, in the order of keys. Memory is taken in
/// parts: what a reader holds is bounded, and so is the time for which it keeps a commit waiting.
pub(super) fn scan(
    slice: &dyn Fn(Option<&[u8]>, usize) -> Slice,
    keyspace: Keyspace,
    prefix: &[u8],
    after: Option<&[u8]>,
    limit: usize,
) -> Result<Vec<Pair>> {
    let mut found = Vec::new();
    let mut after = after.map(<[u8]>::to_vec);
    loop {
        let Slice { entries, complete, tables } = slice(after.as_deref(), limit.clamp(1, PART));
        let last = entries.last().map(|(key, _)| key.clone());
        let mut merge = tables.merge(entries, keyspace, after.as_deref().unwrap_or(prefix))?;
        while found.len() < limit {
            let Some((key, value)) = merge.next_entry()? else { break };
            if after.as_ref() == Some(&key) {
                continue;
            }
            // Behind the slice memory may have more, also where tables have nothing more of the prefix.
            if !complete && last.as_ref().is_some_and(|last| key > *last) {
                break;
            }
            if !key.starts_with(prefix) {
                return Ok(found);
            }
            found.extend(value.map(|value| (key, value)));
        }
        if complete || found.len() >= limit {
            return Ok(found);
        }
        after = last;
    }
}
