//! The upload record (FORMAT.md section 12.1): what holds the chunks of a stream that is not finished.

use super::{Bad, Decoded, fields::Cursor, keyspace::AccountRef, page::PageEntry};
use crate::{
    ids::{Lsn, ScopeHash, TenantNumber, Time},
    limits::{PAGE_ENTRIES_MAX, PAGE_LEVEL_MAX},
};

const RESUMABLE: u32 = 1;
const HAS_TAIL: u32 = 2;
const SHA_STATE_MAX: usize = 256;

/// An upload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Upload {
    /// Whose it is.
    pub account: AccountRef,
    /// The published LSN when it began.
    pub begin_lsn: Lsn,
    /// When it began.
    pub created_at: Time,
    /// Bytes that it holds so far.
    pub offset: u64,
    /// Size that the client declared.
    pub declared: Option<u64>,
    /// When it ends by itself.
    pub expires_at: Option<Time>,
    /// State of SHA-256 at `offset`. A record that has one is resumable; a plain one is aborted by the next open.
    pub sha_state: Option<Vec<u8>>,
    /// A chunk of the bytes since the last cut.
    pub tail: Option<PageEntry>,
    /// Entries that no page holds yet, a list a level, from the chunks upwards.
    pub right_edge: Vec<Vec<PageEntry>>,
}

impl Upload {
    /// Everything that the upload holds a reference to, by occurrence.
    pub fn held(&self) -> impl Iterator<Item = &PageEntry> {
        self.right_edge.iter().flatten().chain(&self.tail)
    }

    /// The value.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let flag = |set: bool, bit: u32| if set { bit } else { 0 };
        let flags = flag(self.sha_state.is_some(), RESUMABLE) | flag(self.tail.is_some(), HAS_TAIL);
        let sha_state = self.sha_state.as_deref().unwrap_or_default();
        out.extend_from_slice(&self.account.tenant.0.to_le_bytes());
        out.extend_from_slice(&flags.to_le_bytes());
        out.extend_from_slice(&self.account.account.0);
        out.extend_from_slice(&self.begin_lsn.0.to_le_bytes());
        out.extend_from_slice(&self.created_at.0.to_le_bytes());
        out.extend_from_slice(&self.offset.to_le_bytes());
        out.extend_from_slice(&self.declared.unwrap_or(u64::MAX).to_le_bytes());
        out.extend_from_slice(&self.expires_at.map_or(0, |t| t.0).to_le_bytes());
        out.extend_from_slice(&u16::try_from(sha_state.len()).expect("a SHA-256 state is short").to_le_bytes());
        out.extend_from_slice(&[u8::try_from(self.right_edge.len()).expect("levels are bounded"), 0]);
        out.extend_from_slice(sha_state);
        if let Some(tail) = &self.tail {
            tail.encode(&mut out);
        }
        for level in &self.right_edge {
            out.extend_from_slice(&u16::try_from(level.len()).expect("a page is bounded").to_le_bytes());
            for entry in level {
                entry.encode(&mut out);
            }
        }
        out
    }

    /// Reads a value.
    pub fn decode(bytes: &[u8]) -> Decoded<Self> {
        let bad = Bad::damaged("upload value");
        let mut c = Cursor::new(bytes, "upload value");
        let tenant = TenantNumber(c.u32()?);
        let flags = c.u32()?;
        let account = AccountRef { tenant, account: ScopeHash(c.bytes()?) };
        let (begin_lsn, created_at, offset) = (Lsn(c.u64()?), Time(c.u64()?), c.u64()?);
        let (declared, expires_at) = (c.u64()?, c.u64()?);
        let sha_len = usize::from(c.u16()?);
        let levels = c.u8()?;
        c.reserved(1)?;
        let resumable = flags & RESUMABLE != 0;
        if flags & !(RESUMABLE | HAS_TAIL) != 0
            || sha_len > SHA_STATE_MAX
            || tenant.0 == 0
            || resumable != (sha_len > 0)
            || levels > PAGE_LEVEL_MAX + 1
        {
            return Err(bad);
        }
        let sha_state = resumable.then_some(c.take(sha_len)?.to_vec());
        let tail = if flags & HAS_TAIL != 0 { Some(PageEntry::decode(&mut c)?) } else { None };
        let right_edge = (0..levels).map(|_| decode_level(&mut c)).collect::<Decoded<Vec<_>>>()?;
        c.end()?;
        Ok(Self {
            account,
            begin_lsn,
            created_at,
            offset,
            declared: (declared != u64::MAX).then_some(declared),
            expires_at: (expires_at != 0).then_some(Time(expires_at)),
            sha_state,
            tail,
            right_edge,
        })
    }
}

fn decode_level(c: &mut Cursor<'_>) -> Decoded<Vec<PageEntry>> {
    let count = usize::from(c.u16()?);
    if count >= PAGE_ENTRIES_MAX {
        return Err(Bad::damaged("upload right edge"));
    }
    (0..count).map(|_| PageEntry::decode(c)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ChunkId;

    #[test]
    fn plain_and_resumable_records_come_back() {
        let entry = |n| PageEntry { id: ChunkId([n; 32]), len: u64::from(n) };
        let plain = Upload {
            account: AccountRef { tenant: TenantNumber(1), account: ScopeHash([2; 16]) },
            begin_lsn: Lsn::FIRST,
            created_at: Time(3),
            offset: 4,
            declared: None,
            expires_at: None,
            sha_state: None,
            tail: None,
            right_edge: vec![vec![entry(1), entry(2)], vec![], vec![entry(3)]],
        };
        let resumable = Upload {
            declared: Some(10),
            expires_at: Some(Time(11)),
            sha_state: Some(vec![1; 105]),
            tail: Some(entry(9)),
            ..plain.clone()
        };
        for upload in [plain, resumable] {
            let bytes = upload.encode();
            assert_eq!(Upload::decode(&bytes), Ok(upload.clone()));
            for len in 0..bytes.len() {
                assert!(Upload::decode(&bytes[..len]).is_err());
            }
        }
    }
}
