//! iroh-blobs: files and a redb of their BLAKE3 trees; what is exported is verified. It never syncs the files.

use std::{
    io::Read as _,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use holdfast_benches::{Noise, process};
use iroh_blobs::{Hash, api::blobs::EncodedItem, protocol::ChunkRanges, store::fs::FsStore};
use n0_future::{StreamExt as _, stream};
use tokio::runtime::Runtime;

use super::Peer;
use crate::Result;

const PIECE: u64 = 1 << 20;

struct Iroh {
    path: PathBuf,
    runtime: Runtime,
    store: FsStore,
}

pub(super) fn open(path: &Path) -> Result<Box<dyn Peer>> {
    let runtime = Runtime::new()?;
    let store = runtime.block_on(FsStore::load(path))?;
    Ok(Box::new(Iroh { path: path.to_owned(), runtime, store }))
}

impl Peer for Iroh {
    fn put(&self, mut noise: Noise, _len: u64) -> Result<Vec<u8>> {
        let pieces = std::iter::from_fn(move || {
            let mut piece = Vec::new();
            match (&mut noise).take(PIECE).read_to_end(&mut piece) {
                Ok(0) => None,
                Ok(_) => Some(Ok(Bytes::from(piece))),
                Err(error) => Some(Err(error)),
            }
        });
        let hash = self.runtime.block_on(async {
            self.store.blobs().add_stream(stream::iter(pieces)).await.with_tag().await.map(|tag| tag.hash)
        })?;
        self.runtime.block_on(self.store.sync_db())?;
        process::settle(&self.path)?;
        Ok(hash.as_bytes().to_vec())
    }

    fn get(&self, id: &[u8]) -> Result<u64> {
        let hash = Hash::from_bytes(id.try_into()?);
        self.runtime.block_on(async {
            let mut items = Box::pin(self.store.blobs().export_bao(hash, ChunkRanges::all()).stream());
            let mut read = 0;
            while let Some(item) = items.next().await {
                match item {
                    EncodedItem::Leaf(leaf) => read += leaf.data.len() as u64,
                    EncodedItem::Error(error) => return Err(error.into()),
                    _ => {}
                }
            }
            Ok(read)
        })
    }

    fn put_small(&self, bytes: &[u8]) -> Result {
        self.runtime.block_on(async { self.store.blobs().add_slice(bytes).with_tag().await })?;
        Ok(())
    }

    fn settle_small(&self) -> Result {
        self.runtime.block_on(self.store.sync_db())?;
        Ok(process::settle(&self.path)?)
    }

    fn close(self: Box<Self>) -> Result {
        self.runtime.block_on(self.store.shutdown())?;
        Ok(())
    }
}
