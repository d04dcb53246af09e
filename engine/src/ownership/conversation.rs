//! Conversations: opened by name, archived, reset, deleted. Whatever they own lives exactly as long as they do.
//!
//! Deleting and resetting are one edit of the record and one fence, however much the conversation owns.

use super::{account, fences};
use crate::{
    catalog::State,
    digest::ScopeKind,
    error::{Error, Kind, Result},
    format::{
        commit::{EDIT_OVERHEAD, Edit},
        conversation::{Conversation, ConversationState},
        fence::{self, Fence},
        keyspace::{AccountRef, Keyspace, Possession, ScopeRef},
    },
    ids::{Lsn, ScopeHash, Time},
    limits::SCOPE_ID_LEN_MAX,
};

/// Length of the edit of a record without its name.
const RECORD_LEN: usize = EDIT_OVERHEAD + 20 + 72;
/// Length of the edit of a record at most.
pub const RECORD_LEN_MAX: usize = RECORD_LEN + SCOPE_ID_LEN_MAX;
/// Length of the edits of a deletion at most: record, entry of the account, fence.
pub const DELETE_LEN_MAX: usize = RECORD_LEN + (EDIT_OVERHEAD + 45) + (EDIT_OVERHEAD + 17 + fence::LEN);
/// Length of the edits of one verb at most: those of a deletion, a name, the account.
pub const EDITS_LEN_MAX: usize = DELETE_LEN_MAX + SCOPE_ID_LEN_MAX + account::RECORD_LEN_MAX;

/// A conversation that is asked for by name.
#[derive(Clone, Debug)]
pub struct Named {
    /// Its tenant's name.
    pub tenant: ScopeHash,
    /// The conversation.
    pub scope: ScopeRef,
    /// Its account, where the caller named one.
    pub account: Option<ScopeHash>,
}

/// What is done to a conversation that is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verb {
    /// Nothing new is published.
    Archive,
    /// It is open again.
    Unarchive,
    /// What it owns goes; it stays.
    Reset,
    /// What it owns goes, and so does it, for good.
    Delete,
}

impl Verb {
    /// True for what gives space back: it may use the reserve of a full disk.
    pub const fn gives_back(self) -> bool {
        matches!(self, Self::Reset | Self::Delete)
    }
}

fn not_found() -> Error {
    Error::new(Kind::NotFound, "no such conversation here: open it first")
}

/// The error of what is gone.
pub fn gone() -> Error {
    Error::new(Kind::ConvGone, "the conversation was deleted")
}

/// The record of a conversation of the account, deleted or not. One of another account is as unknown as one that there is not.
pub fn known(state: &dyn State, named: &Named) -> Result<Conversation> {
    let found = state.conversation(&named.scope)?;
    found.filter(|found| named.account.is_none_or(|account| account == found.account)).ok_or_else(not_found)
}

/// The same, if it was not deleted.
pub fn live(state: &dyn State, named: &Named) -> Result<Conversation> {
    let found = known(state, named)?;
    if found.state == ConversationState::Deleted { Err(gone()) } else { Ok(found) }
}

/// The same, if new artifacts may come in.
pub fn open_for_new(state: &dyn State, named: &Named) -> Result<Conversation> {
    let found = live(state, named)?;
    if found.state == ConversationState::Archived {
        return Err(Error::new(Kind::ConvArchived, "the conversation is archived: unarchive it first"));
    }
    Ok(found)
}

/// Opens a conversation of an account, or finds it open. Its id is never used for another one.
pub fn open(
    state: &dyn State,
    lsn: Lsn,
    now: Time,
    named: &Named,
    owner: &account::Named,
    text: &str,
) -> Result<(Vec<Edit>, Conversation)> {
    if state.conversation(&named.scope)?.is_some() {
        return Ok((Vec::new(), live(state, named)?));
    }
    fences::check_open(state, [(ScopeKind::Tenant, named.tenant), (ScopeKind::Account, owner.account.account)])?;
    let record = Conversation {
        account: owner.account.account,
        state: ConversationState::Open,
        opened_lsn: lsn,
        opened_at: now,
        changed_lsn: lsn,
        reset_lsn: Lsn::NONE,
        forked_from: None,
        text: text.to_owned(),
    };
    let mut edits = vec![put(&named.scope, &record), Edit::put(Keyspace::OfAccount, listed(&named.scope, &record), [])];
    edits.extend(account::first_write(state, lsn, now, owner)?);
    Ok((edits, record))
}

/// Does something to a conversation that is there. Deleting one that is deleted already is done.
pub fn change(state: &dyn State, lsn: Lsn, named: &Named, verb: Verb) -> Result<(Vec<Edit>, Conversation)> {
    let record = known(state, named)?;
    if record.state == ConversationState::Deleted {
        return if verb == Verb::Delete { Ok((Vec::new(), record)) } else { Err(gone()) };
    }
    let next = Conversation { changed_lsn: lsn, ..record.clone() };
    let next = match verb {
        Verb::Archive => Conversation { state: ConversationState::Archived, ..next },
        Verb::Unarchive => Conversation { state: ConversationState::Open, ..next },
        Verb::Reset => Conversation { reset_lsn: lsn, ..next },
        // Its name goes with it; the hash of the name stays, so that it is never taken again.
        Verb::Delete => Conversation { state: ConversationState::Deleted, text: String::new(), ..next },
    };
    if !verb.gives_back() && next.state == record.state {
        return Ok((Vec::new(), record));
    }
    let mut edits = vec![put(&named.scope, &next)];
    if verb.gives_back() {
        let closed_at = if verb == Verb::Delete { lsn } else { Lsn::NONE };
        let fence = Fence { void_all: lsn, closed_at, ..Fence::default() };
        edits.push(fences::raise(state, (ScopeKind::Conversation, named.scope.scope), fence)?);
    }
    if verb == Verb::Delete {
        edits.push(Edit::delete(Keyspace::OfAccount, listed(&named.scope, &record)));
    }
    Ok((edits, next))
}

/// The edit that writes a record.
pub fn put(scope: &ScopeRef, record: &Conversation) -> Edit {
    Edit::put(Keyspace::Conversation, scope.key(), record.encode())
}

fn listed(scope: &ScopeRef, record: &Conversation) -> Vec<u8> {
    let account = AccountRef { tenant: scope.tenant, account: record.account };
    account.possession_key(Possession::Conversation, record.opened_lsn, scope.scope)
}
