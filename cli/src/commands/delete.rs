//! `delete`: single artifacts, for good.

use clap::Args;
use holdfast::{ArtifactInfo, Error, ids::ArtifactId};
use serde::Serialize;

use crate::{
    exit_code::{Outcome, help},
    owner::OwnerArgs,
    session::Session,
    several::each_id,
    values::artifact_id,
};

/// Delete artifacts; they are unreadable when it returns, for good
///
/// What is deleted already is done. One that fails gives its error on standard error and the others go on; the exit code is that of the
/// first failure. Links of a deleted artifact stay.
#[derive(Args)]
#[command(after_help = help(
    &[
        "holdfast delete mfrggzdfmztwq2lknnwg23tpoa",
        "holdfast delete --conversation thread-7 --dry-run mfrggzdfmztwq2lknnwg23tpoa",
    ],
    &[0, 1, 2, 3, 5, 6, 7],
))]
pub(crate) struct DeleteArgs {
    /// Ids of the artifacts
    #[arg(required = true, value_name = "ID", value_parser = artifact_id)]
    ids: Vec<ArtifactId>,
    #[command(flatten)]
    owner: OwnerArgs,
    /// Show what would be deleted, and delete nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Serialize)]
struct Deleted {
    id: String,
    name: String,
    size: u64,
    state: &'static str,
}

impl From<ArtifactInfo> for Deleted {
    fn from(info: ArtifactInfo) -> Self {
        Self { id: info.id.to_string(), name: info.name, size: info.size, state: info.state.as_str() }
    }
}

pub(crate) fn run(args: &DeleteArgs, session: &Session) -> Outcome {
    let scope = args.owner.scope(session);
    if args.dry_run {
        return session.look("delete", |store| each(args, session, |id| store.stat(scope, id)));
    }
    session.change("delete", |store| each(args, session, |id| store.delete(scope, id)))
}

/// A line for each, as soon as it is done.
fn each(args: &DeleteArgs, session: &Session, act: impl Fn(ArtifactId) -> Result<ArtifactInfo, Error>) -> Outcome {
    each_id(session, args.ids.iter().map(|id| (*id, act(*id))), |info| {
        let line = Deleted::from(info);
        session.output.line(&line, format!("{}  {:>12}  {:<8}  {}", line.id, line.size, line.state, line.name))
    })
}
