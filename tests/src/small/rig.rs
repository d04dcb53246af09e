//! One store on a real directory, the binary that puts numbered files into it, and what it has acknowledged.
//!
//! A process puts its files one after the other, so that the store has a first part of them at each time, in their order: what was
//! acknowledged, and at most one more.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, ExitStatus, Stdio},
};

use holdfast::{ids::ArtifactId, limits::CHECKPOINT_LOG_BYTES};

use super::{Counts, content, watch::Watch};
use crate::{
    binary::{Binary, field, kill, number, was_killed},
    random::Random,
};

/// Files that a process is given behind the point at which it is killed, so that it has something to do when the kill comes. More lines
/// than a pipe holds.
pub(super) const AHEAD: u64 = 1000;
/// Files that one process is given: their names are its arguments.
const BATCH: u64 = 20_000;
/// Artifacts that are read back after each kill.
const SAMPLE: usize = 3;

/// A store and what is known about it.
pub(super) struct Rig {
    pub(super) binary: Binary,
    pub(super) seed: u64,
    /// Artifacts that were acknowledged, or found whole, by their numbers.
    pub(super) known: Vec<ArtifactId>,
    /// So many of them were listed.
    listed: usize,
    files: PathBuf,
}

impl Rig {
    /// A new store in an empty directory.
    pub(super) fn new(binary: &Path, dir: &Path, seed: u64) -> Result<Self, String> {
        let _ = fs::remove_dir_all(dir);
        let files = dir.join("files");
        fs::create_dir_all(&files).map_err(|e| format!("{}: {e}", files.display()))?;
        let binary = Binary::new(binary, dir.join("store"));
        binary.succeed(&["init"])?;
        Ok(Self { binary, seed, known: Vec::new(), listed: 0, files })
    }

    /// The number of the next file.
    fn next(&self) -> u64 {
        self.known.len() as u64
    }

    /// Puts up to a number; each process ends by itself.
    pub(super) fn put_up_to(&mut self, end: u64, counts: &mut Counts) -> Result<(), String> {
        while self.next() < end {
            let to = end.min(self.next() + BATCH);
            let (mut child, mut lines) = self.begin(to)?;
            while self.take_line(&mut lines, counts)? {}
            let status = child.wait().map_err(|e| e.to_string())?;
            if !status.success() || self.next() != to {
                return Err(format!("a put that nobody killed ended with {status} before file {}", self.next()));
            }
        }
        Ok(())
    }

    /// Puts, and kills the process once so many artifacts were acknowledged; or, `at_table`, when it begins a table before that.
    pub(super) fn kill_at(&mut self, point: u64, at_table: bool, counts: &mut Counts) -> Result<(), String> {
        self.put_up_to(point.saturating_sub(BATCH - AHEAD), counts)?;
        let point = point.max(self.next());
        let watch = Watch::new(self.binary.store())?;
        let (mut child, mut lines) = self.begin(point + AHEAD)?;
        while self.next() < point {
            if at_table && watch.table_before_line(&lines)? {
                counts.at_tables += 1;
                break;
            }
            if !self.take_line(&mut lines, counts)? {
                break;
            }
        }
        let status = kill(&mut child)?;
        // What the process had written before it died was acknowledged too.
        while self.take_line(&mut lines, counts)? {}
        counts.kills += 1;
        must_be_killed(status, self.next())
    }

    /// A process that puts the files from the next one to before `end`.
    fn begin(&self, end: u64) -> Result<(Child, BufReader<ChildStdout>), String> {
        let _ = fs::remove_dir_all(&self.files);
        fs::create_dir(&self.files).map_err(|e| format!("{}: {e}", self.files.display()))?;
        let names: Vec<String> = (self.next()..end).map(|number| number.to_string()).collect();
        for (name, number) in names.iter().zip(self.next()..) {
            let path = self.files.join(name);
            fs::write(&path, content::of(self.seed, number)).map_err(|e| format!("{}: {e}", path.display()))?;
        }
        let root = self.files.to_string_lossy();
        let mut command = self.binary.command(&["put", "--root", &root]);
        command.args(&names).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|e| e.to_string())?;
        let lines = BufReader::new(child.stdout.take().expect("it is piped"));
        Ok((child, lines))
    }

    /// Notes the next acknowledgement. `false`: there is none any more; a line that was cut is none.
    fn take_line(&mut self, lines: &mut BufReader<ChildStdout>, counts: &mut Counts) -> Result<bool, String> {
        let mut line = String::new();
        lines.read_line(&mut line).map_err(|e| format!("read an answer: {e}"))?;
        if !line.ends_with('\n') {
            return Ok(false);
        }
        let id = self.is_number(&line, self.next())?;
        self.known.push(id);
        counts.acked += 1;
        Ok(true)
    }

    /// The id of a record that must be that of a number: its name and its digest.
    pub(super) fn is_number(&self, line: &str, number: u64) -> Result<ArtifactId, String> {
        let (name, sha256) = (field(line, "name"), field(line, "sha256"));
        if name != Some(number.to_string())
            || sha256 != Some(content::sha256(&content::of(self.seed, number)).to_string())
        {
            return Err(format!("instead of artifact {number}: {}", line.trim_end()));
        }
        field(line, "id").and_then(|id| ArtifactId::parse(&id)).ok_or_else(|| format!("no id: {}", line.trim_end()))
    }

    /// Opens the store that a process left, and looks at what came since the last time.
    pub(super) fn look(&mut self, random: &mut Random, counts: &mut Counts) -> Result<(), String> {
        self.list_what_is_new(counts)?;
        let stats = String::from_utf8_lossy(&self.binary.succeed(&["stats"])?).into_owned();
        let of = |name| number(&stats, name).ok_or_else(|| format!("stats without {name}: {stats}"));
        if of("artifacts")? != self.next() {
            return Err(format!("{} artifacts are known, and the store counts {}", self.next(), of("artifacts")?));
        }
        let replayed = of("replayed_bytes")?;
        counts.replayed_max = counts.replayed_max.max(replayed);
        if replayed > CHECKPOINT_LOG_BYTES {
            return Err(format!("an open went through {replayed} bytes of the log"));
        }
        for _ in 0..SAMPLE.min(self.known.len()) {
            let number = random.index(self.known.len());
            let bytes = self.binary.succeed(&["get", &self.known[number].to_string(), "-"])?;
            if bytes != content::of(self.seed, number as u64) {
                return Err(format!("artifact {number} reads back as something else"));
            }
            counts.read_back += 1;
        }
        Ok(())
    }

    /// Behind what was listed before stands what was acknowledged since, in its order, and at most one that was not answered.
    fn list_what_is_new(&mut self, counts: &mut Counts) -> Result<(), String> {
        let last = self.listed.checked_sub(1).map(|last| self.known[last].to_string());
        let arguments = last.iter().fold(vec!["list"], |list, last| [&list[..], &["--after", last]].concat());
        let mut listed = Vec::new();
        self.binary.each_line(&arguments, &mut |line| {
            listed.push(self.is_number(line, (self.listed + listed.len()) as u64)?);
            Ok(())
        })?;
        let acked = &self.known[self.listed..];
        if !listed.starts_with(acked) {
            return Err(format!("{} acknowledged since the last kill, {} of them listed", acked.len(), listed.len()));
        }
        let kept = &listed[acked.len()..];
        if kept.len() > 1 {
            return Err(format!("{} artifacts came without an answer, of one process", kept.len()));
        }
        counts.kept += kept.len() as u64;
        self.known.extend(kept);
        self.listed = self.known.len();
        Ok(())
    }
}

/// A process that ends by itself was not killed where it should be.
fn must_be_killed(status: ExitStatus, next: u64) -> Result<(), String> {
    if was_killed(status) { Ok(()) } else { Err(format!("a put ended by itself with {status} before file {next}")) }
}
