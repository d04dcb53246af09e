//! `expire-at`: another end for an artifact that has one of its own.

use clap::Args;
use holdfast::{
    Store,
    clock::{Clock, OsClock},
    ids::ArtifactId,
};
use serde::Serialize;

use crate::{
    exit_code::{Outcome, help},
    output::invalid,
    owner::OwnerArgs,
    session::Session,
    values::{End, artifact_id, end, time_text},
};

/// Give an artifact another end, or none
///
/// Only what an account owns itself, or a run has and has not given away, has an end of its own; of a run's it may be moved and not
/// taken away. What has ended is not revived.
#[derive(Args)]
#[command(after_help = help(
    &[
        "holdfast expire-at mfrggzdfmztwq2lknnwg23tpoa 90d",
        "holdfast expire-at mfrggzdfmztwq2lknnwg23tpoa 2099-01-01T00:00:00Z --if-version 1",
        "holdfast expire-at mfrggzdfmztwq2lknnwg23tpoa never",
    ],
    &[0, 1, 2, 3, 4, 5, 6, 7],
))]
pub(crate) struct ExpireAtArgs {
    /// Id of the artifact
    #[arg(value_parser = artifact_id)]
    id: ArtifactId,
    /// A time, as 2099-01-01T00:00:00Z; from now on, as 90s, 15m, 12h or 30d; or `never`
    #[arg(value_name = "TIME", value_parser = end)]
    end: End,
    #[command(flatten)]
    owner: OwnerArgs,
    /// Only if it still has this version, as `stat` shows it
    #[arg(long, value_name = "N")]
    if_version: Option<u64>,
}

#[derive(Serialize)]
struct Ends {
    id: String,
    expires_at: Option<String>,
    version: u64,
}

pub(crate) fn run(args: &ExpireAtArgs, session: &Session) -> Outcome {
    let scope = args.owner.scope(session);
    let end = args.end.at(OsClock.wall()).ok_or_else(|| invalid("that is further away than the year 9999"))?;
    let set = |store: &Store| store.set_expiry(scope, args.id, end, args.if_version);
    let info = session.change("expire-at", set)?;
    let ends = Ends { id: info.id.to_string(), expires_at: info.expires_at.map(time_text), version: info.version };
    let text = format!("{}  {}", ends.id, ends.expires_at.as_deref().unwrap_or("never"));
    session.output.line(&ends, text)
}
