//! The sums of a manifest against the state that its tables give.

use super::Catalog;
use crate::frame::{self, Kind};
use crate::manifest::{Manifest, Sums};
use crate::problem::{ProblemKind, Problems};

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
