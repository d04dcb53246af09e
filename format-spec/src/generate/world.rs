//! A store that changes: requests become edits, edits a commit, and a crash takes the last ones back.
//!
//! It does not know which operations there are; `workload` does.

use super::encode::len32;
use super::rng::Rng;
use super::segments::{BulkWriter, Data, LogWriter, Point, index};
use crate::commit::Edit;
use crate::cut::Sizes;
use crate::derive::{Secret, StoreKeys, TenantKeys};
use crate::files::segment_name;
use crate::frame::{Codec, Kind};
use crate::keyspace::{ArtifactKey, Blob, Chunk, Entry, Key, PageEntry, ZeroKey};
use crate::manifest::{Manifest, Segment, Tenant};
use crate::recipe::{Builder, Page};
use crate::segment::Lane;
use crate::store::Catalog;
use crate::{Id16, Id32, limits};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// A tenant and its accounts.
pub(super) struct TenantState {
    pub(super) number: u32,
    pub(super) key: Secret,
    pub(super) keys: TenantKeys,
    pub(super) accounts: Vec<Id16>,
}

/// The state behind a commit.
struct Snapshot {
    point: Point,
    catalog: Catalog,
    contents: BTreeMap<ArtifactKey, Vec<u8>>,
}

pub(super) struct World {
    pub(super) rng: Rng,
    pub(super) files: BTreeMap<String, Vec<u8>>,
    pub(super) uuid: Id16,
    pub(super) store_keys: StoreKeys,
    pub(super) sizes: Sizes,
    pub(super) zstd: bool,
    pub(super) log: LogWriter,
    pub(super) bulk: Option<BulkWriter>,
    pub(super) catalog: Catalog,
    pub(super) contents: BTreeMap<ArtifactKey, Vec<u8>>,
    pub(super) pages: BTreeMap<Id32, Page>,
    pub(super) tenants: Vec<TenantState>,
    pub(super) next_id: u64,
    pub(super) manifest: Option<Manifest>,
    pub(super) prepared: Vec<u64>,
    /// Ranges that never count.
    pub(super) uncounted: Vec<(String, u64, u64)>,
    /// Requests that wait for their commit, and the keys of the one that is made.
    pending: Vec<Vec<Edit>>,
    touched: BTreeSet<Key>,
    before: Catalog,
    snapshots: Vec<Snapshot>,
}

impl World {
    pub(super) fn new(mut rng: Rng, secret: &Secret, sizes: Sizes, zstd: bool) -> Self {
        let uuid = rng.array();
        let epoch = rng.array();
        let log = LogWriter::new(uuid, epoch, 16_384 + 4_096 * rng.below(5));
        Self {
            rng,
            files: BTreeMap::new(),
            uuid,
            store_keys: StoreKeys::new(secret),
            sizes,
            zstd,
            log,
            bulk: None,
            catalog: Catalog::default(),
            contents: BTreeMap::new(),
            pages: BTreeMap::new(),
            tenants: Vec::new(),
            next_id: 2,
            manifest: None,
            prepared: Vec::new(),
            uncounted: Vec::new(),
            pending: Vec::new(),
            touched: BTreeSet::new(),
            before: Catalog::default(),
            snapshots: Vec::new(),
        }
    }

    pub(super) fn put(&mut self, entry: Entry) {
        self.touched.insert(entry.key());
        self.catalog.apply(&Edit::Put(entry));
    }

    pub(super) fn delete(&mut self, key: Key) {
        self.touched.insert(key);
        self.catalog.apply(&Edit::Delete(key));
    }

    /// The LSN of the request that is made.
    pub(super) fn lsn(&self) -> u64 {
        self.log.next_lsn + self.pending.len() as u64
    }

    pub(super) fn new_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }

    /// Ends the request that is made: what it changed becomes edits.
    pub(super) fn end_request(&mut self) {
        let edit = |key: Key| match (self.before.get(&key), self.catalog.get(&key)) {
            (before, Some(after)) if before.as_ref() != Some(&after) => Some(Edit::Put(after)),
            (Some(_), None) => Some(Edit::Delete(key)),
            _ => None,
        };
        let edits = std::mem::take(&mut self.touched).into_iter().filter_map(edit).collect();
        self.before = self.catalog.clone();
        self.pending.push(edits);
    }

    /// Commits the requests that wait.
    pub(super) fn commit(&mut self) {
        let requests = std::mem::take(&mut self.pending);
        if requests.is_empty() {
            return;
        }
        self.log.hw += self.rng.below(1_000);
        if self.rng.chance(1, 2) {
            self.log.sync();
        }
        let payload = self.log.commit_payload(&requests);
        self.make_room(payload.len(), 0);
        self.log.commit(&payload, requests.len());
        self.snapshot();
    }

    fn snapshot(&mut self) {
        let (point, catalog, contents) = (self.log.point(), self.catalog.clone(), self.contents.clone());
        self.snapshots.push(Snapshot { point, catalog, contents });
    }

    /// Rolls the log unless a frame fits.
    fn make_room(&mut self, payload: usize, entries: usize) {
        if !self.log.fits(payload, entries) {
            self.roll(payload);
        }
    }

    pub(super) fn mark(&mut self) {
        self.make_room(0, 0);
        self.log.mark();
    }

    pub(super) fn padding(&mut self) {
        let len = index(self.rng.below(300));
        self.make_room(len, 0);
        self.log.padding(len);
    }

    /// Room for this payload, a mark and what closes a segment.
    fn capacity(&mut self, payload: usize) -> u64 {
        let needed = limits::FRAMES_START + payload as u64 + 4_096;
        (16_384 + 4_096 * self.rng.below(9)).max(needed.next_multiple_of(4_096))
    }

    pub(super) fn roll(&mut self, payload: usize) {
        let capacity = self.capacity(payload);
        let id = self.take_prepared();
        let (name, bytes) = self.log.roll(&mut self.rng, id, capacity);
        self.files.insert(name, bytes);
        self.new_segment();
    }

    /// The id of the next log segment.
    pub(super) fn take_prepared(&mut self) -> u64 {
        if self.prepared.is_empty() { self.new_id() } else { self.prepared.remove(0) }
    }

    fn new_segment(&mut self) {
        // What is not committed yet cannot be a point to come back to.
        let restart = self.snapshots.pop();
        self.snapshots.clear();
        if let Some(last) = restart {
            let point = self.log.point();
            self.snapshots.push(Snapshot { point, ..last });
        }
    }

    /// Stores a chunk or page that is not there yet, without a reference to it.
    pub(super) fn store(&mut self, tenant: u32, (kind, id): (Kind, Id32), content: &[u8], bulk: bool) {
        if self.catalog.chunks.contains_key(&id) {
            return;
        }
        let packed = if kind == Kind::Chunk && self.zstd && self.rng.chance(7, 8) {
            zstd::bulk::compress(content, 1).ok().filter(|packed| packed.len() < content.len())
        } else {
            None
        };
        let codec = if packed.is_some() { Codec::Zstd } else { Codec::Raw };
        let payload = packed.as_deref().unwrap_or(content);
        let data = Data { kind, codec, raw: len32(content.len()), id, tenant, payload };
        let (segment, offset) = if bulk {
            let bulk = self.bulk.get_or_insert_with(|| {
                self.next_id += 1;
                BulkWriter::new(self.uuid, self.next_id - 1, self.rng.array(), 65_536)
            });
            (bulk.open.header.id, bulk.open.data(&data))
        } else {
            self.make_room(payload.len(), 1);
            (self.log.open.header.id, self.log.data(&data))
        };
        let (stored, raw) = (len32(payload.len()), data.raw);
        self.put(Entry::Chunk(id, Chunk { segment, offset, stored, raw, tenant, codec, kind, references: 0 }));
        self.put(Entry::Zero(ZeroKey::Chunk(id)));
    }

    /// Adds a reference to a chunk or page.
    pub(super) fn add_reference(&mut self, id: &Id32) {
        let mut chunk = *self.catalog.chunks.get(id).expect("what is referenced was stored");
        chunk.references += 1;
        self.put(Entry::Chunk(*id, chunk));
        self.delete(Key::Zero(ZeroKey::Chunk(*id)));
    }

    /// Takes a reference away.
    pub(super) fn drop_reference(&mut self, id: &Id32) {
        let mut chunk = *self.catalog.chunks.get(id).expect("what is referenced was stored");
        chunk.references -= 1;
        self.put(Entry::Chunk(*id, chunk));
        if chunk.references == 0 {
            self.put(Entry::Zero(ZeroKey::Chunk(*id)));
        }
    }

    /// Stores chunks and the pages that they fill. Gives the right edge and, if the blob ends here, the root.
    pub(super) fn store_recipe(
        &mut self,
        tenant: usize,
        chunks: &[&[u8]],
        ends: bool,
        bulk: bool,
    ) -> (Vec<Vec<PageEntry>>, Id32) {
        let (number, keys) = self.tenants.get(tenant).map(|t| (t.number, t.keys.clone())).expect("a known tenant");
        let mut pages = Vec::new();
        let mut recipe = Builder::new(|page: &Page| {
            let id = keys.page_id(&page.payload());
            pages.push((id, page.clone()));
            id
        });
        for chunk in chunks {
            let id = keys.chunk_id(chunk);
            recipe.push(PageEntry { id, length: chunk.len() as u64 });
            self.store(number, (Kind::Chunk, id), chunk, bulk);
        }
        let edge = recipe.right_edge();
        let root = if ends { recipe.finish() } else { [0; 32] };
        for (id, page) in pages {
            if self.catalog.chunks.contains_key(&id) {
                continue;
            }
            self.store(number, (Kind::Page, id), &page.payload(), bulk);
            page.entries.iter().for_each(|entry| self.add_reference(&entry.id));
            self.pages.insert(id, page);
        }
        if bulk {
            self.close_bulk_run();
        }
        (edge, root)
    }

    fn close_bulk_run(&mut self) {
        let Some(mut bulk) = self.bulk.take() else { return };
        bulk.close_run();
        let id = bulk.open.header.id;
        let full = bulk.open.at > 65_536 || self.rng.chance(1, 8);
        if full {
            bulk.seal(&mut self.rng);
        }
        self.put(Entry::Segment(id, bulk.value(full)));
        bulk.write_to(&mut self.files);
        if !full {
            self.bulk = Some(bulk);
        }
    }

    /// Stores a blob, or adds a reference to it. Gives its root and SHA-256.
    pub(super) fn store_blob(&mut self, tenant: usize, content: &[u8], bulk: bool) -> (Id32, Id32) {
        let sha256: Id32 = Sha256::digest(content).into();
        let size = content.len() as u64;
        let key = self.tenants.get(tenant).expect("a known tenant").keys.blob_key(&sha256, size);
        let blob = if let Some(blob) = self.catalog.blobs.get(&key) {
            Blob { references: blob.references + 1, ..*blob }
        } else {
            let chunks = split(content, &self.sizes.cut(content));
            let (_, root) = self.store_recipe(tenant, &chunks, true, bulk);
            if size > 0 {
                self.add_reference(&root);
            }
            Blob { root, size, references: 1 }
        };
        self.put(Entry::Blob(key, blob));
        self.delete(Key::Zero(ZeroKey::Blob(key)));
        (blob.root, sha256)
    }

    /// Names tenants and segments in a new manifest; nothing before it is taken back by a crash.
    pub(super) fn write_manifest(&mut self) {
        self.commit();
        self.mark();
        self.snapshots.clear();
        self.snapshot();
        let generation = self.manifest.as_ref().map_or(1, |manifest| manifest.generation + 1);
        let tenant = |t: &TenantState| Tenant { number: t.number, key: t.key.clone() };
        let segment = |id, epoch, lane, sealed_end| Segment { id, epoch, lane, sealed_end };
        let open = &self.log.open.header;
        let mut segments: Vec<Segment> =
            self.log.finished.iter().map(|log| segment(log.id, log.epoch, Lane::Log, Some(log.end))).collect();
        segments.push(segment(open.id, open.epoch, Lane::Log, None));
        let bulk = |(id, bulk): (&u64, &crate::keyspace::BulkSegment)| {
            segment(*id, bulk.epoch, Lane::Bulk, bulk.sealed.then_some(bulk.end))
        };
        segments.extend(self.catalog.segments.iter().map(bulk));
        segments.sort_unstable_by_key(|segment| segment.id);
        let tenants = self.tenants.iter().map(tenant).collect();
        self.manifest =
            Some(Manifest { uuid: self.uuid, generation, tenants, segments, sums: None, tables: Vec::new() });
    }

    /// A crash: the log ends behind a commit that no witness protects, and what stands behind it is torn. Answers whether it is.
    pub(super) fn crash(&mut self) -> bool {
        self.commit();
        let witness = self.log.witness;
        let candidates: Vec<usize> =
            (self.snapshots.iter().enumerate()).filter(|(_, s)| s.point.at >= witness).map(|(at, _)| at).collect();
        let Some(choice) = self.rng.pick(&candidates).copied() else { return false };
        self.snapshots.truncate(choice + 1);
        let back = self.snapshots.last().expect("the choice is among them");
        self.log.back_to(&back.point);
        (self.catalog, self.contents) = (back.catalog.clone(), back.contents.clone());
        self.before = self.catalog.clone();
        self.touched.clear();
        self.tear();
        self.drop_bulk()
    }

    /// Makes the bytes behind the end of the log something that a crash can leave, without a valid frame at the end itself.
    fn tear(&mut self) {
        let at = index(self.log.open.at);
        let rest = self.log.open.bytes.get_mut(at..).unwrap_or_default();
        if rest.iter().all(|byte| *byte == 0) {
            let written = rest.len().min(index(self.rng.below(700)));
            let garbage = self.rng.bytes(written);
            rest.get_mut(..written).expect("it is cut to the rest").copy_from_slice(&garbage);
            return;
        }
        for (place, sector) in rest.chunks_mut(512).enumerate() {
            if place == 0 || self.rng.chance(1, 3) {
                sector.fill(0);
            }
        }
    }

    /// Bulk segments are given up where the commits that were taken back relied on them. What stands behind never counts.
    fn drop_bulk(&mut self) -> bool {
        self.bulk = None;
        let manifest = self.manifest.as_ref();
        for id in 2..self.next_id {
            let name = segment_name(id);
            let Some(file) = self.files.get_mut(&name) else { continue };
            let named = manifest.is_some_and(|manifest| manifest.segments.iter().any(|segment| segment.id == id));
            let log = id == self.log.open.header.id || self.log.finished.iter().any(|finished| finished.id == id);
            match self.catalog.segments.get(&id) {
                _ if log => {}
                Some(bulk) if bulk.sealed => {}
                Some(bulk) if self.rng.chance(1, 2) => file.truncate(index(bulk.end)),
                Some(bulk) => self.uncounted.push((name, bulk.end, file.len() as u64)),
                None if named => {}
                None => drop(self.files.remove(&name)),
            }
        }
        true
    }

    /// Goes on after a crash, as a recovery does.
    pub(super) fn recover(&mut self) {
        let at = self.log.open.at;
        let len = self.log.open.bytes.len() as u64;
        if self.rng.chance(1, 3) {
            self.log.open.bytes.get_mut(index(at)..).unwrap_or_default().fill(0);
            return;
        }
        let id = self.take_prepared();
        let epoch = self.rng.array();
        let capacity = self.capacity(0);
        let (name, bytes) = self.log.next(id, epoch, capacity);
        self.uncounted.push((name.clone(), at, len));
        self.files.insert(name, bytes);
        self.new_segment();
        self.log.mark();
        self.snapshots.clear();
        self.snapshot();
    }
}

/// Cuts bytes into parts of these lengths.
pub(super) fn split<'a>(mut content: &'a [u8], lengths: &[u64]) -> Vec<&'a [u8]> {
    let mut parts = Vec::new();
    for length in lengths {
        let (part, rest) = content.split_at(index(*length));
        parts.push(part);
        content = rest;
    }
    parts
}
