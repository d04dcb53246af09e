//! `stat`: one record.

use clap::Args;
use holdfast::ids::ArtifactId;

use crate::{
    exit_code::{Outcome, help},
    owner::OwnerArgs,
    record::Record,
    session::Session,
    several::each_id,
    values::artifact_id,
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
    #[command(flatten)]
    owner: OwnerArgs,
}

pub(crate) fn run(args: &StatArgs, session: &Session) -> Outcome {
    session.look("stat", |store| {
        let found = store.batch_stat(args.owner.scope(session), &args.ids)?;
        each_id(session, args.ids.iter().copied().zip(found), |info| {
            let record = Record::from(info);
            session.output.line(&record, &record)
        })
    })
}
