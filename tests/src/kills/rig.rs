//! One store on a real directory, the binary that works on it, and what it has acknowledged.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
};

use holdfast::{digest::Sha256Stream, ids::Sha256};

use super::{Counts, content::Content};
use crate::{
    binary::{Binary, field, kill, was_killed},
    random::Random,
};

/// The engine commits the progress of a stream after this many bytes.
const PROGRESS: usize = 16 << 20;

/// A store and what is known about it.
pub(super) struct Rig {
    binary: Binary,
    files: PathBuf,
    /// Artifacts that were acknowledged, or found whole, with their digests.
    known: BTreeMap<String, String>,
    /// Those of them that were not read back yet.
    unread: BTreeSet<String>,
    /// Digests of puts that were not answered, each as often as it was asked for.
    open: Vec<String>,
}

impl Rig {
    /// A new store in an empty directory.
    pub(super) fn new(binary: &Path, dir: &Path) -> Result<Self, String> {
        let _ = fs::remove_dir_all(dir);
        let files = dir.join("files");
        fs::create_dir_all(&files).map_err(|e| format!("{}: {e}", files.display()))?;
        let rig = Self {
            binary: Binary::new(binary, dir.join("store")),
            files,
            known: BTreeMap::new(),
            unread: BTreeSet::new(),
            open: Vec::new(),
        };
        rig.binary.succeed(&["init"])?;
        Ok(rig)
    }

    /// Bytes of the store's files.
    pub(super) fn store_len(&self) -> Result<u64, String> {
        let entries = fs::read_dir(self.binary.store()).map_err(|e| e.to_string())?;
        Ok(entries.filter_map(|e| e.ok()?.metadata().ok()).map(|m| m.len()).sum())
    }

    /// Puts, and kills the process on the way, unless it was done before.
    pub(super) fn kill_one(&mut self, random: &mut Random, counts: &mut Counts) -> Result<(), String> {
        let status =
            if random.one_in(3) { self.kill_at_bytes(random, counts)? } else { self.kill_at_acks(random, counts)? };
        if was_killed(status) {
            counts.kills += 1;
            return Ok(());
        }
        counts.ended += 1;
        // A process that ends by itself has put all that it was given and said so: else a store that takes nothing would pass.
        if status.success() && self.open.is_empty() {
            Ok(())
        } else {
            Err(format!("a put ended by itself with {status} and {} of its files unanswered", self.open.len()))
        }
    }

    /// Puts a small file, which must succeed.
    pub(super) fn put_one(&mut self, random: &mut Random, counts: &mut Counts) -> Result<(), String> {
        let len = 1 + random.index(4096);
        let content = Content::new(random, len);
        let path = self.files.join("after");
        fs::write(&path, &content.bytes).map_err(|e| e.to_string())?;
        self.open.push(content.sha256.to_string());
        let output = self.binary.succeed(&["put", &path.to_string_lossy()])?;
        self.acknowledged(String::from_utf8_lossy(&output).lines().map(str::to_owned), counts);
        if self.open.is_empty() { Ok(()) } else { Err("a put that succeeded gave no answer".to_owned()) }
    }

    /// Many files; the kill comes when so many lines were read, or at once.
    fn kill_at_acks(&mut self, random: &mut Random, counts: &mut Counts) -> Result<ExitStatus, String> {
        let mut arguments = vec!["put".to_owned()];
        let count = 1 + random.index(8);
        for n in 0..count {
            let len = Content::len(random);
            let content = Content::new(random, len);
            let path = self.files.join(format!("f{n}"));
            fs::write(&path, &content.bytes).map_err(|e| e.to_string())?;
            arguments.push(path.to_string_lossy().into_owned());
            self.open.push(content.sha256.to_string());
        }
        let after = random.index(count + 1);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut child = self
            .binary
            .command(&arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| e.to_string())?;
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let read = lines.by_ref().take(after).collect::<Result<Vec<_>, _>>().map_err(|e| e.to_string())?;
        let status = kill(&mut child)?;
        // What the process had written before it died was acknowledged too; its last line may be cut.
        let rest = lines.map_while(Result::ok);
        self.acknowledged(read.into_iter().chain(rest), counts);
        Ok(status)
    }

    /// One stream through a pipe; the kill comes when so many bytes were fed, or once all were and the answer is under way.
    fn kill_at_bytes(&mut self, random: &mut Random, counts: &mut Counts) -> Result<ExitStatus, String> {
        let len = if random.one_in(4) { PROGRESS + random.index(12 << 20) } else { random.index(4 << 20) };
        let content = Content::new(random, len);
        let fed = if random.one_in(3) { len } else { random.index(len + 1) };
        self.open.push(content.sha256.to_string());
        let mut child = self
            .binary
            .command(&["put", "-", "--name", "piped"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| e.to_string())?;
        let mut stdin = child.stdin.take().expect("it is piped");
        stdin.write_all(&content.bytes[..fed]).map_err(|e| format!("feed: {e}"))?;
        let mut stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut lines = String::new();
        let status = if fed == len {
            drop(stdin);
            if random.one_in(2) {
                let _ = stdout.read_line(&mut lines);
            }
            kill(&mut child)?
        } else {
            counts.progress += u64::from(fed > PROGRESS + (1 << 20));
            // The pipe stays open: its end would be the end of the stream.
            let status = kill(&mut child)?;
            drop(stdin);
            status
        };
        let _ = stdout.read_to_string(&mut lines);
        self.acknowledged(lines.lines().map(str::to_owned), counts);
        Ok(status)
    }

    /// Notes every whole line of a put.
    fn acknowledged(&mut self, lines: impl Iterator<Item = String>, counts: &mut Counts) {
        for line in lines.filter(|line| line.ends_with('}')) {
            let (Some(id), Some(sha256)) = (field(&line, "id"), field(&line, "sha256")) else { continue };
            if let Some(at) = self.open.iter().position(|open| *open == sha256) {
                self.open.swap_remove(at);
            }
            counts.acked += 1;
            self.unread.insert(id.clone());
            self.known.insert(id, sha256);
        }
    }

    /// Everything that is known is listed and nothing else but whole unanswered puts; what is new reads back; the store verifies.
    pub(super) fn check(&mut self, counts: &mut Counts, deep: bool) -> Result<(), String> {
        let output = self.binary.succeed(&["list"])?;
        let mut listed = BTreeMap::new();
        for line in String::from_utf8_lossy(&output).lines() {
            let (id, sha256) =
                field(line, "id").zip(field(line, "sha256")).ok_or_else(|| format!("no record: {line}"))?;
            listed.insert(id, sha256);
        }
        for (id, sha256) in &self.known {
            if listed.get(id) != Some(sha256) {
                return Err(format!("acknowledged artifact {id} is lost"));
            }
        }
        for (id, sha256) in listed {
            if self.known.contains_key(&id) {
                continue;
            }
            let at = self.open.iter().position(|open| *open == sha256);
            let at = at.ok_or_else(|| format!("artifact {id} has a content that nobody put"))?;
            self.open.swap_remove(at);
            counts.kept += 1;
            self.unread.insert(id.clone());
            self.known.insert(id, sha256);
        }
        counts.dropped += self.open.len() as u64;
        self.open.clear();
        for id in std::mem::take(&mut self.unread) {
            let mut stream = Sha256Stream::default();
            stream.update(&self.binary.succeed(&["get", &id, "-"])?);
            let found: Sha256 = stream.finish();
            if self.known.get(&id) != Some(&found.to_string()) {
                return Err(format!("artifact {id} reads back as {found}"));
            }
        }
        let arguments: &[&str] = if deep { &["verify", "--deep", "--refs"] } else { &["verify"] };
        self.binary.succeed(arguments).map(drop)
    }
}
