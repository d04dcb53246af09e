//! The peers, one file each.

mod cacache;
mod files;
mod fjall;
mod holdfast;
mod iroh;
mod redb;
#[cfg(feature = "rocksdb")]
mod rocks;

use std::path::Path;

use holdfast_benches::Noise;

use crate::Result;

/// A store that is measured.
pub(crate) trait Peer: Send + Sync {
    /// Stores a stream and gives the name under which it can be read. Durable when it returns.
    fn put(&self, stream: Noise, len: u64) -> Result<Vec<u8>>;
    /// Reads all of it, verified, and says how many bytes that were.
    fn get(&self, id: &[u8]) -> Result<u64>;
    /// Stores a few KiB; durable when it returns, unless the peer does not sync.
    fn put_small(&self, bytes: &[u8]) -> Result;
    /// After all small puts: one sync of a peer that does none itself.
    fn settle_small(&self) -> Result;
    fn close(self: Box<Self>) -> Result;
}

/// What is known of a peer before it is opened.
#[derive(Clone)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    /// What its puts promise here.
    pub(crate) durable: &'static str,
    pub(crate) open: fn(&Path) -> Result<Box<dyn Peer>>,
}

const EACH: &str = "each put";
const NEVER: &str = "never syncs; one syncfs added behind a stream, and behind all small puts";

/// Every peer, Holdfast first.
pub(crate) fn all() -> Vec<Kind> {
    vec![
        Kind { name: "holdfast", version: env!("CARGO_PKG_VERSION"), durable: EACH, open: holdfast::open },
        Kind { name: "files", version: "", durable: EACH, open: files::open },
        Kind { name: "cacache", version: "13.1.0", durable: NEVER, open: cacache::open },
        Kind { name: "iroh-blobs", version: "0.104.0", durable: NEVER, open: iroh::open },
        Kind { name: "fjall", version: "3.1.13", durable: EACH, open: fjall::open },
        Kind { name: "redb", version: "4.6.0", durable: EACH, open: redb::open },
        #[cfg(feature = "rocksdb")]
        Kind { name: "rocksdb", version: "0.25.0", durable: EACH, open: rocks::open },
    ]
}
