//! Uploads that go on over pauses and restarts, and the claim that gives them to a conversation.

use std::io;

use super::{ClaimedInfo, Store, artifacts::Place};
use crate::{
    catalog::State,
    commit::{Request, Stage, edits_len},
    entropy,
    error::{Error, Kind, Result},
    format::{
        keyspace::{AccountRef, Keyspace, Owner, OwnerKind, upload_key},
        upload::Upload,
    },
    ids::{ArtifactId, Time, UploadId},
    ingest::{PutReply, resumed::CommitUpload},
    limits::LIST_PAGE_MAX,
    ownership::{
        AccountScope, ConversationScope, Scope, UploadScope, account,
        claim::Sized,
        conversation,
        sending::{self, Sending},
        upload::{self, Named},
    },
};

/// An upload as it is reported.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UploadInfo {
    /// Tenant, as the caller named it.
    pub tenant: String,
    /// Account, as the caller named it.
    pub account: String,
    /// The upload.
    pub upload: UploadId,
    /// Bytes that it has, durably: the next append goes on there.
    pub offset: u64,
    /// How many there will be, if that was said.
    pub declared: Option<u64>,
    /// When it began.
    pub created_at: Time,
    /// When it ends unless something is appended before.
    pub expires_at: Option<Time>,
}

/// A claim of uploads that is durable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SentReply {
    /// What it took, in the order that was asked for.
    pub artifacts: Vec<ClaimedInfo>,
    /// True if an earlier call with this message id made it.
    pub replayed: bool,
}

impl Store {
    /// Begins an upload of an account. `declared` is how many bytes there will be, if the caller knows: a commit wants exactly so many.
    pub fn begin_upload(&self, scope: &AccountScope<'_>, declared: Option<u64>) -> Result<UploadInfo> {
        let writing = self.writing()?;
        let tenant = self.door.tenant(&self.published.read(), scope.tenant)?;
        let owner = self.door.account_named(tenant, scope.account)?;
        let id = UploadId(entropy::random(&*self.world.entropy)?);
        let named = Named { tenant: tenant.name, account: owner.account, id };
        let decide =
            move |stage: &mut Stage<'_>| upload::begin(stage, stage.lsn(), stage.now(), &named, &owner, declared);
        let record = writing.commit.run(Request::new(upload::BEGIN_LEN_MAX, decide))?;
        Ok(upload_info(scope, id, &record))
    }

    /// Appends a source to an upload that has `offset` bytes, to its end and in constant memory; they are durable when this returns.
    /// `OFFSET_CONFLICT`: the upload has another number of bytes; [`upload`](Self::upload) says how many. After any other error that
    /// many are there, too: what came before it may be. `TOO_LARGE`: more came than was declared. `GONE`: nothing was appended for 24
    /// hours.
    pub fn append_upload(&self, scope: &UploadScope<'_>, offset: u64, source: &mut dyn io::Read) -> Result<UploadInfo> {
        let named = self.door.upload(&self.published.read(), scope)?;
        let record = self.writing()?.ingest.append(&named, offset, source)?;
        Ok(upload_info(&account_of(scope), scope.upload, &record))
    }

    /// Makes an artifact of an upload. The upload owns it, and it ends after 24 hours, unless
    /// [`claim_uploads`](Self::claim_uploads) gives it to a conversation. A second time gives the same one for seven days.
    pub fn commit_upload(&self, scope: &UploadScope<'_>, commit: &CommitUpload<'_>) -> Result<PutReply> {
        let named = self.door.upload(&self.published.read(), scope)?;
        let owner = account::Named { account: named.account, text: scope.account.to_owned() };
        let done = self.writing()?.ingest.commit_upload(&named, owner, commit);
        self.told(&[Scope::Upload(*scope)], done)
    }

    /// Ends an upload without a result; what it holds is let go. One that has ended is done.
    pub fn abort_upload(&self, scope: &UploadScope<'_>) -> Result<()> {
        let named = self.door.upload(&self.published.read(), scope)?;
        self.writing()?;
        self.sized_as(
            // It gives space back.
            Request::privileged,
            |published| match named.find(published) {
                Err(error) if error.kind() == Kind::NotFound => Ok(0),
                found => found.map(|found| upload::abort_len_max(&found)),
            },
            move |stage, room| {
                // A put that is under way is nobody's to abort.
                if matches!(named.find(stage), Err(error) if error.kind() == Kind::NotFound) {
                    return Ok((Vec::new(), Sized::Done(())));
                }
                let edits = upload::abort(stage, named.id)?;
                let fits = edits_len(&edits) <= room;
                Ok(if fits { (edits, Sized::Done(())) } else { (Vec::new(), Sized::Outgrown) })
            },
        )
    }

    /// An upload that goes on.
    pub fn upload(&self, scope: &UploadScope<'_>) -> Result<UploadInfo> {
        let published = self.published.read();
        let record = self.door.upload(&published, scope)?.live(&published, self.now())?;
        Ok(upload_info(&account_of(scope), scope.upload, &record))
    }

    /// Up to `limit` (at most 1,000) uploads of an account that go on, by rising id, behind `after`. O(unfinished uploads of the store).
    pub fn list_uploads(
        &self,
        scope: &AccountScope<'_>,
        after: Option<UploadId>,
        limit: usize,
    ) -> Result<Vec<UploadInfo>> {
        let tenant = self.door.tenant(&self.published.read(), scope.tenant)?;
        let account = self.door.account_of(tenant, scope.account)?;
        let limit = limit.clamp(1, LIST_PAGE_MAX);
        let mut after = after.map(upload_key);
        let mut found = Vec::new();
        loop {
            let entries = self.published.read().scan(Keyspace::Upload, &[], after.as_deref(), LIST_PAGE_MAX)?;
            for (key, _) in &entries {
                let id = <[u8; 16]>::try_from(key.as_slice()).map_err(|_| Error::new(Kind::Corrupt, "upload key"))?;
                let named = Named { tenant: tenant.name, account, id: UploadId(id) };
                match named.live(&self.published.read(), self.now()) {
                    Ok(record) => found.push(upload_info(scope, named.id, &record)),
                    Err(error) if matches!(error.kind(), Kind::NotFound | Kind::Gone | Kind::Fenced) => {}
                    Err(error) => return Err(error),
                }
                if found.len() == limit {
                    return Ok(found);
                }
            }
            match entries.into_iter().next_back() {
                Some((key, _)) => after = Some(key),
                None => return Ok(found),
            }
        }
    }

    /// Gives what uploads of its account became to a conversation, in the order of `ids`, all or none; at most 1,000. They live as long
    /// as the conversation from then on. The same message id again gives the same answer.
    pub fn claim_uploads(
        &self,
        conversation: &ConversationScope<'_>,
        message_id: &str,
        ids: &[ArtifactId],
    ) -> Result<SentReply> {
        let began = self.writing()?.commit.published_lsn();
        let (tenant, into) = self.conversation_named(conversation)?;
        let op = self.door.message(&into.scope, message_id)?;
        let new = Sending { into, ids: ids.to_vec(), op, began };
        let named = new.into.clone();
        let (counted, owner) = (new.clone(), Owner { kind: OwnerKind::Conversation, id: new.into.scope.scope.0 });
        let decided = self.sized(
            |published| sending::len(published, &counted),
            move |stage, room| sending::claim(stage, stage.lsn(), stage.now(), &new, room),
        );
        if let Err(error) = &decided
            && error.kind() == Kind::Gone
            && let Some(id) = error.place().artifact
        {
            let account = conversation::known(&self.published.read(), &named)?.account;
            let record = self.published.read().artifact(&AccountRef { tenant: tenant.number, account }, id)?;
            record.map(|record| self.life_for_good(tenant, &record)).transpose()?;
        }
        let sent = decided?;
        let (scope, place) = (Scope::Conversation(*conversation), Place { tenant, account: sent.account, owner });
        let artifacts = sent.ids.into_iter().map(|id| self.claimed(&scope, &place, id));
        Ok(SentReply { artifacts: artifacts.collect::<Result<_>>()?, replayed: sent.replayed })
    }
}

const fn account_of<'a>(scope: &UploadScope<'a>) -> AccountScope<'a> {
    AccountScope { tenant: scope.tenant, account: scope.account }
}

fn upload_info(scope: &AccountScope<'_>, upload: UploadId, record: &Upload) -> UploadInfo {
    UploadInfo {
        tenant: scope.tenant.to_owned(),
        account: scope.account.to_owned(),
        upload,
        offset: record.offset,
        declared: record.declared,
        created_at: record.created_at,
        expires_at: record.expires_at,
    }
}
