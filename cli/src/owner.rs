//! Whose artifacts a command means.

use clap::Args;
use holdfast::{
    Scope, UploadScope,
    ids::{RunId, UploadId},
};

use crate::{
    session::{DEFAULT_ACCOUNT, Session},
    values::{run_id, upload_id},
};

/// An account, a conversation, a run or an upload.
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
    /// Upload that became it, before a conversation claims it
    #[arg(long, value_name = "U", value_parser = upload_id, conflicts_with_all = ["conversation", "run"])]
    upload: Option<UploadId>,
}

impl OwnerArgs {
    pub(crate) fn scope<'a>(&'a self, session: &'a Session) -> Scope<'a> {
        if let Some(upload) = self.upload {
            let account = self.account.as_deref().unwrap_or(DEFAULT_ACCOUNT);
            return Scope::Upload(UploadScope { tenant: &session.tenant, account, upload });
        }
        session.scope(self.account.as_deref(), self.conversation.as_deref(), self.run)
    }
}
