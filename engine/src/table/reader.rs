//! Reading one table: by page, each checked before it is believed; a bad page is taken from the mirror.

use std::collections::{BTreeMap, BTreeSet};

use super::{Bound, cache::Cache, names};
use crate::{
    disk::{self, Disk, File, OpenOptions, SyncKind},
    error::{Error, Kind, Result},
    format::{
        Bad, Decoded,
        keyspace::Keyspace,
        manifest::ManifestTable,
        table::{
            BODY_LEN, Branch, Bucket, Filter, Head, Header, LARGE_REST, Leaf, PAGE_LEN, Page, PageKind, Section, Shape,
            TableSalt, body, bucket_of, decode_rest, filter_key,
        },
    },
    ids::{FileId, StoreUuid},
    sync::{Arc, AtomicU64, Mutex, OnceLock, Ordering},
};

/// Open files that are kept, of all tables together.
const OPEN_MAX: usize = 128;

/// Bad pages that are remembered: a damaged disk may have any number, and the others are met again.
const BAD_MAX: usize = 1024;

/// What tables stand on.
pub struct Ground {
    disk: Arc<dyn Disk>,
    uuid: StoreUuid,
    cache: Cache,
    open: Mutex<Open>,
    repairs: AtomicU64,
    mended: AtomicU64,
    /// Pages of first copies that were bad when they were read.
    bad: Mutex<BTreeSet<(FileId, u32)>>,
}

type Key = (FileId, usize);

/// Files with the tick of their last use.
#[derive(Default)]
struct Open {
    files: BTreeMap<Key, (Arc<dyn File>, u64)>,
    tick: u64,
}

/// What was wrong with tables and could be read all the same.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Repairs {
    /// Pages that were taken from the mirror.
    pub from_mirror: u64,
    /// Pages that were written again.
    pub mended: u64,
}

impl Ground {
    /// Keeps about `cache_bytes` of pages in memory.
    pub fn new(disk: Arc<dyn Disk>, uuid: StoreUuid, cache_bytes: u64) -> Self {
        Self {
            disk,
            uuid,
            cache: Cache::new(cache_bytes),
            open: Mutex::default(),
            repairs: AtomicU64::new(0),
            mended: AtomicU64::new(0),
            bad: Mutex::default(),
        }
    }

    /// The pages that were found bad, which are forgotten: what fails to be written is met again.
    pub fn take_bad(&self) -> BTreeSet<(FileId, u32)> {
        std::mem::take(&mut *self.bad.lock())
    }

    /// What was repaired since the store was opened.
    pub fn repairs(&self) -> Repairs {
        Repairs { from_mirror: self.repairs.load(Ordering::Relaxed), mended: self.mended.load(Ordering::Relaxed) }
    }

    /// Closes the files of a table that goes.
    fn forget(&self, table: FileId) {
        self.open.lock().files.retain(|(id, _), _| *id != table);
    }

    /// A table's file. The least recently used one is closed when there are too many: O(log n), O(n) on eviction.
    fn file(&self, id: FileId, copy: usize) -> Result<Arc<dyn File>> {
        let mut open = self.open.lock();
        open.tick += 1;
        let tick = open.tick;
        if let Some((file, used)) = open.files.get_mut(&(id, copy)) {
            *used = tick;
            return Ok(Arc::clone(file));
        }
        let [first, mirror] = names(id);
        let name = if copy == 0 { first } else { mirror };
        let file = disk::retry(|| self.disk.open(&name, OpenOptions::READ)).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => Error::io(e, &name, "a table is missing").with_kind(Kind::Corrupt),
            _ => Error::io(e, &name, "open a table"),
        })?;
        let file: Arc<dyn File> = Arc::from(file);
        if open.files.len() >= OPEN_MAX
            && let Some(oldest) = open.files.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| *key)
        {
            open.files.remove(&oldest);
        }
        open.files.insert((id, copy), (Arc::clone(&file), tick));
        Ok(file)
    }
}

/// A table that the manifest names. Nothing is read before it is needed.
pub struct Table {
    /// What the manifest says.
    pub meta: ManifestTable,
    ground: Arc<Ground>,
    salt: TableSalt,
    header: OnceLock<Header>,
    filters: Mutex<BTreeMap<Keyspace, Option<Arc<Filter>>>>,
}

impl Table {
    /// A table; its files may or may not be there.
    pub fn new(ground: Arc<Ground>, meta: ManifestTable) -> Self {
        let salt = TableSalt::new(ground.uuid, meta.id);
        Self { meta, ground, salt, header: OnceLock::new(), filters: Mutex::default() }
    }

    /// Closes its files, before they are destroyed.
    pub fn close(&self) {
        self.ground.forget(self.meta.id);
    }

    #[cfg(test)]
    pub(super) fn ground_repairs(&self) -> u64 {
        self.ground.repairs().from_mirror
    }

    /// The first key that it may have.
    pub fn first(&self) -> Bound {
        Bound { keyspace: self.meta.first.0, key: self.meta.first.1.clone() }
    }

    /// True if a key lies within its range.
    pub fn covers(&self, keyspace: Keyspace, key: &[u8]) -> bool {
        let at = (keyspace, key);
        at >= (self.meta.first.0, self.meta.first.1.as_slice()) && at <= (self.meta.last.0, self.meta.last.1.as_slice())
    }

    /// Copies that there should be.
    pub fn copies(&self) -> usize {
        if self.meta.mirrored { 2 } else { 1 }
    }

    /// Damage at a page.
    pub(super) fn bad(&self, number: u32, bad: Bad) -> Error {
        let kind = if bad.newer { Kind::Version } else { Kind::Corrupt };
        let [name, _] = names(self.meta.id);
        Error::new(kind, bad.what).at(name, u64::from(number) * PAGE_LEN as u64)
    }

    /// One copy of a page, past the cache.
    pub fn copy_of_page(&self, number: u32, copy: usize) -> Result<Arc<Page>> {
        let file = self.ground.file(self.meta.id, copy)?;
        let name = &names(self.meta.id)[copy];
        let (mut page, offset) = (Arc::new([0; PAGE_LEN]), u64::from(number) * PAGE_LEN as u64);
        let into = Arc::get_mut(&mut page).expect("nobody else has it yet");
        let read = disk::read_full(&*file, into, offset).map_err(|e| Error::io(e, name, "read a table"))?;
        if read == PAGE_LEN && self.salt.holds(&page, number) {
            Ok(page)
        } else {
            Err(Error::corrupt(name, offset, "table page checksum"))
        }
    }

    /// A page whose checksum is good, from whichever copy has it.
    pub(super) fn page(&self, number: u32) -> Result<Arc<Page>> {
        if number >= self.meta.pages {
            return Err(self.bad(number, Bad::damaged("a page behind the end of its table")));
        }
        if let Some(page) = self.ground.cache.get(self.meta.id, number) {
            return Ok(page);
        }
        let page = match self.copy_of_page(number, 0) {
            Err(first) if self.meta.mirrored => match self.copy_of_page(number, 1) {
                Ok(page) => {
                    self.ground.repairs.fetch_add(1, Ordering::Relaxed);
                    let mut bad = self.ground.bad.lock();
                    if bad.len() < BAD_MAX {
                        bad.insert((self.meta.id, number));
                    }
                    page
                }
                Err(_) => return Err(first),
            },
            result => result?,
        };
        // What is in the cache is whole in itself, so that a look-up in it checks no more than what it needs.
        check_buckets(&page).map_err(|bad| self.bad(number, bad))?;
        self.ground.cache.put(self.meta.id, number, &page);
        Ok(page)
    }

    /// Writes a page of the first copy again from the mirror, and syncs, if the one is bad and the other good on the disk. A crash on the
    /// way leaves it bad, as it was; nothing rests on it.
    pub fn mend(&self, number: u32) -> Result<()> {
        if number >= self.meta.pages || !self.meta.mirrored || self.copy_of_page(number, 0).is_ok() {
            return Ok(());
        }
        let page = self.copy_of_page(number, 1)?;
        let [name, _] = names(self.meta.id);
        let io = |e| Error::io(e, &name, "write a page again");
        let file = disk::retry(|| self.ground.disk.open(&name, OpenOptions::WRITE)).map_err(io)?;
        disk::write_all(&*file, &*page, u64::from(number) * PAGE_LEN as u64).map_err(io)?;
        disk::retry(|| file.sync(SyncKind::Data)).map_err(io)?;
        self.ground.mended.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Page 0.
    pub fn header(&self) -> Result<&Header> {
        if let Some(header) = self.header.get() {
            return Ok(header);
        }
        let page = self.page(0)?;
        let header = Header::decode(&page, self.ground.uuid, self.meta.id).map_err(|bad| self.bad(0, bad))?;
        let says = (header.pages, header.first_lsn, header.last_lsn);
        if says != (self.meta.pages, self.meta.first_lsn, self.meta.last_lsn) {
            return Err(self.bad(0, Bad::damaged("a table that is not what the manifest says")));
        }
        Ok(self.header.get_or_init(|| header))
    }

    /// What the table says of a key: nothing, that it was removed, or its value. One page, and with a tree some branches that are
    /// mostly in the cache.
    pub fn get(&self, keyspace: Keyspace, key: &[u8]) -> Result<Option<Option<Vec<u8>>>> {
        let Some(section) = self.header()?.section(keyspace) else { return Ok(None) };
        if section.filter > 0
            && let Some(filter) = self.filter(section)?
            && !filter.may_have(filter_key(keyspace, key))
        {
            return Ok(None);
        }
        match section.shape {
            Shape::Buckets => self.get_bucket(section, key),
            Shape::Tree => self.get_leaf(section, key),
        }
    }

    fn get_bucket(&self, section: &Section, key: &[u8]) -> Result<Option<Option<Vec<u8>>>> {
        let keyspace = section.keyspace;
        let number = section.first + bucket_of(key, section.low, section.high, section.data);
        let page = self.page(number)?;
        let bucket = Bucket::known(&page, keyspace, false).map_err(|bad| self.bad(number, bad))?;
        match bucket.find(key) {
            Ok(index) => Ok(Some(bucket.entry(index).map(<[u8]>::to_vec))),
            Err(at) if at == bucket.count() && bucket.overflows() => {
                let (number, index) = self.seek_overflow(section, key)?;
                let page = self.page(number)?;
                let found = Bucket::known(&page, keyspace, true).map_err(|bad| self.bad(number, bad))?;
                let here = index < found.count() && found.key(index) == key;
                Ok(here.then(|| found.entry(index).map(<[u8]>::to_vec)))
            }
            Err(_) => Ok(None),
        }
    }

    /// Page and index of the first overflow entry at or behind a key; behind the last page's entries if there is none. O(log n) pages.
    pub(super) fn seek_overflow(&self, section: &Section, key: &[u8]) -> Result<(u32, usize)> {
        let (mut low, mut high) = (0, section.extra);
        while low < high {
            let middle = low.midpoint(high);
            let number = section.extra_first() + middle;
            let page = self.page(number)?;
            let bucket = Bucket::known(&page, section.keyspace, true).map_err(|bad| self.bad(number, bad))?;
            if bucket.key(0) <= key { low = middle + 1 } else { high = middle }
        }
        let number = section.extra_first() + low.saturating_sub(1);
        let page = self.page(number)?;
        let bucket = Bucket::known(&page, section.keyspace, true).map_err(|bad| self.bad(number, bad))?;
        let at = bucket.find(key).unwrap_or_else(|at| at);
        if at == bucket.count() && low < section.extra {
            Ok((section.extra_first() + low, 0))
        } else {
            Ok((number, at))
        }
    }

    fn get_leaf(&self, section: &Section, key: &[u8]) -> Result<Option<Option<Vec<u8>>>> {
        let number = self.seek_leaf(section, key)?;
        let page = self.page(number)?;
        let leaf = Leaf::decode(&page, section.keyspace).map_err(|bad| self.bad(number, bad))?;
        match leaf.find(key) {
            Ok(index) => self.value(section, number, &leaf, index).map(Some),
            Err(_) => Ok(None),
        }
    }

    /// The leaf in which a key stands, if it stands in any.
    pub(super) fn seek_leaf(&self, section: &Section, key: &[u8]) -> Result<u32> {
        if section.height == 0 {
            return Ok(section.first);
        }
        let mut number = section.extra_first() + section.extra - 1;
        for level in (1..=section.height).rev() {
            let page = self.page(number)?;
            let branch = Branch::decode(&page, section.keyspace, level).map_err(|bad| self.bad(number, bad))?;
            let child = branch.child(key);
            let below = if level == 1 { section.first..section.extra_first() } else { section.extra_first()..number };
            if !below.contains(&child) {
                return Err(self.bad(number, Bad::damaged("a branch that points out of its tree")));
            }
            number = child;
        }
        Ok(number)
    }

    /// The whole value of an entry of a leaf.
    pub(super) fn value(
        &self,
        section: &Section,
        number: u32,
        leaf: &Leaf<'_>,
        index: usize,
    ) -> Result<Option<Vec<u8>>> {
        let entry = leaf.entries[index];
        let Some(front) = entry.value else { return Ok(None) };
        if number + leaf.rest >= section.extra_first() {
            return Err(self.bad(number, Bad::damaged("a value that goes on behind its section")));
        }
        let mut value = Vec::with_capacity(entry.len);
        value.extend_from_slice(front);
        for place in 1..=leaf.rest {
            let page = self.page(number + place)?;
            let len = (entry.len - value.len()).min(LARGE_REST);
            let part = decode_rest(&page, section.keyspace, place, len).map_err(|bad| self.bad(number + place, bad))?;
            value.extend_from_slice(part);
        }
        Ok(Some(value))
    }

    /// The filter of a section, kept in memory from the first look-up on: nine bits a key. A damaged one costs look-ups a page.
    fn filter(&self, section: &Section) -> Result<Option<Arc<Filter>>> {
        let mut filters = self.filters.lock();
        if let Some(filter) = filters.get(&section.keyspace) {
            return Ok(filter.clone());
        }
        let filter = match self.read_filter(section) {
            Ok(filter) => Some(Arc::new(filter)),
            Err(e) if e.kind() == Kind::Corrupt => None,
            Err(e) => return Err(e),
        };
        filters.insert(section.keyspace, filter.clone());
        Ok(filter)
    }

    /// Reads a filter.
    pub fn read_filter(&self, section: &Section) -> Result<Filter> {
        let mut fingerprints = Vec::with_capacity(section.filter as usize * BODY_LEN);
        for place in 0..section.filter {
            let number = section.filter_first() + place;
            // Past the cache: it is read once.
            let page = match self.copy_of_page(number, 0) {
                Err(_) if self.meta.mirrored => self.copy_of_page(number, 1)?,
                result => result?,
            };
            let head = Head::expect(&page, PageKind::Filter, section.keyspace).map_err(|bad| self.bad(number, bad))?;
            if head != (Head { extra: place, ..Head::new(PageKind::Filter, section.keyspace) }) {
                return Err(self.bad(number, Bad::damaged("filter page")));
            }
            fingerprints.extend_from_slice(body(&page));
        }
        fingerprints.truncate(section.fingerprints as usize);
        let (seed, segment_len, segment_count_len) = (section.seed, section.segment_len, section.segment_count_len);
        let filter = Filter { seed, segment_len, segment_count_len, fingerprints };
        filter.check().map_err(|bad| self.bad(section.filter_first(), bad))
    }
}

/// Checks the entries of a bucket or overflow page.
fn check_buckets(page: &Page) -> Decoded<()> {
    match Head::read(page) {
        Ok(Head { kind: kind @ (PageKind::Bucket | PageKind::Overflow), keyspace, .. }) => {
            Bucket::decode(page, keyspace, kind == PageKind::Overflow).map(drop)
        }
        // Page 0 has no head; others are checked where they are read.
        _ => Ok(()),
    }
}
