//! Files and frames: everything that can be checked without knowing what it means.

use super::Run;
use crate::{
    catalog::State as _,
    disk::{self, File, Name, OpenOptions},
    error::{Error, Kind, Result},
    format::{
        frame::{FrameHeader, FrameKind, FrameSalt},
        keyspace::{Keyspace, segment_of_key},
        manifest::{Lane, ManifestSegment, SegmentState},
        seal::{FooterEntry, Seal, decode_footer},
        superblock,
        value::{ChunkValue, SegmentValue},
    },
    ids::{FileId, Location},
    limits::{FRAME_ALIGN, FRAMES_START},
    segment::{self, reader, scanner::Scanner},
};

/// A segment as the walk over its frames needs it.
struct Extent<'a> {
    id: FileId,
    name: Name,
    file: &'a dyn File,
    salt: FrameSalt,
    /// Where its frames end, footer and seal included.
    end: u64,
    /// Its last frames must be footer and seal. `None`: if it has a seal.
    sealed: Option<bool>,
    lane: Lane,
    /// The open has named invalid frames.
    is_named: bool,
    /// From here on the open has looked at commits, marks and seals.
    replayed: u64,
}

impl Run<'_> {
    pub(super) fn files(&mut self) -> Result<()> {
        self.superblock()?;
        self.tables()?;
        for segment in self.older_log().cloned().collect::<Vec<_>>() {
            self.old_log(&segment)?;
        }
        self.log()?;
        for (id, value) in self.bulk_segments()? {
            self.bulk(id, &value)?;
        }
        self.spare_files()?;
        self.unseen_chunks()
    }

    /// How much there is to do.
    pub(super) fn count_bytes(&mut self) -> Result<()> {
        let bulk = self.bulk_segments()?;
        let ends = self.rebuilt.found.links.iter().map(|l| l.end).chain(bulk.iter().map(|(_, v)| v.end));
        self.total = ends.fold(0, u64::saturating_add);
        Ok(())
    }

    fn superblock(&mut self) -> Result<()> {
        let name = crate::superblock::name();
        let file = disk::retry(|| self.disk.open(&name, OpenOptions::READ)).map_err(|e| Error::io(e, &name, "open"))?;
        let len = disk::retry(|| file.len()).map_err(|e| Error::io(e, &name, "read a length"))?;
        if len != superblock::FILE_LEN {
            self.problem(&name, len.min(superblock::FILE_LEN), "superblock length");
        }
        Ok(())
    }

    fn bulk_segments(&self) -> Result<Vec<(FileId, SegmentValue)>> {
        let entries = self.catalog.read().scan(Keyspace::Segment, &[], None, usize::MAX)?;
        let bad = |bad: crate::format::Bad| Error::new(Kind::Corrupt, bad.what);
        entries
            .into_iter()
            .map(|(key, value)| Ok((segment_of_key(&key).map_err(bad)?, SegmentValue::decode(&value).map_err(bad)?)))
            .collect()
    }

    fn log(&mut self) -> Result<()> {
        let rebuilt = self.rebuilt;
        let newest = rebuilt.found.newest().map(|link| link.header.id);
        for link in &rebuilt.found.links {
            let file = link.open(self.disk)?;
            let extent = Extent {
                id: link.header.id,
                name: link.name.clone(),
                file: &*file,
                salt: FrameSalt::new(link.header.uuid, link.header.epoch),
                end: link.end,
                sealed: Some(link.seal.is_some()),
                lane: Lane::Log,
                is_named: true,
                replayed: link.start,
            };
            self.frames(&extent)?;
            let is_newest = Some(link.header.id) == newest;
            // A torn one was cut behind its last byte that is not zero.
            if link.seal.is_some() || is_newest && rebuilt.superblock.clean.is_some() {
                self.zeros(&extent.name, extent.file, extent.end)?;
                self.is_as_long(&extent.name, extent.file, link.header.capacity)?;
            }
        }
        Ok(())
    }

    /// Log segments that no replay needs any more.
    fn older_log(&self) -> impl Iterator<Item = &ManifestSegment> {
        let replayed = |id| self.rebuilt.found.links.iter().any(|link| link.header.id == id);
        self.rebuilt.manifest.segments.iter().filter(move |s| s.lane == Lane::Log && !replayed(s.id))
    }

    fn old_log(&mut self, segment: &ManifestSegment) -> Result<()> {
        let name = segment::name(segment.id);
        let file = match segment::open(self.disk, segment.id, OpenOptions::READ) {
            Ok(file) => file,
            // The open has named it.
            Err(e) if e.kind() == Kind::Corrupt => return Ok(()),
            Err(e) => return Err(e),
        };
        let header = segment::read_header(&*file, self.rebuilt.superblock.uuid, segment.id)?;
        for (offset, bad) in &header.damaged {
            self.problem(&name, *offset, bad.what);
        }
        if header.header.is_some_and(|h| h.epoch != segment.epoch) {
            self.problem(&name, 0, "a segment of another epoch than the manifest names");
        }
        let salt = FrameSalt::new(self.rebuilt.superblock.uuid, segment.epoch);
        let extent = Extent {
            id: segment.id,
            name,
            file: &*file,
            salt,
            end: segment.end,
            sealed: None,
            lane: Lane::Log,
            is_named: false,
            replayed: u64::MAX,
        };
        let is_sealed = self.frames(&extent)?;
        // A torn one was cut behind its last byte that is not zero.
        if let Some(header) = header.header.filter(|_| is_sealed) {
            self.zeros(&extent.name, &*file, segment.end)?;
            self.is_as_long(&extent.name, &*file, header.capacity)?;
        }
        Ok(())
    }

    fn is_as_long(&mut self, name: &Name, file: &dyn File, capacity: u64) -> Result<()> {
        let len = disk::retry(|| file.len()).map_err(|e| Error::io(e, name, "read a length"))?;
        if len < capacity {
            self.problem(name, len, "a log segment is shorter than it was made");
        }
        Ok(())
    }

    fn bulk(&mut self, id: FileId, value: &SegmentValue) -> Result<()> {
        let name = segment::name(id);
        let file = match segment::open(self.disk, id, OpenOptions::READ) {
            Ok(file) => file,
            Err(e) if e.kind() == Kind::Corrupt => {
                self.problem(&name, 0, "a segment is missing");
                return Ok(());
            }
            Err(e) => return Err(e),
        };
        let header = segment::read_header(&*file, self.rebuilt.superblock.uuid, id)?;
        for (offset, bad) in &header.damaged {
            self.problem(&name, *offset, bad.what);
        }
        if header.header.is_some_and(|h| h.epoch != value.epoch) {
            self.problem(&name, 0, "a segment of another epoch than its commit names");
        }
        let sealed = value.state == SegmentState::Sealed;
        let salt = FrameSalt::new(self.rebuilt.superblock.uuid, value.epoch);
        let extent = Extent {
            id,
            name,
            file: &*file,
            salt,
            end: value.end,
            sealed: Some(sealed),
            lane: Lane::Bulk,
            is_named: false,
            replayed: u64::MAX,
        };
        self.frames(&extent)?;
        if sealed { self.zeros(&extent.name, &*file, value.end) } else { Ok(()) }
    }

    /// Walks every frame of a segment: headers, and the payloads that this verification looks at. True: it has a seal.
    fn frames(&mut self, extent: &Extent<'_>) -> Result<bool> {
        let mut scanner = Scanner::new(extent.file, &extent.name, extent.salt);
        let mut at = FRAMES_START;
        let mut entries = Vec::new();
        let mut footer = Vec::new();
        let mut seal = None;
        let mut whole = true;
        while at < extent.end {
            let known = self.read.remove(&Location { segment: extent.id, offset: at });
            let header = match known {
                Some(header) => Some(header),
                None => scanner.header_at(at)?.map(|(header, _)| header),
            };
            let Some(header) = header.filter(|header| at + header.frame_len() <= extent.end) else {
                whole = false;
                // Damage of the log was named when it was walked; it is only noted here, for the artifacts that it hits.
                self.damaged.insert(Location { segment: extent.id, offset: at }, "an invalid frame");
                if !extent.is_named {
                    self.problem(&extent.name, at, "an invalid frame");
                }
                at = scanner.next_valid(at + FRAME_ALIGN, extent.end)?.unwrap_or(extent.end);
                continue;
            };
            match header.kind {
                FrameKind::Chunk | FrameKind::Page => {
                    entries.push(FooterEntry::of(&header, at));
                    self.content(extent, &header, at, known.is_some())?;
                }
                FrameKind::Footer | FrameKind::Seal | FrameKind::Padding => {
                    match reader::read_frame(extent.file, &extent.name, &extent.salt, at)? {
                        None if header.kind == FrameKind::Seal && at >= extent.replayed => {}
                        None => {
                            whole = false;
                            self.problem(&extent.name, at, "frame payload checksum");
                        }
                        Some(frame) => match header.kind {
                            FrameKind::Seal => {
                                seal = Seal::decode(frame.payload(), extent.lane, at).ok();
                            }
                            FrameKind::Footer => match decode_footer(frame.payload()) {
                                Ok(part) => footer.extend(part),
                                Err(bad) => self.problem(&extent.name, at, bad.what),
                            },
                            _ if frame.payload().iter().any(|b| *b != 0) => {
                                self.problem(&extent.name, at, "padding that is not zero");
                            }
                            _ => {}
                        },
                    }
                }
                FrameKind::Commit | FrameKind::Mark if at < extent.replayed => {
                    if reader::read_frame(extent.file, &extent.name, &extent.salt, at)?.is_none() {
                        self.problem(&extent.name, at, "frame payload checksum");
                    }
                }
                FrameKind::Commit | FrameKind::Mark => {}
            }
            if known.is_none() {
                self.did(header.frame_len());
            }
            at += header.frame_len();
        }
        let has_seal = seal.is_some();
        if extent.sealed.unwrap_or(has_seal) && whole {
            self.closing(extent, entries, &footer, seal);
        }
        Ok(has_seal)
    }

    /// Footer and seal must say what the frames say.
    fn closing(
        &mut self,
        extent: &Extent<'_>,
        mut entries: Vec<FooterEntry>,
        footer: &[FooterEntry],
        seal: Option<Seal>,
    ) {
        let Some(seal) = seal.filter(|seal| seal.end == extent.end) else {
            self.problem(&extent.name, extent.end, "a sealed segment does not end with its seal");
            return;
        };
        entries.sort_unstable();
        let bytes: u64 = entries.iter().map(|e| crate::format::frame::frame_len(u64::from(e.stored))).sum();
        if entries != footer || seal.frames != entries.len() as u64 || seal.bytes != bytes {
            self.problem(&extent.name, seal.footer, "the footer lists other frames than the segment has");
        }
    }

    /// A chunk or page frame: is it the one that the catalog names, and, when deep, are its bytes what its id says?
    /// `is_read`: they are.
    fn content(&mut self, extent: &Extent<'_>, header: &FrameHeader, at: u64, is_read: bool) -> Result<()> {
        let location = Location { segment: extent.id, offset: at };
        let entry = self.catalog.read().chunk(header.chunk_id())?;
        if entry.is_some_and(|entry| entry.location == location && agrees(&entry, header)) {
            self.confirmed += 1;
        }
        if !self.deep || is_read {
            return Ok(());
        }
        let what = match reader::read_frame(extent.file, &extent.name, &extent.salt, at)? {
            None => Some("frame payload checksum"),
            Some(frame) => match frame.into_raw() {
                None => Some("a payload that does not decode"),
                Some(raw) => {
                    let keys = self.door.keys(header.tenant())?;
                    let id = if header.kind == FrameKind::Page { keys.page(&raw) } else { keys.chunk(&raw) };
                    (id != header.chunk_id()).then_some("bytes that are not those of their id")
                }
            },
        };
        if let Some(what) = what {
            self.damaged.insert(location, what);
            self.problem(&extent.name, at, what);
        }
        Ok(())
    }

    /// Chunk entries whose frame was not met by the walk.
    fn unseen_chunks(&mut self) -> Result<()> {
        let count = self.catalog.read().count(Keyspace::Chunk)?;
        if self.confirmed == count {
            return Ok(());
        }
        let mut after: Option<Vec<u8>> = None;
        loop {
            let page = self.catalog.read().scan(Keyspace::Chunk, &[], after.as_deref(), 1000)?;
            for (_, value) in &page {
                let chunk = ChunkValue::decode(value).map_err(|bad| Error::new(Kind::Corrupt, bad.what))?;
                self.unseen_chunk(&chunk)?;
            }
            match page.last() {
                Some((key, _)) => after = Some(key.clone()),
                None => return Ok(()),
            }
        }
    }

    fn unseen_chunk(&mut self, chunk: &ChunkValue) -> Result<()> {
        let Location { segment, offset } = chunk.location;
        let name = segment::name(segment);
        let header = match self.rebuilt.segments.file(segment) {
            Ok(file) => reader::read_header(&*file.file, &name, &file.salt, offset)?,
            Err(e) if e.kind() == Kind::Corrupt => None,
            Err(e) => return Err(e),
        };
        if !header.is_some_and(|header| agrees(chunk, &header)) {
            self.damaged.insert(chunk.location, "no frame of the chunk that the catalog names");
            self.problem(&name, offset, "no frame of the chunk that the catalog names");
        }
        Ok(())
    }

    /// Prepared segments and reserves hold only zeros. How long they are nothing says: a reserve gives its blocks away from the end.
    fn spare_files(&mut self) -> Result<()> {
        let superblock = &self.rebuilt.superblock;
        if superblock.clean.is_none() {
            // A writer that did not end may have taken one of them already.
            return Ok(());
        }
        let prepared = superblock.prepared.iter().map(|id| segment::name(*id));
        let spare: Vec<Name> =
            prepared.chain(superblock.reserves.iter().map(|id| segment::reserve_name(*id))).collect();
        for name in spare {
            match disk::retry(|| self.disk.open(&name, OpenOptions::READ)) {
                Ok(file) => self.zeros(&name, &*file, 0)?,
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => self.problem(&name, 0, "a file is missing"),
                Err(e) => return Err(Error::io(e, &name, "open")),
            }
        }
        Ok(())
    }

    fn zeros(&mut self, name: &Name, file: &dyn File, from: u64) -> Result<()> {
        if let Some(at) = segment::first_non_zero(file, name, from)? {
            self.problem(name, at, "a byte that should be zero");
        }
        Ok(())
    }
}

/// True if an entry describes this frame.
fn agrees(entry: &ChunkValue, header: &FrameHeader) -> bool {
    entry.kind == header.kind
        && entry.stored == header.stored
        && entry.raw == header.raw
        && entry.codec == header.codec
        && entry.tenant == header.tenant()
}
