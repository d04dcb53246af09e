//! What every command starts from: the store that was named, and how to print.

use std::path::{Path, PathBuf};

use holdfast::{
    AccountScope, ConversationScope, Error, OpenMode, OpenOptions, RunScope, Scope, Store, World, ids::RunId,
};

use crate::{
    exit_code::Outcome,
    output::{Output, invalid, shown},
};

/// Whose artifacts are meant unless somebody is named.
pub(crate) const DEFAULT_ACCOUNT: &str = "default";

/// The shared arguments.
pub(crate) struct Session {
    store: Option<PathBuf>,
    /// Name of the tenant.
    pub(crate) tenant: String,
    /// How to print.
    pub(crate) output: Output,
}

impl Session {
    pub(crate) const fn new(store: Option<PathBuf>, tenant: String, json: bool) -> Self {
        Self { store, tenant, output: Output { json } }
    }

    /// The directory that was named, if one was.
    pub(crate) fn named(&self) -> Option<&Path> {
        self.store.as_deref()
    }

    /// The directory that was named.
    pub(crate) fn dir(&self) -> Result<&Path, Error> {
        self.named().ok_or_else(|| invalid("which store? Give --store DIR, or set HOLDFAST_STORE"))
    }

    /// The directory that was named, as the engine reaches it.
    pub(crate) fn world(&self) -> Result<World, Error> {
        let dir = self.dir()?;
        World::os(dir).map_err(|error| cannot_enter(dir, error))
    }

    /// Opens the store for a change, does it and closes.
    pub(crate) fn change<T, E: From<Error>>(
        &self,
        command: &str,
        act: impl FnOnce(&Store) -> Result<T, E>,
    ) -> Result<T, E> {
        let store = self.open(OpenMode::Write, command)?;
        self.tell_of_recovery(&store);
        if let Some(refusal) = store.report().refusal() {
            return Err(refusal.into());
        }
        let done = act(&store);
        let closed = store.close();
        let done = done?;
        closed?;
        Ok(done)
    }

    /// Opens the store for reading, looks at it and closes.
    pub(crate) fn look<T>(&self, command: &str, act: impl FnOnce(&Store) -> Outcome<T>) -> Outcome<T> {
        let store = self.open(OpenMode::Read, command)?;
        let seen = act(&store);
        let closed = store.close();
        let seen = seen?;
        closed?;
        Ok(seen)
    }

    /// An account, `default` unless it is named.
    pub(crate) fn account<'a>(&'a self, account: Option<&'a str>) -> AccountScope<'a> {
        AccountScope { tenant: &self.tenant, account: account.unwrap_or(DEFAULT_ACCOUNT) }
    }

    /// A conversation, of whichever account it is unless one is named.
    pub(crate) fn conversation<'a>(&'a self, account: Option<&'a str>, conversation: &'a str) -> ConversationScope<'a> {
        ConversationScope { tenant: &self.tenant, account, conversation }
    }

    /// Whose artifacts the arguments mean.
    pub(crate) fn scope<'a>(
        &'a self,
        account: Option<&'a str>,
        conversation: Option<&'a str>,
        run: Option<RunId>,
    ) -> Scope<'a> {
        match (conversation, run) {
            (Some(conversation), _) => Scope::Conversation(self.conversation(account, conversation)),
            (None, Some(run)) => Scope::Run(RunScope { tenant: &self.tenant, account, run }),
            (None, None) => Scope::Account(self.account(account)),
        }
    }

    /// Tells what is wrong with the store, for commands that show what there is: of what was lost they show nothing.
    pub(crate) fn warn_of_damage(&self, store: &Store) {
        let report = store.report();
        if let Some(refusal) = report.refusal() {
            self.output.warn(&format!("{refusal}: what is shown may not be all that was put"));
        } else if let Some(first) = report.problems.first() {
            let file = first.file.as_deref().unwrap_or("the store");
            let count = report.problems.len();
            self.output.warn(&format!("damage was found, the first of {count} in {file}: see `holdfast verify`"));
        }
    }

    /// Tells what an open for writing had to put right, if it was more than is done each time.
    pub(crate) fn tell_of_recovery(&self, store: &Store) {
        let report = store.report();
        let parts: Vec<String> = [
            (report.adopted_commits, "commits taken over"),
            (report.torn_bytes, "bytes that were not acknowledged passed over"),
            (report.aborted_uploads, "unfinished puts given up"),
            (report.destroyed_files.len() as u64, "unfinished files removed"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
        if !parts.is_empty() {
            self.output.warn(&format!("left by an earlier process, and put right: {}", parts.join(", ")));
        }
    }

    /// Opens the store; `command` is what another process is told while this one holds it.
    pub(crate) fn open(&self, mode: OpenMode, command: &str) -> Result<Store, Error> {
        Store::open(self.world()?, &OpenOptions::new(mode, format!("holdfast {command}")))
    }
}

/// Why a directory cannot be a store, in words of the command line.
pub(crate) fn cannot_enter(dir: &Path, error: std::io::Error) -> Error {
    let dir = shown(&dir.to_string_lossy());
    match error.kind() {
        std::io::ErrorKind::NotFound => invalid(format!("there is no store at {dir}: make one with init")),
        std::io::ErrorKind::NotADirectory => invalid(format!("{dir} is not a directory")),
        // A link, somebody else's, or one that others may write: refused by rule and not by the system.
        std::io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => invalid(format!("{dir}: {error}")),
        _ => Error::io(error, dir, "the store's directory"),
    }
}
