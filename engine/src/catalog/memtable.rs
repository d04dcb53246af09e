//! Edits since the last checkpoint, sorted, in memory. A removed key stands in it as a deletion, since a table may have it.

use std::{collections::BTreeMap, ops::Bound};

use crate::{format::keyspace::Keyspace, table::Entry};

type Space = BTreeMap<Box<[u8]>, Option<Box<[u8]>>>;

/// What an entry takes besides its bytes, more or less.
const OVERHEAD: u64 = 64;

/// A memtable.
#[derive(Default)]
pub struct Memtable {
    spaces: BTreeMap<Keyspace, Space>,
    bytes: u64,
}

impl Memtable {
    /// Memory that it takes, more or less.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// True without entries.
    pub fn is_empty(&self) -> bool {
        self.spaces.values().all(BTreeMap::is_empty)
    }

    /// What it says of a key: nothing, that it was removed, or its value. O(log n).
    pub(super) fn get(&self, keyspace: Keyspace, key: &[u8]) -> Option<Option<&[u8]>> {
        self.spaces.get(&keyspace)?.get(key).map(Option::as_deref)
    }

    /// Puts or removes. `forget`: nothing older has the key, so that a removal leaves nothing.
    pub(super) fn set(&mut self, keyspace: Keyspace, key: Vec<u8>, value: Option<Vec<u8>>, forget: bool) {
        let key_len = key.len();
        let len = |value: Option<&[u8]>| OVERHEAD + (key_len + value.map_or(0, <[u8]>::len)) as u64;
        let space = self.spaces.entry(keyspace).or_default();
        let old = if value.is_none() && forget {
            space.remove(key.as_slice())
        } else {
            self.bytes += len(value.as_deref());
            space.insert(key.into(), value.map(Into::into))
        };
        if let Some(old) = old {
            self.bytes = self.bytes.saturating_sub(len(old.as_deref()));
        }
    }

    /// Entries of a keyspace behind a key, or from one on.
    pub(super) fn range<'a>(
        &'a self,
        keyspace: Keyspace,
        start: Bound<&[u8]>,
    ) -> impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)> + use<'a> {
        let space = self.spaces.get(&keyspace).map(|space| space.range::<[u8], _>((start, Bound::Unbounded)));
        space.into_iter().flatten().map(|(key, value)| (&**key, value.as_deref()))
    }

    /// Every entry in order.
    pub fn entries(&self) -> impl Iterator<Item = (Keyspace, Entry)> + '_ {
        self.spaces.iter().flat_map(|(keyspace, space)| {
            space.iter().map(|(key, value)| (*keyspace, (key.to_vec(), value.as_ref().map(|value| value.to_vec()))))
        })
    }
}
