//! `list`: the records that an account owns, in the order in which they came.

use clap::Args;
use holdfast::{AccountScope, OpenMode, Store, ids::ArtifactId, limits::LIST_PAGE_MAX};

use crate::{
    exit_code::{Outcome, help},
    record::Record,
    session::Session,
    values::artifact_id,
};

/// List the artifacts that an account owns, oldest first
#[derive(Args)]
#[command(after_help = help(
    &["holdfast list --limit 20", "holdfast list --limit 20 --after mfrggzdfmztwq2lknnwg23tpoa"],
    &[0, 1, 2, 3, 5, 6],
))]
pub(crate) struct ListArgs {
    /// Account that owns them
    #[arg(long, value_name = "A", default_value = "default")]
    account: String,
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
    let listed = list(args, &store, session);
    let closed = store.close();
    listed?;
    Ok(closed?)
}

fn list(args: &ListArgs, store: &Store, session: &Session) -> Outcome {
    let scope = AccountScope { tenant: "default", account: &args.account };
    let mut left = args.limit.unwrap_or(u64::MAX);
    let mut cursor = args.after.map(|id| store.cursor(&scope, id)).transpose()?;
    loop {
        let page = store.list(&scope, cursor, LIST_PAGE_MAX)?;
        for info in page.artifacts {
            if left == 0 {
                return Ok(());
            }
            left -= 1;
            let record = Record::from(info);
            let line = format!("{}  {}  {:>12}  {}", record.id, record.created_at, record.size, record.name);
            session.output.line(&record, line)?;
        }
        match page.next {
            Some(next) => cursor = Some(next),
            None => return Ok(()),
        }
    }
}
