//! Where a call puts something: whether it may come in there, and what an earlier call with the same op id made.

use super::{
    artifact::{self, Life},
    conversation::{self, Named as NamedConversation},
    fences,
    token::{self, RunToken},
    upload::Named as NamedUpload,
};
use crate::{
    catalog::State,
    digest::ScopeKind,
    error::{Error, Kind, Result},
    format::{
        artifact::Artifact,
        commit::Edit,
        keyspace::{AccountRef, Keyspace, Owner, OwnerKind, ScopeRef, op_key},
        value::{OpMade, OpValue},
    },
    ids::{ArtifactId, Lsn, OpHash, ScopeHash, Time},
    limits::{ACCOUNT_OP_KEPT_MS, RUN_OP_KEPT_MS, UNSENT_MS},
};

/// Where a put goes.
#[derive(Clone, Debug)]
pub enum Into {
    /// An account itself.
    Account,
    /// A conversation, without a run.
    Conversation(NamedConversation),
    /// A run, whose lease the token proves.
    Run(ScopeRef, RunToken),
    /// What an upload becomes that has so many bytes, until a conversation takes it.
    Upload(NamedUpload, u64),
}

/// The same with what every call says of itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target<'a> {
    /// Name of the tenant.
    pub(super) tenant: ScopeHash,
    /// The account; of a conversation or run its account.
    pub(super) account: AccountRef,
    /// Where it goes.
    pub(super) into: &'a Into,
    /// Names the call, so that a retry is answered and not done again.
    pub(super) op: Option<OpHash>,
    /// The published LSN when the call began.
    pub(super) began: Lsn,
}

/// What the scope says of what comes in, whether it may come in or not.
pub(super) struct Scope {
    pub(super) owner: Owner,
    pub(super) run: Option<ScopeHash>,
    /// The LSN that its outcomes are kept under, and the scope.
    pub(super) key: (Lsn, ScopeHash),
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

impl Scope {
    /// The edit that remembers what a call with an op id made.
    pub(super) fn made(&self, op: Option<OpHash>, id: ArtifactId, lsn: Lsn, at: Time) -> Option<Edit> {
        self.outcome(op, OpValue { id: id.0, made: OpMade::Artifact, lsn, at })
    }

    /// The edit that remembers an outcome.
    pub(super) fn outcome(&self, op: Option<OpHash>, value: OpValue) -> Option<Edit> {
        let (begin, within) = self.key;
        op.map(|op| Edit::put(Keyspace::Op, op_key(begin, within, op), value.encode()))
    }
}

/// The scope that a call goes into.
pub(super) fn scope(state: &dyn State, lsn: Lsn, target: &Target<'_>) -> Result<Scope> {
    let account = target.account.account;
    Ok(match target.into {
        Into::Account => Scope {
            owner: Owner { kind: OwnerKind::Account, id: account.0 },
            run: None,
            key: (Lsn::NONE, account),
            forgotten: Forgotten::After(ACCOUNT_OP_KEPT_MS),
        },
        // The record goes with the commit, the account stays.
        Into::Upload(named, _) => Scope {
            owner: Owner { kind: OwnerKind::Upload, id: named.id.0 },
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

/// Whether something may come in: the LSN that fences are held against, and when it ends if a run decides that. `uploads_only`: it is
/// of the origin `upload`.
pub(super) fn admit(
    state: &dyn State,
    lsn: Lsn,
    now: Time,
    target: &Target<'_>,
    uploads_only: bool,
) -> Result<(Lsn, Option<Time>)> {
    let Target { tenant, account, into, began, .. } = target;
    let own = [(ScopeKind::Tenant, *tenant), (ScopeKind::Account, account.account)];
    match into {
        Into::Account => {
            fences::check(state, *began, uploads_only, own)?;
            Ok((*began, None))
        }
        Into::Conversation(named) => {
            conversation::open_for_new(state, named)?;
            let scopes = own.into_iter().chain([(ScopeKind::Conversation, named.scope.scope)]);
            fences::check(state, *began, uploads_only, scopes)?;
            Ok((*began, None))
        }
        Into::Upload(named, offset) => {
            let upload = named.at(state, now, *offset)?;
            fences::check(state, upload.begin_lsn, uploads_only, own)?;
            Ok((upload.begin_lsn, Some(Time(now.0.saturating_add(UNSENT_MS)))))
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

/// What an earlier call with this op id came to, while that answers retries. An outcome that is older than it is kept for counts as
/// absent, whether something removed it or not.
pub(super) fn outcome(state: &dyn State, lsn: Lsn, now: Time, target: &Target<'_>) -> Result<Option<OpValue>> {
    let Some(op) = target.op else { return Ok(None) };
    let Scope { key: (begin, within), forgotten, .. } = scope(state, lsn, target)?;
    let outcome = state.op(&op_key(begin, within, op))?;
    Ok(outcome.filter(|outcome| !forgotten.is_over(outcome.at, now)))
}

/// The artifact that an earlier call with this op id made; GONE if it is no more.
pub(super) fn replay(state: &dyn State, lsn: Lsn, now: Time, target: &Target<'_>) -> Result<Option<Artifact>> {
    let Some(outcome) = outcome(state, lsn, now, target)? else { return Ok(None) };
    if outcome.made != OpMade::Artifact {
        return Err(another_call());
    }
    let id = ArtifactId(outcome.id);
    match state.artifact(&target.account, id)? {
        Some(artifact) if artifact::life(state, target.tenant, &artifact, now)? == Life::Readable => Ok(Some(artifact)),
        _ => Err(Error::new(Kind::Gone, "what this op id made is no more").of_artifact(id)),
    }
}

/// An op id names one call.
pub(super) fn another_call() -> Error {
    Error::new(Kind::InvalidArgument, "this op id names a call of another kind")
}
