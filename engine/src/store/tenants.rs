//! Tenants: made by name, once.

use super::Store;
use crate::{
    commit::{Request, Stage},
    entropy,
    error::Result,
    format::value::TenantValue,
    ids::{TenantNumber, Time},
    ownership::tenant,
};

/// A tenant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TenantInfo {
    /// Its number, by which frames and records name it.
    pub number: TenantNumber,
    /// When it was made.
    pub created_at: Time,
    /// True if it was there before the call.
    pub existed: bool,
}

impl TenantInfo {
    const fn new(value: &TenantValue, existed: bool) -> Self {
        Self { number: value.number, created_at: value.created_at, existed }
    }
}

impl Store {
    /// Makes a tenant, or finds it. It is durable when this returns; only a hash of its name is kept.
    ///
    /// A new one costs a manifest: milliseconds, and the store has at most 65,536. `LIMIT`: it has as many.
    pub fn create_tenant(&self, name: &str) -> Result<TenantInfo> {
        let writing = self.writing()?;
        let name = self.door.tenant_named(name)?;
        // Two that ask for one name at once would use up two numbers.
        let mut unnamed = writing.unnamed_tenant.lock();
        if let Some(there) = tenant::known(&self.published.read(), name)? {
            return Ok(TenantInfo::new(&there, true));
        }
        let made = match unnamed.take() {
            Some(made) => made,
            None => writing.checkpointer.add_tenant(entropy::random(&*self.world.entropy)?)?,
        };
        self.door.add(&made);
        let number = made.number;
        *unnamed = Some(made);
        let decide = move |stage: &mut Stage<'_>| tenant::create(stage, stage.now(), name, number);
        let value = writing.commit.run(Request::new(tenant::RECORD_LEN, decide))?;
        *unnamed = None;
        Ok(TenantInfo::new(&value, false))
    }

    /// A tenant, by its name.
    pub fn tenant(&self, name: &str) -> Result<TenantInfo> {
        let name = self.door.tenant_named(name)?;
        Ok(TenantInfo::new(&tenant::live(&self.published.read(), name)?, true))
    }
}
