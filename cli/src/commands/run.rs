//! `run`: what an agent's run puts, and what becomes of it: claimed by a reply, or ended by time.

use std::fmt;

use clap::{Args, Subcommand};
use holdfast::{
    BeginRun, ClaimReply, RunInfo, RunScope, RunToken, Store, Tag,
    format::run::RunState,
    ids::RunId,
    limits::{LEASE_MS, LIST_PAGE_MAX, RUN_TTL_MS},
    ownership::run::Finish,
};
use serde::Serialize;

use crate::{
    exit_code::{Outcome, help},
    record::Brought,
    session::Session,
    several::each_listed,
    values::{duration_ms, outcome, run_id, run_token, tag, time_text},
};

/// Begin, renew, pause, tag, claim, finish and list runs
///
/// A run puts files under a token. They end with its ttl, unless a claim gives them to a conversation.
#[derive(Args)]
#[command(after_help = help(
    &["holdfast run begin --conversation thread-7 --ttl 30d", "holdfast run list"],
    &[0, 1, 2, 3, 4, 5, 6, 7],
))]
pub(crate) struct RunArgs {
    #[command(subcommand)]
    verb: RunCommand,
}

#[derive(Subcommand)]
enum RunCommand {
    /// Begin a run, or lease one again with --run; prints run and token
    #[command(after_help = help(
        &["holdfast run begin --lease 10m --ttl 30d", "holdfast run begin --tag email=a@example.org --request-id job-12"],
        &[0, 1, 2, 3, 4, 5, 6, 7],
    ))]
    Begin(BeginArgs),
    /// Prolong the lease
    #[command(after_help = help(&["holdfast run renew --token @token"], &[0, 1, 2, 3, 4, 5, 6, 7]))]
    Renew(RenewArgs),
    /// End the lease; the run goes on with the next one, within its ttl
    #[command(after_help = help(&["holdfast run pause --token @token"], &[0, 1, 2, 3, 4, 5, 6, 7]))]
    Pause(TokenArgs),
    /// Note third parties that the run touched; what is stored of them is a hash
    #[command(after_help = help(
        &["holdfast run tag --run mfrggzdfmztwq2lknnwg23tpoa --tag email=a@example.org"],
        &[0, 1, 2, 3, 4, 5, 6, 7],
    ))]
    Tag(TagArgs),
    /// Give what the run exported to a conversation, all of it at once
    ///
    /// Files of the origins `sandbox_export` and `model_output` go, in the order of their puts, the first of each name and content. They
    /// live as long as the conversation from then on. The same reply id gets the same list again.
    #[command(after_help = help(
        &["holdfast run claim --token @token --conversation thread-7 --reply-id msg-3"],
        &[0, 1, 2, 3, 4, 5, 6, 7],
    ))]
    Claim(ClaimArgs),
    /// Finish the run, once
    #[command(after_help = help(
        &["holdfast run finish --token @token --outcome succeeded"],
        &[0, 1, 2, 3, 4, 5, 6, 7],
    ))]
    Finish(FinishArgs),
    /// List the runs of an account, oldest first
    #[command(after_help = help(&["holdfast run list --limit 20"], &[0, 1, 2, 3, 5, 6]))]
    List(ListArgs),
}

#[derive(Args)]
struct BeginArgs {
    /// Account that it is of; `default` if none is named
    #[arg(long, value_name = "A")]
    account: Option<String>,
    /// Conversation that it works for: deleting that takes what the run has not given away
    #[arg(long, value_name = "C")]
    conversation: Option<String>,
    /// Run that begins it
    #[arg(long, value_name = "R", value_parser = run_id)]
    parent: Option<RunId>,
    /// Third party that it touches, as KIND=KEY; any number of them
    #[arg(long, value_name = "K=V", value_parser = tag)]
    tag: Vec<(String, String)>,
    /// How long it may last, and how long what it puts is kept unless it is claimed; 30d if not given
    #[arg(long, value_name = "TIME", value_parser = duration_ms)]
    ttl: Option<u64>,
    /// How long its lease lasts; 10m if not given
    #[arg(long, value_name = "TIME", value_parser = duration_ms)]
    lease: Option<u64>,
    /// Makes a retry safe: the same id again gives the first outcome
    #[arg(long, value_name = "ID")]
    request_id: Option<String>,
    /// Not a new run, but a new lease of this one; the tokens before it count no more
    #[arg(long, value_name = "R", value_parser = run_id, conflicts_with_all = ["conversation", "parent", "tag", "ttl"])]
    run: Option<RunId>,
}

#[derive(Args)]
struct TokenArgs {
    /// Token that `run begin` printed; `@FILE` reads it from a file
    #[arg(long, value_name = "TOK", env = "HOLDFAST_RUN_TOKEN", hide_env_values = true, value_parser = run_token)]
    token: RunToken,
}

#[derive(Args)]
struct RenewArgs {
    #[command(flatten)]
    token: TokenArgs,
    /// How long from now; 10m if not given
    #[arg(long, value_name = "TIME", value_parser = duration_ms)]
    lease: Option<u64>,
}

#[derive(Args)]
struct TagArgs {
    /// Token that `run begin` printed; `@FILE` reads it from a file
    #[arg(long, value_name = "TOK", value_parser = run_token, required_unless_present = "run", conflicts_with = "run")]
    token: Option<RunToken>,
    /// Any run, active or not
    #[arg(long, value_name = "R", value_parser = run_id)]
    run: Option<RunId>,
    /// Third party, as KIND=KEY; any number of them
    #[arg(long, value_name = "K=V", value_parser = tag, required = true)]
    tag: Vec<(String, String)>,
}

#[derive(Args)]
struct ClaimArgs {
    #[command(flatten)]
    token: TokenArgs,
    /// Conversation that gets the files
    #[arg(long, value_name = "C")]
    conversation: String,
    /// Names the reply: the same id again gives the same list, another one comes too late
    #[arg(long, value_name = "ID")]
    reply_id: String,
}

#[derive(Args)]
struct FinishArgs {
    #[command(flatten)]
    token: TokenArgs,
    /// How it ended: succeeded, failed or cancelled
    #[arg(long, value_name = "OUTCOME", value_parser = outcome)]
    outcome: RunState,
    /// What it had claimed goes back to it, with the end that it had; for a run that failed or was cancelled
    #[arg(long)]
    release_claim: bool,
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
    #[arg(long, value_name = "R", value_parser = run_id)]
    after: Option<RunId>,
}

#[derive(Serialize)]
struct Begun {
    run: String,
    token: String,
}

#[derive(Serialize)]
struct Leased {
    run: String,
    lease_until: Option<String>,
}

#[derive(Serialize)]
struct Tagged {
    run: String,
    affected: bool,
}

#[derive(Serialize)]
struct Finished {
    run: String,
    outcome: &'static str,
}

#[derive(Serialize)]
struct Skipped {
    id: String,
    reason: &'static str,
}

#[derive(Serialize)]
struct Claimed {
    artifacts: Vec<Brought>,
    skipped: Vec<Skipped>,
    replayed: bool,
}

#[derive(Serialize)]
struct Listed {
    run: String,
    account: String,
    conversation: Option<String>,
    parent: Option<String>,
    state: &'static str,
    generation: u32,
    begun_at: String,
    ends_at: String,
    lease_until: Option<String>,
    changed_lsn: String,
}

impl From<ClaimReply> for Claimed {
    fn from(reply: ClaimReply) -> Self {
        let skipped = |(id, reason): (holdfast::ids::ArtifactId, holdfast::format::claim::SkipReason)| Skipped {
            id: id.to_string(),
            reason: reason.as_str(),
        };
        Self {
            artifacts: reply.artifacts.into_iter().map(Brought::from).collect(),
            skipped: reply.skipped.into_iter().map(skipped).collect(),
            replayed: reply.replayed,
        }
    }
}

impl fmt::Display for Claimed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.artifacts {
            writeln!(f, "{line}")?;
        }
        for Skipped { id, reason } in &self.skipped {
            writeln!(f, "{id}  left: {reason}")?;
        }
        write!(f, "{} claimed{}", self.artifacts.len(), if self.replayed { "  (as before)" } else { "" })
    }
}

impl From<RunInfo> for Listed {
    fn from(info: RunInfo) -> Self {
        Self {
            run: info.run.to_string(),
            account: info.account,
            conversation: info.conversation,
            parent: info.parent.map(|parent| parent.to_string()),
            state: info.state.as_str(),
            generation: info.generation,
            begun_at: time_text(info.begun_at),
            ends_at: time_text(info.ends_at),
            lease_until: info.lease_until.map(time_text),
            changed_lsn: info.changed_lsn.to_string(),
        }
    }
}

pub(crate) fn run(args: &RunArgs, session: &Session) -> Outcome {
    match &args.verb {
        RunCommand::Begin(args) => begin(args, session),
        RunCommand::Renew(RenewArgs { token, lease }) => {
            let lease = lease.unwrap_or(LEASE_MS);
            leased(&session.change("run renew", |s| s.renew_run(&session.tenant, &token.token, lease))?, session)
        }
        RunCommand::Pause(args) => {
            leased(&session.change("run pause", |s| s.pause_run(&session.tenant, &args.token))?, session)
        }
        RunCommand::Tag(args) => add_tags(args, session),
        RunCommand::Claim(ClaimArgs { token, conversation, reply_id }) => {
            let claim = |s: &Store| s.claim_run(&session.tenant, &token.token, conversation, reply_id);
            let claimed = Claimed::from(session.change("run claim", claim)?);
            session.output.line(&claimed, &claimed)
        }
        RunCommand::Finish(args) => {
            let finish = Finish { outcome: args.outcome, release_claim: args.release_claim };
            let info = session.change("run finish", |s| s.finish_run(&session.tenant, &args.token.token, finish))?;
            let finished = Finished { run: info.run.to_string(), outcome: info.state.as_str() };
            session.output.line(&finished, format!("{}  {}", finished.run, finished.outcome))
        }
        RunCommand::List(args) => list(args, session),
    }
}

fn begin(args: &BeginArgs, session: &Session) -> Outcome {
    let tags = tags(&args.tag);
    let begin = BeginRun {
        scope: session.account(args.account.as_deref()),
        conversation: args.conversation.as_deref(),
        parent: args.parent,
        tags: &tags,
        ttl: args.ttl.unwrap_or(RUN_TTL_MS),
        lease: args.lease.unwrap_or(LEASE_MS),
        request_id: args.request_id.as_deref(),
        again: args.run,
    };
    let leased = session.change("run begin", |store| store.begin_run(&begin))?;
    let line = Begun { run: leased.run.run.to_string(), token: leased.token.to_text() };
    session.output.line(&line, format!("run    {}\ntoken  {}", line.run, line.token))
}

fn tags(given: &[(String, String)]) -> Vec<Tag<'_>> {
    given.iter().map(|(kind, key)| Tag { kind, key }).collect()
}

fn leased(info: &RunInfo, session: &Session) -> Outcome {
    let leased = Leased { run: info.run.to_string(), lease_until: info.lease_until.map(time_text) };
    let until = leased.lease_until.as_deref().unwrap_or("ended");
    session.output.line(&leased, format!("{}  {until}", leased.run))
}

fn add_tags(args: &TagArgs, session: &Session) -> Outcome {
    let tags = tags(&args.tag);
    let (run, affected) = session.change("run tag", |store| match (&args.token, args.run) {
        (Some(token), _) => Ok((token.run, store.tag_run(&session.tenant, token, &tags)?)),
        (None, Some(run)) => {
            let scope = RunScope { tenant: &session.tenant, account: None, run };
            Ok((run, store.tag_any_run(&scope, &tags)?))
        }
        (None, None) => Err(crate::output::invalid("which run? Give --token or --run")),
    })?;
    let tagged = Tagged { run: run.to_string(), affected };
    let note = if affected { "  (affected: all but its uploads is void)" } else { "" };
    session.output.line(&tagged, format!("{}{note}", tagged.run))
}

fn list(args: &ListArgs, session: &Session) -> Outcome {
    let scope = session.account(args.account.as_deref());
    session.look("run list", |store| {
        let page = |after: Option<&RunId>| {
            let page = store.list_runs(&scope, after.copied(), LIST_PAGE_MAX)?;
            let last = page.last().map(|info| info.run);
            Ok((page, last))
        };
        each_listed(args.limit, args.after, page, |info| {
            let listed = Listed::from(info);
            let line = format!("{}  {}  {}", listed.run, listed.begun_at, listed.state);
            session.output.line(&listed, line)
        })
    })
}
