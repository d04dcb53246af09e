//! `verify`: a read-only check of the whole store.

use std::fmt;

use clap::Args;
use holdfast::{Error, Kind, Problem, Store, VerifyOptions};
use serde::Serialize;

use crate::{
    exit_code::{Failure, Outcome, help},
    output::shown,
    progress::Progress,
    session::Session,
};

/// Check the store without changing it
///
/// Plain: superblock, manifest, frame headers, the commit chain, records. Damage that keeps the store from being opened is reported
/// as a problem like any other.
#[derive(Args, Default)]
#[command(after_help = help(&["holdfast verify", "holdfast verify --deep --refs"], &[0, 1, 2, 3, 5, 6]))]
pub(crate) struct VerifyArgs {
    /// Read every payload: keyed ids of chunks and SHA-256 of blobs
    #[arg(long)]
    pub(crate) deep: bool,
    /// Count all references again
    #[arg(long)]
    pub(crate) refs: bool,
}

#[derive(Serialize)]
pub(crate) struct Checked {
    ok: bool,
    artifacts: u64,
    blobs: u64,
    chunks: u64,
    bytes: u64,
    problems: Vec<Found>,
    /// No problems: names that are not the store's, and files of a writer that did not end.
    strange_files: Vec<String>,
    unnamed_files: Vec<String>,
}

#[derive(Serialize)]
struct Found {
    kind: &'static str,
    file: Option<String>,
    offset: Option<u64>,
    artifact: Option<String>,
    /// For people only: the stable names are the four above.
    #[serde(skip)]
    what: String,
}

impl From<&Problem> for Found {
    fn from(problem: &Problem) -> Self {
        Self {
            kind: problem.kind.as_str(),
            file: problem.file.clone(),
            offset: problem.offset,
            artifact: problem.artifact.map(|id| id.to_string()),
            what: problem.what.clone(),
        }
    }
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Found { kind, file, offset, artifact, what } in &self.problems {
            write!(f, "{kind}: {}", shown(what))?;
            if let Some(file) = file {
                write!(f, " ({file}")?;
                offset.map_or(Ok(()), |offset| write!(f, " at {offset}"))?;
                write!(f, ")")?;
            }
            artifact.as_ref().map_or(Ok(()), |id| write!(f, " (artifact {id})"))?;
            writeln!(f)?;
        }
        for name in &self.strange_files {
            writeln!(f, "note: {} is not a file of the store; it is left alone", shown(name))?;
        }
        for name in &self.unnamed_files {
            writeln!(f, "note: nothing names {}; the next put removes it if there is no damage", shown(name))?;
        }
        write!(
            f,
            "{} artifacts, {} blobs, {} chunks, {} bytes: ",
            self.artifacts, self.blobs, self.chunks, self.bytes
        )?;
        match self.problems.len() {
            0 => write!(f, "no problem found"),
            1 => write!(f, "1 problem found"),
            count => write!(f, "{count} problems found"),
        }
    }
}

pub(crate) fn run(args: &VerifyArgs, session: &Session) -> Outcome {
    let checked = check(args, session)?;
    session.output.line(&checked, &checked)?;
    if checked.ok { Ok(()) } else { Err(Failure::Told(Kind::Corrupt.exit_code())) }
}

fn check(args: &VerifyArgs, session: &Session) -> Result<Checked, Error> {
    let mut progress = Progress::new("verify", 0);
    let options = VerifyOptions { deep: args.deep, refs: args.refs, ..VerifyOptions::default() };
    let report = Store::verify(&session.world()?, &options, &mut |done, total| progress.set_of(done, total))?;
    Ok(Checked {
        ok: report.problems.is_empty(),
        artifacts: report.artifacts,
        blobs: report.blobs,
        chunks: report.chunks,
        bytes: report.bytes,
        problems: report.problems.iter().map(Found::from).collect(),
        strange_files: report.strange_files,
        unnamed_files: report.unnamed_files,
    })
}
