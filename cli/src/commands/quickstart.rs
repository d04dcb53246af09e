//! `quickstart`: a guided tour on real files. It runs the commands' own code and fails when what it shows does not hold.

use std::{
    fmt::Display,
    path::{Path, PathBuf},
};

use clap::Args;
use holdfast::{
    Error, Kind,
    ids::{ArtifactId, Sha256},
};

use super::{
    get::{self, GetArgs},
    init::{self, InitArgs},
    put::{self, PutArgs, Stored},
    stats::{self, Figures, StatsArgs},
    verify::{self, VerifyArgs},
};
use crate::{
    exit_code::{Outcome, help},
    files::{Base, Scratch, make_temporary_directory, same_bytes},
    output::shown,
    session::Session,
};

/// Where files are looked for: this project's own papers, then what most systems have.
const REAL_FILES: [&str; 9] = [
    "README.md",
    "docs/ARCHITECTURE.md",
    "docs/OPERATING.md",
    "format-spec/FORMAT.md",
    "Cargo.lock",
    "/usr/share/common-licenses/GPL-3",
    "/usr/share/common-licenses/Apache-2.0",
    "/usr/share/misc/magic",
    "/usr/share/dict/words",
];
const REAL_FILES_MAX: usize = 5;
/// Long enough for the lane of long files, and for about sixty chunks.
const LONG_FILE: usize = 8 << 20;
/// What the changed copy of the long file may add: the chunk with the change, the one that it runs into, recipe pages.
const CHANGE_MAX: u64 = 1 << 20;

/// Five minutes with a new store: put, see duplicates cost nothing, get back, verify
///
/// The store is made in a fresh temporary directory, or in --store DIR if it is new or empty. `HOLDFAST_STORE` is not looked at: the store
/// that it names is in use.
#[derive(Args)]
#[command(after_help = help(&["holdfast quickstart", "holdfast quickstart --store ./tour"], &[0, 1, 2, 5, 6, 7]))]
pub(crate) struct QuickstartArgs {}

pub(crate) fn run(_: &QuickstartArgs, session: &Session) -> Outcome {
    // Read off the words: the arguments do not say whether the environment gave this one.
    let is_option = |word: &std::ffi::OsStr| word == "--store" || word.as_encoded_bytes().starts_with(b"--store=");
    let dir = match session.named() {
        Some(dir) if std::env::args_os().any(|word| is_option(&word)) => dir.to_owned(),
        _ => make_temporary_directory("holdfast-quickstart")?,
    };
    let scratch = Scratch::new()?;
    Tour { session: &Session::new(Some(dir.clone()), session.tenant.clone(), session.output.json), dir, scratch }.run()
}

struct Tour<'a> {
    session: &'a Session,
    dir: PathBuf,
    scratch: Scratch,
}

impl Tour<'_> {
    fn run(&self) -> Outcome {
        let files = self.files()?;
        self.step("A store is one directory. Make one:", &["init"])?;
        init::run(&InitArgs::default(), self.session)?;

        self.step("Put files. Each line is printed when its file is durable:", &with("put", &files))?;
        let stored = put::put(&PutArgs::of(files.clone()), self.session)?;
        check(stored.len() == files.len(), "every file was stored")?;

        self.duplicate(&files[0])?;
        self.change()?;
        self.get_back(&files[0], &stored[0])?;

        self.step("Check every byte and every reference of the store:", &["verify", "--deep", "--refs"])?;
        verify::run(&VerifyArgs { deep: true, refs: true }, self.session)?;

        self.step("What it all takes:", &["stats"])?;
        stats::run(&StatsArgs {}, self.session)?;
        self.farewell(&stored[0])
    }

    /// The same bytes under another name add a record and nothing else.
    fn duplicate(&self, file: &Path) -> Outcome {
        let before = stats::figures(self.session)?;
        self.step("The same bytes again, under another name:", &["put", "--name", "copy", &file.to_string_lossy()])?;
        let again = PutArgs { name: Some("copy".to_owned()), ..PutArgs::of(vec![file.to_owned()]) };
        let copy = put::put(&again, self.session)?;
        let after = stats::figures(self.session)?;
        self.added(&before, &after)?;
        check(after.logical_bytes == before.logical_bytes + copy[0].size, "the copy counts as an artifact")?;
        check(after.unique_bytes == before.unique_bytes, "the copy adds no bytes")
    }

    /// A change near the front of a long file adds the chunk that it falls into.
    fn change(&self) -> Outcome {
        let mut bytes = noise(LONG_FILE);
        let first = self.scratch.write("version-1.bin", &bytes)?;
        bytes.splice(1000..1000, *b"a few bytes more");
        let second = self.scratch.write("version-2.bin", &bytes)?;

        self.step("A long file of random bytes:", &with("put", std::slice::from_ref(&first)))?;
        put::put(&PutArgs::of(vec![first]), self.session)?;
        let before = stats::figures(self.session)?;
        self.step(
            "... and a version of it with 16 bytes inserted near the front:",
            &with("put", std::slice::from_ref(&second)),
        )?;
        put::put(&PutArgs::of(vec![second]), self.session)?;
        let after = stats::figures(self.session)?;
        self.added(&before, &after)?;
        check(after.unique_bytes - before.unique_bytes <= CHANGE_MAX, "a small change adds little")
    }

    fn get_back(&self, file: &Path, stored: &Stored) -> Outcome {
        let back = self.scratch.path("back");
        let (id, sha256) = parsed(stored)?;
        self.step(
            "Get the first file back, checked against its SHA-256:",
            &["get", "--expect-sha256", &stored.sha256, &stored.id, &back.to_string_lossy()],
        )?;
        get::run(&GetArgs { path: Some(back.clone()), expect_sha256: Some(sha256), ..GetArgs::of(id) }, self.session)?;
        check(same_bytes(file, &back)?, "the file came back as it was")
    }

    /// Files to put: real ones if there are some, else made up.
    fn files(&self) -> Outcome<Vec<PathBuf>> {
        let there = |path: &str| Base::Anywhere.open(Path::new(path)).is_ok_and(|(_, len)| len > 0);
        let mut files: Vec<_> =
            REAL_FILES.into_iter().filter(|path| there(path)).take(REAL_FILES_MAX).map(PathBuf::from).collect();
        if files.len() < 2 {
            files.push(self.scratch.write("notes.txt", "notes of a day\n".repeat(500).as_bytes())?);
            files.push(self.scratch.write("noise.bin", &noise(100_000))?);
        }
        Ok(files)
    }

    fn step(&self, what: &str, command: &[impl AsRef<str>]) -> Outcome {
        let words: Vec<_> = command.iter().map(|word| shown(word.as_ref())).collect();
        self.session.output.say(format_args!("\n{what}\n  $ holdfast {}", words.join(" ")))
    }

    fn added(&self, before: &Figures, after: &Figures) -> Outcome {
        self.session.output.say(format_args!(
            "  bytes of artifacts: {} more; bytes kept: {} more",
            after.logical_bytes - before.logical_bytes,
            after.unique_bytes - before.unique_bytes
        ))
    }

    fn farewell(&self, stored: &Stored) -> Outcome {
        let dir = shown(&self.dir.to_string_lossy());
        let line = |text: &dyn Display| self.session.output.say(text);
        line(&"\nAll of it held. Next:")?;
        if let Some(bin) = std::env::current_exe().ok().as_deref().and_then(Path::parent) {
            line(&format_args!("  export PATH=$PATH:{}", shown(&bin.to_string_lossy())))?;
        }
        line(&format_args!("  export HOLDFAST_STORE={dir}"))?;
        line(&"  holdfast list")?;
        line(&format_args!("  holdfast stat {}", stored.id))?;
        line(&format_args!("  holdfast inspect {dir}/superblock"))?;
        line(&"  holdfast put --help")?;
        line(&format_args!("The store stays in {dir}; remove the directory when you are done."))
    }
}

fn with(command: &str, files: &[PathBuf]) -> Vec<String> {
    std::iter::once(command.to_owned()).chain(files.iter().map(|file| file.to_string_lossy().into_owned())).collect()
}

fn parsed(stored: &Stored) -> Outcome<(ArtifactId, Sha256)> {
    let id = ArtifactId::parse(&stored.id).zip(Sha256::parse(&stored.sha256));
    Ok(id.ok_or_else(|| Error::new(Kind::Corrupt, "quickstart: the reply has no id and SHA-256 in their form"))?)
}

fn check(held: bool, what: &str) -> Outcome {
    if held { Ok(()) } else { Err(Error::new(Kind::Corrupt, format!("quickstart: this did not hold: {what}")).into()) }
}

/// Bytes that neither repeat nor compress, the same ones each time (xorshift64).
fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}
