//! Artifacts: putting them into an account, a conversation or a run, answering a put that was asked for before, and what became of
//! them since.

use super::{
    account,
    conversation::{self, Named as NamedConversation},
    fences::{self, Void},
    token::{self, RunToken},
};
use crate::{
    catalog::State,
    digest::ScopeKind,
    error::{Error, Kind, Result},
    format::{
        artifact::{Artifact, Born, Origin},
        commit::{EDIT_OVERHEAD, Edit},
        keyspace::{
            AccountRef, Keyspace, ListPlace, Owner, OwnerKind, ScopeRef, blob_key, identity_key, op_key, zero_blob_key,
        },
        value::{BlobValue, OpMade, OpValue},
    },
    ids::{ArtifactId, BlobKey, ChunkId, IdentityHash, Lsn, OpHash, ScopeHash, Sha256, Time},
    limits::{ACCOUNT_OP_KEPT_MS, MEDIA_TYPE_LEN_MAX, NAME_LEN_MAX, RUN_OP_KEPT_MS},
};

/// Length of the edits of a put at most: artifact, list, due, account, op, identity, blob and its entry in `zero`.
pub const PUT_LEN_MAX: usize = 7 * EDIT_OVERHEAD
    + (36 + 288 + NAME_LEN_MAX + 2 * MEDIA_TYPE_LEN_MAX)
    + (20 + 17 + 12 + 16)
    + (8 + 1 + 36)
    + account::RECORD_LEN_MAX
    + (40 + 40)
    + (40 + 16)
    + (32 + 48)
    + 33;

/// Where a put goes.
#[derive(Clone, Debug)]
pub enum Into {
    /// An account itself.
    Account,
    /// A conversation, without a run.
    Conversation(NamedConversation),
    /// A run, whose lease the token proves.
    Run(ScopeRef, RunToken),
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
    /// Names the call, so that a retry is answered and not done again.
    pub op: Option<OpHash>,
    /// What it has in common with a put that is the same one; none for an account.
    pub identity: Option<IdentityHash>,
    /// The published LSN when the stream began.
    pub began: Lsn,
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
        None if artifact.deleted => Life::Deleted,
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

/// What the scope that a put goes into says of it, whether it may go in or not.
struct Scope {
    owner: Owner,
    run: Option<ScopeHash>,
    /// The LSN that its outcomes are kept under, and the scope.
    key: (Lsn, ScopeHash),
    /// Outcomes answer no retry any more.
    forgotten: Forgotten,
}

/// When outcomes are forgotten.
enum Forgotten {
    /// So many milliseconds after the outcome.
    After(u64),
    /// At this time.
    At(Time),
    /// As long as the scope is there.
    Never,
}

impl Forgotten {
    fn is_over(&self, made_at: Time, now: Time) -> bool {
        match self {
            Self::After(ms) => now.0.saturating_sub(made_at.0) >= *ms,
            Self::At(end) => now >= *end,
            Self::Never => false,
        }
    }
}

fn scope(state: &dyn State, lsn: Lsn, new: &NewArtifact) -> Result<Scope> {
    let account = new.owner.account.account;
    Ok(match &new.into {
        Into::Account => Scope {
            owner: Owner { kind: OwnerKind::Account, id: account.0 },
            run: None,
            key: (Lsn::NONE, account),
            forgotten: Forgotten::After(ACCOUNT_OP_KEPT_MS),
        },
        Into::Conversation(named) => {
            let found = conversation::live(state, named)?;
            let scope = named.scope.scope;
            Scope {
                owner: Owner { kind: OwnerKind::Conversation, id: scope.0 },
                run: None,
                key: (found.opened_lsn, scope),
                forgotten: Forgotten::Never,
            }
        }
        Into::Run(named, token) => {
            let run = token::current(state, named, token, lsn)?;
            let ended = if run.finished_at == Time(0) { run.ends_at } else { run.finished_at };
            Scope {
                owner: Owner { kind: OwnerKind::Run, id: named.scope.0 },
                run: Some(named.scope),
                key: (run.begin_lsn, named.scope),
                forgotten: Forgotten::At(Time(ended.0.saturating_add(RUN_OP_KEPT_MS))),
            }
        }
    })
}

/// Whether a put may go in: the LSN that fences are held against, and when it ends.
fn admit(state: &dyn State, lsn: Lsn, now: Time, new: &NewArtifact) -> Result<(Lsn, Option<Time>)> {
    let account = new.owner.account.account;
    let uploads_only = new.origin == Origin::Upload;
    let own = [(ScopeKind::Tenant, new.tenant), (ScopeKind::Account, account)];
    match &new.into {
        Into::Account => {
            fences::check(state, new.began, uploads_only, own)?;
            check_expiry(new.expires_at, now)?;
            Ok((new.began, new.expires_at))
        }
        Into::Conversation(named) => {
            conversation::open_for_new(state, named)?;
            let scopes = own.into_iter().chain([(ScopeKind::Conversation, named.scope.scope)]);
            fences::check(state, new.began, uploads_only, scopes)?;
            Ok((new.began, None))
        }
        Into::Run(named, token) => {
            let run = token::current(state, named, token, lsn)?;
            token::check_active(&run, now)?;
            let scopes = own.into_iter().chain([(ScopeKind::Run, named.scope)]);
            let scopes = scopes.chain(run.conversation.map(|scope| (ScopeKind::Conversation, scope)));
            let scopes = scopes.chain(run.tags.iter().map(|tag| (ScopeKind::Tag, *tag)));
            fences::check(state, run.begin_lsn, uploads_only, scopes)?;
            Ok((run.begin_lsn, Some(Time(now.0.saturating_add(run.ttl)))))
        }
    }
}

/// Refuses a put before its stream is read, where it would be refused behind it.
pub fn check(state: &dyn State, lsn: Lsn, now: Time, new: &NewArtifact) -> Result<()> {
    admit(state, lsn, now, new).map(drop)
}

/// The artifact that an earlier call with this op id made; GONE if it is no more. An outcome that is older than it is kept for
/// counts as absent, whether something removed it or not.
pub fn replay(state: &dyn State, lsn: Lsn, now: Time, new: &NewArtifact) -> Result<Option<Artifact>> {
    let Scope { key: (begin, within), forgotten, .. } = scope(state, lsn, new)?;
    let Some(op) = new.op else { return Ok(None) };
    let Some(outcome) = state.op(&op_key(begin, within, op))? else { return Ok(None) };
    if forgotten.is_over(outcome.at, now) {
        return Ok(None);
    }
    let id = ArtifactId(outcome.id);
    match state.artifact(&new.owner.account, id)? {
        Some(artifact) if life(state, new.tenant, &artifact, now)? == Life::Readable => Ok(Some(artifact)),
        _ => Err(Error::new(Kind::Gone, "what this op id made is no more").of_artifact(id)),
    }
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
    let scope = scope(state, lsn, new)?;
    let (begin, within) = scope.key;
    let account = &new.owner.account;
    let outcome = |id: ArtifactId| {
        let value = OpValue { id: id.0, made: OpMade::Artifact, lsn, at: now };
        new.op.map(|op| Edit::put(Keyspace::Op, op_key(begin, within, op), value.encode()))
    };
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
    let artifact = Artifact { token_lsn, expires_at, ..record(lsn, now, new, content, &scope) };
    let mut edits = blob_edits(state, content)?;
    edits.push(Edit::put(Keyspace::Artifact, account.artifact_key(new.id), artifact.encode()));
    edits.push(Edit::put(Keyspace::ByOwner, account.owner_key(artifact.owner, artifact.place), new.id.0));
    if let Some(end) = expires_at {
        edits.push(Edit::put(Keyspace::Due, account.due_key(end, new.id), []));
    }
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
        logical_size: None,
        truncated: false,
        tree: false,
        expires_at: None,
        version: 1,
        link_of: None,
        detach: false,
        supersedes: None,
        derived_from: None,
        deleted: false,
    }
}

/// The edits that give an artifact another owner, place and end. Its content, its provenance and its blob's references stay.
pub fn move_to(artifact: &Artifact, to: Owner, place: ListPlace, expires_at: Option<Time>, edits: &mut Vec<Edit>) {
    let account = &artifact.account;
    let moved = Artifact { owner: to, place, expires_at, version: artifact.version + 1, ..artifact.clone() };
    edits.push(Edit::put(Keyspace::Artifact, account.artifact_key(artifact.id), moved.encode()));
    edits.push(Edit::delete(Keyspace::ByOwner, account.owner_key(artifact.owner, artifact.place)));
    edits.push(Edit::put(Keyspace::ByOwner, account.owner_key(to, place), artifact.id.0));
    match (artifact.expires_at, expires_at) {
        (before, after) if before == after => {}
        (before, after) => {
            edits.extend(before.map(|end| Edit::delete(Keyspace::Due, account.due_key(end, artifact.id))));
            edits.extend(after.map(|end| Edit::put(Keyspace::Due, account.due_key(end, artifact.id), [])));
        }
    }
}

/// One artifact more has the blob.
fn blob_edits(state: &dyn State, content: &Content) -> Result<Vec<Edit>> {
    let Content { key, size, root, .. } = *content;
    let old = state.blob(key)?;
    if old.is_some_and(|old| old.root != root || old.size != size) {
        return Err(Error::new(Kind::Corrupt, "a blob has another recipe than its content gives"));
    }
    let references = old.map_or(0, |old| old.references);
    let more = references.checked_add(1).ok_or_else(|| Error::new(Kind::Corrupt, "references of a blob"))?;
    let value = BlobValue { root, size, references: more };
    let mut edits = vec![Edit::put(Keyspace::Blob, blob_key(key), value.encode())];
    if old.is_some() && references == 0 {
        edits.push(Edit::delete(Keyspace::Zero, zero_blob_key(key)));
    }
    Ok(edits)
}
