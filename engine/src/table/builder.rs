//! A table from entries that come in order. It is built in memory, at most 16 MiB of it, and written as one.

use xorf::BinaryFuse8;

use super::{Bound, Entry};
use crate::{
    format::{
        keyspace::Keyspace,
        manifest::ManifestTable,
        table::{
            BODY_LEN, Filter, Head, Header, PAGE_LEN, PAGES_MAX, Page, PageKind, SECTIONS_MAX, Section, Shape,
            TableSalt, branch_entry_len, bucket_capacity, bucket_of, bucket_value_len, encode_branch, encode_bucket,
            encode_large, encode_leaf, entry_len, filter_key, is_large,
        },
    },
    ids::{FileId, Lsn, StoreUuid},
};

/// A table is closed before an entry that comes behind so many pages. What one entry, or buckets that are filled as badly as can be,
/// add to it stays within what a table may have.
const PAGES_FULL: usize = 2200;

/// A table that is ready to be written.
pub struct Built {
    pub(super) bytes: Vec<u8>,
    first: Bound,
    last: Bound,
    lsns: (Lsn, Lsn),
}

impl Built {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What the manifest says of it.
    pub fn manifest(&self, id: FileId) -> ManifestTable {
        ManifestTable {
            id,
            pages: u32::try_from(self.bytes.len() / PAGE_LEN).expect("bounded"),
            mirrored: true,
            first_lsn: self.lsns.0,
            last_lsn: self.lsns.1,
            first: (self.first.keyspace, self.first.key.clone()),
            last: (self.last.keyspace, self.last.key.clone()),
        }
    }
}

/// Builds one table.
pub struct Builder {
    uuid: StoreUuid,
    id: FileId,
    lsns: (Lsn, Lsn),
    /// The finished pages, the header's place first.
    pages: Vec<Page>,
    sections: Vec<Section>,
    open: Option<Open>,
    first: Option<Bound>,
    last: Option<Bound>,
    /// Pages that the open section takes, more or less.
    estimate: usize,
    full: usize,
}

/// The section that takes entries.
struct Open {
    keyspace: Keyspace,
    entries: Vec<Entry>,
    bytes: usize,
}

impl Builder {
    /// A table of this id with the edits of these LSNs.
    pub fn new(uuid: StoreUuid, id: FileId, lsns: (Lsn, Lsn)) -> Self {
        Self {
            uuid,
            id,
            lsns,
            pages: vec![[0; PAGE_LEN]],
            sections: Vec::new(),
            open: None,
            first: None,
            last: None,
            estimate: 0,
            full: PAGES_FULL,
        }
    }

    /// ... that is closed behind so many pages, at most as many as by default.
    #[must_use]
    pub fn closing_behind(mut self, pages: usize) -> Self {
        self.full = pages.clamp(1, PAGES_FULL);
        self
    }

    /// True once it should be finished and another one begun.
    pub fn is_full(&self) -> bool {
        self.pages.len() + self.estimate >= self.full
    }

    /// True if it has no entry.
    pub const fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Adds an entry behind all others.
    pub fn push(&mut self, keyspace: Keyspace, key: Vec<u8>, value: Option<Vec<u8>>) {
        let bound = Bound { keyspace, key: key.clone() };
        debug_assert!(self.last.as_ref().is_none_or(|last| *last < bound), "entries come in order");
        if self.open.as_ref().is_some_and(|open| open.keyspace != keyspace) {
            self.close_section();
        }
        let open = self.open.get_or_insert(Open { keyspace, entries: Vec::new(), bytes: 0 });
        open.bytes += entry_len(&key, value.as_deref());
        open.entries.push((key, value));
        self.estimate = match bucket_value_len(keyspace) {
            Some(len) => open.entries.len() * 5 / (bucket_capacity(len) * 4) + open.entries.len() / 3000 + 2,
            None => open.bytes / (BODY_LEN * 7 / 8) + open.bytes / (BODY_LEN * 16) + open.entries.len() / 3000 + 2,
        };
        self.first.get_or_insert_with(|| bound.clone());
        self.last = Some(bound);
    }

    /// The table; `None` if it has no entry.
    pub fn finish(mut self) -> Option<Built> {
        self.close_section();
        let (first, last) = (self.first?, self.last?);
        assert!(self.sections.len() <= SECTIONS_MAX, "a keyspace has one section");
        assert!(self.pages.len() <= PAGES_MAX as usize, "a table is closed before it is too long");
        let header = Header {
            uuid: self.uuid,
            id: self.id,
            pages: u32::try_from(self.pages.len()).expect("bounded"),
            first_lsn: self.lsns.0,
            last_lsn: self.lsns.1,
            sections: self.sections,
        };
        self.pages[0] = header.encode();
        let salt = TableSalt::new(self.uuid, self.id);
        for (number, page) in (0..).zip(&mut self.pages) {
            salt.close(page, number);
        }
        Some(Built { bytes: self.pages.into_flattened(), first, last, lsns: self.lsns })
    }

    fn close_section(&mut self) {
        let Some(Open { keyspace, entries, .. }) = self.open.take() else { return };
        self.estimate = 0;
        let mut section = Section {
            keyspace,
            shape: Shape::Tree,
            height: 0,
            entries: u32::try_from(entries.len()).expect("a table is bounded"),
            first: self.next(),
            data: 0,
            extra: 0,
            filter: 0,
            low: 0,
            high: 0,
            seed: 0,
            segment_len: 0,
            segment_count_len: 0,
            fingerprints: 0,
        };
        let keys = wants_filter(keyspace).then(|| entries.iter().map(|(key, _)| filter_key(keyspace, key)).collect());
        if bucket_value_len(keyspace).is_some() {
            self.buckets(&mut section, entries);
        } else {
            self.tree(&mut section, entries);
        }
        if let Some(keys) = keys.filter(|_| section.data > 1) {
            self.filter(&mut section, keys);
        }
        self.sections.push(section);
    }

    fn next(&self) -> u32 {
        u32::try_from(self.pages.len()).expect("a table is bounded")
    }

    fn buckets(&mut self, section: &mut Section, entries: Vec<Entry>) {
        let keyspace = section.keyspace;
        let capacity = bucket_capacity(bucket_value_len(keyspace).expect("a keyspace of buckets"));
        let buckets = (entries.len() * 5).div_ceil(capacity * 4).max(1);
        let count = u32::try_from(buckets).expect("a table is bounded");
        let front = |entry: Option<&Entry>| entry.map_or(0, |(key, _)| filter_key(keyspace, key));
        (section.shape, section.data) = (Shape::Buckets, count);
        (section.low, section.high) = (front(entries.first()), front(entries.last()));
        let mut overflow: Vec<Entry> = Vec::new();
        let mut rest = entries.into_iter().peekable();
        for bucket in 0..count {
            let mut here = Vec::new();
            while let Some(entry) = rest.next_if(|(key, _)| bucket_of(key, section.low, section.high, count) == bucket)
            {
                if here.len() < capacity { here.push(entry) } else { overflow.push(entry) }
            }
            let overflows =
                overflow.last().is_some_and(|(key, _)| bucket_of(key, section.low, section.high, count) == bucket);
            self.pages.push(encode_bucket(keyspace, false, overflows, &here));
        }
        for part in overflow.chunks(capacity) {
            self.pages.push(encode_bucket(keyspace, true, false, part));
        }
        section.extra = self.next() - section.first - section.data;
    }

    fn tree(&mut self, section: &mut Section, entries: Vec<Entry>) {
        let keyspace = section.keyspace;
        let mut level: Vec<(Vec<u8>, u32)> = Vec::new();
        let mut leaf: Vec<Entry> = Vec::new();
        let mut len = 0;
        for (key, value) in entries {
            let (entry, large) = (entry_len(&key, value.as_deref()), is_large(&key, value.as_deref()));
            if large || len + entry > BODY_LEN {
                self.leaf(keyspace, &mut leaf, &mut level);
                len = 0;
            }
            if let (true, Some(value)) = (large, &value) {
                level.push((key.clone(), self.next()));
                self.pages.extend(encode_large(keyspace, &key, value));
            } else {
                len += entry;
                leaf.push((key, value));
            }
        }
        self.leaf(keyspace, &mut leaf, &mut level);
        section.data = self.next() - section.first;
        while level.len() > 1 {
            section.height += 1;
            level = self.branches(keyspace, section.height, level);
        }
        section.extra = self.next() - section.first - section.data;
    }

    fn leaf(&mut self, keyspace: Keyspace, leaf: &mut Vec<Entry>, level: &mut Vec<(Vec<u8>, u32)>) {
        if let Some((first, _)) = leaf.first() {
            level.push((first.clone(), self.next()));
            self.pages.push(encode_leaf(keyspace, leaf));
            leaf.clear();
        }
    }

    fn branches(&mut self, keyspace: Keyspace, height: u8, below: Vec<(Vec<u8>, u32)>) -> Vec<(Vec<u8>, u32)> {
        let mut level = Vec::new();
        let mut branch: Vec<(Vec<u8>, u32)> = Vec::new();
        let mut len = 0;
        for child in below {
            let entry = branch_entry_len(&child.0);
            if len + entry > BODY_LEN {
                level.push((branch[0].0.clone(), self.next()));
                self.pages.push(encode_branch(keyspace, height, &branch));
                branch.clear();
                len = 0;
            }
            len += entry;
            branch.push(child);
        }
        level.push((branch[0].0.clone(), self.next()));
        self.pages.push(encode_branch(keyspace, height, &branch));
        level
    }

    /// Without a filter, which in theory may not come about, look-ups read a page more.
    fn filter(&mut self, section: &mut Section, mut keys: Vec<u64>) {
        keys.sort_unstable();
        keys.dedup();
        let Ok(built) = BinaryFuse8::try_from(&keys) else { return };
        let filter = Filter {
            seed: built.descriptor.seed,
            segment_len: built.descriptor.segment_length,
            segment_count_len: built.descriptor.segment_count_length,
            fingerprints: built.fingerprints.into_vec(),
        };
        // What is written is read by our own rule and not by the crate's: a hint that hides a key would lose it.
        let Ok(filter) = filter.check() else { return };
        if !keys.iter().all(|key| filter.may_have(*key)) {
            return;
        }
        let first = self.next();
        for (place, part) in (0..).zip(filter.fingerprints.chunks(BODY_LEN)) {
            let mut page = [0; PAGE_LEN];
            Head { extra: place, ..Head::new(PageKind::Filter, section.keyspace) }.put(&mut page);
            page[crate::format::table::BODY..][..part.len()].copy_from_slice(part);
            self.pages.push(page);
        }
        section.filter = self.next() - first;
        section.seed = filter.seed;
        section.segment_len = filter.segment_len;
        section.segment_count_len = filter.segment_count_len;
        section.fingerprints = u32::try_from(filter.fingerprints.len()).expect("bounded");
    }
}

/// Keyspaces of which single keys are looked up that are often not there.
const fn wants_filter(keyspace: Keyspace) -> bool {
    matches!(keyspace, Keyspace::Chunk | Keyspace::Blob | Keyspace::Artifact | Keyspace::Op)
}
