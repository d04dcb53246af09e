//! Runs one campaign. Every campaign is a module of its own with its arguments and its `run`; here they only get their names.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
#[cfg(feature = "canaries")]
use holdfast_tests::canaries;
use holdfast_tests::{at_rest, campaign::Outcome, crash, crowd, faults, kills, real, small};

/// Campaigns against the store.
#[derive(Parser)]
#[command(name = "campaign")]
struct Arguments {
    #[command(subcommand)]
    campaign: Campaign,
}

#[derive(Subcommand)]
enum Campaign {
    AtRest(at_rest::Arguments),
    Crash(crash::Arguments),
    Crowd(crowd::Arguments),
    Faults(faults::Arguments),
    Kills(kills::Arguments),
    Real(real::Arguments),
    Small(small::Arguments),
    #[cfg(feature = "canaries")]
    Canaries(canaries::Arguments),
}

fn main() -> ExitCode {
    let outcome: Outcome = match Arguments::parse().campaign {
        Campaign::AtRest(arguments) => at_rest::run(&arguments),
        Campaign::Crash(arguments) => crash::run(&arguments),
        Campaign::Crowd(arguments) => crowd::run(&arguments),
        Campaign::Faults(arguments) => faults::run(&arguments),
        Campaign::Kills(arguments) => kills::run(&arguments),
        Campaign::Real(arguments) => real::run(&arguments),
        Campaign::Small(arguments) => small::run(&arguments),
        #[cfg(feature = "canaries")]
        Campaign::Canaries(arguments) => canaries::run(&arguments),
    };
    outcome.into()
}
