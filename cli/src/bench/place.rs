//! Where is measured: a directory for stores and plain files, removed at the end.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use holdfast::{
    AccountScope, Error, InitOptions, OpenMode, OpenOptions, Put, Store, World,
    clock::OsClock,
    disk::{Disk as _, Name, os::OsDisk},
    entropy::OsEntropy,
    format::artifact::Origin,
};
use holdfast_benches::process;

use crate::{files::Scratch, output::shown};

pub(crate) const SCOPE: AccountScope<'static> = AccountScope { tenant: "default", account: "bench" };

/// A put of an artifact of that name.
pub(crate) const fn put(name: &str, size: u64) -> Put<'_> {
    Put {
        scope: holdfast::Destination::Account(SCOPE),
        name,
        origin: Origin::Upload,
        media_type: None,
        op_id: None,
        order: None,
        expires_at: None,
        size_hint: Some(size),
        logical_size: None,
        supersedes: None,
    }
}

/// The directory.
pub(crate) struct Place {
    scratch: Scratch,
    text: String,
    /// Its plain files.
    pub(crate) disk: OsDisk,
}

impl Place {
    /// A new directory within that one.
    pub(crate) fn new(within: &Path) -> Result<Self, Error> {
        let scratch = Scratch::within(within, "holdfast-bench")?;
        let path = scratch.path("plain");
        let text = shown(&within.to_string_lossy());
        let disk = OsDisk::create(&path).map_err(|error| Error::io(error, text.clone(), "make a directory"))?;
        Ok(Self { scratch, text, disk })
    }

    /// What a failed call for a plain file means.
    pub(crate) fn failed(&self, what: &'static str) -> impl Fn(io::Error) -> Error + use<'_> {
        move |error| Error::io(error, self.text.clone(), what)
    }

    /// Bytes that can be written here.
    pub(crate) fn free_bytes(&self) -> Result<u64, Error> {
        self.disk.free_bytes().map_err(self.failed("look for free space"))
    }

    /// A path in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.scratch.path(name)
    }

    /// A new directory of files in it.
    pub(crate) fn make_directory(&self, name: &str) -> Result<PathBuf, Error> {
        OsDisk::create(self.path(name)).map_err(self.failed("make a directory"))?;
        Ok(self.path(name))
    }

    /// A directory of files in it, a store's or not.
    pub(crate) fn open_directory(&self, name: &str) -> Result<OsDisk, Error> {
        OsDisk::open(self.path(name)).map_err(self.failed("open a directory"))
    }

    /// Waits until nothing is left to write.
    pub(crate) fn settle(&self) -> Result<(), Error> {
        process::settle(self.disk.path()).map_err(self.failed("sync the filesystem"))
    }

    /// A new store, open for writing.
    pub(crate) fn make_store(&self, name: &str) -> Result<Store, Error> {
        let path = self.scratch.path(name);
        let disk = OsDisk::create(&path).map_err(self.failed("make a directory"))?;
        let world = World { disk: Arc::new(disk), clock: Arc::new(OsClock), entropy: Arc::new(OsEntropy) };
        Store::init(&world, &InitOptions::default())?;
        self.settle()?;
        Store::open(world, &OpenOptions::new(OpenMode::Write, "holdfast bench"))
    }

    /// Closes a store, takes its files out of the page cache, and opens it again.
    pub(crate) fn reopen_cold(&self, store: Store, name: &str) -> Result<Store, Error> {
        store.close()?;
        self.settle()?;
        let world = World::os(&self.scratch.path(name)).map_err(self.failed("open the store's directory"))?;
        let disk = OsDisk::open(self.scratch.path(name)).map_err(self.failed("open the store's directory"))?;
        holdfast_benches::yardstick::drop_caches(&disk).map_err(self.failed("empty the page cache"))?;
        Store::open(world, &OpenOptions::new(OpenMode::Write, "holdfast bench"))
    }

    /// Removes a store that was closed.
    pub(crate) fn remove_store(&self, name: &str) -> Result<(), Error> {
        self.scratch.remove(name)?;
        self.settle()
    }

    /// Removes a plain file.
    pub(crate) fn remove_file(&self, name: &Name) -> Result<(), Error> {
        self.disk.unlink(name).map_err(self.failed("remove a file"))
    }
}

/// Name of a plain file.
pub(crate) fn plain(name: &'static str) -> Name {
    Name::new(name).expect("lower-case letters and dashes")
}
