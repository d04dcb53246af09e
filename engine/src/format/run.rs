//! The run record (FORMAT.md section 12.4).

use super::{
    Bad, Decoded,
    fields::{Fixed, layout, put},
};
use crate::{
    ids::{Lsn, RunId, ScopeHash, Time, TokenBits},
    limits::RUN_TAGS_MAX,
};

layout! { 152:
    ID 16, ACCOUNT 16, CONVERSATION 16, PARENT 16, STATE 1, FLAGS 1, TAGS 2, GENERATION 4, BEGIN_LSN 8, BEGUN_AT 8,
    LEASE_LSN 8, LEASE_UNTIL 8, TTL 8, ENDS_AT 8, FINISHED_AT 8, CHANGED_LSN 8, TOKEN 16,
}

const HAS_CONVERSATION: u8 = 1;
const HAS_PARENT: u8 = 2;

/// How a run stands. The numbers are format.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum RunState {
    /// It may put and claim.
    Active = 1,
    /// It is over, and did what it should.
    Succeeded = 2,
    /// It is over, and did not.
    Failed = 3,
    /// It was ended.
    Cancelled = 4,
}

impl RunState {
    /// Every state.
    pub const ALL: [Self; 4] = [Self::Active, Self::Succeeded, Self::Failed, Self::Cancelled];

    /// Its stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|state| *state as u8 == number)
    }
}

/// A run. Its token bits are not for printing, and their type does not print them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Run {
    /// Random; its key is the hash of the text of this.
    pub id: RunId,
    /// Whose it is.
    pub account: ScopeHash,
    /// The conversation that it works for.
    pub conversation: Option<ScopeHash>,
    /// The run that began it. Lineage only: nothing follows it.
    pub parent: Option<ScopeHash>,
    /// Its state, as it was last written.
    pub state: RunState,
    /// Rises with each lease.
    pub generation: u32,
    /// LSN that fences are held against, the same for all generations.
    pub begin_lsn: Lsn,
    /// When it began.
    pub begun_at: Time,
    /// LSN that gave the present lease.
    pub lease_lsn: Lsn,
    /// When the lease ends; `None` once it has been ended.
    pub lease_until: Option<Time>,
    /// How long it may last, and how long what it puts is kept unless it is claimed.
    pub ttl: u64,
    /// When it counts as cancelled if nobody finished it.
    pub ends_at: Time,
    /// When it was finished.
    pub finished_at: Time,
    /// LSN of the last change of the record.
    pub changed_lsn: Lsn,
    /// What the present token must carry.
    pub token: TokenBits,
    /// Third parties that it touched, in the order of their hashes.
    pub tags: Vec<ScopeHash>,
}

impl Run {
    /// The value.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![0; at::LEN];
        let o = &mut out[..];
        let flag = |there: bool, bit: u8| if there { bit } else { 0 };
        let flags = flag(self.conversation.is_some(), HAS_CONVERSATION) | flag(self.parent.is_some(), HAS_PARENT);
        put(o, at::ID, &self.id.0);
        put(o, at::ACCOUNT, &self.account.0);
        put(o, at::CONVERSATION, &self.conversation.unwrap_or_default().0);
        put(o, at::PARENT, &self.parent.unwrap_or_default().0);
        put(o, at::STATE, &[self.state as u8, flags]);
        put(o, at::TAGS, &u16::try_from(self.tags.len()).expect("tags are bounded").to_le_bytes());
        put(o, at::GENERATION, &self.generation.to_le_bytes());
        put(o, at::BEGIN_LSN, &self.begin_lsn.0.to_le_bytes());
        put(o, at::BEGUN_AT, &self.begun_at.0.to_le_bytes());
        put(o, at::LEASE_LSN, &self.lease_lsn.0.to_le_bytes());
        put(o, at::LEASE_UNTIL, &self.lease_until.unwrap_or_default().0.to_le_bytes());
        put(o, at::TTL, &self.ttl.to_le_bytes());
        put(o, at::ENDS_AT, &self.ends_at.0.to_le_bytes());
        put(o, at::FINISHED_AT, &self.finished_at.0.to_le_bytes());
        put(o, at::CHANGED_LSN, &self.changed_lsn.0.to_le_bytes());
        put(o, at::TOKEN, &self.token.0);
        out.extend(self.tags.iter().flat_map(|tag| tag.0));
        out
    }

    /// Reads a value.
    pub fn decode(bytes: &[u8]) -> Decoded<Self> {
        let bad = Bad::damaged("run value");
        let (fixed, tags) = bytes.split_at_checked(at::LEN).ok_or(bad)?;
        let f = Fixed(fixed);
        let flags = f.u8(at::FLAGS);
        let present = |at: usize, bit: u8| match (flags & bit != 0, ScopeHash(f.bytes(at))) {
            (true, hash) => Ok(Some(hash)),
            (false, hash) if hash.is_zero() => Ok(None),
            _ => Err(bad),
        };
        let tag_count = usize::from(f.u16(at::TAGS));
        let (tags, rest) = tags.as_chunks::<16>();
        let tags: Vec<ScopeHash> = tags.iter().map(|tag| ScopeHash(*tag)).collect();
        let lease_until = Time(f.u64(at::LEASE_UNTIL));
        let run = Self {
            id: RunId(f.bytes(at::ID)),
            account: ScopeHash(f.bytes(at::ACCOUNT)),
            conversation: present(at::CONVERSATION, HAS_CONVERSATION)?,
            parent: present(at::PARENT, HAS_PARENT)?,
            state: RunState::from_number(f.u8(at::STATE)).ok_or(bad)?,
            generation: f.u32(at::GENERATION),
            begin_lsn: Lsn(f.u64(at::BEGIN_LSN)),
            begun_at: Time(f.u64(at::BEGUN_AT)),
            lease_lsn: Lsn(f.u64(at::LEASE_LSN)),
            lease_until: (lease_until != Time(0)).then_some(lease_until),
            ttl: f.u64(at::TTL),
            ends_at: Time(f.u64(at::ENDS_AT)),
            finished_at: Time(f.u64(at::FINISHED_AT)),
            changed_lsn: Lsn(f.u64(at::CHANGED_LSN)),
            token: TokenBits(f.bytes(at::TOKEN)),
            tags,
        };
        let holds = flags & !(HAS_CONVERSATION | HAS_PARENT) == 0
            && rest.is_empty()
            && run.tags.len() == tag_count
            && tag_count <= RUN_TAGS_MAX
            && run.tags.is_sorted_by(|one, next| one < next)
            && run.generation >= 1
            && (run.state != RunState::Active || run.finished_at == Time(0))
            && [run.begin_lsn, run.lease_lsn, run.changed_lsn].iter().all(|lsn| *lsn != Lsn::NONE);
        if holds { Ok(run) } else { Err(bad) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn full() -> Run {
        Run {
            id: RunId([1; 16]),
            account: ScopeHash([2; 16]),
            conversation: Some(ScopeHash([3; 16])),
            parent: Some(ScopeHash([4; 16])),
            state: RunState::Failed,
            generation: 5,
            begin_lsn: Lsn(6),
            begun_at: Time(7),
            lease_lsn: Lsn(8),
            lease_until: Some(Time(9)),
            ttl: 10,
            ends_at: Time(11),
            finished_at: Time(12),
            changed_lsn: Lsn(13),
            token: TokenBits([14; 16]),
            tags: vec![ScopeHash([15; 16]), ScopeHash([16; 16])],
        }
    }

    #[test]
    fn a_run_comes_back_with_every_field_and_with_none_and_no_cut_is_accepted() {
        let bare = Run {
            conversation: None,
            parent: None,
            state: RunState::Active,
            lease_until: None,
            finished_at: Time(0),
            tags: Vec::new(),
            ..full()
        };
        for run in [full(), bare] {
            let bytes = run.encode();
            assert_eq!(Run::decode(&bytes), Ok(run));
            for len in 0..bytes.len() {
                assert!(Run::decode(&bytes[..len]).is_err(), "length {len}");
            }
            assert!(Run::decode(&[&bytes[..], &[0; 16]].concat()).is_err(), "a tag that is not counted");
        }
    }

    #[test]
    fn tags_rise_and_an_active_run_is_not_finished() {
        let tags = vec![ScopeHash([16; 16]), ScopeHash([15; 16])];
        assert!(Run::decode(&Run { tags, ..full() }.encode()).is_err());
        assert!(Run::decode(&Run { tags: vec![ScopeHash([1; 16]); 2], ..full() }.encode()).is_err());
        assert!(Run::decode(&Run { state: RunState::Active, ..full() }.encode()).is_err());
        assert!(Run::decode(&Run { generation: 0, ..full() }.encode()).is_err());
    }

    #[test]
    fn states_have_the_numbers_of_the_format() {
        for (state, number) in RunState::ALL.into_iter().zip(1..) {
            assert_eq!(state as u8, number);
        }
    }

    #[test]
    fn a_token_is_not_printed() {
        assert!(!format!("{:?}", full()).contains("0e0e"));
    }
}
