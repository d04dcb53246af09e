//! Walking the log: which frames count, where it ends, and what is damaged (FORMAT.md section 10).
//!
//! Reads only. It does not know what edits mean, nor what is done about damage.

use super::{chain::Chain, witness};
use crate::{
    canary::{self, Canary},
    digest::chain_next,
    disk::{Disk, File, Name, OpenOptions},
    error::{Error, Result},
    format::{
        commit::Commit,
        frame::{FrameHeader, FrameKind, FrameSalt, HEADER_LEN},
        manifest::Lane,
        seal::{FooterEntry, Seal},
        segment_header::SegmentHeader,
        superblock::{LogEnd, Superblock},
    },
    ids::{ChainHash, Location, Lsn},
    limits::{FRAME_ALIGN, FRAMES_START},
    segment::{self, reader, scanner::Scanner},
};

/// A damaged place.
#[derive(Clone, Debug)]
pub struct Damage {
    /// The file.
    pub file: Name,
    /// Where in it.
    pub offset: u64,
    /// What is wrong there.
    pub what: &'static str,
}

/// Takes what the walk finds.
pub trait Visitor {
    /// A commit whose place in the chain is known, or that stands behind lost ones.
    fn commit(&mut self, commit: Commit, lsn: Lsn, place: Location) -> Result<()>;
    /// True if the bulk frames that a commit above the highest witness names are all valid.
    fn vouches(&mut self, commit: &Commit) -> Result<bool>;
}

/// A log segment of the chain. Its file is not kept open: a log may have more segments than a process has descriptors.
pub struct Link {
    /// Its header.
    pub header: SegmentHeader,
    /// Its name.
    pub name: Name,
    /// Length of the file.
    pub len: u64,
    /// Where its frames end: as the successor says, or as the walk found.
    pub end: u64,
    /// Its seal, if the walk met one.
    pub seal: Option<Seal>,
    /// Where the walk began to look at commits: the replay position, or the front.
    pub start: u64,
    /// Where its frames end, as its successor's header says.
    pub(super) named_end: Option<u64>,
}

impl Link {
    /// Its file, for reading.
    pub fn open(&self, disk: &dyn Disk) -> Result<Box<dyn File>> {
        segment::open(disk, self.header.id, OpenOptions::READ)
    }

    pub(super) fn salt(&self) -> FrameSalt {
        FrameSalt::new(self.header.uuid, self.header.epoch)
    }
}

/// The log as it was found.
pub struct Found {
    /// Its segments in order, the newest last.
    pub links: Vec<Link>,
    /// In the newest: everything below was synced.
    pub witness: u64,
    /// Chain hash at the end.
    pub chain: ChainHash,
    /// The next LSN.
    pub next_lsn: Lsn,
    /// Chunk and page frames of the newest segment.
    pub entries: Vec<FooterEntry>,
    /// Bytes of chunk and page frames in all segments.
    pub content_bytes: u64,
    /// Commits above the highest witness.
    pub adopted: u64,
    /// Damaged places, in the order of the log.
    pub damage: Vec<Damage>,
    /// Places at which commits were lost.
    pub lost: Vec<Damage>,
}

impl Found {
    /// The newest segment; `None`: no segment of the log is left, and commits are lost.
    pub fn newest(&self) -> Option<&Link> {
        self.links.last()
    }
}

/// Finds the chain and walks all of it. O(length of the log's headers and commits).
pub fn replay(disk: &dyn Disk, superblock: &Superblock, visitor: &mut dyn Visitor) -> Result<Found> {
    let mut chain = Chain { disk, superblock, damage: Vec::new(), lost: Vec::new() };
    let links = chain.backwards()?;
    let mut walk = Walk {
        found: Found {
            links: Vec::new(),
            witness: FRAMES_START,
            chain: superblock.replay.chain,
            next_lsn: superblock.replay.lsn,
            entries: Vec::new(),
            content_bytes: 0,
            adopted: 0,
            damage: std::mem::take(&mut chain.damage),
            lost: std::mem::take(&mut chain.lost),
        },
        suspect: None,
        clean: superblock.clean,
        passed_clean_end: false,
        visitor,
    };
    let mut rest = links.into_iter();
    let mut next = rest.next();
    while let Some(mut link) = next.take() {
        next = rest.next();
        let file = link.open(disk)?;
        let mut synced = link.named_end;
        let is_before = chain.is_before_replay(&link.header);
        if is_before {
            // It stands in for the segments behind it, which are lost: its frames are all that is left of the log.
            let witness = witness::highest(&*file, &link.name, link.salt(), link.header.id, link.len)?;
            link.named_end = Some(witness.seal.map_or(witness.synced, |seal| seal.end));
            synced = link.named_end;
        } else if synced.is_none() && next.is_some() {
            // Its successor is missing, and a later segment is there: all of this one was synced before that one was begun.
            let witness = witness::highest(&*file, &link.name, link.salt(), link.header.id, link.len)?;
            link.named_end = witness.seal.map(|seal| seal.end);
            synced = Some(link.named_end.unwrap_or(witness.synced));
        } else if synced.is_none() {
            let (witness, successor) = chain.newest_end(&link, &*file, &mut walk.found)?;
            link.named_end = successor.as_ref().and_then(|s| s.header.predecessor).map(|p| p.end);
            synced = Some(link.named_end.unwrap_or(witness));
            next = successor;
        }
        let mut synced = synced.expect("set above");
        let start = if link.header.id == superblock.replay.segment {
            let start = walk.replay_start(&link, superblock.replay.offset);
            // What stands before the position was synced before the superblock named it.
            synced = synced.max(start);
            start
        } else if is_before {
            synced
        } else {
            walk.meet(link.header.chain, link.header.first_lsn, &link.name, 0);
            FRAMES_START
        };
        link.start = start;
        walk.segment(&mut link, &*file, start, synced)?;
        walk.found.links.push(link);
    }
    walk.finish(superblock);
    Ok(walk.found)
}

/// Walking frames.
struct Walk<'a> {
    found: Found,
    /// Damage behind which no commit, mark, seal or header has shown the chain hash yet.
    suspect: Option<Damage>,
    /// Where the superblock says that the log ends.
    clean: Option<LogEnd>,
    /// A commit stands behind that end, and goes on from there: the superblock is an older one.
    passed_clean_end: bool,
    visitor: &'a mut dyn Visitor,
}

impl Walk<'_> {
    /// The chain hash and next LSN that something at a place shows. If they are not those of the last good commit, commits are
    /// lost.
    fn meet(&mut self, chain: ChainHash, next_lsn: Lsn, file: &Name, offset: u64) {
        let suspect = self.suspect.take();
        if chain != self.found.chain || next_lsn != self.found.next_lsn {
            let here = Damage { file: file.clone(), offset, what: "commits before this place are lost" };
            if suspect.is_none() {
                self.found.damage.push(here.clone());
            }
            self.found.lost.push(suspect.unwrap_or(here));
            self.found.chain = chain;
            self.found.next_lsn = next_lsn;
        }
    }

    fn damaged(&mut self, link: &Link, offset: u64, what: &'static str) {
        let damage = Damage { file: link.name.clone(), offset, what };
        self.found.damage.push(damage.clone());
        self.suspect.get_or_insert(damage);
    }

    /// Where the walk of the replay segment begins. What stands before the replay position was synced once: if it is not all there
    /// any more, nobody knows what else is missing.
    fn replay_start(&mut self, link: &Link, offset: u64) -> u64 {
        let end = link.named_end.unwrap_or(link.len);
        if offset > end {
            let damage =
                Damage { file: link.name.clone(), offset: end, what: "the segment ends before the replay position" };
            self.found.lost.push(damage.clone());
            self.found.damage.push(damage);
        }
        offset.min(end)
    }

    /// Walks one segment from `at`. Below `synced` an invalid frame is damage; from there on it is the end of the log.
    fn segment(&mut self, link: &mut Link, file: &dyn File, mut at: u64, synced: u64) -> Result<()> {
        let salt = link.salt();
        let stop = link.named_end.unwrap_or(link.len.max(synced));
        let name = link.name.clone();
        let mut scanner = Scanner::new(file, &name, salt);
        self.found.witness = synced;
        self.found.entries.clear();
        self.before_replay(&mut scanner, &name, at)?;
        // Where the footer begins that no seal has ended yet.
        let mut footer = None;
        while at < stop && link.seal.is_none() {
            let header = scanner.header_at(at)?.filter(|(h, _)| at + h.frame_len() <= stop.min(link.len));
            let taken = match header {
                Some((header, bytes)) => self.frame(link, file, &salt, at, synced, &header, &bytes)?,
                None => false,
            };
            if let (true, Some((header, _))) = (taken, header) {
                footer = if header.kind == FrameKind::Footer { footer.or(Some(at)) } else { None };
                at += header.frame_len();
                continue;
            }
            if at >= synced {
                let next = if canary::sings(Canary::BadFrameSkipped) {
                    scanner.next_valid(at + FRAME_ALIGN, stop)?
                } else {
                    None
                };
                let Some(next) = next else { break };
                at = next;
                continue;
            }
            // A frame whose header holds says where the next one stands; otherwise the next valid header does.
            if let Some((header, _)) = header {
                at += header.frame_len();
                continue;
            }
            self.damaged(link, at, "an invalid frame among synced ones");
            at = match scanner.next_valid(at + FRAME_ALIGN, stop)? {
                Some(next) if at < synced => next.min(synced),
                Some(next) => next,
                None if at < synced => synced,
                None => break,
            };
        }
        link.end = at;
        if let (Some(footer), None, None) = (footer, &link.seal, link.named_end)
            && footer >= synced
        {
            // Nothing may follow a footer but its seal, so that the log ended before it.
            link.end = footer;
        }
        Ok(())
    }

    /// Chunks and pages that stand before the replay position: the footer of its segment will list them too. Damage among them
    /// is damage of chunks; no commit there is needed.
    fn before_replay(&mut self, scanner: &mut Scanner<'_>, name: &Name, start: u64) -> Result<()> {
        let mut at = FRAMES_START;
        while at < start {
            let Some((header, _)) = scanner.header_at(at)?.filter(|(h, _)| at + h.frame_len() <= start) else {
                let what = "an invalid frame before the replay position";
                self.found.damage.push(Damage { file: name.clone(), offset: at, what });
                at = scanner.next_valid(at + FRAME_ALIGN, start)?.map_or(start, |next| next.min(start));
                continue;
            };
            if reader::is_content(header.kind) {
                self.found.entries.push(FooterEntry::of(&header, at));
                self.found.content_bytes += header.frame_len();
            }
            at += header.frame_len();
        }
        Ok(())
    }

    /// Takes one frame with a valid header. False: it does not count, for its payload is not good.
    #[expect(clippy::too_many_arguments, reason = "what a frame is, and where")]
    fn frame(
        &mut self,
        link: &mut Link,
        file: &dyn File,
        salt: &FrameSalt,
        at: u64,
        synced: u64,
        header: &FrameHeader,
        header_bytes: &[u8; HEADER_LEN],
    ) -> Result<bool> {
        let above = at >= synced;
        let needs_payload = above || matches!(header.kind, FrameKind::Commit | FrameKind::Seal | FrameKind::Mark);
        let frame = if needs_payload { reader::read_frame(file, &link.name, salt, at)? } else { None };
        if needs_payload && frame.is_none() {
            if !above {
                self.damaged(link, at, "the payload of a commit, mark or seal");
            }
            return Ok(false);
        }
        match header.kind {
            FrameKind::Chunk | FrameKind::Page => {
                self.found.entries.push(FooterEntry::of(header, at));
                self.found.content_bytes += header.frame_len();
            }
            FrameKind::Mark => self.meet(ChainHash(header.id), Lsn(header.context), &link.name, at),
            FrameKind::Commit => {
                let payload = frame.as_ref().expect("read above").payload();
                return self.commit(link, at, above, header, header_bytes, payload);
            }
            FrameKind::Seal => match Seal::decode(frame.as_ref().expect("read above").payload(), Lane::Log, at) {
                Ok(seal) => {
                    self.meet(ChainHash(header.id), Lsn(header.context), &link.name, at);
                    link.seal = Some(seal);
                }
                Err(bad) => self.damaged(link, at, bad.what),
            },
            FrameKind::Footer | FrameKind::Padding => {}
        }
        Ok(true)
    }

    fn commit(
        &mut self,
        link: &Link,
        at: u64,
        above: bool,
        header: &FrameHeader,
        header_bytes: &[u8; HEADER_LEN],
        payload: &[u8],
    ) -> Result<bool> {
        let commit = match Commit::decode(payload) {
            Ok(commit) => commit,
            Err(bad) if bad.newer => return Err(Error::newer(bad.what).at(&link.name, at)),
            Err(bad) => {
                self.damaged(link, at, bad.what);
                return Ok(true);
            }
        };
        if above && !self.visitor.vouches(&commit)? {
            return Ok(false);
        }
        let end = (self.found.chain, self.found.next_lsn);
        self.meet(ChainHash(header.id), Lsn(header.context), &link.name, at);
        // Not only of this chain, but this very commit: `end` is what it goes on from.
        self.passed_clean_end |= above && self.clean.is_some_and(|clean| (clean.chain, clean.lsn) == end);
        self.found.chain = chain_next(self.found.chain, header_bytes, payload);
        self.found.next_lsn = Lsn(header.context.saturating_add(commit.requests.len() as u64));
        self.found.adopted += u64::from(above);
        let place = Location { segment: link.header.id, offset: at };
        self.visitor.commit(commit, Lsn(header.context), place)?;
        Ok(true)
    }

    /// A clean close has written down the chain hash; otherwise damage that nothing behind it explains counts as loss.
    fn finish(&mut self, superblock: &Superblock) {
        let name = self.found.newest().map_or_else(|| segment::name(superblock.log_head.0), |link| link.name.clone());
        if self.passed_clean_end {
            let what = "the superblock is older than the log: commits stand behind the end that it gives";
            let stale = Damage { file: crate::superblock::name(), offset: 0, what };
            self.found.damage.push(stale.clone());
            self.found.lost.push(stale);
        } else if let Some(end) = superblock.clean {
            self.meet(end.chain, end.lsn, &name, end.offset);
        }
        if let Some(suspect) = self.suspect.take() {
            self.found.lost.push(suspect);
        }
    }
}
