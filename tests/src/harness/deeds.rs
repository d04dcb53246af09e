//! What a store is asked to do besides puts into accounts, and what that makes of the artifacts: the model of ownership, in plain
//! lists.

use std::{collections::BTreeMap, sync::Arc};

use holdfast::{
    AccountScope, BeginRun, ClaimedInfo, ConversationScope, Kind, RunScope, Scope, Store,
    ids::{ArtifactId, RunId, Time},
    ownership::conversation::Verb,
};

use super::{
    promise::{Event, Stored},
    run::Recorder,
    workload::{ACCOUNTS, OwnStep},
};

/// Names of conversations, all of the first account.
pub const CONVERSATIONS: [&str; 5] = ["elm", "fir", "gum", "holm", "ivy"];

/// Spans of runs and leases: longer than any workload's clock goes.
const SPAN: u64 = 3000 * 24 * 3600 * 1000;

/// Where a put went.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Home {
    /// Into its account.
    #[default]
    Account,
    /// Into a conversation, by its index.
    Conversation(usize),
    /// Into a run.
    Run(RunId),
}

/// One change of the store, in the order of commits.
#[derive(Clone, Debug)]
pub enum Deed {
    /// An artifact came.
    Put(Home),
    /// A conversation was deleted.
    Delete(usize),
    /// A run gave these to a conversation.
    Claim(RunId, usize, Vec<ArtifactId>),
    /// An artifact was deleted.
    Drop(ArtifactId),
    /// It got another end.
    End(ArtifactId, Option<Time>),
    /// A link came, of an artifact that went if the link took its place.
    Link(Home, ArtifactId, bool),
    /// Links of all that a conversation had came into another one.
    Fork(usize, Vec<Arc<Stored>>),
}

impl Default for Deed {
    fn default() -> Self {
        Self::Put(Home::Account)
    }
}

/// Where an artifact is after some deeds, and what its record says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct At {
    /// Its owner.
    pub home: Home,
    /// It was deleted, or its conversation was.
    pub deleted: bool,
    /// It was deleted itself.
    pub dropped: bool,
    /// When it ends.
    pub expires_at: Option<Time>,
    /// Version of its record.
    pub version: u64,
}

/// What the first deeds of an order come to.
#[derive(Default, Debug)]
pub struct Owned {
    places: BTreeMap<ArtifactId, At>,
    lists: BTreeMap<usize, Vec<ArtifactId>>,
    deleted: Vec<usize>,
    pending: Vec<(RunId, Vec<ArtifactId>)>,
}

impl Owned {
    /// Follows the deeds.
    pub fn of(order: &[Arc<Stored>]) -> Self {
        let mut owned = Self::default();
        for stored in order {
            owned.follow(stored);
        }
        owned
    }

    /// Follows one deed more.
    pub fn follow(&mut self, stored: &Stored) {
        match &stored.deed {
            Deed::Put(home) => self.came(stored, *home),
            Deed::Delete(n) => {
                self.deleted.push(*n);
                self.lists.remove(n);
                let gone = self.places.values_mut().filter(|at| at.home == Home::Conversation(*n));
                gone.for_each(|at| at.deleted = true);
            }
            Deed::Claim(run, to, ids) => {
                self.pending_of(*run).retain(|id| !ids.contains(id));
                self.lists.entry(*to).or_default().extend(ids);
                for (_, at) in self.places.iter_mut().filter(|(id, _)| ids.contains(id)) {
                    *at = At { home: Home::Conversation(*to), expires_at: None, version: at.version + 1, ..*at };
                }
            }
            Deed::Drop(id) => self.drop_one(*id),
            Deed::End(id, end) => {
                if let Some(at) = self.places.get_mut(id) {
                    *at = At { expires_at: *end, version: at.version + 1, ..*at };
                }
            }
            Deed::Link(home, source, moves) => {
                self.came(stored, *home);
                if *moves {
                    self.drop_one(*source);
                }
            }
            Deed::Fork(_, copies) => copies.iter().for_each(|copy| self.follow(copy)),
        }
    }

    fn came(&mut self, stored: &Stored, home: Home) {
        let at = At { home, deleted: false, dropped: false, expires_at: stored.expires_at, version: 1 };
        self.places.insert(stored.id, at);
        match home {
            Home::Account => {}
            Home::Conversation(n) => self.lists.entry(n).or_default().push(stored.id),
            Home::Run(run) => self.pending_of(run).push(stored.id),
        }
    }

    fn drop_one(&mut self, id: ArtifactId) {
        if let Some(at) = self.places.get_mut(&id) {
            *at = At { deleted: true, dropped: true, version: at.version + 1, ..*at };
        }
        let lists = self.lists.values_mut().chain(self.pending.iter_mut().map(|(_, ids)| ids));
        lists.for_each(|ids| ids.retain(|other| *other != id));
    }

    fn pending_of(&mut self, run: RunId) -> &mut Vec<ArtifactId> {
        let at = self.pending.iter().position(|(other, _)| *other == run).unwrap_or_else(|| {
            self.pending.push((run, Vec::new()));
            self.pending.len() - 1
        });
        &mut self.pending[at].1
    }

    /// Where an artifact is.
    pub fn at(&self, id: ArtifactId) -> At {
        self.places.get(&id).copied().expect("only what came is asked for")
    }

    /// What a conversation has.
    pub fn list(&self, conversation: usize) -> &[ArtifactId] {
        self.lists.get(&conversation).map_or(&[], Vec::as_slice)
    }

    /// Whether a conversation is deleted.
    pub fn is_deleted(&self, conversation: usize) -> bool {
        self.deleted.contains(&conversation)
    }

    /// What a run has and has not given away.
    pub fn pending(&self, run: RunId) -> Vec<ArtifactId> {
        self.pending.iter().find(|(other, _)| *other == run).map_or_else(Vec::new, |(_, ids)| ids.clone())
    }

    /// The lists of conversations and runs, as far as there is something to list.
    pub fn lists(&self) -> impl Iterator<Item = (Scope<'static>, &Vec<ArtifactId>)> {
        let conversations = self.lists.iter().map(|(n, ids)| (conversation(*n), ids));
        conversations.chain(self.pending.iter().map(|(run, ids)| (of_run(*run), ids)))
    }
}

/// The scope of a conversation.
pub const fn named(n: usize) -> ConversationScope<'static> {
    ConversationScope { tenant: "default", account: None, conversation: CONVERSATIONS[n] }
}

/// Its artifacts.
pub const fn conversation(n: usize) -> Scope<'static> {
    Scope::Conversation(named(n))
}

/// Those of a run.
pub const fn of_run(run: RunId) -> Scope<'static> {
    Scope::Run(RunScope { tenant: "default", account: None, run })
}

/// Where an artifact is to be found.
pub const fn home_of(stored: &Stored, home: Home) -> Scope<'static> {
    match home {
        Home::Account => Scope::Account(account(stored.account)),
        Home::Conversation(n) => conversation(n),
        Home::Run(run) => of_run(run),
    }
}

/// An account, by its index.
pub const fn account(n: usize) -> AccountScope<'static> {
    AccountScope { tenant: "default", account: ACCOUNTS[n] }
}

/// The account that all of it is of.
const OWNER: AccountScope<'static> = AccountScope { tenant: "default", account: ACCOUNTS[0] };

impl Recorder<'_> {
    /// Does something about owners, and holds the answer against what must be answered.
    pub(super) fn own(&self, store: &Store, step: OwnStep) -> Result<(), String> {
        match step {
            OwnStep::Open(n) => match store.open_conversation(&OWNER, CONVERSATIONS[n]) {
                Ok(_) if self.owned().is_deleted(n) => Err("a deleted conversation was opened again".to_owned()),
                Ok(_) => {
                    self.opened.borrow_mut().insert(n);
                    Ok(())
                }
                Err(error) if error.kind() == Kind::ConvGone && self.owned().is_deleted(n) => Ok(()),
                Err(error) => self.unless_full(&error, "open"),
            },
            OwnStep::Begin => match store.begin_run(&BeginRun { ttl: SPAN, lease: SPAN, ..BeginRun::of(OWNER) }) {
                Ok(leased) => {
                    self.runs.borrow_mut().push(leased.token);
                    Ok(())
                }
                Err(error) => self.unless_full(&error, "begin"),
            },
            OwnStep::Delete(n) => self.delete(store, n),
            OwnStep::Claim(run, to) => {
                let Some(token) = self.run_of(run) else { return Ok(()) };
                self.claim(store, &token, to).map_err(|error| match error {
                    Some(error) => format!("claim: {} {error}", error.kind().as_str()),
                    None => "a claim gave another list than was put, or was not refused".to_owned(),
                })
            }
            OwnStep::Drop(one) => self.drop_one(store, one),
            OwnStep::End(one, after) => self.set_end(store, one, after),
            OwnStep::Link(one, to) => self.link(store, one, Some(to)),
            OwnStep::Rename(one) => self.link(store, one, None),
            OwnStep::Fork(from, to) => self.fork(store, from, to),
        }
    }

    /// Deletes a conversation, if it was opened.
    pub(super) fn delete(&self, store: &Store, n: usize) -> Result<(), String> {
        if !self.opened.borrow().contains(&n) {
            return Ok(());
        }
        let known = self.owned().is_deleted(n);
        let ticket = self.begun();
        match store.change_conversation(&named(n), Verb::Delete) {
            Ok(_) if known => Ok(()),
            Ok(_) => {
                self.did(ticket, Deed::Delete(n), format!("deletion of {}", CONVERSATIONS[n]));
                Ok(())
            }
            Err(error) => self.unless_full(&error, "delete"),
        }
    }

    /// Claims, if there is something to claim. An error without a cause: the claim took something else than was put.
    fn claim(&self, store: &Store, token: &holdfast::RunToken, to: usize) -> Result<(), Option<holdfast::Error>> {
        let owned = self.owned();
        let waiting = owned.pending(token.run);
        let before = self.claim_of(token.run);
        if !self.opened.borrow().contains(&to) || (waiting.is_empty() && before.is_none()) {
            return Ok(());
        }
        let ticket = self.begun();
        let answer = store.claim_run("default", token, CONVERSATIONS[to], "reply");
        let expected = match &before {
            Some((conversation, _)) if *conversation != to => Err(Kind::AlreadyClaimed),
            _ if owned.is_deleted(to) => Err(Kind::ConvGone),
            Some((_, ids)) => Ok(ids.clone()),
            None => Ok(waiting),
        };
        match (answer, expected) {
            (Ok(reply), Ok(ids)) => {
                let id = |claimed: &ClaimedInfo| match claimed {
                    ClaimedInfo::Here(info) => info.id,
                    ClaimedInfo::Gone(id, _) => *id,
                };
                if reply.artifacts.iter().map(id).collect::<Vec<_>>() != ids || reply.replayed != before.is_some() {
                    return Err(None);
                }
                if before.is_none() {
                    self.did(ticket, Deed::Claim(token.run, to, ids), format!("claim for {}", CONVERSATIONS[to]));
                }
                Ok(())
            }
            (Err(error), Err(kind)) if error.kind() == kind => Ok(()),
            (Err(error), _) if error.kind() == Kind::NoSpace && self.is_full() => Ok(()),
            (Err(error), _) => Err(Some(error)),
            (Ok(_), Err(_)) => Err(None),
        }
    }

    pub(super) fn unless_full(&self, error: &holdfast::Error, what: &str) -> Result<(), String> {
        if error.kind() == Kind::NoSpace && self.is_full() {
            return Ok(());
        }
        Err(format!("{what}: {} {error}", error.kind().as_str()))
    }

    fn claim_of(&self, run: RunId) -> Option<(usize, Vec<ArtifactId>)> {
        let stored = self.stored.borrow();
        stored.iter().find_map(|stored| match &stored.deed {
            Deed::Claim(of, to, ids) if *of == run => Some((*to, ids.clone())),
            _ => None,
        })
    }

    /// What the deeds so far come to.
    pub(super) fn owned(&self) -> Owned {
        Owned::of(&self.stored.borrow())
    }

    pub(super) fn did(&self, ticket: u64, deed: Deed, name: String) {
        self.came(ticket, Stored { name, deed, ..Stored::default() });
    }

    pub(super) fn came(&self, ticket: u64, stored: Stored) {
        let stored = Arc::new(stored);
        self.stored.borrow_mut().push(Arc::clone(&stored));
        self.mark(Event::Done(ticket, stored));
    }
}
