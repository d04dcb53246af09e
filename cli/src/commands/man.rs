//! `man`: manual pages, one a command.

use std::path::PathBuf;

use clap::{Args, CommandFactory};
use holdfast::Error;

use super::Cli;
use crate::{
    exit_code::{Outcome, help},
    session::Session,
};

/// Write manual pages into an existing directory
#[derive(Args)]
#[command(after_help = help(
    &["holdfast man .", "mkdir -p ~/.local/share/man/man1 && holdfast man ~/.local/share/man/man1"],
    &[0, 1, 2, 7],
))]
pub(crate) struct ManArgs {
    /// Where to write them
    dir: PathBuf,
}

pub(crate) fn run(args: &ManArgs, _: &Session) -> Outcome {
    clap_mangen::generate_to(Cli::command(), &args.dir)
        .map_err(|error| Error::io(error, args.dir.to_string_lossy(), "write the manual"))?;
    Ok(())
}
