//! `rename`: a link under another name, and its source deleted, in one commit.

use clap::Args;
use holdfast::ids::ArtifactId;

use super::link;
use crate::{
    exit_code::{Outcome, help},
    session::Session,
    values::artifact_id,
};

/// Give an artifact another name; it gets another id too
///
/// Artifacts do not change: what has the new name is a link, and the artifact is deleted in the same commit.
#[derive(Args)]
#[command(after_help = help(
    &["holdfast rename --conversation thread-7 mfrggzdfmztwq2lknnwg23tpoa final-report.pdf"],
    &[0, 1, 2, 3, 4, 5, 6, 7],
))]
pub(crate) struct RenameArgs {
    /// Id of the artifact
    #[arg(value_parser = artifact_id)]
    id: ArtifactId,
    /// The new name
    #[arg(value_name = "NAME")]
    name: String,
    /// Account that owns it; `default` if nothing else is named. Beside --conversation: the account that it must be of
    #[arg(long, value_name = "A")]
    account: Option<String>,
    /// Conversation that owns it
    #[arg(long, value_name = "C")]
    conversation: Option<String>,
    /// Makes a retry safe: the same id again gives the first outcome
    #[arg(long, value_name = "ID")]
    op_id: Option<String>,
}

pub(crate) fn run(args: &RenameArgs, session: &Session) -> Outcome {
    let scope = session.scope(args.account.as_deref(), args.conversation.as_deref(), None);
    let rename = |store: &holdfast::Store| store.rename(scope, args.id, &args.name, args.op_id.as_deref());
    link::print(session.change("rename", rename)?, session)
}
