//! Staged state, as a request sees it while it is decided.

use std::collections::BTreeMap;

use crate::{
    catalog::{Pair, State, View},
    error::Result,
    format::{commit::Edit, frame::FrameDraft, keyspace::Keyspace},
    ids::{Location, Lsn, Time},
    log::Group,
};

/// Edits that have an LSN and are not durable yet, request by request.
#[derive(Default)]
pub(super) struct Overlay {
    requests: Vec<Vec<Edit>>,
    /// The newest edit of all keys that share a bucket.
    newest: BTreeMap<(Keyspace, Bucket), usize>,
    places: Vec<Place>,
}

/// The end of a key, which is what tells most keys apart: comparing it costs less than the key, and it needs no memory of its own.
type Bucket = [u8; 8];

/// Where an edit stands.
struct Place {
    request: usize,
    edit: usize,
    /// The edit before it in its bucket.
    older: Option<usize>,
}

fn bucket(key: &[u8]) -> Bucket {
    let mut bucket = Bucket::default();
    let tail = &key[key.len().saturating_sub(bucket.len())..];
    bucket[..tail.len()].copy_from_slice(tail);
    bucket
}

impl Overlay {
    /// What is staged of keys with a prefix, behind `after` if it is given: the newest of each. O(edits of the group), for what lists.
    fn within(&self, keyspace: Keyspace, prefix: &[u8], after: Option<&[u8]>) -> BTreeMap<&[u8], Option<&[u8]>> {
        let is_within = |edit: &&Edit| {
            edit.keyspace == keyspace
                && edit.key.starts_with(prefix)
                && after.is_none_or(|after| edit.key.as_slice() > after)
        };
        let edits = self.requests.iter().flatten().filter(is_within);
        edits.map(|edit| (edit.key.as_slice(), edit.value.as_deref())).collect()
    }

    pub(super) fn stage(&mut self, edits: Vec<Edit>) {
        let request = self.requests.len();
        for (at, edit) in edits.iter().enumerate() {
            let older = self.newest.insert((edit.keyspace, bucket(&edit.key)), self.places.len());
            self.places.push(Place { request, edit: at, older });
        }
        self.requests.push(edits);
    }

    /// The newest edit of a key.
    fn get(&self, keyspace: Keyspace, key: &[u8]) -> Option<&Edit> {
        let mut next = self.newest.get(&(keyspace, bucket(key))).copied();
        while let Some(at) = next {
            let place = &self.places[at];
            let edit = &self.requests[place.request][place.edit];
            if edit.key == key {
                return Some(edit);
            }
            next = place.older;
        }
        None
    }

    pub(super) fn into_requests(self) -> Vec<Vec<Edit>> {
        self.requests
    }
}

/// What a decision may look at and add to.
pub struct Stage<'a> {
    published: View<'a>,
    overlay: &'a Overlay,
    frames: &'a mut Group,
    lsn: Lsn,
    now: Time,
}

impl<'a> Stage<'a> {
    pub(super) const fn new(
        published: View<'a>,
        overlay: &'a Overlay,
        frames: &'a mut Group,
        lsn: Lsn,
        now: Time,
    ) -> Self {
        Self { published, overlay, frames, lsn, now }
    }

    /// The request's own LSN.
    pub const fn lsn(&self) -> Lsn {
        self.lsn
    }

    /// The later of engine time and wall clock.
    pub const fn now(&self) -> Time {
        self.now
    }

    /// Puts a chunk or page into the group and says where it will stand.
    pub fn place(&mut self, draft: &FrameDraft<'_>) -> Location {
        self.frames.place(draft)
    }
}

impl State for Stage<'_> {
    fn get(&self, keyspace: Keyspace, key: &[u8]) -> Result<Option<Vec<u8>>> {
        match self.overlay.get(keyspace, key) {
            Some(staged) => Ok(staged.value.clone()),
            None => self.published.get(keyspace, key),
        }
    }

    fn scan(&self, keyspace: Keyspace, prefix: &[u8], after: Option<&[u8]>, limit: usize) -> Result<Vec<Pair>> {
        let staged = self.overlay.within(keyspace, prefix, after);
        // Each staged entry may hide one that is published.
        let published = self.published.scan(keyspace, prefix, after, limit.saturating_add(staged.len()))?;
        // The published ones were read up to here; what is staged behind belongs to the next page.
        let is_last = published.len() < limit.saturating_add(staged.len());
        let end = published.last().map(|(key, _)| key.clone()).filter(|_| !is_last);
        let mut merged: BTreeMap<Vec<u8>, Vec<u8>> = published.into_iter().collect();
        for (key, value) in staged.into_iter().filter(|(key, _)| end.as_deref().is_none_or(|end| *key <= end)) {
            match value {
                Some(value) => drop(merged.insert(key.to_vec(), value.to_vec())),
                None => drop(merged.remove(key)),
            }
        }
        Ok(merged.into_iter().take(limit).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_edit_of_a_key_counts_also_among_keys_that_end_alike() {
        let key = |first: u8| [&[first][..], &[7; 31]].concat();
        let mut overlay = Overlay::default();
        overlay.stage(vec![Edit::put(Keyspace::Blob, key(1), [1]), Edit::put(Keyspace::Blob, key(2), [2])]);
        overlay.stage(vec![Edit::put(Keyspace::Chunk, key(1), [3]), Edit::delete(Keyspace::Blob, key(2))]);
        overlay.stage(vec![Edit::put(Keyspace::Blob, key(1), [4]), Edit::put(Keyspace::Zero, [5], [])]);
        let value = |keyspace, key: &[u8]| overlay.get(keyspace, key).map(|edit| edit.value.clone());
        assert_eq!(value(Keyspace::Blob, &key(1)), Some(Some(vec![4])));
        assert_eq!(value(Keyspace::Blob, &key(2)), Some(None));
        assert_eq!(value(Keyspace::Chunk, &key(1)), Some(Some(vec![3])));
        assert_eq!(value(Keyspace::Zero, &[5]), Some(Some(Vec::new())));
        assert_eq!((value(Keyspace::Blob, &key(3)), value(Keyspace::Zero, &key(1))), (None, None));
        assert_eq!(overlay.into_requests().len(), 3);
    }
}
