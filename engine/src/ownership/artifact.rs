//! Artifacts: putting them into an account, a conversation or a run, answering a put that was asked for before, and what became of
//! them since.

use std::ops::ControlFlow;

use super::{
    account,
    fences::{self, Void},
    target::{self, Scope, Target},
};
use crate::{
    canary::{self, Canary},
    catalog::State,
    error::{Error, Kind, Result},
    format::{
        artifact::{Artifact, Born, Origin},
        commit::{EDIT_OVERHEAD, Edit},
        keyspace::{
            AccountRef, Keyspace, ListPlace, Owner, OwnerKind, ScopeRef, blob_key, identity_key, zero_blob_key,
        },
        value::BlobValue,
    },
    ids::{ArtifactId, BlobKey, ChunkId, IdentityHash, Lsn, OpHash, ScopeHash, Sha256, Time},
    limits::{ARTIFACT_KEY_LEN_MAX, LIST_PAGE_MAX, MEDIA_TYPE_LEN_MAX, NAME_LEN_MAX},
};

pub use super::target::Into;

/// Length of the edit of a record at most.
pub const RECORD_LEN_MAX: usize =
    EDIT_OVERHEAD + 36 + 288 + NAME_LEN_MAX + ARTIFACT_KEY_LEN_MAX + 2 * MEDIA_TYPE_LEN_MAX;
/// Length of the other edits that a new artifact takes at most: list, due, blob and its entry in `zero`.
pub const BESIDE_LEN_MAX: usize = 4 * EDIT_OVERHEAD + (49 + 16) + 45 + (32 + 48) + 33;
/// Length of the edits of a put at most: artifact, which has no key, and what stands beside it, account, op, identity.
pub const PUT_LEN_MAX: usize = RECORD_LEN_MAX - ARTIFACT_KEY_LEN_MAX
    + BESIDE_LEN_MAX
    + account::RECORD_LEN_MAX
    + 2 * EDIT_OVERHEAD
    + (40 + 40)
    + (40 + 16);

/// An artifact that is asked for: whose it must be, and its id.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// Its tenant's name.
    pub tenant: ScopeHash,
    /// The account.
    pub account: AccountRef,
    /// The owner.
    pub owner: Owner,
    /// Its id.
    pub id: ArtifactId,
}

impl Named {
    /// Its record. An id that the owner does not have is as unknown as a random one.
    pub fn find(&self, state: &dyn State) -> Result<Artifact> {
        let found = state.artifact(&self.account, self.id)?.filter(|artifact| artifact.owner == self.owner);
        found.ok_or_else(|| Error::new(Kind::NotFound, "no such artifact in this scope"))
    }

    /// The same, if it may be read.
    pub fn find_readable(&self, state: &dyn State, now: Time) -> Result<Artifact> {
        let artifact = self.find(state)?;
        check_readable(life(state, self.tenant, &artifact, now)?, self.id)?;
        Ok(artifact)
    }
}

/// An artifact as it is asked for, checked and with its ids hashed, before its content is known.
#[derive(Clone, Debug)]
pub struct NewArtifact {
    /// Random.
    pub id: ArtifactId,
    /// Name of the tenant.
    pub tenant: ScopeHash,
    /// Whose it is; of a conversation or run its account.
    pub owner: account::Named,
    /// Where it goes.
    pub into: Into,
    /// Name, normalised.
    pub name: String,
    /// Origin.
    pub origin: Origin,
    /// The caller's own order.
    pub order: Option<u64>,
    /// What it is kept as.
    pub media_type: String,
    /// What its first bytes say; empty if nothing.
    pub detected_type: String,
    /// When it ends. Of a conversation's it is none, of a run's the run's own.
    pub expires_at: Option<Time>,
    /// Length of what it is a part of.
    pub logical_size: Option<u64>,
    /// What it is a later version of.
    pub supersedes: Option<ArtifactId>,
    /// Names the call, so that a retry is answered and not done again.
    pub op: Option<OpHash>,
    /// What it has in common with a put that is the same one; none for an account.
    pub identity: Option<IdentityHash>,
    /// The published LSN when the stream began.
    pub began: Lsn,
}

impl NewArtifact {
    fn target(&self) -> Target<'_> {
        let Self { tenant, owner, into, op, began, .. } = self;
        Target { tenant: *tenant, account: owner.account, into, op: *op, began: *began }
    }
}

/// What a stream was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Content {
    /// Its key in the catalog.
    pub key: BlobKey,
    /// Digest.
    pub sha256: Sha256,
    /// Length.
    pub size: u64,
    /// Root of the recipe.
    pub root: ChunkId,
}

/// What became of an artifact.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Life {
    /// It may be read.
    Readable,
    /// Its time is over.
    Expired,
    /// It was deleted, or its conversation deleted or reset.
    Deleted,
    /// It was erased.
    Erased,
}

/// What became of an artifact; `now` is the later of engine time and wall clock, `tenant` the hash of the tenant's name.
pub fn life(state: &dyn State, tenant: ScopeHash, artifact: &Artifact, now: Time) -> Result<Life> {
    Ok(match fences::void(state, tenant, artifact)? {
        Some(Void::Erased) => Life::Erased,
        Some(Void::Deleted) => Life::Deleted,
        None if artifact.deleted && !canary::sings(Canary::DeletedReadable) => Life::Deleted,
        None if artifact.expires_at.is_some_and(|end| now >= end) => Life::Expired,
        None => Life::Readable,
    })
}

/// The error of reading what may not be read.
pub fn check_readable(life: Life, id: ArtifactId) -> Result<()> {
    let what = match life {
        Life::Readable => return Ok(()),
        Life::Expired => "the artifact has expired",
        Life::Deleted => "the artifact was deleted",
        Life::Erased => "the artifact was erased",
    };
    Err(Error::new(Kind::Gone, what).of_artifact(id))
}

/// The record that an entry of an owner's list names.
pub fn listed(state: &dyn State, account: &AccountRef, id: &[u8]) -> Result<Artifact> {
    let id = id.try_into().map_err(|_| Error::new(Kind::Corrupt, "owner index value"))?;
    let found = state.artifact(account, ArtifactId(id))?;
    found.ok_or_else(|| Error::new(Kind::Corrupt, "an owner's list names an artifact without a record"))
}

/// An artifact that would end before it begins is a mistake of the caller.
pub fn check_expiry(expires_at: Option<Time>, now: Time) -> Result<()> {
    match expires_at {
        Some(end) if end <= now => Err(Error::new(Kind::InvalidArgument, "the expiry is not in the future")),
        _ => Ok(()),
    }
}

/// Refuses a put before its stream is read, where it would be refused behind it.
pub fn check(state: &dyn State, lsn: Lsn, now: Time, new: &NewArtifact) -> Result<()> {
    admit(state, lsn, now, new).map(drop)
}

fn admit(state: &dyn State, lsn: Lsn, now: Time, new: &NewArtifact) -> Result<(Lsn, Option<Time>)> {
    let (token_lsn, end) = target::admit(state, lsn, now, &new.target(), new.origin == Origin::Upload)?;
    if let Some(before) = new.supersedes
        && state.artifact(&new.owner.account, before)?.is_none()
    {
        return Err(Error::new(Kind::NotFound, "the account has no artifact that this could supersede"));
    }
    if !matches!(new.into, Into::Account) {
        return Ok((token_lsn, end));
    }
    check_expiry(new.expires_at, now)?;
    Ok((token_lsn, new.expires_at))
}

/// The artifact that an earlier call with this op id made; GONE if it is no more.
pub fn replay(state: &dyn State, lsn: Lsn, now: Time, new: &NewArtifact) -> Result<Option<Artifact>> {
    target::replay(state, lsn, now, &new.target())
}

/// What a put comes to.
#[derive(Debug)]
pub enum Outcome {
    /// It was done before, by this op id or as the same put; the edits make a retry of this call find it too.
    Replayed(Vec<Edit>, Artifact),
    /// It is new.
    New(Vec<Edit>, Artifact),
}

/// Puts an artifact where it goes, and its blob one reference up. The blob's root is held by the same commit if the blob is new.
pub fn put(state: &dyn State, lsn: Lsn, now: Time, new: &NewArtifact, content: &Content) -> Result<Outcome> {
    if let Some(artifact) = replay(state, lsn, now, new)? {
        return Ok(Outcome::Replayed(Vec::new(), artifact));
    }
    let (token_lsn, expires_at) = admit(state, lsn, now, new)?;
    let scope = target::scope(state, lsn, &new.target())?;
    let (begin, within) = scope.key;
    let account = &new.owner.account;
    let outcome = |id: ArtifactId| scope.made(new.op, id, lsn, now);
    let identity = new.identity.map(|identity| identity_key(begin, within, identity));
    if let Some(identity) = &identity
        && let Some(id) = state.get(Keyspace::Identity, identity)?
        && let Some(artifact) = state.artifact(account, ArtifactId(id.as_slice().try_into().unwrap_or_default()))?
        && life(state, new.tenant, &artifact, now)? == Life::Readable
    {
        return Ok(Outcome::Replayed(outcome(artifact.id).into_iter().collect(), artifact));
    }
    if state.artifact(account, new.id)?.is_some() {
        return Err(Error::new(Kind::Io, "the source of randomness gave an id twice"));
    }
    if new.logical_size.is_some_and(|whole| whole < content.size) {
        return Err(Error::new(Kind::InvalidArgument, "a part is not longer than the whole"));
    }
    let artifact = Artifact { token_lsn, expires_at, ..record(lsn, now, new, content, &scope) };
    let mut edits = blob_edits(state, content, 1)?;
    add(&artifact, &mut edits);
    edits.extend(account::first_write(state, lsn, now, &new.owner)?);
    edits.extend(outcome(new.id));
    edits.extend(identity.map(|key| Edit::put(Keyspace::Identity, key, new.id.0)));
    Ok(Outcome::New(edits, artifact))
}

fn record(lsn: Lsn, now: Time, new: &NewArtifact, content: &Content, scope: &Scope) -> Artifact {
    let account = new.owner.account;
    let Scope { owner, run, .. } = *scope;
    Artifact {
        id: new.id,
        account,
        owner,
        born: Born { account: account.account, run, origin: new.origin, order: new.order, lsn, time: now },
        token_lsn: lsn,
        place: ListPlace { attach_lsn: lsn, position: 0 },
        name: new.name.clone(),
        key: None,
        media_type: new.media_type.clone(),
        detected_type: new.detected_type.clone(),
        size: content.size,
        sha256: content.sha256,
        blob_root: content.root,
        logical_size: new.logical_size,
        truncated: new.logical_size.is_some_and(|whole| whole > content.size),
        tree: false,
        expires_at: None,
        version: 1,
        link_of: None,
        detach: false,
        supersedes: new.supersedes,
        derived_from: None,
        deleted: false,
    }
}

/// The edits of a new record: itself, its place in its owner's list, its end.
pub(super) fn add(artifact: &Artifact, edits: &mut Vec<Edit>) {
    let Artifact { id, account, owner, place, .. } = artifact;
    edits.push(record_of(artifact));
    edits.push(Edit::put(Keyspace::ByOwner, account.owner_key(*owner, *place), id.0));
    move_due(artifact, None, edits);
}

/// The edit that writes a record.
pub(super) fn record_of(artifact: &Artifact) -> Edit {
    Edit::put(Keyspace::Artifact, artifact.account.artifact_key(artifact.id), artifact.encode())
}

/// Length of that edit, whatever becomes of the artifact: its texts stay what they are.
pub fn record_len(artifact: &Artifact) -> usize {
    EDIT_OVERHEAD + 36 + artifact.encode().len()
}

/// What ends at `before`, if at any time, ends when the record says.
pub(super) fn move_due(artifact: &Artifact, before: Option<Time>, edits: &mut Vec<Edit>) {
    let Artifact { id, account, expires_at, .. } = artifact;
    if before == *expires_at {
        return;
    }
    edits.extend(before.map(|end| Edit::delete(Keyspace::Due, account.due_key(end, *id))));
    edits.extend(expires_at.map(|end| Edit::put(Keyspace::Due, account.due_key(end, *id), [])));
}

/// Calls for each artifact that an owner has, readable or not, in the order of its list; behind a place, if one is given. Ends when the
/// call says so.
pub(super) fn each_of(
    state: &dyn State,
    account: &AccountRef,
    owner: Owner,
    after: Option<ListPlace>,
    call: &mut dyn FnMut(Artifact) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let prefix = account.owner_prefix(owner);
    let mut after = after.map(|place| account.owner_key(owner, place));
    loop {
        let page = state.scan(Keyspace::ByOwner, &prefix, after.as_deref(), LIST_PAGE_MAX)?;
        for (_, id) in &page {
            if call(listed(state, account, id)?)?.is_break() {
                return Ok(());
            }
        }
        match page.into_iter().next_back() {
            Some((key, _)) => after = Some(key),
            None => return Ok(()),
        }
    }
}

/// What one LSN attached to a conversation and is there still, readable or not.
pub(super) fn attached_by(
    state: &dyn State,
    account: &AccountRef,
    conversation: &ScopeRef,
    lsn: Lsn,
) -> Result<Vec<Artifact>> {
    let owner = Owner { kind: OwnerKind::Conversation, id: conversation.scope.0 };
    let before = ListPlace { attach_lsn: Lsn(lsn.0.saturating_sub(1)), position: u32::MAX };
    let mut artifacts = Vec::new();
    each_of(state, account, owner, Some(before), &mut |artifact| {
        if artifact.place.attach_lsn != lsn {
            return Ok(ControlFlow::Break(()));
        }
        artifacts.push(artifact);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(artifacts)
}

/// The edits that give an artifact another owner, place and end. Its content, its provenance and its blob's references stay.
pub fn move_to(artifact: &Artifact, to: Owner, place: ListPlace, expires_at: Option<Time>, edits: &mut Vec<Edit>) {
    let account = &artifact.account;
    let moved =
        Artifact { owner: to, place, expires_at, version: artifact.version.saturating_add(1), ..artifact.clone() };
    edits.push(record_of(&moved));
    edits.push(Edit::delete(Keyspace::ByOwner, account.owner_key(artifact.owner, artifact.place)));
    edits.push(Edit::put(Keyspace::ByOwner, account.owner_key(to, place), artifact.id.0));
    move_due(&moved, artifact.expires_at, edits);
}

/// So many artifacts more have the blob.
pub(super) fn blob_edits(state: &dyn State, content: &Content, more: u64) -> Result<Vec<Edit>> {
    let Content { key, size, root, .. } = *content;
    let old = state.blob(key)?;
    if old.is_some_and(|old| old.root != root || old.size != size) {
        return Err(Error::new(Kind::Corrupt, "a blob has another recipe than its content gives"));
    }
    let references = old.map_or(0, |old| old.references);
    let more = references.checked_add(more).ok_or_else(|| Error::new(Kind::Corrupt, "references of a blob"))?;
    let value = BlobValue { root, size, references: more };
    let mut edits = vec![Edit::put(Keyspace::Blob, blob_key(key), value.encode())];
    if old.is_some() && references == 0 {
        edits.push(Edit::delete(Keyspace::Zero, zero_blob_key(key)));
    }
    Ok(edits)
}
