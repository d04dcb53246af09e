//! Conversations and runs, as callers see and change them.

use super::{ArtifactInfo, Store, artifacts::Place, sized::Decided};
use crate::{
    catalog::State,
    commit::{Request, Stage},
    entropy,
    error::{Error, Kind, Result},
    format::{
        artifact::Artifact,
        claim::SkipReason,
        conversation::{Conversation, ConversationState},
        keyspace::{AccountRef, Keyspace, Owner, OwnerKind, Possession, ScopeRef, possession_of_key},
        run::{Run, RunState},
    },
    ids::{ArtifactId, Lsn, RunId, ScopeHash, Time, TokenBits},
    limits::{LEASE_MS, LIST_PAGE_MAX, RUN_TTL_MS},
    ownership::{
        AccountScope, ConversationScope, RunScope, RunToken, Scope, Tenant,
        artifact::Life,
        claim::{self, NewClaim, Sized},
        conversation::{self, Named, Verb},
        run::{self, Finish, NewRun},
        token,
    },
};

/// A conversation as it is reported.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConversationInfo {
    /// Tenant, as the caller named it.
    pub tenant: String,
    /// Account, as it was named at its first write.
    pub account: String,
    /// Its id.
    pub conversation: String,
    /// Its state.
    pub state: ConversationState,
    /// When it was opened.
    pub opened_at: Time,
    /// LSN of the last change of the conversation itself: opened, claimed into, archived, reset, deleted.
    pub changed_lsn: Lsn,
    /// LSN of the last reset.
    pub reset_lsn: Option<Lsn>,
}

/// A run as it is reported.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunInfo {
    /// Tenant, as the caller named it.
    pub tenant: String,
    /// Account, as it was named at its first write.
    pub account: String,
    /// Its id.
    pub run: RunId,
    /// The conversation that it works for; empty text if that was deleted.
    pub conversation: Option<String>,
    /// The run that began it.
    pub parent: Option<RunId>,
    /// Its state. One whose time is over is cancelled.
    pub state: RunState,
    /// Which lease is the present one.
    pub generation: u32,
    /// When it began.
    pub begun_at: Time,
    /// When it is cancelled unless somebody finishes it.
    pub ends_at: Time,
    /// When its lease ends; none if it is paused or over.
    pub lease_until: Option<Time>,
    /// How many tags it has.
    pub tags: usize,
    /// LSN of its last change.
    pub changed_lsn: Lsn,
}

/// A third party that a run touched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tag<'a> {
    /// What it is: person, email, source.
    pub kind: &'a str,
    /// What it goes by. Only a hash of it is kept.
    pub key: &'a str,
}

/// A run that is to begin, or to be leased again.
#[derive(Clone, Copy, Debug)]
pub struct BeginRun<'a> {
    /// Whose it is.
    pub scope: AccountScope<'a>,
    /// The conversation that it works for.
    pub conversation: Option<&'a str>,
    /// The run that begins it.
    pub parent: Option<RunId>,
    /// Third parties that it touches.
    pub tags: &'a [Tag<'a>],
    /// Milliseconds that it may last, and that what it puts is kept unless it is claimed.
    pub ttl: u64,
    /// Milliseconds of its lease.
    pub lease: u64,
    /// Names the call: a retry is answered and not done again.
    pub request_id: Option<&'a str>,
    /// Not a new run, but a new lease of this one.
    pub again: Option<RunId>,
}

impl<'a> BeginRun<'a> {
    /// A run of an account, everything else by default.
    pub const fn of(scope: AccountScope<'a>) -> Self {
        Self {
            scope,
            conversation: None,
            parent: None,
            tags: &[],
            ttl: RUN_TTL_MS,
            lease: LEASE_MS,
            request_id: None,
            again: None,
        }
    }
}

/// A run, and the proof of its lease.
#[derive(Clone, Debug)]
pub struct Leased {
    /// The run.
    pub run: RunInfo,
    /// Proof of the lease.
    pub token: RunToken,
}

/// An artifact that a claim took or a fork brought.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ClaimedInfo {
    /// It is there.
    Here(Box<ArtifactInfo>),
    /// It has gone since: expired, deleted or erased.
    Gone(ArtifactId, &'static str),
}

/// What a claim took and left.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClaimReply {
    /// What it took, in the order of the puts.
    pub artifacts: Vec<ClaimedInfo>,
    /// What it left, and why.
    pub skipped: Vec<(ArtifactId, SkipReason)>,
    /// True if an earlier call with this reply id made it.
    pub replayed: bool,
}

impl Store {
    /// Opens a conversation of an account, or finds it open. `CONV_GONE`: it was deleted, and its id is never used again.
    pub fn open_conversation(&self, scope: &AccountScope<'_>, conversation: &str) -> Result<ConversationInfo> {
        let named = ConversationScope { tenant: scope.tenant, account: Some(scope.account), conversation };
        let (tenant, found) = self.conversation_named(&named)?;
        let owner = self.door.account_named(tenant, scope.account)?;
        let text = conversation.to_owned();
        let scope = found.scope;
        let decide = move |stage: &mut Stage<'_>| -> Decided<Conversation> {
            conversation::open(stage, stage.lsn(), stage.now(), &found, &owner, &text)
        };
        let record = self.writing()?.commit.run(Request::new(conversation::EDITS_LEN_MAX, decide))?;
        self.conversation_info(&named, &scope, &record)
    }

    /// Archives, unarchives, resets or deletes a conversation. Whatever a reset or a deletion takes is unreadable when this returns,
    /// and what is on its way in never gets there.
    pub fn change_conversation(&self, scope: &ConversationScope<'_>, verb: Verb) -> Result<ConversationInfo> {
        let (_, named) = self.conversation_named(scope)?;
        let reference = named.scope;
        let decide = move |stage: &mut Stage<'_>| conversation::change(stage, stage.lsn(), &named, verb);
        let request = Request::new(conversation::EDITS_LEN_MAX, decide);
        let request = if verb.gives_back() { request.privileged() } else { request };
        let record = self.writing()?.commit.run(request)?;
        self.conversation_info(scope, &reference, &record)
    }

    /// A conversation, deleted or not.
    pub fn conversation(&self, scope: &ConversationScope<'_>) -> Result<ConversationInfo> {
        let (_, named) = self.conversation_named(scope)?;
        let record = conversation::known(&self.published.read(), &named)?;
        self.conversation_info(scope, &named.scope, &record)
    }

    /// Up to `limit` (at most 1,000) conversations of an account that are not deleted, in the order in which they were opened, behind
    /// `after`.
    pub fn list_conversations(
        &self,
        scope: &AccountScope<'_>,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ConversationInfo>> {
        let after = match after {
            None => None,
            Some(conversation) => {
                let named = ConversationScope { tenant: scope.tenant, account: Some(scope.account), conversation };
                let (_, named) = self.conversation_named(&named)?;
                let record = conversation::known(&self.published.read(), &named)?;
                Some((record.opened_lsn, named.scope.scope))
            }
        };
        let mut found = Vec::new();
        for scope_ref in self.possessions(scope, Possession::Conversation, after, limit)? {
            let record = self.published.read().conversation(&scope_ref)?;
            // It may have been deleted since the page was read.
            let Some(record) = record.filter(|record| record.state != ConversationState::Deleted) else { continue };
            let text = record.text.clone();
            let named =
                ConversationScope { tenant: scope.tenant, account: Some(scope.account), conversation: text.as_str() };
            found.push(self.conversation_info(&named, &scope_ref, &record)?);
        }
        Ok(found)
    }

    /// Begins a run, or leases one again. Its token proves the lease to every later call.
    pub fn begin_run(&self, begin: &BeginRun<'_>) -> Result<Leased> {
        let writing = self.writing()?;
        let new = self.new_run(begin)?;
        let account = new.owner.account;
        let leases_again = begin.again.is_some();
        let decide = move |stage: &mut Stage<'_>| {
            let (lsn, now) = (stage.lsn(), stage.now());
            if leases_again { run::lease(stage, lsn, now, &new) } else { run::begin(stage, lsn, now, &new) }
        };
        let record = writing.commit.run(Request::new(run::EDITS_LEN_MAX, decide))?;
        let token = RunToken::of(&record);
        Ok(Leased { run: self.run_info(begin.scope.tenant, &account, &record)?, token })
    }

    fn new_run(&self, begin: &BeginRun<'_>) -> Result<NewRun> {
        let entropy = &*self.world.entropy;
        let tenant = self.door.tenant(&self.published.read(), begin.scope.tenant)?;
        let id = match begin.again {
            Some(id) => id,
            None => RunId(entropy::random(entropy)?),
        };
        let owner = self.door.account_named(tenant, begin.scope.account)?;
        Ok(NewRun {
            id,
            scope: self.door.run(tenant, id),
            token: TokenBits(entropy::random(entropy)?),
            tenant: tenant.name,
            request: begin.request_id.map(|id| self.door.request(&owner.account, id)).transpose()?,
            owner,
            conversation: begin.conversation.map(|id| self.door.conversation_of(tenant, id)).transpose()?,
            parent: begin.parent.map(|id| self.door.run(tenant, id).scope),
            tags: self.tags(tenant, begin.tags)?,
            ttl: begin.ttl,
            lease: begin.lease,
        })
    }

    fn tags(&self, tenant: Tenant, tags: &[Tag<'_>]) -> Result<Vec<ScopeHash>> {
        let hashes = tags.iter().map(|tag| self.door.tag(tenant, tag.kind, tag.key));
        let mut hashes = hashes.collect::<Result<Vec<_>>>()?;
        hashes.sort_unstable();
        hashes.dedup();
        Ok(hashes)
    }

    /// Prolongs a lease to `lease` milliseconds from now, or leaves it as it is if it lasts longer.
    pub fn renew_run(&self, tenant: &str, token: &RunToken, lease: u64) -> Result<RunInfo> {
        self.with_token(tenant, token, run::RECORD_LEN_MAX, move |stage, scope, token| {
            run::renew(stage, stage.lsn(), stage.now(), scope, token, lease)
        })
    }

    /// Ends a lease; the run stays active and is leased again by [`begin_run`](Self::begin_run).
    pub fn pause_run(&self, tenant: &str, token: &RunToken) -> Result<RunInfo> {
        self.with_token(tenant, token, run::RECORD_LEN_MAX, |stage, scope, token| {
            run::pause(stage, stage.lsn(), stage.now(), scope, token)
        })
    }

    fn with_token(
        &self,
        tenant: &str,
        token: &RunToken,
        len: usize,
        decide: impl FnOnce(&mut Stage<'_>, &ScopeRef, &RunToken) -> Decided<Run> + Send + 'static,
    ) -> Result<RunInfo> {
        let writing = self.writing()?;
        let scope = self.door.run(self.door.tenant(&self.published.read(), tenant)?, token.run);
        let token = *token;
        let record = writing.commit.run(Request::new(len, move |stage| decide(stage, &scope, &token)))?;
        self.run_info(tenant, &AccountRef { tenant: scope.tenant, account: record.account }, &record)
    }

    /// Adds tags to a run that somebody holds the lease of. True if a tag was fenced since the run began: what the run made, but for
    /// uploads, is void from now on.
    pub fn tag_run(&self, tenant: &str, token: &RunToken, tags: &[Tag<'_>]) -> Result<bool> {
        let token = *token;
        self.add_tags(tenant, token.run, tags, move |stage, scope| token::current(stage, scope, &token, stage.lsn()))
    }

    /// Adds tags to any run of an account, active or not; what is learnt later about a run counts as if it had been known.
    pub fn tag_any_run(&self, scope: &RunScope<'_>, tags: &[Tag<'_>]) -> Result<bool> {
        let Place { account, .. } = self.place(&Scope::Run(*scope))?;
        self.add_tags(scope.tenant, scope.run, tags, move |stage, scope| {
            let run = stage.run(scope)?.filter(|run| run.account == account.account);
            run.ok_or_else(|| Error::new(Kind::NotFound, "no such run here"))
        })
    }

    fn add_tags(
        &self,
        tenant: &str,
        run: RunId,
        tags: &[Tag<'_>],
        find: impl FnOnce(&mut Stage<'_>, &ScopeRef) -> Result<Run> + Send + 'static,
    ) -> Result<bool> {
        let writing = self.writing()?;
        let tenant = self.door.tenant(&self.published.read(), tenant)?;
        let (scope, tags) = (self.door.run(tenant, run), self.tags(tenant, tags)?);
        writing.commit.run(Request::new(run::RECORD_LEN_MAX, move |stage| {
            let run = find(stage, &scope)?;
            run::tag(stage, stage.lsn(), &scope, &run, &tags)
        }))
    }

    /// Finishes a run. With `release_claim`, for one that failed or was cancelled, what it had claimed goes back to it.
    pub fn finish_run(&self, tenant: &str, token: &RunToken, finish: Finish) -> Result<RunInfo> {
        let writing = self.writing()?;
        let tenant_ref = self.door.tenant(&self.published.read(), tenant)?;
        let scope = self.door.run(tenant_ref, token.run);
        let token = *token;
        let account = self.leased(&scope, &token)?;
        let len = |published: &dyn State| {
            if finish.release_claim { claim::release_len(published, &scope, account) } else { Ok(run::RECORD_LEN_MAX) }
        };
        let record = self.sized(len, move |stage, room| {
            let (lsn, now) = (stage.lsn(), stage.now());
            let (edits, run) = run::finish(stage, lsn, now, tenant_ref.name, &scope, &token, finish)?;
            if crate::commit::edits_len(&edits) > room {
                return Ok((Vec::new(), Sized::Outgrown));
            }
            Ok((edits, Sized::Done(run)))
        })?;
        debug_assert!(writing.commit.published_lsn() >= record.changed_lsn);
        self.run_info(tenant, &AccountRef { tenant: scope.tenant, account: record.account }, &record)
    }

    /// Gives what the run exported to a conversation of its account, all of it in one commit: its files and what its model wrote, in
    /// the order of the puts, the first of each name and content. They live as long as the conversation from then on.
    pub fn claim_run(&self, tenant: &str, token: &RunToken, conversation: &str, reply_id: &str) -> Result<ClaimReply> {
        self.writing()?;
        let tenant_ref = self.door.tenant(&self.published.read(), tenant)?;
        let run = self.door.run(tenant_ref, token.run);
        let to = self.door.conversation_of(tenant_ref, conversation)?;
        let reply = self.door.reply(&run, reply_id)?;
        let new = NewClaim { tenant: tenant_ref.name, run, token: *token, conversation: to, reply };
        let account = self.leased(&run, token)?;
        let claiming = self.sized(
            |published| claim::claim_len(published, &run, account),
            move |stage, room| claim::claim(stage, stage.lsn(), stage.now(), &new, room),
        )?;
        let scope = Scope::Conversation(ConversationScope { tenant, account: None, conversation });
        let owner = Owner { kind: OwnerKind::Conversation, id: to.0 };
        let place = Place { tenant: tenant_ref, account: AccountRef { tenant: tenant_ref.number, account }, owner };
        let artifacts = claiming.claim.claimed.iter().map(|claimed| self.claimed(&scope, &place, claimed.artifact));
        Ok(ClaimReply {
            artifacts: artifacts.collect::<Result<_>>()?,
            skipped: claiming.claim.skipped,
            replayed: claiming.replayed,
        })
    }

    /// What a claim took, as it is now.
    pub(super) fn claimed(&self, scope: &Scope<'_>, place: &Place, id: ArtifactId) -> Result<ClaimedInfo> {
        let record = self.published.read().artifact(&place.account, id)?;
        let Some(record) = record.filter(|record| record.owner == place.owner) else {
            return Ok(ClaimedInfo::Gone(id, "deleted"));
        };
        self.brought(scope, place, record)
    }

    /// What a claim or a fork brought, as it is now.
    pub(super) fn brought(&self, scope: &Scope<'_>, place: &Place, record: Artifact) -> Result<ClaimedInfo> {
        let info = self.info(scope, place, record)?;
        Ok(match info.life() {
            Life::Readable => ClaimedInfo::Here(Box::new(info)),
            _ => ClaimedInfo::Gone(info.id, info.state.as_str()),
        })
    }

    /// The account of a run whose present lease the token proves.
    fn leased(&self, run: &ScopeRef, token: &RunToken) -> Result<ScopeHash> {
        let published_lsn = self.writing()?.commit.published_lsn();
        Ok(token::current(&self.published.read(), run, token, published_lsn)?.account)
    }

    /// A run.
    pub fn run(&self, scope: &RunScope<'_>) -> Result<RunInfo> {
        let Place { tenant, account, .. } = self.place(&Scope::Run(*scope))?;
        let record = self.published.read().run(&self.door.run(tenant, scope.run))?;
        self.run_info(scope.tenant, &account, &record.ok_or_else(|| Error::new(Kind::NotFound, "no such run here"))?)
    }

    /// Up to `limit` (at most 1,000) runs of an account, in the order in which they began, behind `after`.
    pub fn list_runs(&self, scope: &AccountScope<'_>, after: Option<RunId>, limit: usize) -> Result<Vec<RunInfo>> {
        let after = match after {
            None => None,
            Some(run) => {
                let named = RunScope { tenant: scope.tenant, account: Some(scope.account), run };
                let Place { tenant, .. } = self.place(&Scope::Run(named))?;
                let reference = self.door.run(tenant, run);
                self.published.read().run(&reference)?.map(|found| (found.begin_lsn, reference.scope))
            }
        };
        let account = self.account(scope)?;
        let mut found = Vec::new();
        for run in self.possessions(scope, Possession::Run, after, limit)? {
            let record = self.published.read().run(&run)?;
            let record = record.ok_or_else(|| Error::new(Kind::Corrupt, "an account lists a run without a record"))?;
            found.push(self.run_info(scope.tenant, &account, &record)?);
        }
        Ok(found)
    }

    fn possessions(
        &self,
        scope: &AccountScope<'_>,
        kind: Possession,
        after: Option<(Lsn, ScopeHash)>,
        limit: usize,
    ) -> Result<Vec<ScopeRef>> {
        let account = self.account(scope)?;
        let after = after.map(|(began, scope)| account.possession_key(kind, began, scope));
        let prefix = account.possession_prefix(kind);
        let limit = limit.clamp(1, LIST_PAGE_MAX);
        let entries = self.published.read().scan(Keyspace::OfAccount, &prefix, after.as_deref(), limit)?;
        let scope = |key: &[u8]| possession_of_key(key).map_err(|bad| Error::new(Kind::Corrupt, bad.what));
        entries.iter().map(|(key, _)| Ok(ScopeRef { tenant: account.tenant, scope: scope(key)? })).collect()
    }

    pub(super) fn conversation_named(&self, scope: &ConversationScope<'_>) -> Result<(Tenant, Named)> {
        let published = self.published.read();
        Ok((self.door.tenant(&published, scope.tenant)?, self.door.conversation(&published, scope)?))
    }

    fn conversation_info(
        &self,
        scope: &ConversationScope<'_>,
        reference: &ScopeRef,
        record: &Conversation,
    ) -> Result<ConversationInfo> {
        let account = AccountRef { tenant: reference.tenant, account: record.account };
        Ok(ConversationInfo {
            tenant: scope.tenant.to_owned(),
            account: self.account_text(&Scope::Conversation(*scope), &account)?,
            conversation: scope.conversation.to_owned(),
            state: record.state,
            opened_at: record.opened_at,
            changed_lsn: record.changed_lsn,
            reset_lsn: Some(record.reset_lsn).filter(|lsn| *lsn != Lsn::NONE),
        })
    }

    fn run_info(&self, tenant: &str, account: &AccountRef, run: &Run) -> Result<RunInfo> {
        let now = self.now();
        let of = |scope| ScopeRef { tenant: account.tenant, scope };
        let text = self.published.read().account(account)?.map_or_else(String::new, |account| account.text);
        Ok(RunInfo {
            tenant: tenant.to_owned(),
            account: text,
            run: run.id,
            conversation: run.conversation.map(|scope| self.conversation_text(&of(scope))).transpose()?,
            parent: run.parent.map(|scope| self.run_id(&of(scope))).transpose()?.flatten(),
            state: run::effective_state(run, now),
            generation: run.generation,
            begun_at: run.begun_at,
            ends_at: run.ends_at,
            lease_until: run.lease_until.filter(|_| token::is_leased(run, now) && token::is_active(run, now)),
            tags: run.tags.len(),
            changed_lsn: run.changed_lsn,
        })
    }
}
