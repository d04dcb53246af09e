//! What an open does once it may commit: bulk segments are sealed at their last committed end, unfinished puts are aborted, and
//! files that nothing names are destroyed.

use std::collections::BTreeSet;

use super::OpenReport;
use crate::{
    catalog::{Published, State as _, View},
    commit::{Commit, Request, edits_len},
    disk::{self, Disk, Name, OpenOptions},
    error::{Error, Kind, Result},
    format::{
        commit::Edit,
        frame::FrameSalt,
        keyspace::{Keyspace, segment_key, segment_of_key},
        manifest::SegmentState,
        seal::FooterEntry,
        superblock::Superblock,
        upload::Upload,
        value::SegmentValue,
    },
    ids::{FileId, Time, UploadId},
    limits::FRAMES_START,
    manifest,
    ownership::upload,
    segment::{self, Segments, reader, scanner::Scanner, writer},
    table,
};

/// Seals and aborts, in as few commits as hold it. `wall` is the time that the clock shows.
pub fn tidy(
    disk: &dyn Disk,
    superblock: &Superblock,
    published: &Published,
    commit: &Commit,
    wall: Time,
    report: &mut OpenReport,
) -> Result<()> {
    let unsealed = unsealed(published.read())?;
    let mut edits = Vec::new();
    for (id, value) in unsealed {
        if let Some(end) = seal_at_end(disk, superblock, id, &value)? {
            let sealed = SegmentValue { state: SegmentState::Sealed, end, ..value };
            edits.push(Edit::put(Keyspace::Segment, segment_key(id), sealed.encode()));
        }
    }
    if !edits.is_empty() {
        let len = edits_len(&edits);
        if_there_is_room(commit.run(Request::new(len, move |_| Ok((edits, ()))).privileged()))?;
    }
    let uploads = published.read().scan(Keyspace::Upload, &[], None, usize::MAX)?;
    for (key, value) in uploads {
        let (Ok(id), Ok(record)) = (<[u8; 16]>::try_from(key), Upload::decode(&value)) else { continue };
        let has_ended = record.expires_at.is_some_and(|end| wall.max(commit.hw()) >= end);
        if record.sha_state.is_none() || has_ended {
            let id = UploadId(id);
            let abort = Request::new(upload::abort_len_max(&record), move |stage| Ok((upload::abort(stage, id)?, ())));
            report.aborted_uploads += u64::from(if_there_is_room(commit.run(abort.privileged()))?);
        }
    }
    Ok(())
}

/// What a full disk keeps an open from tidying, the next one tidies: the store must open all the same, to be read and to give space
/// back.
fn if_there_is_room(done: Result<()>) -> Result<bool> {
    match done {
        Err(e) if e.kind() == Kind::NoSpace => Ok(false),
        done => done.map(|()| true),
    }
}

/// Bulk segments that no commit calls sealed.
fn unsealed(catalog: View<'_>) -> Result<Vec<(FileId, SegmentValue)>> {
    let mut found = Vec::new();
    for (key, value) in catalog.scan(Keyspace::Segment, &[], None, usize::MAX)? {
        let bad = |bad: crate::format::Bad| Error::new(Kind::Corrupt, bad.what);
        let (id, value) = (segment_of_key(&key).map_err(bad)?, SegmentValue::decode(&value).map_err(bad)?);
        if value.state == SegmentState::Active {
            found.push((id, value));
        }
    }
    Ok(found)
}

/// Writes footer and seal behind the last committed end; what lies behind is dead. `None`: the segment is damaged, or the disk has
/// no room; it stays as it is, readable, and takes no more frames.
fn seal_at_end(disk: &dyn Disk, superblock: &Superblock, id: FileId, value: &SegmentValue) -> Result<Option<u64>> {
    let name = segment::name(id);
    let salt = FrameSalt::new(superblock.uuid, value.epoch);
    let Ok(file) = segment::open(disk, id, OpenOptions::WRITE) else { return Ok(None) };
    let mut scanner = Scanner::new(&*file, &name, salt);
    let mut entries = Vec::new();
    let mut at = FRAMES_START;
    while at < value.end {
        let Some((header, _)) = scanner.header_at(at)? else { return Ok(None) };
        if reader::is_content(header.kind) {
            entries.push(FooterEntry::of(&header, at));
        }
        at += header.frame_len();
    }
    if at != value.end || !at.is_multiple_of(crate::limits::BLOCK) {
        return Ok(None);
    }
    match writer::seal_bulk(&*file, &name, &salt, &mut entries, at) {
        Ok(end) => Ok(Some(end)),
        Err(e) if e.kind() == Kind::NoSpace => Ok(None),
        Err(e) => Err(e),
    }
}

/// Files that are not part of the store as it is, in order.
#[derive(Default)]
pub struct Stray {
    /// Files of ours that nothing names: a writer that did not end left them.
    pub unnamed: Vec<Name>,
    /// Names that are not ours, or of an id that was never given out.
    pub strange: Vec<String>,
}

/// Looks for them.
pub fn stray(disk: &dyn Disk, superblock: &Superblock, published: View<'_>, segments: &Segments) -> Result<Stray> {
    let listing = disk::retry(|| disk.list()).map_err(|e| Error::io(e, ".", "list the store"))?;
    let mut stray = Stray { strange: listing.strange, ..Stray::default() };
    let mut named: BTreeSet<FileId> = segments.all().into_iter().map(|(id, _)| id).collect();
    named.extend(superblock.prepared.iter().chain(&superblock.reserves));
    named.extend(published.tables().all().map(|table| table.meta.id));
    for (key, _) in published.scan(Keyspace::Segment, &[], None, usize::MAX)? {
        named.extend(segment_of_key(&key).ok());
    }
    for name in listing.names {
        let id = segment::parse_name(&name, "segment-").or_else(|| segment::parse_name(&name, "reserve-"));
        let id = id.or_else(|| table::parse_name(&name));
        let (is_named, was_given_out) = match (id, manifest::parse_name(&name)) {
            (Some(id), _) => (named.contains(&id), id < superblock.ceiling_file),
            (None, Some(generation)) => {
                (generation == superblock.manifest.0, generation < superblock.ceiling_generation)
            }
            (None, None) => (name.as_str() == "LOCK" || name.as_str() == "superblock", false),
        };
        match (is_named, was_given_out) {
            (true, _) => {}
            (false, true) => stray.unnamed.push(name),
            (false, false) => stray.strange.push(name.to_string()),
        }
    }
    stray.unnamed.sort_unstable();
    stray.strange.sort_unstable();
    Ok(stray)
}

/// Destroys files of ours that nothing names: segments that were made and never committed to, and those that a torn recovery
/// left behind. Nothing of the kind is done after damage, for then something may be missing that named them.
pub fn destroy_unnamed(
    disk: &dyn Disk,
    superblock: &Superblock,
    published: View<'_>,
    segments: &Segments,
    report: &mut OpenReport,
) -> Result<()> {
    let stray = stray(disk, superblock, published, segments)?;
    report.strange_files = stray.strange;
    if stray.unnamed.is_empty() || !report.problems.is_empty() {
        return Ok(());
    }
    for name in &stray.unnamed {
        writer::destroy(disk, name)?;
        report.destroyed_files.push(name.to_string());
    }
    writer::sync_dir(disk)
}
