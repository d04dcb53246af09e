//! A directory of files that counts what goes through it: tables of a catalog on the one side, all other files on the other.

use std::{
    io::{self, IoSlice},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use holdfast::disk::{Disk, File, Listing, Lock, LockMode, Mapped, Name, OpenOptions, SyncKind, os::OsDisk};

/// Bytes that went through files.
#[derive(Default, Debug)]
pub struct Traffic {
    read: AtomicU64,
    written: AtomicU64,
}

impl Traffic {
    /// Bytes that were read.
    pub fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Bytes that were written; what was only set aside or zeroed is none of them.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }
}

/// What was counted.
#[derive(Default, Debug)]
pub struct Counts {
    /// Of tables, their mirrors among them.
    pub tables: Arc<Traffic>,
    /// Of all other files: in a store of small blobs nearly all of it is the log.
    pub others: Arc<Traffic>,
}

/// The directory.
pub struct Counted {
    disk: OsDisk,
    counts: Arc<Counts>,
}

impl Counted {
    /// Counts from now on.
    pub fn new(disk: OsDisk) -> Self {
        Self { disk, counts: Arc::default() }
    }

    /// What it counts.
    pub fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.counts)
    }
}

impl Disk for Counted {
    fn open(&self, name: &Name, options: OpenOptions) -> io::Result<Box<dyn File>> {
        let is_table = name.as_str().starts_with("table-");
        let traffic = if is_table { &self.counts.tables } else { &self.counts.others };
        Ok(Box::new(CountedFile { file: self.disk.open(name, options)?, traffic: Arc::clone(traffic) }))
    }

    fn rename(&self, from: &Name, to: &Name) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn unlink(&self, name: &Name) -> io::Result<()> {
        self.disk.unlink(name)
    }

    fn list(&self) -> io::Result<Listing> {
        self.disk.list()
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.disk.sync_dir()
    }

    fn lock(&self, mode: LockMode, holder: &str) -> io::Result<Lock> {
        self.disk.lock(mode, holder)
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.disk.free_bytes()
    }
}

struct CountedFile {
    file: Box<dyn File>,
    traffic: Arc<Traffic>,
}

impl CountedFile {
    fn wrote(&self, done: io::Result<usize>) -> io::Result<usize> {
        let count = done?;
        self.traffic.written.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

impl File for CountedFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let count = self.file.read_at(bytes, offset)?;
        self.traffic.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.wrote(self.file.write_at(bytes, offset))
    }

    fn write_pieces_at(&self, pieces: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        self.wrote(self.file.write_pieces_at(pieces, offset))
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn allocated(&self) -> io::Result<u64> {
        self.file.allocated()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        self.file.punch(offset, len)
    }

    fn zero(&self, offset: u64, len: u64) -> io::Result<()> {
        self.file.zero(offset, len)
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        self.file.allocate(offset, len)
    }

    fn sync(&self, kind: SyncKind) -> io::Result<()> {
        self.file.sync(kind)
    }

    fn map(&self, offset: u64, len: usize) -> io::Result<Mapped> {
        self.traffic.read.fetch_add(len as u64, Ordering::Relaxed);
        self.file.map(offset, len)
    }

    fn align(&self) -> u32 {
        self.file.align()
    }

    fn drop_cache(&self, offset: u64, len: u64) {
        self.file.drop_cache(offset, len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_told_from_other_files() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let disk = Counted::new(OsDisk::create(place.path().join("files")).expect("made"));
        let counts = disk.counts();
        for (name, len) in [("table-1.a", 3), ("segment-1", 5)] {
            let name = Name::new(name).expect("a flat name");
            let file = disk.open(&name, OpenOptions::CREATE).expect("made");
            assert_eq!(file.write_at(&[1; 8][..len], 0).expect("written"), len);
            assert_eq!(file.read_at(&mut [0; 8], 1).expect("read"), len - 1);
        }
        assert_eq!((counts.tables.written(), counts.tables.read()), (3, 2));
        assert_eq!((counts.others.written(), counts.others.read()), (5, 4));
    }
}
