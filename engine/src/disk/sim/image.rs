//! What a medium holds: names, and the bytes behind them. The state of a disk, of a crash, or of one that was damaged by hand.
//!
//! An image knows nothing of time: no order of operations, no handles, no lock.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, io,
};

use super::{op::Op, pages::Content};
use crate::{
    disk::{Disk, File, Name, OpenOptions, SyncKind, read_exact, retry, write_all},
    sync::Arc,
};

/// The state of a medium. Copies share their bytes.
#[derive(Clone, Default)]
pub struct Image {
    names: Arc<BTreeMap<Name, u64>>,
    files: BTreeMap<u64, Arc<Content>>,
}

impl Image {
    /// A medium that holds nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Copies what a disk holds, for instance a store in a real directory.
    pub fn of(disk: &dyn Disk) -> io::Result<Self> {
        let mut image = Self::default();
        for name in retry(|| disk.list())?.names {
            let file = retry(|| disk.open(&name, OpenOptions::READ))?;
            let len = retry(|| file.len())?;
            let mut bytes = vec![0; usize::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?];
            read_exact(&*file, &mut bytes, 0)?;
            image.insert(&name, &bytes);
        }
        Ok(image)
    }

    /// Writes all files to a disk that has none of them, for instance to look at a crash with the command line.
    pub fn write_to(&self, disk: &dyn Disk) -> io::Result<()> {
        for name in self.names() {
            let file: Box<dyn File> = retry(|| disk.open(name, OpenOptions::CREATE))?;
            write_all(&*file, &self.read(name).unwrap_or_default(), 0)?;
            retry(|| file.sync(SyncKind::All))?;
        }
        retry(|| disk.sync_dir())
    }

    /// Names, in order.
    pub fn names(&self) -> impl Iterator<Item = &Name> {
        self.names.keys()
    }

    /// Length of a file.
    pub fn len(&self, name: &Name) -> Option<u64> {
        self.content(name).map(Content::len)
    }

    /// True if there is no file.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Bytes that all files take on the medium.
    pub fn allocated(&self) -> u64 {
        let pages = |ino| self.files.get(ino).map_or(0, |content: &Arc<Content>| content.allocated());
        self.names.values().map(pages).sum::<u64>() * super::pages::PAGE
    }

    /// All bytes of a file.
    pub fn read(&self, name: &Name) -> Option<Vec<u8>> {
        self.content(name).map(Content::to_vec)
    }

    /// Reads a part of a file; gives the number of bytes, 0 where there is no such file.
    pub fn read_at(&self, name: &Name, bytes: &mut [u8], offset: u64) -> usize {
        self.content(name).map_or(0, |content| content.read(bytes, offset))
    }

    /// Makes a file or replaces it.
    pub fn insert(&mut self, name: &Name, bytes: &[u8]) {
        let mut content = Content::default();
        content.write(0, bytes);
        self.insert_content(name, Arc::new(content));
    }

    /// Gives a second name a copy of a file. False if there is no such file.
    pub fn copy(&mut self, from: &Name, to: &Name) -> bool {
        let content = self.names.get(from).and_then(|ino| self.files.get(ino)).cloned();
        content.is_some_and(|content| {
            self.insert_content(to, content);
            true
        })
    }

    /// Takes a file away. False if there is no such file.
    pub fn remove(&mut self, name: &Name) -> bool {
        let ino = Arc::make_mut(&mut self.names).remove(name);
        ino.is_some_and(|ino| self.files.remove(&ino).is_some())
    }

    /// Overwrites bytes of a file, extending it if need be. False if there is no such file.
    pub fn write(&mut self, name: &Name, offset: u64, bytes: &[u8]) -> bool {
        self.damage(name, |content| content.write(offset, bytes))
    }

    /// Cuts or extends a file. False if there is no such file.
    pub fn set_len(&mut self, name: &Name, len: u64) -> bool {
        self.damage(name, |content| content.set_len(len))
    }

    /// Inverts one bit of a file; bit 0 is the lowest of the first byte. False if there is no such bit.
    pub fn flip(&mut self, name: &Name, bit: u64) -> bool {
        let mut byte = [0];
        if self.read_at(name, &mut byte, bit / 8) == 0 {
            return false;
        }
        self.write(name, bit / 8, &[byte[0] ^ (1 << (bit % 8))])
    }

    /// Identity of names, lengths and bytes, to skip images that were checked before. What is allocated does not count: a reader
    /// cannot tell a hole from written zeros.
    pub fn digest(&self) -> u128 {
        let mut hasher = blake3::Hasher::new();
        for (name, ino) in &*self.names {
            hasher.update(name.as_str().as_bytes()).update(&[0]);
            if let Some(content) = self.files.get(ino) {
                hasher.update(content.digest());
            }
        }
        let bytes = hasher.finalize();
        u128::from_le_bytes(*bytes.as_bytes().first_chunk().expect("32 bytes have a first 16"))
    }

    fn damage(&mut self, name: &Name, change: impl FnOnce(&mut Content)) -> bool {
        let content = self.names.get(name).and_then(|ino| self.files.get_mut(ino));
        content.map(|content| change(Arc::make_mut(content))).is_some()
    }

    fn insert_content(&mut self, name: &Name, content: Arc<Content>) {
        self.remove(name);
        let ino = self.next_ino();
        Arc::make_mut(&mut self.names).insert(name.clone(), ino);
        self.files.insert(ino, content);
    }

    fn content(&self, name: &Name) -> Option<&Content> {
        self.names.get(name).and_then(|ino| self.files.get(ino)).map(|content| &**content)
    }

    /// A number that no file has.
    pub(super) fn next_ino(&self) -> u64 {
        self.files.last_key_value().map_or(1, |(last, _)| last + 1)
    }

    /// Names with the files behind them.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&Name, u64, Arc<Content>)> {
        self.names.iter().map(|(name, ino)| (name, *ino, self.files.get(ino).cloned().unwrap_or_default()))
    }

    pub(super) fn insert_entry(&mut self, name: Name, ino: u64, content: Arc<Content>) {
        Arc::make_mut(&mut self.names).insert(name, ino);
        self.files.insert(ino, content);
    }

    /// The file of a number, named or not.
    pub(super) fn file(&self, ino: u64) -> Option<&Content> {
        self.files.get(&ino).map(|content| &**content)
    }

    /// Length of the file of a number, 0 if there is none yet.
    pub(super) fn file_len(&self, ino: u64) -> u64 {
        self.file(ino).map_or(0, Content::len)
    }

    pub(super) fn file_mut(&mut self, ino: u64) -> &mut Content {
        Arc::make_mut(self.files.entry(ino).or_default())
    }

    pub(super) fn ino(&self, name: &Name) -> Option<u64> {
        self.names.get(name).copied()
    }

    /// Forgets files that have no name.
    pub(super) fn forget_unnamed(&mut self) {
        let named: BTreeSet<u64> = self.names.values().copied().collect();
        self.files.retain(|ino, _| named.contains(ino));
    }

    /// Gives the medium the effect of one operation. A name is given or taken by itself, whatever became of the operations before:
    /// the entry of a renamed file may be there although that of its making was lost.
    pub(super) fn apply(&mut self, op: &Op) {
        match op {
            Op::Create { ino, name } | Op::Lock { ino, name } => {
                self.file_mut(*ino);
                Arc::make_mut(&mut self.names).insert(name.clone(), *ino);
            }
            Op::Rename { ino, from, to } => {
                let names = Arc::make_mut(&mut self.names);
                if names.get(from) == Some(ino) {
                    names.remove(from);
                }
                names.insert(to.clone(), *ino);
                self.file_mut(*ino);
            }
            Op::Unlink { ino, name } => {
                if self.names.get(name) == Some(ino) {
                    Arc::make_mut(&mut self.names).remove(name);
                }
            }
            Op::Write { ino, .. } | Op::Zero { ino, .. } | Op::Punch { ino, .. } | Op::SetLen { ino, .. } => {
                op.apply_to(self.file_mut(*ino));
            }
            Op::Sync { .. } | Op::SyncLost { .. } | Op::SyncDir | Op::Ack(_) => {}
        }
    }

    /// Gives the medium a part of a write or zeroing: the bytes from `start` to `end` of the file.
    pub(super) fn apply_part(&mut self, op: &Op, start: u64, end: u64) {
        let part = |offset: u64, len: u64| (start.max(offset), end.min(offset.saturating_add(len)));
        match op {
            Op::Write { ino, offset, bytes } => {
                let (start, end) = part(*offset, bytes.len() as u64);
                let index = |at: u64| usize::try_from(at - offset).expect("within the write");
                if start < end {
                    self.file_mut(*ino).write(start, &bytes[index(start)..index(end)]);
                }
            }
            Op::Zero { ino, offset, len } => {
                let (start, end) = part(*offset, *len);
                self.file_mut(*ino).zero(start, end.saturating_sub(start));
            }
            _ => unreachable!("only writes have parts"),
        }
    }
}

impl fmt::Debug for Image {
    /// Shows names and lengths, never bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.names().map(|name| (name.as_str(), self.len(name).unwrap_or(0)))).finish()
    }
}
