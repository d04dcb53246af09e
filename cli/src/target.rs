//! Files of the caller that a command writes: whole, or not there.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Write},
    os::fd::OwnedFd,
    path::Path,
};

use holdfast::Error;
use rustix::{
    fs::{
        AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, fsync, linkat, openat, renameat, renameat_with, statat,
        unlinkat,
    },
    io::Errno,
};

use crate::{
    files::{Base, not_regular, random_name},
    output::invalid,
};

/// A file that appears at its path whole or not at all: written beside it under another name, synced, then renamed.
pub(crate) struct Target {
    file: File,
    directory: OwnedFd,
    beside: String,
    name: OsString,
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
        Self::within(directory, name, replace, &text)
    }

    /// For a name of a directory that was entered, which must not be there.
    pub(crate) fn fresh_within(directory: Base, name: &OsStr) -> Result<Self, Error> {
        match directory {
            Base::Root(directory) => Self::within(directory, name, false, &name.to_string_lossy()),
            Base::Anywhere => Self::fresh(Path::new(name)),
        }
    }

    fn within(directory: OwnedFd, name: &OsStr, replace: bool, text: &str) -> Result<Self, Error> {
        let failed = |errno: Errno, what: &'static str| Error::io(errno.into(), text, what);
        match statat(&directory, name, AtFlags::empty()) {
            Ok(_) if !replace => return Err(exists(text)),
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

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests make the caller's files")]
mod tests {
    use holdfast::Kind;

    use super::*;
    use crate::files::Scratch;

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
