//! The operations of a random store: blobs are put, deleted and reaped, uploads begun and ended, tenants and accounts made.

use super::rng::Rng;
use super::segments::index;
use super::world::{TenantState, World, split};
use crate::derive::{Scope, Secret, TenantKeys};
use crate::keyspace::{
    Account, AccountKey, Artifact, ArtifactKey, DueKey, Entry, Flags, Key, Op, OpKey, OwnerKey, OwnerKind, Tenant,
    Upload, ZeroKey,
};
use crate::{Id16, Id32};

const TIME: u64 = 1_700_000_000_000;

impl World {
    /// One random operation as one request.
    pub(super) fn operation(&mut self) {
        match self.rng.below(24) {
            0..=9 => self.put_artifact(),
            10..=12 => self.delete_artifact(),
            13..=15 => self.reap(),
            16 => self.begin_upload(),
            17 => self.end_upload(),
            18 => self.add_account(),
            20..=23 => self.own(),
            _ => self.add_op(),
        }
        self.end_request();
    }

    pub(super) fn add_tenant(&mut self, name: &str) {
        let number = u32::try_from(self.tenants.len() + 1).expect("a few tenants");
        let key = Secret(self.rng.array());
        let keys = TenantKeys::new(&key);
        let scope = self.store_keys.scope_hash(0, Scope::Tenant, name.as_bytes());
        self.put(Entry::Tenant(scope, Tenant { number, created_at: TIME }));
        self.tenants.push(TenantState { number, key, keys, accounts: Vec::new() });
        self.end_request();
    }

    fn some_tenant(&mut self) -> usize {
        index(self.rng.below(self.tenants.len() as u64))
    }

    fn add_account(&mut self) {
        let at = self.some_tenant();
        let text = text(&mut self.rng, 1, 40);
        let created_lsn = self.lsn();
        let tenant = self.tenants.get_mut(at).expect("it was picked");
        let scope = self.store_keys.scope_hash(tenant.number, Scope::Account, text.as_bytes());
        tenant.accounts.push(scope);
        let key = AccountKey { tenant: tenant.number, scope };
        self.put(Entry::Account(key, Account { created_lsn, created_at: TIME, text }));
    }

    /// A tenant, its number, and an account of it; another store would have made it first.
    pub(super) fn some_account(&mut self) -> (usize, u32, Id16) {
        let at = self.some_tenant();
        let tenant = self.tenants.get(at).expect("it was picked");
        let number = tenant.number;
        let account = self.rng.pick(&tenant.accounts).copied().unwrap_or_default();
        (at, number, account)
    }

    fn add_op(&mut self) {
        let lsn = self.lsn();
        let begin_lsn = if self.rng.chance(1, 2) { 0 } else { lsn };
        let key = OpKey { begin_lsn, scope: self.rng.array(), op: self.rng.array() };
        let artifact = self.rng.array();
        let code = u32::from(self.rng.chance(1, 4));
        self.put(Entry::Op(key, Op { artifact, code, lsn, time: TIME }));
    }

    fn put_artifact(&mut self) {
        let (at, tenant, account) = self.some_account();
        let content = self.content();
        let bulk = content.len() > 20_000 && self.rng.chance(2, 3);
        let (blob_root, sha256) = self.store_blob(at, &content, bulk);
        let lsn = self.lsn();
        let artifact = artifact(&mut self.rng, (tenant, account, lsn), content.len() as u64, (blob_root, sha256));
        let key = ArtifactKey { tenant, account, artifact: artifact.id };
        if let Some(time) = artifact.expires_at {
            self.put(Entry::Due(DueKey { time, artifact: key }));
        }
        self.put(Entry::ByOwner(owner_key(&artifact), artifact.id));
        self.put(Entry::Artifact(key, Box::new(artifact)));
        self.contents.insert(key, content);
    }

    fn delete_artifact(&mut self) {
        let keys: Vec<ArtifactKey> = self.catalog.artifacts.keys().copied().collect();
        let Some(key) = self.rng.pick(&keys).copied() else { return };
        let artifact = self.catalog.artifacts.get(&key).cloned().expect("it was picked among them");
        self.delete(Key::Artifact(key));
        self.delete(Key::ByOwner(owner_key(&artifact)));
        if let Some(time) = artifact.expires_at {
            self.delete(Key::Due(DueKey { time, artifact: key }));
        }
        self.contents.remove(&key);
        let keys = self.tenants.iter().find(|tenant| tenant.number == key.tenant).map(|tenant| tenant.keys.clone());
        let blob_key = keys.expect("the tenant is known").blob_key(&artifact.sha256, artifact.size);
        let mut blob = *self.catalog.blobs.get(&blob_key).expect("an artifact has a blob");
        blob.references -= 1;
        self.put(Entry::Blob(blob_key, blob));
        if blob.references == 0 {
            self.put(Entry::Zero(ZeroKey::Blob(blob_key)));
        }
    }

    /// Removes some of what has no references.
    fn reap(&mut self) {
        let zero: Vec<ZeroKey> = self.catalog.zero.iter().copied().collect();
        for key in zero {
            if self.rng.chance(1, 3) {
                continue;
            }
            self.delete(Key::Zero(key));
            match key {
                ZeroKey::Blob(id) => {
                    let blob = *self.catalog.blobs.get(&id).expect("what is in zero is there");
                    self.delete(Key::Blob(id));
                    if blob.size > 0 {
                        self.drop_reference(&blob.root);
                    }
                }
                ZeroKey::Chunk(id) => {
                    self.delete(Key::Chunk(id));
                    for child in self.pages.get(&id).map(|page| page.entries.clone()).unwrap_or_default() {
                        self.drop_reference(&child.id);
                    }
                }
            }
        }
    }

    /// The first part of a blob, as it stands between two appends.
    fn begin_upload(&mut self) {
        let (at, tenant, account) = self.some_account();
        let size = 8_192 + self.rng.below(120_000);
        let content = self.rng.bytes(index(size));
        let lengths = self.sizes.cut(&content);
        let chunks = split(&content, &lengths);
        let whole = index(self.rng.below(chunks.len() as u64));
        let bulk = self.rng.chance(1, 2);
        let (right_edge, _) = self.store_recipe(at, chunks.get(..whole).unwrap_or_default(), false, bulk);
        let mut offset: u64 = lengths.iter().take(whole).sum();
        let last = chunks.get(whole).copied().unwrap_or_default();
        let tail_len = self.rng.below(last.len() as u64);
        let mut tail = None;
        if tail_len > 0 {
            let bytes = last.get(..index(tail_len)).unwrap_or_default();
            let (edge, _) = self.store_recipe(at, &[bytes], false, bulk);
            tail = edge.into_iter().flatten().next();
            offset += tail_len;
        }
        let resumable = self.rng.chance(1, 2);
        let state = if resumable { self.rng.bytes(105) } else { Vec::new() };
        let upload = Upload {
            tenant,
            resumable,
            account,
            begin_lsn: self.lsn(),
            created_at: TIME,
            offset,
            declared_size: self.rng.chance(1, 2).then_some(size),
            expires_at: self.rng.below(2) * TIME,
            sha256_state: state,
            tail,
            right_edge,
        };
        upload.entries().for_each(|entry| self.add_reference(&entry.id));
        let id = self.rng.array();
        self.put(Entry::Upload(id, upload));
    }

    fn end_upload(&mut self) {
        let ids: Vec<Id16> = self.catalog.uploads.keys().copied().collect();
        let Some(id) = self.rng.pick(&ids).copied() else { return };
        let upload = self.catalog.uploads.get(&id).cloned().expect("it was picked among them");
        upload.entries().for_each(|entry| self.drop_reference(&entry.id));
        self.delete(Key::Upload(id));
    }

    /// Bytes of a blob: none, few or many; random, compressible, or partly those of another blob.
    fn content(&mut self) -> Vec<u8> {
        let size = match self.rng.below(16) {
            0 => 0,
            1..=8 => 1 + self.rng.below(2_000),
            9..=13 => 1 + self.rng.below(30_000),
            _ => 1 + self.rng.below(200_000),
        };
        let size = index(size);
        let others: Vec<&Vec<u8>> = self.contents.values().collect();
        match self.rng.below(4) {
            0 => self.rng.pick(&others).map(|other| (*other).clone()).unwrap_or_default(),
            1 => {
                let mut content = self.rng.pick(&others).map(|other| (*other).clone()).unwrap_or_default();
                content.extend(self.rng.bytes(size / 8));
                content
            }
            2 => {
                let words = self.rng.bytes(48);
                let mut content: Vec<u8> = words.into_iter().cycle().take(size).collect();
                // Without a change now and then all chunks would be the same one.
                content.iter_mut().step_by(97).for_each(|byte| [*byte] = self.rng.array());
                content
            }
            _ => self.rng.bytes(size),
        }
    }
}

fn owner_key(artifact: &Artifact) -> OwnerKey {
    OwnerKey {
        tenant: artifact.tenant,
        account: artifact.account,
        owner_kind: artifact.owner_kind,
        owner: artifact.owner,
        attach_lsn: artifact.attach_lsn,
        position: artifact.position,
    }
}

/// Letters, some of them of two bytes.
fn text(rng: &mut Rng, least: u64, most: u64) -> String {
    let count = least + rng.below(most - least + 1);
    (0..count).map(|_| *rng.pick(&['a', 'b', 'c', 'ü', '.', '/', ' ']).unwrap_or(&'x')).collect()
}

fn artifact(
    rng: &mut Rng,
    (tenant, account, lsn): (u32, Id16, u64),
    size: u64,
    (root, sha256): (Id32, Id32),
) -> Artifact {
    let owner_kind = match rng.below(4) {
        0 => OwnerKind::Run,
        1 => OwnerKind::Upload,
        2 => OwnerKind::Conversation,
        _ => OwnerKind::Account,
    };
    let some = |rng: &mut Rng| rng.chance(1, 3).then(|| rng.array());
    Artifact {
        id: rng.array(),
        tenant,
        flags: Flags {
            truncated: rng.chance(1, 4),
            tree: rng.chance(1, 4),
            detach: rng.chance(1, 4),
            deleted: rng.chance(1, 8),
        },
        account,
        owner_kind,
        origin: u8::try_from(1 + rng.below(5)).expect("at most 5"),
        position: 0,
        owner: rng.array(),
        born_account: account,
        born_run: some(rng),
        born_order: rng.chance(1, 3).then_some(7),
        born_lsn: lsn,
        born_time: TIME,
        token_lsn: lsn,
        attach_lsn: lsn,
        size,
        sha256,
        blob_root: root,
        logical_size: rng.chance(1, 3).then_some(size),
        expires_at: rng.chance(1, 3).then(|| TIME + rng.below(1_000_000)),
        version: 1 + rng.below(3),
        link_of: some(rng),
        supersedes: some(rng),
        derived_from: some(rng),
        name: text(rng, 1, 60),
        key: rng.chance(1, 3).then(|| text(rng, 0, 200)),
        media_type: text(rng, 0, 30),
        detected_type: text(rng, 0, 30),
    }
}
