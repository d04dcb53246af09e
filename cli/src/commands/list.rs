//! `list`: the records that one owner has, in the order in which they came to it; or all of an account.

use clap::Args;
use holdfast::{
    ArtifactInfo, OpenMode, Store,
    ids::{ArtifactId, RunId},
    limits::LIST_PAGE_MAX,
};

use crate::{
    exit_code::{Outcome, help},
    record::Record,
    session::Session,
    values::{artifact_id, run_id},
};

/// List the artifacts of one owner, oldest first
#[derive(Args)]
#[command(after_help = help(
    &[
        "holdfast list --limit 20",
        "holdfast list --limit 20 --after mfrggzdfmztwq2lknnwg23tpoa",
        "holdfast list --conversation thread-7",
    ],
    &[0, 1, 2, 3, 5, 6],
))]
pub(crate) struct ListArgs {
    /// What the account owns itself; of `default` if nothing else is named. Beside the others: the account that they must be of
    #[arg(long, value_name = "A")]
    account: Option<String>,
    /// What the conversation owns
    #[arg(long, value_name = "C", conflicts_with_all = ["run", "all"])]
    conversation: Option<String>,
    /// What the run has and has not given away
    #[arg(long, value_name = "R", value_parser = run_id, conflicts_with = "all")]
    run: Option<RunId>,
    /// Every artifact of the account, whoever of it owns it, by rising id
    #[arg(long)]
    all: bool,
    /// At most so many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Only those behind this artifact: the last of the page before
    #[arg(long, value_name = "ID", value_parser = artifact_id)]
    after: Option<ArtifactId>,
}

pub(crate) fn run(args: &ListArgs, session: &Session) -> Outcome {
    let store = session.open(OpenMode::Read, "list")?;
    session.warn_of_damage(&store);
    let listed = if args.all { list_all(args, &store, session) } else { list(args, &store, session) };
    let closed = store.close();
    listed?;
    Ok(closed?)
}

fn list(args: &ListArgs, store: &Store, session: &Session) -> Outcome {
    let scope = session.scope(args.account.as_deref(), args.conversation.as_deref(), args.run);
    let mut left = args.limit.unwrap_or(u64::MAX);
    let mut cursor = args.after.map(|id| store.cursor(scope, id)).transpose()?;
    loop {
        let page = store.list(scope, cursor, LIST_PAGE_MAX)?;
        if !print(page.artifacts, &mut left, session)? {
            return Ok(());
        }
        match page.next {
            Some(next) => cursor = Some(next),
            None => return Ok(()),
        }
    }
}

fn list_all(args: &ListArgs, store: &Store, session: &Session) -> Outcome {
    let scope = session.account(args.account.as_deref());
    let mut left = args.limit.unwrap_or(u64::MAX);
    let mut after = args.after;
    loop {
        let page = store.list_all(&scope, after, LIST_PAGE_MAX)?;
        let Some(last) = page.last().map(|info| info.id) else { return Ok(()) };
        after = Some(last);
        if !print(page, &mut left, session)? {
            return Ok(());
        }
    }
}

/// Prints a page; false once no more are wanted.
fn print(page: Vec<ArtifactInfo>, left: &mut u64, session: &Session) -> Outcome<bool> {
    for info in page {
        if *left == 0 {
            return Ok(false);
        }
        *left -= 1;
        let record = Record::from(info);
        let line = format!("{}  {}  {:>12}  {}", record.id, record.created_at, record.size, record.name);
        session.output.line(&record, line)?;
    }
    Ok(*left > 0)
}
