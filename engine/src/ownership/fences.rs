//! Fences: what they refuse at a commit, what they void at a read, and how they are raised.
//!
//! A fence is one edit, however much it covers. It knows neither the verbs that raise it nor what becomes of the bytes.

use crate::{
    catalog::State,
    digest::ScopeKind,
    error::{Error, Kind, Result},
    format::{
        artifact::{Artifact, Origin},
        commit::Edit,
        fence::{Fence, fence_key},
        keyspace::{Keyspace, ListPlace, Owner, OwnerKind, ScopeRef},
    },
    ids::{Lsn, ScopeHash},
};

/// A scope that a fence may stand on.
pub type Fenced = (ScopeKind, ScopeHash);

/// What became of an artifact that a fence voids.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Void {
    /// Its owner was deleted or reset.
    Deleted,
    /// It was erased.
    Erased,
}

/// Refuses a call that began at `begin`, if one of its scopes was cut since, or takes nothing new. `uploads_only`: the call
/// concerns artifacts of the origin `upload` alone, which the erasure of a third party spares.
pub fn check(
    state: &dyn State,
    begin: Lsn,
    uploads_only: bool,
    scopes: impl IntoIterator<Item = Fenced>,
) -> Result<()> {
    for (kind, scope) in scopes {
        let fence = state.fence(kind, scope)?;
        let cut = fence.void_all > begin || (fence.void_derived > begin && !uploads_only);
        if cut || fence.is_closed() {
            return Err(Error::new(Kind::Fenced, refusal(kind)));
        }
    }
    Ok(())
}

/// Refuses what begins now in a scope that takes nothing new.
pub fn check_open(state: &dyn State, scopes: impl IntoIterator<Item = Fenced>) -> Result<()> {
    for (kind, scope) in scopes {
        if state.fence(kind, scope)?.is_closed() {
            return Err(Error::new(Kind::Fenced, refusal(kind)));
        }
    }
    Ok(())
}

/// Names the kind of scope, and no id.
const fn refusal(kind: ScopeKind) -> &'static str {
    match kind {
        ScopeKind::Tenant => "the tenant was fenced since this began",
        ScopeKind::Account => "the account was fenced since this began",
        ScopeKind::Tag => "a tag of the run was fenced since this began",
        ScopeKind::Conversation => "the conversation was reset or deleted since this began",
        ScopeKind::Run => "the run was fenced since it began",
        ScopeKind::Digest => "this content was fenced since this began",
    }
}

/// The edit that raises a fence. No field of it ever falls.
pub fn raise(state: &dyn State, (kind, scope): Fenced, fence: Fence) -> Result<Edit> {
    let merged = state.fence(kind, scope)?.merged(fence);
    Ok(Edit::put(Keyspace::Fence, fence_key(kind, scope), merged.encode()))
}

/// Where an artifact comes from, whoever has it now: what a copy of it shares with it.
pub fn provenance(state: &dyn State, tenant: ScopeHash, artifact: &Artifact) -> Result<Vec<Fenced>> {
    let mut scopes = vec![(ScopeKind::Tenant, tenant)];
    if !artifact.detach {
        scopes.push((ScopeKind::Account, artifact.born.account));
    }
    if let Some(scope) = artifact.born.run {
        scopes.push((ScopeKind::Run, scope));
        // Through the run, so that tags that it was given later, and copies made before, are covered.
        let run = state.run(&ScopeRef { tenant: artifact.account.tenant, scope })?;
        scopes.extend(run.into_iter().flat_map(|run| run.tags).map(|tag| (ScopeKind::Tag, tag)));
    }
    Ok(scopes)
}

/// Where the readable part of an owner's list begins at the earliest: what a reset or a deletion voided is a prefix of it, and is passed
/// over by one look-up.
pub fn void_until(state: &dyn State, owner: Owner) -> Result<Option<ListPlace>> {
    if owner.kind != OwnerKind::Conversation {
        return Ok(None);
    }
    let void_all = state.fence(ScopeKind::Conversation, ScopeHash(owner.id))?.void_all;
    Ok((void_all != Lsn::NONE).then_some(ListPlace { attach_lsn: void_all, position: u32::MAX }))
}

/// What voids an artifact: the fences of where it comes from, held against the LSN that its writer began at, and those of whose it
/// is, held against the LSN at which it came there. `tenant` is the hash of the tenant's name.
pub fn void(state: &dyn State, tenant: ScopeHash, artifact: &Artifact) -> Result<Option<Void>> {
    let derived = artifact.born.origin != Origin::Upload;
    let mut worst = None;
    let mut hold = |fence: Fence, against: Lsn, spares_uploads: bool| {
        if fence.void_all > against || (spares_uploads && derived && fence.void_derived > against) {
            let void = if fence.erased_at > against { Void::Erased } else { Void::Deleted };
            worst = if worst == Some(Void::Erased) { worst } else { Some(void) };
        }
    };
    let began = artifact.token_lsn;
    for (kind, scope) in provenance(state, tenant, artifact)? {
        hold(state.fence(kind, scope)?, began, true);
    }
    let attached = artifact.place.attach_lsn;
    hold(state.fence(ScopeKind::Account, artifact.account.account)?, attached, false);
    let owner = ScopeHash(artifact.owner.id);
    match artifact.owner.kind {
        OwnerKind::Conversation => hold(state.fence(ScopeKind::Conversation, owner)?, attached, false),
        OwnerKind::Run => {
            // A conversation takes with it what the runs that worked for it have not claimed.
            let run = state.run(&ScopeRef { tenant: artifact.account.tenant, scope: owner })?;
            if let Some(conversation) = run.and_then(|run| run.conversation) {
                hold(state.fence(ScopeKind::Conversation, conversation)?, began, false);
            }
        }
        OwnerKind::Upload | OwnerKind::Account => {}
    }
    Ok(worst)
}
