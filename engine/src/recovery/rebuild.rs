//! The catalog from the log's commits; and, where commits are lost, the places of chunks from the frames themselves.

use std::collections::BTreeMap;

use super::init::{DEFAULT_TENANT, DEFAULT_TENANT_NUMBER};
use crate::{
    catalog::{Catalog, State},
    digest::{ScopeKind, StoreKeys},
    disk::{self, Disk, OpenOptions},
    error::{Error, Kind, Result},
    format::{
        commit::{Commit, Edit},
        frame::{FrameHeader, FrameSalt},
        keyspace::{Keyspace, chunk_key, segment_of_key, tenant_key},
        manifest::Lane,
        superblock::Superblock,
        value::{ChunkValue, SegmentValue, TenantValue},
    },
    ids::{Epoch, FileId, Location, Lsn, TenantNumber, Time},
    limits::{FRAME_ALIGN, FRAMES_START},
    log::replay::{Found, Visitor},
    segment::{self, Segments, reader, scanner::Scanner},
    sync::Arc,
};

/// Builds the catalog from commits.
pub(super) struct Rebuild {
    catalog: Catalog,
    segments: Arc<Segments>,
    hw: Time,
}

impl Rebuild {
    /// Begins with what the tables have.
    pub(super) const fn new(catalog: Catalog, segments: Arc<Segments>, hw: Time) -> Self {
        Self { catalog, segments, hw }
    }

    pub(super) fn into_parts(self) -> (Catalog, Time) {
        (self.catalog, self.hw)
    }

    /// Takes the locations of chunks that no commit gives any more from the frames that are there, so that only the records of lost
    /// commits are lost. References are not to be trusted afterwards. O(frames of the store).
    pub(super) fn salvage(&mut self, disk: &Arc<dyn Disk>, superblock: &Superblock, found: &Found) -> Result<()> {
        self.salvage_tenant(superblock)?;
        for link in &found.links {
            let salt = FrameSalt::new(superblock.uuid, link.header.epoch);
            let file = link.open(&**disk)?;
            let mut scanner = Scanner::new(&*file, &link.name, salt);
            self.salvage_segment(&mut scanner, link.header.id, link.end)?;
        }
        let listing = disk::retry(|| disk.list()).map_err(|e| Error::io(e, ".", "list the store"))?;
        for id in listing.names.iter().filter_map(|name| segment::parse_name(name, "segment-")) {
            let file = match segment::open(&**disk, id, OpenOptions::READ) {
                Ok(file) => file,
                Err(e) if e.kind() == Kind::Corrupt => continue,
                Err(e) => return Err(e),
            };
            let Some(header) = segment::read_header(&*file, superblock.uuid, id)?.header else { continue };
            if header.lane != Lane::Bulk {
                continue;
            }
            self.segments.add(id, header.epoch);
            let name = segment::name(id);
            let len = disk::retry(|| file.len()).map_err(|e| Error::io(e, &name, "read a length"))?;
            let mut scanner = Scanner::new(&*file, &name, FrameSalt::new(superblock.uuid, header.epoch));
            self.salvage_segment(&mut scanner, id, len)?;
        }
        Ok(())
    }

    /// The first tenant is in every store, also where the commit that says so is lost.
    fn salvage_tenant(&mut self, superblock: &Superblock) -> Result<()> {
        let key =
            tenant_key(StoreKeys::new(&superblock.secret).scope(TenantNumber(0), ScopeKind::Tenant, DEFAULT_TENANT));
        if self.catalog.get(Keyspace::Tenant, &key)?.is_some() {
            return Ok(());
        }
        let value = TenantValue { number: DEFAULT_TENANT_NUMBER, created_at: superblock.created_at };
        self.catalog.apply(&Edit::put(Keyspace::Tenant, key, value.encode()))
    }

    fn salvage_segment(&mut self, scanner: &mut Scanner<'_>, segment: FileId, end: u64) -> Result<()> {
        let mut at = FRAMES_START;
        while at < end {
            let Some((header, _)) = scanner.header_at(at)? else {
                match scanner.next_valid(at + FRAME_ALIGN, end)? {
                    Some(next) => at = next,
                    None => return Ok(()),
                }
                continue;
            };
            if reader::is_content(header.kind) {
                self.salvage_frame(&header, Location { segment, offset: at })?;
            }
            at += header.frame_len();
        }
        Ok(())
    }

    fn salvage_frame(&mut self, header: &FrameHeader, location: Location) -> Result<()> {
        if self.catalog.chunk(header.chunk_id())?.is_some() {
            return Ok(());
        }
        let value = ChunkValue {
            location,
            stored: header.stored,
            raw: header.raw,
            tenant: header.tenant(),
            codec: header.codec,
            kind: header.kind,
            references: 1,
        };
        self.catalog.apply(&Edit::put(Keyspace::Chunk, chunk_key(header.chunk_id()), value.encode()))
    }

    /// True if the frame that a chunk's new value names is there and whole.
    fn frame_is_good(&self, chunk: &ChunkValue, epoch: Epoch) -> Result<bool> {
        let name = segment::name(chunk.location.segment);
        let known = self.segments.epoch(chunk.location.segment);
        if known.is_none() {
            self.segments.add(chunk.location.segment, epoch);
        }
        let read = self.segments.file(chunk.location.segment).and_then(|segment| {
            reader::read_known(&*segment.file, &name, &segment.salt, chunk.location.offset, chunk.stored)
        });
        match read {
            Ok(_) => Ok(true),
            Err(e) if e.kind() == Kind::Corrupt => Ok(false),
            Err(e) => Err(e),
        }
    }
}

impl Visitor for Rebuild {
    fn commit(&mut self, commit: Commit, _: Lsn, place: Location) -> Result<()> {
        self.hw = self.hw.max(commit.hw);
        for edit in commit.requests.iter().flatten() {
            self.catalog.apply(edit).map_err(|e| e.at(segment::name(place.segment), place.offset))?;
            if let (Keyspace::Segment, Some(value)) = (edit.keyspace, &edit.value)
                && let (Ok(id), Ok(value)) = (segment_of_key(&edit.key), SegmentValue::decode(value))
            {
                self.segments.add(id, value.epoch);
            }
        }
        Ok(())
    }

    fn vouches(&mut self, commit: &Commit) -> Result<bool> {
        let mut bulk: BTreeMap<FileId, Epoch> = BTreeMap::new();
        for edit in commit.requests.iter().flatten().filter(|e| e.keyspace == Keyspace::Segment) {
            if let (Ok(id), Some(Ok(value))) =
                (segment_of_key(&edit.key), edit.value.as_deref().map(SegmentValue::decode))
            {
                bulk.insert(id, value.epoch);
            }
        }
        for edit in commit.requests.iter().flatten().filter(|e| e.keyspace == Keyspace::Chunk) {
            let Some(Ok(chunk)) = edit.value.as_deref().map(ChunkValue::decode) else { continue };
            let Some(epoch) = bulk.get(&chunk.location.segment).copied() else { continue };
            // What was there before this commit is not this commit's to lose. Where a damaged table cannot say what was, the commit
            // stays: whoever reads the chunk checks its frame.
            let before = match self.catalog.get(Keyspace::Chunk, &edit.key) {
                Err(e) if e.kind() == Kind::Corrupt => continue,
                before => before?.and_then(|value| ChunkValue::decode(&value).ok()),
            };
            if before.is_none_or(|b| b.location != chunk.location) && !self.frame_is_good(&chunk, epoch)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
