//! The binary, a store, and files to put into it.

use std::{
    fs,
    io::{BufWriter, Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use holdfast::{
    AccountScope, Get, Kind, OpenMode, OpenOptions, Put, Store, World,
    digest::Sha256Stream,
    format::artifact::Origin,
    ids::{ArtifactId, Sha256},
};

use crate::random::Random;

const SCOPE: AccountScope<'static> = AccountScope { tenant: "default", account: "default" };
/// Files that one process is given.
const BATCH: usize = 2000;

/// A file that was put.
pub(super) struct Stored {
    pub(super) id: String,
    pub(super) path: String,
    pub(super) sha256: String,
    pub(super) size: u64,
}

/// A line of `put --json`.
pub(super) fn stored(line: &str) -> Result<Stored, String> {
    let text = |name: &str| {
        let start = line.split_once(&format!("\"{name}\":\""))?.1;
        Some(start.split_once('"')?.0.to_owned())
    };
    let size = line.split_once("\"size\":").and_then(|(_, rest)| {
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    });
    let parts = text("id").zip(text("path")).zip(text("sha256")).zip(size);
    let (((id, path), sha256), size) = parts.ok_or_else(|| format!("no line of a put: {line}"))?;
    Ok(Stored { id, path, sha256, size })
}

pub(super) fn sha256_of_file(path: &str) -> Result<String, String> {
    let mut file = fs::File::open(path).map_err(|e| format!("{path}: {e}"))?;
    let (mut stream, mut bytes) = (Sha256Stream::default(), vec![0; 1 << 20]);
    loop {
        match file.read(&mut bytes).map_err(|e| format!("{path}: {e}"))? {
            0 => return Ok(stream.finish().to_string()),
            n => stream.update(&bytes[..n]),
        }
    }
}

/// Readable regular files below some directories, in the order of their names; no name that JSON would escape.
pub(super) fn regular_files(roots: &[&str], count: usize, wanted: impl Fn(&Path) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = roots.iter().rev().map(PathBuf::from).collect();
    while let Some(directory) = open.pop() {
        let Ok(entries) = fs::read_dir(&directory) else { continue };
        let mut entries: Vec<_> = entries.filter_map(Result::ok).map(|e| e.path()).collect();
        entries.sort();
        for path in entries {
            let Ok(meta) = fs::symlink_metadata(&path) else { continue };
            let plain =
                path.to_str().is_some_and(|text| text.bytes().all(|b| b.is_ascii_graphic() && b != b'"' && b != b'\\'));
            if meta.is_dir() {
                open.push(path);
            } else if meta.is_file() && plain && wanted(&path) && fs::File::open(&path).is_ok() {
                found.push(path.to_string_lossy().into_owned());
                if found.len() == count {
                    return found;
                }
            }
        }
    }
    found
}

/// A store made by the binary.
pub(super) struct Machine {
    binary: PathBuf,
    dir: PathBuf,
    store: PathBuf,
}

impl Machine {
    pub(super) fn new(binary: &Path, dir: &Path) -> Result<Self, String> {
        if !binary.exists() {
            return Err(format!("no binary at {}: cargo build --release -p holdfast-cli", binary.display()));
        }
        fs::create_dir_all(dir).map_err(|e| e.to_string())?;
        let machine = Self { binary: binary.to_owned(), dir: dir.to_owned(), store: dir.join("store") };
        machine.run(&["init"])?;
        Ok(machine)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.arg("--store").arg(&self.store).arg("--json").args(arguments).stdin(Stdio::null());
        command
    }

    /// Runs a command that must succeed.
    pub(super) fn run(&self, arguments: &[&str]) -> Result<String, String> {
        let output = self.command(arguments).output().map_err(|e| e.to_string())?;
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if output.status.success() {
            Ok(out.into_owned())
        } else {
            Err(format!("{arguments:?}: {}: {err}", output.status))
        }
    }

    /// Runs a command and gives its peak resident memory, which the kernel keeps while the process is there.
    pub(super) fn measured(&self, arguments: &[&str]) -> Result<(String, u64), String> {
        let mut child = self.command(arguments).stdout(Stdio::piped()).spawn().map_err(|e| e.to_string())?;
        let status = format!("/proc/{}/status", child.id());
        let mut peak = 0;
        while child.try_wait().map_err(|e| e.to_string())?.is_none() {
            let text = fs::read_to_string(&status).unwrap_or_default();
            let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let kilobytes: u64 = line.and_then(|l| l.trim().trim_end_matches(" kB").trim().parse().ok()).unwrap_or(0);
            peak = peak.max(kilobytes << 10);
            std::thread::yield_now();
        }
        let output = child.wait_with_output().map_err(|e| e.to_string())?;
        if !output.status.success() || peak == 0 {
            return Err(format!("{arguments:?}: {}", output.status));
        }
        Ok((String::from_utf8_lossy(&output.stdout).into_owned(), peak))
    }

    pub(super) fn put(&self, files: &[String]) -> Result<Vec<Stored>, String> {
        let mut put = Vec::new();
        for batch in files.chunks(BATCH) {
            let arguments: Vec<&str> = ["put"].into_iter().chain(batch.iter().map(String::as_str)).collect();
            for line in self.run(&arguments)?.lines() {
                put.push(stored(line)?);
            }
        }
        Ok(put)
    }

    pub(super) fn comes_back(&self, stored: &Stored) -> Result<(), String> {
        let target = self.dir.join("back");
        let target = target.to_string_lossy();
        self.run(&["get", &stored.id, &target])?;
        let found = sha256_of_file(&target)?;
        fs::remove_file(&*target).map_err(|e| e.to_string())?;
        if found == stored.sha256 { Ok(()) } else { Err(format!("{} came back as {found}", stored.path)) }
    }

    /// Reads every artifact through the engine, in one process.
    pub(super) fn all_come_back(&self, put: &[Stored]) -> Result<(), String> {
        let world = World::os(&self.store).map_err(|e| e.to_string())?;
        let store = Store::open(world, &OpenOptions::new(OpenMode::Read, "campaign")).map_err(|e| e.to_string())?;
        for stored in put {
            let id = ArtifactId::parse(&stored.id).ok_or("an id that is none")?;
            let mut bytes = Vec::new();
            store.get(SCOPE, id, &Get::WHOLE, &mut bytes).map_err(|e| e.to_string())?;
            if sha256(&bytes).to_string() != stored.sha256 {
                return Err(format!("{} came back with other bytes", stored.path));
            }
        }
        Ok(())
    }

    pub(super) fn verify(&self) -> Result<(), String> {
        self.run(&["verify", "--deep", "--refs"]).map(drop)
    }

    /// One number of `stats`.
    pub(super) fn stat(&self, name: &str) -> Result<u64, String> {
        let text = self.run(&["stats"])?;
        let rest = text.split_once(&format!("\"{name}\":")).ok_or("no such number")?.1;
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().map_err(|_| format!("stats: {text}"))
    }

    /// A file of random bytes.
    pub(super) fn random_file(&self, name: &str, len: u64) -> Result<String, String> {
        let path = self.dir.join(name);
        let mut file = BufWriter::new(fs::File::create(&path).map_err(|e| e.to_string())?);
        let (mut random, mut bytes) = (Random::new(len), vec![0; 1 << 20]);
        for _ in 0..len >> 20 {
            random.fill(&mut bytes);
            file.write_all(&bytes).map_err(|e| e.to_string())?;
        }
        file.flush().map_err(|e| e.to_string())?;
        Ok(path.to_string_lossy().into_owned())
    }

    /// A tmpfs of so many megabytes with a store; `None` where this user may not mount.
    pub(super) fn small_filesystem(&self, megabytes: u64) -> Result<Option<Small>, String> {
        let dir = self.dir.join("small");
        fs::create_dir_all(&dir).map_err(|e| e.to_string())?;
        let options = format!("size={megabytes}m,mode=0700");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(&dir).output();
        if !mounted.is_ok_and(|output| output.status.success()) {
            return Ok(None);
        }
        Ok(Some(Small { dir }))
    }
}

fn sha256(bytes: &[u8]) -> Sha256 {
    let mut stream = Sha256Stream::default();
    stream.update(bytes);
    stream.finish()
}

/// A small filesystem of its own.
pub(super) struct Small {
    dir: PathBuf,
}

impl Small {
    pub(super) fn unmount(&self) {
        let _ = Command::new("umount").arg(&self.dir).output();
    }

    /// Fills it with small and long streams, and gives space back.
    pub(super) fn fill(&self) -> Result<String, String> {
        let store = self.dir.join("store");
        fs::create_dir_all(&store).map_err(|e| e.to_string())?;
        let text = |e: holdfast::Error| e.to_string();
        let filler = self.dir.join("filler");
        fs::write(&filler, vec![1; 12 << 20]).map_err(|e| e.to_string())?;
        let world = World::os(&store).map_err(|e| e.to_string())?;
        Store::init(&world, &holdfast::InitOptions::default()).map_err(text)?;
        let store = Store::open(world, &OpenOptions::new(OpenMode::Write, "campaign")).map_err(text)?;
        let mut random = Random::new(1);
        let mut stored = Vec::new();
        let mut refused = [0; 2];
        for n in 0..400_u64 {
            let long = n % 2 == 1;
            let mut bytes = vec![0; if long { 3 << 20 } else { 100_000 }];
            random.fill(&mut bytes);
            match store.put(&new("f"), &mut bytes.as_slice()) {
                Ok(reply) => stored.push((reply.id, sha256(&bytes))),
                Err(e) if e.kind() == Kind::NoSpace => refused[usize::from(long)] += 1,
                Err(e) => return Err(format!("a put on a full disk: {}", e.kind().as_str())),
            }
        }
        if refused.contains(&0) {
            return Err(format!("the disk did not fill: {refused:?}"));
        }
        all_readable(&store, &stored)?;
        fs::remove_file(&filler).map_err(|e| e.to_string())?;
        for len in [100_000, 3 << 20] {
            let mut bytes = vec![7; len];
            random.fill(&mut bytes);
            let reply = store.put(&new("again"), &mut bytes.as_slice()).map_err(|e| format!("space is back: {e}"))?;
            stored.push((reply.id, sha256(&bytes)));
        }
        all_readable(&store, &stored)?;
        store.close().map_err(text)?;
        let [small, long] = refused;
        Ok(format!(
            "{} puts stored, {small} small and {long} long ones refused with NO_SPACE, all readable, puts again after",
            stored.len()
        ))
    }
}

fn new(name: &str) -> Put<'_> {
    Put {
        scope: holdfast::Destination::Account(SCOPE),
        name,
        origin: Origin::Upload,
        media_type: None,
        op_id: None,
        order: None,
        expires_at: None,
        size_hint: None,
        logical_size: None,
        supersedes: None,
    }
}

fn all_readable(store: &Store, stored: &[(ArtifactId, Sha256)]) -> Result<(), String> {
    for (id, digest) in stored {
        let mut bytes = Vec::new();
        store.get(SCOPE, *id, &Get::WHOLE, &mut bytes).map_err(|e| e.to_string())?;
        if sha256(&bytes) != *digest {
            return Err("other bytes came back".to_owned());
        }
    }
    Ok(())
}
