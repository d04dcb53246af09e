//! `upload`: files that come in parts, over pauses and restarts, and go to a conversation when their message is sent.

use std::{
    fmt,
    io::{self, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};
use holdfast::{
    CommitUpload, Error, PutReply, Store, UploadInfo, UploadScope,
    format::{artifact::Origin, keyspace::OwnerKind},
    ids::{ArtifactId, Sha256, UploadId},
    limits::LIST_PAGE_MAX,
};
use serde::Serialize;

use crate::{
    exit_code::{Outcome, help},
    files::{Base, Source},
    output::invalid,
    record::{Brought, Record},
    session::{DEFAULT_ACCOUNT, Session},
    several::each_listed,
    values::{artifact_id, byte_size, origin, sha256, time_text, upload_id},
};

/// Upload files in parts, and give them to a conversation when their message is sent
///
/// What was appended is there after a restart; an append goes on where the upload stands. A day after the last append an upload ends, and a
/// day after its commit the file does, unless a conversation claimed it.
#[derive(Args)]
#[command(after_help = help(
    &[
        "holdfast upload begin --size 8G",
        "holdfast upload append mfrggzdfmztwq2lknnwg23tpoa scan.tif",
        "holdfast upload commit --name scan.tif mfrggzdfmztwq2lknnwg23tpoa",
    ],
    &[0, 1, 2, 3, 4, 5, 6, 7],
))]
pub(crate) struct UploadArgs {
    #[command(subcommand)]
    verb: UploadCommand,
}

#[derive(Subcommand)]
enum UploadCommand {
    /// Begin an upload
    #[command(after_help = help(&["holdfast upload begin --account ann --size 8G"], &[0, 1, 2, 5, 6, 7]))]
    Begin(BeginArgs),
    /// Append a file from where the upload stands, or standard input
    ///
    /// After an interruption the same command goes on where it was: of FILE the bytes that the upload has are passed over. Standard input is
    /// appended as it comes.
    #[command(after_help = help(
        &[
            "holdfast upload append mfrggzdfmztwq2lknnwg23tpoa scan.tif",
            "cat part-2 | holdfast upload append --offset 4096 mfrggzdfmztwq2lknnwg23tpoa -",
        ],
        &[0, 1, 2, 3, 4, 5, 6, 7],
    ))]
    Append(AppendArgs),
    /// Make an artifact of an upload; a second time gives the same one
    #[command(after_help = help(
        &["holdfast upload commit --name scan.tif mfrggzdfmztwq2lknnwg23tpoa"],
        &[0, 1, 2, 3, 4, 5, 6, 7],
    ))]
    Commit(CommitArgs),
    /// End an upload without a result; one that has ended is done
    #[command(after_help = help(&["holdfast upload abort mfrggzdfmztwq2lknnwg23tpoa"], &[0, 1, 2, 3, 5, 6, 7]))]
    Abort(One),
    /// Give what uploads became to the conversation of a message, all or none
    #[command(after_help = help(
        &["holdfast upload claim --conversation c-7 --message-id msg-4 mfrggzdfmztwq2lknnwg23tpoa"],
        &[0, 1, 2, 3, 4, 5, 6, 7],
    ))]
    Claim(ClaimArgs),
    /// List the uploads of an account that go on, by rising id
    #[command(after_help = help(&["holdfast upload list", "holdfast upload list --unsent"], &[0, 1, 2, 3, 5, 6]))]
    List(ListArgs),
}

#[derive(Args)]
struct One {
    /// Id of the upload
    #[arg(value_parser = upload_id)]
    upload: UploadId,
    /// Account that it is of; `default` unless it is named
    #[arg(long, value_name = "A")]
    account: Option<String>,
}

impl One {
    fn scope<'a>(&'a self, session: &'a Session) -> UploadScope<'a> {
        let account = self.account.as_deref().unwrap_or(DEFAULT_ACCOUNT);
        UploadScope { tenant: &session.tenant, account, upload: self.upload }
    }
}

#[derive(Args)]
struct BeginArgs {
    /// Account that it is of; `default` unless it is named
    #[arg(long, value_name = "A")]
    account: Option<String>,
    /// How many bytes there will be, like 1048576 or 8G; then no more are taken, and no fewer committed
    #[arg(long, value_name = "SIZE", value_parser = byte_size)]
    size: Option<u64>,
}

#[derive(Args)]
struct AppendArgs {
    #[command(flatten)]
    to: One,
    /// Regular file, from its first byte on, or `-` for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Refuse unless the upload has so many bytes
    #[arg(long, value_name = "N")]
    offset: Option<u64>,
}

#[derive(Args)]
struct CommitArgs {
    #[command(flatten)]
    of: One,
    /// Name on the record
    #[arg(long, value_name = "N")]
    name: String,
    /// Where it comes from
    #[arg(long, value_name = "O", value_parser = origin, default_value = "upload")]
    origin: Origin,
    /// Media type on the record; by default what the first bytes say
    #[arg(long, value_name = "M")]
    media_type: Option<String>,
    /// The caller's own order
    #[arg(long, value_name = "K")]
    order: Option<u64>,
    /// Refuse unless the bytes have this SHA-256
    #[arg(long, value_name = "HEX", value_parser = sha256)]
    expect_sha256: Option<Sha256>,
}

#[derive(Args)]
struct ClaimArgs {
    /// What the uploads became, in the order that the conversation gets
    #[arg(required = true, value_name = "ID", value_parser = artifact_id)]
    ids: Vec<ArtifactId>,
    /// Conversation that gets them
    #[arg(long, value_name = "C")]
    conversation: String,
    /// Account that it must be of
    #[arg(long, value_name = "A")]
    account: Option<String>,
    /// Names the message: the same one again gets the first answer
    #[arg(long, value_name = "ID")]
    message_id: String,
}

#[derive(Args)]
struct ListArgs {
    /// Account whose they are
    #[arg(long, value_name = "A")]
    account: Option<String>,
    /// Instead what was committed and no conversation claimed yet
    #[arg(long, conflicts_with = "after")]
    unsent: bool,
    /// At most so many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Only those behind this one: the last of the page before
    #[arg(long, value_name = "U", value_parser = upload_id)]
    after: Option<UploadId>,
}

#[derive(Serialize)]
struct Line {
    upload: String,
    offset: u64,
    declared: Option<u64>,
    expires_at: Option<String>,
}

#[derive(Serialize)]
struct Committed {
    upload: String,
    id: String,
    name: String,
    size: u64,
    sha256: String,
    media_type: String,
    replayed: bool,
}

#[derive(Serialize)]
struct Aborted {
    upload: String,
}

#[derive(Serialize)]
struct Claimed {
    artifacts: Vec<Brought>,
    replayed: bool,
}

impl From<UploadInfo> for Line {
    fn from(info: UploadInfo) -> Self {
        Self {
            upload: info.upload.to_string(),
            offset: info.offset,
            declared: info.declared,
            expires_at: info.expires_at.map(time_text),
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}  {:>12}", self.upload, self.offset)?;
        self.declared.map_or(Ok(()), |declared| write!(f, " of {declared}"))
    }
}

impl Committed {
    fn new(upload: UploadId, reply: PutReply) -> Self {
        Self {
            upload: upload.to_string(),
            id: reply.id.to_string(),
            name: reply.name,
            size: reply.size,
            sha256: reply.sha256.to_string(),
            media_type: reply.media_type,
            replayed: reply.replayed,
        }
    }
}

pub(crate) fn run(args: &UploadArgs, session: &Session) -> Outcome {
    match &args.verb {
        UploadCommand::Begin(args) => {
            let account = session.account(args.account.as_deref());
            show(session.change("upload begin", |store| store.begin_upload(&account, args.size))?, session)
        }
        UploadCommand::Append(args) => {
            show(session.change("upload append", |store| append(args, store, session))?, session)
        }
        UploadCommand::Commit(args) => commit(args, session),
        UploadCommand::Abort(one) => {
            session.change("upload abort", |store| store.abort_upload(&one.scope(session)))?;
            let aborted = Aborted { upload: one.upload.to_string() };
            session.output.line(&aborted, &aborted.upload)
        }
        UploadCommand::Claim(args) => claim(args, session),
        UploadCommand::List(args) if args.unsent => list_unsent(args, session),
        UploadCommand::List(args) => list(args, session),
    }
}

fn append(args: &AppendArgs, store: &Store, session: &Session) -> Result<UploadInfo, Error> {
    let scope = args.to.scope(session);
    let stands = store.upload(&scope)?.offset;
    let offset = args.offset.unwrap_or(stands);
    if args.file.as_os_str() == "-" {
        return from(store, &scope, offset, Source::stream(&mut io::stdin().lock()));
    }
    let (mut file, len) = Base::Anywhere.open(Path::new(&args.file))?;
    let left = len
        .checked_sub(offset)
        .ok_or_else(|| invalid(format!("the upload has {offset} bytes, and the file only {len}: it is another one")))?;
    let text = args.file.to_string_lossy();
    file.seek(SeekFrom::Start(offset)).map_err(|error| Error::io(error, &*text, "pass over what is there"))?;
    from(store, &scope, offset, Source::file(&mut file, left))
}

fn from(store: &Store, scope: &UploadScope<'_>, offset: u64, mut source: Source<'_>) -> Result<UploadInfo, Error> {
    store.append_upload(scope, offset, &mut source).map_err(|error| source.failure().unwrap_or(error))
}

fn show(info: UploadInfo, session: &Session) -> Outcome {
    let line = Line::from(info);
    session.output.line(&line, &line)
}

fn commit(args: &CommitArgs, session: &Session) -> Outcome {
    let asked = CommitUpload {
        name: &args.name,
        origin: args.origin,
        media_type: args.media_type.as_deref(),
        order: args.order,
        expect_sha256: args.expect_sha256,
    };
    let scope = args.of.scope(session);
    let reply = session.change("upload commit", |store| store.commit_upload(&scope, &asked))?;
    let line = Committed::new(args.of.upload, reply);
    let note = if line.replayed { "  (as before)" } else { "" };
    session.output.line(&line, format!("{}  {:>12}  {}{note}", line.id, line.size, line.name))
}

fn claim(args: &ClaimArgs, session: &Session) -> Outcome {
    let conversation = session.conversation(args.account.as_deref(), &args.conversation);
    let claim = |store: &Store| store.claim_uploads(&conversation, &args.message_id, &args.ids);
    let reply = session.change("upload claim", claim)?;
    let line =
        Claimed { artifacts: reply.artifacts.into_iter().map(Brought::from).collect(), replayed: reply.replayed };
    let note = if line.replayed { "  (as before)" } else { "" };
    let text: Vec<String> = line.artifacts.iter().map(ToString::to_string).collect();
    session.output.line(&line, format!("{}{note}", text.join("\n")))
}

fn list(args: &ListArgs, session: &Session) -> Outcome {
    let account = session.account(args.account.as_deref());
    session.look("upload list", |store| {
        let page = |after: Option<&UploadId>| {
            let page = store.list_uploads(&account, after.copied(), LIST_PAGE_MAX)?;
            let last = page.last().map(|info| info.upload);
            Ok((page, last))
        };
        each_listed(args.limit, args.after, page, |info| show(info, session))
    })
}

fn list_unsent(args: &ListArgs, session: &Session) -> Outcome {
    let account = session.account(args.account.as_deref());
    session.look("upload list", |store| {
        let page = |after: Option<&ArtifactId>| {
            let page = store.list_all(&account, after.copied(), LIST_PAGE_MAX)?;
            let last = page.last().map(|info| info.id);
            let unsent = page.into_iter().filter(|info| info.owner_kind == OwnerKind::Upload);
            Ok::<_, Error>((unsent.collect(), last))
        };
        each_listed(args.limit, None, page, |info| {
            let record = Record::from(info);
            let line = format!("{}  {}  {:>12}  {}", record.id, record.created_at, record.size, record.name);
            session.output.line(&record, line)
        })
    })
}
