//! `stat`: one record.

use clap::Args;
use holdfast::{
    OpenMode,
    ids::{ArtifactId, RunId},
};

use crate::{
    exit_code::{Outcome, help},
    record::Record,
    session::Session,
    values::{artifact_id, run_id},
};

/// Show the record of an artifact
#[derive(Args)]
#[command(after_help = help(&[
        "holdfast stat mfrggzdfmztwq2lknnwg23tpoa",
        "holdfast stat --conversation thread-7 mfrggzdfmztwq2lknnwg23tpoa",
    ], &[0, 1, 2, 3, 5, 6]))]
pub(crate) struct StatArgs {
    /// Id of the artifact
    #[arg(value_parser = artifact_id)]
    id: ArtifactId,
    /// Account that owns it; `default` if nothing else is named. Beside the others: the account that they must be of
    #[arg(long, value_name = "A")]
    account: Option<String>,
    /// Conversation that owns it
    #[arg(long, value_name = "C", conflicts_with = "run")]
    conversation: Option<String>,
    /// Run that has it and has not given it away
    #[arg(long, value_name = "R", value_parser = run_id)]
    run: Option<RunId>,
}

pub(crate) fn run(args: &StatArgs, session: &Session) -> Outcome {
    let store = session.open(OpenMode::Read, "stat")?;
    let scope = session.scope(args.account.as_deref(), args.conversation.as_deref(), args.run);
    let record = store.stat(scope, args.id);
    let closed = store.close();
    let record = Record::from(record?);
    closed?;
    session.output.line(&record, &record)
}
