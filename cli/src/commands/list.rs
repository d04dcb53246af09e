//! `list`: the records that one owner has, in the order in which they came to it; or all of an account.

use clap::{Args, ValueEnum};
use holdfast::{
    ArtifactInfo, Cursor, ListOrder, Store,
    ids::{ArtifactId, RunId},
    limits::LIST_PAGE_MAX,
};

use crate::{
    exit_code::{Outcome, help},
    record::Record,
    session::Session,
    several::each_listed,
    values::{artifact_id, run_id},
};

/// List the artifacts of one owner, oldest first
#[derive(Args)]
#[command(after_help = help(
    &[
        "holdfast list --limit 20",
        "holdfast list --limit 20 --after mfrggzdfmztwq2lknnwg23tpoa",
        "holdfast list --conversation thread-7",
        "holdfast list --conversation thread-7 --order native",
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
    /// Sorted otherwise than they came, if there are at most 10,000
    #[arg(long, value_name = "ORDER", conflicts_with_all = ["all", "after"])]
    order: Option<Order>,
    /// At most so many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Only those behind this artifact: the last of the page before
    #[arg(long, value_name = "ID", value_parser = artifact_id)]
    after: Option<ArtifactId>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Order {
    /// As `put --order` was given; without it last
    Native,
    /// By name
    Name,
}

impl From<Order> for ListOrder {
    fn from(order: Order) -> Self {
        match order {
            Order::Native => Self::Native,
            Order::Name => Self::Name,
        }
    }
}

pub(crate) fn run(args: &ListArgs, session: &Session) -> Outcome {
    session.look("list", |store| {
        session.warn_of_damage(store);
        if args.all { list_all(args, store, session) } else { list(args, store, session) }
    })
}

fn list(args: &ListArgs, store: &Store, session: &Session) -> Outcome {
    let scope = session.scope(args.account.as_deref(), args.conversation.as_deref(), args.run);
    let page = |after: Option<&Cursor>| {
        let page = store.list(scope, after.copied(), LIST_PAGE_MAX)?;
        Ok((page.artifacts, page.next))
    };
    if let Some(order) = args.order {
        let page = |_: Option<&()>| Ok((store.list_sorted(scope, order.into())?, None));
        return each_listed(args.limit, None, page, |info| print(info, session));
    }
    let after = args.after.map(|id| store.cursor(scope, id)).transpose()?;
    each_listed(args.limit, after, page, |info| print(info, session))
}

fn list_all(args: &ListArgs, store: &Store, session: &Session) -> Outcome {
    let scope = session.account(args.account.as_deref());
    let page = |after: Option<&ArtifactId>| {
        let page = store.list_all(&scope, after.copied(), LIST_PAGE_MAX)?;
        let last = page.last().map(|info| info.id);
        Ok((page, last))
    };
    each_listed(args.limit, args.after, page, |info| print(info, session))
}

fn print(info: ArtifactInfo, session: &Session) -> Outcome {
    let record = Record::from(info);
    let line = format!("{}  {}  {:>12}  {}", record.id, record.created_at, record.size, record.name);
    session.output.line(&record, line)
}
