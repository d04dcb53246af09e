//! Sending: what uploads became goes to the conversation of a message, all of it in one commit, once.

use std::collections::BTreeSet;

use super::{
    artifact::{self, Into, check_readable},
    claim::{MOVE_LEN, Sized},
    conversation::{self, Named as NamedConversation},
    fences,
    target::{self, Target},
};
use crate::{
    catalog::State,
    error::{Error, Kind, Result},
    format::{
        artifact::{Artifact, Origin},
        commit::{EDIT_OVERHEAD, Edit},
        conversation::Conversation,
        keyspace::{AccountRef, ListPlace, OwnerKind},
        value::{OpMade, OpValue},
    },
    ids::{ArtifactId, Lsn, OpHash, Time},
    limits::CLAIM_UPLOADS_MAX,
};

/// Length of the other edits: conversation, op.
const FIXED_LEN: usize = conversation::RECORD_LEN_MAX + (EDIT_OVERHEAD + 40 + 40);

/// A claim of uploads as it is asked for.
#[derive(Clone)]
pub struct Sending {
    /// Where they go: a conversation that is open.
    pub into: NamedConversation,
    /// What they became, in the order that the conversation gets.
    pub ids: Vec<ArtifactId>,
    /// Names the call.
    pub op: OpHash,
    /// The published LSN when the call began.
    pub began: Lsn,
}

/// A claim of uploads that is durable.
pub struct Sent {
    /// The account of the conversation.
    pub account: AccountRef,
    /// What came, in its order; by now some may have gone again.
    pub ids: Vec<ArtifactId>,
    /// True if an earlier call made it.
    pub replayed: bool,
}

/// Length of the edits that it takes.
pub fn len(state: &dyn State, new: &Sending) -> Result<usize> {
    let account = account_of(state, new)?;
    let mut len = FIXED_LEN;
    for id in &new.ids {
        len += MOVE_LEN + state.artifact(&account, *id)?.map_or(0, |artifact| artifact.encode().len());
    }
    Ok(len)
}

fn account_of(state: &dyn State, new: &Sending) -> Result<AccountRef> {
    let record = conversation::live(state, &new.into)?;
    Ok(AccountRef { tenant: new.into.scope.tenant, account: record.account })
}

/// Claims. `room` is the length of edits that there is room for.
pub fn claim(state: &dyn State, lsn: Lsn, now: Time, new: &Sending, room: usize) -> Result<(Vec<Edit>, Sized<Sent>)> {
    let account = account_of(state, new)?;
    let into = Into::Conversation(new.into.clone());
    let target = Target { tenant: new.into.tenant, account, into: &into, op: Some(new.op), began: new.began };
    let scope = target::scope(state, lsn, &target)?;
    if let Some(outcome) = target::outcome(state, lsn, now, &target)? {
        let ids = again(state, &account, new, &outcome)?;
        return Ok((Vec::new(), Sized::Done(Sent { account, ids, replayed: true })));
    }
    if new.ids.len() > CLAIM_UPLOADS_MAX {
        return Err(Error::new(Kind::TooMany, "at most 1,000 uploads are claimed at a time"));
    }
    let chosen = chosen(state, now, new, &account)?;
    let uploads_only = chosen.iter().all(|artifact| artifact.born.origin == Origin::Upload);
    target::admit(state, lsn, now, &target, uploads_only)?;
    let mut edits = Vec::with_capacity(chosen.len() * 4 + 2);
    for (position, artifact) in (0..).zip(&chosen) {
        let provenance = fences::provenance(state, new.into.tenant, artifact)?;
        fences::check(state, artifact.token_lsn, artifact.born.origin == Origin::Upload, provenance)?;
        artifact::move_to(artifact, scope.owner, ListPlace { attach_lsn: lsn, position }, None, &mut edits);
    }
    let conversation = conversation::live(state, &new.into)?;
    edits.push(conversation::put(&new.into.scope, &Conversation { changed_lsn: lsn, ..conversation }));
    let outcome = OpValue { id: new.into.scope.scope.0, made: OpMade::Fork, lsn, at: now };
    edits.extend(scope.outcome(Some(new.op), outcome));
    if edits.iter().map(Edit::encoded_len).sum::<usize>() > room {
        return Ok((Vec::new(), Sized::Outgrown));
    }
    let ids = chosen.iter().map(|artifact| artifact.id).collect();
    Ok((edits, Sized::Done(Sent { account, ids, replayed: false })))
}

/// Each must be what an upload of the account became, readable, and nobody's yet.
fn chosen(state: &dyn State, now: Time, new: &Sending, account: &AccountRef) -> Result<Vec<Artifact>> {
    let mut seen = BTreeSet::new();
    let mut chosen = Vec::with_capacity(new.ids.len());
    for id in new.ids.iter().filter(|id| seen.insert(**id)) {
        let unknown = || Error::new(Kind::NotFound, "no upload of the account became this").of_artifact(*id);
        let artifact = state.artifact(account, *id)?.ok_or_else(unknown)?;
        match artifact.owner.kind {
            OwnerKind::Upload => {}
            OwnerKind::Conversation if artifact.link_of.is_none() && artifact.born.run.is_none() => {
                return Err(Error::new(Kind::AlreadyClaimed, "it is in a conversation already").of_artifact(*id));
            }
            _ => return Err(unknown()),
        }
        check_readable(artifact::life(state, new.into.tenant, &artifact, now)?, *id)?;
        chosen.push(artifact);
    }
    Ok(chosen)
}

/// What an earlier call with this message id took, if it asked for the same.
fn again(state: &dyn State, account: &AccountRef, new: &Sending, outcome: &OpValue) -> Result<Vec<ArtifactId>> {
    let artifacts = artifact::attached_by(state, account, &new.into.scope, outcome.lsn)?;
    let ids: Vec<ArtifactId> = artifacts.iter().map(|artifact| artifact.id).collect();
    let (taken, asked): (BTreeSet<_>, BTreeSet<_>) = (ids.iter().collect(), new.ids.iter().collect());
    if taken != asked {
        return Err(Error::new(Kind::AlreadyClaimed, "this message claimed other uploads"));
    }
    Ok(ids)
}
