//! The commands, one file each: its arguments, its help, what it calls and what it prints.

pub(crate) mod bench;
pub(crate) mod checkpoint;
pub(crate) mod completions;
pub(crate) mod conversation;
pub(crate) mod delete;
pub(crate) mod expire_at;
pub(crate) mod get;
pub(crate) mod init;
pub(crate) mod inspect;
pub(crate) mod link;
pub(crate) mod list;
pub(crate) mod man;
pub(crate) mod materialize;
pub(crate) mod prune;
pub(crate) mod put;
pub(crate) mod quickstart;
pub(crate) mod rename;
pub(crate) mod repair;
pub(crate) mod run;
pub(crate) mod stat;
pub(crate) mod stats;
pub(crate) mod tenant;
pub(crate) mod upload;
pub(crate) mod verify;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::exit_code::help;

/// A content-addressed blob store for files that somebody owns: one directory, verified bytes, durable before acknowledged
#[derive(Parser)]
#[command(
    name = "holdfast",
    version,
    disable_help_subcommand = true,
    after_help = help(
        &["holdfast quickstart", "holdfast init --store ./files && holdfast --store ./files put report.pdf"],
        &[0, 1, 2, 3, 4, 5, 6, 7],
    )
)]
pub(crate) struct Cli {
    /// Directory of the store
    #[arg(long, global = true, env = "HOLDFAST_STORE", hide_env_values = true, value_name = "DIR")]
    pub(crate) store: Option<PathBuf>,
    /// Name of the tenant
    #[arg(long, global = true, value_name = "T", default_value = "default", hide_default_value = true)]
    pub(crate) tenant: String,
    /// Print JSON, one object a line; errors too, on standard error
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    Init(init::InitArgs),
    Put(put::PutArgs),
    Get(get::GetArgs),
    Materialize(materialize::MaterializeArgs),
    Stat(stat::StatArgs),
    List(list::ListArgs),
    Link(link::LinkArgs),
    Rename(rename::RenameArgs),
    ExpireAt(expire_at::ExpireAtArgs),
    Delete(delete::DeleteArgs),
    Conversation(conversation::ConversationArgs),
    Run(run::RunArgs),
    Upload(upload::UploadArgs),
    Prune(prune::PruneArgs),
    Tenant(tenant::TenantArgs),
    Verify(verify::VerifyArgs),
    Repair(repair::RepairArgs),
    Inspect(inspect::InspectArgs),
    Stats(stats::StatsArgs),
    Checkpoint(checkpoint::CheckpointArgs),
    Quickstart(quickstart::QuickstartArgs),
    Bench(bench::BenchArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}
