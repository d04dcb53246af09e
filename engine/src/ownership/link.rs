//! Links: another artifact of the same content, for the price of a record. A link comes from where its source came from, so that
//! whatever erases the source erases it too.

use std::{collections::BTreeMap, ops::ControlFlow};

use super::{
    account,
    artifact::{self, Content, Into, Life, Named},
    claim::Sized,
    conversation::{self, Named as NamedConversation},
    ending, fences,
    target::{self, Scope, Target},
};
use crate::{
    canary::{self, Canary},
    catalog::State,
    digest::{RandomIds, TenantKeys},
    error::{Error, Kind, Result},
    format::{
        artifact::{Artifact, Origin},
        commit::{EDIT_OVERHEAD, Edit},
        conversation::Conversation,
        keyspace::{AccountRef, ListPlace, Owner, OwnerKind, ScopeRef},
        value::{OpMade, OpValue},
    },
    ids::{ArtifactId, BlobKey, Lsn, OpHash, ScopeHash, Time},
    limits::{FORK_MAX, NAME_LEN_MAX},
};

/// Length of the edits of a link besides those of its record and, where that goes, of its source's: another name, what stands beside
/// the record, account, op.
pub const FIXED_LEN_MAX: usize =
    NAME_LEN_MAX + artifact::BESIDE_LEN_MAX + account::RECORD_LEN_MAX + (EDIT_OVERHEAD + 40 + 40);
/// Length of the edits of a fork besides those of its artifacts: conversation, op.
const FORK_FIXED_LEN: usize = conversation::RECORD_LEN_MAX + (EDIT_OVERHEAD + 40 + 40);

/// A link as it is asked for.
#[derive(Clone)]
pub struct NewLink {
    /// Random.
    pub id: ArtifactId,
    /// What it is a link of.
    pub source: Named,
    /// The source is deleted in the same commit.
    pub moves: bool,
    /// The account that it goes to; of a conversation its account.
    pub to: account::Named,
    /// Where it goes: an account or a conversation.
    pub into: Into,
    /// Its name, normalised; that of the source if none is given.
    pub name: Option<String>,
    /// An erasure of the account that the source comes from does not follow it.
    pub detach: bool,
    /// Names the call.
    pub op: Option<OpHash>,
    /// The published LSN when the call began.
    pub began: Lsn,
    /// Name the source's blob.
    pub keys: TenantKeys,
}

/// A link that is durable.
#[derive(Debug)]
pub struct Linked {
    /// The link.
    pub artifact: Artifact,
    /// True if an earlier call with its op id made it.
    pub replayed: bool,
}

/// Links, and deletes the source where the link takes its place.
pub fn link(state: &dyn State, lsn: Lsn, now: Time, new: &NewLink) -> Result<(Vec<Edit>, Linked)> {
    let NewLink { source, to, into, op, began, .. } = new;
    let target = Target { tenant: source.tenant, account: to.account, into, op: *op, began: *began };
    if let Some(artifact) = target::replay(state, lsn, now, &target)? {
        return Ok((Vec::new(), Linked { artifact, replayed: true }));
    }
    let source = new.source.find_readable(state, now)?;
    target::admit(state, lsn, now, &target, source.born.origin == Origin::Upload)?;
    check_provenance(state, new.source.tenant, &source)?;
    let scope = target::scope(state, lsn, &target)?;
    let place = ListPlace { attach_lsn: lsn, position: 0 };
    let mut artifact = copy(&source, new.id, to.account, scope.owner, place);
    artifact.detach |= new.detach;
    if let Some(name) = &new.name {
        artifact.name.clone_from(name);
    }
    check_new(state, &artifact)?;
    let mut edits = artifact::blob_edits(state, &content(&source, &new.keys), 1)?;
    artifact::add(&artifact, &mut edits);
    edits.extend(account::first_write(state, lsn, now, to)?);
    edits.extend(scope.made(*op, artifact.id, lsn, now));
    if new.moves {
        edits.push(artifact::record_of(&ending::deleted(&source)));
    }
    Ok((edits, Linked { artifact, replayed: false }))
}

/// A copy needs what a call needs that brings the same bytes from the same place.
fn check_provenance(state: &dyn State, tenant: ScopeHash, source: &Artifact) -> Result<()> {
    let scopes = fences::provenance(state, tenant, source)?;
    fences::check(state, source.token_lsn, source.born.origin == Origin::Upload, scopes)
}

fn check_new(state: &dyn State, artifact: &Artifact) -> Result<()> {
    match state.artifact(&artifact.account, artifact.id)? {
        None => Ok(()),
        Some(_) => Err(Error::new(Kind::Io, "the source of randomness gave an id twice")),
    }
}

fn content(source: &Artifact, keys: &TenantKeys) -> Content {
    let Artifact { sha256, size, blob_root, .. } = *source;
    Content { key: keys.blob(sha256, size), sha256, size, root: blob_root }
}

/// The record of a copy. A conversation's has no end of its own; an account's does not outlive its source.
fn copy(source: &Artifact, id: ArtifactId, account: AccountRef, owner: Owner, place: ListPlace) -> Artifact {
    let expires_at = source.expires_at.filter(|_| owner.kind == OwnerKind::Account);
    let copy =
        Artifact { id, account, owner, place, expires_at, version: 1, link_of: Some(source.id), ..source.clone() };
    if canary::sings(Canary::LinkBornAnew) {
        return Artifact { token_lsn: place.attach_lsn, ..copy };
    }
    copy
}

/// A fork as it is asked for.
#[derive(Clone)]
pub struct NewFork {
    /// Ids of the copies.
    pub ids: RandomIds,
    /// What it is a fork of.
    pub source: NamedConversation,
    /// Nothing behind this one goes along.
    pub upto: Option<ArtifactId>,
    /// Where it goes: a conversation that is open.
    pub into: NamedConversation,
    /// Names the call.
    pub op: Option<OpHash>,
    /// The published LSN when the call began.
    pub began: Lsn,
    /// Name the blobs.
    pub keys: TenantKeys,
}

/// A fork that is durable.
#[derive(Debug)]
pub struct Forked {
    /// The account of the conversation that has it.
    pub account: AccountRef,
    /// What came, in the order of the source's list; by now some may have gone again.
    pub artifacts: Vec<Artifact>,
    /// True if an earlier call with its op id made it.
    pub replayed: bool,
}

/// What goes along with a fork, in the order of the list.
fn chosen(state: &dyn State, now: Time, new: &NewFork) -> Result<Vec<Artifact>> {
    let NewFork { source: named, upto, .. } = new;
    let (tenant, scope) = (named.tenant, named.scope);
    let account = AccountRef { tenant: scope.tenant, account: conversation::live(state, named)?.account };
    let owner = owner_of(&scope);
    let upto = upto.map(|id| Named { tenant, account, owner, id }.find(state)).transpose()?;
    let upto = upto.map(|artifact| artifact.place);
    let after = fences::void_until(state, owner)?;
    let mut chosen = Vec::new();
    artifact::each_of(state, &account, owner, after, &mut |artifact| {
        if upto.is_some_and(|upto| artifact.place > upto) {
            return Ok(ControlFlow::Break(()));
        }
        if artifact::life(state, tenant, &artifact, now)? == Life::Readable {
            chosen.push(artifact);
        }
        if chosen.len() > FORK_MAX {
            return Err(Error::new(Kind::TooMany, "a fork takes at most 10,000 artifacts: name an earlier last one"));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(chosen)
}

const fn owner_of(conversation: &ScopeRef) -> Owner {
    Owner { kind: OwnerKind::Conversation, id: conversation.scope.0 }
}

/// Length of the edits that a fork takes now.
pub fn fork_len(state: &dyn State, now: Time, new: &NewFork) -> Result<usize> {
    let each = |artifact: &Artifact| artifact::record_len(artifact) + artifact::BESIDE_LEN_MAX;
    // A retry has no edits, also where there is no source any more.
    Ok(FORK_FIXED_LEN + chosen(state, now, new).map_or(0, |chosen| chosen.iter().map(each).sum()))
}

/// Forks: a link of each artifact that may be read, all or none. `room` is the length of edits that there is room for.
pub fn fork(state: &dyn State, lsn: Lsn, now: Time, new: &NewFork, room: usize) -> Result<(Vec<Edit>, Sized<Forked>)> {
    let record = conversation::live(state, &new.into)?;
    let account = AccountRef { tenant: new.into.scope.tenant, account: record.account };
    let into = Into::Conversation(new.into.clone());
    let target = Target { tenant: new.into.tenant, account, into: &into, op: new.op, began: new.began };
    if let Some(outcome) = target::outcome(state, lsn, now, &target)? {
        let artifacts = forked_before(state, &account, &new.into.scope, &outcome)?;
        return Ok((Vec::new(), Sized::Done(Forked { account, artifacts, replayed: true })));
    }
    if new.into.scope == new.source.scope {
        return Err(Error::new(Kind::InvalidArgument, "a conversation is no fork of itself"));
    }
    let chosen = chosen(state, now, new)?;
    let uploads_only = chosen.iter().all(|artifact| artifact.born.origin == Origin::Upload);
    target::admit(state, lsn, now, &target, uploads_only)?;
    let scope = target::scope(state, lsn, &target)?;
    let (mut edits, artifacts) = copies(state, lsn, new, &chosen, (account, &scope))?;
    let forked_from = record.forked_from.or(Some(new.source.scope.scope));
    edits.push(conversation::put(&new.into.scope, &Conversation { changed_lsn: lsn, forked_from, ..record }));
    edits.extend(scope.outcome(new.op, OpValue { id: new.source.scope.scope.0, made: OpMade::Fork, lsn, at: now }));
    if edits.iter().map(Edit::encoded_len).sum::<usize>() > room {
        return Ok((Vec::new(), Sized::Outgrown));
    }
    Ok((edits, Sized::Done(Forked { account, artifacts, replayed: false })))
}

/// The copies, and one edit for each blob, however many of them have it.
fn copies(
    state: &dyn State,
    lsn: Lsn,
    new: &NewFork,
    chosen: &[Artifact],
    (account, scope): (AccountRef, &Scope),
) -> Result<(Vec<Edit>, Vec<Artifact>)> {
    let mut blobs: BTreeMap<BlobKey, (Content, u64)> = BTreeMap::new();
    let (mut edits, mut artifacts) = (Vec::new(), Vec::with_capacity(chosen.len()));
    for ((position, source), id) in (0..).zip(chosen).zip(new.ids.iter()) {
        check_provenance(state, new.source.tenant, source)?;
        let place = ListPlace { attach_lsn: lsn, position };
        let artifact = copy(source, ArtifactId(id), account, scope.owner, place);
        check_new(state, &artifact)?;
        artifact::add(&artifact, &mut edits);
        let content = content(source, &new.keys);
        blobs.entry(content.key).or_insert((content, 0)).1 += 1;
        artifacts.push(artifact);
    }
    for (content, more) in blobs.into_values() {
        let more = if canary::sings(Canary::ForkCountsOnce) { 1 } else { more };
        edits.extend(artifact::blob_edits(state, &content, more)?);
    }
    Ok((edits, artifacts))
}

/// What an earlier fork brought: what its LSN attached to the conversation.
fn forked_before(
    state: &dyn State,
    account: &AccountRef,
    scope: &ScopeRef,
    outcome: &OpValue,
) -> Result<Vec<Artifact>> {
    if outcome.made != OpMade::Fork {
        return Err(target::another_call());
    }
    artifact::attached_by(state, account, scope, outcome.lsn)
}
