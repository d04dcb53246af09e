//! Runs: begun by the store, leased to one holder at a time, finished once.
//!
//! A new lease raises the generation and keeps the begin LSN, so that nobody jumps a fence by leasing again.

use super::{
    account, claim,
    conversation::{self, Named as NamedConversation},
    fences,
    token::{self, RunToken},
};
use crate::{
    catalog::State,
    digest::ScopeKind,
    error::{Error, Kind, Result},
    format::{
        commit::{EDIT_OVERHEAD, Edit},
        keyspace::{AccountRef, Keyspace, Possession, ScopeRef, op_key},
        run::{Run, RunState},
        value::{OpMade, OpValue},
    },
    ids::{Lsn, OpHash, RunId, ScopeHash, Time, TokenBits},
    limits::{RUN_TAGS_MAX, SPAN_MS_MAX},
};

/// Length of the edit of a record at most.
pub const RECORD_LEN_MAX: usize = EDIT_OVERHEAD + 20 + 152 + 16 * RUN_TAGS_MAX;
/// Length of the edits of a beginning at most: record, entry of the account, account, op.
pub const EDITS_LEN_MAX: usize =
    RECORD_LEN_MAX + (EDIT_OVERHEAD + 45) + account::RECORD_LEN_MAX + (EDIT_OVERHEAD + 40 + 40);

/// A run as it is asked for.
#[derive(Clone, Debug)]
pub struct NewRun {
    /// Random.
    pub id: RunId,
    /// The hash of its text.
    pub scope: ScopeRef,
    /// Random.
    pub token: TokenBits,
    /// Name of its tenant.
    pub tenant: ScopeHash,
    /// Whose it is.
    pub owner: account::Named,
    /// The conversation that it works for.
    pub conversation: Option<ScopeHash>,
    /// The run that began it.
    pub parent: Option<ScopeHash>,
    /// Third parties that it touches, rising.
    pub tags: Vec<ScopeHash>,
    /// Milliseconds that it may last, and that what it puts is kept.
    pub ttl: u64,
    /// Milliseconds of its first lease.
    pub lease: u64,
    /// Names the call, so that a retry is answered and not done again.
    pub request: Option<OpHash>,
}

/// How a run is finished.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Finish {
    /// The state that it ends in.
    pub outcome: RunState,
    /// What it gave to a conversation goes back to it.
    pub release_claim: bool,
}

/// A span of time that a caller gives must be one.
pub fn check_span(ms: u64) -> Result<()> {
    if (1..=SPAN_MS_MAX).contains(&ms) {
        Ok(())
    } else {
        Err(Error::new(Kind::InvalidArgument, "a ttl or lease is at least a millisecond and at most a hundred years"))
    }
}

fn later(now: Time, ms: u64) -> Time {
    Time(now.0.saturating_add(ms))
}

/// The run that an earlier call of this name began.
fn begun_before(state: &dyn State, account: &AccountRef, request: Option<OpHash>) -> Result<Option<Run>> {
    let Some(request) = request else { return Ok(None) };
    match state.op(&op_key(Lsn::NONE, account.account, request))? {
        Some(OpValue { id, made: OpMade::Run, .. }) => {
            state.run(&ScopeRef { tenant: account.tenant, scope: ScopeHash(id) })
        }
        _ => Ok(None),
    }
}

/// Begins a run, or finds the one that the same request began.
pub fn begin(state: &dyn State, lsn: Lsn, now: Time, new: &NewRun) -> Result<(Vec<Edit>, Run)> {
    let account = &new.owner.account;
    if let Some(run) = begun_before(state, account, new.request)? {
        return Ok((Vec::new(), run));
    }
    check_span(new.ttl).and_then(|()| check_span(new.lease))?;
    if new.tags.len() > RUN_TAGS_MAX {
        return Err(too_many_tags());
    }
    check_conversation(state, new.tenant, account, new.conversation)?;
    if let Some(parent) = new.parent {
        let parent = state.run(&ScopeRef { tenant: account.tenant, scope: parent })?;
        if parent.is_none_or(|parent| parent.account != account.account) {
            return Err(Error::new(Kind::NotFound, "no such parent run here"));
        }
    }
    fences::check_open(state, scopes(new.tenant, account.account, &new.tags))?;
    if state.run(&new.scope)?.is_some() {
        return Err(Error::new(Kind::Io, "the source of randomness gave an id twice"));
    }
    let run = Run {
        id: new.id,
        account: account.account,
        conversation: new.conversation,
        parent: new.parent,
        state: RunState::Active,
        generation: 1,
        begin_lsn: lsn,
        begun_at: now,
        lease_lsn: lsn,
        lease_until: Some(later(now, new.lease)),
        ttl: new.ttl,
        ends_at: later(now, new.ttl),
        finished_at: Time(0),
        changed_lsn: lsn,
        token: new.token,
        tags: new.tags.clone(),
    };
    let listed = account.possession_key(Possession::Run, lsn, new.scope.scope);
    let mut edits = vec![put(&new.scope, &run), Edit::put(Keyspace::OfAccount, listed, [])];
    edits.extend(account::first_write(state, lsn, now, &new.owner)?);
    edits.extend(outcome(account, new.request, &new.scope, lsn, now));
    Ok((edits, run))
}

fn outcome(account: &AccountRef, request: Option<OpHash>, run: &ScopeRef, lsn: Lsn, at: Time) -> Option<Edit> {
    let value = OpValue { id: run.scope.0, made: OpMade::Run, lsn, at };
    request.map(|request| Edit::put(Keyspace::Op, op_key(Lsn::NONE, account.account, request), value.encode()))
}

fn check_conversation(
    state: &dyn State,
    tenant: ScopeHash,
    account: &AccountRef,
    conversation: Option<ScopeHash>,
) -> Result<()> {
    let Some(scope) = conversation else { return Ok(()) };
    let scope = ScopeRef { tenant: account.tenant, scope };
    conversation::live(state, &NamedConversation { tenant, scope, account: Some(account.account) }).map(drop)
}

fn scopes(tenant: ScopeHash, account: ScopeHash, tags: &[ScopeHash]) -> impl Iterator<Item = fences::Fenced> + '_ {
    let tags = tags.iter().map(|tag| (ScopeKind::Tag, *tag));
    [(ScopeKind::Tenant, tenant), (ScopeKind::Account, account)].into_iter().chain(tags)
}

/// Gives a run a new lease: what the leases before it proved is stale from now on. A second call of the same request is answered by the
/// lease that the first one gave.
pub fn lease(state: &dyn State, lsn: Lsn, now: Time, new: &NewRun) -> Result<(Vec<Edit>, Run)> {
    let account = &new.owner.account;
    let run = state.run(&new.scope)?.filter(|run| run.account == account.account);
    let run = run.ok_or_else(|| Error::new(Kind::NotFound, "no such run here"))?;
    if begun_before(state, account, new.request)?.is_some_and(|before| before.id == run.id) {
        return Ok((Vec::new(), run));
    }
    check_span(new.lease)?;
    token::check_active(&run, now)?;
    check_conversation(state, new.tenant, account, run.conversation)?;
    fences::check_open(state, scopes(new.tenant, account.account, &run.tags))?;
    let generation = run.generation.checked_add(1);
    let generation = generation.ok_or_else(|| Error::new(Kind::Limit, "the run was leased too often"))?;
    let lease_until = Some(later(now, new.lease));
    let next = Run { generation, lease_lsn: lsn, lease_until, changed_lsn: lsn, token: new.token, ..run };
    let mut edits = vec![put(&new.scope, &next)];
    edits.extend(outcome(account, new.request, &new.scope, lsn, now));
    Ok((edits, next))
}

/// Prolongs a lease. It never gets shorter.
pub fn renew(
    state: &dyn State,
    lsn: Lsn,
    now: Time,
    scope: &ScopeRef,
    token: &RunToken,
    lease: u64,
) -> Result<(Vec<Edit>, Run)> {
    let run = token::current(state, scope, token, lsn)?;
    check_span(lease)?;
    token::check_active(&run, now)?;
    token::check_leased(&run, now)?;
    let lease_until = run.lease_until.max(Some(later(now, lease)));
    let next = Run { lease_until, changed_lsn: lsn, ..run };
    Ok((vec![put(scope, &next)], next))
}

/// Ends a lease before its time; the run goes on with the next one.
pub fn pause(state: &dyn State, lsn: Lsn, now: Time, scope: &ScopeRef, token: &RunToken) -> Result<(Vec<Edit>, Run)> {
    let run = token::current(state, scope, token, lsn)?;
    token::check_active(&run, now)?;
    if run.lease_until.is_none() {
        return Ok((Vec::new(), run));
    }
    token::check_leased(&run, now)?;
    let next = Run { lease_until: None, changed_lsn: lsn, ..run };
    Ok((vec![put(scope, &next)], next))
}

/// Adds tags. True if one of them was fenced since the run began: then what the run made is void by it, but for uploads.
pub fn tag(state: &dyn State, lsn: Lsn, scope: &ScopeRef, run: &Run, tags: &[ScopeHash]) -> Result<(Vec<Edit>, bool)> {
    let mut affected = false;
    for tag in tags {
        let fence = state.fence(ScopeKind::Tag, *tag)?;
        affected |= fence.void_all.max(fence.void_derived) > run.begin_lsn;
    }
    let mut next = Run { changed_lsn: lsn, ..run.clone() };
    next.tags.extend(tags);
    next.tags.sort_unstable();
    next.tags.dedup();
    if next.tags.len() > RUN_TAGS_MAX {
        return Err(too_many_tags());
    }
    if next.tags == run.tags {
        return Ok((Vec::new(), affected));
    }
    Ok((vec![put(scope, &next)], affected))
}

fn too_many_tags() -> Error {
    Error::new(Kind::TooMany, "a run has at most 256 tags")
}

/// Finishes a run, once. Expiries stay as they are.
pub fn finish(
    state: &dyn State,
    lsn: Lsn,
    now: Time,
    tenant: ScopeHash,
    scope: &ScopeRef,
    token: &RunToken,
    finish: Finish,
) -> Result<(Vec<Edit>, Run)> {
    let run = token::current(state, scope, token, lsn)?;
    let Finish { outcome, release_claim } = finish;
    match (outcome, release_claim) {
        (RunState::Active, _) => return Err(Error::new(Kind::InvalidArgument, "a run does not finish as active")),
        (RunState::Succeeded, true) => {
            return Err(Error::new(Kind::InvalidArgument, "only a failed or cancelled run takes its claim back"));
        }
        _ => {}
    }
    match effective_state(&run, now) {
        RunState::Active => {}
        // Its time was over before anybody finished it; that it was is written down now.
        RunState::Cancelled if run.state == RunState::Active && outcome == RunState::Cancelled => {}
        before if before == outcome => return Ok((Vec::new(), run)),
        _ => return Err(Error::new(Kind::AlreadyFinished, "the run ended otherwise")),
    }
    let finished_at = now.min(run.ends_at);
    let next = Run { state: outcome, lease_until: None, finished_at, changed_lsn: lsn, ..run };
    let mut edits = vec![put(scope, &next)];
    if release_claim {
        edits.extend(claim::release(state, lsn, now, tenant, scope)?);
    }
    Ok((edits, next))
}

/// The state that counts: a run whose time is over is cancelled, whether anybody wrote that down or not.
pub fn effective_state(run: &Run, now: Time) -> RunState {
    if run.state == RunState::Active && !token::is_active(run, now) { RunState::Cancelled } else { run.state }
}

/// The edit that writes a record.
pub fn put(scope: &ScopeRef, run: &Run) -> Edit {
    Edit::put(Keyspace::Run, scope.key(), run.encode())
}
