//! `checkpoint`: what the log has brought becomes tables.

use std::fmt;

use clap::Args;
use holdfast::OpenMode;
use serde::Serialize;

use crate::{
    exit_code::{Outcome, help},
    session::Session,
};

/// Write the catalog's tables now, so that the next open replays nothing
///
/// A store does this by itself when its log has grown by 256 MiB, or its records in memory by 16 MiB.
#[derive(Args)]
#[command(after_help = help(&["holdfast checkpoint"], &[0, 1, 2, 3, 5, 6, 7]))]
pub(crate) struct CheckpointArgs {}

#[derive(Serialize)]
struct Done {
    generation: u64,
    tables: u64,
    log_bytes_released: u64,
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "checkpoint: manifest {}, {} tables", self.generation, self.tables)?;
        match self.log_bytes_released {
            0 => Ok(()),
            bytes => write!(f, ", {bytes} bytes of log given back"),
        }
    }
}

pub(crate) fn run(_: &CheckpointArgs, session: &Session) -> Outcome {
    let store = session.open(OpenMode::Write, "checkpoint")?;
    let done = store.checkpoint();
    let closed = store.close();
    let done = done?;
    closed?;
    let done = Done { generation: done.generation, tables: done.tables, log_bytes_released: done.log_bytes_released };
    session.output.line(&done, &done)
}
