//! `conversation`: what owns files for exactly as long as it lives.

use std::{fmt, io, path::PathBuf};

use clap::{Args, Subcommand};
use holdfast::{ConversationInfo, Error, Fork, ids::ArtifactId, limits::LIST_PAGE_MAX, ownership::conversation::Verb};
use serde::Serialize;

use crate::{
    exit_code::{Failure, Outcome, help},
    export::{self, Broken},
    output::{shown, standard_output, stdout_failure},
    record::Brought,
    session::Session,
    several::each_listed,
    target::Target,
    values::{artifact_id, time_text},
};

/// Open, archive, reset, fork, delete and list conversations
///
/// A conversation owns the files that were put or claimed into it, for exactly as long as it lives.
#[derive(Args)]
#[command(after_help = help(
    &[
        "holdfast conversation open --conversation thread-7",
        "holdfast conversation list",
        "holdfast conversation delete --conversation thread-7",
    ],
    &[0, 1, 2, 3, 4, 5, 6, 7],
))]
pub(crate) struct ConversationArgs {
    #[command(subcommand)]
    verb: ConversationCommand,
}

#[derive(Subcommand)]
enum ConversationCommand {
    /// Open a conversation, or find it open
    #[command(after_help = help(&["holdfast conversation open --conversation thread-7"], &[0, 1, 2, 3, 4, 5, 6, 7]))]
    Open(One),
    /// Take nothing new any more; what is there stays, and runs under way may still claim
    #[command(after_help = help(&["holdfast conversation archive --conversation thread-7"], &[0, 1, 2, 3, 5, 6, 7]))]
    Archive(One),
    /// Open an archived conversation again
    #[command(after_help = help(&["holdfast conversation unarchive --conversation thread-7"], &[0, 1, 2, 3, 5, 6, 7]))]
    Unarchive(One),
    /// Delete everything that it owns; the conversation can be used again
    ///
    /// What is on its way in when this is asked for never gets there.
    #[command(after_help = help(&["holdfast conversation reset --conversation thread-7"], &[0, 1, 2, 3, 5, 6, 7]))]
    Reset(One),
    /// Link everything readable in it into another open conversation, all or nothing
    #[command(after_help = help(
        &["holdfast conversation fork --conversation thread-7 --to thread-8"],
        &[0, 1, 2, 3, 4, 5, 6, 7],
    ))]
    Fork(ForkArgs),
    /// Write everything readable in it to a tar archive
    ///
    /// A manifest comes first, then the files, in the order that their puts were given with `--order`, else as they came. At most 10,000.
    /// PATH never holds a part; the same files give the same archive, byte for byte.
    #[command(after_help = help(
        &[
            "holdfast conversation export --conversation thread-7 thread-7.tar",
            "holdfast conversation export --conversation thread-7 - | tar -tv",
        ],
        &[0, 1, 2, 3, 5, 6, 7],
    ))]
    Export(ExportArgs),
    /// Delete it with everything that it owns, for good: its id is never used again
    #[command(after_help = help(&["holdfast conversation delete --conversation thread-7"], &[0, 1, 2, 3, 5, 6, 7]))]
    Delete(One),
    /// List the conversations of an account, oldest first
    #[command(after_help = help(&["holdfast conversation list --limit 20"], &[0, 1, 2, 3, 5, 6]))]
    List(ListArgs),
}

#[derive(Args)]
struct One {
    /// Id of the conversation
    #[arg(long, value_name = "C")]
    conversation: String,
    /// Account that it is of; to open one, `default` if none is named
    #[arg(long, value_name = "A")]
    account: Option<String>,
}

#[derive(Args)]
struct ForkArgs {
    #[command(flatten)]
    from: One,
    /// Conversation that gets the links; open it first
    #[arg(long, value_name = "D")]
    to: String,
    /// Account that it must be of
    #[arg(long, value_name = "A")]
    to_account: Option<String>,
    /// Nothing behind this artifact of the list
    #[arg(long, value_name = "ID", value_parser = artifact_id)]
    upto: Option<ArtifactId>,
    /// Makes a retry safe: the same id again gives the first outcome
    #[arg(long, value_name = "ID")]
    op_id: Option<String>,
}

#[derive(Args)]
struct ExportArgs {
    #[command(flatten)]
    of: One,
    /// File to write, or `-` for standard output
    #[arg(value_name = "PATH")]
    path: PathBuf,
}

#[derive(Args)]
struct ListArgs {
    /// Account whose they are
    #[arg(long, value_name = "A")]
    account: Option<String>,
    /// At most so many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Only those behind this one: the last of the page before
    #[arg(long, value_name = "C")]
    after: Option<String>,
}

#[derive(Serialize)]
struct Changed {
    conversation: String,
    state: &'static str,
}

#[derive(Serialize)]
struct Listed {
    conversation: String,
    state: &'static str,
    account: String,
    opened_at: String,
    changed_lsn: String,
    reset_lsn: Option<String>,
}

#[derive(Serialize)]
struct Forked {
    conversation: String,
    artifacts: Vec<Brought>,
    replayed: bool,
}

#[derive(Serialize)]
struct Exported {
    conversation: String,
    path: String,
    artifacts: u64,
    bytes: u64,
    missing: Vec<String>,
}

impl fmt::Display for Forked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.artifacts {
            writeln!(f, "{line}")?;
        }
        let note = if self.replayed { "  (as before)" } else { "" };
        write!(f, "{} linked into {}{note}", self.artifacts.len(), self.conversation)
    }
}

impl fmt::Display for Changed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}  {}", self.conversation, self.state)
    }
}

impl From<ConversationInfo> for Changed {
    fn from(info: ConversationInfo) -> Self {
        Self { conversation: info.conversation, state: info.state.as_str() }
    }
}

impl From<ConversationInfo> for Listed {
    fn from(info: ConversationInfo) -> Self {
        Self {
            conversation: info.conversation,
            state: info.state.as_str(),
            account: info.account,
            opened_at: time_text(info.opened_at),
            changed_lsn: info.changed_lsn.to_string(),
            reset_lsn: info.reset_lsn.map(|lsn| lsn.to_string()),
        }
    }
}

pub(crate) fn run(args: &ConversationArgs, session: &Session) -> Outcome {
    let (one, verb, command) = match &args.verb {
        ConversationCommand::Open(one) => return open(one, session),
        ConversationCommand::List(args) => return list(args, session),
        ConversationCommand::Fork(args) => return fork(args, session),
        ConversationCommand::Export(args) => return export(args, session),
        ConversationCommand::Archive(one) => (one, Verb::Archive, "conversation archive"),
        ConversationCommand::Unarchive(one) => (one, Verb::Unarchive, "conversation unarchive"),
        ConversationCommand::Reset(one) => (one, Verb::Reset, "conversation reset"),
        ConversationCommand::Delete(one) => (one, Verb::Delete, "conversation delete"),
    };
    let scope = session.conversation(one.account.as_deref(), &one.conversation);
    print(session.change(command, |store| store.change_conversation(&scope, verb))?, session)
}

fn open(one: &One, session: &Session) -> Outcome {
    let account = session.account(one.account.as_deref());
    let open = |store: &holdfast::Store| store.open_conversation(&account, &one.conversation);
    print(session.change("conversation open", open)?, session)
}

fn fork(args: &ForkArgs, session: &Session) -> Outcome {
    let fork = Fork {
        from: session.conversation(args.from.account.as_deref(), &args.from.conversation),
        to: session.conversation(args.to_account.as_deref(), &args.to),
        upto: args.upto,
        op_id: args.op_id.as_deref(),
    };
    let reply = session.change("conversation fork", |store| store.fork(&fork))?;
    let forked = Forked {
        conversation: args.to.clone(),
        artifacts: reply.artifacts.into_iter().map(Brought::from).collect(),
        replayed: reply.replayed,
    };
    session.output.line(&forked, &forked)
}

fn export(args: &ExportArgs, session: &Session) -> Outcome {
    let scope = session.conversation(args.of.account.as_deref(), &args.of.conversation);
    let path = args.path.to_string_lossy().into_owned();
    session.look("conversation export", |store| {
        session.warn_of_damage(store);
        let write = |to: &mut dyn io::Write, failed: &dyn Fn(io::Error) -> Failure| {
            export::export(&scope, store, &session.output, to).map_err(|broken| match broken {
                Broken::Store(error) => error.into(),
                Broken::Write(error) => failed(error),
            })
        };
        let exported = if path == "-" {
            write(&mut standard_output()?, &stdout_failure)?
        } else {
            let mut target = Target::replacing(&args.path)?;
            let exported = write(&mut target, &|error| Error::io(error, &path, "write").into())?;
            target.put_in_place()?;
            let (artifacts, bytes) = (exported.artifacts, exported.bytes);
            let missing = exported.missing.iter().map(ToString::to_string).collect();
            let line =
                Exported { conversation: args.of.conversation.clone(), path: path.clone(), artifacts, bytes, missing };
            session.output.line(&line, format!("{artifacts} files, {bytes} bytes in {}", shown(&path)))?;
            exported
        };
        exported.failure.map_or(Ok(()), |code| Err(Failure::Told(code)))
    })
}

fn print(info: ConversationInfo, session: &Session) -> Outcome {
    let changed = Changed::from(info);
    session.output.line(&changed, &changed)
}

fn list(args: &ListArgs, session: &Session) -> Outcome {
    let scope = session.account(args.account.as_deref());
    session.look("conversation list", |store| {
        let page = |after: Option<&String>| {
            let page = store.list_conversations(&scope, after.map(String::as_str), LIST_PAGE_MAX)?;
            let last = page.last().map(|info| info.conversation.clone());
            Ok((page, last))
        };
        each_listed(args.limit, args.after.clone(), page, |info| {
            let listed = Listed::from(info);
            let line = format!("{}  {:<8}  {}", listed.opened_at, listed.state, listed.conversation);
            session.output.line(&listed, line)
        })
    })
}
