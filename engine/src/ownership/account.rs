//! Accounts: there from their first write on.

use crate::{
    catalog::State,
    error::Result,
    format::{
        commit::{EDIT_OVERHEAD, Edit},
        keyspace::{AccountRef, Keyspace},
        value::AccountValue,
    },
    ids::{Lsn, Time},
    limits::SCOPE_ID_LEN_MAX,
};

/// Length of the edit of a record at most.
pub const RECORD_LEN_MAX: usize = EDIT_OVERHEAD + 20 + 18 + SCOPE_ID_LEN_MAX;

/// An account with its id as the caller gave it.
#[derive(Clone, Debug)]
pub struct Named {
    /// The account.
    pub account: AccountRef,
    /// Its id as the caller gave it; empty where the account is known by something that it owns.
    pub text: String,
}

/// The edit that makes the account, if this is its first write.
pub fn first_write(state: &dyn State, lsn: Lsn, now: Time, named: &Named) -> Result<Option<Edit>> {
    if named.text.is_empty() || state.account(&named.account)?.is_some() {
        return Ok(None);
    }
    let value = AccountValue { created_lsn: lsn, created_at: now, text: named.text.clone() };
    Ok(Some(Edit::put(Keyspace::Account, named.account.key(), value.encode())))
}
