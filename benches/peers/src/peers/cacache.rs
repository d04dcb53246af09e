//! cacache: content by its SHA-256, read with a check at the end. It never syncs.

use std::{
    io::{Read, Write as _},
    path::{Path, PathBuf},
};

use cacache::{Integrity, SyncReader, WriteOpts};
use holdfast_benches::{Noise, process};

use super::Peer;
use crate::Result;

const PIECE: usize = 1 << 20;

struct Cacache(PathBuf);

pub(super) fn open(path: &Path) -> Result<Box<dyn Peer>> {
    Ok(Box::new(Cacache(path.to_owned())))
}

impl Peer for Cacache {
    fn put(&self, mut stream: Noise, len: u64) -> Result<Vec<u8>> {
        let mut writer = WriteOpts::new().size(usize::try_from(len)?).open_hash_sync(&self.0)?;
        let mut piece = vec![0; PIECE];
        loop {
            let count = stream.read(&mut piece)?;
            if count == 0 {
                break;
            }
            writer.write_all(&piece[..count])?;
        }
        let name = writer.commit()?;
        process::settle(&self.0)?;
        Ok(name.to_string().into_bytes())
    }

    fn get(&self, id: &[u8]) -> Result<u64> {
        let name: Integrity = std::str::from_utf8(id)?.parse()?;
        let mut reader = SyncReader::open_hash(&self.0, name)?;
        let mut piece = vec![0; PIECE];
        let mut read = 0;
        loop {
            let count = reader.read(&mut piece)?;
            if count == 0 {
                break;
            }
            read += count as u64;
        }
        reader.check()?;
        Ok(read)
    }

    fn put_small(&self, bytes: &[u8]) -> Result {
        cacache::write_hash_sync(&self.0, bytes)?;
        Ok(())
    }

    fn settle_small(&self) -> Result {
        Ok(process::settle(&self.0)?)
    }

    fn close(self: Box<Self>) -> Result {
        Ok(())
    }
}
