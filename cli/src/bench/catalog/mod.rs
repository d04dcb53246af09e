//! `bench catalog`: a catalog of many chunks. Look-ups, opening after a kill, memory, and what checkpoints and merges write.
//!
//! Memory and opening are measured in processes of their own: this program runs itself again, with `--child`.

mod fill;
mod generated;
mod keys;
mod look;
mod stored;

use std::{
    path::Path,
    process::{Command, Stdio},
};

use clap::{Args, ValueEnum};
use holdfast::{Error, Kind};

use super::place::Place;
use crate::{
    exit_code::{Failure, Outcome},
    output::invalid,
    session::Session,
};

/// Chunks of a store unless a number is given.
const CHUNKS: u64 = 1_000_000;
/// Look-ups of a kind unless a number is given.
const LOOKUPS: u64 = 1_000_000;

/// What goes with `catalog`.
#[derive(Args)]
pub(crate) struct CatalogArgs {
    /// Chunks of a real store, each of its own blob, for `catalog` [default: 1000000]
    #[arg(long, value_name = "N", conflicts_with = "generated", value_parser = count())]
    chunks: Option<u64>,
    /// Chunks of generated tables without a store, for `catalog`
    #[arg(long, value_name = "N", value_parser = count())]
    generated: Option<u64>,
    /// Look-ups of each kind, for `catalog` [default: 1000000]
    #[arg(long, value_name = "N", value_parser = count())]
    lookups: Option<u64>,
    /// What a process does that this one starts
    #[arg(long, hide = true)]
    child: Option<Child>,
}

fn count() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(1..=1 << 40)
}

/// What is done in a process of its own.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Child {
    /// Puts as many blobs as `--chunks` says behind a checkpoint, says so, and waits to be killed.
    Tail,
    /// Looks up.
    Look,
}

impl CatalogArgs {
    /// True if any of it was given.
    pub(crate) const fn is_given(&self) -> bool {
        self.chunks.is_some() || self.generated.is_some() || self.lookups.is_some() || self.child.is_some()
    }

    /// The rows that there are.
    pub(crate) fn rows(&self) -> Vec<String> {
        let own = if self.generated.is_some() { &generated::ROWS[..] } else { &stored::ROWS };
        own.iter().chain(&look::ROWS).map(|row| (*row).to_owned()).collect()
    }

    /// True in a process that this program started.
    pub(crate) const fn is_child(&self) -> bool {
        self.child.is_some()
    }

    fn plan(&self, rounds: u32, rows: Vec<String>) -> Plan {
        Plan {
            chunks: self.generated.or(self.chunks).unwrap_or(CHUNKS),
            is_generated: self.generated.is_some(),
            lookups: self.lookups.unwrap_or(LOOKUPS),
            rounds,
            rows,
        }
    }
}

/// What to measure.
struct Plan {
    chunks: u64,
    is_generated: bool,
    lookups: u64,
    rounds: u32,
    rows: Vec<String>,
}

impl Plan {
    fn wants(&self, rows: &[&str]) -> bool {
        rows.iter().any(|row| self.rows.iter().any(|wanted| wanted == row))
    }

    /// Refuses what the disk has no room for, before anything is written.
    fn check_room(&self, place: &Place) -> Outcome {
        let a_chunk = if self.is_generated { generated::ROOM } else { stored::ROOM };
        let (room, free) = (self.chunks.saturating_mul(a_chunk).saturating_add(1 << 30), place.free_bytes()?);
        if room <= free {
            return Ok(());
        }
        let message =
            format!("this takes {room} bytes of disk for a while, and {free} are free: fewer chunks, or --dir");
        Err(Error::new(Kind::NoSpace, message).into())
    }

    /// The rows of look-ups, in a process that has done nothing before. Its lines are its own.
    fn look_elsewhere(&self, directory: &Path, place: &Place) -> Outcome {
        if !self.wants(&look::ROWS) {
            return Ok(());
        }
        let (kind, count) = (if self.is_generated { "--generated" } else { "--chunks" }, self.chunks.to_string());
        let (lookups, rounds) = (self.lookups.to_string(), self.rounds.to_string());
        let mut command = again(directory, Child::Look, place)?;
        command.args([kind, &count, "--lookups", &lookups, "--rounds", &rounds, "--rows", &self.rows.join(",")]);
        if std::env::args_os().any(|word| word == "--json") {
            command.arg("--json");
        }
        let status = command.status().map_err(place.failed("run itself again"))?;
        if status.success() { Ok(()) } else { Err(told(status.code())) }
    }
}

/// This program again, over the store or the tables of a directory.
fn again(directory: &Path, child: Child, place: &Place) -> Result<Command, Error> {
    let mut command = Command::new(std::env::current_exe().map_err(place.failed("run itself again"))?);
    let name = if child == Child::Tail { "tail" } else { "look" };
    command.arg("--store").arg(directory).args(["bench", "catalog", "--child", name]).stdin(Stdio::piped());
    Ok(command)
}

/// The failure of a process that has told it.
fn told(code: Option<i32>) -> Failure {
    Failure::Told(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

/// Measures.
pub(crate) fn run(args: &CatalogArgs, rounds: u32, rows: Vec<String>, place: &Place, session: &Session) -> Outcome {
    let plan = args.plan(rounds, rows);
    plan.check_room(place)?;
    session.output.say(format_args!(
        "a catalog of {} chunks, {}; speeds are the best of {rounds}, opens the median\n{:<18} {:>19} {:>19} {:>8}  against",
        plan.chunks,
        if plan.is_generated { "generated" } else { "each a blob of 64 bytes" },
        "row",
        "value",
        "yardstick",
        "ratio",
    ))?;
    if plan.is_generated { generated::run(&plan, place, session) } else { stored::run(&plan, place, session) }
}

/// What a process does that this program started.
pub(crate) fn run_child(args: &CatalogArgs, rounds: u32, rows: Vec<String>, session: &Session) -> Outcome {
    let directory = session.dir()?;
    match args.child {
        Some(Child::Tail) => fill::leave_tail(directory, args.chunks.unwrap_or(1), session),
        Some(Child::Look) => look::run(&args.plan(rounds, rows), directory, session),
        None => Err(invalid("--child is for this program itself").into()),
    }
}
