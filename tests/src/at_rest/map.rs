//! What stands where in the reference store, as the independent parser sees it: every byte of every file belongs to a region, and every
//! artifact to the frames that hold it.

use std::{collections::BTreeMap, ops::Range};

use holdfast::disk::{Name, sim::Image};
use holdfast_format_spec::{
    FileName, Files, Id32,
    commit::{Commit, Edit},
    frame::{self, Kind, Rules},
    keyspace::{ArtifactKey, Entry},
    limits::{BLOCK, CHUNK, FRAMES_START},
    log::scan::{Found, scan},
    recipe::Page,
    segment::{Header, Lane},
    segment_name,
    store::{Store, StoreImage},
};

use crate::oracle::independent::ImageFiles;

/// What a region is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// A copy of the superblock.
    Superblock,
    /// A copy of a segment's header.
    Header,
    /// A manifest.
    Manifest,
    /// A page of a table or of its mirror.
    Table,
    /// A frame.
    Frame(Kind),
    /// Zeros behind the frames of a segment, up to the length that it was made with.
    Zeros,
    /// Bytes of a bulk segment on which no commit relies.
    Dead,
    /// A prepared segment or a reserve.
    Spare,
    /// `LOCK`, which has no format.
    Lock,
}

/// A region.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Region {
    /// What it is.
    pub what: What,
    /// Where it is.
    pub range: Range<u64>,
}

impl Region {
    /// Whether a byte is one whose every bit is damaged, and not one of a run of payload or zeros.
    pub fn is_structure(&self, offset: u64) -> bool {
        let at = offset - self.range.start;
        match self.what {
            // The fields, and the checksum at the end of the block.
            What::Superblock => !(448..BLOCK - 4).contains(&at),
            What::Header => !(144..BLOCK - 4).contains(&at),
            What::Frame(Kind::Chunk | Kind::Padding) => at < 64,
            // The fields of page 0; the head of a page and its first entries; the checksum at the end.
            What::Table => !(128..BLOCK - 4).contains(&at),
            What::Manifest | What::Frame(_) => true,
            What::Zeros | What::Dead | What::Spare | What::Lock => false,
        }
    }

    /// Whether damage of it must be named.
    pub fn counts(&self) -> bool {
        !matches!(self.what, What::Dead | What::Lock)
    }
}

/// A place: file and bytes.
pub type Place = (Name, Range<u64>);

/// What an artifact rests on.
#[derive(Clone, Debug, Default)]
pub struct Rests {
    /// Frames of its chunks and pages.
    pub frames: Vec<Place>,
    /// Commits that say that it is there.
    pub commits: Vec<Place>,
}

/// The map.
pub struct Map {
    /// Regions of each file, one behind the other without a gap.
    pub regions: BTreeMap<Name, Vec<Region>>,
    /// By artifact id.
    pub rests: BTreeMap<[u8; 16], Rests>,
    /// The segments of the log from the replay position on.
    pub log: Vec<Name>,
}

impl Map {
    /// Maps a clean store.
    pub fn of(image: &Image) -> Result<Self, String> {
        let files = ImageFiles(image);
        let store = Store::read(&files).map_err(|e| format!("the reference store: {e}"))?;
        let problems: Vec<_> = store.problems.iter().cloned().chain(store.check()).collect();
        if let Some(first) = problems.first() {
            return Err(format!("the reference store: {first}"));
        }
        let log = store.log.segments.iter().filter_map(|segment| Name::new(&segment_name(segment.id))).collect();
        let mut map = Self { regions: BTreeMap::new(), rests: BTreeMap::new(), log };
        for name in image.names() {
            let len = image.len(name).expect("it is named");
            let mut regions = map.file(&files, &store, name, len);
            regions.retain(|region| !region.range.is_empty());
            map.regions.insert(name.clone(), regions);
        }
        map.artifacts(&files, &store)?;
        Ok(map)
    }

    fn file(&mut self, files: &ImageFiles<'_>, store: &StoreImage<'_>, name: &Name, len: u64) -> Vec<Region> {
        let region = |what, range| Region { what, range };
        match FileName::parse(name.as_str()) {
            Some(FileName::Superblock) => {
                (0..4).map(|copy| region(What::Superblock, copy * BLOCK..(copy + 1) * BLOCK)).collect()
            }
            Some(FileName::Manifest(..)) => vec![region(What::Manifest, 0..len)],
            Some(FileName::Table(..)) => {
                (0..len / BLOCK).map(|page| region(What::Table, page * BLOCK..(page + 1) * BLOCK)).collect()
            }
            Some(FileName::Reserve(_)) => vec![region(What::Spare, 0..len)],
            Some(FileName::Segment(id)) if store.superblock.prepared.contains(&id) => {
                vec![region(What::Spare, 0..len)]
            }
            Some(FileName::Segment(id)) => self.segment(files, store, name, id, len),
            Some(FileName::Lock) | None => vec![region(What::Lock, 0..len)],
        }
    }

    fn segment(
        &mut self,
        files: &ImageFiles<'_>,
        store: &StoreImage<'_>,
        name: &Name,
        id: u64,
        len: u64,
    ) -> Vec<Region> {
        let bytes = files.open(name.as_str()).ok().flatten().expect("it is named");
        let header = Header::read(&*bytes, id).expect("the reference store is whole").header;
        let mut regions: Vec<Region> =
            (0..2).map(|copy| Region { what: What::Header, range: copy * BLOCK..(copy + 1) * BLOCK }).collect();
        let bulk = store.catalog.segments.get(&id);
        let end = match header.lane {
            Lane::Log => {
                let walked = store.log.segments.iter().find(|segment| segment.id == id).map(|segment| segment.end);
                // One that no replay needs any more.
                let named = store.manifest.segments.iter().find(|segment| segment.id == id);
                walked.or(named.and_then(|segment| segment.sealed_end))
            }
            Lane::Bulk => bulk.map(|bulk| bulk.end),
        };
        let end = end.expect("the log or a commit names every segment");
        let rules = Rules { uuid: header.uuid, epoch: header.epoch, lane: header.lane, chunk_max: CHUNK };
        let mut visit = |found: Found<'_>| {
            if let Found::Frame(frame) = found {
                let range = frame.offset..frame.end();
                regions.push(Region { what: What::Frame(frame.header.kind), range: range.clone() });
                let replay = &store.superblock.replay;
                if self.log.contains(name) && (id != replay.segment || frame.offset >= replay.offset) {
                    self.commit(name, frame, range);
                }
            }
            Ok(())
        };
        scan(&*bytes, FRAMES_START, end, &rules, &mut visit).expect("an image can be read");
        let behind = match (header.lane, bulk) {
            (Lane::Bulk, Some(bulk)) if !bulk.sealed => What::Dead,
            _ => What::Zeros,
        };
        regions.push(Region { what: behind, range: end..len });
        regions
    }

    /// Notes which artifacts a commit speaks of.
    fn commit(&mut self, name: &Name, frame: &frame::Frame, range: Range<u64>) {
        if frame.header.kind != Kind::Commit {
            return;
        }
        let commit = Commit::parse(&frame.payload, frame.header.context, frame.offset + frame::HEADER);
        for edit in commit.expect("the reference store is whole").edits() {
            let id = match edit {
                Edit::Put(Entry::Artifact(key, _)) => key.artifact,
                Edit::Put(Entry::ByOwner(_, id)) => *id,
                _ => continue,
            };
            let rests = self.rests.entry(id).or_default();
            if rests.commits.last().is_none_or(|last| last.1 != range || last.0 != *name) {
                rests.commits.push((name.clone(), range.clone()));
            }
        }
    }

    fn artifacts(&mut self, files: &ImageFiles<'_>, store: &StoreImage<'_>) -> Result<(), String> {
        for (ArtifactKey { artifact: id, .. }, artifact) in &store.catalog.artifacts {
            let mut frames = Vec::new();
            if artifact.size > 0 {
                frames_below(files, store, &artifact.blob_root, &mut frames)?;
            }
            self.rests.entry(*id).or_default().frames = frames;
        }
        Ok(())
    }

    /// The region of a byte.
    pub fn at(&self, name: &Name, offset: u64) -> Option<&Region> {
        self.regions.get(name)?.iter().find(|region| region.range.contains(&offset))
    }

    /// The regions of a file that ranges touch.
    pub fn touched<'m, 'r>(
        &'m self,
        name: &Name,
        ranges: &'r [Range<u64>],
    ) -> impl Iterator<Item = &'m Region> + use<'m, 'r> {
        let regions = self.regions.get(name).map(Vec::as_slice).unwrap_or_default();
        regions.iter().filter(move |region| ranges.iter().any(|range| meet(range, &region.range)))
    }
}

/// Whether two ranges have a byte in common.
pub fn meet(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

fn frames_below(
    files: &ImageFiles<'_>,
    store: &StoreImage<'_>,
    id: &Id32,
    frames: &mut Vec<Place>,
) -> Result<(), String> {
    let chunk = store.catalog.chunks.get(id).ok_or("the reference store lacks a chunk")?;
    let name = Name::new(&segment_name(chunk.segment)).expect("a flat name");
    let bytes = files.open(name.as_str()).ok().flatten().ok_or("the reference store lacks a segment")?;
    let header = Header::read(&*bytes, chunk.segment).map_err(|e| e.to_string())?.header;
    let rules = Rules { uuid: header.uuid, epoch: header.epoch, lane: header.lane, chunk_max: CHUNK };
    let frame = frame::read(&*bytes, chunk.offset, bytes.len(), &rules).map_err(|invalid| invalid.error.to_string())?;
    frames.push((name, chunk.offset..frame.end()));
    if chunk.kind == Kind::Page {
        let page = Page::parse(&frame.payload, chunk.offset + frame::HEADER).map_err(|e| e.to_string())?;
        for entry in &page.entries {
            frames_below(files, store, &entry.id, frames)?;
        }
    }
    Ok(())
}
