//! A recount of references from artifacts, uploads and recipes.

use std::collections::BTreeMap;

use super::Run;
use crate::{
    error::{Error, Kind, Result},
    format::{artifact::Artifact, frame::FrameKind, keyspace::Keyspace, page::Page, upload::Upload},
    ids::{BlobKey, ChunkId},
};

impl Run<'_> {
    /// Counts direct parents by occurrence and compares. Memory: 40 bytes a chunk and blob.
    pub(super) fn references(&mut self) -> Result<()> {
        if self.rebuilt.report.read_only.is_some() {
            // Commits are lost, and with them references: there is nothing to compare with.
            return Ok(());
        }
        let mut blobs: BTreeMap<BlobKey, u64> = BTreeMap::new();
        let mut chunks: BTreeMap<ChunkId, u64> = BTreeMap::new();
        let bad = |bad: crate::format::Bad| Error::new(Kind::Corrupt, bad.what);
        self.each_record(Keyspace::Artifact, &mut |run, value| {
            let artifact = Artifact::decode(value).map_err(bad)?;
            let key = run.door.keys(artifact.account.tenant)?.blob(artifact.sha256, artifact.size);
            *blobs.entry(key).or_default() += 1;
            Ok(())
        })?;
        self.each_record(Keyspace::Upload, &mut |_, value| {
            for entry in Upload::decode(value).map_err(bad)?.held() {
                *chunks.entry(entry.id).or_default() += 1;
            }
            Ok(())
        })?;
        self.each_blob(&mut |run, key, blob| {
            let key = BlobKey(key.try_into().map_err(|_| Error::new(Kind::Corrupt, "blob key"))?);
            if blobs.get(&key).copied().unwrap_or(0) != blob.references {
                run.inconsistent("a blob whose references are not those of its artifacts", None);
            }
            if !blob.root.is_zero() {
                *chunks.entry(blob.root).or_default() += 1;
            }
            Ok(())
        })?;
        let mut unread = false;
        self.each_chunk(&mut |run, id, chunk| {
            if chunk.kind != FrameKind::Page {
                return Ok(());
            }
            match run.reader.chunk(chunk.tenant, id).map(|(_, bytes)| Page::decode(&bytes)) {
                Ok(Ok(page)) => page.entries.iter().for_each(|e| *chunks.entry(e.id).or_default() += 1),
                Err(e) if e.kind() != Kind::Corrupt => return Err(e),
                // A damaged page was named already; what it refers to cannot be counted.
                Ok(Err(_)) | Err(_) => unread = true,
            }
            Ok(())
        })?;
        self.each_chunk(&mut |run, id, chunk| {
            if !unread && chunks.get(&id).copied().unwrap_or(0) != chunk.references {
                run.inconsistent("a chunk whose references are not those of its parents", None);
            }
            Ok(())
        })
    }
}
