//! The files beside the log: segments of the manifest and of the segment keyspace, prepared files, reserves, ceilings.
//!
//! It does not know what chunks and records are for.

use super::Catalog;
use crate::Id16;
use crate::bytes::first_nonzero;
use crate::error::Result;
use crate::files::{Files, reserve_name, segment_name};
use crate::log::Log;
use crate::log::walk::Walk;
use crate::manifest::Manifest;
use crate::problem::{ProblemKind, Problems};
use crate::seal::FooterEntry;
use crate::segment::Lane;
use crate::superblock::Superblock;
use std::collections::BTreeMap;

pub(super) struct Medium<'a> {
    pub(super) files: &'a dyn Files,
    pub(super) superblock: &'a Superblock,
    pub(super) manifest: &'a Manifest,
    pub(super) log: &'a Log,
    pub(super) catalog: &'a Catalog,
}

/// What is known of a segment outside the log.
struct Known {
    epoch: Id16,
    lane: Lane,
    /// Up to where it is relied on.
    relied: u64,
    sealed: bool,
    /// Where the manifest says that it ends.
    end: Option<u64>,
}

impl Medium<'_> {
    pub(super) fn check(&self, problems: &mut Problems, frames: &mut BTreeMap<(u64, u64), FooterEntry>) -> Result<()> {
        for (id, known) in self.segments(problems) {
            let mut replay = Catalog::default();
            let mut walk = Walk::new(self.files, self.superblock, problems, frames, &mut replay);
            let end = walk.other(id, (known.epoch, known.lane), known.relied, known.sealed)?;
            if known.end.is_some() && end.is_some() && known.end != end {
                let place = (end.unwrap_or(0), 0);
                problems.add(
                    ProblemKind::Segment,
                    &segment_name(id),
                    place,
                    "ends at another place than the manifest says",
                );
            }
        }
        self.zeros(problems)?;
        self.ceilings(problems);
        Ok(())
    }

    /// The segments that are no part of the log; those of the manifest that are, are compared with it.
    fn segments(&self, problems: &mut Problems) -> BTreeMap<u64, Known> {
        let mut known = BTreeMap::new();
        for segment in &self.manifest.segments {
            if let Some(walked) = self.log.segments.iter().find(|walked| walked.id == segment.id) {
                let end_holds = segment.sealed_end.is_none_or(|end| end == walked.end);
                if segment.lane != Lane::Log || segment.epoch != walked.epoch || !end_holds {
                    let what = "the manifest has another lane, epoch or end than the log";
                    problems.add(ProblemKind::Segment, &segment_name(segment.id), (walked.end, 0), what);
                }
                continue;
            }
            let log = segment.lane == Lane::Log;
            if log && segment.sealed_end.is_none() {
                let what = "active in the log lane by the manifest, and no part of the log";
                problems.add(ProblemKind::Segment, &segment_name(segment.id), (0, 0), what);
                continue;
            }
            let relied = match segment.sealed_end {
                Some(end) if log => end,
                Some(_) => u64::MAX,
                None => 0,
            };
            let sealed = segment.sealed_end.is_some() && !log;
            let (epoch, lane, end) = (segment.epoch, segment.lane, segment.sealed_end);
            known.insert(segment.id, Known { epoch, lane, relied, sealed, end });
        }
        for (id, bulk) in &self.catalog.segments {
            let relied = if bulk.sealed { u64::MAX } else { bulk.end };
            let new = Known { epoch: bulk.epoch, lane: Lane::Bulk, relied, sealed: bulk.sealed, end: None };
            let entry = known.entry(*id).or_insert(new);
            if entry.epoch != bulk.epoch || entry.lane != Lane::Bulk || self.in_log(*id) {
                let what = format!("segment {id}: another epoch or lane than the manifest or the log has");
                problems.catalog(ProblemKind::Segment, what);
            }
            entry.relied = entry.relied.max(relied);
            entry.sealed |= bulk.sealed;
        }
        known
    }

    fn in_log(&self, id: u64) -> bool {
        self.log.segments.iter().any(|segment| segment.id == id)
    }

    /// Reserves are zeros always; prepared files are while the store is clean. After a crash one may be the log's last segment, or hold
    /// a header that did not come to its end.
    fn zeros(&self, problems: &mut Problems) -> Result<()> {
        let clean = self.superblock.log_end.is_some();
        let reserves = self.superblock.reserve.iter().map(|id| (reserve_name(*id), true, clean));
        let prepared = self.superblock.prepared.iter().filter(|id| !self.in_log(**id));
        let prepared = prepared.map(|id| (segment_name(*id), clean, true));
        for (name, zeros, there) in reserves.chain(prepared) {
            let Some(bytes) = self.files.open(&name)? else {
                if there {
                    problems.add(ProblemKind::Missing, &name, (0, 0), "named by the superblock, not there");
                }
                continue;
            };
            if zeros && let Some(at) = first_nonzero(&*bytes, 0, bytes.len())? {
                problems.add(ProblemKind::NotZero, &name, (at, 1), "a byte of a file of zeros");
            }
        }
        if clean {
            for id in self.superblock.prepared.iter().filter(|id| self.in_log(**id)) {
                problems.add(
                    ProblemKind::Segment,
                    &segment_name(*id),
                    (0, 0),
                    "prepared by the superblock, and in the log",
                );
            }
        }
        Ok(())
    }

    fn ceilings(&self, problems: &mut Problems) {
        let superblock = self.superblock;
        let ids = (self.log.segments.iter().map(|segment| segment.id))
            .chain(self.manifest.segments.iter().map(|segment| segment.id))
            .chain(self.catalog.segments.keys().copied())
            .chain(self.manifest.tables.iter().map(|table| table.id))
            .chain(superblock.prepared.iter().copied())
            .chain(superblock.reserve.iter().copied())
            .chain([superblock.log_head, superblock.replay.segment]);
        let mut over = |what: &str, offset| problems.add(ProblemKind::Ceiling, "superblock", (offset, 0), what);
        if ids.max().is_some_and(|id| id >= superblock.ceiling_files) {
            over("a file id in use is not below the ceiling", 336);
        }
        if superblock.manifest_generation >= superblock.ceiling_generations {
            over("the generation in use is not below the ceiling", 344);
        }
        let tenants = (self.manifest.tenants.iter().map(|tenant| tenant.number))
            .chain(self.catalog.tenants.values().map(|tenant| tenant.number));
        if tenants.max().is_some_and(|number| number >= superblock.ceiling_tenants) {
            over("a tenant number in use is not below the ceiling", 352);
        }
    }
}
