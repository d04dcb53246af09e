//! Very many small files put into one store by the real binary, which is killed with SIGKILL on the way, again and again: after so many
//! acknowledgements, or every other time at the first table that it begins before. Nothing that was acknowledged may be lost, an open
//! may not go through more of the log than a checkpoint leaves, and no file may stay that nothing names.
//!
//! Where between two system calls a kill lands is the machine's choice; the files and the points that a seed stands for are not.

#![expect(clippy::disallowed_methods, reason = "a campaign against real files and processes")]

mod content;
mod finale;
mod rig;
mod watch;

use std::{
    fs,
    path::{Path, PathBuf},
};

use holdfast::limits::CHECKPOINT_LOG_BYTES;

use crate::{
    campaign::{COMMAND, Outcome, Stopwatch, add_to_totals, release_binary},
    random::Random,
};

use rig::{AHEAD, Rig};

/// Puts very many small files with the binary, kills it on the way, and looks for what is lost or left over.
#[derive(clap::Args, Clone, Debug)]
pub struct Arguments {
    /// Artifacts in all.
    #[arg(long, default_value_t = 50_000)]
    pub artifacts: u64,
    /// Kills in all, spread evenly over the artifacts.
    #[arg(long, default_value_t = 10)]
    pub kills: u64,
    /// The seed of the files and of the points at which the process is killed.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// The binary; `cargo build --release -p holdfast-cli` makes the default.
    #[arg(long)]
    pub binary: Option<PathBuf>,
    /// Where the store is made. By default in memory, where there is such a filesystem: a kill takes nothing from the system, whether it is
    /// synced or not, so that a disk adds nothing but its time.
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// Adds a line to docs/campaigns.txt.
    #[arg(long)]
    pub totals: bool,
}

/// What was seen.
#[derive(Default, Clone, Copy, Debug)]
struct Counts {
    kills: u64,
    /// Of these, while a table was being written.
    at_tables: u64,
    acked: u64,
    /// Puts that were not answered and are there, whole.
    kept: u64,
    read_back: u64,
    /// The most of the log that an open went through.
    replayed_max: u64,
    files: u64,
}

/// Runs the campaign.
pub fn run(arguments: &Arguments) -> Outcome {
    let binary = arguments.binary.clone().unwrap_or_else(release_binary);
    if !binary.exists() {
        println!("small: no binary at {}: cargo build --release -p holdfast-cli", binary.display());
        return Outcome::Broke;
    }
    if arguments.artifacts < AHEAD + arguments.kills {
        println!(
            "small: {} artifacts at least: a process is given {AHEAD} more than it lives for",
            AHEAD + arguments.kills
        );
        return Outcome::Broke;
    }
    let dir = arguments.dir.clone().unwrap_or_else(|| place(&binary));
    let watch = Stopwatch::start();
    let mut counts = Counts::default();
    let done = Rig::new(&binary, &dir, arguments.seed).and_then(|mut rig| put_all(arguments, &mut rig, &mut counts));
    if let Err(what) = &done {
        println!(
            "small: VIOLATION after {} kills and {} acknowledgements: {what}\n  the store is in {}\n  again: {COMMAND} small --artifacts {} --kills {} --seed {}",
            counts.kills,
            counts.acked,
            dir.display(),
            arguments.artifacts,
            arguments.kills,
            arguments.seed
        );
    }
    let Counts { kills, at_tables, acked, kept, read_back, replayed_max, files } = counts;
    let line = format!(
        "small: {acked} puts acknowledged, {kills} kills of which {at_tables} while a table was written, seed {}, {} violations, {kept} kept without an answer, \
         {read_back} read back, an open went through {} KiB of the log at most ({} allowed), {files} files at the end, each of them named, {} s",
        arguments.seed,
        u64::from(done.is_err()),
        replayed_max >> 10,
        CHECKPOINT_LOG_BYTES >> 10,
        watch.elapsed().as_secs()
    );
    println!("{line}");
    if arguments.totals {
        add_to_totals(&line);
    }
    if done.is_ok() && kills == arguments.kills {
        let _ = fs::remove_dir_all(&dir);
        Outcome::Held
    } else {
        Outcome::Broke
    }
}

/// A directory of this process in memory, or one of the target directory.
fn place(binary: &Path) -> PathBuf {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        memory.join(format!("holdfast-small-{}", std::process::id()))
    } else {
        binary.with_file_name("small")
    }
}

fn put_all(arguments: &Arguments, rig: &mut Rig, counts: &mut Counts) -> Result<(), String> {
    let mut random = Random::of(arguments.seed, &[1]);
    // What comes behind the last point keeps the process busy until it is killed.
    let span = arguments.artifacts - AHEAD;
    for kill in 0..arguments.kills {
        let (from, to) = (span * kill / arguments.kills, span * (kill + 1) / arguments.kills);
        // Every other kill looks out for a table: if all did, the table that the last one kept from being written would be the next one's.
        let (at_table, within) = (kill % 2 == 1, random.below((to - from).max(1)));
        rig.kill_at(if at_table { to } else { from + within }, at_table, counts)?;
        rig.look(&mut random, counts)?;
    }
    rig.put_up_to(arguments.artifacts, counts)?;
    rig.look(&mut random, counts)?;
    finale::check(rig, counts)
}
