//! `stats`: how much there is of what.

use std::fmt;

use clap::Args;
use holdfast::OpenMode;
use serde::Serialize;

use crate::{
    exit_code::{Outcome, help},
    output::shown,
    session::Session,
};

/// Show how much the store holds and what it takes
#[derive(Args)]
#[command(after_help = help(&["holdfast stats"], &[0, 1, 2, 3, 5, 6]))]
pub(crate) struct StatsArgs {}

#[derive(Serialize)]
pub(crate) struct Figures {
    pub(crate) artifacts: u64,
    blobs: u64,
    chunks: u64,
    pub(crate) logical_bytes: u64,
    pub(crate) unique_bytes: u64,
    pub(crate) live_bytes: u64,
    dead_bytes: u64,
    disk_bytes: u64,
    segments: u64,
    tables: u64,
    replayed_bytes: u64,
    mirror_reads: u64,
    mended_pages: u64,
    /// Why the store takes no writes; null if it does.
    read_only: Option<String>,
    /// Damaged places that the open found.
    problems: u64,
    /// Files in the directory that are not the store's.
    strange_files: Vec<String>,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "artifacts      {:>14}", self.artifacts)?;
        writeln!(f, "blobs          {:>14}", self.blobs)?;
        writeln!(f, "chunks         {:>14}", self.chunks)?;
        writeln!(f, "logical bytes  {:>14}  sizes of all artifacts", self.logical_bytes)?;
        writeln!(f, "unique bytes   {:>14}  of chunks in use, each once", self.unique_bytes)?;
        writeln!(f, "live bytes     {:>14}  as stored, with headers", self.live_bytes)?;
        writeln!(f, "dead bytes     {:>14}  in segments, of no use any more", self.dead_bytes)?;
        writeln!(f, "disk bytes     {:>14}  allocated by all files", self.disk_bytes)?;
        writeln!(f, "segments       {:>14}", self.segments)?;
        writeln!(f, "tables         {:>14}", self.tables)?;
        writeln!(
            f,
            "replayed bytes {:>14}  of the log, since the last checkpoint: an open reads them",
            self.replayed_bytes
        )?;
        writeln!(f, "mirror reads   {:>14}  of damaged table pages, since the open", self.mirror_reads)?;
        write!(f, "mended pages   {:>14}  of these, written again", self.mended_pages)?;
        for name in &self.strange_files {
            write!(f, "\nnot the store's, left alone: {}", shown(name))?;
        }
        Ok(())
    }
}

pub(crate) fn run(_: &StatsArgs, session: &Session) -> Outcome {
    let figures = figures(session)?;
    session.output.line(&figures, &figures)
}

/// The figures of the store.
pub(crate) fn figures(session: &Session) -> Outcome<Figures> {
    let store = session.open(OpenMode::Read, "stats")?;
    session.warn_of_damage(&store);
    let stats = store.stats();
    let report = store.report().clone();
    let closed = store.close();
    let stats = stats?;
    closed?;
    Ok(Figures {
        artifacts: stats.artifacts,
        blobs: stats.blobs,
        chunks: stats.chunks,
        logical_bytes: stats.logical_bytes,
        unique_bytes: stats.unique_bytes,
        live_bytes: stats.live_bytes,
        dead_bytes: stats.dead_bytes,
        disk_bytes: stats.disk_bytes,
        segments: stats.segments,
        tables: stats.tables,
        replayed_bytes: report.replayed_bytes,
        mirror_reads: stats.mirror_reads,
        mended_pages: stats.mended_pages,
        read_only: report.read_only,
        problems: report.problems.len() as u64,
        strange_files: report.strange_files,
    })
}
