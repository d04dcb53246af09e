//! The public handle. It composes the floors below and holds no rules.

use std::{io, path::Path};

use bytes::Bytes;

use crate::{
    catalog::{Published, State as _},
    checkpoint::{Checkpointed, Checkpointer},
    clock::{Clock, OsClock},
    commit::{Commit, Request},
    disk::{Disk, LockGuard, os::OsDisk},
    entropy::{Entropy, OsEntropy},
    error::{Error, Kind, Result},
    format::{
        artifact::Artifact,
        keyspace::{AccountRef, Keyspace, ListPlace, Owner, OwnerKind},
        superblock::Superblock,
    },
    health::Health,
    ids::{ArtifactId, Sha256, StoreUuid, Time},
    ingest::{Ingest, Put, PutReply},
    limits::LIST_PAGE_MAX,
    ownership::{AccountScope, Door, artifact::is_readable},
    read::Reader,
    recovery::OpenReport,
    segment::Segments,
    sync::Arc,
    verify::{self, VerifyOptions, VerifyReport},
};

mod info;
mod open;
mod options;
mod stats;
#[cfg(test)]
mod tests;

pub use info::{ArtifactInfo, ArtifactState, Cursor, ListPage};
pub use options::{Get, InitOptions, OpenMode, OpenOptions};
pub use stats::Stats;

/// Everything through which a store reaches the world.
#[derive(Clone)]
pub struct World {
    /// Files.
    pub disk: Arc<dyn Disk>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub entropy: Arc<dyn Entropy>,
}

impl World {
    /// An existing directory of the operating system, its clock and its randomness.
    pub fn os(directory: &Path) -> io::Result<Self> {
        Ok(Self { disk: Arc::new(OsDisk::open(directory)?), clock: Arc::new(OsClock), entropy: Arc::new(OsEntropy) })
    }
}

/// An open store. Use it from as many threads as you like.
///
/// [`close`](Self::close) leaves it clean; dropping it is like a crash, from which the next open recovers.
pub struct Store {
    world: World,
    superblock: Superblock,
    door: Arc<Door>,
    reader: Reader,
    published: Arc<Published>,
    segments: Arc<Segments>,
    health: Arc<Health>,
    report: OpenReport,
    opened_hw: Time,
    log_content: u64,
    writing: Option<Writing>,
    // Unlocks last: whoever waits for the lock must find everything else closed.
    _lock: Box<dyn LockGuard>,
}

/// What a store has that takes writes.
struct Writing {
    commit: Arc<Commit>,
    ingest: Ingest,
    checkpointer: Arc<Checkpointer>,
}

impl Store {
    /// The store's uuid.
    pub const fn uuid(&self) -> StoreUuid {
        self.superblock.uuid
    }

    /// What the open found and did.
    pub const fn report(&self) -> &OpenReport {
        &self.report
    }

    /// Stores the bytes of `source` as a new artifact of the account. They are durable when this returns; on any error nothing of
    /// them can be seen.
    pub fn put(&self, put: &Put<'_>, source: &mut dyn io::Read) -> Result<PutReply> {
        self.writing()?.ingest.put(put, source)
    }

    /// One artifact's record. `NOT_FOUND`: there is none; where commits are lost it is `CORRUPT` instead, since it may have been in
    /// one of them.
    pub fn stat(&self, scope: &AccountScope<'_>, id: ArtifactId) -> Result<ArtifactInfo> {
        let artifact = self.record(&self.account(scope)?, id)?;
        self.info(scope, artifact)
    }

    /// Up to `limit` (at most 1,000) readable artifacts that the account owns, in the order in which they came, behind `after`.
    /// Holds the catalog for one page only.
    pub fn list(&self, scope: &AccountScope<'_>, after: Option<Cursor>, limit: usize) -> Result<ListPage> {
        let account = self.account(scope)?;
        let owner = Owner { kind: OwnerKind::Account, id: account.account.0 };
        let limit = limit.clamp(1, LIST_PAGE_MAX);
        let mut page = ListPage::default();
        let mut after = after.map(|c| account.owner_key(owner, c.0));
        loop {
            let entries =
                self.published.read().scan(Keyspace::ByOwner, &account.owner_prefix(owner), after.as_deref(), limit)?;
            for (key, id) in &entries {
                let id =
                    ArtifactId(id.as_slice().try_into().map_err(|_| Error::new(Kind::Corrupt, "owner index value"))?);
                let info = self.info(scope, self.record(&account, id)?)?;
                if info.state == ArtifactState::Owned {
                    page.artifacts.push(info);
                }
                let place = ListPlace::from_owner_key(key).map_err(|bad| Error::new(Kind::Corrupt, bad.what))?;
                page.next = Some(Cursor(place));
                if page.artifacts.len() == limit {
                    return Ok(page);
                }
            }
            if entries.len() < limit {
                page.next = None;
                return Ok(page);
            }
            after = entries.last().map(|(key, _)| key.clone());
        }
    }

    /// Where an artifact stands in its owner's list, to go on behind it.
    pub fn cursor(&self, scope: &AccountScope<'_>, id: ArtifactId) -> Result<Cursor> {
        Ok(Cursor(self.record(&self.account(scope)?, id)?.place))
    }

    /// Writes an artifact's verified bytes to `sink`. Whole reads of at most 16 MiB are verified before the first byte leaves; longer
    /// ones, and ranges, chunk by chunk.
    pub fn get(
        &self,
        scope: &AccountScope<'_>,
        id: ArtifactId,
        get: &Get,
        sink: &mut dyn io::Write,
    ) -> Result<ArtifactInfo> {
        let (artifact, info) = self.readable(scope, id, get)?;
        self.reader.write_to(&artifact, get.range.clone(), sink)?;
        Ok(info)
    }

    /// The same for a caller that keeps the bytes or sends them on: gives them as they were read and verified, without a copy, in pieces of
    /// at most a chunk. An error of `take` ends the read. Up to 1 MiB of memory hangs on each piece that is kept.
    pub fn get_bytes(
        &self,
        scope: &AccountScope<'_>,
        id: ArtifactId,
        get: &Get,
        take: &mut dyn FnMut(Bytes) -> Result<()>,
    ) -> Result<ArtifactInfo> {
        let (artifact, info) = self.readable(scope, id, get)?;
        self.reader.read(&artifact, get.range.clone(), &mut |piece| take(piece.bytes))?;
        Ok(info)
    }

    /// The record of a read.
    fn readable(&self, scope: &AccountScope<'_>, id: ArtifactId, get: &Get) -> Result<(Artifact, ArtifactInfo)> {
        let artifact = self.record(&self.account(scope)?, id)?;
        let info = self.info(scope, artifact.clone())?;
        if info.state == ArtifactState::Expired {
            return Err(Error::new(Kind::Gone, "the artifact has expired").of_artifact(id));
        }
        if get.expect_sha256.is_some_and(|expected| expected != artifact.sha256) {
            return Err(Error::new(Kind::DigestMismatch, "the artifact has another SHA-256").of_artifact(id));
        }
        Ok((artifact, info))
    }

    /// Checks the store in a directory that no writer has open; see [`crate::verify`]. `progress` gets bytes done and bytes to do.
    pub fn verify(world: &World, options: &VerifyOptions, progress: &mut dyn FnMut(u64, u64)) -> Result<VerifyReport> {
        verify::verify(&world.disk, options, progress)
    }

    /// Writes what the log has brought since the last checkpoint as tables, so that the next open replays nothing of it. A store makes
    /// checkpoints by itself; see [`crate::CheckpointTuning`].
    pub fn checkpoint(&self) -> Result<Checkpointed> {
        let writing = self.writing()?;
        writing.checkpointer.run(&writing.commit)
    }

    /// Leaves the store clean: everything synced, and the superblock says where the log ends. A store that takes no
    /// writes any more says so; one that was open for reading has nothing to do.
    pub fn close(self) -> Result<()> {
        match &self.writing {
            Some(writing) => writing.commit.with_log(crate::log::Log::close),
            None => Ok(()),
        }
    }

    fn writing(&self) -> Result<&Writing> {
        if let Some(refusal) = self.report.refusal() {
            return Err(refusal);
        }
        self.health.check()?;
        self.writing.as_ref().ok_or_else(|| Error::new(Kind::ReadOnly, "the store is open for reading"))
    }

    fn account(&self, scope: &AccountScope<'_>) -> Result<AccountRef> {
        self.door.account(&self.published.read(), scope)
    }

    fn record(&self, account: &AccountRef, id: ArtifactId) -> Result<Artifact> {
        let artifact = self.published.read().artifact(account, id)?;
        artifact.ok_or_else(|| self.report.not_found("no such artifact in this scope"))
    }

    /// The later of engine time and wall clock: a clock that was set back revives nothing.
    fn now(&self) -> Time {
        self.hw().max(self.world.clock.wall())
    }

    fn hw(&self) -> Time {
        self.writing.as_ref().map_or(self.opened_hw, |w| w.commit.hw())
    }

    /// A record as it is reported. That an artifact has expired is said only once an engine time past its end is durable: nobody
    /// who was told so sees it readable again, whatever the clock does.
    fn info(&self, scope: &AccountScope<'_>, artifact: Artifact) -> Result<ArtifactInfo> {
        let expired = !is_readable(&artifact, self.now());
        if let (true, Some(at), Some(writing)) = (expired, artifact.expires_at, &self.writing)
            && writing.commit.hw() < at
            && self.health.is_writable()
        {
            // A read must not fail because the disk is full.
            writing.commit.run(Request::new(0, |_| Ok((Vec::new(), ()))).forced().privileged())?;
        }
        Ok(ArtifactInfo::new(scope, artifact, expired))
    }
}

/// What a caller expects of a read.
impl Get {
    /// The whole artifact.
    pub const WHOLE: Self = Self { range: None, expect_sha256: None };

    /// The whole artifact, if it has this SHA-256.
    pub const fn expecting(sha256: Sha256) -> Self {
        Self { range: None, expect_sha256: Some(sha256) }
    }
}
