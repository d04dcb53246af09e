//! The look-up that a put does for each chunk, alone: for measuring it. It reads no stored bytes, and tells nobody but the process that
//! has the store open.

use super::Store;
use crate::{
    catalog::{Published, State as _},
    digest::TenantKeys,
    error::Result,
    ids::ChunkId,
};

/// Looks up chunks of one tenant in published state.
pub struct Probe<'a> {
    keys: TenantKeys,
    published: &'a Published,
}

impl Store {
    /// Looks up chunks of a tenant.
    pub fn probe(&self, tenant: &str) -> Result<Probe<'_>> {
        let tenant = self.door.tenant(&self.published.read(), tenant)?;
        Ok(Probe { keys: self.door.keys(tenant.number)?, published: &self.published })
    }
}

impl Probe<'_> {
    /// The id of a chunk with these bytes.
    pub fn id(&self, chunk: &[u8]) -> ChunkId {
        self.keys.chunk(chunk)
    }

    /// True if the catalog has an entry of the id. A put would go on to compare the bytes.
    pub fn has(&self, id: ChunkId) -> Result<bool> {
        Ok(self.published.read().chunk(id)?.is_some())
    }
}
