//! Goes through the segments of the log, tells corruption from the end, and hands commits on.
//!
//! It does not know what edits mean, only where they stand and, above the highest witness, that the bulk frames they name must be valid.

use super::chain::{Link, peek, required_header, rules, stop_if_newer};
use super::scan::{Found, Gap, scan};
use super::track::{Carrier, Track};
use super::{End, Log, LogSegment, check_sealed};
use crate::Id32;
use crate::bytes::{Bytes, first_nonzero};
use crate::commit::{Commit, Edit, Head, SyncedUpto};
use crate::error::Result;
use crate::files::{Files, segment_name};
use crate::frame::{self, Header, Kind, Rules};
use crate::keyspace::Entry;
use crate::limits;
use crate::problem::{ProblemKind, Problems};
use crate::seal::{FooterEntry, Seal};
use crate::segment::Lane;
use crate::superblock::Superblock;
use std::collections::{BTreeMap, BTreeSet};

/// What was found at a place, without payloads.
#[derive(Debug)]
pub(crate) enum Seen {
    Frame { offset: u64, header: Header },
    Gap(Gap),
}

impl Seen {
    /// The entry of a chunk or page frame as a footer has it.
    pub(crate) fn data(&self) -> Option<FooterEntry> {
        match self {
            Self::Frame { offset, header } if header.kind.is_data() => Some(FooterEntry {
                id: header.id,
                offset: *offset,
                stored: header.stored,
                raw: header.raw,
                tenant: u32::try_from(header.context).ok()?,
                kind: header.kind,
                codec: header.codec,
            }),
            _ => None,
        }
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Frame { header, .. } => header.frame_len(),
            Self::Gap(gap) => gap.to - gap.from,
        }
    }
}

/// Everything that stands in a segment up to `limit`, and the highest position that its own frames are a witness for.
pub(crate) fn look(bytes: &dyn Bytes, limit: u64, rules: &Rules, id: u64) -> Result<(Vec<Seen>, u64)> {
    let mut seen = Vec::new();
    let mut witness = 0;
    scan(bytes, limits::FRAMES_START, limit, rules, &mut |found| {
        match found {
            Found::Gap(gap) => seen.push(Seen::Gap(gap)),
            Found::Frame(frame) => {
                let synced = match frame.header.kind {
                    Kind::Mark => frame.offset,
                    Kind::Seal => Seal::parse(&frame.payload, rules.lane, frame.offset + frame::HEADER)
                        .map_or(0, |seal| seal.synced_upto),
                    Kind::Commit => match Head::of(&frame.payload, frame.offset + frame::HEADER) {
                        Ok(Head { synced_upto: SyncedUpto { segment, offset }, .. }) if segment == id => offset,
                        _ => 0,
                    },
                    _ => 0,
                };
                // A frame is a witness only for what stands before it.
                witness = witness.max(synced.min(frame.offset));
                seen.push(Seen::Frame { offset: frame.offset, header: frame.header });
            }
        }
        Ok(())
    })?;
    Ok((seen, witness))
}

/// Whoever the commits are handed to.
pub(crate) trait Replay {
    /// Told of each commit from the replay position on.
    fn commit(&mut self, commit: &Commit);

    /// Where a chunk or page is by the commits so far: segment and offset.
    fn place(&self, id: &Id32) -> Option<(u64, u64)>;
}

/// The files and what the walk finds in them.
pub(crate) struct Walk<'a> {
    pub(crate) files: &'a dyn Files,
    pub(crate) superblock: &'a Superblock,
    pub(crate) problems: &'a mut Problems,
    /// Chunk and page frames that are valid and count, by segment and offset.
    pub(crate) frames: &'a mut BTreeMap<(u64, u64), FooterEntry>,
    replay: &'a mut dyn Replay,
    track: Track,
    replaying: bool,
    /// Segments of the log that were walked, the one that is walked included.
    before: Vec<u64>,
    /// Segments of the log that come later.
    after: BTreeSet<u64>,
}

/// The segment that is walked.
struct Here<'a> {
    link: &'a Link,
    name: String,
    bytes: &'a dyn Bytes,
    rules: Rules,
    /// Below it, no invalid frame is the end of the log.
    witness: u64,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(
        files: &'a dyn Files,
        superblock: &'a Superblock,
        problems: &'a mut Problems,
        frames: &'a mut BTreeMap<(u64, u64), FooterEntry>,
        replay: &'a mut dyn Replay,
    ) -> Self {
        let (track, before, after) = (Track::default(), Vec::new(), BTreeSet::new());
        Self { files, superblock, problems, frames, replay, track, replaying: false, before, after }
    }

    pub(crate) fn run(&mut self, links: &[Link]) -> Result<Log> {
        self.after = links.iter().map(|link| link.id).collect();
        let mut segments = Vec::new();
        let mut torn = None;
        for (index, link) in links.iter().enumerate() {
            let last = index + 1 == links.len();
            let name = segment_name(link.id);
            self.enter(link, &name, links);
            self.before.push(link.id);
            self.after.remove(&link.id);
            let Some(bytes) = self.files.open(&name)? else {
                self.track.damaged(&name, 0, 0);
                continue;
            };
            let rules = rules(self.superblock, link.epoch, Lane::Log);
            let here = Here { link, name, bytes: &*bytes, rules, witness: u64::MAX };
            let (segment, first_torn) = self.segment(here, last)?;
            segments.push(segment);
            torn = first_torn;
        }
        let last = segments.last();
        let end = End {
            segment: last.map_or(0, |last| last.id),
            offset: last.map_or(0, |last| last.end),
            next_lsn: self.track.next_lsn,
            chain: self.track.chain,
            hw: self.track.hw,
            torn,
        };
        Ok(Log { segments, end })
    }

    /// What the header of a segment says about the log before it.
    fn enter(&mut self, link: &Link, name: &str, links: &[Link]) {
        let Some(header) = link.header else { return };
        let (chain, next_lsn) = (header.chain, header.first_lsn);
        if self.before.is_empty() && header.predecessor.is_none() {
            self.track.chain = Some(crate::derive::root_chain(&self.superblock.uuid));
        }
        if let Some(before) = header.predecessor
            && self.before.last().is_some_and(|last| *last != before.id)
            && links.iter().any(|link| link.id == before.id)
        {
            let what = "the header names another predecessor than the segment before it in the log";
            self.problems.add(ProblemKind::Chain, name, (0, limits::FRAMES_START), what);
        }
        let carrier = Carrier { what: "segment header", file: name, offset: 0, chain, next_lsn };
        self.track.carrier(&carrier, self.problems);
    }

    fn segment(&mut self, mut here: Here<'_>, last: bool) -> Result<(LogSegment, Option<u64>)> {
        let file_len = here.bytes.len();
        let clean_end = self.superblock.log_end.filter(|_| last);
        let limit =
            if last { clean_end.map_or(file_len, |end| end.offset) } else { here.link.named_end.unwrap_or(file_len) };
        if limit > file_len {
            let what = "the file ends before its frames do";
            self.problems.add(ProblemKind::Frame, &here.name, (file_len, limit - file_len), what);
            self.track.damaged(&here.name, file_len, limit - file_len);
        }
        let (seen, own_witness) = look(here.bytes, limit, &here.rules, here.link.id)?;
        if last && clean_end.is_none() {
            let replay = &self.superblock.replay;
            let position = if replay.segment == here.link.id { replay.offset } else { 0 };
            here.witness = own_witness.max(position);
        }
        let mut end = limits::FRAMES_START;
        let mut footer = None;
        for one in &seen {
            match one {
                Seen::Gap(gap) if gap.from >= here.witness => break,
                Seen::Gap(gap) => {
                    let (to, goes_on) = self.gap(&here, gap);
                    end = to;
                    if !goes_on {
                        break;
                    }
                }
                Seen::Frame { offset, header } => {
                    if !self.frame(&here, *offset, header)? {
                        break;
                    }
                    footer = if header.kind == Kind::Footer { footer.or(Some(*offset)) } else { None };
                    end = offset + header.frame_len();
                }
            }
        }
        // Above the highest witness a footer counts only with its seal.
        end = footer.filter(|footer| *footer >= here.witness).unwrap_or(end);
        self.reach_replay(&here, end, u64::MAX);
        let sealed = matches!(seen.last(), Some(Seen::Frame { offset, header })
            if header.kind == Kind::Seal && offset + header.frame_len() == end);
        let torn = self.leave(&here, &seen, (end, limit), (last, sealed))?;
        Ok((LogSegment { id: here.link.id, epoch: here.link.epoch, end, sealed }, torn))
    }

    /// Corruption. Answers where the walk goes on, and whether the log goes on there: what was synced ends where frames begin, so the
    /// highest witness within the gap is a place without a valid frame, and the end.
    fn gap(&mut self, here: &Here<'_>, gap: &Gap) -> (u64, bool) {
        let to = gap.to.min(here.witness);
        let length = to - gap.from;
        self.problems.add(ProblemKind::Frame, &here.name, (gap.from, length), gap.error.to_string());
        // What the superblock knows of the replay position holds whether or not the frames around it are damaged.
        let replay = self.superblock.replay.offset;
        if gap.from < replay && replay < to {
            self.track.damaged(&here.name, gap.from, length);
            self.reach_replay(here, replay, replay);
        } else {
            self.reach_replay(here, gap.from, gap.from);
        }
        self.track.damaged(&here.name, gap.from, length);
        (to, gap.to <= here.witness)
    }

    /// A valid frame. False: it does not count, and the log ends before it.
    fn frame(&mut self, here: &Here<'_>, offset: u64, header: &Header) -> Result<bool> {
        self.reach_replay(here, offset, offset);
        match header.kind {
            Kind::Commit => return self.commit(here, offset, header),
            Kind::Mark | Kind::Seal => {
                let (chain, next_lsn) = (header.id, header.context);
                let carrier = Carrier { what: header.kind.name(), file: &here.name, offset, chain, next_lsn };
                self.track.carrier(&carrier, self.problems);
            }
            Kind::Chunk | Kind::Page => {
                let entry = Seen::Frame { offset, header: *header }.data();
                self.frames.extend(entry.map(|entry| ((here.link.id, offset), entry)));
            }
            Kind::Footer | Kind::Padding => {}
        }
        Ok(true)
    }

    /// Begins to replay once the walk stands at, or has passed, the replay position.
    fn reach_replay(&mut self, here: &Here<'_>, at: u64, next: u64) {
        let replay = &self.superblock.replay;
        if self.replaying || replay.segment != here.link.id || next < replay.offset {
            return;
        }
        self.replaying = true;
        if at != replay.offset {
            let what = "the replay position of the superblock is not where a frame begins";
            self.problems.add(ProblemKind::Chain, &here.name, (replay.offset, 0), what);
        }
        let file = "superblock";
        let carrier = Carrier { what: "replay position", file, offset: 184, chain: replay.chain, next_lsn: replay.lsn };
        self.track.carrier(&carrier, self.problems);
    }

    fn commit(&mut self, here: &Here<'_>, offset: u64, header: &Header) -> Result<bool> {
        let Ok(read) = frame::read(here.bytes, offset, here.bytes.len(), &here.rules) else { return Ok(false) };
        let base = offset + frame::HEADER;
        let parsed = Commit::parse(&read.payload, header.context, base);
        let commit = stop_if_newer(parsed.clone())?;
        if offset >= here.witness
            && let Some(commit) = &commit
            && !self.bulk_frames_hold(commit)?
        {
            return Ok(false);
        }
        let carrier = Carrier { what: "commit", file: &here.name, offset, chain: header.id, next_lsn: header.context };
        self.track.carrier(&carrier, self.problems);
        self.track.chain = Some(crate::derive::next_chain(&header.id, &read.head, &read.payload));
        let place = (offset, header.frame_len());
        let Some(commit) = commit else {
            let what = parsed.map_or_else(|error| error.to_string(), |_| String::new());
            self.problems.add(ProblemKind::Commit, &here.name, place, what);
            let count = Head::of(&read.payload, base).ok().map(|head| head.request_count);
            self.track.next_lsn = count.and_then(|count| limits::lsn_after(header.context, count));
            return Ok(true);
        };
        let count = u32::try_from(commit.requests.len()).unwrap_or(u32::MAX);
        self.track.next_lsn = limits::lsn_after(header.context, count);
        if commit.hw < self.track.hw {
            self.problems.add(ProblemKind::Commit, &here.name, place, "hw: less than in the commit before");
        }
        self.track.hw = self.track.hw.max(commit.hw);
        let SyncedUpto { segment, offset: upto } = commit.synced_upto;
        if (segment == here.link.id && upto > offset) || self.after.contains(&segment) {
            self.problems.add(ProblemKind::Commit, &here.name, place, "synced_upto: not before the commit");
        }
        if self.replaying {
            self.replay.commit(&commit);
        }
        Ok(true)
    }

    /// Whether every bulk frame that the edits name is valid. A frame of the log stands before the commit, so the walk saw it; and a
    /// frame that an entry named before is not this commit's to lose.
    fn bulk_frames_hold(&self, commit: &Commit) -> Result<bool> {
        for edit in commit.edits() {
            let Edit::Put(Entry::Chunk(id, chunk)) = edit else { continue };
            if self.replay.place(id) == Some((chunk.segment, chunk.offset)) {
                continue;
            }
            let Some(header) = peek(self.files, chunk.segment)? else { return Ok(false) };
            if header.lane == Lane::Log {
                continue;
            }
            let Some(bytes) = self.files.open(&segment_name(chunk.segment))? else { return Ok(false) };
            let rules = rules(self.superblock, header.epoch, Lane::Bulk);
            match frame::read(&*bytes, chunk.offset, bytes.len(), &rules) {
                Ok(frame) if frame.header.id == *id && frame.header.kind == chunk.kind => {}
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    /// What stands behind the last frame that counts. Answers the first torn byte of a log that ends here.
    fn leave(
        &mut self,
        here: &Here<'_>,
        seen: &[Seen],
        (end, limit): (u64, u64),
        (last, sealed): (bool, bool),
    ) -> Result<Option<u64>> {
        let file = (here.name.as_str(), here.bytes);
        if let Some(clean) = self.superblock.log_end.filter(|_| last) {
            if end != clean.offset {
                let what = "the frames of a clean store end at another place than log_end";
                self.problems.add(ProblemKind::Chain, &here.name, (end, limit.saturating_sub(end)), what);
            }
            let (chain, next_lsn) = (clean.chain, clean.lsn);
            let carrier = Carrier { what: "log_end", file: "superblock", offset: 288, chain, next_lsn };
            self.track.carrier(&carrier, self.problems);
            if let Some(header) =
                here.link.header.as_ref().filter(|header| !sealed && here.bytes.len() < header.capacity)
            {
                let len = here.bytes.len();
                let what = "the newest log segment of a clean store is shorter than its capacity";
                self.problems.add(ProblemKind::Segment, &here.name, (len, header.capacity - len), what);
            }
            if !sealed && let Some(at) = first_nonzero(here.bytes, clean.offset, here.bytes.len())? {
                self.problems.add(ProblemKind::NotZero, &here.name, (at, 1), "a byte behind log_end of a clean store");
            }
        }
        if sealed {
            let seal = check_sealed(file, &here.rules, here.link.header.as_ref(), seen, self.problems)?;
            let successor = seal.and_then(|seal| seal.successor).filter(|_| last);
            if let Some((id, _)) = successor
                && self.files.open(&segment_name(id))?.is_none()
            {
                let what = "the successor that the last seal of the log names is not there";
                self.problems.add(ProblemKind::Missing, &segment_name(id), (0, 0), what);
            }
            return Ok(None);
        }
        if !last || self.superblock.log_end.is_some() {
            return Ok(None);
        }
        self.track.end(self.problems);
        first_nonzero(here.bytes, end, here.bytes.len())
    }

    /// Walks a segment that is no part of the log to replay: its frames up to `relied` must be valid. Answers where its frames end.
    pub(crate) fn other(
        &mut self,
        id: u64,
        (epoch, lane): (crate::Id16, Lane),
        relied: u64,
        must_be_sealed: bool,
    ) -> Result<Option<u64>> {
        let name = segment_name(id);
        let header = required_header(self.files, self.superblock, id, (epoch, lane), self.problems)?;
        let Some(bytes) = self.files.open(&name)? else { return Ok(None) };
        let rules = rules(self.superblock, epoch, lane);
        let limit = if lane == Lane::Log { relied.min(bytes.len()) } else { bytes.len() };
        let (seen, _) = look(&*bytes, limit, &rules, id)?;
        let mut end = limits::FRAMES_START;
        for one in &seen {
            match one {
                Seen::Gap(gap) if gap.from >= relied && !must_be_sealed => break,
                Seen::Gap(gap) => {
                    let place = (gap.from, gap.to - gap.from);
                    self.problems.add(ProblemKind::Frame, &name, place, gap.error.to_string());
                    end = gap.to;
                }
                Seen::Frame { offset, header } => {
                    self.frames.extend(one.data().map(|entry| ((id, *offset), entry)));
                    end = offset + header.frame_len();
                }
            }
        }
        if end < relied && relied != u64::MAX {
            self.problems.add(
                ProblemKind::Frame,
                &name,
                (end, relied - end),
                "the frames end before the end that is relied on",
            );
        }
        let sealed = matches!(seen.last(), Some(Seen::Frame { offset, header })
            if header.kind == Kind::Seal && offset + header.frame_len() == end);
        // A bulk segment is sealed once a commit says so: before, a seal may stand there without what belongs to it.
        if sealed && (must_be_sealed || lane == Lane::Log) {
            check_sealed((&name, &*bytes), &rules, header.as_ref(), &seen, self.problems)?;
        } else if must_be_sealed && !sealed {
            self.problems.add(ProblemKind::Segment, &name, (end, 0), "no seal at the end of a sealed segment");
        }
        Ok(Some(end))
    }
}
