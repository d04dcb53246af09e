//! The sums of a manifest against the state that its tables give.

use super::Catalog;
use crate::frame::{self, Kind};
use crate::manifest::{Manifest, Sums};
use crate::problem::{ProblemKind, Problems};
use crate::seal::FooterEntry;
use crate::segment::Lane;
use std::collections::BTreeMap;

/// Compares what a recount of the tables can know.
pub(super) fn check(catalog: &Catalog, manifest: &Manifest, problems: &mut Problems) {
    let Some(sums) = manifest.sums else { return };
    if problems.0.iter().any(|problem| problem.kind == ProblemKind::Table) {
        // What a damaged table had is not there to be counted.
        return;
    }
    let referenced = || catalog.chunks.values().filter(|chunk| chunk.references > 0);
    let chunks = || referenced().filter(|chunk| chunk.kind == Kind::Chunk);
    let counted = Sums {
        artifacts: catalog.artifacts.len() as u64,
        artifact_bytes: catalog.artifacts.values().map(|artifact| artifact.size).sum(),
        blobs: catalog.blobs.len() as u64,
        chunks: chunks().count() as u64,
        chunk_bytes: chunks().map(|chunk| u64::from(chunk.raw)).sum(),
        frame_bytes: referenced().map(|chunk| frame::HEADER + u64::from(chunk.stored).next_multiple_of(64)).sum(),
        ..sums
    };
    if counted != sums {
        problems.catalog(ProblemKind::Sums, "the sums of the manifest are not those of its tables");
    }
}

/// Compares the bytes of the frames in log segments before the replay segment. Every segment was walked.
pub(super) fn check_log(
    manifest: &Manifest,
    replay: u64,
    frames: &BTreeMap<(u64, u64), FooterEntry>,
    problems: &mut Problems,
) {
    // What is damaged is not there to be counted; a superblock that a crash left half written is no damage of frames.
    if problems.0.iter().any(|problem| problem.kind != ProblemKind::Copy) {
        return;
    }
    let Some(sums) = manifest.sums else { return };
    let log = manifest.segments.iter().filter(|segment| segment.lane == Lane::Log && segment.id != replay);
    let of_segment = |id: u64| frames.range((id, 0)..=(id, u64::MAX)).map(|(_, frame)| frame.stored);
    let bytes: u64 = log
        .flat_map(|segment| of_segment(segment.id))
        .map(|stored| frame::HEADER + u64::from(stored).next_multiple_of(64))
        .sum();
    if bytes != sums.log_frame_bytes {
        problems.catalog(ProblemKind::Sums, "the frames of older log segments are not those that the manifest counts");
    }
}
