//! redb: a stream is one transaction, a small put is one too.

use std::path::Path;

use redb::{Database, ReadableDatabase as _, ReadableTable as _, TableDefinition};

use super::Peer;
use crate::{
    Result,
    kv::{Blobs, Item, Values},
};

const VALUES: TableDefinition<&[u8], &[u8]> = TableDefinition::new("values");

struct Redb(Database);

pub(super) fn open(path: &Path) -> Result<Box<dyn Peer>> {
    Ok(Box::new(Blobs(Box::new(Redb(Database::create(path.join("values.redb"))?)))))
}

impl Values for Redb {
    fn store(&self, items: &mut dyn Iterator<Item = Item>) -> Result {
        let transaction = self.0.begin_write()?;
        {
            let mut table = transaction.open_table(VALUES)?;
            for (key, value) in items {
                let is_there = table.get(key.as_slice())?.is_some();
                if !is_there {
                    table.insert(key.as_slice(), value.as_slice())?;
                }
            }
        }
        Ok(transaction.commit()?)
    }

    fn store_one(&self, key: &[u8; 32], value: &[u8]) -> Result {
        let transaction = self.0.begin_write()?;
        transaction.open_table(VALUES)?.insert(key.as_slice(), value)?;
        Ok(transaction.commit()?)
    }

    fn with(&self, key: &[u8], use_value: &mut dyn FnMut(&[u8]) -> Result) -> Result {
        let table = self.0.begin_read()?.open_table(VALUES)?;
        use_value(table.get(key)?.ok_or("no such key")?.value())
    }

    fn close(self: Box<Self>) -> Result {
        Ok(())
    }
}
