//! Claims: what a run exported goes to the conversation of its reply, all of it in one commit, once.

use std::{collections::BTreeSet, ops::ControlFlow};

use super::{
    artifact::{self, Life},
    conversation::{self, Named as NamedConversation},
    fences, run,
    token::{self, RunToken},
};
use crate::{
    catalog::State,
    digest::ScopeKind,
    error::{Error, Kind, Result},
    format::{
        artifact::{Artifact, Origin},
        claim::{Claim, Claimed, ENTRY_LEN, SkipReason},
        commit::{EDIT_OVERHEAD, Edit},
        conversation::{Conversation, ConversationState},
        keyspace::{AccountRef, Keyspace, ListPlace, Owner, OwnerKind, ScopeRef},
        run::Run,
    },
    ids::{ArtifactId, Lsn, OpHash, ScopeHash, Time},
    limits::CLAIM_MAX,
};

/// Length of the edits of one artifact that changes its owner, besides those of its record: two of the list, one of its end.
pub(super) const MOVE_LEN: usize =
    (EDIT_OVERHEAD + 36) + (EDIT_OVERHEAD + 49) + (EDIT_OVERHEAD + 49 + 16) + (EDIT_OVERHEAD + 45);
/// Length of the other edits of a claim or release: claim, run, conversation.
const FIXED_LEN: usize = (EDIT_OVERHEAD + 20 + 64) + run::RECORD_LEN_MAX + conversation::RECORD_LEN_MAX;

/// A claim as it is asked for.
#[derive(Clone, Debug)]
pub struct NewClaim {
    /// Name of the tenant.
    pub tenant: ScopeHash,
    /// The run.
    pub run: ScopeRef,
    /// Proves its lease.
    pub token: RunToken,
    /// Where its artifacts go.
    pub conversation: ScopeHash,
    /// Names the call.
    pub reply: OpHash,
}

/// What came of a request whose length was estimated outside of the commit lock.
#[derive(Debug)]
pub enum Sized<T> {
    /// It is done.
    Done(T),
    /// More is there than was counted: count again.
    Outgrown,
}

/// A claim that is durable, or was before.
#[derive(Clone, Debug)]
pub struct Claiming {
    /// The claim.
    pub claim: Claim,
    /// True if an earlier call made it.
    pub replayed: bool,
}

/// Owner of what a run has put and not given away.
pub const fn owner(run: &ScopeRef) -> Owner {
    Owner { kind: OwnerKind::Run, id: run.scope.0 }
}

/// True for what a reply takes along: what its run made for it. Uploads and captures of tools stay.
const fn is_claimable(origin: Origin) -> bool {
    matches!(origin, Origin::SandboxExport | Origin::ModelOutput)
}

/// Length of the edits that a claim of the run takes now, with room for a few more puts.
pub fn claim_len(state: &dyn State, run_ref: &ScopeRef, account: ScopeHash) -> Result<usize> {
    let account = AccountRef { tenant: run_ref.tenant, account };
    let mut len = FIXED_LEN;
    artifact::each_of(state, &account, owner(run_ref), None, &mut |artifact| {
        if is_claimable(artifact.born.origin) {
            len += artifact.encode().len() + MOVE_LEN + ENTRY_LEN;
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(len)
}

/// Claims. `room` is the length of edits that there is room for.
pub fn claim(
    state: &dyn State,
    lsn: Lsn,
    now: Time,
    new: &NewClaim,
    room: usize,
) -> Result<(Vec<Edit>, Sized<Claiming>)> {
    let run = token::current(state, &new.run, &new.token, lsn)?;
    let scope = ScopeRef { tenant: new.run.tenant, scope: new.conversation };
    // The account of the run is the caller's: a conversation of another one is as unknown as one that there is not.
    let named = NamedConversation { tenant: new.tenant, scope, account: Some(run.account) };
    if let Some(claim) = state.claim(&new.run)? {
        return again(state, &named, new, claim);
    }
    token::check_active(&run, now)?;
    token::check_leased(&run, now)?;
    let conversation = conversation::live(state, &named)?;
    fences::check(state, run.begin_lsn, false, scopes(new, &run))?;
    let Choice { chosen, skipped } = choose(state, now, new, &run)?;
    if chosen.len() > CLAIM_MAX || skipped.len() > CLAIM_MAX {
        return Err(Error::new(
            Kind::TooMany,
            "a claim takes at most 10,000 artifacts: finish the run and begin another",
        ));
    }
    let mut edits = Vec::with_capacity(chosen.len() * 4 + 3);
    let mut claimed = Vec::with_capacity(chosen.len());
    let to = Owner { kind: OwnerKind::Conversation, id: new.conversation.0 };
    for (position, artifact) in (0..).zip(&chosen) {
        claimed.push(Claimed { artifact: artifact.id, expires_at: artifact.expires_at });
        artifact::move_to(artifact, to, ListPlace { attach_lsn: lsn, position }, None, &mut edits);
    }
    let claim =
        Claim { conversation: new.conversation, reply: new.reply, lsn, at: now, released: false, claimed, skipped };
    edits.push(put(&new.run, &claim));
    edits.push(run::put(&new.run, &Run { changed_lsn: lsn, ..run }));
    edits.push(conversation::put(&scope, &Conversation { changed_lsn: lsn, ..conversation }));
    if edits.iter().map(Edit::encoded_len).sum::<usize>() > room {
        return Ok((Vec::new(), Sized::Outgrown));
    }
    Ok((edits, Sized::Done(Claiming { claim, replayed: false })))
}

/// A second call: the same one is answered, any other is too late.
fn again(
    state: &dyn State,
    named: &NamedConversation,
    new: &NewClaim,
    claim: Claim,
) -> Result<(Vec<Edit>, Sized<Claiming>)> {
    if claim.reply != new.reply || claim.conversation != new.conversation {
        return Err(Error::new(Kind::AlreadyClaimed, "the run's artifacts were claimed by another reply"));
    }
    conversation::live(state, named)?;
    if claim.released {
        return Err(Error::new(Kind::RunClosed, "the run was finished and took its claim back"));
    }
    Ok((Vec::new(), Sized::Done(Claiming { claim, replayed: true })))
}

fn scopes<'a>(new: &NewClaim, run: &'a Run) -> impl Iterator<Item = fences::Fenced> + use<'a> {
    let own = [
        (ScopeKind::Tenant, new.tenant),
        (ScopeKind::Account, run.account),
        (ScopeKind::Conversation, new.conversation),
        (ScopeKind::Run, new.run.scope),
    ];
    own.into_iter().chain(run.tags.iter().map(|tag| (ScopeKind::Tag, *tag)))
}

struct Choice {
    chosen: Vec<Artifact>,
    skipped: Vec<(ArtifactId, SkipReason)>,
}

/// What is eligible, in the order of the puts, the first of each name and content.
fn choose(state: &dyn State, now: Time, new: &NewClaim, run: &Run) -> Result<Choice> {
    let account = AccountRef { tenant: new.run.tenant, account: run.account };
    let (mut eligible, mut skipped) = (Vec::new(), Vec::new());
    artifact::each_of(state, &account, owner(&new.run), None, &mut |artifact| {
        if is_claimable(artifact.born.origin) && artifact.born.run == Some(new.run.scope) {
            match artifact::life(state, new.tenant, &artifact, now)? {
                Life::Readable => eligible.push(artifact),
                Life::Expired => skipped.push((artifact.id, SkipReason::Expired)),
                Life::Deleted | Life::Erased if artifact.deleted => {}
                Life::Deleted | Life::Erased => skipped.push((artifact.id, SkipReason::Fenced)),
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    // What came back from an earlier owner stands behind its place in the run's list.
    eligible.sort_by_key(|artifact| artifact.born.lsn);
    let mut seen = BTreeSet::new();
    let mut chosen = Vec::new();
    for artifact in eligible {
        if seen.insert((artifact.name.clone(), artifact.sha256)) {
            chosen.push(artifact);
        } else {
            skipped.push((artifact.id, SkipReason::Duplicate));
        }
    }
    Ok(Choice { chosen, skipped })
}

fn put(run: &ScopeRef, claim: &Claim) -> Edit {
    Edit::put(Keyspace::Claim, run.key(), claim.encode())
}

/// Length of the edits that taking a claim back takes at most.
pub fn release_len(state: &dyn State, run_ref: &ScopeRef, account: ScopeHash) -> Result<usize> {
    let account = AccountRef { tenant: run_ref.tenant, account };
    let mut len = FIXED_LEN;
    for Claimed { artifact, .. } in state.claim(run_ref)?.into_iter().flat_map(|claim| claim.claimed) {
        let record = state.artifact(&account, artifact)?;
        len += record.map_or(0, |record| record.encode().len()) + MOVE_LEN + ENTRY_LEN;
    }
    Ok(len)
}

/// Takes a claim back: what the conversation still has of it goes to the run again, with the end that it had. What was deleted, reset
/// or fenced since stays gone.
pub fn release(state: &dyn State, lsn: Lsn, now: Time, tenant: ScopeHash, run_ref: &ScopeRef) -> Result<Vec<Edit>> {
    let (Some(run), Some(claim)) = (state.run(run_ref)?, state.claim(run_ref)?) else { return Ok(Vec::new()) };
    if claim.released {
        return Ok(Vec::new());
    }
    let account = AccountRef { tenant: run_ref.tenant, account: run.account };
    let scope = ScopeRef { tenant: run_ref.tenant, scope: claim.conversation };
    let conversation = state.conversation(&scope)?;
    let is_live = conversation.is_some_and(|found| found.state != ConversationState::Deleted);
    let from = Owner { kind: OwnerKind::Conversation, id: claim.conversation.0 };
    let mut edits = vec![put(run_ref, &Claim { released: true, ..claim.clone() })];
    for (position, Claimed { artifact, expires_at }) in (0..).zip(claim.claimed) {
        let Some(record) = state.artifact(&account, artifact)?.filter(|record| record.owner == from) else { continue };
        if is_live && artifact::life(state, tenant, &record, now)? == Life::Readable {
            let place = ListPlace { attach_lsn: lsn, position };
            artifact::move_to(&record, owner(run_ref), place, expires_at, &mut edits);
        }
    }
    Ok(edits)
}
