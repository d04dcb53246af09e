//! Uploads that a caller began: bytes come in by appends, over pauses and restarts, and a commit makes an artifact of them.
//!
//! A stream that is appended in parts is cut and stored as if it had come at once. The bytes behind the last cut stand as a chunk of their
//! own until more come. An append runs on the caller's thread: the state of SHA-256 has to stand where the record does.

use std::io::Read;

use super::{
    Ingest, PutReply,
    commit::{self, Final, Outcome},
    intake::{Intake, Whole},
    long::PROGRESS_EDITS_LEN,
    media::Media,
    output::{Job, Jobs as _, Output},
    packer::Packer,
    small::Drafts,
    source::Cutter,
};
use crate::{
    catalog::State,
    digest::Sha256Stream,
    entropy,
    error::{Error, Kind, Result},
    format::{
        artifact::Origin,
        frame::FrameKind,
        page::{Page, PageEntry},
        upload::Upload,
    },
    ids::{ArtifactId, ChunkId, Sha256},
    ownership::{
        account,
        artifact::{self, Content, Into, NewArtifact},
        names,
        upload::Named,
    },
    segment::window::{Ahead, Window},
};

/// What an upload is to become.
#[derive(Clone, Copy, Debug)]
pub struct CommitUpload<'a> {
    /// Name of the artifact.
    pub name: &'a str,
    /// Where the bytes came from.
    pub origin: Origin,
    /// What the caller says that they are.
    pub media_type: Option<&'a str>,
    /// The caller's own order.
    pub order: Option<u64>,
    /// Refuse if the bytes have another SHA-256.
    pub expect_sha256: Option<Sha256>,
}

/// Nothing is read ahead: one chunk is asked for.
struct Alone;

impl Ahead for Alone {}

impl Ingest {
    /// Takes more bytes of an upload, which has `offset` of them, to the end of the source. They are durable when this returns; if the
    /// source fails, what the last progress commit has stays.
    pub fn append(&self, named: &Named, offset: u64, source: &mut dyn Read) -> Result<Upload> {
        self.ground.health.check()?;
        let record = named.at(&self.ground.published.read(), self.now(), offset)?;
        let keys = self.ground.door.keys(named.account.tenant)?;
        let intake = Intake::new(self, &keys, named.account.tenant, self.compressor()?).resumed(&record);
        let mut output = Output::resumed(self, self.pool.lease()?, named, &record);
        let appended = self.append_all(named, &record, intake, &mut output, source);
        if appended.as_ref().is_err_and(|error| error.kind() == Kind::NoSpace) {
            output.lease.give_back();
        }
        appended?;
        named.find(&self.ground.published.read())
    }

    fn append_all<'a>(
        &'a self,
        named: &Named,
        record: &Upload,
        intake: Intake<'a>,
        output: &mut Output<'a>,
        source: &mut dyn Read,
    ) -> Result<()> {
        let chunks = self.ground.root.current().options.chunks;
        let tail = record.tail.map_or_else(|| Ok(Vec::new()), |tail| self.piece(named, tail.id))?;
        // One byte more than declared shows that there are too many.
        let most =
            record.declared.map_or(u64::MAX, |declared| declared.saturating_sub(record.offset).saturating_add(1));
        let mut source = tail.as_slice().chain(source.take(most));
        let is_first = record.right_edge.iter().all(Vec::is_empty);
        let mut cutter = Cutter::new(&mut source, chunks, None).resumed(is_first);
        let (maker, writer) = (output.lease.maker(), output.lease.writer());
        let packer = Packer::new(maker, writer, output);
        let sha256 = sha256_of(record)?;
        let mut append = Append { intake, packer, sha256, hashed: tail.len(), since: 0, record };
        append.intake.increment.let_go(record.tail);
        while let Some(chunk) = cutter.next_cut()? {
            self.ground.health.check()?;
            if append.since >= self.tuning.progress_bytes
                || append.intake.increment.edits_len_max() >= PROGRESS_EDITS_LEN
            {
                append.progress(&[])?;
            }
            append.take(chunk)?;
        }
        append.progress(cutter.waiting())
    }

    /// Makes an artifact of an upload, which its account has until a conversation claims it. A second time gives the same one.
    pub fn commit_upload(&self, named: &Named, owner: account::Named, commit: &CommitUpload<'_>) -> Result<PutReply> {
        self.ground.health.check()?;
        let began = self.ground.commit.published_lsn();
        let mut new = NewArtifact {
            id: ArtifactId(entropy::random(&*self.ground.entropy)?),
            tenant: named.tenant,
            owner,
            into: Into::Upload(*named, 0),
            name: names::artifact_name(commit.name)?,
            origin: commit.origin,
            order: commit.order,
            media_type: String::new(),
            detected_type: String::new(),
            expires_at: None,
            logical_size: None,
            supersedes: None,
            op: Some(self.ground.door.commit_of(named)),
            identity: None,
            began,
        };
        // Looked at before the outcome: a commit that is published between the two has both gone and come.
        let record = named.live(&self.ground.published.read(), self.now());
        if let Some(artifact) = artifact::replay(&self.ground.published.read(), began, self.now(), &new)? {
            return Ok(Outcome { artifact, replayed: true }.into());
        }
        let record = record?;
        if record.declared.is_some_and(|declared| declared != record.offset) {
            let what = format!("the upload has {} bytes, fewer than were declared: append the rest", record.offset);
            return Err(Error::new(Kind::NotReady, what));
        }
        let sha256 = sha256_of(&record)?.finish();
        if commit.expect_sha256.is_some_and(|expected| expected != sha256) {
            return Err(Error::new(Kind::DigestMismatch, "the upload has another SHA-256"));
        }
        new.into = Into::Upload(*named, record.offset);
        let Media { media_type, detected_type } = Media::of(commit.media_type, &self.front(named, &record)?);
        (new.media_type, new.detected_type) = (media_type, detected_type);
        let mut output = Output::resumed(self, self.pool.lease()?, named, &record);
        let committed = self.finish_upload(named, &record, new, sha256, &mut output);
        if committed.as_ref().is_err_and(|error| error.kind() == Kind::NoSpace) {
            output.lease.give_back();
        }
        committed.map(PutReply::from)
    }

    fn finish_upload<'a>(
        &'a self,
        named: &Named,
        record: &Upload,
        new: NewArtifact,
        sha256: Sha256,
        output: &mut Output<'a>,
    ) -> Result<Outcome> {
        let tenant = named.account.tenant;
        let keys = self.ground.door.keys(tenant)?;
        let Whole { mut increment, root, size } = {
            let (maker, writer) = (output.lease.maker(), output.lease.writer());
            let mut packer = Packer::new(maker, writer, &mut *output);
            let mut intake = Intake::new(self, &keys, tenant, None).resumed(record);
            intake.close_tail(record.tail, &mut packer)?;
            let whole = intake.finish(&mut packer)?;
            // Before the commit that names them.
            packer.flush()?;
            whole
        };
        let last = Final {
            new,
            content: Content { key: keys.blob(sha256, size), sha256, size, root },
            changes: std::mem::take(&mut increment.changes),
            frames: std::mem::take(&mut increment.frames),
            drafts: Drafts::default(),
            upload: Some(named.id),
            segments: output.lease.edits(),
        };
        let request = commit::finish(last, increment.edits_len_max(), output.progress);
        let outcome = self.ground.commit.run(request)?;
        output.lease.committed();
        Ok(outcome)
    }

    /// The first bytes, for what they say that the stream is.
    fn front(&self, named: &Named, record: &Upload) -> Result<Vec<u8>> {
        let top = record.right_edge.iter().rev().find_map(|level| level.first());
        let Some(mut entry) = top.or(record.tail.as_ref()).map(|entry| entry.id) else { return Ok(Vec::new()) };
        // A page refers to what was there before it was made: this comes to an end.
        loop {
            let bytes = self.piece(named, entry)?;
            if self.published_chunk(entry)?.kind != FrameKind::Page {
                return Ok(bytes);
            }
            let page = Page::decode(&bytes).map_err(|bad| Error::new(Kind::Corrupt, bad.what))?;
            let PageEntry { id, .. } =
                *page.entries.first().ok_or_else(|| Error::new(Kind::Corrupt, "an empty page"))?;
            entry = id;
        }
    }

    /// What an upload holds, verified.
    fn piece(&self, named: &Named, id: ChunkId) -> Result<Vec<u8>> {
        let _visit = self.ground.segments.visits().enter();
        let value = self.published_chunk(id)?;
        let bytes = Window::default().read(&self.ground.segments, &value, &mut Alone)?.to_vec();
        let keys = self.ground.door.keys(named.account.tenant)?;
        let is = if value.kind == FrameKind::Page { keys.page(&bytes) } else { keys.chunk(&bytes) };
        if is != id {
            let at = value.location;
            let file = crate::segment::name(at.segment);
            return Err(Error::corrupt(file, at.offset, "what an upload holds has other bytes than its id says"));
        }
        Ok(bytes)
    }

    fn published_chunk(&self, id: ChunkId) -> Result<crate::format::value::ChunkValue> {
        let found = self.ground.published.read().chunk(id)?;
        found.ok_or_else(|| Error::new(Kind::Corrupt, "an upload holds a chunk that the catalog does not have"))
    }
}

fn sha256_of(record: &Upload) -> Result<Sha256Stream> {
    let saved = record.sha_state.as_deref().unwrap_or_default();
    Sha256Stream::resumed(saved).ok_or_else(|| Error::new(Kind::Corrupt, "the SHA-256 state of an upload"))
}

/// An append on its way.
struct Append<'a, 'o> {
    intake: Intake<'a>,
    packer: Packer<'a, &'o mut Output<'a>>,
    sha256: Sha256Stream,
    /// Bytes at the front of what comes that the state has taken before.
    hashed: usize,
    /// Bytes since the last commit.
    since: u64,
    /// The record as the append found it.
    record: &'o Upload,
}

impl Append<'_, '_> {
    fn hash(&mut self, bytes: &[u8]) {
        let known = self.hashed.min(bytes.len());
        self.sha256.update(&bytes[known..]);
        self.hashed -= known;
    }

    fn take(&mut self, chunk: &[u8]) -> Result<()> {
        self.hash(chunk);
        self.intake.see_committed(self.packer.jobs.committed());
        self.intake.take(chunk, &mut self.packer)?;
        self.since += chunk.len() as u64;
        Ok(())
    }

    /// Makes durable what came so far, with the bytes behind the last cut.
    fn progress(&mut self, rest: &[u8]) -> Result<()> {
        self.hash(rest);
        let tail = self.intake.take_tail(rest, &mut self.packer)?;
        let record = self.intake.upload(self.record.clone());
        let offset = record.offset + rest.len() as u64;
        if record.declared.is_some_and(|declared| offset > declared) {
            return Err(Error::new(Kind::TooLarge, "the upload gets more bytes than were declared"));
        }
        // Before the commit that names them.
        self.packer.flush()?;
        let record = Upload { offset, tail, sha_state: Some(self.sha256.saved()), ..record };
        let increment = Box::new(self.intake.take_increment());
        self.packer.jobs.ask(Job::Progress(record, increment))?;
        self.since = 0;
        Ok(())
    }
}
