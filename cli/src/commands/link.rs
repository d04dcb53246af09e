//! `link`: an artifact once more, for the price of a record.

use clap::Args;
use holdfast::{Link, LinkReply, ids::ArtifactId};
use serde::Serialize;

use crate::{
    exit_code::{Outcome, help},
    session::Session,
    values::artifact_id,
};

/// Link an artifact into another conversation or account
///
/// The link is an artifact of its own that shares the bytes: it stays when the source is deleted, and is erased with it. In a
/// conversation it lives as long as that; in an account it has the end of its source.
#[derive(Args)]
#[command(after_help = help(
    &[
        "holdfast link --conversation thread-7 --to-conversation thread-8 mfrggzdfmztwq2lknnwg23tpoa",
        "holdfast link --to-account bob --name copy.pdf mfrggzdfmztwq2lknnwg23tpoa",
    ],
    &[0, 1, 2, 3, 4, 5, 6, 7],
))]
pub(crate) struct LinkArgs {
    /// Id of the source
    #[arg(value_parser = artifact_id)]
    id: ArtifactId,
    /// Account that owns the source; `default` if nothing else is named. Beside --conversation: the account that it must be of
    #[arg(long, value_name = "A")]
    account: Option<String>,
    /// Conversation that owns the source
    #[arg(long, value_name = "C")]
    conversation: Option<String>,
    /// Account that is to own the link. Beside --to-conversation: the account that it must be of
    #[arg(long, value_name = "A", required_unless_present = "to_conversation")]
    to_account: Option<String>,
    /// Conversation that is to own the link
    #[arg(long, value_name = "C")]
    to_conversation: Option<String>,
    /// Name on its record; by default that of the source
    #[arg(long, value_name = "N")]
    name: Option<String>,
    /// Let an erasure of the account that the source comes from not follow the link into another account
    #[arg(long)]
    detach: bool,
    /// Makes a retry safe: the same id again gives the first outcome
    #[arg(long, value_name = "ID")]
    op_id: Option<String>,
}

/// A link that is durable.
#[derive(Serialize)]
struct Linked {
    id: String,
    name: String,
    size: u64,
    sha256: String,
    media_type: String,
    replayed: bool,
}

pub(crate) fn run(args: &LinkArgs, session: &Session) -> Outcome {
    let link = Link {
        from: session.scope(args.account.as_deref(), args.conversation.as_deref(), None),
        id: args.id,
        to: session.scope(args.to_account.as_deref(), args.to_conversation.as_deref(), None),
        name: args.name.as_deref(),
        detach: args.detach,
        op_id: args.op_id.as_deref(),
    };
    print(session.change("link", |store| store.link(&link))?, session)
}

/// Prints a link.
pub(crate) fn print(LinkReply { artifact, replayed }: LinkReply, session: &Session) -> Outcome {
    let line = Linked {
        id: artifact.id.to_string(),
        name: artifact.name,
        size: artifact.size,
        sha256: artifact.sha256.to_string(),
        media_type: artifact.media_type,
        replayed,
    };
    let note = if line.replayed { "  (as before)" } else { "" };
    session.output.line(&line, format!("{}  {:>12}  {}{note}", line.id, line.size, line.name))
}
