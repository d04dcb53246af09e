//! The records of ownership: sections 12.3 to 12.6.

use super::values::text;
use crate::Id16;
use crate::error::{Error, Result};
use crate::fields::Fields;
use crate::limits;
use std::fmt;

/// What state a conversation is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the table")]
pub enum ConversationState {
    Open = 1,
    Archived = 2,
    Deleted = 3,
}

/// A conversation. Its text is a person's, so `Debug` leaves it out.
#[derive(Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the table")]
pub struct Conversation {
    pub account: Id16,
    pub state: ConversationState,
    pub opened_lsn: u64,
    pub opened_at: u64,
    pub changed_lsn: u64,
    pub reset_lsn: u64,
    pub forked_from: Option<Id16>,
    pub text: String,
}

impl fmt::Debug for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conversation")
            .field("state", &self.state)
            .field("changed", &self.changed_lsn)
            .finish_non_exhaustive()
    }
}

impl Conversation {
    pub(super) fn parse(f: &mut Fields<'_>) -> Result<Self> {
        let account = f.array("account")?;
        let state = match f.u8("state")? {
            1 => ConversationState::Open,
            2 => ConversationState::Archived,
            3 => ConversationState::Deleted,
            _ => return Err(Error::Value(f.place())),
        };
        let flags = f.u8("flags")?;
        f.check(flags & !1 == 0, Error::Reserved)?;
        let length = f.u16("text length")?;
        f.check(length <= 128 && (length == 0) == (state == ConversationState::Deleted), Error::Bound)?;
        f.reserved(4)?;
        let opened_lsn = lsn(f, "opened LSN")?;
        let opened_at = f.u64("opened_at")?;
        let changed_lsn = lsn(f, "changed LSN")?;
        let reset_lsn = f.u64("reset LSN")?;
        let forked_from = f.array("forked_from")?;
        let forked_from = present(f, flags & 1 != 0, forked_from)?;
        let text = text(f, "text", length)?;
        Ok(Self { account, state, opened_lsn, opened_at, changed_lsn, reset_lsn, forked_from, text })
    }
}

/// What state a run is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the table")]
pub enum RunState {
    Active = 1,
    Succeeded = 2,
    Failed = 3,
    Cancelled = 4,
}

/// A run. Its token is a secret of whoever leased it, so `Debug` leaves it out.
#[derive(Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the table")]
pub struct Run {
    pub id: Id16,
    pub account: Id16,
    pub conversation: Option<Id16>,
    pub parent: Option<Id16>,
    pub state: RunState,
    pub generation: u32,
    pub begin_lsn: u64,
    pub begun_at: u64,
    pub lease_lsn: u64,
    pub lease_until: u64,
    pub ttl: u64,
    pub ends_at: u64,
    pub finished_at: u64,
    pub changed_lsn: u64,
    pub token: Id16,
    pub tags: Vec<Id16>,
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("state", &self.state)
            .field("generation", &self.generation)
            .field("changed", &self.changed_lsn)
            .finish_non_exhaustive()
    }
}

impl Run {
    pub(super) fn parse(f: &mut Fields<'_>) -> Result<Self> {
        let id = f.array("run id")?;
        let account = f.array("account")?;
        let conversation = f.array("conversation")?;
        let parent = f.array("parent")?;
        let state = match f.u8("state")? {
            1 => RunState::Active,
            2 => RunState::Succeeded,
            3 => RunState::Failed,
            4 => RunState::Cancelled,
            _ => return Err(Error::Value(f.place())),
        };
        let flags = f.u8("flags")?;
        f.check(flags & !3 == 0, Error::Reserved)?;
        let conversation = present(f, flags & 1 != 0, conversation)?;
        let parent = present(f, flags & 2 != 0, parent)?;
        let tags = f.u16("tag count")?;
        f.check(tags <= limits::RUN_TAGS, Error::Bound)?;
        let generation = f.u32("generation")?;
        f.check(generation > 0, Error::Value)?;
        let begin_lsn = lsn(f, "begin LSN")?;
        let begun_at = f.u64("begun_at")?;
        let lease_lsn = lsn(f, "lease LSN")?;
        let lease_until = f.u64("lease_until")?;
        let ttl = f.u64("ttl")?;
        let ends_at = f.u64("ends_at")?;
        let finished_at = f.u64("finished_at")?;
        f.check(state != RunState::Active || finished_at == 0, Error::Mismatch)?;
        let changed_lsn = lsn(f, "changed LSN")?;
        let token = f.array("token")?;
        let tags: Vec<Id16> = (0..tags).map(|_| f.array("tag")).collect::<Result<_>>()?;
        f.check(tags.windows(2).all(|pair| pair.first() < pair.last()), Error::Order)?;
        Ok(Self {
            id,
            account,
            conversation,
            parent,
            state,
            generation,
            begin_lsn,
            begun_at,
            lease_lsn,
            lease_until,
            ttl,
            ends_at,
            finished_at,
            changed_lsn,
            token,
            tags,
        })
    }
}

/// An artifact that a claim took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the table")]
pub struct Claimed {
    pub artifact: Id16,
    pub expires_at: u64,
}

/// An artifact that a claim left, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the table")]
pub struct Skipped {
    pub artifact: Id16,
    pub reason: u8,
}

/// A claim of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the table")]
pub struct Claim {
    pub conversation: Id16,
    pub reply: Id16,
    pub lsn: u64,
    pub time: u64,
    pub released: bool,
    pub claimed: Vec<Claimed>,
    pub skipped: Vec<Skipped>,
}

impl Claim {
    pub(super) fn parse(f: &mut Fields<'_>) -> Result<Self> {
        let conversation = f.array("conversation")?;
        let reply = f.array("reply hash")?;
        let lsn = lsn(f, "LSN")?;
        let time = f.u64("time")?;
        let released = f.u8("released")?;
        f.check(released <= 1, Error::Value)?;
        f.reserved(3)?;
        let claimed = f.u32("claimed count")?;
        f.check(claimed <= limits::CLAIM_ENTRIES, Error::Bound)?;
        let skipped = f.u32("skipped count")?;
        f.check(skipped <= limits::CLAIM_ENTRIES, Error::Bound)?;
        f.reserved(4)?;
        let claimed =
            (0..claimed).map(|_| Ok(Claimed { artifact: f.array("claimed id")?, expires_at: f.u64("expires_at")? }));
        let claimed = claimed.collect::<Result<_>>()?;
        let mut left = Vec::new();
        for _ in 0..skipped {
            let artifact = f.array("skipped id")?;
            let reason = f.u8("reason")?;
            f.check((1..=3).contains(&reason), Error::Value)?;
            f.reserved(7)?;
            left.push(Skipped { artifact, reason });
        }
        Ok(Self { conversation, reply, lsn, time, released: released == 1, claimed, skipped: left })
    }
}

/// What a fence covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are those of the table")]
pub struct FenceKey {
    pub kind: u8,
    pub scope: Id16,
}

/// A fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the table")]
pub struct Fence {
    pub void_all: u64,
    pub void_derived: u64,
    pub closed_at: u64,
    pub reopened_at: u64,
    pub erased_at: u64,
}

impl Fence {
    pub(super) fn parse(f: &mut Fields<'_>) -> Result<Self> {
        let fence = Self {
            void_all: f.u64("void_all")?,
            void_derived: f.u64("void_derived")?,
            closed_at: f.u64("closed_at")?,
            reopened_at: f.u64("reopened_at")?,
            erased_at: f.u64("erased_at")?,
        };
        f.check(fence.latest() > 0, Error::Value)?;
        Ok(fence)
    }

    /// The latest of its LSNs.
    pub fn latest(&self) -> u64 {
        let Self { void_all, void_derived, closed_at, reopened_at, erased_at } = *self;
        void_all.max(void_derived).max(closed_at).max(reopened_at).max(erased_at)
    }
}

/// The key of keyspace 23: a run or conversation of an account, in the order in which they began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are those of the table")]
pub struct OfAccountKey {
    pub tenant: u32,
    pub account: Id16,
    pub kind: u8,
    pub lsn: u64,
    pub scope: Id16,
}

/// An LSN that must be one.
pub(super) fn lsn(f: &mut Fields<'_>, field: &'static str) -> Result<u64> {
    let lsn = f.u64(field)?;
    f.check(lsn > 0, Error::Value)?;
    Ok(lsn)
}

/// The value of a field that a flag says is there; one that is not there is zero.
fn present(f: &Fields<'_>, there: bool, value: Id16) -> Result<Option<Id16>> {
    f.check(there || value == [0; 16], Error::Value)?;
    Ok(there.then_some(value))
}
