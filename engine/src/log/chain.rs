//! Finding the segments of the log: backwards from `log_head`, and forwards behind it (FORMAT.md section 10). Reads only.
//!
//! It does not know frames, but for those that are witnesses of where a segment ends.

use std::collections::BTreeSet;

use super::{
    replay::{Damage, Found, Link},
    witness,
};
use crate::{
    disk::{self, Disk, File, OpenOptions},
    error::{Error, Kind, Result},
    format::{manifest::Lane, segment_header::SegmentHeader, superblock::Superblock},
    ids::{FileId, Lsn},
    limits::FRAMES_START,
    segment,
};

/// Finding segments.
pub(super) struct Chain<'a> {
    pub(super) disk: &'a dyn Disk,
    pub(super) superblock: &'a Superblock,
    /// Damage of headers, and gaps.
    pub(super) damage: Vec<Damage>,
    /// Gaps.
    pub(super) lost: Vec<Damage>,
}

impl Chain<'_> {
    /// From `log_head` back to the replay segment, in the order of the log. A segment that is missing, or whose header is, is a gap:
    /// it is named, and the chain goes on with the newest one before it.
    pub(super) fn backwards(&mut self) -> Result<Vec<Link>> {
        let mut links: Vec<Link> = Vec::new();
        let (mut id, mut epoch) = self.superblock.log_head;
        let mut seen = BTreeSet::new();
        loop {
            let link = if let Some(link) = self.open(id)?.filter(|link| link.header.epoch == epoch && seen.insert(id)) {
                Some(link)
            } else {
                self.gap(id);
                self.newest_before(links.last().map_or(Lsn(u64::MAX), |l| l.header.first_lsn))?
            };
            let Some(mut link) = link else { break };
            let successor = links.last().and_then(|next| next.header.predecessor);
            link.named_end =
                successor.filter(|p| p.id == link.header.id && p.epoch == link.header.epoch).map(|p| p.end);
            let (this, predecessor) = (link.header.id, link.header.predecessor);
            links.push(link);
            match predecessor {
                Some(p) if this != self.superblock.replay.segment => (id, epoch) = (p.id, p.epoch),
                _ => break,
            }
        }
        let replay = self.superblock.replay.segment;
        let name = segment::name(replay);
        if links.last().is_none_or(|first| first.header.id != replay) && self.lost.iter().all(|gap| gap.file != name) {
            // It is missing beside the one that would have named it.
            self.gap(replay);
        }
        links.reverse();
        Ok(links)
    }

    /// True of a segment whose commits are all in the tables: their edits must not be made again over what came later.
    pub(super) fn is_before_replay(&self, header: &SegmentHeader) -> bool {
        header.id != self.superblock.replay.segment && header.first_lsn < self.superblock.replay.lsn
    }

    fn gap(&mut self, id: FileId) {
        let gap = Damage { file: segment::name(id), offset: 0, what: "a log segment is missing" };
        self.lost.push(gap.clone());
        self.damage.push(gap);
    }

    /// A log segment with a valid header; `None` if there is none of that id. Damaged copies are noted.
    fn open(&mut self, id: FileId) -> Result<Option<Link>> {
        let file = match segment::open(self.disk, id, OpenOptions::READ) {
            Ok(file) => file,
            Err(e) if e.kind() == Kind::Corrupt => return Ok(None),
            Err(e) => return Err(e),
        };
        let name = segment::name(id);
        let read = segment::read_header(&*file, self.superblock.uuid, id)?;
        let Some(header) = read.header.filter(|h| h.lane == Lane::Log) else { return Ok(None) };
        self.damage.extend(read.damaged.iter().map(|(offset, bad)| Damage {
            file: name.clone(),
            offset: *offset,
            what: bad.what,
        }));
        let len = disk::retry(|| file.len()).map_err(|e| Error::io(e, &name, "read a length"))?;
        Ok(Some(Link { header, name, len, end: FRAMES_START, seal: None, start: FRAMES_START, named_end: None }))
    }

    /// The newest log segment that began before an LSN: where the chain goes on behind a gap.
    fn newest_before(&mut self, lsn: Lsn) -> Result<Option<Link>> {
        let listing = disk::retry(|| self.disk.list()).map_err(|e| Error::io(e, ".", "list the store"))?;
        let mut newest: Option<Link> = None;
        for id in listing.names.iter().filter_map(|name| segment::parse_name(name, "segment-")) {
            if let Some(link) = self.open(id)?
                && link.header.first_lsn < lsn
                && newest.as_ref().is_none_or(|n| n.header.first_lsn < link.header.first_lsn)
            {
                newest = Some(link);
            }
        }
        Ok(newest)
    }

    /// How far a segment whose successor is not known was synced, and the successor, if it has one after all.
    pub(super) fn newest_end(
        &mut self,
        link: &Link,
        file: &dyn File,
        found: &mut Found,
    ) -> Result<(u64, Option<Link>)> {
        let is_head = link.header.id == self.superblock.log_head.0;
        if let Some(end) = self.superblock.clean.filter(|_| is_head) {
            return Ok((end.offset, None));
        }
        for id in self.superblock.prepared.clone() {
            if let Some(successor) = self.successor(link, id)? {
                return Ok((FRAMES_START, Some(successor)));
            }
        }
        let witness = witness::highest(file, &link.name, link.salt(), link.header.id, link.len)?;
        let Some((id, epoch)) = witness.seal.and_then(|seal| seal.successor) else { return Ok((witness.synced, None)) };
        match segment::open(self.disk, id, OpenOptions::READ) {
            Ok(_) => {}
            Err(e) if e.kind() == Kind::Corrupt => {
                let gap =
                    Damage { file: segment::name(id), offset: 0, what: "a seal names a successor that is missing" };
                found.lost.push(gap.clone());
                found.damage.push(gap);
                return Ok((witness.synced, None));
            }
            Err(e) => return Err(e),
        }
        let successor = self.successor(link, id)?.filter(|s| s.header.epoch == epoch);
        found.damage.append(&mut self.damage);
        Ok((witness.synced, successor))
    }

    /// The segment of this id, if its header names `link` as what stands before it.
    fn successor(&mut self, link: &Link, id: FileId) -> Result<Option<Link>> {
        // A torn header of a file that nothing rests on yet is no damage.
        let noted = self.damage.len();
        let successor = self.open(id)?;
        self.damage.truncate(noted);
        Ok(successor
            .filter(|s| s.header.predecessor.is_some_and(|p| p.id == link.header.id && p.epoch == link.header.epoch)))
    }
}
