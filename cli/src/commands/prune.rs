//! `prune`: conversations deleted by how old they are, or by how many stay.

use clap::{ArgGroup, Args};
use holdfast::{ConversationInfo, Retain, Store, format::conversation::ConversationState};
use serde::Serialize;

use crate::{
    exit_code::{Outcome, help},
    session::Session,
    values::{duration_ms, time_text},
};

/// Delete the oldest conversations of an account with everything that they own
///
/// A conversation is as old as it was opened long ago, archived or not, whatever came into it since. Each goes as `conversation delete`
/// deletes it: for good, at once. A thousand go in one commit.
#[derive(Args)]
#[command(
    group = ArgGroup::new("retain").required(true).args(["older_than", "keep"]),
    after_help = help(
        &["holdfast prune --older-than 90d --dry-run", "holdfast prune --account ann --keep 100"],
        &[0, 1, 2, 3, 5, 6, 7],
    ),
)]
pub(crate) struct PruneArgs {
    /// Account whose they are
    #[arg(long, value_name = "A")]
    account: Option<String>,
    /// Delete those that were opened longer ago than this, like 90d or 12h
    #[arg(long, value_name = "AGE", value_parser = duration_ms)]
    older_than: Option<u64>,
    /// Delete all but so many, opened last
    #[arg(long, value_name = "N")]
    keep: Option<u64>,
    /// Show what would be deleted, and delete nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Serialize)]
struct Pruned {
    conversation: String,
    state: &'static str,
    opened_at: String,
}

pub(crate) fn run(args: &PruneArgs, session: &Session) -> Outcome {
    if args.dry_run {
        return session.look("prune", |store| prune(args, session, store));
    }
    session.change("prune", |store| prune(args, session, store))
}

/// A line for each, as soon as the commit that deletes it is durable.
fn prune(args: &PruneArgs, session: &Session, store: &Store) -> Outcome {
    let newest = Retain::Newest(args.keep.unwrap_or(u64::MAX));
    let retain = args.older_than.map_or(newest, Retain::OpenedWithin);
    for step in store.prune(&session.account(args.account.as_deref()), retain, args.dry_run)? {
        for info in step? {
            show(info, args.dry_run, session)?;
        }
    }
    Ok(())
}

fn show(info: ConversationInfo, dry: bool, session: &Session) -> Outcome {
    let state = if dry { info.state } else { ConversationState::Deleted };
    let line = Pruned { conversation: info.conversation, state: state.as_str(), opened_at: time_text(info.opened_at) };
    session.output.line(&line, format!("{}  {:<8}  {}", line.opened_at, line.state, line.conversation))
}
