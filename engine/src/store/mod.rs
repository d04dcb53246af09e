//! The public handle. It composes the floors below and holds no rules.

use std::{io, path::Path};

use crate::{
    catalog::Published,
    checkpoint::{Checkpointed, Checkpointer},
    clock::{Clock, OsClock},
    commit::Commit,
    disk::{Disk, LockGuard, os::OsDisk},
    entropy::{Entropy, OsEntropy},
    error::{Error, Kind, Result},
    format::{keyspace::AccountRef, manifest, superblock::Superblock},
    health::Health,
    ids::{Sha256, StoreUuid, Time},
    ingest::{Ingest, Put, PutReply, text::Text},
    ownership::{AccountScope, Door},
    read::Reader,
    recovery::OpenReport,
    repair::{self, Repair},
    segment::Segments,
    sync::{Arc, Mutex},
    verify::{self, VerifyOptions, VerifyReport},
};

mod artifacts;
mod changes;
mod info;
mod open;
mod options;
mod owners;
mod probe;
mod prune;
mod sized;
mod stats;
mod tenants;
#[cfg(test)]
mod tests;
mod uploads;

pub use changes::{Fork, ForkReply, Link, LinkReply};
pub use info::{ArtifactInfo, ArtifactState, Cursor, ListOrder, ListPage};
pub use options::{Get, InitOptions, OpenMode, OpenOptions};
pub use owners::{BeginRun, ClaimReply, ClaimedInfo, ConversationInfo, Leased, RunInfo, Tag};
pub use probe::Probe;
pub use prune::{Prune, Retain};
pub use stats::Stats;
pub use tenants::TenantInfo;
pub use uploads::{SentReply, UploadInfo};

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
    /// Tenants are made one at a time. One whose key is in the manifest and whose record could not be put waits for the next name.
    unnamed_tenant: Mutex<Option<manifest::Tenant>>,
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

    /// Stores the bytes of `source` as a new artifact of an account, a conversation or a run. They are durable when this returns; on any
    /// error nothing of them can be seen.
    pub fn put(&self, put: &Put<'_>, source: &mut dyn io::Read) -> Result<PutReply> {
        let done = self.writing()?.ingest.put(put, source);
        self.told(&[put.scope.into()], done)
    }

    /// Stores a text, as [`put`](Self::put) does. `TOO_LARGE`: it has more than 1 MiB. `BAD_UTF8`: it is not UTF-8. `BAD_TYPE`: its media
    /// type is none of [`MEDIA_TYPES`](crate::ingest::text::MEDIA_TYPES). Nothing is kept of what is refused.
    pub fn put_text(&self, put: &Put<'_>, source: &mut dyn io::Read) -> Result<PutReply> {
        let text = Text::read(put.media_type, source)?;
        let size_hint = Some(text.bytes.len() as u64);
        self.put(&Put { media_type: Some(&text.media_type), size_hint, ..*put }, &mut text.bytes.as_slice())
    }

    /// Checks the store in a directory that no writer has open; see [`crate::verify`]. `progress` gets bytes done and bytes to do.
    pub fn verify(world: &World, options: &VerifyOptions, progress: &mut dyn FnMut(u64, u64)) -> Result<VerifyReport> {
        verify::verify(&world.disk, options, progress)
    }

    /// Writes damaged copies again from good ones, of superblock, manifest, segment headers and tables, in a store that nobody has open;
    /// `dry` only says what would be written. What has no good copy stays as it is.
    pub fn repair(world: &World, dry: bool) -> Result<Vec<Repair>> {
        repair::repair(&world.disk, dry)
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
            Some(writing) => {
                writing.ingest.close();
                writing.checkpointer.close();
                writing.commit.with_log(crate::log::Log::close)
            }
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

    /// The later of engine time and wall clock: a clock that was set back revives nothing.
    fn now(&self) -> Time {
        self.hw().max(self.world.clock.wall())
    }

    fn hw(&self) -> Time {
        self.writing.as_ref().map_or(self.opened_hw, |w| w.commit.hw())
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
