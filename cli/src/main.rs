//! The command line of Holdfast: arguments in, engine calls, lines out.
//!
//! It holds no rules of the store. One file a command stands in `commands/`; this one only dispatches.

#![forbid(unsafe_code)]

mod bench;
mod commands;
mod exit_code;
mod export;
mod files;
mod output;
mod owner;
mod progress;
mod record;
mod session;
mod several;
mod target;
mod values;

use std::{process::ExitCode, sync::Arc};

use clap::Parser;
use commands::{
    Cli, Command, checkpoint, completions, conversation, delete, expire_at, get, init, inspect, link, list, man,
    materialize, prune, put, quickstart, rename, repair, run, stat, stats, tenant, upload, verify,
};
use exit_code::Outcome;
use session::Session;

fn main() -> ExitCode {
    // By default the system ends a process that writes past its limit on the size of files. With any handler the write fails instead, and
    // is told like a full disk. If it cannot be set, nothing else is lost.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
    match Cli::try_parse() {
        Ok(cli) => {
            let session = Session::new(cli.store, cli.tenant, cli.json);
            let outcome = run(&cli.command, &session);
            exit_code::finish(outcome, &session.output)
        }
        Err(usage) => exit_code::finish_usage(&usage),
    }
}

fn run(command: &Command, session: &Session) -> Outcome {
    match command {
        Command::Init(args) => init::run(args, session),
        Command::Put(args) => put::run(args, session),
        Command::Get(args) => get::run(args, session),
        Command::Materialize(args) => materialize::run(args, session),
        Command::Stat(args) => stat::run(args, session),
        Command::List(args) => list::run(args, session),
        Command::Link(args) => link::run(args, session),
        Command::Rename(args) => rename::run(args, session),
        Command::ExpireAt(args) => expire_at::run(args, session),
        Command::Delete(args) => delete::run(args, session),
        Command::Conversation(args) => conversation::run(args, session),
        Command::Run(args) => run::run(args, session),
        Command::Upload(args) => upload::run(args, session),
        Command::Prune(args) => prune::run(args, session),
        Command::Tenant(args) => tenant::run(args, session),
        Command::Verify(args) => verify::run(args, session),
        Command::Repair(args) => repair::run(args, session),
        Command::Inspect(args) => inspect::run(args, session),
        Command::Stats(args) => stats::run(args, session),
        Command::Checkpoint(args) => checkpoint::run(args, session),
        Command::Quickstart(args) => quickstart::run(args, session),
        Command::Bench(args) => commands::bench::run(args, session),
        Command::Completions(args) => completions::run(args, session),
        Command::Man(args) => man::run(args, session),
    }
}
