//! What is done to artifacts that are there: deleted, given another end, linked, forked.

use std::convert;

use super::{ArtifactInfo, ClaimedInfo, Store, artifacts::Place};
use crate::{
    commit::{Request, Stage},
    digest::RandomIds,
    entropy,
    error::{Error, Kind, Result},
    format::keyspace::{Owner, OwnerKind},
    ids::{ArtifactId, ScopeHash, Time},
    ownership::{
        ConversationScope, Scope, account,
        artifact::{self, Into},
        ending::{self, NewEnd},
        link::{self, Linked, NewFork, NewLink},
        names,
    },
};

/// A link of an artifact: another one of its content, without its bytes a second time.
#[derive(Clone, Copy, Debug)]
pub struct Link<'a> {
    /// Who has the source: an account or a conversation.
    pub from: Scope<'a>,
    /// The source.
    pub id: ArtifactId,
    /// Who is to have the link: an account or a conversation, of the same tenant.
    pub to: Scope<'a>,
    /// Its name; that of the source if none is given.
    pub name: Option<&'a str>,
    /// An erasure of the account that the source comes from does not follow the link into another account.
    pub detach: bool,
    /// Names the call, among those that put something where the link goes: a retry is answered and not done again.
    pub op_id: Option<&'a str>,
}

/// A link that is durable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkReply {
    /// The link.
    pub artifact: ArtifactInfo,
    /// True if an earlier call with this op id made it.
    pub replayed: bool,
}

/// A fork of a conversation: a link of each of its artifacts.
#[derive(Clone, Copy, Debug)]
pub struct Fork<'a> {
    /// The source.
    pub from: ConversationScope<'a>,
    /// Where the links go: a conversation that is open, of the same tenant.
    pub to: ConversationScope<'a>,
    /// Nothing behind this one in the source's list goes along.
    pub upto: Option<ArtifactId>,
    /// Names the call, among those that put something where the links go.
    pub op_id: Option<&'a str>,
}

/// A fork that is durable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForkReply {
    /// What it brought, in the order of the source's list.
    pub artifacts: Vec<ClaimedInfo>,
    /// True if an earlier call with this op id made it.
    pub replayed: bool,
}

impl Store {
    /// Deletes an artifact. It is unreadable when this returns, for good; a second time is done.
    pub fn delete<'s>(&self, scope: impl convert::Into<Scope<'s>>, id: ArtifactId) -> Result<ArtifactInfo> {
        let (scope, writing) = (scope.into(), self.writing()?);
        let place = self.place(&scope)?;
        let named = place.named(id);
        let delete = Request::new(self.record_len(&place, id), move |stage| ending::delete(stage, &named));
        let artifact = writing.commit.run(delete.privileged())?;
        self.info(&scope, &place, artifact)
    }

    /// Gives an artifact another end, or none; with `if_version`, if it still has that version. Only what an account owns itself, or a run
    /// has and has not given away, has an end of its own.
    pub fn set_expiry<'s>(
        &self,
        scope: impl convert::Into<Scope<'s>>,
        id: ArtifactId,
        expires_at: Option<Time>,
        if_version: Option<u64>,
    ) -> Result<ArtifactInfo> {
        let (scope, writing) = (scope.into(), self.writing()?);
        let place = self.place(&scope)?;
        let new = NewEnd { named: place.named(id), expires_at, if_version };
        let decide = move |stage: &mut Stage<'_>| ending::set_expiry(stage, stage.now(), &new);
        let decided = writing.commit.run(Request::new(self.record_len(&place, id) + ending::DUE_LEN_MAX, decide));
        let artifact = self.told(&[scope], decided)?;
        self.info(&scope, &place, artifact)
    }

    /// Makes a link. It shares the source's bytes, lives as long as its own owner lets it, and is erased with the source.
    pub fn link(&self, link: &Link<'_>) -> Result<LinkReply> {
        self.link_or_move(link, false)
    }

    /// Gives an artifact another name: a link in its place, and the artifact deleted, in one commit. The id is a new one.
    pub fn rename<'s>(
        &self,
        scope: impl convert::Into<Scope<'s>>,
        id: ArtifactId,
        name: &str,
        op_id: Option<&str>,
    ) -> Result<LinkReply> {
        let scope = scope.into();
        self.link_or_move(&Link { from: scope, id, to: scope, name: Some(name), detach: false, op_id }, true)
    }

    fn link_or_move(&self, link: &Link<'_>, moves: bool) -> Result<LinkReply> {
        let writing = self.writing()?;
        let began = writing.commit.published_lsn();
        let (from, to) = (self.holder(&link.from)?, self.holder(&link.to)?);
        if from.tenant != to.tenant {
            return Err(two_tenants());
        }
        let within = ScopeHash(to.owner.id);
        let new = NewLink {
            id: ArtifactId(entropy::random(&*self.world.entropy)?),
            source: from.named(link.id),
            moves,
            to: Self::owner_named(&link.to, &to),
            into: self.into(&link.to)?,
            name: link.name.map(names::artifact_name).transpose()?,
            detach: link.detach,
            op: link.op_id.map(|op_id| self.door.op(to.tenant.number, within, op_id)).transpose()?,
            began,
            keys: self.door.keys(to.tenant.number)?,
        };
        let decide = move |stage: &mut Stage<'_>| link::link(stage, stage.lsn(), stage.now(), &new);
        let len = link::FIXED_LEN_MAX + 2 * self.record_len(&from, link.id);
        let decided = writing.commit.run(Request::new(len, decide));
        let Linked { artifact, replayed } = self.told(&[link.from, link.to], decided)?;
        Ok(LinkReply { artifact: self.info(&link.to, &to, artifact)?, replayed })
    }

    /// Links each readable artifact of a conversation into another one, in its order, all in one commit.
    pub fn fork(&self, fork: &Fork<'_>) -> Result<ForkReply> {
        let began = self.writing()?.commit.published_lsn();
        let ((tenant, source), (tenant_to, into)) =
            (self.conversation_named(&fork.from)?, self.conversation_named(&fork.to)?);
        if tenant != tenant_to {
            return Err(two_tenants());
        }
        let new = NewFork {
            ids: RandomIds::new(entropy::random(&*self.world.entropy)?),
            op: fork.op_id.map(|op_id| self.door.op(tenant.number, into.scope.scope, op_id)).transpose()?,
            source,
            upto: fork.upto,
            into,
            began,
            keys: self.door.keys(tenant.number)?,
        };
        let owner = Owner { kind: OwnerKind::Conversation, id: new.into.scope.scope.0 };
        let counted = new.clone();
        let forked = self.sized(
            |published| link::fork_len(published, self.now(), &counted),
            move |stage, room| link::fork(stage, stage.lsn(), stage.now(), &new, room),
        )?;
        let (scope, place) = (Scope::Conversation(fork.to), Place { tenant, account: forked.account, owner });
        let artifacts = forked.artifacts.into_iter().map(|artifact| self.brought(&scope, &place, artifact));
        Ok(ForkReply { artifacts: artifacts.collect::<Result<_>>()?, replayed: forked.replayed })
    }

    /// Records by their ids: for each the record, or why there is none.
    pub fn batch_stat<'s>(
        &self,
        scope: impl convert::Into<Scope<'s>>,
        ids: &[ArtifactId],
    ) -> Result<Vec<Result<ArtifactInfo>>> {
        let scope = scope.into();
        let place = self.place(&scope)?;
        Ok(ids.iter().map(|id| self.info(&scope, &place, self.record(&place, *id)?)).collect())
    }

    /// Length of the edit of a record at most. One that is not published yet may be there when its change is decided.
    fn record_len(&self, place: &Place, id: ArtifactId) -> usize {
        self.record(place, id).map_or(artifact::RECORD_LEN_MAX, |record| artifact::record_len(&record))
    }

    /// An end of a link. What a run or an upload has is claimed, and not linked.
    fn holder(&self, scope: &Scope<'_>) -> Result<Place> {
        if matches!(scope, Scope::Run(_) | Scope::Upload(_)) {
            let what = "a link goes from and to accounts and conversations: claim what the run or upload has first";
            return Err(Error::new(Kind::InvalidArgument, what));
        }
        self.place(scope)
    }

    /// The account that something goes to, with its text where this may be its first write.
    fn owner_named(scope: &Scope<'_>, place: &Place) -> account::Named {
        let text = if let Scope::Account(scope) = scope { scope.account } else { "" };
        account::Named { account: place.account, text: text.to_owned() }
    }

    fn into(&self, scope: &Scope<'_>) -> Result<Into> {
        let Scope::Conversation(scope) = scope else { return Ok(Into::Account) };
        Ok(Into::Conversation(self.conversation_named(scope)?.1))
    }
}

fn two_tenants() -> Error {
    Error::new(Kind::InvalidArgument, "source and destination are of one tenant")
}
