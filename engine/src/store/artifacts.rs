//! Artifacts as callers see them: records, lists, bytes.

use std::io;

use bytes::Bytes;

use super::{ArtifactInfo, ArtifactState, Cursor, Get, ListOrder, ListPage, Store, info::Shown};
use crate::{
    catalog::State,
    commit::Request,
    error::{Error, Kind, Result},
    format::{
        artifact::Artifact,
        keyspace::{AccountRef, Keyspace, ListPlace, Owner, OwnerKind, ScopeRef},
    },
    ids::{ArtifactId, RunId, ScopeHash},
    limits::{LIST_PAGE_MAX, LIST_SORTED_MAX},
    ownership::{
        AccountScope, Scope, Tenant,
        artifact::{self, Life, Named, check_readable},
        conversation, fences,
    },
};

/// A scope that was found.
pub(super) struct Place {
    pub(super) tenant: Tenant,
    pub(super) account: AccountRef,
    pub(super) owner: Owner,
}

impl Place {
    /// An artifact that it must have.
    pub(super) const fn named(&self, id: ArtifactId) -> Named {
        Named { tenant: self.tenant.name, account: self.account, owner: self.owner, id }
    }
}

impl Store {
    /// One artifact's record. `NOT_FOUND`: there is none; where commits are lost it is `CORRUPT` instead, since it may have been in
    /// one of them.
    pub fn stat<'s>(&self, scope: impl Into<Scope<'s>>, id: ArtifactId) -> Result<ArtifactInfo> {
        let scope = scope.into();
        let place = self.place(&scope)?;
        self.info(&scope, &place, self.record(&place, id)?)
    }

    /// Up to `limit` (at most 1,000) readable artifacts that the scope owns, in the order in which they came, behind `after`.
    /// Holds the catalog for one page only.
    pub fn list<'s>(&self, scope: impl Into<Scope<'s>>, after: Option<Cursor>, limit: usize) -> Result<ListPage> {
        let scope = scope.into();
        let Place { tenant, account, owner } = self.place(&scope)?;
        let limit = limit.clamp(1, LIST_PAGE_MAX);
        let mut page = ListPage::default();
        let from = after.map(|c| c.0).max(fences::void_until(&self.published.read(), owner)?);
        let mut after = from.map(|place| account.owner_key(owner, place));
        loop {
            let entries =
                self.published.read().scan(Keyspace::ByOwner, &account.owner_prefix(owner), after.as_deref(), limit)?;
            for (key, id) in &entries {
                let place = Place { tenant, account, owner };
                // A page is not a moment: what another owner took meanwhile is not listed here any more.
                let record = artifact::listed(&self.published.read(), &account, id)?;
                if record.owner == owner {
                    let info = self.info(&scope, &place, record)?;
                    if matches!(info.state, ArtifactState::Owned | ArtifactState::Pending) {
                        page.artifacts.push(info);
                    }
                }
                let place = ListPlace::from_owner_key(key).map_err(|bad| Error::new(Kind::Corrupt, bad.what))?;
                page.next = Some(Cursor(place));
                if page.artifacts.len() == limit {
                    return Ok(page);
                }
            }
            if entries.len() < limit {
                page.next = None;
                return Ok(page);
            }
            after = entries.last().map(|(key, _)| key.clone());
        }
    }

    /// Every readable artifact that the scope owns, sorted. `TOO_MANY`: there are more than 10,000, which only [`list`](Self::list) shows.
    pub fn list_sorted<'s>(&self, scope: impl Into<Scope<'s>>, order: ListOrder) -> Result<Vec<ArtifactInfo>> {
        let scope = scope.into();
        let mut found = Vec::new();
        let mut after = None;
        loop {
            let page = self.list(scope, after, LIST_PAGE_MAX)?;
            found.extend(page.artifacts);
            if found.len() > LIST_SORTED_MAX {
                return Err(Error::new(
                    Kind::TooMany,
                    "more than 10,000 artifacts: list them page by page as they came",
                ));
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        // Stable: the list has them as they came.
        match order {
            ListOrder::Native => found.sort_by_key(|info| info.order.unwrap_or(u64::MAX)),
            ListOrder::Name => found.sort_by(|one, other| one.name.cmp(&other.name)),
        }
        Ok(found)
    }

    /// Up to `limit` (at most 1,000) readable artifacts of an account, whoever of it owns them, by rising id, behind `after`.
    pub fn list_all(
        &self,
        scope: &AccountScope<'_>,
        after: Option<ArtifactId>,
        limit: usize,
    ) -> Result<Vec<ArtifactInfo>> {
        let scope = Scope::Account(*scope);
        let place = self.place(&scope)?;
        let limit = limit.clamp(1, LIST_PAGE_MAX);
        let mut found = Vec::new();
        let mut after = after.map(|id| place.account.artifact_key(id));
        while found.len() < limit {
            let prefix = place.account.key();
            let entries = self.published.read().scan(Keyspace::Artifact, &prefix, after.as_deref(), LIST_PAGE_MAX)?;
            let Some((last, _)) = entries.last() else { break };
            after = Some(last.clone());
            for (_, value) in entries {
                let record = Artifact::decode(&value).map_err(|bad| Error::new(Kind::Corrupt, bad.what))?;
                let info = self.info(&scope, &place, record)?;
                if matches!(info.state, ArtifactState::Owned | ArtifactState::Pending) {
                    found.push(info);
                }
                if found.len() == limit {
                    break;
                }
            }
        }
        Ok(found)
    }

    /// Where an artifact stands in its owner's list, to go on behind it.
    pub fn cursor<'s>(&self, scope: impl Into<Scope<'s>>, id: ArtifactId) -> Result<Cursor> {
        let place = self.place(&scope.into())?;
        Ok(Cursor(self.record(&place, id)?.place))
    }

    /// Writes an artifact's verified bytes to `sink`. Whole reads of at most 16 MiB are verified before the first byte leaves; longer
    /// ones, and ranges, chunk by chunk.
    pub fn get<'s>(
        &self,
        scope: impl Into<Scope<'s>>,
        id: ArtifactId,
        get: &Get,
        sink: &mut dyn io::Write,
    ) -> Result<ArtifactInfo> {
        let (artifact, info) = self.readable(scope.into(), id, get)?;
        self.reader.write_to(&artifact, get.range.clone(), sink)?;
        Ok(info)
    }

    /// The same for a caller that keeps the bytes or sends them on: gives them as they were read and verified, without a copy, in pieces of
    /// at most a chunk. An error of `take` ends the read. Up to 1 MiB of memory hangs on each piece that is kept.
    pub fn get_bytes<'s>(
        &self,
        scope: impl Into<Scope<'s>>,
        id: ArtifactId,
        get: &Get,
        take: &mut dyn FnMut(Bytes) -> Result<()>,
    ) -> Result<ArtifactInfo> {
        let (artifact, info) = self.readable(scope.into(), id, get)?;
        self.reader.read(&artifact, get.range.clone(), &mut |piece| take(piece.bytes))?;
        Ok(info)
    }

    /// The record of a read.
    fn readable(&self, scope: Scope<'_>, id: ArtifactId, get: &Get) -> Result<(Artifact, ArtifactInfo)> {
        let place = self.place(&scope)?;
        let artifact = self.record(&place, id)?;
        let info = self.info(&scope, &place, artifact.clone())?;
        check_readable(info.life(), id)?;
        if get.expect_sha256.is_some_and(|expected| expected != artifact.sha256) {
            return Err(Error::new(Kind::DigestMismatch, "the artifact has another SHA-256").of_artifact(id));
        }
        Ok((artifact, info))
    }

    /// The scope that a caller means. A conversation that was deleted is one still: what it owned is gone, and not unknown.
    pub(super) fn place(&self, scope: &Scope<'_>) -> Result<Place> {
        let published = self.published.read();
        let (state, door): (&dyn State, _) = (&published, &self.door);
        match scope {
            Scope::Account(scope) => {
                let tenant = door.tenant(state, scope.tenant)?;
                let account = door.account_of(tenant, scope.account)?;
                Ok(Place { tenant, account, owner: Owner { kind: OwnerKind::Account, id: account.account.0 } })
            }
            Scope::Conversation(scope) => {
                let tenant = door.tenant(state, scope.tenant)?;
                let named = door.conversation(state, scope)?;
                let account = AccountRef {
                    tenant: tenant.number,
                    account: conversation::known(state, &named).map_err(|e| self.at_loss(e))?.account,
                };
                Ok(Place { tenant, account, owner: Owner { kind: OwnerKind::Conversation, id: named.scope.scope.0 } })
            }
            Scope::Run(scope) => {
                let tenant = door.tenant(state, scope.tenant)?;
                let account = scope.account.map(|account| door.account_of(tenant, account)).transpose()?;
                let run_ref = door.run(tenant, scope.run);
                let run = state.run(&run_ref)?;
                let run = run.filter(|run| account.is_none_or(|account| account.account == run.account));
                let run = run.ok_or_else(|| self.report.not_found("no such run here"))?;
                let account = AccountRef { tenant: tenant.number, account: run.account };
                Ok(Place { tenant, account, owner: Owner { kind: OwnerKind::Run, id: run_ref.scope.0 } })
            }
            // The record goes with the commit: what the upload became is found without it.
            Scope::Upload(scope) => {
                let tenant = door.tenant(state, scope.tenant)?;
                let account = door.account_of(tenant, scope.account)?;
                Ok(Place { tenant, account, owner: Owner { kind: OwnerKind::Upload, id: scope.upload.0 } })
            }
        }
    }

    /// Where commits are lost nobody can say that a conversation never was there.
    fn at_loss(&self, error: Error) -> Error {
        if error.kind() == Kind::NotFound { self.report.not_found("no such conversation here") } else { error }
    }

    /// The record of an id that the scope owns. Any other id is as unknown as a random one.
    pub(super) fn record(&self, place: &Place, id: ArtifactId) -> Result<Artifact> {
        let lost = |error: Error| match error.kind() {
            Kind::NotFound => self.report.not_found("no such artifact in this scope"),
            _ => error,
        };
        place.named(id).find(&self.published.read()).map_err(lost)
    }

    /// A record as it is reported.
    pub(super) fn info(&self, scope: &Scope<'_>, place: &Place, artifact: Artifact) -> Result<ArtifactInfo> {
        let life = self.life_for_good(place.tenant, &artifact)?;
        let shown = Shown {
            tenant: scope.tenant().to_owned(),
            account: self.account_text(scope, &artifact.account)?,
            owner: self.owner_text(scope, &artifact)?,
        };
        Ok(ArtifactInfo::new(shown, artifact, life))
    }

    /// What became of an artifact. That it has expired is said only once an engine time past its end is durable: nobody who was told so
    /// sees it readable again, whatever the clock does.
    pub(super) fn life_for_good(&self, tenant: Tenant, artifact: &Artifact) -> Result<Life> {
        let life = artifact::life(&self.published.read(), tenant.name, artifact, self.now())?;
        if let (Life::Expired, Some(at), Some(writing)) = (life, artifact.expires_at, &self.writing)
            && writing.commit.hw() < at
            && self.health.is_writable()
        {
            // A read must not fail because the disk is full.
            writing.commit.run(Request::new(0, |_| Ok((Vec::new(), ()))).forced().privileged())?;
        }
        Ok(life)
    }

    /// Whoever hears that an artifact is gone hears it after every restart: that it has expired is durable first. `scopes`: whose it may
    /// be.
    pub(super) fn told<T>(&self, scopes: &[Scope<'_>], decided: Result<T>) -> Result<T> {
        if let Err(error) = &decided
            && error.kind() == Kind::Gone
            && let Some(id) = error.place().artifact
        {
            for scope in scopes {
                if let Ok(place) = self.place(scope)
                    && let Ok(record) = self.record(&place, id)
                {
                    self.info(scope, &place, record)?;
                }
            }
        }
        decided
    }

    /// The account's id as a caller gave it: here, or at its first write.
    pub(super) fn account_text(&self, scope: &Scope<'_>, account: &AccountRef) -> Result<String> {
        let given = match scope {
            Scope::Account(scope) => Some(scope.account),
            Scope::Conversation(scope) => scope.account,
            Scope::Run(scope) => scope.account,
            Scope::Upload(scope) => Some(scope.account),
        };
        match given {
            Some(given) => Ok(given.to_owned()),
            None => Ok(self.published.read().account(account)?.map_or_else(String::new, |account| account.text)),
        }
    }

    fn owner_text(&self, scope: &Scope<'_>, artifact: &Artifact) -> Result<String> {
        match (scope, artifact.owner.kind) {
            (Scope::Conversation(scope), OwnerKind::Conversation) => return Ok(scope.conversation.to_owned()),
            (Scope::Run(scope), OwnerKind::Run) => return Ok(scope.run.to_string()),
            _ => {}
        }
        let owner = ScopeRef { tenant: artifact.account.tenant, scope: ScopeHash(artifact.owner.id) };
        match artifact.owner.kind {
            OwnerKind::Account => self.account_text(scope, &artifact.account),
            OwnerKind::Conversation => self.conversation_text(&owner),
            OwnerKind::Run => Ok(self.run_id(&owner)?.map_or_else(String::new, |id| id.to_string())),
            OwnerKind::Upload => Ok(crate::ids::UploadId(artifact.owner.id).to_string()),
        }
    }

    /// The conversation's id as it was opened; empty once it is deleted.
    pub(super) fn conversation_text(&self, scope: &ScopeRef) -> Result<String> {
        Ok(self.published.read().conversation(scope)?.map_or_else(String::new, |found| found.text))
    }

    /// The id of a run.
    pub(super) fn run_id(&self, scope: &ScopeRef) -> Result<Option<RunId>> {
        Ok(self.published.read().run(scope)?.map(|run| run.id))
    }
}
