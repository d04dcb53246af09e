//! Taking streams in: cutting, hashing, deduplicating, storing, and the commit that makes an artifact of them.
//!
//! It knows the rules of ownership by name only: what a put may do is decided by [`ownership`](crate::ownership) under the commit
//! lock.

use std::io::Read;

use crate::{
    budget::Budget,
    catalog::{Published, State},
    clock::Clock,
    codec::Compressor,
    commit::Commit,
    digest::{Identity, Sha256Stream},
    disk::Disk,
    entropy::{self, Entropy},
    error::{Error, Kind, Result},
    format::{
        artifact::{Artifact, Origin},
        keyspace::{AccountRef, segment_key},
    },
    health::Health,
    ids::{ArtifactId, ChunkId, ScopeHash, Sha256, Time},
    limits::{PROGRESS_BYTES, SMALL_STREAM_MAX},
    ownership::{
        ConversationScope, Destination, Door, Tenant, account,
        artifact::{self, Content, NewArtifact},
        conversation, names, token,
    },
    pins::Pins,
    segment::Segments,
    superblock::Root,
    sync::Arc,
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
pub mod resumed;
mod seen;
mod small;
mod source;
pub mod text;

use commit::Outcome;
use intake::Intake;
use media::Media;

/// A put.
#[derive(Clone, Copy, Debug)]
pub struct Put<'a> {
    /// Where to.
    pub scope: Destination<'a>,
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
    /// When the artifact ends; only what an account owns itself takes one.
    pub expires_at: Option<Time>,
    /// How long the stream should be. It may be wrong.
    pub size_hint: Option<u64>,
    /// Length of what the stream is, where it is only a part of that: a capture that was cut short.
    pub logical_size: Option<u64>,
    /// An artifact of the account that this one is a later version of. It stays what it is.
    pub supersedes: Option<ArtifactId>,
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
    /// True if an earlier call made it: one with this op id, or, in a run or conversation, one of the same name, type and content.
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
    pub published: Arc<Published>,
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
    /// The scope that it goes into.
    within: ScopeHash,
}

impl Begun {
    /// The artifact, now that its content is known.
    fn with(self, content: &Content, door: &Door) -> NewArtifact {
        let Self { mut new, within } = self;
        if !matches!(new.into, artifact::Into::Account) {
            let identity = Identity {
                origin: new.origin as u8,
                name: &new.name,
                media_type: &new.media_type,
                sha256: content.sha256,
                size: content.size,
            };
            new.identity = Some(door.identity(new.owner.account.tenant, within, &identity));
        }
        new
    }
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

    /// Ends it: files that nothing relies on go.
    pub fn close(&self) {
        // What cannot be looked up may be there.
        let is_named =
            |id| self.ground.published.read().segment(&segment_key(id)).map_or(true, |found| found.is_some());
        self.pool.close(&is_named);
    }

    /// Puts a stream as an artifact. It is durable when this returns.
    pub fn put(&self, put: &Put<'_>, source: &mut dyn Read) -> Result<PutReply> {
        self.ground.health.check()?;
        let mut begun = self.begin(put)?;
        let new = &begun.new;
        if let Some(artifact) = artifact::replay(&self.ground.published.read(), new.began, self.now(), new)? {
            return Ok(Outcome { artifact, replayed: true }.into());
        }
        // Behind the replay: the expiry of a retry may have passed since it was asked for first. Decided again at the commit.
        artifact::check(&self.ground.published.read(), new.began, self.now(), new)?;
        let options = self.ground.root.current().options;
        let mut cutter = source::Cutter::new(source, options.chunks, put.size_hint);
        let is_small = cutter.is_within(self.tuning.small_stream_max)?;
        let media = Media::of(put.media_type, cutter.waiting());
        let compressor = if media.is_compressed() { None } else { self.compressor()? };
        begun.new.media_type = media.media_type;
        begun.new.detected_type = media.detected_type;
        let tenant = begun.new.owner.account.tenant;
        let keys = self.ground.door.keys(tenant)?;
        let intake = Intake::new(self, &keys, tenant, compressor);
        let outcome = if is_small {
            self.put_small(begun, intake, &mut cutter)
        } else {
            self.put_long(begun, intake, &mut cutter)
        };
        outcome.map(PutReply::from)
    }

    /// Nothing, if the store compresses nothing.
    fn compressor(&self) -> Result<Option<Compressor>> {
        let compression = self.ground.root.current().options.compression;
        let failed = |_| Error::new(Kind::Limit, "no memory for a compressor");
        (compression.level != 0).then(|| Compressor::new(compression).map_err(failed)).transpose()
    }

    /// Checks the arguments before a byte is read, and takes the LSN that fences are held against.
    fn begin(&self, put: &Put<'_>) -> Result<Begun> {
        let began = self.ground.commit.published_lsn();
        let door = &self.ground.door;
        let (tenant, owner, into) = self.destination(&put.scope)?;
        let within = match &into {
            artifact::Into::Account => owner.account.account,
            artifact::Into::Conversation(named) => named.scope.scope,
            artifact::Into::Run(run, _) => run.scope,
            artifact::Into::Upload(named, _) => named.account.account,
        };
        if put.expires_at.is_some() && !matches!(into, artifact::Into::Account) {
            let what = "what a run or conversation owns ends with it: it takes no expiry of its own";
            return Err(Error::new(Kind::NotExpirable, what));
        }
        let op = put.op_id.map(|op_id| door.op(tenant.number, within, op_id)).transpose()?;
        let new = NewArtifact {
            id: ArtifactId(entropy::random(&*self.ground.entropy)?),
            tenant: tenant.name,
            owner,
            into,
            name: names::artifact_name(put.name)?,
            origin: put.origin,
            order: put.order,
            media_type: String::new(),
            detected_type: String::new(),
            expires_at: put.expires_at,
            logical_size: put.logical_size,
            supersedes: put.supersedes,
            op,
            identity: None,
            began,
        };
        Ok(Begun { new, within })
    }

    fn destination(&self, scope: &Destination<'_>) -> Result<(Tenant, account::Named, artifact::Into)> {
        let published = self.ground.published.read();
        let (state, door): (&dyn State, &Door) = (&published, &self.ground.door);
        let known = |account| account::Named { account, text: String::new() };
        match *scope {
            Destination::Account(scope) => {
                let tenant = door.tenant(state, scope.tenant)?;
                Ok((tenant, door.account_named(tenant, scope.account)?, artifact::Into::Account))
            }
            Destination::Conversation(scope @ ConversationScope { tenant, .. }) => {
                let named = door.conversation(state, &scope)?;
                let tenant = door.tenant(state, tenant)?;
                let account =
                    AccountRef { tenant: tenant.number, account: conversation::known(state, &named)?.account };
                Ok((tenant, known(account), artifact::Into::Conversation(named)))
            }
            Destination::Run { tenant, token } => {
                let tenant = door.tenant(state, tenant)?;
                let scope = door.run(tenant, token.run);
                let run = token::current(state, &scope, &token, self.ground.commit.published_lsn())?;
                let account = AccountRef { tenant: tenant.number, account: run.account };
                Ok((tenant, known(account), artifact::Into::Run(scope, token)))
            }
        }
    }

    /// Memory that long streams share.
    #[cfg(test)]
    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.ground.budget
    }

    /// What a stream turned out to be.
    fn content(&self, begun: &Begun, sha256: Sha256Stream, root: ChunkId, size: u64) -> Result<Content> {
        let sha256 = sha256.finish();
        let key = self.ground.door.keys(begun.new.owner.account.tenant)?.blob(sha256, size);
        Ok(Content { key, sha256, size, root })
    }

    fn now(&self) -> Time {
        self.ground.commit.hw().max(self.ground.clock.wall())
    }
}
