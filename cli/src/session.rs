//! What every command starts from: the store that was named, and how to print.

use std::path::{Path, PathBuf};

use holdfast::{Error, OpenMode, OpenOptions, Store, World};

use crate::output::{Output, invalid, shown};

/// The shared arguments.
pub(crate) struct Session {
    store: Option<PathBuf>,
    /// How to print.
    pub(crate) output: Output,
}

impl Session {
    pub(crate) const fn new(store: Option<PathBuf>, json: bool) -> Self {
        Self { store, output: Output { json } }
    }

    /// The directory that was named, if one was.
    pub(crate) fn named(&self) -> Option<&Path> {
        self.store.as_deref()
    }

    /// The directory that was named.
    pub(crate) fn dir(&self) -> Result<&Path, Error> {
        self.named().ok_or_else(|| invalid("which store? Give --store DIR, or set HOLDFAST_STORE"))
    }

    /// The directory that was named, as the engine reaches it.
    pub(crate) fn world(&self) -> Result<World, Error> {
        let dir = self.dir()?;
        World::os(dir).map_err(|error| cannot_enter(dir, error))
    }

    /// Opens the store; `command` is what another process is told while this one holds it.
    pub(crate) fn open(&self, mode: OpenMode, command: &str) -> Result<Store, Error> {
        Store::open(self.world()?, &OpenOptions::new(mode, format!("holdfast {command}")))
    }
}

/// Why a directory cannot be a store, in words of the command line.
pub(crate) fn cannot_enter(dir: &Path, error: std::io::Error) -> Error {
    let dir = shown(&dir.to_string_lossy());
    match error.kind() {
        std::io::ErrorKind::NotFound => invalid(format!("there is no store at {dir}: make one with init")),
        std::io::ErrorKind::NotADirectory => invalid(format!("{dir} is not a directory")),
        _ => Error::io(error, dir, "the store's directory"),
    }
}
