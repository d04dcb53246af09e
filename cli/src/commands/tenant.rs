//! `tenant`: who shares nothing with anybody else.

use std::fmt;

use clap::{Args, Subcommand};
use holdfast::TenantInfo;
use serde::Serialize;

use crate::{
    exit_code::{Outcome, help},
    session::Session,
    values::time_text,
};

/// Create and show tenants
///
/// Nothing of one tenant can be seen from another: no file, no name, not that equal bytes are there. A new store has the tenant
/// `default`; `--tenant` names another one for any command.
#[derive(Args)]
#[command(after_help = help(
    &["holdfast tenant create acme", "holdfast --tenant acme put report.pdf"],
    &[0, 1, 2, 3, 5, 6, 7],
))]
pub(crate) struct TenantArgs {
    #[command(subcommand)]
    verb: TenantCommand,
}

#[derive(Subcommand)]
enum TenantCommand {
    /// Create a tenant, or find it
    #[command(after_help = help(&["holdfast tenant create acme"], &[0, 1, 2, 3, 5, 6, 7]))]
    Create(One),
    /// Show a tenant
    ///
    /// Only a hash of its name is kept, so that there is no list of names.
    #[command(after_help = help(&["holdfast tenant show acme"], &[0, 1, 2, 3, 5, 6]))]
    Show(One),
}

#[derive(Args)]
struct One {
    /// Its name: 1 to 128 of A-Z, a-z, 0-9, `.`, `_`, `:`, `@` and `-`
    #[arg(value_name = "NAME")]
    name: String,
}

#[derive(Serialize)]
struct Shown<'a> {
    tenant: &'a str,
    number: u32,
    created_at: String,
    existed: bool,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}  number {}, created {}", self.tenant, self.number, self.created_at)
    }
}

pub(crate) fn run(args: &TenantArgs, session: &Session) -> Outcome {
    let (name, info) = match &args.verb {
        TenantCommand::Create(One { name }) => (name, session.change("tenant create", |s| s.create_tenant(name))?),
        TenantCommand::Show(One { name }) => (name, session.look("tenant show", |s| Ok(s.tenant(name)?))?),
    };
    let TenantInfo { number, created_at, existed } = info;
    let shown = Shown { tenant: name, number: number.0, created_at: time_text(created_at), existed };
    session.output.line(&shown, &shown)
}
