//! Compares the records of a store with each other, and with the bytes that they name.

use super::recount::Recount;
use super::{BlobError, StoreImage};
use crate::cut::Sizes;
use crate::derive::{Scope, hex, id_text};
use crate::files::segment_name;
use crate::frame::{self, Kind};
use crate::keyspace::{AccountKey, Artifact, Blob, Chunk, ConversationState, DueKey, OfAccountKey, OwnerKey, Upload};
use crate::problem::{Problem, ProblemKind, Problems};
use crate::recipe::{Builder, Page, page_ends};
use crate::{Id16, Id32};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

impl StoreImage<'_> {
    /// Checks every record and every stored byte that a record names.
    pub fn check(&self) -> Vec<Problem> {
        let mut problems = Problems::default();
        self.check_names(&mut problems);
        self.check_owners(&mut problems);
        self.check_artifacts(&mut problems);
        for (id, upload) in &self.catalog.uploads {
            self.check_upload(id, upload, &mut problems);
        }
        let mut recount = Recount::of_records(self);
        for (id, chunk) in &self.catalog.chunks {
            self.check_chunk(id, chunk, &mut recount, &mut problems);
        }
        recount.compare(self, &mut problems);
        for (key, blob) in &self.catalog.blobs {
            self.check_blob(key, blob, &mut problems);
        }
        problems.0
    }

    /// Tenants, accounts and operations.
    fn check_names(&self, problems: &mut Problems) {
        let mut numbers = BTreeSet::new();
        for (scope, tenant) in &self.catalog.tenants {
            let number = tenant.number;
            if !numbers.insert(number) || !self.tenant_keys.contains_key(&number) {
                problems.catalog(
                    ProblemKind::Record,
                    format!("tenant {number}: there twice, or without a key in the manifest"),
                );
            }
            if number == 1 && *scope != self.store_keys.scope_hash(0, Scope::Tenant, b"default") {
                problems.catalog(ProblemKind::Record, "tenant 1: its key is not that of the name of the first tenant");
            }
        }
        for (key, account) in &self.catalog.accounts {
            let scope = self.store_keys.scope_hash(key.tenant, Scope::Account, account.text.as_bytes());
            if key.scope != scope || !self.tenant_keys.contains_key(&key.tenant) {
                let what = format!("account {}: of no tenant, or its key is not that of its text", id_text(&key.scope));
                problems.catalog(ProblemKind::Record, what);
            }
        }
        let ahead = |lsn: u64| self.log.end.next_lsn.is_some_and(|next| lsn >= next);
        for (key, op) in &self.catalog.ops {
            if ahead(op.lsn) || ahead(key.begin_lsn) {
                problems.catalog(ProblemKind::Record, format!("op {}: its LSN is not given yet", id_text(&key.op)));
            }
        }
    }

    /// Conversations, runs and claims, their index, and fences.
    fn check_owners(&self, problems: &mut Problems) {
        let catalog = &self.catalog;
        let mut wrong = |what: String| problems.catalog(ProblemKind::Record, what);
        let ahead = |lsn: u64| self.log.end.next_lsn.is_some_and(|next| lsn >= next);
        let has_tenant = |key: &AccountKey| self.tenant_keys.contains_key(&key.tenant);
        let mut index = BTreeSet::new();
        for (key, value) in &catalog.conversations {
            let AccountKey { tenant, scope } = *key;
            let live = value.state != ConversationState::Deleted;
            let named = self.store_keys.scope_hash(tenant, Scope::Conversation, value.text.as_bytes());
            if live && named != scope || !has_tenant(key) {
                wrong(format!("conversation {}: of no tenant, or its key is not that of its text", id_text(&scope)));
            }
            if ahead(value.changed_lsn.max(value.opened_lsn).max(value.reset_lsn)) {
                wrong(format!("conversation {}: its LSN is not given yet", id_text(&scope)));
            }
            if live {
                index.insert(OfAccountKey { tenant, account: value.account, kind: 3, lsn: value.opened_lsn, scope });
            }
        }
        for (key, value) in &catalog.runs {
            let AccountKey { tenant, scope } = *key;
            let named = self.store_keys.scope_hash(tenant, Scope::Run, id_text(&value.id).as_bytes());
            if named != scope || !has_tenant(key) {
                wrong(format!("run {}: of no tenant, or its key is not that of its id", id_text(&scope)));
            }
            if ahead(value.changed_lsn.max(value.begin_lsn).max(value.lease_lsn)) {
                wrong(format!("run {}: its LSN is not given yet", id_text(&scope)));
            }
            index.insert(OfAccountKey { tenant, account: value.account, kind: 1, lsn: value.begin_lsn, scope });
        }
        for (key, claim) in &catalog.claims {
            if !catalog.runs.contains_key(key) || ahead(claim.lsn) {
                wrong(format!("claim {}: of no run, or its LSN is not given yet", id_text(&key.scope)));
            }
        }
        for (key, fence) in &catalog.fences {
            if ahead(fence.latest()) {
                wrong(format!("fence {}: its LSN is not given yet", id_text(&key.scope)));
            }
        }
        for key in index.symmetric_difference(&catalog.of_account) {
            let what = if index.contains(key) { "is missing" } else { "has no record" };
            problems.catalog(ProblemKind::Index, format!("of account: the entry of {} {what}", id_text(&key.scope)));
        }
    }

    fn check_artifacts(&self, problems: &mut Problems) {
        let catalog = &self.catalog;
        let mut by_owner = BTreeMap::new();
        let mut due = BTreeSet::new();
        for (key, artifact) in &catalog.artifacts {
            let text = id_text(&key.artifact);
            let blob = self.blob_key(artifact).and_then(|key| catalog.blobs.get(&key));
            if !blob.is_some_and(|blob| blob.root == artifact.blob_root && blob.size == artifact.size) {
                problems.catalog(ProblemKind::Record, format!("artifact {text}: no blob with its root and size"));
            }
            let owner = OwnerKey {
                tenant: key.tenant,
                account: key.account,
                owner_kind: artifact.owner_kind,
                owner: artifact.owner,
                attach_lsn: artifact.attach_lsn,
                position: artifact.position,
            };
            if by_owner.insert(owner, key.artifact).is_some() {
                problems.catalog(ProblemKind::Record, format!("artifact {text}: another one has its position"));
            }
            due.extend(artifact.expires_at.map(|time| DueKey { time, artifact: *key }));
        }
        self.check_links(problems);
        for (owner, artifact) in
            by_owner.iter().filter(|(owner, artifact)| catalog.by_owner.get(*owner) != Some(*artifact))
        {
            let what = format!("by owner {}: no entry for artifact {}", id_text(&owner.owner), id_text(artifact));
            problems.catalog(ProblemKind::Index, what);
        }
        for (owner, artifact) in
            catalog.by_owner.iter().filter(|(owner, artifact)| by_owner.get(*owner) != Some(*artifact))
        {
            let what = format!("by owner {}: artifact {} is not there", id_text(&owner.owner), id_text(artifact));
            problems.catalog(ProblemKind::Index, what);
        }
        for key in due.symmetric_difference(&catalog.due) {
            let what = if due.contains(key) { "no entry for artifact" } else { "no such time of artifact" };
            problems
                .catalog(ProblemKind::Index, format!("due {}: {what} {}", key.time, id_text(&key.artifact.artifact)));
        }
    }

    /// A link comes from where its source came from.
    fn check_links(&self, problems: &mut Problems) {
        let artifacts = &self.catalog.artifacts;
        let by_id: BTreeMap<&Id16, &Artifact> = artifacts.values().map(|artifact| (&artifact.id, artifact)).collect();
        let born =
            |a: &Artifact| (a.tenant, a.origin, a.born_account, a.born_run, a.born_order, a.born_lsn, a.born_time);
        let content = |a: &Artifact| (a.token_lsn, a.size, a.sha256, a.blob_root);
        for link in artifacts.values() {
            let Some(source) = link.link_of.and_then(|source| by_id.get(&source)) else { continue };
            if born(link) != born(source) || content(link) != content(source) {
                let what =
                    format!("artifact {}: of other origin or content than what it is a link of", id_text(&link.id));
                problems.catalog(ProblemKind::Record, what);
            }
        }
    }

    fn check_upload(&self, id: &Id16, upload: &Upload, problems: &mut Problems) {
        let mut wrong = |what: &str| problems.catalog(ProblemKind::Record, format!("upload {}: {what}", id_text(id)));
        let held = upload.entries().try_fold(0u64, |sum, entry| sum.checked_add(entry.length));
        if held != Some(upload.offset) {
            wrong("its right edge and tail do not hold as many bytes as its offset says");
        }
        let ended = |level: &Vec<_>| {
            level
                .iter()
                .enumerate()
                .any(|(index, entry): (usize, &crate::keyspace::PageEntry)| page_ends(&entry.id, index + 1))
        };
        if upload.right_edge.iter().any(ended) {
            wrong("its right edge goes on behind the end of a page");
        }
        for entry in upload.entries() {
            let chunk = self.catalog.chunks.get(&entry.id);
            if chunk.is_none_or(|chunk| chunk.tenant != upload.tenant) {
                wrong("it names what is not there, or is of another tenant");
            }
        }
    }

    /// The frame that an entry names, its content, and what a page counts.
    fn check_chunk(&self, id: &Id32, chunk: &Chunk, recount: &mut Recount, problems: &mut Problems) {
        let file = segment_name(chunk.segment);
        let mut wrong = |kind, length, what: String| problems.add(kind, &file, (chunk.offset, length), what);
        let Some(frame) = self.frames.get(&(chunk.segment, chunk.offset)) else {
            wrong(ProblemKind::Chunk, 0, format!("no valid frame where {} should stand", hex(id)));
            return;
        };
        let length = frame::HEADER + u64::from(frame.stored).next_multiple_of(64);
        let same = (frame.id, frame.stored, frame.raw, frame.tenant, frame.kind, frame.codec)
            == (*id, chunk.stored, chunk.raw, chunk.tenant, chunk.kind, chunk.codec);
        if !same {
            wrong(ProblemKind::Chunk, length, format!("another frame than the entry of {} says", hex(id)));
            return;
        }
        if self.catalog.segments.get(&chunk.segment).is_some_and(|bulk| chunk.offset + length > bulk.end) {
            wrong(ProblemKind::Segment, length, "behind the end that the segment keyspace says".to_owned());
        }
        match self.data(chunk.tenant, id, chunk) {
            Err(error) => wrong(ProblemKind::Chunk, length, error.to_string()),
            Ok(content) if chunk.kind == Kind::Page => match Page::parse(&content, chunk.offset + frame::HEADER) {
                Ok(page) => recount.page(&page),
                Err(error) => wrong(ProblemKind::Recipe, length, error.to_string()),
            },
            Ok(_) => {}
        }
    }

    /// The content of a blob, its cut points and the shape of its recipe.
    fn check_blob(&self, key: &Id32, blob: &Blob, problems: &mut Problems) {
        let mut wrong = |what: String| problems.catalog(ProblemKind::Recipe, format!("blob {}: {what}", hex(key)));
        let tenant = match self.catalog.chunks.get(&blob.root) {
            Some(chunk) => chunk.tenant,
            None if blob.size == 0 => return self.check_empty(key, problems),
            None => return wrong(BlobError::Entry(blob.root).to_string()),
        };
        let Some(keys) = self.tenant_keys.get(&tenant) else { return wrong(BlobError::Tenant(tenant).to_string()) };
        let sizes = Sizes::of(&self.superblock);
        let mut sha256 = Sha256::new();
        let mut left = blob.size;
        let mut cuts_hold = true;
        let mut recipe = Builder::new(|page: &Page| keys.page_id(&page.payload()));
        let read = self.recipe(tenant, &blob.root, blob.size, &mut |entry, chunk| {
            sha256.update(chunk);
            cuts_hold &= sizes.chunk_len(chunk, left, blob.size) == Some(entry.length);
            left = left.saturating_sub(entry.length);
            recipe.push(*entry);
        });
        if let Err(error) = read {
            return wrong(error.to_string());
        }
        if keys.blob_key(&sha256.finalize().into(), blob.size) != *key {
            return wrong(BlobError::Content.to_string());
        }
        if !cuts_hold {
            wrong("a chunk that the cutting rules do not give".to_owned());
        }
        if recipe.finish() != blob.root {
            wrong("another root than the rules of recipes give".to_owned());
        }
    }

    fn check_empty(&self, key: &Id32, problems: &mut Problems) {
        let empty: Id32 = Sha256::digest([]).into();
        if !self.tenant_keys.values().any(|keys| keys.blob_key(&empty, 0) == *key) {
            problems.catalog(ProblemKind::Record, format!("blob {}: empty, and of no tenant", hex(key)));
        }
    }
}
