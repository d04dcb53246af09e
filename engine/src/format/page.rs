//! The recipe page (FORMAT.md section 11.1): an ordered list of chunks, or of pages of the level below.

use super::{Bad, Decoded, fields::Cursor};
use crate::{
    ids::ChunkId,
    limits::{PAGE_ENTRIES_MAX, PAGE_LEVEL_MAX},
};

const HEADER_LEN: usize = 16;
const ENTRY_LEN: usize = 40;
/// A page with one entry.
pub const LEN_MIN: usize = HEADER_LEN + ENTRY_LEN;
/// A full page.
pub const LEN_MAX: usize = HEADER_LEN + ENTRY_LEN * PAGE_ENTRIES_MAX;

/// A chunk or page below, with its length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageEntry {
    /// Its id.
    pub id: ChunkId,
    /// Raw bytes beneath it.
    pub len: u64,
}

impl PageEntry {
    /// True if a page that has `count` entries with this one as its last ends here.
    pub fn ends_page(&self, count: usize) -> bool {
        let [first, second, ..] = self.id.0;
        count >= PAGE_ENTRIES_MAX || (count >= 2 && u16::from_le_bytes([first, second]).trailing_zeros() >= 9)
    }

    /// Appends the entry.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.id.0);
        out.extend_from_slice(&self.len.to_le_bytes());
    }

    /// Reads an entry.
    pub fn decode(c: &mut Cursor<'_>) -> Decoded<Self> {
        let entry = Self { id: ChunkId(c.bytes()?), len: c.u64()? };
        if entry.len == 0 { Err(Bad::damaged("recipe entry length")) } else { Ok(entry) }
    }
}

/// A recipe page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page {
    /// 0: the entries are chunks.
    pub level: u8,
    /// 1 to 1,024 of them.
    pub entries: Vec<PageEntry>,
}

impl Page {
    /// Raw bytes beneath the page.
    pub fn total(&self) -> u64 {
        self.entries.iter().map(|e| e.len).sum()
    }

    /// The payload, of which the page's id is the keyed hash.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER_LEN + ENTRY_LEN * self.entries.len());
        out.extend_from_slice(&[self.level, 0]);
        out.extend_from_slice(&u16::try_from(self.entries.len()).expect("a page is bounded").to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&self.total().to_le_bytes());
        for entry in &self.entries {
            entry.encode(&mut out);
        }
        out
    }

    /// Reads a payload.
    pub fn decode(payload: &[u8]) -> Decoded<Self> {
        let bad = Bad::damaged("recipe page");
        let mut c = Cursor::new(payload, "recipe page");
        let level = c.u8()?;
        c.reserved(1)?;
        let count = usize::from(c.u16()?);
        c.reserved(4)?;
        let total = c.u64()?;
        if level > PAGE_LEVEL_MAX || !(1..=PAGE_ENTRIES_MAX).contains(&count) || c.remaining() != count * ENTRY_LEN {
            return Err(bad);
        }
        let entries = (0..count).map(|_| PageEntry::decode(&mut c)).collect::<Decoded<Vec<_>>>()?;
        match entries.iter().try_fold(0_u64, |sum, e| sum.checked_add(e.len)) {
            Some(sum) if sum == total => Ok(Self { level, entries }),
            _ => Err(bad),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(count: usize) -> Page {
        Page { level: 1, entries: (0..count).map(|n| PageEntry { id: ChunkId([3; 32]), len: n as u64 + 1 }).collect() }
    }

    #[test]
    fn a_page_comes_back() {
        for count in [1, 2, PAGE_ENTRIES_MAX] {
            let bytes = page(count).encode();
            assert!((LEN_MIN..=LEN_MAX).contains(&bytes.len()));
            assert_eq!(Page::decode(&bytes), Ok(page(count)));
        }
    }

    #[test]
    fn a_total_that_is_not_the_sum_is_refused() {
        let mut bytes = page(3).encode();
        bytes[8] ^= 1;
        assert!(Page::decode(&bytes).is_err());
        let overflow = Page { level: 0, entries: vec![PageEntry { id: ChunkId([1; 32]), len: u64::MAX / 2 + 1 }; 2] };
        let mut bytes = overflow.entries.iter().fold(vec![0, 0, 2, 0, 0, 0, 0, 0], |mut out, e| {
            if out.len() == 8 {
                out.extend_from_slice(&0_u64.to_le_bytes());
            }
            e.encode(&mut out);
            out
        });
        assert!(Page::decode(&bytes).is_err());
        bytes.truncate(56);
        assert!(Page::decode(&bytes).is_err());
    }

    #[test]
    fn a_page_never_ends_at_its_first_entry_however_its_id_reads() {
        let mut id = [7; 32];
        id[0] = 0;
        id[1] = 0xfe;
        let entry = PageEntry { id: ChunkId(id), len: 1 };
        assert!(!entry.ends_page(1));
        assert!(entry.ends_page(2));
        id[1] = 0xff;
        let entry = PageEntry { id: ChunkId(id), len: 1 };
        assert!(!entry.ends_page(2));
        assert!(entry.ends_page(PAGE_ENTRIES_MAX));
    }
}
