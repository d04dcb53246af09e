//! `repair`: damaged copies are written again from good ones.

use std::fmt;

use clap::Args;
use holdfast::{Kind, Store, VerifyOptions};
use serde::Serialize;

use crate::{
    exit_code::{Failure, Outcome, help},
    output::shown,
    progress::Progress,
    session::Session,
};

/// Write damaged copies again from good ones
///
/// Tables and the manifest have mirrors, the superblock four copies, the header of a segment two. Only bytes that are damaged are
/// overwritten, and only where another copy holds; nothing is deleted. What is damaged in all its copies stays as it is: it is counted,
/// the artifacts that it takes are named, and the exit code is 5. Payloads of files have one copy, which `verify --deep` reads. No
/// process may have the store open.
#[derive(Args)]
#[command(after_help = help(&["holdfast repair --dry-run", "holdfast repair"], &[0, 1, 2, 3, 5, 6, 7]))]
pub(crate) struct RepairArgs {
    /// Say what would be written, and change nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Serialize)]
struct Repaired {
    plan: Vec<Step>,
    lost: Vec<Lost>,
    done: bool,
    /// Damaged places that are left; with `--dry-run` those that are there.
    problems: u64,
}

#[derive(Serialize)]
struct Step {
    action: &'static str,
    file: String,
    bytes: u64,
}

#[derive(Serialize)]
struct Lost {
    artifact: String,
    why: String,
}

impl fmt::Display for Repaired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.done { "written again" } else { "to be written again" };
        for Step { action: _, file, bytes } in &self.plan {
            writeln!(f, "{file}: {bytes} bytes {verb}")?;
        }
        for Lost { artifact, why } in &self.lost {
            writeln!(f, "artifact {artifact}: {}", shown(why))?;
        }
        match (self.done, self.plan.len(), self.problems) {
            (true, 0, 0) => {
                write!(f, "no copy is damaged; payloads of files have one: `holdfast verify --deep` reads them")
            }
            (true, files, 0) => write!(f, "repaired: {files} copies; no problem is left"),
            (true, files, left) => {
                write!(f, "repaired: {files} copies; {left} problems are left: see `holdfast verify`")
            }
            (false, files, found) => write!(f, "{found} problems; {files} copies can be written again"),
        }
    }
}

pub(crate) fn run(args: &RepairArgs, session: &Session) -> Outcome {
    let world = session.world()?;
    let plan = Store::repair(&world, args.dry_run)?;
    let mut progress = Progress::new("verify", 0);
    let report = Store::verify(&world, &VerifyOptions::default(), &mut |done, total| progress.set_of(done, total))?;
    drop(progress);
    let lost = report.problems.iter().filter_map(|problem| {
        let artifact = problem.artifact?.to_string();
        Some(Lost { artifact, why: problem.what.clone() })
    });
    let repaired = Repaired {
        plan: plan
            .into_iter()
            .map(|step| Step { action: step.what.as_str(), file: step.file, bytes: step.bytes })
            .collect(),
        lost: lost.collect(),
        done: !args.dry_run,
        problems: report.problems.len() as u64,
    };
    session.output.line(&repaired, &repaired)?;
    if args.dry_run || repaired.problems == 0 { Ok(()) } else { Err(Failure::Told(Kind::Corrupt.exit_code())) }
}
