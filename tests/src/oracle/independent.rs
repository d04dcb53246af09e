//! The store as the independent parser reads it.

use std::collections::BTreeSet;

use holdfast::disk::{Name, sim::Image};
use holdfast_format_spec::{
    Bytes, Error, FileName, Files, Id16, Place, Result as SpecResult, frame, segment,
    store::{Problem, ProblemKind, Store, StoreImage, Unreadable},
    superblock::{self, CopyState},
};

use crate::coverage::{Coverage, Situation};

/// An image as files.
pub struct ImageFiles<'i>(pub &'i Image);

struct ImageBytes<'i> {
    image: &'i Image,
    name: Name,
    len: u64,
}

impl Files for ImageFiles<'_> {
    fn names(&self) -> Vec<String> {
        self.0.names().map(ToString::to_string).collect()
    }

    fn open(&self, name: &str) -> SpecResult<Option<Box<dyn Bytes + '_>>> {
        let found = Name::new(name).and_then(|name| Some((self.0.len(&name)?, name)));
        Ok(found.map(|(len, name)| Box::new(ImageBytes { image: self.0, name, len }) as Box<dyn Bytes>))
    }
}

impl Bytes for ImageBytes<'_> {
    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> SpecResult<()> {
        let place = Place { structure: "file", field: "bytes", offset };
        match self.image.read_at(&self.name, buf, offset) {
            read if read == buf.len() => Ok(()),
            _ => Err(Error::Io(place, std::io::ErrorKind::UnexpectedEof)),
        }
    }
}

/// What the parser found.
#[derive(Clone, Debug)]
pub struct View {
    /// Ids of all artifacts.
    pub artifacts: BTreeSet<Id16>,
    /// Uploads that are under way.
    pub uploads: usize,
    /// The log ends at torn bytes.
    pub torn: bool,
    /// The log ends in a sealed segment.
    pub seal_alone: bool,
}

/// Reads and checks an image that a crash left. `None`: an init that did not come to its end.
pub fn read(image: &Image, coverage: &Coverage) -> Result<Option<View>, String> {
    let files = ImageFiles(image);
    let store = match Store::read(&files) {
        Ok(store) => store,
        Err(Unreadable::Unfinished) => return Ok(None),
        Err(error) => return Err(format!("the independent parser: {error}")),
    };
    situations(&files, &store, coverage);
    let problems = store.problems.iter().cloned().chain(store.check());
    // A crash in the middle of a write leaves one copy damaged too.
    refuse(problems.filter(|problem| problem.kind != ProblemKind::Copy))?;
    Ok(Some(View::of(&store)))
}

/// Reads and checks a store that recovery has left in order: nothing may be wrong or left over.
pub fn read_clean(image: &Image) -> Result<View, String> {
    let files = ImageFiles(image);
    let store = Store::read(&files).map_err(|error| format!("the independent parser after recovery: {error}"))?;
    refuse(store.problems.iter().cloned().chain(store.check()))?;
    if !store.orphans.is_empty() || !store.strangers.is_empty() {
        return Err(format!("files that nothing names: {:?} {:?}", store.orphans, store.strangers));
    }
    Ok(View::of(&store))
}

fn refuse(mut problems: impl Iterator<Item = Problem>) -> Result<(), String> {
    match problems.next() {
        None => Ok(()),
        Some(first) => Err(format!("the independent parser: {first} (and {} more)", problems.count())),
    }
}

impl View {
    fn of(store: &StoreImage<'_>) -> Self {
        Self {
            artifacts: store.catalog.artifacts.keys().map(|key| key.artifact).collect(),
            uploads: store.catalog.uploads.len(),
            torn: store.log.end.torn.is_some(),
            seal_alone: store.log.segments.last().is_some_and(|newest| newest.sealed),
        }
    }
}

/// True if recovery went on in a segment that an earlier process had prepared.
pub fn took_prepared(before: &Image, after: &Image) -> bool {
    let name = Name::new("superblock").expect("a flat name");
    let read = |image: &Image| superblock::choose(&image.read(&name).unwrap_or_default()).ok();
    let (before, after) = (read(before), read(after));
    before.zip(after).is_some_and(|(before, after)| before.superblock.prepared.contains(&after.superblock.log_head))
}

/// Counts what kind of crash this is.
fn situations(files: &ImageFiles<'_>, store: &StoreImage<'_>, coverage: &Coverage) {
    let half = |copy: &CopyState| matches!(copy, CopyState::Damaged(_) | CopyState::Newer(_));
    coverage.met(Situation::SuperblockHalf, store.copies.iter().any(half));
    let end = store.log.end;
    let newest = store.log.segments.last().expect("a log has a segment");
    let head = store.superblock.log_head;
    let file = |id: u64| files.open(&holdfast_format_spec::segment_name(id)).ok().flatten();
    coverage.met(Situation::SealAlone, newest.sealed);
    coverage.met(Situation::HeadLags, newest.id != head);
    coverage.met(Situation::HeaderAlone, newest.id != head && end.offset == holdfast_format_spec::limits::FRAMES_START);
    coverage.met(Situation::TornTail, end.torn.is_some());
    let header = |id: u64| file(id).and_then(|file| segment::Header::read(&*file, id).ok()).map(|read| read.header);
    let log = store.manifest.segments.iter().filter(|segment| segment.lane == segment::Lane::Log);
    let before: Vec<u64> = log.filter_map(|segment| Some(header(segment.id)?.predecessor?.id)).collect();
    let is_named = |id: &u64| store.manifest.segments.iter().any(|segment| segment.id == *id);
    coverage.met(Situation::LogReleased, before.iter().any(|id| !is_named(id)));
    let leaving = store.orphans.iter().any(|name| match FileName::parse(name) {
        Some(FileName::Segment(id)) => header(id).is_some_and(|header| header.lane == segment::Lane::Log),
        _ => false,
    });
    coverage.met(Situation::LogLeaving, leaving);
    if let (Some(_), Some(file)) = (end.torn, file(end.segment)) {
        let rules = frame::Rules {
            uuid: store.superblock.uuid,
            epoch: newest.epoch,
            lane: segment::Lane::Log,
            chunk_max: store.superblock.chunk_max,
        };
        let is_torn_commit = frame::read(&*file, end.offset, file.len(), &rules)
            .is_err_and(|invalid| invalid.header.is_some_and(|header| header.kind == frame::Kind::Commit));
        coverage.met(Situation::TornCommit, is_torn_commit);
        let behind = (end.offset + 64..file.len()).step_by(64);
        let mut valid = behind.filter(|at| frame::read_header(&*file, *at, file.len(), &rules).is_ok());
        coverage.met(Situation::HoleInTail, valid.next().is_some());
    }
    for id in &store.superblock.prepared {
        let Some(file) = file(*id) else { continue };
        let blank = matches!(holdfast_format_spec::first_nonzero(&*file, 0, file.len().min(8192)), Ok(None));
        let whole = segment::Header::read(&*file, *id).is_ok_and(|read| read.damaged.iter().all(Option::is_none));
        coverage.met(Situation::TornHeader, !blank && !whole);
    }
}
