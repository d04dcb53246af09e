//! The state that replaying the log gives.
//!
//! It does not know whether the state makes sense; `check` does.

use crate::Id16;
use crate::Id32;
use crate::commit::{Commit, Edit};
use crate::keyspace::{
    Account, AccountKey, Artifact, ArtifactKey, Blob, BulkSegment, Chunk, Claim, Conversation, DueKey, Entry, Fence,
    FenceKey, Key, OfAccountKey, Op, OpKey, OwnerKey, Run, Tenant, Upload, ZeroKey,
};
use crate::log::walk::Replay;
use std::collections::{BTreeMap, BTreeSet};

/// All keyspaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the table")]
pub struct Catalog {
    pub tenants: BTreeMap<Id16, Tenant>,
    pub accounts: BTreeMap<AccountKey, Account>,
    pub conversations: BTreeMap<AccountKey, Conversation>,
    pub runs: BTreeMap<AccountKey, Run>,
    pub uploads: BTreeMap<Id16, Upload>,
    pub artifacts: BTreeMap<ArtifactKey, Artifact>,
    pub blobs: BTreeMap<Id32, Blob>,
    pub chunks: BTreeMap<Id32, Chunk>,
    pub by_owner: BTreeMap<OwnerKey, Id16>,
    pub due: BTreeSet<DueKey>,
    pub ops: BTreeMap<OpKey, Op>,
    pub identities: BTreeMap<OpKey, Id16>,
    pub fences: BTreeMap<FenceKey, Fence>,
    pub zero: BTreeSet<ZeroKey>,
    pub segments: BTreeMap<u64, BulkSegment>,
    pub of_account: BTreeSet<OfAccountKey>,
    pub claims: BTreeMap<AccountKey, Claim>,
}

impl Replay for Catalog {
    fn commit(&mut self, commit: &Commit) {
        commit.edits().for_each(|edit| self.apply(edit));
    }

    fn place(&self, id: &Id32) -> Option<(u64, u64)> {
        self.chunks.get(id).map(|chunk| (chunk.segment, chunk.offset))
    }
}

impl Catalog {
    /// Applies one edit.
    pub fn apply(&mut self, edit: &Edit) {
        match edit {
            Edit::Put(entry) => self.put(entry.clone()),
            Edit::Delete(key) => self.delete(key),
        }
    }

    /// The entry of a key, if it is there.
    pub fn get(&self, key: &Key) -> Option<Entry> {
        Some(match key {
            Key::Tenant(key) => Entry::Tenant(*key, *self.tenants.get(key)?),
            Key::Account(key) => Entry::Account(*key, self.accounts.get(key)?.clone()),
            Key::Conversation(key) => Entry::Conversation(*key, self.conversations.get(key)?.clone()),
            Key::Run(key) => Entry::Run(*key, self.runs.get(key)?.clone()),
            Key::Upload(key) => Entry::Upload(*key, self.uploads.get(key)?.clone()),
            Key::Artifact(key) => Entry::Artifact(*key, Box::new(self.artifacts.get(key)?.clone())),
            Key::Blob(key) => Entry::Blob(*key, *self.blobs.get(key)?),
            Key::Chunk(key) => Entry::Chunk(*key, *self.chunks.get(key)?),
            Key::ByOwner(key) => Entry::ByOwner(*key, *self.by_owner.get(key)?),
            Key::Due(key) => Entry::Due(*self.due.get(key)?),
            Key::Op(key) => Entry::Op(*key, *self.ops.get(key)?),
            Key::Identity(key) => Entry::Identity(*key, *self.identities.get(key)?),
            Key::Fence(key) => Entry::Fence(*key, *self.fences.get(key)?),
            Key::Zero(key) => Entry::Zero(*self.zero.get(key)?),
            Key::Segment(key) => Entry::Segment(*key, *self.segments.get(key)?),
            Key::OfAccount(key) => Entry::OfAccount(*self.of_account.get(key)?),
            Key::Claim(key) => Entry::Claim(*key, self.claims.get(key)?.clone()),
        })
    }

    fn put(&mut self, entry: Entry) {
        match entry {
            Entry::Tenant(key, value) => drop(self.tenants.insert(key, value)),
            Entry::Account(key, value) => drop(self.accounts.insert(key, value)),
            Entry::Conversation(key, value) => drop(self.conversations.insert(key, value)),
            Entry::Run(key, value) => drop(self.runs.insert(key, value)),
            Entry::Upload(key, value) => drop(self.uploads.insert(key, value)),
            Entry::Artifact(key, value) => drop(self.artifacts.insert(key, *value)),
            Entry::Blob(key, value) => drop(self.blobs.insert(key, value)),
            Entry::Chunk(key, value) => drop(self.chunks.insert(key, value)),
            Entry::ByOwner(key, value) => drop(self.by_owner.insert(key, value)),
            Entry::Due(key) => drop(self.due.insert(key)),
            Entry::Op(key, value) => drop(self.ops.insert(key, value)),
            Entry::Identity(key, value) => drop(self.identities.insert(key, value)),
            Entry::Fence(key, value) => drop(self.fences.insert(key, value)),
            Entry::Zero(key) => drop(self.zero.insert(key)),
            Entry::Segment(key, value) => drop(self.segments.insert(key, value)),
            Entry::OfAccount(key) => drop(self.of_account.insert(key)),
            Entry::Claim(key, value) => drop(self.claims.insert(key, value)),
        }
    }

    fn delete(&mut self, key: &Key) {
        match key {
            Key::Tenant(key) => drop(self.tenants.remove(key)),
            Key::Account(key) => drop(self.accounts.remove(key)),
            Key::Conversation(key) => drop(self.conversations.remove(key)),
            Key::Run(key) => drop(self.runs.remove(key)),
            Key::Upload(key) => drop(self.uploads.remove(key)),
            Key::Artifact(key) => drop(self.artifacts.remove(key)),
            Key::Blob(key) => drop(self.blobs.remove(key)),
            Key::Chunk(key) => drop(self.chunks.remove(key)),
            Key::ByOwner(key) => drop(self.by_owner.remove(key)),
            Key::Due(key) => drop(self.due.remove(key)),
            Key::Op(key) => drop(self.ops.remove(key)),
            Key::Identity(key) => drop(self.identities.remove(key)),
            Key::Fence(key) => drop(self.fences.remove(key)),
            Key::Zero(key) => drop(self.zero.remove(key)),
            Key::Segment(key) => drop(self.segments.remove(key)),
            Key::OfAccount(key) => drop(self.of_account.remove(key)),
            Key::Claim(key) => drop(self.claims.remove(key)),
        }
    }
}
