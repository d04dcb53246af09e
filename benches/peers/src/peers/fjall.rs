//! fjall with key-value separation; the journal is synced with its strongest mode.

use std::path::Path;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, KvSeparationOptions, PersistMode};

use super::Peer;
use crate::{
    Result,
    kv::{Blobs, Item, Values},
};

struct Fjall {
    database: Database,
    values: Keyspace,
}

pub(super) fn open(path: &Path) -> Result<Box<dyn Peer>> {
    let database = Database::builder(path).open()?;
    let separated = || KeyspaceCreateOptions::default().with_kv_separation(Some(KvSeparationOptions::default()));
    let values = database.keyspace("values", separated)?;
    Ok(Box::new(Blobs(Box::new(Fjall { database, values }))))
}

impl Values for Fjall {
    fn store(&self, items: &mut dyn Iterator<Item = Item>) -> Result {
        for (key, value) in items {
            if !self.values.contains_key(key)? {
                self.values.insert(key, value)?;
            }
        }
        Ok(self.database.persist(PersistMode::SyncAll)?)
    }

    fn store_one(&self, key: &[u8; 32], value: &[u8]) -> Result {
        self.values.insert(*key, value)?;
        Ok(self.database.persist(PersistMode::SyncAll)?)
    }

    fn with(&self, key: &[u8], use_value: &mut dyn FnMut(&[u8]) -> Result) -> Result {
        use_value(&self.values.get(key)?.ok_or("no such key")?)
    }

    fn close(self: Box<Self>) -> Result {
        Ok(self.database.persist(PersistMode::SyncAll)?)
    }
}
