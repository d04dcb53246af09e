//! The operating system's disk: one directory, reached through its descriptor.
//!
//! It knows nothing of what the files hold. Names are resolved beneath the directory that was opened, so that nobody can move
//! another one into its place, and no link is followed.

#![expect(unsafe_code, reason = "a map of a file is unsafe: see the one block below")]

use std::{
    fmt,
    io::{self, IoSlice},
    num::NonZeroU64,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{
        Advice, AtFlags, CWD, Dir, FallocateFlags, FileType, FlockOperation, Mode, OFlags, Stat, fadvise, fallocate,
        fcntl_getfl, fcntl_setfl, fdatasync, flock, fstat, fstatvfs, fsync, ftruncate, mkdirat, openat, renameat,
        statat, unlinkat,
    },
    io::{Errno, pread, pwrite, pwritev},
    process::{geteuid, getpid},
};

use crate::disk::{
    AlignedBuffer, BLOCK, Disk, File, Listing, Lock, LockGuard, LockMode, Mapped, Name, OpenOptions, SyncKind,
    buffer::ALIGN, is_block_range, retry, write_all,
};

/// Zeros are written in pieces of this size.
const ZEROS: usize = 1 << 20;
/// A holder's line that is longer was not written by a holder.
const HOLDER_MAX: usize = 512;
/// So often is a lock file tried that is gone from the directory once it is locked.
const LOCK_TRIES: usize = 100;

/// A directory of the operating system.
pub struct OsDisk {
    directory: OwnedFd,
    path: PathBuf,
}

impl OsDisk {
    /// Opens an existing directory. It must be a directory and not a link to one, ours, and writable by nobody else.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = without_slash(path.as_ref());
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = match retry(|| Ok(openat(CWD, &path, flags, Mode::empty())?)) {
            Ok(directory) => directory,
            Err(error) => return Err(explain(&path, error)),
        };
        only_ours(&fstat(&directory)?, "the store's directory")?;
        Ok(Self { directory, path })
    }

    /// Makes the directory with mode 0700 unless it is there, durably, and opens it.
    pub fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = without_slash(path.as_ref());
        match retry(|| Ok(mkdirat(CWD, &path, Mode::RWXU)?)) {
            Ok(()) => sync_parent(&path)?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        Self::open(path)
    }

    /// Where the directory was when it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn open_regular(&self, name: &Name, flags: OFlags) -> io::Result<OwnedFd> {
        // Without NONBLOCK the open of a FIFO waits for its other end.
        let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = match openat(&self.directory, name.as_str(), flags, Mode::RUSR | Mode::WUSR) {
            Ok(fd) => fd,
            // A link, a directory opened for writing, a socket.
            Err(Errno::LOOP | Errno::ISDIR | Errno::NXIO) => return Err(not_regular(name)),
            Err(error) => return Err(error.into()),
        };
        let stat = fstat(&fd)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(not_regular(name));
        }
        only_ours(&stat, name.as_str())?;
        Ok(fd)
    }

    /// What the holder of the lock wrote about itself; nothing where the file is gone.
    fn holder(&self, name: &Name) -> String {
        let file = self.open_regular(name, OFlags::RDONLY);
        file.map_or_else(|_| String::new(), |fd| holder_of(&OsFile { fd, direct: false }))
    }

    /// True if the directory still shows the locked file under its name. If not, somebody removed it between the open and the
    /// lock, and the next process would lock another file.
    fn is_still_lock(&self, fd: &OwnedFd, name: &Name) -> io::Result<bool> {
        let ours = fstat(fd)?;
        match statat(&self.directory, name.as_str(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(there) => Ok((there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl fmt::Debug for OsDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OsDisk({})", self.path.display())
    }
}

impl Disk for OsDisk {
    fn open(&self, name: &Name, options: OpenOptions) -> io::Result<Box<dyn File>> {
        let access = if options.write || options.create_new { OFlags::RDWR } else { OFlags::RDONLY };
        let create = if options.create_new { OFlags::CREATE | OFlags::EXCL } else { OFlags::empty() };
        let fd = self.open_regular(name, access | create)?;
        // Asked for on the open file and not in the open: there, a filesystem without it may leave a new file behind.
        let direct = options.direct && fcntl_setfl(&fd, fcntl_getfl(&fd)? | OFlags::DIRECT).is_ok();
        Ok(Box::new(OsFile { fd, direct }))
    }

    fn rename(&self, from: &Name, to: &Name) -> io::Result<()> {
        Ok(renameat(&self.directory, from.as_str(), &self.directory, to.as_str())?)
    }

    fn unlink(&self, name: &Name) -> io::Result<()> {
        Ok(unlinkat(&self.directory, name.as_str(), AtFlags::empty())?)
    }

    fn list(&self) -> io::Result<Listing> {
        let mut listing = Listing::default();
        for entry in Dir::read_from(&self.directory)? {
            let entry = entry?;
            match entry.file_name().to_bytes() {
                b"." | b".." => {}
                bytes => match std::str::from_utf8(bytes).ok().and_then(Name::new) {
                    Some(name) => listing.names.push(name),
                    None => listing.strange.push(bytes.escape_ascii().to_string()),
                },
            }
        }
        Ok(listing)
    }

    fn sync_dir(&self) -> io::Result<()> {
        Ok(fsync(&self.directory)?)
    }

    fn lock(&self, mode: LockMode, holder: &str) -> io::Result<Lock> {
        let name = lock_name();
        let (flags, operation) = match mode {
            LockMode::Exclusive => (OFlags::RDWR | OFlags::CREATE, FlockOperation::NonBlockingLockExclusive),
            LockMode::Shared => (OFlags::RDONLY, FlockOperation::NonBlockingLockShared),
        };
        // The file's name can be taken away from its holder, and the next process would make and lock another file; the directory
        // cannot. Opened anew: a lock belongs to the open file, and this handle of the disk may be asked twice.
        let directory =
            openat(&self.directory, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        match flock(&directory, operation) {
            // Some network filesystems lock only files that are open for writing: there LOCK decides alone.
            Ok(()) | Err(Errno::BADF | Errno::INVAL | Errno::NOLCK | Errno::NOSYS | Errno::OPNOTSUPP) => {}
            Err(Errno::WOULDBLOCK) => return Ok(Lock::Busy(self.holder(&name))),
            Err(error) => return Err(error.into()),
        }
        for _ in 0..LOCK_TRIES {
            let fd = match self.open_regular(&name, flags) {
                Ok(fd) => fd,
                // No writer was ever here, or the filesystem is read-only and none can be.
                Err(error) if mode == LockMode::Shared && error.kind() == io::ErrorKind::NotFound => {
                    return Ok(Lock::Held(Box::new(OsLock { file: None, mode, _directory: directory })));
                }
                Err(error) => return Err(error),
            };
            match flock(&fd, operation) {
                Ok(()) if !self.is_still_lock(&fd, &name)? => {}
                Ok(()) => {
                    let file = OsFile { fd, direct: false };
                    if mode == LockMode::Exclusive {
                        // Only for people to read: a full disk must not keep the store from being opened and emptied.
                        let text = format!("pid {}: {holder}\n", getpid());
                        let _ = retry(|| file.set_len(0)).and_then(|()| write_all(&file, text.as_bytes(), 0));
                    }
                    return Ok(Lock::Held(Box::new(OsLock { file: Some(file), mode, _directory: directory })));
                }
                Err(Errno::WOULDBLOCK) => return Ok(Lock::Busy(holder_of(&OsFile { fd, direct: false }))),
                Err(error) => return Err(error.into()),
            }
        }
        // Somebody removes the file as fast as it is made; whoever that is has it.
        Ok(Lock::Busy(String::new()))
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let stat = fstatvfs(&self.directory)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }
}

/// What the holder wrote about itself, made fit for a terminal: anybody could have written it.
fn holder_of(file: &OsFile) -> String {
    let mut bytes = [0; HOLDER_MAX];
    let count = file.read_at(&mut bytes, 0).unwrap_or(0);
    String::from_utf8_lossy(&bytes[..count]).trim_end().chars().flat_map(char::escape_debug).collect()
}

/// The name of the file that says who holds the lock.
fn lock_name() -> Name {
    Name::new("LOCK").expect("LOCK is a name")
}

/// Holds the lock, which belongs to the open directory and the open file and ends with them.
struct OsLock {
    file: Option<OsFile>,
    mode: LockMode,
    _directory: OwnedFd,
}

impl LockGuard for OsLock {}

impl Drop for OsLock {
    fn drop(&mut self) {
        if let (Some(file), LockMode::Exclusive) = (&self.file, self.mode) {
            // Readers that hold the lock next write nothing, and must not be taken for this process. If it fails, or after a
            // crash, only the message of a busy lock is wrong.
            let _ = file.set_len(0);
        }
    }
}

/// An open file of the operating system.
struct OsFile {
    fd: OwnedFd,
    direct: bool,
}

impl OsFile {
    /// Reads what the caller wants out of the aligned range around it, since a direct read of any other is refused.
    fn read_around(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let before = usize::try_from(offset % ALIGN as u64).expect("less than a page");
        let wanted = before.checked_add(bytes.len()).and_then(|n| n.checked_next_multiple_of(ALIGN));
        let mut around = AlignedBuffer::try_with_capacity(wanted.ok_or(io::ErrorKind::InvalidInput)?)?;
        around.resize(around.capacity());
        let count = pread(&self.fd, around.as_mut_slice(), offset - before as u64)?;
        let found = around.as_slice().get(before..count).unwrap_or_default();
        let taken = found.len().min(bytes.len());
        bytes[..taken].copy_from_slice(&found[..taken]);
        Ok(taken)
    }
}

impl File for OsFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        // No file reaches so far. The system would call it a bad argument, and a place that damage gives would be an I/O error.
        if offset.checked_add(bytes.len() as u64).is_none_or(|end| i64::try_from(end).is_err()) {
            return Ok(0);
        }
        let aligned = bytes.as_ptr().addr().is_multiple_of(ALIGN) && is_block_range(offset, bytes.len() as u64);
        if self.direct && !aligned {
            return self.read_around(bytes, offset);
        }
        Ok(pread(&self.fd, bytes, offset)?)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        Ok(pwrite(&self.fd, bytes, offset)?)
    }

    fn write_pieces_at(&self, pieces: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        Ok(pwritev(&self.fd, pieces, offset)?)
    }

    fn len(&self) -> io::Result<u64> {
        u64::try_from(fstat(&self.fd)?.st_size).map_err(|_| io::ErrorKind::InvalidData.into())
    }

    fn allocated(&self) -> io::Result<u64> {
        // The unit is 512 bytes on every filesystem, whatever its blocks are.
        Ok(u64::try_from(fstat(&self.fd)?.st_blocks).unwrap_or(0).saturating_mul(512))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        Ok(ftruncate(&self.fd, len)?)
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        if !is_block_range(offset, len) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if len == 0 {
            return Ok(());
        }
        match fallocate(&self.fd, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, len) {
            Ok(()) => Ok(()),
            // The promise is that the bytes are gone; that the blocks come back is a hope.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                let end = offset.saturating_add(len).min(self.len()?);
                self.zero(offset, end.saturating_sub(offset))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn zero(&self, offset: u64, len: u64) -> io::Result<()> {
        // Real writes: a commit into blocks that fallocate only set aside pays for their conversion.
        let size = usize::try_from(len).unwrap_or(ZEROS).min(ZEROS);
        let zeros = AlignedBuffer::zeroed(size);
        let mut done = 0;
        while done < len {
            let piece = usize::try_from(len - done).unwrap_or(size).min(size);
            write_all(self, &zeros.as_slice()[..piece], offset.checked_add(done).ok_or(io::ErrorKind::InvalidInput)?)?;
            done += piece as u64;
        }
        Ok(())
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        if len == 0 {
            return Ok(());
        }
        match fallocate(&self.fd, FallocateFlags::ZERO_RANGE, offset, len) {
            Ok(()) => Ok(()),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.zero(offset, len),
            Err(error) => Err(error.into()),
        }
    }

    fn sync(&self, kind: SyncKind) -> io::Result<()> {
        match kind {
            SyncKind::Data => Ok(fdatasync(&self.fd)?),
            SyncKind::All => Ok(fsync(&self.fd)?),
        }
    }

    fn map(&self, offset: u64, len: usize) -> io::Result<Mapped> {
        let end = offset.checked_add(len as u64).ok_or(io::ErrorKind::InvalidInput)?;
        // A touch behind the end of the file would be a signal and not an error.
        if end > self.len()? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if len == 0 {
            return Ok(Mapped::new([]));
        }
        // SAFETY: a map is sound as long as nobody changes the mapped bytes or cuts the file. The engine maps only files that it
        // never writes again, in a directory that is its own (mode 0700, locked), and drops the map before it unlinks or cuts.
        let map = unsafe { memmap2::MmapOptions::new().offset(offset).len(len).map(&self.fd)? };
        Ok(Mapped::new(map))
    }

    fn align(&self) -> u32 {
        if self.direct { u32::try_from(BLOCK).expect("a small number") } else { 1 }
    }

    fn drop_cache(&self, offset: u64, len: u64) {
        if let Some(len) = NonZeroU64::new(len) {
            // A hint: where it is refused nothing is lost but memory.
            let _ = fadvise(&self.fd, offset, Some(len), Advice::DontNeed);
        }
    }
}

/// The path without a slash or `.` at its end, with which the last link would be followed in spite of NOFOLLOW.
fn without_slash(path: &Path) -> PathBuf {
    path.components().collect()
}

/// Says what is wrong with the directory, since the kernel answers the same for a link and for a file.
fn explain(path: &Path, error: io::Error) -> io::Error {
    match statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).map(|stat| FileType::from_raw_mode(stat.st_mode)) {
        Ok(FileType::Symlink) => refused("the store's directory is a symbolic link; give the directory itself"),
        Ok(FileType::Directory) | Err(_) => error,
        Ok(_) => io::ErrorKind::NotADirectory.into(),
    }
}

/// Refuses what belongs to somebody else or may be written by others: they could swap bytes beneath the store.
fn only_ours(stat: &Stat, what: &str) -> io::Result<()> {
    if stat.st_uid != geteuid().as_raw() {
        return Err(refused(format!("{what} belongs to user {} and not to this process", stat.st_uid)));
    }
    if Mode::from_raw_mode(stat.st_mode).intersects(Mode::WGRP | Mode::WOTH) {
        return Err(refused(format!("{what} may be written by group or others; take that right away")));
    }
    Ok(())
}

fn refused(why: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, why.into())
}

fn not_regular(name: &Name) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("{name} is not a regular file"))
}

/// Makes the entry of a new directory durable.
fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = retry(|| Ok(openat(CWD, parent, flags, Mode::empty())?))?;
    retry(|| Ok(fsync(&parent)?))
}

#[cfg(test)]
mod tests;
