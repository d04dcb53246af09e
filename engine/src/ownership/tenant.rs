//! Tenants: what is of one is unknown to every other. Each has a key of its own, so that equal bytes of two have no id in common.
//!
//! The key is in the manifest, and durable there, before the record that gives a name to it: without the record nothing can be put
//! under the key, and without the key nothing that was put could be read.

use crate::{
    catalog::State,
    error::{Error, Kind, Result},
    format::{
        commit::{EDIT_OVERHEAD, Edit},
        keyspace::{Keyspace, tenant_key},
        value::TenantValue,
    },
    ids::{ScopeHash, TenantNumber, Time},
};

/// Length of the edit of a record.
pub const RECORD_LEN: usize = EDIT_OVERHEAD + 16 + 16;

/// The record of a tenant, if there is one.
pub fn known(state: &dyn State, name: ScopeHash) -> Result<Option<TenantValue>> {
    let decode = |value: Vec<u8>| TenantValue::decode(&value).map_err(|bad| Error::new(Kind::Corrupt, bad.what));
    state.get(Keyspace::Tenant, &tenant_key(name))?.map(decode).transpose()
}

/// The same, where there must be one.
pub fn live(state: &dyn State, name: ScopeHash) -> Result<TenantValue> {
    known(state, name)?.ok_or_else(|| Error::new(Kind::NotFound, "no tenant of that name: create it first"))
}

/// Gives a name to a number whose key the manifest has. A name that is taken stays with the number that it has.
pub fn create(state: &dyn State, now: Time, name: ScopeHash, number: TenantNumber) -> Result<(Vec<Edit>, TenantValue)> {
    if let Some(there) = known(state, name)? {
        return Ok((Vec::new(), there));
    }
    let value = TenantValue { number, created_at: now };
    Ok((vec![Edit::put(Keyspace::Tenant, tenant_key(name), value.encode())], value))
}
