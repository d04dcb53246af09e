//! The door at which ids of callers become keyed hashes. Behind it no rule sees their text.

use std::collections::BTreeMap;

use super::names;
use crate::{
    catalog::State,
    digest::{ScopeKind, StoreKeys, TenantKeys},
    error::{Error, Kind, Result},
    format::{
        keyspace::{AccountRef, Keyspace, tenant_key},
        manifest::Tenant,
        value::TenantValue,
    },
    ids::{OpHash, TenantNumber},
};

/// An account as a caller names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AccountScope<'a> {
    /// Name of the tenant.
    pub tenant: &'a str,
    /// Id of the account.
    pub account: &'a str,
}

/// Keys of the store and of its tenants.
pub struct Door {
    store: StoreKeys,
    tenants: BTreeMap<TenantNumber, TenantKeys>,
}

impl Door {
    /// Derives the keys from the store's secret and those of its tenants.
    pub fn new(secret: &[u8; 32], tenants: &[Tenant]) -> Self {
        let tenants = tenants.iter().map(|tenant| (tenant.number, TenantKeys::new(&tenant.key))).collect();
        Self { store: StoreKeys::new(secret), tenants }
    }

    /// The account that a caller means. An account comes into being with its first write; a tenant does not.
    pub fn account(&self, state: &dyn State, scope: &AccountScope<'_>) -> Result<AccountRef> {
        names::caller_id(scope.tenant)?;
        names::caller_id(scope.account)?;
        let name = self.store.scope(TenantNumber(0), ScopeKind::Tenant, scope.tenant);
        let Some(value) = state.get(Keyspace::Tenant, &tenant_key(name))? else {
            return Err(Error::new(Kind::NotFound, "no tenant of that name"));
        };
        let tenant = TenantValue::decode(&value).map_err(|bad| Error::new(Kind::Corrupt, bad.what))?.number;
        Ok(AccountRef { tenant, account: self.store.scope(tenant, ScopeKind::Account, scope.account) })
    }

    /// Hash of an op id of an account.
    pub fn op(&self, account: &AccountRef, op_id: &str) -> Result<OpHash> {
        names::caller_id(op_id)?;
        Ok(self.store.op(account.tenant, account.account, op_id))
    }

    /// Keys of a tenant.
    pub fn keys(&self, tenant: TenantNumber) -> Result<&TenantKeys> {
        self.tenants.get(&tenant).ok_or_else(|| Error::new(Kind::Corrupt, "the manifest has no key for a tenant"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{catalog::Catalog, format::commit::Edit, ids::Time};

    #[test]
    fn a_tenant_must_be_known_and_an_account_need_not() {
        let door = Door::new(&[1; 32], &[Tenant { number: TenantNumber(1), key: [2; 32] }]);
        let mut catalog = Catalog::default();
        let name = StoreKeys::new(&[1; 32]).scope(TenantNumber(0), ScopeKind::Tenant, "default");
        let value = TenantValue { number: TenantNumber(1), created_at: Time(5) };
        catalog.apply(&Edit::put(Keyspace::Tenant, tenant_key(name), value.encode())).expect("applies");

        let account = |tenant, account| door.account(&catalog, &AccountScope { tenant, account });
        let known = account("default", "a").expect("known");
        assert_eq!(known.tenant, TenantNumber(1));
        assert_ne!(known, account("default", "b").expect("known"));
        assert_eq!(account("other", "a").expect_err("unknown").kind(), Kind::NotFound);
        assert_eq!(account("default", "").expect_err("no id").kind(), Kind::InvalidArgument);
        assert_eq!(door.op(&known, "a b").expect_err("no id").kind(), Kind::InvalidArgument);
        assert_eq!(door.keys(TenantNumber(2)).err().expect("unknown").kind(), Kind::Corrupt);
    }
}
