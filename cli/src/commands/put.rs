//! `put`: files into the store, a line each as soon as it is durable.

use std::{
    io,
    path::{Path, PathBuf},
};

use clap::Args;
use holdfast::{
    Destination, Error, Kind, OpenMode, Put, PutReply, RunToken, Store,
    clock::{Clock, OsClock},
    format::artifact::Origin,
    ids::{ArtifactId, Time},
};
use serde::Serialize;

use crate::{
    exit_code::{Failure, Outcome, help},
    files::{Base, Source},
    output::invalid,
    session::Session,
    values::{after, artifact_id, duration_ms, origin, run_token},
};

/// Put files into the store; prints a line for each once it is durable
///
/// A file that fails gives its error on standard error and the others go on; the exit code is that of the first failure.
#[derive(Args)]
#[command(after_help = help(
    &[
        "holdfast put report.pdf figures/*.png",
        "holdfast put --root ./outbox --expires-in 30d result.csv",
        "holdfast put --conversation thread-7 --origin model_output answer.md",
        "echo done | holdfast put --text --name note.txt -",
        "tar c src | holdfast put --name src.tar -",
    ],
    &[0, 1, 2, 3, 4, 5, 6, 7],
))]
pub(crate) struct PutArgs {
    /// Regular files, or `-` for standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Take the files from beneath this directory only: no link is followed, no `..` is taken
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// Account that owns them; `default` if nothing else is named. Beside --conversation: the account that it must be of
    #[arg(long, value_name = "A", conflicts_with = "token")]
    pub(crate) account: Option<String>,
    /// Conversation that owns them, as long as it lives
    #[arg(long, value_name = "C", conflicts_with = "token")]
    pub(crate) conversation: Option<String>,
    /// Token of the run that owns them until they are claimed or its ttl is over; `@FILE` reads it from a file
    #[arg(long, value_name = "TOK", value_parser = run_token)]
    pub(crate) token: Option<RunToken>,
    /// Where they come from: `upload`, `sandbox_export`, `model_output`, `tool_output` or `derived`; `upload` for an account
    #[arg(long, value_name = "O", value_parser = origin)]
    pub(crate) origin: Option<Origin>,
    /// Take texts only: at most 1 MiB of UTF-8, of the media type text/plain, text/markdown, text/csv or application/json
    #[arg(long)]
    pub(crate) text: bool,
    /// Name on the record, for one file; by default the last part of its path
    #[arg(long, value_name = "N")]
    pub(crate) name: Option<String>,
    /// Media type on the record; by default what the first bytes say
    #[arg(long, value_name = "M")]
    pub(crate) media_type: Option<String>,
    /// The caller's own order; of several files the first gets K, the next K + 1
    #[arg(long, value_name = "K")]
    pub(crate) order: Option<u64>,
    /// End of their life from now on, as 90s, 15m, 12h or 30d
    #[arg(long, value_name = "TIME", value_parser = duration_ms)]
    pub(crate) expires_in: Option<u64>,
    /// The artifact of the account that this is a later version of, for one file; it stays what it is
    #[arg(long, value_name = "ID", value_parser = artifact_id)]
    pub(crate) supersedes: Option<ArtifactId>,
    /// Length of the whole, for one file that is only a part of it
    #[arg(long, value_name = "N")]
    pub(crate) logical_size: Option<u64>,
    /// Makes a retry safe, for one file: the same id again gives the first outcome
    #[arg(long, value_name = "ID")]
    pub(crate) op_id: Option<String>,
}

impl PutArgs {
    /// Files as they are, everything else by default.
    pub(crate) fn of(files: Vec<PathBuf>) -> Self {
        Self {
            files,
            root: None,
            account: None,
            conversation: None,
            token: None,
            origin: None,
            text: false,
            name: None,
            media_type: None,
            order: None,
            expires_in: None,
            supersedes: None,
            logical_size: None,
            op_id: None,
        }
    }

    fn is_for_account(&self) -> bool {
        self.conversation.is_none() && self.token.is_none()
    }

    fn check(&self) -> Result<(), Error> {
        if self.origin.is_none() && !self.is_for_account() {
            return Err(invalid("--origin is needed with --conversation and --token: where do the files come from?"));
        }
        let stdin = self.files.iter().any(|file| is_stdin(file));
        let is_of_one = self.name.is_some() || self.op_id.is_some();
        let is_of_one = is_of_one || self.supersedes.is_some() || self.logical_size.is_some();
        if self.files.len() > 1 && (is_of_one || stdin) {
            return Err(invalid("--name, --op-id, --supersedes, --logical-size and `-` go with one FILE"));
        }
        if stdin && self.name.is_none() {
            return Err(invalid("standard input has no name: give --name"));
        }
        if stdin && self.root.is_some() {
            return Err(invalid("standard input is not beneath a root"));
        }
        Ok(())
    }

    fn expires_at(&self) -> Result<Option<Time>, Error> {
        let end = |ms| after(OsClock.wall(), ms).ok_or_else(|| invalid("--expires-in lies beyond the year 9999"));
        self.expires_in.map(end).transpose()
    }
}

fn is_stdin(file: &Path) -> bool {
    file.as_os_str() == "-"
}

/// A file that is durable.
#[derive(Serialize)]
pub(crate) struct Stored {
    pub(crate) id: String,
    name: String,
    pub(crate) size: u64,
    pub(crate) sha256: String,
    media_type: String,
    replayed: bool,
    path: String,
}

impl Stored {
    fn new(reply: PutReply, path: String) -> Self {
        Self {
            id: reply.id.to_string(),
            name: reply.name,
            size: reply.size,
            sha256: reply.sha256.to_string(),
            media_type: reply.media_type,
            replayed: reply.replayed,
            path,
        }
    }
}

pub(crate) fn run(args: &PutArgs, session: &Session) -> Outcome {
    put(args, session).map(drop)
}

/// Puts, prints, and gives what was stored.
pub(crate) fn put(args: &PutArgs, session: &Session) -> Outcome<Vec<Stored>> {
    args.check()?;
    let expires_at = args.expires_at()?;
    let base = args.root.as_deref().map_or(Ok(Base::Anywhere), Base::root)?;
    let store = session.open(OpenMode::Write, "put")?;
    if let Some(refusal) = store.report().refusal() {
        return Err(refusal.into());
    }
    session.tell_of_recovery(&store);
    let stored = put_each(args, &base, expires_at, &store, session);
    let closed = store.close();
    let stored = stored?;
    closed?;
    Ok(stored)
}

fn put_each(
    args: &PutArgs,
    base: &Base,
    expires_at: Option<Time>,
    store: &Store,
    session: &Session,
) -> Outcome<Vec<Stored>> {
    let mut stored = Vec::new();
    let mut first_failure = None;
    for (index, file) in args.files.iter().enumerate() {
        let path = file.to_string_lossy().into_owned();
        match put_one(args, base, expires_at, store, file, index as u64, session) {
            Ok(reply) => {
                let line = Stored::new(reply, path);
                let note = if line.replayed { "  (as before)" } else { "" };
                session.output.line(&line, format!("{}  {:>12}  {}{note}", line.id, line.size, line.name))?;
                stored.push(line);
            }
            Err(error) => {
                session.output.error(&error, Some(&path));
                first_failure.get_or_insert(error.kind().exit_code());
            }
        }
    }
    match first_failure {
        None => Ok(stored),
        Some(code) => Err(Failure::Told(code)),
    }
}

fn put_one(
    args: &PutArgs,
    base: &Base,
    expires_at: Option<Time>,
    store: &Store,
    file: &Path,
    index: u64,
    session: &Session,
) -> Result<PutReply, Error> {
    let order = match args.order {
        None => None,
        Some(first) => Some(first.checked_add(index).ok_or_else(|| invalid("--order is too large"))?),
    };
    let mut put = Put {
        scope: match (args.token, &args.conversation) {
            (Some(token), _) => Destination::Run { tenant: &session.tenant, token },
            (None, Some(conversation)) => {
                Destination::Conversation(session.conversation(args.account.as_deref(), conversation))
            }
            (None, None) => Destination::Account(session.account(args.account.as_deref())),
        },
        name: args.name.as_deref().map_or_else(|| name_of(file), Ok)?,
        origin: args.origin.unwrap_or(Origin::Upload),
        media_type: args.media_type.as_deref(),
        op_id: args.op_id.as_deref(),
        order,
        expires_at,
        size_hint: None,
        logical_size: args.logical_size,
        supersedes: args.supersedes,
    };
    if is_stdin(file) {
        return put_source(args.text, store, &put, Source::stream(&mut io::stdin().lock()));
    }
    let (mut opened, len) = base.open(file)?;
    put.size_hint = Some(len);
    put_source(args.text, store, &put, Source::file(&mut opened, len))
}

fn put_source(as_text: bool, store: &Store, put: &Put<'_>, mut source: Source<'_>) -> Result<PutReply, Error> {
    let stored = if as_text { store.put_text(put, &mut source) } else { store.put(put, &mut source) };
    stored.map_err(|error| source.failure().unwrap_or(error))
}

/// The last part of the path. `..` has none, and a name that is not UTF-8 cannot stand on a record.
fn name_of(file: &Path) -> Result<&str, Error> {
    let bad = |message: &'static str| Error::new(Kind::BadName, message);
    let name = file.file_name().ok_or_else(|| bad("the path ends in no name: give --name"))?;
    name.to_str().ok_or_else(|| bad("the name is not UTF-8: give --name"))
}
