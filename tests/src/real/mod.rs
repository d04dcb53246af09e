//! Real files of this machine through the real binary: round trips, what a duplicate and text cost, memory at gigabytes, a full disk.

#![expect(clippy::disallowed_methods, reason = "a campaign against real files and processes")]

mod machine;

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::campaign::{Outcome, Stopwatch, release_binary};

use machine::Machine;

/// Puts real files into a store and gets them back.
#[derive(clap::Args, Clone, Debug)]
pub struct Arguments {
    /// Files of the machine at most.
    #[arg(long, default_value_t = 12_000)]
    pub files: usize,
    /// Gigabytes of the file whose put and get are measured for memory.
    #[arg(long, default_value_t = 8)]
    pub gigabytes: u64,
    /// The binary; `cargo build --release -p holdfast-cli` makes the default.
    #[arg(long)]
    pub binary: Option<PathBuf>,
    /// Where the stores are made; a directory of the target directory if not given.
    #[arg(long)]
    pub dir: Option<PathBuf>,
}

/// Peak memory that a put or get may take.
const MEMORY_MAX: u64 = 128 << 20;
/// A megabyte.
const MIB: u64 = 1 << 20;

/// Runs the campaign: every part prints its figure, and what does not hold.
pub fn run(arguments: &Arguments) -> Outcome {
    let binary = arguments.binary.clone().unwrap_or_else(release_binary);
    let dir = arguments.dir.clone().unwrap_or_else(|| binary.with_file_name("real"));
    let watch = Stopwatch::start();
    let parts: [(&str, Part); 5] = [
        ("files of the machine", files_of_the_machine),
        ("text", text),
        ("a random gigabyte", random_gigabyte),
        ("memory", memory),
        ("a full disk", full_disk),
    ];
    let mut outcome = Outcome::Held;
    for (name, part) in parts {
        let _ = fs::remove_dir_all(&dir);
        let result = Machine::new(&binary, &dir).and_then(|machine| part(&machine, arguments));
        match result {
            Ok(figure) => println!("{name}: {figure}"),
            Err(what) => {
                println!("VIOLATION {name}: {what}");
                outcome = Outcome::Broke;
            }
        }
    }
    let _ = fs::remove_dir_all(&dir);
    println!("real: {} s", watch.elapsed().as_secs());
    outcome
}

type Part = fn(&Machine, &Arguments) -> Result<String, String>;

/// Every file goes in by the command line and comes back, one process for each hundredth of them and the engine for all.
fn files_of_the_machine(machine: &Machine, arguments: &Arguments) -> Result<String, String> {
    let files = machine::regular_files(&["/usr/share", "/usr/lib"], arguments.files, |_| true);
    let put = machine.put(&files)?;
    if put.len() != files.len() {
        return Err(format!("{} of {} files were put", put.len(), files.len()));
    }
    for stored in &put {
        if machine::sha256_of_file(&stored.path)? != stored.sha256 {
            return Err(format!("a file was put under another SHA-256: {}", stored.path));
        }
    }
    machine.all_come_back(&put)?;
    for stored in put.iter().step_by(100) {
        machine.comes_back(stored)?;
    }
    machine.verify()?;
    let bytes: u64 = put.iter().map(|stored| stored.size).sum();
    Ok(format!("{} files, {} MiB, equal by SHA-256; verify --deep --refs finds nothing", put.len(), bytes / MIB))
}

/// The machine's own documentation takes less than half of its size.
fn text(machine: &Machine, arguments: &Arguments) -> Result<String, String> {
    let is_text = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        name == "copyright" || ["txt", "md", "rst", "html"].iter().any(|end| name.ends_with(&format!(".{end}")))
    };
    let files = machine::regular_files(&["/usr/share/doc", "/usr/share/common-licenses"], arguments.files, is_text);
    machine.put(&files)?;
    let (unique, live) = (machine.stat("unique_bytes")?, machine.stat("live_bytes")?);
    if live * 2 >= unique {
        return Err(format!("{unique} bytes of text are stored in {live}"));
    }
    Ok(format!(
        "{} files, {unique} bytes, each content once, stored in {live} ({} %)",
        files.len(),
        live * 100 / unique
    ))
}

/// A file that nothing compresses comes back; under another name it takes next to nothing.
fn random_gigabyte(machine: &Machine, _: &Arguments) -> Result<String, String> {
    let path = machine.random_file("gigabyte", 1 << 30)?;
    let put = machine.put(&[path])?;
    machine.comes_back(&put[0])?;
    // The next open for writing lets the reserve grow to its share of the first file; the second one has no part in that.
    let small = machine.random_file("small", 1)?;
    machine.run(&["put", &small])?;
    let before = machine.stat("disk_bytes")?;
    machine.run(&["put", &put[0].path, "--name", "again"])?;
    let added = machine.stat("disk_bytes")? - before;
    if added * 200 >= put[0].size {
        return Err(format!("the same file again added {added} bytes"));
    }
    machine.verify()?;
    Ok(format!(
        "comes back equal; again under another name: {added} bytes more on disk ({:.3} %)",
        permille(added, put[0].size)
    ))
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn permille(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole as f64
}

/// Memory of a put and a get of many gigabytes.
fn memory(machine: &Machine, arguments: &Arguments) -> Result<String, String> {
    let path = machine.random_file("large", arguments.gigabytes << 30)?;
    let (line, put_peak) = machine.measured(&["put", &path])?;
    let stored = machine::stored(&line)?;
    let target = format!("{path}.back");
    let (_, get_peak) = machine.measured(&["get", &stored.id, &target])?;
    if machine::sha256_of_file(&target)? != stored.sha256 {
        return Err("the file came back with another SHA-256".to_owned());
    }
    if put_peak.max(get_peak) > MEMORY_MAX {
        return Err(format!("peak memory: put {put_peak}, get {get_peak} bytes"));
    }
    let figure =
        format!("put of {} GiB {} MiB, get {} MiB at the peak", arguments.gigabytes, put_peak / MIB, get_peak / MIB);
    Ok(figure)
}

/// A small filesystem of its own is filled: puts fail with `NO_SPACE`, all that was stored can be read, and when space is back puts work
/// again in the same process.
fn full_disk(machine: &Machine, _: &Arguments) -> Result<String, String> {
    let Some(small) = machine.small_filesystem(48)? else {
        return Ok("skipped: this user cannot mount a small filesystem".to_owned());
    };
    let result = small.fill();
    small.unmount();
    result
}
