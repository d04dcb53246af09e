//! What a service puts on top of a key-value store to keep blobs in it: pieces of 128 KiB under their BLAKE3, and under the SHA-256 of
//! a stream the list of its pieces. A piece that is there is not written again; whatever is read is verified.

use std::io::Read as _;

use holdfast_benches::Noise;
use sha2::Digest as _;

use crate::{Result, peers::Peer};

const PIECE: usize = 128 << 10;
const KEY: usize = 32;

/// A key and its value.
pub(crate) type Item = ([u8; KEY], Vec<u8>);

/// A key-value store.
pub(crate) trait Values: Send + Sync {
    /// Stores what is not there yet; all of it is durable when this returns.
    fn store(&self, items: &mut dyn Iterator<Item = Item>) -> Result;
    /// Stores one value durably.
    fn store_one(&self, key: &[u8; KEY], value: &[u8]) -> Result;
    /// Hands a value on.
    fn with(&self, key: &[u8], use_value: &mut dyn FnMut(&[u8]) -> Result) -> Result;
    fn close(self: Box<Self>) -> Result;
}

/// Blobs in a key-value store.
pub(crate) struct Blobs(pub(crate) Box<dyn Values>);

impl Peer for Blobs {
    fn put(&self, stream: Noise, _len: u64) -> Result<Vec<u8>> {
        let mut pieces = Pieces { stream, sha256: sha2::Sha256::new(), keys: Vec::new(), name: None };
        self.0.store(&mut pieces)?;
        Ok(pieces.name.ok_or("the stream was not read to its end")?.to_vec())
    }

    fn get(&self, id: &[u8]) -> Result<u64> {
        let mut keys = Vec::new();
        self.0.with(id, &mut |value| {
            keys.extend_from_slice(value);
            Ok(())
        })?;
        let mut read = 0;
        for key in keys.chunks(KEY) {
            self.0.with(key, &mut |value| {
                read += value.len() as u64;
                if blake3::hash(value).as_bytes() == key { Ok(()) } else { Err("a piece is damaged".into()) }
            })?;
        }
        Ok(read)
    }

    fn put_small(&self, bytes: &[u8]) -> Result {
        self.0.store_one(&sha2::Sha256::digest(bytes).into(), bytes)
    }

    fn settle_small(&self) -> Result {
        Ok(())
    }

    fn close(self: Box<Self>) -> Result {
        self.0.close()
    }
}

/// The items of a stream: its pieces, and at the end the list of them.
struct Pieces {
    stream: Noise,
    sha256: sha2::Sha256,
    keys: Vec<u8>,
    name: Option<[u8; KEY]>,
}

impl Iterator for Pieces {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        if self.name.is_some() {
            return None;
        }
        let mut piece = Vec::with_capacity(PIECE);
        (&mut self.stream).take(PIECE as u64).read_to_end(&mut piece).expect("noise cannot fail");
        if piece.is_empty() {
            let name = std::mem::take(&mut self.sha256).finalize().into();
            self.name = Some(name);
            return Some((name, std::mem::take(&mut self.keys)));
        }
        self.sha256.update(&piece);
        let key = *blake3::hash(&piece).as_bytes();
        self.keys.extend_from_slice(&key);
        Some((key, piece))
    }
}
