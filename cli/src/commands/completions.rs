//! `completions`: what a shell needs to complete the command line.

use std::io::{self, Write};

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::Cli;
use crate::{
    exit_code::{Outcome, help},
    output::stdout_failure,
    session::Session,
};

/// Print completions for a shell
#[derive(Args)]
#[command(after_help = help(
    &[
        "holdfast completions bash > holdfast.bash",
        "mkdir -p ~/.local/share/fish/completions && holdfast completions fish > ~/.local/share/fish/completions/holdfast.fish",
    ],
    &[0, 1, 2],
))]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs, _: &Session) -> Outcome {
    // Into memory first: clap_complete panics when its writer fails.
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "holdfast", &mut text);
    let mut out = io::stdout().lock();
    out.write_all(&text).and_then(|()| out.flush()).map_err(stdout_failure)
}
