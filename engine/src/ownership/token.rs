//! Run tokens: who holds a lease says so with one. A token is a fence and not a credential: the store is the arbiter of what it
//! still counts for.

use std::fmt;

use crate::{
    catalog::State,
    error::{Error, Kind, Result},
    format::{
        keyspace::ScopeRef,
        run::{Run, RunState},
    },
    ids::{Lsn, RunId, Time, TokenBits},
};

/// Bytes of a token: run, generation, begin LSN, incarnation, random bits.
const LEN: usize = 16 + 4 + 8 + 2 + 16;

/// Proof of a lease.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RunToken {
    /// The run.
    pub run: RunId,
    /// Which of its leases.
    pub generation: u32,
    /// What its puts are held against.
    pub begin_lsn: Lsn,
    /// The life of the store that gave it.
    pub incarnation: u16,
    /// What nobody else knows.
    pub bits: TokenBits,
}

/// Like every other value of a caller, a token stays out of logs.
impl fmt::Debug for RunToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunToken").field("run", &self.run).field("generation", &self.generation).finish_non_exhaustive()
    }
}

impl RunToken {
    /// The token of the run's present lease.
    pub const fn of(run: &Run) -> Self {
        let Run { id, generation, begin_lsn, lease_lsn, token, .. } = run;
        Self {
            run: *id,
            generation: *generation,
            begin_lsn: *begin_lsn,
            incarnation: lease_lsn.incarnation(),
            bits: *token,
        }
    }

    /// Its text: 74 characters of lower-case base32.
    pub fn to_text(&self) -> String {
        let mut bytes = Vec::with_capacity(LEN);
        bytes.extend_from_slice(&self.run.0);
        bytes.extend_from_slice(&self.generation.to_le_bytes());
        bytes.extend_from_slice(&self.begin_lsn.0.to_le_bytes());
        bytes.extend_from_slice(&self.incarnation.to_le_bytes());
        bytes.extend_from_slice(&self.bits.0);
        data_encoding::BASE32_NOPAD.encode(&bytes).to_ascii_lowercase()
    }

    /// Reads a text as [`to_text`](Self::to_text) writes it: one token has one text.
    pub fn parse(text: &str) -> Option<Self> {
        if text.bytes().any(|b| b.is_ascii_uppercase()) || text.len() > 2 * LEN {
            return None;
        }
        let bytes = data_encoding::BASE32_NOPAD.decode(text.to_ascii_uppercase().as_bytes()).ok()?;
        let bytes: [u8; LEN] = bytes.try_into().ok()?;
        let (run, rest) = bytes.split_first_chunk()?;
        let (generation, rest) = rest.split_first_chunk()?;
        let (begin_lsn, rest) = rest.split_first_chunk()?;
        let (incarnation, bits) = rest.split_first_chunk()?;
        Some(Self {
            run: RunId(*run),
            generation: u32::from_le_bytes(*generation),
            begin_lsn: Lsn(u64::from_le_bytes(*begin_lsn)),
            incarnation: u16::from_le_bytes(*incarnation),
            bits: TokenBits(bits.try_into().ok()?),
        })
    }
}

/// The run whose present lease the token proves. `now` is any LSN of the store's present life. A run that there is not, one of another
/// tenant and an older lease all give the same answer.
pub fn current(state: &dyn State, scope: &ScopeRef, token: &RunToken, now: Lsn) -> Result<Run> {
    match state.run(scope)? {
        Some(run) if RunToken::of(&run) == *token && token.incarnation == now.incarnation() => Ok(run),
        _ => Err(Error::new(Kind::StaleToken, "the token is not that of the run's present lease")),
    }
}

/// True while a run may put: nobody finished it, and its time is not over.
pub fn is_active(run: &Run, now: Time) -> bool {
    run.state == RunState::Active && now < run.ends_at
}

/// Refuses what only an active run may do.
pub fn check_active(run: &Run, now: Time) -> Result<()> {
    if is_active(run, now) { Ok(()) } else { Err(Error::new(Kind::RunClosed, "the run is over")) }
}

/// True while the lease lasts.
pub fn is_leased(run: &Run, now: Time) -> bool {
    run.lease_until.is_some_and(|end| now < end)
}

/// Refuses what only the holder of a live lease may do.
pub fn check_leased(run: &Run, now: Time) -> Result<()> {
    if is_leased(run, now) {
        Ok(())
    } else {
        Err(Error::new(Kind::LeaseLost, "the lease has ended: begin the run again"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_token_has_one_text(run: [u8; 16], generation: u32, begin: u64, incarnation: u16, bits: [u8; 16], cut in 0_usize..74) {
            let bits = TokenBits(bits);
            let token = RunToken { run: RunId(run), generation, begin_lsn: Lsn(begin), incarnation, bits };
            let text = token.to_text();
            prop_assert_eq!(text.len(), 74);
            prop_assert_eq!(RunToken::parse(&text), Some(token));
            prop_assert_eq!(RunToken::parse(&text[..cut]), None);
            prop_assert_eq!(RunToken::parse(&format!("{text}a")), None);
            let debugged = format!("{token:?}");
            prop_assert!(!debugged.contains(&text[48..]));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,160}") {
            if let Some(token) = RunToken::parse(&text) {
                prop_assert_eq!(token.to_text(), text);
            }
        }
    }
}
