//! Recounts references from artifacts, blobs, uploads and pages, and compares: the end of section 12 of `FORMAT.md`.

use super::StoreImage;
use crate::Id32;
use crate::derive::hex;
use crate::keyspace::ZeroKey;
use crate::problem::{ProblemKind, Problems};
use crate::recipe::Page;
use std::collections::{BTreeMap, BTreeSet};

/// References by occurrence.
#[derive(Default)]
pub(super) struct Recount {
    blobs: BTreeMap<Id32, u64>,
    chunks: BTreeMap<Id32, u64>,
}

impl Recount {
    /// The references that records hold; pages are added one by one.
    pub(super) fn of_records(image: &StoreImage<'_>) -> Self {
        let mut count = Self::default();
        for artifact in image.catalog.artifacts.values() {
            if let Some(key) = image.blob_key(artifact) {
                *count.blobs.entry(key).or_default() += 1;
            }
        }
        for blob in image.catalog.blobs.values().filter(|blob| blob.root != [0; 32]) {
            count.chunk(&blob.root);
        }
        for upload in image.catalog.uploads.values() {
            upload.entries().for_each(|entry| count.chunk(&entry.id));
        }
        count
    }

    pub(super) fn page(&mut self, page: &Page) {
        page.entries.iter().for_each(|entry| self.chunk(&entry.id));
    }

    fn chunk(&mut self, id: &Id32) {
        *self.chunks.entry(*id).or_default() += 1;
    }

    pub(super) fn compare(&self, image: &StoreImage<'_>, problems: &mut Problems) {
        let catalog = &image.catalog;
        let blobs = catalog.blobs.iter().map(|(key, blob)| (*key, blob.references)).collect();
        let chunks = catalog.chunks.iter().map(|(key, chunk)| (*key, chunk.references)).collect();
        compare("blob", &self.blobs, &blobs, problems);
        compare("chunk or page", &self.chunks, &chunks, problems);
        let zero_of = |counts: &BTreeMap<Id32, u64>, kind: fn(Id32) -> ZeroKey| -> BTreeSet<ZeroKey> {
            counts.iter().filter(|(_, references)| **references == 0).map(|(id, _)| kind(*id)).collect()
        };
        let mut zero = zero_of(&blobs, ZeroKey::Blob);
        zero.extend(zero_of(&chunks, ZeroKey::Chunk));
        for key in zero.symmetric_difference(&catalog.zero) {
            let (ZeroKey::Chunk(id) | ZeroKey::Blob(id)) = key;
            let what =
                if zero.contains(key) { "without references, not in zero" } else { "in zero, with references or gone" };
            problems.catalog(ProblemKind::Index, format!("{}: {what}", hex(id)));
        }
    }
}

fn compare(kind: &str, counted: &BTreeMap<Id32, u64>, recorded: &BTreeMap<Id32, u64>, problems: &mut Problems) {
    for (id, references) in recorded {
        let count = counted.get(id).copied().unwrap_or(0);
        if count != *references {
            let what = format!("{kind} {}: has {references} references by its entry, {count} by recount", hex(id));
            problems.catalog(ProblemKind::References, what);
        }
    }
    for (id, count) in counted.iter().filter(|(id, _)| !recorded.contains_key(*id)) {
        let what = format!("{kind} {}: {count} references to it, and no entry", hex(id));
        problems.catalog(ProblemKind::References, what);
    }
}
