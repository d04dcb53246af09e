//! Whose artifacts a command means.

use clap::Args;
use holdfast::{Scope, ids::RunId};

use crate::{session::Session, values::run_id};

/// An account, a conversation or a run.
#[derive(Args, Default)]
pub(crate) struct OwnerArgs {
    /// Account that owns it; `default` if nothing else is named. Beside the others: the account that they must be of
    #[arg(long, value_name = "A")]
    account: Option<String>,
    /// Conversation that owns it
    #[arg(long, value_name = "C", conflicts_with = "run")]
    conversation: Option<String>,
    /// Run that has it and has not given it away
    #[arg(long, value_name = "R", value_parser = run_id)]
    run: Option<RunId>,
}

impl OwnerArgs {
    pub(crate) fn scope<'a>(&'a self, session: &'a Session) -> Scope<'a> {
        session.scope(self.account.as_deref(), self.conversation.as_deref(), self.run)
    }
}
