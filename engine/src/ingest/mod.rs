//! Taking streams in: cutting, hashing, deduplicating, storing, and the commit that makes an artifact of them.
//!
//! It knows the rules of ownership by name only: what a put may do is decided by [`ownership`](crate::ownership) under the commit
//! lock.

use std::io::Read;

use crate::{
    budget::Budget,
    catalog::Catalog,
    clock::Clock,
    codec::Compressor,
    commit::Commit,
    digest::Sha256Stream,
    disk::Disk,
    entropy::{self, Entropy},
    error::{Error, Kind, Result},
    format::artifact::{Artifact, Origin},
    health::Health,
    ids::{ArtifactId, ChunkId, Sha256, Time},
    limits::{PROGRESS_BYTES, SMALL_STREAM_MAX},
    ownership::{
        AccountScope, Door,
        artifact::{self, Content, NewArtifact},
        names,
    },
    pins::Pins,
    segment::Segments,
    superblock::Root,
    sync::{Arc, RwLock},
};

mod bulk;
mod commit;
mod intake;
mod long;
mod media;
mod naming;
mod output;
mod packer;
mod pipeline;
pub mod recipe;
mod seen;
mod small;
mod source;

use commit::Outcome;
use intake::Intake;
use media::Media;

/// A put into an account.
#[derive(Clone, Copy, Debug)]
pub struct Put<'a> {
    /// Where to.
    pub scope: AccountScope<'a>,
    /// Name of the artifact.
    pub name: &'a str,
    /// Where the bytes came from.
    pub origin: Origin,
    /// What the caller says that they are.
    pub media_type: Option<&'a str>,
    /// Names the call: a retry is answered and not done again.
    pub op_id: Option<&'a str>,
    /// The caller's own order.
    pub order: Option<u64>,
    /// When the artifact ends.
    pub expires_at: Option<Time>,
    /// How long the stream should be. It may be wrong.
    pub size_hint: Option<u64>,
}

/// A put that is durable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PutReply {
    /// The artifact.
    pub id: ArtifactId,
    /// Its name as it is kept.
    pub name: String,
    /// Its length.
    pub size: u64,
    /// Its digest.
    pub sha256: Sha256,
    /// What it is kept as.
    pub media_type: String,
    /// True if an earlier call with this op id made it.
    pub replayed: bool,
}

impl From<Outcome> for PutReply {
    fn from(outcome: Outcome) -> Self {
        let Outcome { artifact, replayed } = outcome;
        let Artifact { id, name, size, sha256, media_type, .. } = artifact;
        Self { id, name, size, sha256, media_type, replayed }
    }
}

/// What ingest stands on.
pub struct Ground {
    /// The commit door.
    pub commit: Arc<Commit>,
    /// Published state.
    pub published: Arc<RwLock<Catalog>>,
    /// Known segments.
    pub segments: Arc<Segments>,
    /// Who references what.
    pub pins: Arc<Pins>,
    /// The superblock.
    pub root: Arc<Root>,
    /// Files.
    pub disk: Arc<dyn Disk>,
    /// Ids and epochs.
    pub entropy: Arc<dyn Entropy>,
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// The latch.
    pub health: Arc<Health>,
    /// Keys.
    pub door: Arc<Door>,
    /// Memory that long streams share.
    pub budget: Arc<Budget>,
}

/// Where the lanes part. The defaults are the store's limits; tests make them small.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tuning {
    /// A stream up to this goes into the log.
    pub small_stream_max: usize,
    /// A long stream commits its progress after this many bytes.
    pub progress_bytes: u64,
}

impl Default for Tuning {
    fn default() -> Self {
        Self { small_stream_max: SMALL_STREAM_MAX, progress_bytes: PROGRESS_BYTES }
    }
}

/// The way in.
pub struct Ingest {
    ground: Ground,
    tuning: Tuning,
    pool: bulk::Pool,
    naming: naming::Naming<pipeline::Unnamed>,
    seen: seen::Seen,
}

/// A put whose arguments were checked.
struct Begun {
    new: NewArtifact,
}

impl Ingest {
    /// Opens the way in. A stream of up to `tuning.small_stream_max` bytes, at most the store's limit, is held in memory.
    pub fn new(ground: Ground, tuning: Tuning) -> Self {
        let Ground { disk, root, segments, entropy, health, .. } = &ground;
        let pool = bulk::Pool::new(disk.clone(), root.clone(), segments.clone(), entropy.clone(), health.clone());
        let small_stream_max = tuning.small_stream_max.min(SMALL_STREAM_MAX);
        let (naming, seen) = (naming::Naming::new(), seen::Seen::default());
        Self { pool, ground, tuning: Tuning { small_stream_max, ..tuning }, naming, seen }
    }

    /// Puts a stream as an artifact. It is durable when this returns.
    pub fn put(&self, put: &Put<'_>, source: &mut dyn Read) -> Result<PutReply> {
        self.ground.health.check()?;
        let mut begun = self.begin(put)?;
        let new = &begun.new;
        let earlier = artifact::replay(&*self.ground.published.read(), &new.account, new.op, self.now())?;
        if let Some(artifact) = earlier {
            return Ok(Outcome { artifact, replayed: true }.into());
        }
        // Behind the replay: the expiry of a retry may have passed since it was asked for first.
        artifact::check_expiry(new.expires_at, self.now())?;
        let options = self.ground.root.current().options;
        let mut cutter = source::Cutter::new(source, options.chunks, put.size_hint);
        let is_small = cutter.is_within(self.tuning.small_stream_max)?;
        let media = Media::of(put.media_type, cutter.waiting());
        let compressor = if media.is_compressed() || options.compression.level == 0 {
            None
        } else {
            let failed = |_| Error::new(Kind::Limit, "no memory for a compressor");
            Some(Compressor::new(options.compression).map_err(failed)?)
        };
        begun.new.media_type = media.media_type;
        begun.new.detected_type = media.detected_type;
        let tenant = begun.new.account.tenant;
        let intake = Intake::new(self, self.ground.door.keys(tenant)?, tenant, compressor);
        let outcome = if is_small {
            self.put_small(begun, intake, &mut cutter)
        } else {
            self.put_long(begun, intake, &mut cutter)
        };
        outcome.map(PutReply::from)
    }

    /// Checks the arguments before a byte is read, and takes the LSN that fences are held against.
    fn begin(&self, put: &Put<'_>) -> Result<Begun> {
        let account = self.ground.door.account(&*self.ground.published.read(), &put.scope)?;
        let op = put.op_id.map(|op_id| self.ground.door.op(&account, op_id)).transpose()?;
        let name = names::artifact_name(put.name)?;
        let new = NewArtifact {
            id: ArtifactId(entropy::random(&*self.ground.entropy)?),
            account,
            account_text: put.scope.account.to_owned(),
            name,
            origin: put.origin,
            order: put.order,
            media_type: String::new(),
            detected_type: String::new(),
            expires_at: put.expires_at,
            op,
            token_lsn: self.ground.commit.published_lsn(),
        };
        Ok(Begun { new })
    }

    /// Memory that long streams share.
    #[cfg(test)]
    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.ground.budget
    }

    /// What a stream turned out to be.
    fn content(&self, begun: &Begun, sha256: Sha256Stream, root: ChunkId, size: u64) -> Result<Content> {
        let sha256 = sha256.finish();
        let key = self.ground.door.keys(begun.new.account.tenant)?.blob(sha256, size);
        Ok(Content { key, sha256, size, root })
    }

    fn now(&self) -> Time {
        self.ground.commit.hw().max(self.ground.clock.wall())
    }
}
