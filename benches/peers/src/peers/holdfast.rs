//! Holdfast itself, with its defaults.

use std::{io, path::Path};

use holdfast::{
    AccountScope, Get, InitOptions, OpenMode, OpenOptions, Put, Store, World, disk::os::OsDisk,
    format::artifact::Origin, ids::ArtifactId,
};
use holdfast_benches::Noise;

use super::Peer;
use crate::Result;

const SCOPE: AccountScope<'static> = AccountScope { tenant: "default", account: "bench" };

struct Holdfast(Store);

pub(super) fn open(path: &Path) -> Result<Box<dyn Peer>> {
    let path = path.join("store");
    let is_new = !path.exists();
    drop(OsDisk::create(&path)?);
    let world = World::os(&path)?;
    if is_new {
        Store::init(&world, &InitOptions::default())?;
    }
    Ok(Box::new(Holdfast(Store::open(world, &OpenOptions::new(OpenMode::Write, "peers"))?)))
}

fn put(size: u64) -> Put<'static> {
    Put {
        scope: holdfast::Destination::Account(SCOPE),
        name: "blob",
        origin: Origin::Upload,
        media_type: None,
        op_id: None,
        order: None,
        expires_at: None,
        size_hint: Some(size),
        logical_size: None,
        supersedes: None,
    }
}

impl Peer for Holdfast {
    fn put(&self, mut stream: Noise, len: u64) -> Result<Vec<u8>> {
        Ok(self.0.put(&put(len), &mut stream)?.id.0.to_vec())
    }

    fn get(&self, id: &[u8]) -> Result<u64> {
        Ok(self.0.get(SCOPE, ArtifactId(id.try_into()?), &Get::WHOLE, &mut io::sink())?.size)
    }

    fn put_small(&self, mut bytes: &[u8]) -> Result {
        self.0.put(&put(bytes.len() as u64), &mut bytes)?;
        Ok(())
    }

    fn settle_small(&self) -> Result {
        Ok(())
    }

    fn close(self: Box<Self>) -> Result {
        Ok(self.0.close()?)
    }
}
