//! Making durable what an open adopts, and a tail that takes frames.

use std::collections::BTreeSet;

use super::{OpenReport, Rebuilt};
use crate::{
    canary::{self, Canary},
    disk::{self, Disk, File, OpenOptions},
    entropy::{self, Entropy},
    error::{Error, Kind, Result},
    format::manifest::{Lane, ManifestSegment, SegmentState},
    health::Health,
    ids::{Epoch, FileId, Lsn},
    limits::{BLOCK, FRAMES_START},
    log::{
        Log, Tail,
        append::{Ground, successor_header, write_header},
        prepared::Spare,
        replay::{Found, Link},
    },
    segment::{self, writer},
    superblock::Root,
    sync::Arc,
};

/// Bytes that are rewritten in one step.
const STEP: usize = 1 << 20;
/// No open hands out more LSNs than there are behind this.
const LSN_MAX: Lsn = Lsn(u64::MAX - (1 << 48));
/// What the reserve holds at most.
const RESERVE_MAX: u64 = 192 << 20;

/// Takes the store over for writing. The answer is the log, or `None` if it can only be read.
pub fn take_over(
    disk: &Arc<dyn Disk>,
    entropy: &Arc<dyn Entropy>,
    health: &Arc<Health>,
    rebuilt: &mut Rebuilt,
) -> Result<Option<(Log, Arc<Root>)>> {
    if rebuilt.found.next_lsn > LSN_MAX {
        rebuilt.report.read_only.get_or_insert_with(|| "the store's LSNs are used up".to_owned());
    }
    if rebuilt.report.read_only.is_some() {
        health.make_read_only();
        return Ok(None);
    }
    let superblock = rebuilt.superblock.clone();
    let root = Arc::new(Root::open(&**disk, superblock.clone(), Arc::clone(health))?);
    let newest = newest_link(&rebuilt.found);
    let file = segment::open(&**disk, newest.header.id, OpenOptions::WRITE)?;
    if superblock.clean.is_none() && !canary::sings(Canary::TailNotRewritten) {
        if newest.header.id == superblock.log_head.0 {
            rewrite(&*file, newest, rebuilt.found.witness)?;
        } else {
            // Its header was adopted too, and one of the copies may be torn: both are written, and not what stands there.
            write_header(&*file, &newest.header)?;
            rewrite(&*file, newest, FRAMES_START)?;
        }
    }
    let options = superblock.options;
    let reserve = (rebuilt.catalog.usage().live_bytes / 8).clamp(options.log_segment_first, RESERVE_MAX);
    let spare = Spare::open(Arc::clone(disk), &root, &rebuilt.segments, reserve)?;
    let ground = Ground {
        disk: Arc::clone(disk),
        root: Arc::clone(&root),
        segments: Arc::clone(&rebuilt.segments),
        health: Arc::clone(health),
        entropy: Arc::clone(entropy),
    };
    let state = (superblock.clean.is_some(), rebuilt.manifest.sums.log_bytes);
    let Some(mut log) = take_tail(ground, spare, file, &mut rebuilt.found, &mut rebuilt.report, state)? else {
        health.make_read_only();
        return Ok(None);
    };
    log.remember(older(rebuilt, log.tail().id));
    log.take_office(superblock.clean.is_none())?;
    // All four copies were just written: one that a crash left half written, or that had rotted, is whole again.
    let mended = crate::superblock::name().to_string();
    rebuilt.report.problems.retain(|problem| problem.file.as_ref() != Some(&mended));
    if rebuilt.report.torn_bytes > 0 {
        shrink_torn(newest_link(&rebuilt.found), &**disk, log.tail().id)?;
    }
    Ok(Some((log, root)))
}

/// The newest segment. Where none is left commits are lost, and the store is not taken over.
fn newest_link(found: &Found) -> &Link {
    found.newest().expect("a log without damage has a segment")
}

/// The segments of the log before the one that takes frames now.
fn older(rebuilt: &Rebuilt, newest: FileId) -> Vec<ManifestSegment> {
    let found = rebuilt.found.links.iter().map(|link| ManifestSegment {
        id: link.header.id,
        epoch: link.header.epoch,
        lane: Lane::Log,
        state: SegmentState::Sealed,
        end: link.end,
    });
    let replayed: BTreeSet<FileId> = rebuilt.found.links.iter().map(|link| link.header.id).collect();
    let before = rebuilt.manifest.segments.iter().filter(|s| s.lane == Lane::Log && !replayed.contains(&s.id)).cloned();
    before.chain(found).filter(|segment| segment.id != newest).collect()
}

/// Writes what recovery adopts again, byte for byte at its place, and syncs: after a failed sync or a kill the page cache may
/// show what never reached the disk.
fn rewrite(file: &dyn File, newest: &Link, from: u64) -> Result<()> {
    let step = |at: u64| usize::try_from(newest.end.saturating_sub(at)).unwrap_or(STEP).min(STEP);
    let mut bytes = vec![0; step(from)];
    let mut at = from;
    while at < newest.end {
        let len = step(at);
        let part = &mut bytes[..len];
        disk::read_exact(file, part, at).map_err(|e| Error::io(e, &newest.name, "read what is adopted"))?;
        writer::write(file, &newest.name, part, at)?;
        at += len as u64;
    }
    writer::sync(file, &newest.name)
}

/// A tail behind the adopted frames: the newest segment itself, or a new one where that is sealed or torn.
fn take_tail(
    ground: Ground,
    mut spare: Spare,
    file: Box<dyn File>,
    found: &mut Found,
    report: &mut OpenReport,
    (clean, before): (bool, u64),
) -> Result<Option<Log>> {
    let content = before.saturating_add(found.content_bytes);
    let entries = std::mem::take(&mut found.entries);
    let newest = newest_link(found);
    let header = newest.header;
    let tail = Tail {
        id: header.id,
        epoch: header.epoch,
        first_lsn: header.first_lsn,
        // What the header says is not believed where the file is shorter.
        capacity: header.capacity.min(newest.len.max(newest.end)),
        offset: newest.end,
        chain: found.chain,
        next_lsn: found.next_lsn,
        entries,
    };
    if let Some((id, epoch)) = newest.seal.and_then(|seal| seal.successor) {
        if ground.segments.epoch(id).is_some() {
            return Err(Error::corrupt(&newest.name, newest.end, "a seal names a segment that the store has already"));
        }
        let (file, len) = spare.take_named(id)?;
        return Ok(Some(enter(ground, spare, &tail, id, epoch, len, file, content)?));
    }
    // The frames may end behind the file: the last of them were cut off, and no commit with them.
    let is_cut = newest.end > newest.len;
    let torn = if clean { None } else { segment::first_non_zero(&*file, &newest.name, newest.end)? };
    if !is_cut && torn.is_none() || canary::sings(Canary::AppendBehindTorn) {
        return Ok(Some(Log::new(ground, spare, tail, file, content)));
    }
    report.torn_bytes = newest.len.saturating_sub(newest.end);
    let first = ground.root.current().options.log_segment_first;
    match spare.take(FRAMES_START + BLOCK, first, true) {
        Ok((id, file, len)) => {
            let epoch = Epoch(entropy::random(&*ground.entropy)?);
            Ok(Some(enter(ground, spare, &tail, id, epoch, len, file, content)?))
        }
        Err(e) if e.kind() == Kind::NoSpace => {
            if !is_cut && writer::zero_and_sync(&*file, &newest.name, newest.end, newest.len).is_ok() {
                report.torn_bytes = 0;
                return Ok(Some(Log::new(ground, spare, tail, file, content)));
            }
            report.read_only = Some("the log's end is torn, and the disk has no room to go on".to_owned());
            Ok(None)
        }
        Err(e) => Err(e),
    }
}

/// Writes the next segment's header; the superblock that names it follows.
#[expect(clippy::too_many_arguments, reason = "the parts of a log, and of its next segment")]
fn enter(
    ground: Ground,
    spare: Spare,
    before: &Tail,
    id: FileId,
    epoch: Epoch,
    len: u64,
    file: Box<dyn File>,
    content: u64,
) -> Result<Log> {
    let header = successor_header(ground.root.current().uuid, before, before.offset, id, epoch, len);
    write_header(&*file, &header)?;
    let tail = Tail {
        id,
        epoch,
        first_lsn: header.first_lsn,
        capacity: len,
        offset: FRAMES_START,
        chain: before.chain,
        next_lsn: before.next_lsn,
        entries: Vec::new(),
    };
    Ok(Log::new(ground, spare, tail, file, content))
}

/// Gives back the zeros behind a torn tail; the torn bytes themselves stay, dead, until something destroys them.
fn shrink_torn(torn: &Link, disk: &dyn Disk, newest: FileId) -> Result<()> {
    if torn.header.id == newest {
        return Ok(());
    }
    let file = segment::open(disk, torn.header.id, OpenOptions::WRITE)?;
    let last = segment::last_non_zero(&*file, &torn.name, torn.end)?.map_or(torn.end, |at| at + 1);
    let len = last.next_multiple_of(BLOCK).min(torn.len);
    disk::retry(|| file.set_len(len)).map_err(|e| Error::io(e, &torn.name, "shrink a torn segment"))?;
    writer::sync(&*file, &torn.name)
}
