//! A directory of files named by their SHA-256: what most services do. Written beside, synced, renamed, the directory synced.

use std::{
    fs::{self, File},
    io::{Read, Write as _},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use holdfast_benches::Noise;
use sha2::Digest as _;

use super::Peer;
use crate::Result;

const PIECE: usize = 1 << 20;

struct Files {
    path: PathBuf,
    directory: File,
    next: AtomicU64,
}

pub(super) fn open(path: &Path) -> Result<Box<dyn Peer>> {
    Ok(Box::new(Files { path: path.to_owned(), directory: File::open(path)?, next: AtomicU64::new(0) }))
}

impl Files {
    fn store(&self, mut stream: impl Read, piece: usize) -> Result<Vec<u8>> {
        let beside = self.path.join(format!("{}.part", self.next.fetch_add(1, Ordering::Relaxed)));
        let mut file = File::create_new(&beside)?;
        let mut digest = sha2::Sha256::new();
        let mut piece = vec![0; piece];
        loop {
            let count = stream.read(&mut piece)?;
            if count == 0 {
                break;
            }
            digest.update(&piece[..count]);
            file.write_all(&piece[..count])?;
        }
        let digest: [u8; 32] = digest.finalize().into();
        let place = self.place(&digest);
        if place.exists() {
            fs::remove_file(beside)?;
            return Ok(digest.to_vec());
        }
        file.sync_all()?;
        fs::rename(beside, place)?;
        self.directory.sync_all()?;
        Ok(digest.to_vec())
    }

    fn place(&self, digest: &[u8]) -> PathBuf {
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        self.path.join(hex)
    }
}

impl Peer for Files {
    fn put(&self, stream: Noise, _len: u64) -> Result<Vec<u8>> {
        self.store(stream, PIECE)
    }

    fn get(&self, id: &[u8]) -> Result<u64> {
        let mut file = File::open(self.place(id))?;
        let mut digest = sha2::Sha256::new();
        let mut piece = vec![0; PIECE];
        let mut read = 0;
        loop {
            let count = file.read(&mut piece)?;
            if count == 0 {
                break;
            }
            digest.update(&piece[..count]);
            read += count as u64;
        }
        let digest: [u8; 32] = digest.finalize().into();
        if digest == id { Ok(read) } else { Err("the file is damaged".into()) }
    }

    fn put_small(&self, bytes: &[u8]) -> Result {
        self.store(bytes, bytes.len()).map(drop)
    }

    fn settle_small(&self) -> Result {
        Ok(())
    }

    fn close(self: Box<Self>) -> Result {
        Ok(())
    }
}
