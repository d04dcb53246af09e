//! Pruning: conversations are deleted by how old they are, or by how many stay.

use super::{ConversationInfo, Store};
use crate::{
    catalog::State,
    commit::{Request, Stage},
    error::Result,
    format::keyspace::{Keyspace, Possession},
    ids::Time,
    limits::LIST_PAGE_MAX,
    ownership::{
        AccountScope, ConversationScope,
        conversation::{self, Named, Verb},
    },
};

/// Which conversations of an account stay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Retain {
    /// Those that were opened within so many milliseconds.
    OpenedWithin(u64),
    /// So many of those that were opened last.
    Newest(u64),
}

/// A prune on its way: each step gives the conversations that one commit deleted, at most 1,000, the longest open first and as they were
/// before. Nothing is deleted that no step was asked for.
pub struct Prune<'a> {
    store: &'a Store,
    scope: AccountScope<'a>,
    /// What was opened up to then goes.
    until: Option<Time>,
    /// How many go at most.
    left: u64,
    /// Whether nothing is deleted, and the next page begins behind the last.
    dry: bool,
    after: Option<String>,
}

impl Store {
    /// Deletes the conversations of an account that `retain` does not keep, as
    /// [`change_conversation`](Self::change_conversation) deletes one; with `dry` it only tells which. A conversation is as old as it was
    /// opened long ago, whatever came into it since. O(1) a conversation that goes; to keep the newest, all of the account are counted
    /// first.
    pub fn prune<'a>(&'a self, scope: &AccountScope<'a>, retain: Retain, dry: bool) -> Result<Prune<'a>> {
        if !dry {
            self.writing()?;
        }
        let (until, left) = match retain {
            Retain::OpenedWithin(ms) => (Some(Time(self.now().0.saturating_sub(ms))), u64::MAX),
            Retain::Newest(keep) => (None, self.count_conversations(scope)?.saturating_sub(keep)),
        };
        Ok(Prune { store: self, scope: *scope, until, left, dry, after: None })
    }

    fn count_conversations(&self, scope: &AccountScope<'_>) -> Result<u64> {
        let prefix = self.account(scope)?.possession_prefix(Possession::Conversation);
        let (mut count, mut after) = (0, None);
        loop {
            let page = self.published.read().scan(Keyspace::OfAccount, &prefix, after.as_deref(), LIST_PAGE_MAX)?;
            count += page.len() as u64;
            match page.into_iter().next_back() {
                Some((last, _)) => after = Some(last),
                None => return Ok(count),
            }
        }
    }
}

impl Iterator for Prune<'_> {
    type Item = Result<Vec<ConversationInfo>>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if step.is_err() {
            self.left = 0;
        }
        step.map(|chosen| (!chosen.is_empty()).then_some(chosen)).transpose()
    }
}

impl Prune<'_> {
    fn step(&mut self) -> Result<Vec<ConversationInfo>> {
        let most = usize::try_from(self.left).unwrap_or(LIST_PAGE_MAX).min(LIST_PAGE_MAX);
        if most == 0 {
            return Ok(Vec::new());
        }
        let mut chosen = self.store.list_conversations(&self.scope, self.after.as_deref(), most)?;
        // The list is in the order of opening, and so is time.
        chosen.truncate(chosen.partition_point(|info| self.until.is_none_or(|until| info.opened_at <= until)));
        self.left -= chosen.len() as u64;
        if self.dry {
            self.after = chosen.last().map(|last| last.conversation.clone());
            if self.after.is_none() {
                self.left = 0;
            }
        } else if !chosen.is_empty() {
            self.delete(&chosen)?;
        }
        Ok(chosen)
    }

    /// All in one commit.
    fn delete(&self, chosen: &[ConversationInfo]) -> Result<()> {
        let named = |info: &ConversationInfo| {
            let AccountScope { tenant, account } = self.scope;
            let scope = ConversationScope { tenant, account: Some(account), conversation: &info.conversation };
            Ok(self.store.conversation_named(&scope)?.1)
        };
        let named: Vec<Named> = chosen.iter().map(named).collect::<Result<_>>()?;
        let room = conversation::DELETE_LEN_MAX * named.len();
        let decide = move |stage: &mut Stage<'_>| {
            let mut edits = Vec::new();
            for named in &named {
                edits.extend(conversation::change(stage, stage.lsn(), named, Verb::Delete)?.0);
            }
            Ok((edits, ()))
        };
        self.store.writing()?.commit.run(Request::new(room, decide).privileged())
    }
}
