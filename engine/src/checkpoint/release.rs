//! Log segments that nothing needs any more: which they are, and what becomes of their files.
//!
//! A segment may go when a durable checkpoint has all its commits and no chunk or page entry, at whatever count, points into it. No
//! entry ever comes to point into an older segment, so that what is found dead before the position of a checkpoint is dead in its tables.
//! The file is touched only when all copies of the superblock name the manifest that leaves the segment out, and when all have left who
//! may have looked up a place in it.

use std::collections::{BTreeMap, BTreeSet};

use super::Ground;
use crate::{
    canary::{self, Canary},
    catalog::State as _,
    commit::Commit,
    disk::{self, File, Name, OpenOptions},
    error::{Error, Result},
    format::{frame::FrameSalt, manifest::ManifestSegment},
    ids::{FileId, StoreUuid},
    limits::FRAMES_START,
    segment::{self, reader, scanner::Scanner, writer},
};

/// Steps in which a file is zeroed that is used again: no commit waits for the disk behind more than one.
const ZERO_STEP: u64 = 1 << 20;

/// What is known of log segments, and what is on its way out.
#[derive(Default)]
pub(super) struct Release {
    looked_at: BTreeMap<FileId, Looked>,
    /// Where the next look at a few of them begins.
    next: FileId,
    /// Segments that no manifest names any more, with the turn in which they could still be looked up.
    leaving: Vec<(FileId, u64)>,
}

/// How far a segment is known to be dead: what is dead stays so.
#[derive(Clone, Copy)]
struct Looked {
    at: u64,
    content: u64,
}

/// Segments in which nothing is live.
#[derive(Clone, Default)]
pub(super) struct Dead {
    pub(super) ids: BTreeSet<FileId>,
    /// Bytes of their chunk and page frames.
    pub(super) content_bytes: u64,
}

impl Release {
    /// Looks for segments in which nothing is live, among those before the newest, at no more than `most` of them. What cannot be read
    /// stays. O(frames) over the life of a segment, and one look-up a call for each that stays.
    pub(super) fn look(&mut self, ground: &Ground, uuid: StoreUuid, older: &[ManifestSegment], most: usize) -> Dead {
        let (before, behind): (Vec<_>, Vec<_>) = older.iter().partition(|segment| segment.id < self.next);
        let mut dead = Dead::default();
        let mut rest = behind.into_iter().chain(before);
        for segment in rest.by_ref().take(most) {
            let mut looked =
                self.looked_at.get(&segment.id).copied().unwrap_or(Looked { at: FRAMES_START, content: 0 });
            if is_dead(ground, uuid, segment, &mut looked).unwrap_or(false) {
                dead.ids.insert(segment.id);
                dead.content_bytes += looked.content;
            }
            self.looked_at.insert(segment.id, looked);
        }
        self.next = rest.next().map_or_else(FileId::default, |segment| segment.id);
        dead
    }

    /// The superblock names a manifest without these segments: no look-up from here on finds a place in them.
    pub(super) fn leave(&mut self, ground: &Ground, dead: &Dead) {
        let turn = ground.segments.visits().next_turn();
        self.leaving.extend(dead.ids.iter().map(|id| (*id, turn)));
        for id in &dead.ids {
            self.looked_at.remove(id);
        }
    }

    /// Uses the files of those again that nobody reads any more, or gives them back to the disk. The answer is their length. What
    /// fails is destroyed by the next open.
    pub(super) fn free(&mut self, ground: &Ground, commit: Option<&Commit>) -> u64 {
        let visits = ground.segments.visits();
        let mut bytes = 0;
        for (id, _) in self.leaving.extract_if(.., |(_, turn)| visits.have_left(*turn)) {
            bytes += free(ground, commit, id).unwrap_or(0);
        }
        bytes
    }
}

/// Goes on through a segment's frames to the first that an entry names. What stands behind damage is not known, so that it counts as live.
fn is_dead(ground: &Ground, uuid: StoreUuid, segment: &ManifestSegment, looked: &mut Looked) -> Result<bool> {
    if canary::sings(Canary::LiveLogReleased) {
        return Ok(true);
    }
    let name = segment::name(segment.id);
    let file = segment::open(&*ground.disk, segment.id, OpenOptions::READ)?;
    let mut scanner = Scanner::new(&*file, &name, FrameSalt::new(uuid, segment.epoch));
    while looked.at < segment.end {
        let Some((header, _)) = scanner.header_at(looked.at)? else { return Ok(false) };
        if reader::is_content(header.kind) {
            let entry = ground.published.read().chunk(header.chunk_id())?;
            if entry.is_some_and(|entry| entry.location.segment == segment.id) {
                return Ok(false);
            }
            looked.content += header.frame_len();
        }
        looked.at += header.frame_len();
    }
    Ok(looked.at == segment.end)
}

/// Zeroed, synced and renamed to a fresh id, if the log can use it; else cut in steps and unlinked.
fn free(ground: &Ground, commit: Option<&Commit>, id: FileId) -> Result<u64> {
    ground.health.check()?;
    ground.segments.remove(id);
    let (disk, name) = (&*ground.disk, segment::name(id));
    let options = OpenOptions { direct: true, ..OpenOptions::WRITE };
    let file = disk::retry(|| disk.open(&name, options)).map_err(|e| Error::io(e, &name, "open a segment"))?;
    let len = disk::retry(|| file.len()).map_err(|e| Error::io(e, &name, "read a length"))?;
    if let Some(commit) = commit.filter(|commit| commit.with_log(|log| log.wants(len))) {
        recycle(ground, commit, file, &name, len)?;
    } else {
        drop(file);
        writer::destroy(disk, &name)?;
    }
    Ok(len)
}

/// Makes a prepared segment of a file that nothing names. Where a step fails the file goes: nothing is written, or synced, once more.
fn recycle(ground: &Ground, commit: &Commit, file: Box<dyn File>, old: &Name, len: u64) -> Result<()> {
    let disk = &*ground.disk;
    let id = ground.root.allocate_file()?;
    let new = segment::name(id);
    let mut now = old;
    let mut steps = || {
        if !canary::sings(Canary::RecycledNotZeroed) {
            zero(&*file, old, len)?;
        }
        disk::retry(|| disk.rename(old, &new)).map_err(|e| Error::io(e, old, "give a segment another name"))?;
        now = &new;
        writer::sync_dir(disk)
    };
    if let Err(error) = steps() {
        drop(file);
        let error = ground.health.notice(error);
        if ground.health.is_writable() {
            let _ = writer::destroy(disk, now);
        }
        return Err(error);
    }
    commit.with_log(|log| log.adopt(id, file, len));
    Ok(())
}

fn zero(file: &dyn File, name: &Name, len: u64) -> Result<()> {
    let mut at = 0;
    while at < len {
        let step = ZERO_STEP.min(len - at);
        disk::retry(|| file.zero(at, step)).map_err(|e| Error::io(e, name, "write zeros"))?;
        if file.align() == 1 {
            writer::sync(file, name)?;
        }
        at += step;
    }
    writer::sync(file, name)
}

/// The segments of a position without those that are dead.
pub(super) fn without(segments: &[ManifestSegment], dead: &Dead) -> Vec<ManifestSegment> {
    segments.iter().filter(|segment| !dead.ids.contains(&segment.id)).cloned().collect()
}
