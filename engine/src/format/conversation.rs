//! The conversation record (FORMAT.md section 12.3).

use super::{
    Bad, Decoded,
    fields::{Cursor, Fixed, layout, put},
};
use crate::{
    ids::{Lsn, ScopeHash, Time},
    limits::SCOPE_ID_LEN_MAX,
};

layout! { 72:
    ACCOUNT 16, STATE 1, FLAGS 1, TEXT_LEN 2, RESERVED 4, OPENED_LSN 8, OPENED_AT 8, CHANGED_LSN 8, RESET_LSN 8,
    FORKED_FROM 16,
}

const FORKED: u8 = 1;

/// What may be done with a conversation. The numbers are format.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum ConversationState {
    /// Everything.
    Open = 1,
    /// It is read, and runs that are under way may claim; nothing new is published.
    Archived = 2,
    /// Nothing, for good.
    Deleted = 3,
}

impl ConversationState {
    /// Every state.
    pub const ALL: [Self; 3] = [Self::Open, Self::Archived, Self::Deleted];

    /// Its stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Archived => "archived",
            Self::Deleted => "deleted",
        }
    }

    fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|state| *state as u8 == number)
    }
}

/// A conversation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Conversation {
    /// Whose it is.
    pub account: ScopeHash,
    /// Its state.
    pub state: ConversationState,
    /// LSN that opened it.
    pub opened_lsn: Lsn,
    /// When that was.
    pub opened_at: Time,
    /// LSN of the last change of the record.
    pub changed_lsn: Lsn,
    /// LSN of the last reset; none if there was none.
    pub reset_lsn: Lsn,
    /// What it is a fork of. Nothing follows it.
    pub forked_from: Option<ScopeHash>,
    /// Its id as the caller gave it; empty once it is deleted.
    pub text: String,
}

impl Conversation {
    /// The value.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![0; at::LEN];
        let o = &mut out[..];
        put(o, at::ACCOUNT, &self.account.0);
        put(o, at::STATE, &[self.state as u8, if self.forked_from.is_some() { FORKED } else { 0 }]);
        let len = u16::try_from(self.text.len()).expect("an id is at most 128 bytes");
        put(o, at::TEXT_LEN, &len.to_le_bytes());
        put(o, at::OPENED_LSN, &self.opened_lsn.0.to_le_bytes());
        put(o, at::OPENED_AT, &self.opened_at.0.to_le_bytes());
        put(o, at::CHANGED_LSN, &self.changed_lsn.0.to_le_bytes());
        put(o, at::RESET_LSN, &self.reset_lsn.0.to_le_bytes());
        put(o, at::FORKED_FROM, &self.forked_from.unwrap_or_default().0);
        out.extend_from_slice(self.text.as_bytes());
        out
    }

    /// Reads a value.
    pub fn decode(bytes: &[u8]) -> Decoded<Self> {
        let bad = Bad::damaged("conversation value");
        let (fixed, text) = bytes.split_at_checked(at::LEN).ok_or(bad)?;
        let f = Fixed(fixed);
        f.reserved(at::RESERVED, 4, "conversation reserved bytes")?;
        let state = ConversationState::from_number(f.u8(at::STATE)).ok_or(bad)?;
        let (flags, forked_from) = (f.u8(at::FLAGS), ScopeHash(f.bytes(at::FORKED_FROM)));
        let text_len = usize::from(f.u16(at::TEXT_LEN));
        let mut c = Cursor::new(text, "conversation text");
        let text = c.text(text_len)?;
        c.end()?;
        let conversation = Self {
            account: ScopeHash(f.bytes(at::ACCOUNT)),
            state,
            opened_lsn: Lsn(f.u64(at::OPENED_LSN)),
            opened_at: Time(f.u64(at::OPENED_AT)),
            changed_lsn: Lsn(f.u64(at::CHANGED_LSN)),
            reset_lsn: Lsn(f.u64(at::RESET_LSN)),
            forked_from: (flags & FORKED != 0).then_some(forked_from),
            text,
        };
        let holds = flags & !FORKED == 0
            && (flags & FORKED != 0 || forked_from.is_zero())
            && text_len <= SCOPE_ID_LEN_MAX
            && (text_len == 0) == (state == ConversationState::Deleted)
            && conversation.opened_lsn != Lsn::NONE
            && conversation.changed_lsn != Lsn::NONE;
        if holds { Ok(conversation) } else { Err(bad) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_comes_back_and_no_cut_is_accepted() {
        let open = Conversation {
            account: ScopeHash([1; 16]),
            state: ConversationState::Open,
            opened_lsn: Lsn(2),
            opened_at: Time(3),
            changed_lsn: Lsn(4),
            reset_lsn: Lsn(5),
            forked_from: Some(ScopeHash([6; 16])),
            text: "thread-1".into(),
        };
        let deleted =
            Conversation { state: ConversationState::Deleted, forked_from: None, text: String::new(), ..open.clone() };
        for value in [open.clone(), deleted] {
            let bytes = value.encode();
            assert_eq!(Conversation::decode(&bytes), Ok(value));
            for len in 0..bytes.len() {
                assert!(Conversation::decode(&bytes[..len]).is_err(), "length {len}");
            }
            assert!(Conversation::decode(&[&bytes[..], b"x"].concat()).is_err());
        }
        let named = Conversation { state: ConversationState::Deleted, ..open };
        assert!(Conversation::decode(&named.encode()).is_err(), "a deleted one has no text any more");
    }

    #[test]
    fn states_have_the_numbers_of_the_format() {
        for (state, number) in ConversationState::ALL.into_iter().zip(1..) {
            assert_eq!(state as u8, number);
        }
    }
}
