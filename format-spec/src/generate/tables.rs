//! Writes tables as `FORMAT.md` says, the counterpart of the parser. It makes no filters: a table need not have them.

use super::encode::{Out, len32};
use super::records;
use crate::Id16;
use crate::fields::crc;
use crate::table::Row;
use std::collections::BTreeMap;

/// Bytes of a page that hold something.
const CONTENT: usize = 4_076;

/// A key and a value as they stand in a page.
type Raw = (Vec<u8>, Option<Vec<u8>>);

/// What a table is called and what it covers.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the names are those of the table")]
pub struct TableHead {
    pub uuid: Id16,
    pub id: u64,
    pub first_lsn: u64,
    pub last_lsn: u64,
}

/// The pages of a table without checksums, so that a caller can spoil one before [`close`].
pub fn pages(head: &TableHead, rows: &[Row]) -> Vec<Vec<u8>> {
    let mut spaces: BTreeMap<u8, Vec<Raw>> = BTreeMap::new();
    for (key, entry) in rows {
        let raw = (records::key(key), entry.as_ref().map(records::value));
        spaces.entry(key.keyspace()).or_default().push(raw);
    }
    let (mut descriptors, mut pages) = (Out::default(), Vec::new());
    for (keyspace, mut rows) in spaces {
        rows.sort();
        let first = 1 + pages.len();
        let (shape, height, data, extra, low, high) = if matches!(keyspace, 10 | 11) {
            buckets(keyspace, &rows, &mut pages)
        } else {
            tree(keyspace, &rows, first, &mut pages)
        };
        descriptors.u8(keyspace).u8(shape).u8(height).u8(0).u32(len32(rows.len())).u32(len32(first));
        descriptors.u32(data).u32(extra).u32(0).u64(low).u64(high).zeros(24);
    }
    let sections = len32(descriptors.0.len() / 64);
    let mut out = Out::default();
    out.bytes(b"HFTABLEF").u32(1).u32(len32(pages.len() + 1)).bytes(&head.uuid).u64(head.id);
    out.u64(head.first_lsn).u64(head.last_lsn).u32(sections).zeros(36).bytes(&descriptors.0).fill(4_096);
    pages.insert(0, out.0);
    pages
}

/// Gives every page its checksum.
pub fn close(head: &TableHead, pages: Vec<Vec<u8>>) -> Vec<u8> {
    let mut file = Vec::new();
    for (number, mut page) in (0_u32..).zip(pages) {
        page.truncate(4_092);
        let sum = crc(&[&head.uuid, &head.id.to_le_bytes(), &number.to_le_bytes()], &page);
        file.extend(page);
        file.extend(sum.to_le_bytes());
    }
    file
}

fn page(kind: u8, keyspace: u8, count: usize, extra: u32, deleted: u64) -> Out {
    let mut out = Out::default();
    out.u8(kind).u8(keyspace).u16(u16::try_from(count).expect("a page is small")).u32(extra).u64(deleted);
    out
}

type Built = (u8, u8, u32, u32, u64, u64);

fn front(key: &[u8]) -> u64 {
    key.iter().take(8).fold(0, |number, byte| number * 256 + u64::from(*byte))
}

fn buckets(keyspace: u8, rows: &[Raw], pages: &mut Vec<Vec<u8>>) -> Built {
    let (capacity, length) = if keyspace == 10 { (50, 48) } else { (56, 40) };
    let count = (rows.len() / 40 + 1) as u64;
    let fronts = || rows.iter().map(|(key, _)| front(key));
    let (low, high) = (fronts().min().unwrap_or(0), fronts().max().unwrap_or(0));
    let mut overflow = Vec::new();
    let before = pages.len();
    for bucket in 0..count {
        let of =
            |key: &[u8]| u128::from(front(key) - low) * u128::from(count) / (u128::from(high) - u128::from(low) + 1);
        let here: Vec<&Raw> = rows.iter().filter(|(key, _)| of(key) == u128::from(bucket)).collect();
        let (own, rest) = here.split_at(here.len().min(capacity));
        pages.push(bucket_page(2, keyspace, own, u32::from(!rest.is_empty()), length));
        overflow.extend_from_slice(rest);
    }
    let data = pages.len() - before;
    for part in overflow.chunks(capacity) {
        pages.push(bucket_page(3, keyspace, part, 0, length));
    }
    (1, 0, len32(data), len32(pages.len() - before - data), low, high)
}

fn bucket_page(kind: u8, keyspace: u8, rows: &[&Raw], extra: u32, length: usize) -> Vec<u8> {
    let deleted = rows.iter().enumerate().filter(|(_, (_, value))| value.is_none()).map(|(index, _)| 1 << index).sum();
    let mut out = page(kind, keyspace, rows.len(), extra, deleted);
    for (key, value) in rows {
        out.bytes(key);
        match value {
            Some(value) => out.bytes(value),
            None => out.zeros(length),
        };
    }
    out.fill(4_096);
    out.0
}

fn tree(keyspace: u8, rows: &[Raw], first: usize, pages: &mut Vec<Vec<u8>>) -> Built {
    let before = pages.len();
    let number = |pages: &Vec<Vec<u8>>| len32(first + pages.len() - before);
    let mut level: Vec<(Vec<u8>, u32)> = Vec::new();
    let mut leaf: Vec<&Raw> = Vec::new();
    let entry = |row: &Raw| {
        let mut out = Out::default();
        out.u8(if row.1.is_some() { 1 } else { 2 }).u8(0).u16(u16::try_from(row.0.len()).expect("a key is short"));
        out.u32(len32(row.1.as_ref().map_or(0, Vec::len))).bytes(&row.0).bytes(row.1.as_deref().unwrap_or_default());
        out.0
    };
    for row in rows.iter().map(Some).chain([None]) {
        let next = row.map(entry);
        let full = leaf.iter().map(|row| entry(row).len()).sum::<usize>() + next.as_ref().map_or(CONTENT + 1, Vec::len);
        if full > CONTENT
            && let Some(begin) = leaf.first()
        {
            level.push((begin.0.clone(), number(pages)));
            let mut out = page(4, keyspace, leaf.len(), 0, 0);
            for row in &leaf {
                out.bytes(&entry(row));
            }
            out.fill(4_096);
            pages.push(out.0);
            leaf.clear();
        }
        match (row, next) {
            (Some(row), Some(next)) if next.len() > CONTENT => {
                level.push((row.0.clone(), number(pages)));
                let (here, rest) = next.split_at(CONTENT);
                let rests = rest.chunks(CONTENT);
                let mut out = page(5, keyspace, 1, len32(rests.len()), 0);
                out.bytes(here).fill(4_096);
                pages.push(out.0);
                for (place, part) in (1..).zip(rests) {
                    let mut out = page(6, keyspace, 0, place, 0);
                    out.bytes(part).fill(4_096);
                    pages.push(out.0);
                }
            }
            (Some(row), _) => leaf.push(row),
            (None, _) => {}
        }
    }
    let data = pages.len() - before;
    let mut height = 0;
    while level.len() > 1 {
        height += 1;
        let mut above = Vec::new();
        // Far fewer than would fit, so that small trees have branches of several levels.
        for part in level.chunks(20) {
            above.push((part.first().expect("a chunk has a first").0.clone(), number(pages)));
            let mut out = page(7, keyspace, part.len(), height, 0);
            for (key, child) in part {
                out.u16(u16::try_from(key.len()).expect("a key is short")).u16(0).u32(*child).bytes(key);
            }
            out.fill(4_096);
            pages.push(out.0);
        }
        level = above;
    }
    (2, u8::try_from(height).expect("a tree is low"), len32(data), len32(pages.len() - before - data), 0, 0)
}
