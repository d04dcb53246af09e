//! A plain file, written durably and read cold, as `dd` and `cat` would.

use std::io;

use holdfast::disk::{
    self, AlignedBuffer, Disk, File, Name, OpenOptions, SyncKind, os::OsDisk, read_full, retry, write_all,
};

use crate::{Noise, Stopwatch};

const WRITE_PIECE: usize = 4 << 20;
/// What `cat` asks for at once.
const READ_PIECE: usize = 128 << 10;

/// How a plain file is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Write {
    /// Past the page cache, 4 MiB at once: `dd bs=4M oflag=direct conv=fdatasync`.
    Direct,
    /// Through the page cache: `dd bs=4M conv=fdatasync`.
    Buffered,
}

/// Makes a file of so many bytes, syncs it, and gives the bytes a second.
pub fn write_sequential(disk: &OsDisk, name: &Name, len: u64, how: Write) -> io::Result<f64> {
    let mut buffer = AlignedBuffer::zeroed(WRITE_PIECE);
    Noise::new(0, WRITE_PIECE as u64).fill(0, buffer.as_mut_slice());
    let options = OpenOptions { direct: how == Write::Direct, ..OpenOptions::CREATE };
    let watch = Stopwatch::start();
    let file = disk.open(name, options)?;
    let mut at = 0;
    // Direct writes are of whole blocks; the last piece may be longer than asked for by less than one.
    let len = len.next_multiple_of(disk::BLOCK);
    while at < len {
        let count = WRITE_PIECE.min(usize::try_from(len - at).unwrap_or(WRITE_PIECE));
        write_all(&*file, &buffer.as_slice()[..count], at)?;
        at += count as u64;
    }
    retry(|| file.sync(SyncKind::Data))?;
    Ok(crate::figure(len) / watch.seconds())
}

/// Takes a file out of the page cache, reads all of it, and gives the bytes a second.
pub fn read_cold(disk: &OsDisk, name: &Name) -> io::Result<f64> {
    let file = disk.open(name, OpenOptions::READ)?;
    let len = file.len()?;
    file.drop_cache(0, len);
    let mut piece = vec![0; READ_PIECE];
    let watch = Stopwatch::start();
    let mut at = 0;
    while at < len {
        at += read_full(&*file, &mut piece, at)? as u64;
    }
    Ok(crate::figure(len) / watch.seconds())
}

/// Takes every file of a directory out of the page cache. Only pages that are written already and that nobody has mapped go.
pub fn drop_caches(disk: &OsDisk) -> io::Result<()> {
    for name in disk.list()?.names {
        let file: Box<dyn File> = disk.open(&name, OpenOptions::READ)?;
        file.drop_cache(0, file.len()?);
    }
    Ok(())
}
