//! Seeded bugs: a campaign that does not notice them proves nothing. Each must break something within 80,000 images of the gate's
//! first seed.
//!
//! [`Canary::UnsaltedChecksums`] is noticed by the independent parser alone: segments are zeroed before use, so that no crash shows the
//! engine a frame of a former life. Salt is the second line behind that.

use std::{
    process::Command,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
};

use holdfast::canary::{self, Canary};

use crate::{
    campaign::{Outcome, Stopwatch, keep_panics_quiet},
    coverage::Coverage,
    crash::{self, explore::Counts},
    faults,
};

/// Bugs that are looked for at a time.
const PROCESSES: usize = 2;

/// Turns on the seeded bugs and waits for the crash campaign to notice.
#[derive(clap::Args, Clone, Debug)]
pub struct Arguments {
    /// Give up on a bug after so many images.
    #[arg(long, default_value_t = 80_000)]
    pub images: u64,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    pub from: u64,
    /// Only this one, by its number.
    #[arg(long)]
    pub only: Option<u8>,
}

/// Runs the campaign: the bugs side by side, each in a process of its own, since a bug is chosen for the whole process.
pub fn run(arguments: &Arguments) -> Outcome {
    keep_panics_quiet();
    if let Some(number) = arguments.only {
        let bug = Canary::ALL.into_iter().find(|bug| *bug as u8 == number);
        return bug.map_or(Outcome::Broke, |bug| one(bug, arguments));
    }
    let (next, broke) = (AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..PROCESSES {
            scope.spawn(|| {
                while let Some(bug) = Canary::ALL.get(next.fetch_add(1, Ordering::Relaxed)) {
                    broke.fetch_or(!alone(*bug, arguments), Ordering::Relaxed);
                }
            });
        }
    });
    if broke.into_inner() { Outcome::Broke } else { Outcome::Held }
}

/// Runs this program for one bug. True if it was caught.
fn alone(bug: Canary, arguments: &Arguments) -> bool {
    let run = || {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["canaries", "--only", &(bug as u8).to_string()]);
        command.args(["--images", &arguments.images.to_string(), "--from", &arguments.from.to_string()]);
        command.status()
    };
    match run() {
        Ok(status) => status.success(),
        Err(error) => {
            println!("{:>2} {bug:?}: the campaign cannot be started: {error}", bug as u8);
            false
        }
    }
}

/// Turns on a bug and waits for a campaign to notice.
fn one(bug: Canary, arguments: &Arguments) -> Outcome {
    let watch = Stopwatch::start();
    canary::choose(Some(bug));
    // A failed sync is no crash.
    let (images, caught) = if matches!(bug, Canary::PoisonIgnored | Canary::TableSyncRetried) {
        faults::until_violation()
    } else {
        until_violation(bug, arguments)
    };
    canary::choose(None);
    let seconds = watch.elapsed().as_secs();
    // A bug that shows without a crash needs no campaign, so that it proves nothing about one.
    let caught = caught.filter(|_| images > 0);
    let what = caught.as_deref().unwrap_or("NOT CAUGHT by a crash");
    println!("{:>2} {bug:<20?} {images:>7} images {seconds:>4} s  {what}", bug as u8);
    if caught.is_some() { Outcome::Held } else { Outcome::Broke }
}

/// Runs the crash campaign until something breaks: images, and what broke.
fn until_violation(bug: Canary, arguments: &Arguments) -> (u64, Option<String>) {
    let (counts, coverage) = (Counts::default(), Coverage::default());
    // One thread, so that the number of images is the same each time.
    let (from, threads) = (arguments.from, 1);
    // One crash of each kind at each place meets more workloads; the bytes that are left in a file show in few of its crashes.
    let per_mode = (bug != Canary::RecycledNotZeroed).then_some(1);
    let crash = crash::Arguments { from, threads, per_mode, ..crash::Arguments::default() };
    let end = crash::search(&crash, &counts, &coverage, &|counts| counts.sum() >= arguments.images);
    let what = end.violation.map(|violation| {
        let text: String = violation.what.chars().take(110).collect();
        format!("{}: {text}", violation.path)
    });
    (counts.sum(), what)
}
