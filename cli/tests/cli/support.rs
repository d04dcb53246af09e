//! A store in a temporary directory, files beside it, and the binary run on them.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::Value;

/// The binary, with nothing of the caller's environment that changes what it does.
pub(crate) fn holdfast() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
    command.env_remove("HOLDFAST_STORE").stdin(Stdio::null());
    command
}

/// What a run left behind.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) bytes: Vec<u8>,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!err.contains("panicked"), "{err}");
        Self {
            code: output.status.code().expect("no signal ended it"),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err,
            bytes: output.stdout,
        }
    }
}

impl Ran {
    /// It ended well and said nothing on standard error.
    #[track_caller]
    pub(crate) fn well(self) -> Self {
        assert_eq!((self.code, self.err.as_str()), (0, ""), "{}", self.out);
        self
    }

    /// It ended with that code and named that kind.
    #[track_caller]
    pub(crate) fn failed(self, code: i32, kind: &str) -> Self {
        assert_eq!(self.code, code, "{}{}", self.out, self.err);
        assert!(self.err.contains(kind), "{kind} is not in: {}", self.err);
        self
    }

    /// Its lines of standard output, as JSON.
    #[track_caller]
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).expect("each line is an object")).collect()
    }

    /// Its only line.
    #[track_caller]
    pub(crate) fn line(&self) -> Value {
        let mut lines = self.lines();
        assert_eq!(lines.len(), 1, "{}", self.out);
        lines.remove(0)
    }
}

/// A directory with a store in it.
pub(crate) struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    /// Without a store.
    pub(crate) fn empty() -> Self {
        Self { directory: tempfile::tempdir().expect("a temporary directory") }
    }

    /// With a new store of small segments, so that the tests are quick.
    pub(crate) fn new() -> Self {
        let place = Self::empty();
        place.run(["init", "--segment-size", "1M", "--log-segment-size", "1M"]).well();
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.path("store")
    }

    /// A file beside the store.
    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).expect("written");
        path
    }

    /// The binary on this store, in this directory.
    pub(crate) fn command(&self) -> Command {
        let mut command = holdfast();
        command.arg("--store").arg(self.store()).current_dir(self.directory.path());
        command
    }

    pub(crate) fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Ran {
        self.command().args(args).output().expect("it starts").into()
    }

    pub(crate) fn json<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Ran {
        self.command().arg("--json").args(args).output().expect("it starts").into()
    }

    /// Puts bytes under a name and gives the artifact's id.
    pub(crate) fn put(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.write("to-put", bytes);
        let line = self.json([OsStr::new("put"), "--name".as_ref(), name.as_ref(), path.as_ref()]).well().line();
        text(&line, "id")
    }

    /// Names in a directory beside the store.
    pub(crate) fn names(&self, directory: &str) -> BTreeSet<String> {
        names(&self.path(directory))
    }
}

pub(crate) fn names(directory: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(directory).expect("it is a directory");
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

/// A string of an object.
#[track_caller]
pub(crate) fn text(object: &Value, key: &str) -> String {
    object[key].as_str().unwrap_or_else(|| panic!("{key} is no string in {object}")).to_owned()
}

/// Keys of an object.
#[track_caller]
pub(crate) fn keys(object: &Value) -> Vec<&str> {
    object.as_object().unwrap_or_else(|| panic!("not an object: {object}")).keys().map(String::as_str).collect()
}

/// Bytes that neither repeat nor compress, different for each seed.
pub(crate) fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..len).map(|_| next().to_le_bytes()[3]).collect()
}
