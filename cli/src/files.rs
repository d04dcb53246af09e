//! Files of the caller: what `put` reads, and where paths are looked up.
//!
//! It knows nothing of the store. Every path is opened once and judged by its descriptor, never checked first and opened then.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Read, Write},
    os::fd::OwnedFd,
    path::{Component, Path, PathBuf},
};

use holdfast::{
    Error, Kind,
    entropy::{Entropy, OsEntropy},
};
use rustix::{
    fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, fsync, mkdirat, openat, openat2},
    io::Errno,
};

use crate::{
    output::{invalid, shown},
    progress::Progress,
};

/// Without NONBLOCK the open of a FIFO waits for its other end; without NOCTTY a terminal would become ours.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Mode of a directory that is made, before the caller's mask.
const DIRECTORY: Mode = Mode::RWXU.union(Mode::RWXG).union(Mode::RWXO);

/// Where the paths of a put or of a working copy are looked up.
pub(crate) enum Base {
    /// As the shell would; links are followed.
    Anywhere,
    /// Beneath a directory; no link is followed and no `..` is taken.
    Root(OwnedFd),
}

impl Base {
    /// Beneath that directory.
    pub(crate) fn root(dir: &Path) -> Result<Self, Error> {
        // Not as a mere path: a directory that a file is put into is synced.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match openat(CWD, dir, flags, Mode::empty()) {
            Ok(fd) => Ok(Self::Root(fd)),
            Err(error) => Err(Error::io(error.into(), dir.to_string_lossy(), "the root")),
        }
    }

    /// Opens a regular file for reading and says how long it is.
    pub(crate) fn open(&self, path: &Path) -> Result<(File, u64), Error> {
        let fd = self.look_up(path, READ).map_err(|errno| self.refusal(errno))?;
        self.regular(fd)
    }

    /// The same; nothing if nothing is there.
    pub(crate) fn find(&self, path: &Path) -> Result<Option<(File, u64)>, Error> {
        match self.look_up(path, READ) {
            Ok(fd) => self.regular(fd).map(Some),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(errno) => Err(self.refusal(errno)),
        }
    }

    /// Opens a directory, and makes it first if it is not there.
    pub(crate) fn enter(&self, name: &OsStr) -> Result<Self, Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let entered = match self.look_up(Path::new(name), flags) {
            Err(Errno::NOENT) => self.make_directory(name).and_then(|()| self.look_up(Path::new(name), flags)),
            entered => entered,
        };
        match entered {
            Ok(fd) => Ok(Self::Root(fd)),
            Err(Errno::NOTDIR) => Err(invalid("a directory of the path is none, but a file")),
            Err(errno) => Err(self.refusal(errno)),
        }
    }

    /// The same place once more.
    pub(crate) fn again(&self) -> Result<Self, Error> {
        match self {
            Self::Anywhere => Ok(Self::Anywhere),
            Self::Root(root) => match root.try_clone() {
                Ok(root) => Ok(Self::Root(root)),
                Err(error) => Err(Error::new(Kind::Io, format!("a second descriptor: {error}"))),
            },
        }
    }

    fn make_directory(&self, name: &OsStr) -> Result<(), Errno> {
        let made = match self {
            Self::Anywhere => mkdirat(CWD, name, DIRECTORY),
            Self::Root(root) => mkdirat(root, name, DIRECTORY).and_then(|()| fsync(root)),
        };
        // Whoever was faster made the same.
        if made == Err(Errno::EXIST) { Ok(()) } else { made }
    }

    fn look_up(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        match self {
            Self::Anywhere => retry(|| openat(CWD, path, flags, Mode::empty())),
            // The kernel would take a `..` that stays beneath. The caller was promised that none is.
            Self::Root(_) if path.components().any(|part| part == Component::ParentDir) => Err(Errno::XDEV),
            Self::Root(root) => {
                let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
                retry(|| openat2(root, path, flags, Mode::empty(), resolve))
            }
        }
    }

    fn regular(&self, fd: OwnedFd) -> Result<(File, u64), Error> {
        let stat = fstat(&fd).map_err(|errno| self.refusal(errno))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(not_regular());
        }
        Ok((File::from(fd), u64::try_from(stat.st_size).unwrap_or(0)))
    }

    fn refusal(&self, errno: Errno) -> Error {
        match (self, errno) {
            (_, Errno::NOENT | Errno::NOTDIR) => Error::new(Kind::NotReady, "there is no such file"),
            // A rename raced with the look-up more often than `retry` bears with.
            (Self::Root(_), Errno::AGAIN) => Error::new(Kind::NotReady, "the path changes all the time"),
            (Self::Root(_), Errno::XDEV | Errno::LOOP) => escapes_root(),
            // A socket, or a device without a driver.
            (_, Errno::NXIO | Errno::NODEV) => not_regular(),
            (_, Errno::NAMETOOLONG) => Error::new(Kind::BadName, "the name is too long"),
            (_, errno) => Error::new(Kind::Io, format!("open: {}", io::Error::from(errno))),
        }
    }
}

/// The error of a path that is to stay beneath a root and does not.
pub(crate) fn escapes_root() -> Error {
    Error::new(Kind::EscapesRoot, "the path leads out of the root, or through a link or `..`")
}

/// The error of what is no file of bytes.
pub(crate) fn not_regular() -> Error {
    Error::new(Kind::NotRegular, "not a regular file")
}

/// Repeats a call that a signal or a racing rename interrupted.
fn retry(mut call: impl FnMut() -> Result<OwnedFd, Errno>) -> Result<OwnedFd, Errno> {
    for _ in 0..64 {
        match call() {
            Err(Errno::INTR | Errno::AGAIN) => {}
            result => return result,
        }
    }
    call()
}

/// What a put reads. A file gives exactly the bytes that it had when it was opened: one that grows gives this prefix, one that
/// shrinks fails the put.
pub(crate) struct Source<'a> {
    from: &'a mut dyn Read,
    /// Bytes still to come; `None` reads to the end.
    left: Option<u64>,
    progress: Progress,
    failure: Option<Error>,
}

impl<'a> Source<'a> {
    /// So many bytes of a file.
    pub(crate) fn file(file: &'a mut File, len: u64) -> Self {
        Self { from: file, left: Some(len), progress: Progress::new("put", len), failure: None }
    }

    /// All that comes.
    pub(crate) fn stream(from: &'a mut dyn Read) -> Self {
        Self { from, left: None, progress: Progress::new("put", 0), failure: None }
    }

    /// Why reading failed, if it did: the engine only sees that it did.
    pub(crate) fn failure(self) -> Option<Error> {
        self.failure
    }
}

impl Read for Source<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let room =
            self.left.map_or(bytes.len(), |left| usize::try_from(left).map_or(bytes.len(), |l| l.min(bytes.len())));
        if room == 0 {
            return Ok(0);
        }
        match self.from.read(&mut bytes[..room]) {
            Ok(0) if self.left.is_some() => {
                self.failure = Some(Error::new(Kind::NotReady, "the file became shorter while it was read"));
                Err(io::ErrorKind::UnexpectedEof.into())
            }
            Ok(count) => {
                self.left = self.left.map(|left| left - count as u64);
                self.progress.add(count);
                Ok(count)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) => {
                self.failure = Some(Error::new(Kind::Io, format!("read: {error}")));
                Err(io::ErrorKind::Other.into())
            }
        }
    }
}

/// Where a get writes. It remembers why writing failed: the engine only sees that it did.
pub(crate) struct Sink<'a> {
    to: &'a mut dyn Write,
    progress: &'a mut Progress,
    failure: Option<io::Error>,
}

impl<'a> Sink<'a> {
    pub(crate) fn new(to: &'a mut dyn Write, progress: &'a mut Progress) -> Self {
        Self { to, progress, failure: None }
    }

    pub(crate) fn failure(self) -> Option<io::Error> {
        self.failure
    }
}

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes);
        match written {
            Ok(count) => {
                self.progress.add(count);
                Ok(count)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) => {
                let kind = error.kind();
                self.failure = Some(error);
                Err(kind.into())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// The first line of a short file, for values that are not given as arguments.
pub(crate) fn first_line(path: &str) -> Result<String, String> {
    let (file, _) = Base::Anywhere.open(Path::new(path)).map_err(|error| format!("{}: {error}", shown(path)))?;
    let mut text = String::new();
    file.take(4096).read_to_string(&mut text).map_err(|error| format!("{}: {error}", shown(path)))?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

/// A new directory, mode 0700, among the temporary ones.
pub(crate) fn make_temporary_directory(name: &str) -> Result<PathBuf, Error> {
    make_directory(&std::env::temp_dir(), name)
}

fn make_directory(within: &Path, name: &str) -> Result<PathBuf, Error> {
    let path = within.join(format!("{name}-{:016x}", random_name()?));
    match mkdirat(CWD, &path, Mode::RWXU) {
        Ok(()) => Ok(path),
        Err(errno) => Err(Error::io(errno.into(), path.to_string_lossy(), "make a temporary directory")),
    }
}

pub(crate) fn random_name() -> Result<u64, Error> {
    let mut random = [0; 8];
    OsEntropy.fill(&mut random)?;
    Ok(u64::from_le_bytes(random))
}

/// A temporary directory that goes away with what was written into it.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new() -> Result<Self, Error> {
        make_temporary_directory("holdfast-scratch").map(Self)
    }

    /// Within another directory than that of temporary files.
    pub(crate) fn within(directory: &Path, name: &str) -> Result<Self, Error> {
        make_directory(directory, name).map(Self)
    }

    /// A path in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Removes a directory in it, with what it holds.
    pub(crate) fn remove(&self, name: &str) -> Result<(), Error> {
        let path = self.path(name);
        #[expect(clippy::disallowed_methods, reason = "a directory of the caller's side, and no store any more")]
        let removed = std::fs::remove_dir_all(&path);
        removed.map_err(|error| Error::io(error, shown(&path.to_string_lossy()), "remove"))
    }

    /// A new file in it.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, Error> {
        let path = self.path(name);
        #[expect(clippy::disallowed_methods, reason = "a file of the caller's side, not of the store")]
        let written = std::fs::write(&path, bytes);
        written.map_err(|error| Error::io(error, path.to_string_lossy(), "write"))?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What stays behind is in the directory of temporary files, which somebody empties.
        #[expect(clippy::disallowed_methods, reason = "a directory of the caller's side, not of the store")]
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// True if both files hold the same bytes.
pub(crate) fn same_bytes(one: &Path, other: &Path) -> Result<bool, Error> {
    let all = |path: &Path| {
        let (mut file, _) = Base::Anywhere.open(path)?;
        let mut bytes = Vec::new();
        match file.read_to_end(&mut bytes) {
            Ok(_) => Ok(bytes),
            Err(error) => Err(Error::io(error, path.to_string_lossy(), "read")),
        }
    };
    Ok(all(one)? == all(other)?)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests make the caller's files")]
mod tests {
    use super::*;

    fn opened(bytes: &[u8]) -> (Scratch, PathBuf, File, u64) {
        let scratch = Scratch::new().expect("a temporary directory");
        let path = scratch.write("file", bytes).expect("a new file");
        let (file, len) = Base::Anywhere.open(&path).expect("it is regular");
        (scratch, path, file, len)
    }

    #[test]
    fn a_file_that_grows_gives_the_bytes_that_it_had() {
        let (_scratch, path, mut file, len) = opened(b"as it was");
        std::fs::write(&path, b"as it was, and more").expect("written");
        let mut source = Source::file(&mut file, len);
        let mut bytes = Vec::new();
        source.read_to_end(&mut bytes).expect("read");
        assert_eq!(bytes, b"as it was");
        assert!(source.failure().is_none());
    }

    #[test]
    fn a_file_that_shrinks_is_not_ready() {
        let (_scratch, path, mut file, len) = opened(b"as it was");
        std::fs::write(&path, b"less").expect("written");
        let mut source = Source::file(&mut file, len);
        source.read_to_end(&mut Vec::new()).expect_err("five bytes are missing");
        assert_eq!(source.failure().map(|error| error.kind()), Some(Kind::NotReady));
    }
}
