//! Trees: leaves of sorted entries, values that are longer than a page, and branches that name the first keys of the pages below.

use super::{BODY, BODY_LEN, Head, PAGE_LEN, Page, PageKind, body};
use crate::{
    format::{
        Bad, Decoded,
        fields::{Cursor, is_zero, put},
        keyspace::Keyspace,
    },
    limits::{EDIT_BODY_MAX, KEY_LEN_MAX},
};

const BAD: Bad = Bad::damaged("table tree page");
const PUT: u8 = 1;
const DELETE: u8 = 2;
/// Bytes of an entry besides key and value.
const OVERHEAD: usize = 8;
/// Bytes of a long value in each page behind the first.
pub const LARGE_REST: usize = BODY_LEN;

/// Length of an entry in a leaf.
pub fn entry_len(key: &[u8], value: Option<&[u8]>) -> usize {
    OVERHEAD + key.len() + value.map_or(0, <[u8]>::len)
}

/// True if an entry has pages of its own.
pub fn is_large(key: &[u8], value: Option<&[u8]>) -> bool {
    entry_len(key, value) > BODY_LEN
}

/// Length of an entry in a branch.
pub const fn branch_entry_len(key: &[u8]) -> usize {
    OVERHEAD + key.len()
}

fn entry_head(key: &[u8], value: Option<&[u8]>) -> [u8; OVERHEAD] {
    let mut head = [0; OVERHEAD];
    put(&mut head, 0, &[if value.is_some() { PUT } else { DELETE }]);
    put(&mut head, 2, &u16::try_from(key.len()).expect("a key is bounded").to_le_bytes());
    put(&mut head, 4, &u32::try_from(value.map_or(0, <[u8]>::len)).expect("a value is bounded").to_le_bytes());
    head
}

/// Writes a leaf; the caller has seen to it that the entries fit.
pub fn encode_leaf(keyspace: Keyspace, entries: &[(Vec<u8>, Option<Vec<u8>>)]) -> Page {
    let mut page = [0; PAGE_LEN];
    let count = u16::try_from(entries.len()).expect("a leaf is bounded");
    Head { count, ..Head::new(PageKind::Leaf, keyspace) }.put(&mut page);
    let mut at = BODY;
    for (key, value) in entries {
        for part in [&entry_head(key, value.as_deref())[..], key, value.as_deref().unwrap_or_default()] {
            put(&mut page, at, part);
            at += part.len();
        }
    }
    page
}

/// Writes the pages of one long value.
pub fn encode_large(keyspace: Keyspace, key: &[u8], value: &[u8]) -> Vec<Page> {
    let front = BODY_LEN - OVERHEAD - key.len();
    let (first, rest) = value.split_at(front.min(value.len()));
    let rests = rest.chunks(LARGE_REST);
    let count = u32::try_from(rests.len()).expect("a value is bounded");
    let mut page = [0; PAGE_LEN];
    Head { count: 1, extra: count, ..Head::new(PageKind::Large, keyspace) }.put(&mut page);
    put(&mut page, BODY, &entry_head(key, Some(value)));
    put(&mut page, BODY + OVERHEAD, key);
    put(&mut page, BODY + OVERHEAD + key.len(), first);
    let mut pages = vec![page];
    for (place, part) in (1..).zip(rests) {
        let mut page = [0; PAGE_LEN];
        Head { extra: place, ..Head::new(PageKind::Rest, keyspace) }.put(&mut page);
        put(&mut page, BODY, part);
        pages.push(page);
    }
    pages
}

/// Writes a branch: first keys and the pages that they begin.
pub fn encode_branch(keyspace: Keyspace, level: u8, children: &[(Vec<u8>, u32)]) -> Page {
    let mut page = [0; PAGE_LEN];
    let count = u16::try_from(children.len()).expect("a branch is bounded");
    Head { count, extra: u32::from(level), ..Head::new(PageKind::Branch, keyspace) }.put(&mut page);
    let mut at = BODY;
    for (key, child) in children {
        put(&mut page, at, &u16::try_from(key.len()).expect("a key is bounded").to_le_bytes());
        put(&mut page, at + 4, &child.to_le_bytes());
        put(&mut page, at + OVERHEAD, key);
        at += branch_entry_len(key);
    }
    page
}

/// An entry of a leaf.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeafEntry<'a> {
    /// Its key.
    pub key: &'a [u8],
    /// Its value; `None` for a deletion. Of a long one the part that stands in the first page.
    pub value: Option<&'a [u8]>,
    /// Length of the whole value.
    pub len: usize,
}

/// A leaf that was read, or the first page of a long value.
pub struct Leaf<'a> {
    /// Its entries.
    pub entries: Vec<LeafEntry<'a>>,
    /// Pages that its only value goes on in.
    pub rest: u32,
}

impl<'a> Leaf<'a> {
    /// Checks a page whose checksum is good.
    pub fn decode(page: &'a Page, keyspace: Keyspace) -> Decoded<Self> {
        let head = Head::read(page)?;
        let large = head.kind == PageKind::Large;
        if !matches!(head.kind, PageKind::Leaf | PageKind::Large) || head.keyspace != keyspace || head.deleted != 0 {
            return Err(BAD);
        }
        let mut c = Cursor::new(body(page), BAD.what);
        let mut entries: Vec<LeafEntry<'a>> = Vec::with_capacity(usize::from(head.count).min(BODY_LEN / OVERHEAD));
        for _ in 0..head.count {
            let tag = c.u8()?;
            c.reserved(1)?;
            let (key_len, len) = (usize::from(c.u16()?), c.u32()? as usize);
            if !matches!(tag, PUT | DELETE) || !(1..=KEY_LEN_MAX).contains(&key_len) || len > EDIT_BODY_MAX {
                return Err(BAD);
            }
            let key = c.take(key_len)?;
            let value = c.take(if large { c.remaining() } else { len })?;
            if (tag == DELETE && len > 0) || entries.last().is_some_and(|before| before.key >= key) {
                return Err(BAD);
            }
            entries.push(LeafEntry { key, value: (tag == PUT).then_some(value), len });
        }
        let rest_holds = is_zero(c.take(c.remaining())?);
        let large_holds = match (large, entries.as_slice()) {
            (false, entries) => !entries.is_empty() && head.extra == 0,
            (true, [only]) => {
                let first = only.value.map_or(0, <[u8]>::len);
                let rest = only.len.saturating_sub(first).div_ceil(LARGE_REST);
                only.len > first && rest == head.extra as usize
            }
            (true, _) => false,
        };
        if rest_holds && large_holds { Ok(Self { entries, rest: head.extra }) } else { Err(BAD) }
    }

    /// The entry of a key, or where it would stand.
    pub fn find(&self, key: &[u8]) -> Result<usize, usize> {
        self.entries.binary_search_by(|entry| entry.key.cmp(key))
    }
}

/// A page of a long value behind its first: `len` of its bytes count.
pub fn decode_rest(page: &Page, keyspace: Keyspace, place: u32, len: usize) -> Decoded<&[u8]> {
    let head = Head::expect(page, PageKind::Rest, keyspace)?;
    let (value, fill) = body(page).split_at_checked(len).ok_or(BAD)?;
    let holds = head == Head { extra: place, ..Head::new(PageKind::Rest, keyspace) } && is_zero(fill);
    if holds { Ok(value) } else { Err(BAD) }
}

/// A branch that was read.
pub struct Branch<'a> {
    children: Vec<(&'a [u8], u32)>,
}

impl<'a> Branch<'a> {
    /// Checks a page whose checksum is good.
    pub fn decode(page: &'a Page, keyspace: Keyspace, level: u8) -> Decoded<Self> {
        let head = Head::expect(page, PageKind::Branch, keyspace)?;
        let mut c = Cursor::new(body(page), BAD.what);
        let mut children: Vec<(&[u8], u32)> = Vec::with_capacity(usize::from(head.count).min(BODY_LEN / OVERHEAD));
        for _ in 0..head.count {
            let key_len = usize::from(c.u16()?);
            c.reserved(2)?;
            let child = c.u32()?;
            let key = c.take(key_len)?;
            let rises = children.last().is_none_or(|(before, page)| *before < key && *page < child);
            if !(1..=KEY_LEN_MAX).contains(&key_len) || !rises {
                return Err(BAD);
            }
            children.push((key, child));
        }
        let holds = !children.is_empty() && head.extra == u32::from(level) && head.deleted == 0;
        if holds && is_zero(c.take(c.remaining())?) { Ok(Self { children }) } else { Err(BAD) }
    }

    /// The page below in which a key stands, if it stands in any: the last that begins at or before it, or the first.
    pub fn child(&self, key: &[u8]) -> u32 {
        let behind = self.children.partition_point(|(first, _)| *first <= key);
        self.children.get(behind.saturating_sub(1)).map_or(0, |(_, page)| *page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_and_branches_come_back() {
        let entries = vec![(vec![1], Some(vec![5; 9])), (vec![2, 0], None), (vec![2, 1], Some(vec![]))];
        let page = encode_leaf(Keyspace::Op, &entries);
        let leaf = Leaf::decode(&page, Keyspace::Op).expect("holds");
        let found: Vec<_> = leaf.entries.iter().map(|e| (e.key.to_vec(), e.value.map(<[u8]>::to_vec))).collect();
        assert_eq!(found, entries);
        assert_eq!((leaf.find(&[2, 0]), leaf.find(&[3])), (Ok(1), Err(3)));
        let page = encode_branch(Keyspace::Op, 2, &[(vec![1], 10), (vec![5], 12)]);
        let branch = Branch::decode(&page, Keyspace::Op, 2).expect("holds");
        assert_eq!([0, 1, 4, 5, 9].map(|key| branch.child(&[key])), [10, 10, 10, 12, 12]);
        assert!(Branch::decode(&page, Keyspace::Op, 1).is_err(), "another level");
    }

    #[test]
    fn a_value_longer_than_a_page_comes_back_from_its_pages() {
        let value: Vec<u8> = (0..20_000_u32).map(|n| n.to_le_bytes()[0]).collect();
        let pages = encode_large(Keyspace::Upload, &[7; 16], &value);
        let leaf = Leaf::decode(&pages[0], Keyspace::Upload).expect("holds");
        assert_eq!((leaf.rest as usize, leaf.entries[0].len), (pages.len() - 1, value.len()));
        let mut read = leaf.entries[0].value.expect("a value").to_vec();
        for (place, page) in (1..).zip(&pages[1..]) {
            let len = (value.len() - read.len()).min(LARGE_REST);
            read.extend(decode_rest(page, Keyspace::Upload, place, len).expect("holds"));
        }
        assert_eq!(read, value);
        assert!(!is_large(&[7; 16], Some(&value[..4000])) && is_large(&[7; 16], Some(&value[..4060])));
    }
}
