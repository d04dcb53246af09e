//! RocksDB with its values in blob files; the write-ahead log is synced.

use std::path::Path;

use rocksdb::{DB, Options, WriteOptions};

use super::Peer;
use crate::{
    Result,
    kv::{Blobs, Item, Values},
};

struct Rocks(DB);

pub(super) fn open(path: &Path) -> Result<Box<dyn Peer>> {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_enable_blob_files(true);
    options.set_enable_blob_gc(true);
    Ok(Box::new(Blobs(Box::new(Rocks(DB::open(&options, path)?)))))
}

impl Values for Rocks {
    fn store(&self, items: &mut dyn Iterator<Item = Item>) -> Result {
        for (key, value) in items {
            if self.0.get_pinned(key)?.is_none() {
                self.0.put(key, value)?;
            }
        }
        Ok(self.0.flush_wal(true)?)
    }

    fn store_one(&self, key: &[u8; 32], value: &[u8]) -> Result {
        let mut synced = WriteOptions::default();
        synced.set_sync(true);
        Ok(self.0.put_opt(key, value, &synced)?)
    }

    fn with(&self, key: &[u8], use_value: &mut dyn FnMut(&[u8]) -> Result) -> Result {
        use_value(&self.0.get_pinned(key)?.ok_or("no such key")?)
    }

    fn close(self: Box<Self>) -> Result {
        Ok(())
    }
}
