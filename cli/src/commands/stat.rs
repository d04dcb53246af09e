//! `stat`: one record.

use clap::Args;
use holdfast::{AccountScope, OpenMode, ids::ArtifactId};

use crate::{
    exit_code::{Outcome, help},
    record::Record,
    session::Session,
    values::artifact_id,
};

/// Show the record of an artifact
#[derive(Args)]
#[command(after_help = help(&["holdfast stat mfrggzdfmztwq2lknnwg23tpoa"], &[0, 1, 2, 3, 5, 6]))]
pub(crate) struct StatArgs {
    /// Id of the artifact
    #[arg(value_parser = artifact_id)]
    id: ArtifactId,
    /// Account that owns it
    #[arg(long, value_name = "A", default_value = "default")]
    account: String,
}

pub(crate) fn run(args: &StatArgs, session: &Session) -> Outcome {
    let store = session.open(OpenMode::Read, "stat")?;
    let record = store.stat(&AccountScope { tenant: "default", account: &args.account }, args.id);
    let closed = store.close();
    let record = Record::from(record?);
    closed?;
    session.output.line(&record, &record)
}
