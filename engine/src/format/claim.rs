//! The claim record (FORMAT.md section 12.5): which artifacts a run gave to a conversation, in which order, and which it did not.

use super::{Bad, Decoded, fields::Cursor};
use crate::{
    ids::{ArtifactId, Lsn, OpHash, ScopeHash, Time},
    limits::CLAIM_MAX,
};

const WHAT: &str = "claim value";
const FIXED_LEN: usize = 64;
/// Bytes of an entry, of what was claimed and of what was left.
pub const ENTRY_LEN: usize = 24;

/// Why a claim left an artifact. The numbers are format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum SkipReason {
    /// It had expired.
    Expired = 1,
    /// Another one of its name and content was put before.
    Duplicate = 2,
    /// A fence voids it.
    Fenced = 3,
}

impl SkipReason {
    /// Every reason.
    pub const ALL: [Self; 3] = [Self::Expired, Self::Duplicate, Self::Fenced];

    /// Its stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Duplicate => "duplicate",
            Self::Fenced => "fenced",
        }
    }
}

/// An artifact that a claim took.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Claimed {
    /// The artifact.
    pub artifact: ArtifactId,
    /// When it ended before, for a claim that is taken back.
    pub expires_at: Option<Time>,
}

/// A claim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Claim {
    /// Where the artifacts went.
    pub conversation: ScopeHash,
    /// Names the call.
    pub reply: OpHash,
    /// Its LSN.
    pub lsn: Lsn,
    /// When it was.
    pub at: Time,
    /// True once it was taken back.
    pub released: bool,
    /// What it took, in its order.
    pub claimed: Vec<Claimed>,
    /// What it left, and why.
    pub skipped: Vec<(ArtifactId, SkipReason)>,
}

impl Claim {
    /// The value.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(FIXED_LEN + (self.claimed.len() + self.skipped.len()) * ENTRY_LEN);
        let count = |len: usize| u32::try_from(len).expect("claims are bounded").to_le_bytes();
        out.extend_from_slice(&self.conversation.0);
        out.extend_from_slice(&self.reply.0);
        out.extend_from_slice(&self.lsn.0.to_le_bytes());
        out.extend_from_slice(&self.at.0.to_le_bytes());
        out.extend_from_slice(&[u8::from(self.released), 0, 0, 0]);
        out.extend_from_slice(&count(self.claimed.len()));
        out.extend_from_slice(&count(self.skipped.len()));
        out.extend_from_slice(&[0; 4]);
        for Claimed { artifact, expires_at } in &self.claimed {
            out.extend_from_slice(&artifact.0);
            out.extend_from_slice(&expires_at.unwrap_or_default().0.to_le_bytes());
        }
        for (artifact, reason) in &self.skipped {
            out.extend_from_slice(&artifact.0);
            out.extend_from_slice(&[*reason as u8, 0, 0, 0, 0, 0, 0, 0]);
        }
        out
    }

    /// Reads a value.
    pub fn decode(bytes: &[u8]) -> Decoded<Self> {
        let bad = Bad::damaged(WHAT);
        let mut c = Cursor::new(bytes, WHAT);
        let (conversation, reply) = (ScopeHash(c.bytes()?), OpHash(c.bytes()?));
        let (lsn, at, released) = (Lsn(c.u64()?), Time(c.u64()?), c.u8()?);
        c.reserved(3)?;
        let (claimed_count, skipped_count) = (c.u32()? as usize, c.u32()? as usize);
        c.reserved(4)?;
        if lsn == Lsn::NONE || released > 1 || claimed_count > CLAIM_MAX || skipped_count > CLAIM_MAX {
            return Err(bad);
        }
        let mut claimed = Cursor::new(c.take(claimed_count * ENTRY_LEN)?, WHAT);
        let claimed = (0..claimed_count).map(|_| {
            let (artifact, end) = (ArtifactId(claimed.bytes()?), claimed.u64()?);
            Ok(Claimed { artifact, expires_at: (end != 0).then_some(Time(end)) })
        });
        let claimed = claimed.collect::<Decoded<Vec<_>>>()?;
        let skipped = (0..skipped_count).map(|_| {
            let (artifact, number) = (ArtifactId(c.bytes()?), c.u8()?);
            c.reserved(7)?;
            let reason = SkipReason::ALL.into_iter().find(|reason| *reason as u8 == number);
            Ok((artifact, reason.ok_or(bad)?))
        });
        let skipped = skipped.collect::<Decoded<Vec<_>>>()?;
        c.end()?;
        Ok(Self { conversation, reply, lsn, at, released: released == 1, claimed, skipped })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_comes_back_and_no_cut_is_accepted() {
        let claim = Claim {
            conversation: ScopeHash([1; 16]),
            reply: OpHash([2; 16]),
            lsn: Lsn(3),
            at: Time(4),
            released: true,
            claimed: vec![
                Claimed { artifact: ArtifactId([5; 16]), expires_at: Some(Time(6)) },
                Claimed { artifact: ArtifactId([7; 16]), expires_at: None },
            ],
            skipped: SkipReason::ALL.map(|reason| (ArtifactId([reason as u8; 16]), reason)).to_vec(),
        };
        let bytes = claim.encode();
        assert_eq!(bytes.len(), FIXED_LEN + 5 * ENTRY_LEN);
        assert_eq!(Claim::decode(&bytes), Ok(claim));
        for len in 0..bytes.len() {
            assert!(Claim::decode(&bytes[..len]).is_err(), "length {len}");
        }
        let mut unknown = bytes.clone();
        unknown[FIXED_LEN + 2 * ENTRY_LEN + 16] = 4;
        assert!(Claim::decode(&unknown).is_err(), "a reason that there is not");
    }
}
