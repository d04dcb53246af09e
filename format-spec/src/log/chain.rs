//! Finds the segments that make up the log: backwards from `log_head`, then forwards.
//!
//! It does not go through their commits.

use super::scan::{Found, scan};
use crate::Id16;
use crate::error::{Error, Result};
use crate::files::{FileName, Files, segment_name};
use crate::frame::{Kind, Rules};
use crate::limits;
use crate::problem::{ProblemKind, Problems};
use crate::seal::Seal;
use crate::segment::{Header, Lane};
use crate::superblock::Superblock;
use std::collections::BTreeSet;

/// A segment of the log.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    pub(crate) id: u64,
    pub(crate) epoch: Id16,
    /// None: missing or damaged.
    pub(crate) header: Option<Header>,
    /// Where the successor's header says that it ends.
    pub(crate) named_end: Option<u64>,
}

pub(crate) struct Finder<'a> {
    pub(crate) files: &'a dyn Files,
    pub(crate) superblock: &'a Superblock,
    pub(crate) problems: &'a mut Problems,
}

impl Finder<'_> {
    /// The log, from the replay segment on. Missing links are named, and left out where nothing is known of them.
    pub(crate) fn find(&mut self) -> Result<Vec<Link>> {
        let mut links = self.backwards()?;
        if self.superblock.log_end.is_none() {
            self.forwards(&mut links)?;
        }
        let ends: Vec<Option<u64>> = links.iter().skip(1).map(|next| Some(next.header?.predecessor?.end)).collect();
        for (link, end) in links.iter_mut().zip(ends) {
            link.named_end = end;
        }
        Ok(links)
    }

    fn backwards(&mut self) -> Result<Vec<Link>> {
        let replay = &self.superblock.replay;
        let mut links = Vec::new();
        let mut seen = BTreeSet::new();
        let mut next = (self.superblock.log_head, self.superblock.log_head_epoch);
        loop {
            let link = self.link(next.0, next.1)?;
            seen.insert(link.id);
            let header = link.header;
            let reached = link.id == replay.segment;
            if reached && link.epoch != replay.epoch {
                let what = "the log reaches the replay segment with another epoch than the superblock's";
                self.problems.add(ProblemKind::Chain, &segment_name(link.id), (0, 8_192), what);
            }
            links.push(link);
            let predecessor = header.and_then(|header| header.predecessor);
            match predecessor {
                _ if reached => break,
                Some(before) if !seen.contains(&before.id) => next = (before.id, before.epoch),
                _ => {
                    self.bridge(&mut links)?;
                    break;
                }
            }
        }
        links.reverse();
        Ok(links)
    }

    /// The way back is broken at the last of `links` (newest first): finds what can be found forwards from the replay segment.
    fn bridge(&mut self, links: &mut Vec<Link>) -> Result<()> {
        let mut found = Vec::new();
        let mut next = Some((self.superblock.replay.segment, self.superblock.replay.epoch));
        while let Some((id, epoch)) = next {
            let known = links.iter().chain(&found).any(|link| link.id == id);
            if known {
                break;
            }
            let link = self.link(id, epoch)?;
            next = match self.seal_of(id, epoch)? {
                Some(successor) => Some(successor),
                None => self.follower(id, epoch)?,
            };
            found.push(link);
        }
        found.reverse();
        links.append(&mut found);
        Ok(())
    }

    fn forwards(&mut self, links: &mut Vec<Link>) -> Result<()> {
        while let Some(last) = links.last() {
            let (id, epoch) = (last.id, last.epoch);
            let sealed = self.seal_of(id, epoch)?;
            let prepared = self.superblock.prepared.iter().map(|id| (*id, None));
            let candidates = sealed.map(|(id, epoch)| (id, Some(epoch))).into_iter().chain(prepared);
            let mut next = None;
            for (candidate, wanted) in candidates {
                let header = peek(self.files, candidate)?.filter(|header| {
                    header.uuid == self.superblock.uuid
                        && header.predecessor.is_some_and(|before| (before.id, before.epoch) == (id, epoch))
                        && wanted.is_none_or(|wanted| wanted == header.epoch)
                });
                if let Some(header) = header
                    && !links.iter().any(|link| link.id == candidate)
                {
                    next = Some((candidate, header.epoch));
                    break;
                }
            }
            let Some((id, epoch)) = next else { break };
            let link = self.link(id, epoch)?;
            links.push(link);
        }
        Ok(())
    }

    /// A segment that must be there.
    fn link(&mut self, id: u64, epoch: Id16) -> Result<Link> {
        let header = required_header(self.files, self.superblock, id, (epoch, Lane::Log), self.problems)?;
        Ok(Link { id, epoch, header, named_end: None })
    }

    /// The successor that the first valid seal of a segment names.
    fn seal_of(&self, id: u64, epoch: Id16) -> Result<Option<(u64, Id16)>> {
        let Some(bytes) = self.files.open(&segment_name(id))? else { return Ok(None) };
        let rules = rules(self.superblock, epoch, Lane::Log);
        let mut successor = None;
        scan(&*bytes, limits::FRAMES_START, bytes.len(), &rules, &mut |found| {
            if let Found::Frame(frame) = found
                && frame.header.kind == Kind::Seal
            {
                let seal = Seal::parse(&frame.payload, Lane::Log, frame.offset + 64).ok();
                successor = seal.and_then(|seal| seal.successor);
            }
            Ok(())
        })?;
        Ok(successor)
    }

    /// A segment whose header names this one as its predecessor.
    fn follower(&self, id: u64, epoch: Id16) -> Result<Option<(u64, Id16)>> {
        for name in self.files.names() {
            if let Some(FileName::Segment(candidate)) = FileName::parse(&name)
                && let Some(header) = peek(self.files, candidate)?
                && header.predecessor.is_some_and(|before| (before.id, before.epoch) == (id, epoch))
            {
                return Ok(Some((candidate, header.epoch)));
            }
        }
        Ok(None)
    }
}

/// What the frames of a segment of this store are checked against.
pub(crate) fn rules(superblock: &Superblock, epoch: Id16, lane: Lane) -> Rules {
    Rules { uuid: superblock.uuid, epoch, lane, chunk_max: superblock.chunk_max }
}

/// The header of a segment, if it is there and holds.
pub(crate) fn peek(files: &dyn Files, id: u64) -> Result<Option<Header>> {
    let Some(bytes) = files.open(&segment_name(id))? else { return Ok(None) };
    match Header::read(&*bytes, id) {
        Ok(headers) => Ok(Some(headers.header)),
        Err(error) if error.is_newer() => Err(error),
        Err(_) => Ok(None),
    }
}

/// The header of a segment that must be there with this epoch and lane; what is wrong with it is named.
pub(crate) fn required_header(
    files: &dyn Files,
    superblock: &Superblock,
    id: u64,
    (epoch, lane): (Id16, Lane),
    problems: &mut Problems,
) -> Result<Option<Header>> {
    let name = segment_name(id);
    let Some(bytes) = files.open(&name)? else {
        problems.add(ProblemKind::Missing, &name, (0, 0), "the segment is not there");
        return Ok(None);
    };
    let both = (0, limits::FRAMES_START);
    let headers = match Header::read(&*bytes, id) {
        Ok(headers) => headers,
        Err(error) if error.is_newer() => return Err(error),
        Err(error) => {
            problems.add(ProblemKind::Header, &name, both, error.to_string());
            return Ok(None);
        }
    };
    for (start, damage) in [0, limits::BLOCK].into_iter().zip(&headers.damaged) {
        if let Some(error) = damage {
            problems.add(ProblemKind::Copy, &name, (start, limits::BLOCK), error.to_string());
        }
    }
    let header = headers.header;
    if header.uuid != superblock.uuid || header.epoch != epoch || header.lane != lane {
        problems.add(
            ProblemKind::Header,
            &name,
            both,
            "a header of another store, epoch or lane than this segment has",
        );
        return Ok(None);
    }
    Ok(Some(header))
}

/// Whether an error must stop the reader instead of being named as damage.
pub(crate) fn stop_if_newer<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error @ Error::Newer(_)) => Err(error),
        Err(_) => Ok(None),
    }
}
