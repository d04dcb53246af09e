//! `stat`: one record.

use clap::Args;
use holdfast::{
    ArtifactInfo, Error, OpenMode,
    ids::{ArtifactId, RunId},
};

use crate::{
    exit_code::{Failure, Outcome, help},
    record::Record,
    session::Session,
    values::{artifact_id, run_id},
};

/// Show the records of artifacts
///
/// Of one that is gone the state says why. One that is not there gives its error on standard error and the others go on.
#[derive(Args)]
#[command(after_help = help(&[
        "holdfast stat mfrggzdfmztwq2lknnwg23tpoa",
        "holdfast stat --conversation thread-7 mfrggzdfmztwq2lknnwg23tpoa",
    ], &[0, 1, 2, 3, 5, 6]))]
pub(crate) struct StatArgs {
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
}

pub(crate) fn run(args: &StatArgs, session: &Session) -> Outcome {
    let store = session.open(OpenMode::Read, "stat")?;
    let scope = session.scope(args.account.as_deref(), args.conversation.as_deref(), args.run);
    let shown = store.batch_stat(scope, &args.ids).map_err(Failure::from).and_then(|found| each(args, found, session));
    let closed = store.close();
    shown?;
    Ok(closed?)
}

fn each(args: &StatArgs, found: Vec<Result<ArtifactInfo, Error>>, session: &Session) -> Outcome {
    let mut first_failure = None;
    for (id, found) in args.ids.iter().zip(found) {
        match found {
            Ok(info) => {
                let record = Record::from(info);
                session.output.line(&record, &record)?;
            }
            Err(error) => {
                session.output.error(&error, Some(&id.to_string()));
                first_failure.get_or_insert(error.kind().exit_code());
            }
        }
    }
    first_failure.map_or(Ok(()), |code| Err(Failure::Told(code)))
}
