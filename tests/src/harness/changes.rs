//! What is done to artifacts that are there, each answer held against what must be answered.

use std::{collections::BTreeSet, sync::Arc};

use holdfast::{
    ArtifactInfo, ArtifactState, ClaimedInfo, Fork, Kind, Link, Result, Store,
    ids::{ArtifactId, Time},
};

use super::{
    deeds::{At, CONVERSATIONS, Deed, Home, account, conversation, home_of, named},
    promise::{Event, Life, Stored},
    run::Recorder,
    workload::ACCOUNTS,
};

/// Copies of one fork at most, so that workloads stay small.
const COPIES_MAX: usize = 12;

/// What may be answered.
type Allowed = BTreeSet<&'static str>;
const DONE: &str = "done";

/// An artifact, and where it is.
struct One {
    stored: Arc<Stored>,
    at: At,
}

impl Recorder<'_> {
    /// An artifact by any number, also one that is gone.
    fn one(&self, number: usize) -> Option<One> {
        let stored = self.stored.borrow();
        let all: Vec<&Arc<Stored>> = stored.iter().flat_map(Stored::brought).collect();
        let stored = Arc::clone(all.get(number % all.len().max(1))?);
        let at = self.owned().at(stored.id);
        Some(One { stored, at })
    }

    /// Whether what is there may be read: DONE, or the error of what is gone.
    fn readable(&self, one: &One) -> Allowed {
        match self.promise().life(one.stored.id, &one.at) {
            _ if one.at.deleted => [Kind::Gone.as_str()].into(),
            Life::Gone => [Kind::Gone.as_str()].into(),
            Life::Readable => [DONE].into(),
            Life::Open => [DONE, Kind::Gone.as_str()].into(),
        }
    }

    /// Holds an answer against those that are allowed. Who hears that something is gone has been told so.
    fn answered<T>(&self, what: &str, one: &One, answer: Result<T>, allowed: &Allowed) -> Result<Option<T>, String> {
        let said = answer.as_ref().map_or_else(|error| error.kind().as_str(), |_| DONE);
        if !allowed.contains(said) {
            let why = answer.err().map_or_else(String::new, |error| error.to_string());
            if said == Kind::NoSpace.as_str() && self.is_full() {
                return Ok(None);
            }
            return Err(format!("{what} of {}: {said} {why}; allowed was {allowed:?}", one.stored.name));
        }
        if said == Kind::Gone.as_str() && !one.at.deleted {
            self.tell(one.stored.id);
        }
        Ok(answer.ok())
    }

    fn tell(&self, id: ArtifactId) {
        if !self.told.borrow().contains(&id) {
            self.told.borrow_mut().push(id);
            self.mark(Event::Told(vec![id]));
        }
    }

    /// Deletes an artifact.
    pub(super) fn drop_one(&self, store: &Store, number: usize) -> Result<(), String> {
        let Some(one) = self.one(number) else { return Ok(()) };
        let (id, ticket) = (one.stored.id, self.begun());
        let answer = store.delete(home_of(&one.stored, one.at.home), id);
        let Some(info) = self.answered("deletion", &one, answer, &[DONE].into())? else { return Ok(()) };
        let version = one.at.version + u64::from(!one.at.dropped);
        if (info.state, info.version) != (ArtifactState::Deleted, version) {
            return Err(format!("deletion of {}: {info:?}", one.stored.name));
        }
        if !one.at.dropped {
            self.did(ticket, Deed::Drop(id), format!("deletion of {}", one.stored.name));
        }
        Ok(())
    }

    /// Gives an artifact another end.
    pub(super) fn set_end(&self, store: &Store, number: usize, after: u64) -> Result<(), String> {
        let Some(one) = self.one(number) else { return Ok(()) };
        let (id, ticket) = (one.stored.id, self.begun());
        let mut end = Time(self.now().0 + after);
        let mut allowed = self.readable(&one);
        match one.at.home {
            Home::Conversation(_) => allowed = [Kind::NotExpirable.as_str()].into(),
            // Nothing that a run has may end before its run.
            Home::Run(_) => end = Time(end.0 + 400_000_000_000),
            Home::Account => {}
        }
        if end <= self.promise().latest && allowed.contains(DONE) {
            // Engine time may be ahead of a clock that went back.
            allowed.insert(Kind::InvalidArgument.as_str());
        }
        let scope = home_of(&one.stored, one.at.home);
        let answer = store.set_expiry(scope, id, Some(end), Some(one.at.version));
        let Some(info) = self.answered("another end", &one, answer, &allowed)? else { return Ok(()) };
        if (info.expires_at, info.version) != (Some(end), one.at.version + 1) {
            return Err(format!("another end of {}: {info:?}", one.stored.name));
        }
        self.did(ticket, Deed::End(id, Some(end)), format!("another end of {}", one.stored.name));
        Ok(())
    }

    /// Links an artifact into a conversation or account, or gives it another name.
    pub(super) fn link(&self, store: &Store, number: usize, to: Option<usize>) -> Result<(), String> {
        let Some(one) = self.one(number) else { return Ok(()) };
        let Some((home, owner)) = self.place_of(&one, to) else { return Ok(()) };
        let (id, ticket) = (one.stored.id, self.begun());
        let from = home_of(&one.stored, one.at.home);
        let mut allowed = self.readable(&one);
        if matches!(home, Home::Conversation(n) if self.owned().is_deleted(n)) && allowed.remove(DONE) {
            allowed.insert(Kind::ConvGone.as_str());
        }
        if matches!(one.at.home, Home::Run(_)) {
            allowed = [Kind::InvalidArgument.as_str()].into();
        }
        let (name, answer) = if to.is_some() {
            let to = if let Home::Conversation(n) = home { conversation(n) } else { account(owner).into() };
            let link = Link { from, id, to, name: None, detach: false, op_id: None };
            (one.stored.name.clone(), store.link(&link))
        } else {
            let name = format!("{}-r", one.stored.name);
            let answer = store.rename(from, id, &name, None);
            (name, answer)
        };
        let Some(reply) = self.answered("link", &one, answer, &allowed)? else { return Ok(()) };
        let expires_at = one.at.expires_at.filter(|_| home == Home::Account);
        if reply.replayed || (&reply.artifact.name, reply.artifact.expires_at) != (&name, expires_at) {
            return Err(format!("link of {}: {reply:?}", one.stored.name));
        }
        let deed = Deed::Link(home, id, to.is_none());
        self.came(ticket, Self::copy(&one, owner, name, &reply.artifact, deed));
        Ok(())
    }

    /// Where a link goes, and of which account that is; none if there is no such conversation.
    fn place_of(&self, one: &One, to: Option<usize>) -> Option<(Home, usize)> {
        match to {
            None => Some((one.at.home, one.stored.account)),
            Some(n) if n >= CONVERSATIONS.len() => Some((Home::Account, (n - CONVERSATIONS.len()) % ACCOUNTS.len())),
            Some(n) => self.opened.borrow().contains(&n).then_some((Home::Conversation(n), 0)),
        }
    }

    fn copy(one: &One, account: usize, name: String, info: &ArtifactInfo, deed: Deed) -> Stored {
        let Stored { bytes, sha256, .. } = (*one.stored).clone();
        Stored { account, id: info.id, name, bytes, sha256, expires_at: info.expires_at, op_id: None, deed }
    }

    /// Forks a conversation into another one.
    pub(super) fn fork(&self, store: &Store, from: usize, to: usize) -> Result<(), String> {
        let owned = self.owned();
        let known = [from, to].iter().all(|n| self.opened.borrow().contains(n));
        let sources: Vec<One> = {
            let stored = self.stored.borrow();
            let find =
                |id: &ArtifactId| stored.iter().flat_map(Stored::brought).find(|stored| stored.id == *id).cloned();
            let found = owned.list(from).iter().filter_map(find);
            found.map(|stored| One { at: owned.at(stored.id), stored }).collect()
        };
        let gone = owned.is_deleted(from) || owned.is_deleted(to);
        if !known || sources.len() > COPIES_MAX || (sources.is_empty() && !gone) {
            return Ok(());
        }
        let ticket = self.begun();
        let expected = match () {
            () if owned.is_deleted(to) => Kind::ConvGone.as_str(),
            () if from == to => Kind::InvalidArgument.as_str(),
            () if gone => Kind::ConvGone.as_str(),
            () => DONE,
        };
        let answer = store.fork(&Fork { from: named(from), to: named(to), upto: None, op_id: None });
        let said = answer.as_ref().map_or_else(|error| error.kind().as_str(), |_| DONE);
        if said == Kind::NoSpace.as_str() && self.is_full() {
            return Ok(());
        }
        if said != expected {
            return Err(format!("fork of {}: {said} instead of {expected}", CONVERSATIONS[from]));
        }
        let Ok(reply) = answer else { return Ok(()) };
        let copies = sources.iter().zip(&reply.artifacts).filter_map(|(one, copy)| {
            let ClaimedInfo::Here(info) = copy else { return None };
            let deed = Deed::Link(Home::Conversation(to), one.stored.id, false);
            let same = info.sha256 == one.stored.sha256 && info.name == one.stored.name;
            same.then(|| Arc::new(Self::copy(one, 0, one.stored.name.clone(), info, deed)))
        });
        let copies: Vec<_> = copies.collect();
        if copies.len() != sources.len() || reply.artifacts.len() != sources.len() || reply.replayed {
            return Err(format!("a fork of {} brought something else: {reply:?}", CONVERSATIONS[from]));
        }
        self.did(ticket, Deed::Fork(to, copies), format!("fork into {}", CONVERSATIONS[to]));
        Ok(())
    }
}
