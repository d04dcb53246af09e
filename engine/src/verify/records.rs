//! Records against each other and against the recipes: every artifact has its blob, every blob its chunks, every index its record.

use std::collections::{BTreeMap, BTreeSet};

use super::Run;
use crate::{
    catalog::State as _,
    error::{Error, Kind, Result},
    format::{
        artifact::Artifact,
        frame::FrameKind,
        keyspace::{Keyspace, zero_chunk_key},
        page::Page,
        value::{BlobValue, ChunkValue},
    },
    ids::{ArtifactId, ChunkId, TenantNumber},
    recovery::Problem,
    segment,
};

type Each<'a, S> = &'a mut dyn FnMut(&mut S, &[u8], &[u8]) -> Result<()>;
type EachBlob<'a, S> = &'a mut dyn FnMut(&mut S, &[u8], BlobValue) -> Result<()>;

/// Pages and chunks of recipes that were walked, so that what many blobs share is looked at once.
#[derive(Default)]
struct Walked {
    good: BTreeMap<ChunkId, u64>,
}

impl Run<'_> {
    pub(super) fn records(&mut self) -> Result<()> {
        let mut walked = Walked::default();
        let mut hashed = BTreeSet::new();
        self.each(Keyspace::Artifact, &mut |run, _, value| {
            let artifact = Artifact::decode(value).map_err(|bad| Error::new(Kind::Corrupt, bad.what))?;
            run.artifact(&artifact, &mut walked, &mut hashed)
        })?;
        self.each(Keyspace::ByOwner, &mut |run, key, value| {
            let known = <[u8; 16]>::try_from(value).ok().zip(key.get(..20)).is_some_and(|(id, account)| {
                let record = [account, &id[..]].concat();
                run.catalog.read().get(Keyspace::Artifact, &record).is_ok_and(|record| record.is_some())
            });
            if !known {
                run.inconsistent("an owner's list names an artifact without a record", None);
            }
            Ok(())
        })?;
        self.each(Keyspace::Chunk, &mut |run, key, value| {
            let chunk = ChunkValue::decode(value).map_err(|bad| Error::new(Kind::Corrupt, bad.what))?;
            let id = ChunkId(key.try_into().map_err(|_| Error::new(Kind::Corrupt, "chunk key"))?);
            let listed = run.catalog.read().get(Keyspace::Zero, &zero_chunk_key(id))?.is_some();
            if listed != (chunk.references == 0) && run.rebuilt.report.read_only.is_none() {
                run.inconsistent("a chunk without references is not listed as such, or one with references is", None);
            }
            Ok(())
        })
    }

    /// Calls for each entry of a keyspace, holding the catalog for one page at a time.
    pub(super) fn each(&mut self, keyspace: Keyspace, call: Each<'_, Self>) -> Result<()> {
        let mut after: Option<Vec<u8>> = None;
        loop {
            let page = self.catalog.read().scan(keyspace, &[], after.as_deref(), 1000)?;
            for (key, value) in &page {
                call(self, key, value)?;
            }
            match page.into_iter().next_back() {
                Some((key, _)) => after = Some(key),
                None => return Ok(()),
            }
        }
    }

    /// Records that contradict each other while every checksum is good.
    pub(super) fn inconsistent(&mut self, what: &str, artifact: Option<ArtifactId>) {
        self.report.problems.push(Problem {
            kind: Kind::Corrupt,
            what: what.to_owned(),
            file: None,
            offset: None,
            artifact,
        });
    }

    fn artifact(&mut self, artifact: &Artifact, walked: &mut Walked, hashed: &mut BTreeSet<ChunkId>) -> Result<()> {
        let keys = self.door.keys(artifact.account.tenant)?;
        let blob = self.catalog.read().blob(keys.blob(artifact.sha256, artifact.size))?;
        let lossy = self.rebuilt.report.read_only.is_some();
        if !lossy && !blob.is_some_and(|b| b.root == artifact.blob_root && b.size == artifact.size) {
            self.inconsistent("an artifact without its blob", Some(artifact.id));
        }
        let listed = artifact.account.owner_key(artifact.owner, artifact.place);
        if !lossy && self.catalog.read().get(Keyspace::ByOwner, &listed)?.is_none() {
            self.inconsistent("an artifact that its owner's list lacks", Some(artifact.id));
        }
        if artifact.size == 0 {
            return Ok(());
        }
        let before = self.report.problems.len();
        let len = self.walk(artifact.account.tenant, artifact.blob_root, None, walked, artifact.id)?;
        let whole = self.report.problems.len() == before;
        if whole && len != Some(artifact.size) {
            self.inconsistent("a recipe of another length than the artifact", Some(artifact.id));
        } else if whole && self.deep && hashed.insert(artifact.blob_root) {
            self.hash(artifact)?;
        }
        Ok(())
    }

    /// Walks a recipe below `id` and gives its length; damaged places are reported for the artifact. Depth is bounded by the level that
    /// the parent asks for.
    fn walk(
        &mut self,
        tenant: TenantNumber,
        id: ChunkId,
        level: Option<u8>,
        walked: &mut Walked,
        artifact: ArtifactId,
    ) -> Result<Option<u64>> {
        if let Some(len) = walked.good.get(&id) {
            return Ok(Some(*len));
        }
        let Some(chunk) = self.catalog.read().chunk(id)? else {
            self.inconsistent("a recipe names a chunk that the catalog lacks", Some(artifact));
            return Ok(None);
        };
        if let Some(what) = self.damaged.get(&chunk.location).copied() {
            self.damage_of(&chunk, what, artifact);
            return Ok(None);
        }
        let len = if chunk.kind == FrameKind::Chunk {
            Some(u64::from(chunk.raw))
        } else {
            match self.reader.chunk(tenant, id).map(|(_, bytes)| Page::decode(&bytes)) {
                Ok(Ok(page)) if level.is_none_or(|level| page.level == level) => {
                    self.entries(tenant, &page, walked, artifact)?
                }
                Ok(_) => {
                    self.damage_of(&chunk, "a recipe page that is not one", artifact);
                    None
                }
                Err(e) if e.kind() == Kind::Corrupt => {
                    self.damage_of(&chunk, "a damaged recipe page", artifact);
                    None
                }
                Err(e) => return Err(e),
            }
        };
        if let Some(len) = len {
            walked.good.insert(id, len);
        }
        Ok(len)
    }

    fn entries(
        &mut self,
        tenant: TenantNumber,
        page: &Page,
        walked: &mut Walked,
        artifact: ArtifactId,
    ) -> Result<Option<u64>> {
        let mut whole = true;
        for entry in &page.entries {
            let below = page.level.checked_sub(1);
            let chunk = self.catalog.read().chunk(entry.id)?;
            let len = match (below, chunk) {
                (None, Some(chunk)) if chunk.kind != FrameKind::Chunk => None,
                _ => self.walk(tenant, entry.id, below, walked, artifact)?,
            };
            whole &= len == Some(entry.len);
        }
        Ok(whole.then(|| page.total()))
    }

    fn damage_of(&mut self, chunk: &ChunkValue, what: &str, artifact: ArtifactId) {
        let name = segment::name(chunk.location.segment);
        let damage = Problem::damage(&name, chunk.location.offset, what);
        self.report.problems.push(Problem { artifact: Some(artifact), ..damage });
    }

    /// The blob records.
    pub(super) fn each_blob(&mut self, call: EachBlob<'_, Self>) -> Result<()> {
        self.each(Keyspace::Blob, &mut |run, key, value| {
            let blob = BlobValue::decode(value).map_err(|bad| Error::new(Kind::Corrupt, bad.what))?;
            call(run, key, blob)
        })
    }

    /// The chunk and page records.
    pub(super) fn each_chunk(
        &mut self,
        call: &mut dyn FnMut(&mut Self, ChunkId, ChunkValue) -> Result<()>,
    ) -> Result<()> {
        self.each(Keyspace::Chunk, &mut |run, key, value| {
            let chunk = ChunkValue::decode(value).map_err(|bad| Error::new(Kind::Corrupt, bad.what))?;
            let id = ChunkId(key.try_into().map_err(|_| Error::new(Kind::Corrupt, "chunk key"))?);
            call(run, id, chunk)
        })
    }

    /// Artifact and upload records.
    pub(super) fn each_record(
        &mut self,
        keyspace: Keyspace,
        call: &mut dyn FnMut(&mut Self, &[u8]) -> Result<()>,
    ) -> Result<()> {
        self.each(keyspace, &mut |run, _, value| call(run, value))
    }
}
