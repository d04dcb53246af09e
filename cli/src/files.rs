//! Files of the caller: what `put` reads and what `get` writes.
//!
//! It knows nothing of the store. Every path is opened once and judged by its descriptor, never checked first and opened then.

use std::{
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
    fs::{
        AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, ResolveFlags, fstat, fsync, linkat, mkdirat, openat,
        openat2, renameat, renameat_with, statat, unlinkat,
    },
    io::Errno,
};

use crate::{
    output::{invalid, shown},
    progress::Progress,
};

/// Without NONBLOCK the open of a FIFO waits for its other end; without NOCTTY a terminal would become ours.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Where the paths of a put are looked up.
pub(crate) enum Base {
    /// As the shell would; links are followed.
    Anywhere,
    /// Beneath a directory; no link is followed and no `..` is taken.
    Root(OwnedFd),
}

impl Base {
    /// Beneath that directory.
    pub(crate) fn root(dir: &Path) -> Result<Self, Error> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match openat(CWD, dir, flags, Mode::empty()) {
            Ok(fd) => Ok(Self::Root(fd)),
            Err(error) => Err(Error::io(error.into(), dir.to_string_lossy(), "the root")),
        }
    }

    /// Opens a regular file for reading and says how long it is.
    pub(crate) fn open(&self, path: &Path) -> Result<(File, u64), Error> {
        let opened = match self {
            Self::Anywhere => retry(|| openat(CWD, path, READ, Mode::empty())),
            // The kernel would take a `..` that stays beneath. The caller was promised that none is.
            Self::Root(_) if path.components().any(|part| part == Component::ParentDir) => Err(Errno::XDEV),
            Self::Root(root) => {
                let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
                retry(|| openat2(root, path, READ, Mode::empty(), resolve))
            }
        };
        let fd = opened.map_err(|errno| self.refusal(errno))?;
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
            (Self::Root(_), Errno::XDEV | Errno::LOOP) => {
                Error::new(Kind::EscapesRoot, "the path leads out of the root, or through a link or `..`")
            }
            // A socket, or a device without a driver.
            (_, Errno::NXIO | Errno::NODEV) => not_regular(),
            (_, Errno::NAMETOOLONG) => Error::new(Kind::BadName, "the name is too long"),
            (_, errno) => Error::new(Kind::Io, format!("open: {}", io::Error::from(errno))),
        }
    }
}

fn not_regular() -> Error {
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

/// A file that appears at its path whole or not at all: written beside it under another name, synced, then renamed.
pub(crate) struct Target {
    file: File,
    directory: OwnedFd,
    beside: String,
    name: std::ffi::OsString,
    replace: bool,
    in_place: bool,
}

impl Target {
    /// For a path that may be there already, as a regular file; it is replaced.
    pub(crate) fn replacing(path: &Path) -> Result<Self, Error> {
        Self::new(path, true)
    }

    /// For a path that must not be there.
    pub(crate) fn fresh(path: &Path) -> Result<Self, Error> {
        Self::new(path, false)
    }

    fn new(path: &Path, replace: bool) -> Result<Self, Error> {
        let text = path.to_string_lossy();
        let name = match path.file_name() {
            Some(name) if !path.as_os_str().as_encoded_bytes().ends_with(b"/") => name,
            _ => return Err(invalid(format!("{text} does not name a file"))),
        };
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let failed = |errno: Errno, what: &'static str| Error::io(errno.into(), &text, what);
        let directory = openat(CWD, parent, flags, Mode::empty()).map_err(|errno| failed(errno, "its directory"))?;
        match statat(&directory, name, AtFlags::empty()) {
            Ok(_) if !replace => return Err(exists(&text)),
            // A rename would put a file in the place of a device, as root even of /dev/null.
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile => return Err(not_regular()),
            Ok(_) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(failed(errno, "look up")),
        }
        let beside = format!(".holdfast-{:016x}.part", random_name()?);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&directory, beside.as_str(), flags, Mode::RUSR | Mode::WUSR)
            .map_err(|errno| failed(errno, "make a file beside it"))?;
        Ok(Self { file: File::from(file), directory, beside, name: name.to_owned(), replace, in_place: false })
    }

    /// Makes what was written durable and puts it in place.
    pub(crate) fn put_in_place(mut self) -> Result<(), Error> {
        let text = self.name.to_string_lossy();
        let failed = |errno: Errno, what: &'static str| Error::io(errno.into(), &text, what);
        fsync(&self.file).map_err(|errno| failed(errno, "sync"))?;
        match self.rename() {
            Ok(()) => self.in_place = true,
            Err(Errno::EXIST) => return Err(exists(&text)),
            Err(errno) => return Err(failed(errno, "rename")),
        }
        fsync(&self.directory).map_err(|errno| failed(errno, "sync its directory"))
    }

    fn rename(&self) -> Result<(), Errno> {
        let (directory, beside) = (&self.directory, self.beside.as_str());
        if self.replace {
            return renameat(directory, beside, directory, &self.name);
        }
        match renameat_with(directory, beside, directory, &self.name, RenameFlags::NOREPLACE) {
            // A filesystem without this rename; a link refuses what is there too, and the other name goes.
            Err(Errno::INVAL | Errno::NOSYS) => {
                linkat(directory, beside, directory, &self.name, AtFlags::empty())?;
                unlinkat(directory, beside, AtFlags::empty())
            }
            result => result,
        }
    }
}

fn exists(text: &str) -> Error {
    invalid(format!("{text} exists; give a PATH to replace it or to write elsewhere"))
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if !self.in_place {
            // It failed already; a file that stays behind is hidden and has a name of its own.
            let _ = unlinkat(&self.directory, self.beside.as_str(), AtFlags::empty());
        }
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

fn random_name() -> Result<u64, Error> {
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

    #[test]
    fn a_target_that_is_dropped_leaves_nothing() {
        let scratch = Scratch::new().expect("a temporary directory");
        let mut target = Target::replacing(&scratch.path("out")).expect("a target");
        target.write_all(b"half").expect("written");
        drop(target);
        let names = std::fs::read_dir(scratch.path(".")).expect("it is there").count();
        assert_eq!(names, 0);
    }

    #[test]
    fn a_fresh_target_loses_against_a_file_that_came_meanwhile() {
        let scratch = Scratch::new().expect("a temporary directory");
        let target = Target::fresh(&scratch.path("out")).expect("nothing is there yet");
        scratch.write("out", b"somebody else's").expect("a new file");
        let error = target.put_in_place().expect_err("it must not be replaced");
        assert_eq!(error.kind(), Kind::InvalidArgument);
        assert_eq!(std::fs::read(scratch.path("out")).expect("it is there"), b"somebody else's");
        assert_eq!(std::fs::read_dir(scratch.path(".")).expect("it is there").count(), 1);
    }

    #[test]
    fn a_fresh_target_is_refused_before_anything_is_read_for_it() {
        let scratch = Scratch::new().expect("a temporary directory");
        let path = scratch.write("out", b"mine").expect("a new file");
        let error = Target::fresh(&path).err().expect("it is there");
        assert_eq!(error.kind(), Kind::InvalidArgument);
    }
}
