//! The door at which ids of callers become keyed hashes. Behind it no rule sees their text.

use std::collections::BTreeMap;

use super::{account, conversation, names, tenant, token::RunToken, upload};
use crate::{
    catalog::State,
    digest::{Identity, ScopeKind, StoreKeys, TenantKeys},
    error::{Error, Kind, Result},
    format::{
        keyspace::{AccountRef, ScopeRef},
        manifest::Tenant as TenantKey,
    },
    ids::{IdentityHash, OpHash, RunId, ScopeHash, TenantNumber, UploadId},
    sync::RwLock,
};

/// An account as a caller names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AccountScope<'a> {
    /// Name of the tenant.
    pub tenant: &'a str,
    /// Id of the account.
    pub account: &'a str,
}

/// A conversation as a caller names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConversationScope<'a> {
    /// Name of the tenant.
    pub tenant: &'a str,
    /// Id of the account that it must be of; if not given, of whichever it is.
    pub account: Option<&'a str>,
    /// Id of the conversation.
    pub conversation: &'a str,
}

/// A run as a caller names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunScope<'a> {
    /// Name of the tenant.
    pub tenant: &'a str,
    /// Id of the account that it must be of; if not given, of whichever it is.
    pub account: Option<&'a str>,
    /// The run.
    pub run: RunId,
}

/// An upload as a caller names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UploadScope<'a> {
    /// Name of the tenant.
    pub tenant: &'a str,
    /// Id of the account that it is of.
    pub account: &'a str,
    /// The upload.
    pub upload: UploadId,
}

/// Whose artifacts are meant: what is read by id or listed must be owned by exactly this.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope<'a> {
    /// What the account owns itself.
    Account(AccountScope<'a>),
    /// What the conversation owns.
    Conversation(ConversationScope<'a>),
    /// What the run has put and not given away.
    Run(RunScope<'a>),
    /// What the upload became, until a conversation takes it.
    Upload(UploadScope<'a>),
}

impl<'a> Scope<'a> {
    /// Name of the tenant.
    pub const fn tenant(&self) -> &'a str {
        match self {
            Self::Account(scope) => scope.tenant,
            Self::Conversation(scope) => scope.tenant,
            Self::Run(scope) => scope.tenant,
            Self::Upload(scope) => scope.tenant,
        }
    }
}

impl<'a> From<AccountScope<'a>> for Scope<'a> {
    fn from(scope: AccountScope<'a>) -> Self {
        Self::Account(scope)
    }
}

impl<'a> From<&AccountScope<'a>> for Scope<'a> {
    fn from(scope: &AccountScope<'a>) -> Self {
        Self::Account(*scope)
    }
}

impl From<&Self> for Scope<'_> {
    fn from(scope: &Self) -> Self {
        *scope
    }
}

/// Where a put goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Destination<'a> {
    /// Into an account.
    Account(AccountScope<'a>),
    /// Into a conversation.
    Conversation(ConversationScope<'a>),
    /// Into the run whose lease the token proves.
    Run {
        /// Name of the tenant.
        tenant: &'a str,
        /// Proof of the lease.
        token: RunToken,
    },
}

impl<'a> From<Destination<'a>> for Scope<'a> {
    fn from(destination: Destination<'a>) -> Self {
        match destination {
            Destination::Account(scope) => Self::Account(scope),
            Destination::Conversation(scope) => Self::Conversation(scope),
            Destination::Run { tenant, token } => Self::Run(RunScope { tenant, account: None, run: token.run }),
        }
    }
}

/// A tenant, found by its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tenant {
    /// Its number.
    pub number: TenantNumber,
    /// The hash of its name.
    pub name: ScopeHash,
}

/// Keys of the store and of its tenants.
pub struct Door {
    store: StoreKeys,
    tenants: RwLock<BTreeMap<TenantNumber, TenantKeys>>,
}

impl Door {
    /// Derives the keys from the store's secret and those of its tenants.
    pub fn new(secret: &[u8; 32], tenants: &[TenantKey]) -> Self {
        let tenants = tenants.iter().map(|tenant| (tenant.number, TenantKeys::new(&tenant.key))).collect();
        Self { store: StoreKeys::new(secret), tenants: RwLock::new(tenants) }
    }

    /// Lets a new tenant in, whose key is in the manifest.
    pub fn add(&self, tenant: &TenantKey) {
        self.tenants.write().insert(tenant.number, TenantKeys::new(&tenant.key));
    }

    /// The hash of a tenant's name, be there one or not.
    pub fn tenant_named(&self, name: &str) -> Result<ScopeHash> {
        names::caller_id(name)?;
        Ok(self.store.scope(TenantNumber(0), ScopeKind::Tenant, name))
    }

    /// The tenant of a name. It does not come into being by being named.
    pub fn tenant(&self, state: &dyn State, name: &str) -> Result<Tenant> {
        let name = self.tenant_named(name)?;
        Ok(Tenant { number: tenant::live(state, name)?.number, name })
    }

    /// The account that a caller means. An account comes into being with its first write; a tenant does not.
    pub fn account(&self, state: &dyn State, scope: &AccountScope<'_>) -> Result<AccountRef> {
        let tenant = self.tenant(state, scope.tenant)?;
        self.account_of(tenant, scope.account)
    }

    /// An account of a tenant.
    pub fn account_of(&self, tenant: Tenant, account: &str) -> Result<AccountRef> {
        names::caller_id(account)?;
        Ok(AccountRef { tenant: tenant.number, account: self.scope(tenant, ScopeKind::Account, account) })
    }

    /// The same with its text, for a write that may be its first.
    pub fn account_named(&self, tenant: Tenant, account: &str) -> Result<account::Named> {
        Ok(account::Named { account: self.account_of(tenant, account)?, text: account.to_owned() })
    }

    /// The upload that a caller means.
    pub fn upload(&self, state: &dyn State, scope: &UploadScope<'_>) -> Result<upload::Named> {
        let tenant = self.tenant(state, scope.tenant)?;
        let account = self.account_of(tenant, scope.account)?;
        Ok(upload::Named { tenant: tenant.name, account, id: scope.upload })
    }

    /// The conversation that a caller means.
    pub fn conversation(&self, state: &dyn State, scope: &ConversationScope<'_>) -> Result<conversation::Named> {
        let tenant = self.tenant(state, scope.tenant)?;
        let account = scope.account.map(|account| self.account_of(tenant, account)).transpose()?;
        let id = self.conversation_of(tenant, scope.conversation)?;
        let scope = ScopeRef { tenant: tenant.number, scope: id };
        Ok(conversation::Named { tenant: tenant.name, scope, account: account.map(|account| account.account) })
    }

    /// The hash of a conversation's id.
    pub fn conversation_of(&self, tenant: Tenant, conversation: &str) -> Result<ScopeHash> {
        names::caller_id(conversation)?;
        Ok(self.scope(tenant, ScopeKind::Conversation, conversation))
    }

    /// The run of an id.
    pub fn run(&self, tenant: Tenant, run: RunId) -> ScopeRef {
        ScopeRef { tenant: tenant.number, scope: self.scope(tenant, ScopeKind::Run, &run.to_string()) }
    }

    /// The hash of a tag. Its text is stored nowhere.
    pub fn tag(&self, tenant: Tenant, kind: &str, key: &str) -> Result<ScopeHash> {
        names::caller_id(kind)?;
        names::tag_key(key)?;
        Ok(self.scope(tenant, ScopeKind::Tag, &format!("{kind}={key}")))
    }

    fn scope(&self, tenant: Tenant, kind: ScopeKind, id: &str) -> ScopeHash {
        self.store.scope(tenant.number, kind, id)
    }

    /// Hash of an op id within a scope.
    pub fn op(&self, tenant: TenantNumber, scope: ScopeHash, op_id: &str) -> Result<OpHash> {
        names::caller_id(op_id)?;
        Ok(self.store.op(tenant, scope, op_id))
    }

    /// Hash of the request id of a run's beginning within its account. No op id of a put begins so.
    pub fn request(&self, account: &AccountRef, request_id: &str) -> Result<OpHash> {
        names::caller_id(request_id)?;
        Ok(self.store.op(account.tenant, account.account, &format!("begin/{request_id}")))
    }

    /// Hash of the reply id of a run's claim.
    pub fn reply(&self, run: &ScopeRef, reply_id: &str) -> Result<OpHash> {
        names::caller_id(reply_id)?;
        Ok(self.store.op(run.tenant, run.scope, &format!("claim/{reply_id}")))
    }

    /// Hash of what names the commit of an upload within its account.
    pub fn commit_of(&self, upload: &upload::Named) -> OpHash {
        let AccountRef { tenant, account } = upload.account;
        self.store.op(tenant, account, &format!("upload/{}", upload.id))
    }

    /// Hash of the message id of a claim of uploads within its conversation.
    pub fn message(&self, conversation: &ScopeRef, message_id: &str) -> Result<OpHash> {
        names::caller_id(message_id)?;
        Ok(self.store.op(conversation.tenant, conversation.scope, &format!("uploads/{message_id}")))
    }

    /// Hash of what two puts of a scope have in common if they are one.
    pub fn identity(&self, tenant: TenantNumber, scope: ScopeHash, identity: &Identity<'_>) -> IdentityHash {
        self.store.identity(tenant, scope, identity)
    }

    /// Keys of a tenant.
    pub fn keys(&self, tenant: TenantNumber) -> Result<TenantKeys> {
        let keys = self.tenants.read().get(&tenant).cloned();
        keys.ok_or_else(|| Error::new(Kind::Corrupt, "the manifest has no key for a tenant"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        catalog::Catalog,
        format::{
            commit::Edit,
            keyspace::{Keyspace, tenant_key},
            value::TenantValue,
        },
        ids::Time,
    };

    fn with_tenants(names: &[&str]) -> (Door, Catalog) {
        let numbers = (1..).map(TenantNumber).take(names.len());
        let keys: Vec<_> = numbers.clone().map(|number| TenantKey { number, key: [2; 32] }).collect();
        let mut catalog = Catalog::default();
        for (name, number) in names.iter().zip(numbers) {
            let name = StoreKeys::new(&[1; 32]).scope(TenantNumber(0), ScopeKind::Tenant, name);
            let value = TenantValue { number, created_at: Time(5) };
            catalog.apply(&Edit::put(Keyspace::Tenant, tenant_key(name), value.encode())).expect("applies");
        }
        (Door::new(&[1; 32], &keys), catalog)
    }

    #[test]
    fn a_tenant_must_be_known_and_an_account_need_not() {
        let (door, catalog) = with_tenants(&["default"]);
        let account = |tenant, account| door.account(&catalog, &AccountScope { tenant, account });
        let known = account("default", "a").expect("known");
        assert_eq!(known.tenant, TenantNumber(1));
        assert_ne!(known, account("default", "b").expect("known"));
        assert_eq!(account("other", "a").expect_err("unknown").kind(), Kind::NotFound);
        assert_eq!(account("default", "").expect_err("no id").kind(), Kind::InvalidArgument);
        assert_eq!(door.op(known.tenant, known.account, "a b").expect_err("no id").kind(), Kind::InvalidArgument);
        assert_eq!(door.keys(TenantNumber(2)).err().expect("unknown").kind(), Kind::Corrupt);
    }

    #[test]
    fn no_hash_of_one_tenant_is_one_of_another() {
        let (door, catalog) = with_tenants(&["one", "two"]);
        let [one, two] = ["one", "two"].map(|name| door.tenant(&catalog, name).expect("known"));
        assert_ne!(door.account_of(one, "a").expect("id").account, door.account_of(two, "a").expect("id").account);
        assert_ne!(door.conversation_of(one, "c").expect("id"), door.conversation_of(two, "c").expect("id"));
        assert_ne!(door.run(one, RunId([1; 16])).scope, door.run(two, RunId([1; 16])).scope);
        assert_ne!(door.tag(one, "email", "a@b").expect("tag"), door.tag(two, "email", "a@b").expect("tag"));
    }

    #[test]
    fn no_op_id_of_a_put_is_the_request_of_a_run_or_the_reply_of_a_claim() {
        let (door, catalog) = with_tenants(&["default"]);
        let account = door.account(&catalog, &AccountScope { tenant: "default", account: "a" }).expect("known");
        let request = door.request(&account, "x").expect("id");
        assert_ne!(request, door.op(account.tenant, account.account, "x").expect("id"));
        assert!(door.op(account.tenant, account.account, "begin/x").is_err(), "no id has a slash");
        let run = ScopeRef { tenant: account.tenant, scope: account.account };
        assert_ne!(request, door.reply(&run, "x").expect("id"));
    }
}
