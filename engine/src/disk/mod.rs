//! Files, as the engine sees them: one directory of flat names.
//!
//! Everything that the engine reads or writes goes through [`Disk`] and [`File`], so that a simulated disk sees each call, can
//! fail it, and can say what a crash would have left.

use std::{
    fmt,
    io::{self, IoSlice},
};

mod buffer;
pub mod fault;
pub mod os;
pub mod sim;

#[cfg(test)]
mod tests;

pub use buffer::AlignedBuffer;

/// Unit in which a disk gives space out and takes it back, and of which direct I/O is a multiple.
pub use crate::limits::BLOCK;

/// True for a range of whole blocks.
fn is_block_range(offset: u64, len: u64) -> bool {
    offset.is_multiple_of(BLOCK) && len.is_multiple_of(BLOCK)
}

/// A flat, validated file name: 1 to 64 bytes of `[a-z0-9.-]` or `LOCK`, not starting with a dot. No paths.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Name(String);

impl Name {
    /// Checks a name.
    pub fn new(text: &str) -> Option<Self> {
        let flat = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'.' || b == b'-';
        let good =
            text == "LOCK" || ((1..=64).contains(&text.len()) && text.bytes().all(flat) && !text.starts_with('.'));
        good.then(|| Self(text.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How a file is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OpenOptions {
    /// Fail unless this call makes the file. Implies writing.
    pub create_new: bool,
    /// Open for writing too.
    pub write: bool,
    /// Ask for I/O past the page cache; buffers, offsets and lengths of writes are then multiples of [`File::align`]. A disk that
    /// cannot do it opens the file as usual.
    pub direct: bool,
}

impl OpenOptions {
    /// An existing file, for reading.
    pub const READ: Self = Self { create_new: false, write: false, direct: false };
    /// An existing file, for reading and writing.
    pub const WRITE: Self = Self { create_new: false, write: true, direct: false };
    /// A file that is not there yet.
    pub const CREATE: Self = Self { create_new: true, write: true, direct: false };
}

/// What a sync covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SyncKind {
    /// Bytes, and the length that is needed to read them.
    Data,
    /// All of the file's metadata too.
    All,
}

/// How a store is locked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockMode {
    /// By the one writer.
    Exclusive,
    /// By any number of readers.
    Shared,
}

/// Held for as long as the store is open; dropping it unlocks.
pub trait LockGuard: Send + Sync {}

/// Outcome of a try to lock.
pub enum Lock {
    /// It is ours.
    Held(Box<dyn LockGuard>),
    /// Somebody else has it; what the holder wrote about itself. Empty: readers, who write nothing, or the file is gone.
    Busy(String),
}

/// A directory of files.
///
/// Names, sync and durability are as POSIX gives them and no better: a new file is durable once its own sync *and*
/// [`sync_dir`](Self::sync_dir) returned.
pub trait Disk: Send + Sync {
    /// Opens or makes a file. Anything but a regular file is refused without following it.
    fn open(&self, name: &Name, options: OpenOptions) -> io::Result<Box<dyn File>>;
    /// Gives a file another name, replacing what has that name.
    fn rename(&self, from: &Name, to: &Name) -> io::Result<()>;
    /// Removes a name.
    fn unlink(&self, name: &Name) -> io::Result<()>;
    /// Names in the directory, in any order; names that [`Name`] refuses are given in `strange`.
    fn list(&self) -> io::Result<Listing>;
    /// Makes names durable.
    fn sync_dir(&self) -> io::Result<()>;
    /// Tries to lock the directory, without waiting; what becomes of the file `LOCK` changes nothing of it. An exclusive holder makes
    /// the file if need be and writes its process id and `holder` into it; a shared one never writes.
    fn lock(&self, mode: LockMode, holder: &str) -> io::Result<Lock>;
    /// Bytes that can still be written.
    fn free_bytes(&self) -> io::Result<u64>;
}

/// What a directory holds.
#[derive(Clone, Default, Debug)]
pub struct Listing {
    /// Flat names.
    pub names: Vec<Name>,
    /// Everything else, escaped for display.
    pub strange: Vec<String>,
}

#[expect(clippy::len_without_is_empty, reason = "a length is asked of the system, which may fail")]
/// An open file. Reads and writes may be short; a read of zero bytes is the end of the file.
pub trait File: Send + Sync {
    /// Reads at an offset.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes at an offset.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;
    /// Writes pieces one behind the other, at an offset: of several buffers the device can take one while it asks for the next. May stop
    /// behind any byte, as a short write does. The first piece is not empty.
    fn write_pieces_at(&self, pieces: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        pieces.first().map_or(Ok(0), |piece| self.write_at(piece, offset))
    }
    /// Length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Bytes allocated on the medium.
    fn allocated(&self) -> io::Result<u64>;
    /// Cuts or extends (with zeros).
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Gives the blocks of a range back; it then reads as zeros. Both ends are multiples of [`BLOCK`]; the length stays.
    fn punch(&self, offset: u64, len: u64) -> io::Result<()>;
    /// Overwrites a range with zeros, allocating it, and extends the file to its end. If it fails, a part may be done.
    fn zero(&self, offset: u64, len: u64) -> io::Result<()>;
    /// Sets blocks aside for a range, which then reads as zeros, and extends the file to its end; nothing is written where the
    /// filesystem can do without. If it fails, a part may be done.
    fn allocate(&self, offset: u64, len: u64) -> io::Result<()>;
    /// Makes writes durable.
    fn sync(&self, kind: SyncKind) -> io::Result<()>;
    /// A read-only map, or a copy where maps are not to be had. The range must lie within the file, which must not be written
    /// or cut while the map lives.
    fn map(&self, offset: u64, len: usize) -> io::Result<Mapped>;
    /// Multiple of which direct writes must be: offset, length and address; 1 for buffered files. Reads may be of any range.
    fn align(&self) -> u32;
    /// Tells the page cache that a range is not needed again.
    fn drop_cache(&self, offset: u64, len: u64);
}

/// Bytes of a mapped range.
pub struct Mapped(Box<dyn AsRef<[u8]> + Send + Sync>);

impl Mapped {
    /// Wraps an owner of bytes.
    pub fn new(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        Self(Box::new(bytes))
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

/// Reads until the buffer is full or the file ends; gives the number of bytes read. A read of no bytes within the file fails with
/// [`io::ErrorKind::UnexpectedEof`]: recovery must not take it for the end of the log.
pub fn read_full(file: &dyn File, mut bytes: &mut [u8], mut offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while !bytes.is_empty() {
        match file.read_at(bytes, offset) {
            Ok(0) if retry(|| file.len())? > offset => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(0) => break,
            Ok(n) => {
                done += n;
                offset += n as u64;
                bytes = &mut bytes[n..];
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(done)
}

/// Fills the buffer, or fails with [`io::ErrorKind::UnexpectedEof`].
pub fn read_exact(file: &dyn File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    let wanted = bytes.len();
    match read_full(file, bytes, offset)? {
        n if n == wanted => Ok(()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Writes all bytes; a write that takes none is an error and not a loop.
pub fn write_all(file: &dyn File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write_at(bytes, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => {
                offset += n as u64;
                bytes = &bytes[n..];
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Writes all bytes of all pieces, one piece behind the other.
pub fn write_all_pieces(file: &dyn File, mut pieces: &mut [IoSlice<'_>], mut offset: u64) -> io::Result<()> {
    // No bytes: passes over what is empty.
    IoSlice::advance_slices(&mut pieces, 0);
    while !pieces.is_empty() {
        match file.write_pieces_at(pieces, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => {
                offset += n as u64;
                IoSlice::advance_slices(&mut pieces, n);
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Repeats a call that a signal interrupted.
pub fn retry<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}
