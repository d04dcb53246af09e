//! `delete`: single artifacts, for good.

use clap::Args;
use holdfast::{
    ArtifactInfo, Error, OpenMode, Scope, Store,
    ids::{ArtifactId, RunId},
};
use serde::Serialize;

use crate::{
    exit_code::{Failure, Outcome, help},
    session::Session,
    values::{artifact_id, run_id},
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
    /// Account that owns them; `default` if nothing else is named. Beside the others: the account that they must be of
    #[arg(long, value_name = "A")]
    account: Option<String>,
    /// Conversation that owns them
    #[arg(long, value_name = "C", conflicts_with = "run")]
    conversation: Option<String>,
    /// Run that has them and has not given them away
    #[arg(long, value_name = "R", value_parser = run_id)]
    run: Option<RunId>,
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
    let scope = session.scope(args.account.as_deref(), args.conversation.as_deref(), args.run);
    if args.dry_run {
        let store = session.open(OpenMode::Read, "delete")?;
        let shown = each(args, session, |id| store.stat(scope, id));
        let closed = store.close();
        shown?;
        return Ok(closed?);
    }
    session.change("delete", |store: &Store| delete(args, store, scope, session))
}

fn delete(args: &DeleteArgs, store: &Store, scope: Scope<'_>, session: &Session) -> Outcome {
    each(args, session, |id| store.delete(scope, id))
}

/// A line for each, as soon as it is done.
fn each(args: &DeleteArgs, session: &Session, act: impl Fn(ArtifactId) -> Result<ArtifactInfo, Error>) -> Outcome {
    let mut first_failure = None;
    for id in &args.ids {
        match act(*id) {
            Ok(info) => {
                let line = Deleted::from(info);
                session
                    .output
                    .line(&line, format!("{}  {:>12}  {:<8}  {}", line.id, line.size, line.state, line.name))?;
            }
            Err(error) => {
                session.output.error(&error, Some(&id.to_string()));
                first_failure.get_or_insert(error.kind().exit_code());
            }
        }
    }
    first_failure.map_or(Ok(()), |code| Err(Failure::Told(code)))
}
