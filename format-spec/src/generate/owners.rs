//! Runs, conversations, claims and fences of a random store.

use super::rng::Rng;
use super::world::World;
use crate::Id16;
use crate::derive::{Scope, id_text};
use crate::keyspace::{
    AccountKey, Claim, Claimed, Conversation, ConversationState, Entry, Fence, FenceKey, Key, OfAccountKey, OpKey, Run,
    RunState, Skipped,
};

const TIME: u64 = 1_700_000_000_000;
const RUN: u8 = 1;
const CONVERSATION: u8 = 3;

impl World {
    /// One random operation on what owns artifacts.
    pub(super) fn own(&mut self) {
        match self.rng.below(8) {
            0..=2 => self.open_conversation(),
            3 => self.change_conversation(),
            4 | 5 => self.begin_run(),
            6 => self.change_run(),
            _ => self.fence(),
        }
    }

    fn open_conversation(&mut self) {
        let (_, tenant, account) = self.some_account();
        let number = self.rng.below(100_000);
        let text = format!("conversation-{number}");
        let scope = self.store_keys.scope_hash(tenant, Scope::Conversation, text.as_bytes());
        let key = AccountKey { tenant, scope };
        if self.catalog.conversations.contains_key(&key) {
            return;
        }
        let lsn = self.lsn();
        let value = Conversation {
            account,
            state: ConversationState::Open,
            opened_lsn: lsn,
            opened_at: TIME,
            changed_lsn: lsn,
            reset_lsn: 0,
            forked_from: self.rng.chance(1, 4).then(|| self.rng.array()),
            text,
        };
        self.put(Entry::Conversation(key, value));
        self.put(Entry::OfAccount(OfAccountKey { tenant, account, kind: CONVERSATION, lsn, scope }));
    }

    fn change_conversation(&mut self) {
        let keys: Vec<AccountKey> = self.catalog.conversations.keys().copied().collect();
        let Some(key) = self.rng.pick(&keys).copied() else { return };
        let mut value = self.catalog.conversations.get(&key).cloned().expect("it was picked among them");
        if value.state == ConversationState::Deleted {
            return;
        }
        value.changed_lsn = self.lsn();
        match self.rng.below(4) {
            0 => value.state = ConversationState::Archived,
            1 => value.state = ConversationState::Open,
            2 => value.reset_lsn = self.lsn(),
            _ => {
                value.state = ConversationState::Deleted;
                value.text.clear();
                let (lsn, kind) = (value.opened_lsn, CONVERSATION);
                let index = OfAccountKey { tenant: key.tenant, account: value.account, kind, lsn, scope: key.scope };
                self.delete(Key::OfAccount(index));
            }
        }
        self.put(Entry::Conversation(key, value));
    }

    fn begin_run(&mut self) {
        let (_, tenant, account) = self.some_account();
        let id: Id16 = self.rng.array();
        let scope = self.store_keys.scope_hash(tenant, Scope::Run, id_text(&id).as_bytes());
        let lsn = self.lsn();
        let mut tags: Vec<Id16> = (0..self.rng.below(4)).map(|_| self.rng.array()).collect();
        tags.sort_unstable();
        let ttl = self.rng.below(1_000_000);
        let value = Run {
            id,
            account,
            conversation: some(&mut self.rng),
            parent: some(&mut self.rng),
            state: RunState::Active,
            generation: 1,
            begin_lsn: lsn,
            begun_at: TIME,
            lease_lsn: lsn,
            lease_until: TIME + self.rng.below(1_000),
            ttl,
            ends_at: TIME + ttl,
            finished_at: 0,
            changed_lsn: lsn,
            token: self.rng.array(),
            tags,
        };
        self.put(Entry::Run(AccountKey { tenant, scope }, value));
        self.put(Entry::OfAccount(OfAccountKey { tenant, account, kind: RUN, lsn, scope }));
        let op = self.rng.array();
        let artifact = self.rng.array();
        self.put(Entry::Identity(OpKey { begin_lsn: lsn, scope, op }, artifact));
    }

    fn change_run(&mut self) {
        let keys: Vec<AccountKey> = self.catalog.runs.keys().copied().collect();
        let Some(key) = self.rng.pick(&keys).copied() else { return };
        let mut value = self.catalog.runs.get(&key).cloned().expect("it was picked among them");
        let lsn = self.lsn();
        value.changed_lsn = lsn;
        match self.rng.below(5) {
            0 => value.lease_until = 0,
            1 => {
                value.generation += 1;
                value.lease_lsn = lsn;
                value.token = self.rng.array();
            }
            2 => {
                value.state =
                    *self.rng.pick(&[RunState::Succeeded, RunState::Failed, RunState::Cancelled]).expect("three");
                value.finished_at = TIME;
            }
            _ => {
                let (claimed, skipped) = (self.rng.below(3), self.rng.below(3));
                let claim = Claim {
                    conversation: self.rng.array(),
                    reply: self.rng.array(),
                    lsn,
                    time: TIME,
                    released: self.rng.chance(1, 4),
                    claimed: (0..claimed).map(|_| Claimed { artifact: self.rng.array(), expires_at: TIME }).collect(),
                    skipped: (0..skipped).map(|_| Skipped { artifact: self.rng.array(), reason: 1 }).collect(),
                };
                self.put(Entry::Claim(key, claim));
            }
        }
        self.put(Entry::Run(key, value));
    }

    fn fence(&mut self) {
        let kind = u8::try_from(1 + self.rng.below(6)).expect("at most 6");
        let key = FenceKey { kind, scope: self.rng.array() };
        let lsn = self.lsn();
        let some = |rng: &mut Rng| if rng.chance(1, 2) { lsn } else { 0 };
        let rng = &mut self.rng;
        let (void_derived, closed_at, erased_at) = (some(rng), some(rng), some(rng));
        self.put(Entry::Fence(key, Fence { void_all: lsn, void_derived, closed_at, reopened_at: 0, erased_at }));
    }
}

fn some(rng: &mut Rng) -> Option<Id16> {
    rng.chance(1, 3).then(|| rng.array())
}
