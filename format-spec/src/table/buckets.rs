//! Sections of buckets.

use super::{Pages, Raw, Section, content, expect, head_place};
use crate::error::{Error, Result};

/// The first 8 bytes of a key as a number.
pub(super) fn front(key: &[u8]) -> u64 {
    key.iter().take(8).fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

fn value_length(section: &Section) -> usize {
    if section.keyspace == 10 { 48 } else { 40 }
}

fn capacity(section: &Section) -> usize {
    if section.keyspace == 10 { 50 } else { 56 }
}

/// The bucket of a key; none if its front lies outside of the section.
fn bucket_of(section: &Section, key: &[u8]) -> Option<u32> {
    let front = front(key);
    if front < section.low || front > section.high {
        return None;
    }
    let span = u128::from(section.high) - u128::from(section.low) + 1;
    u32::try_from(u128::from(front - section.low) * u128::from(section.data_pages) / span).ok()
}

/// One page: its entries, and its field extra.
fn page(section: &Section, pages: &dyn Pages, number: u32, kind: u8) -> Result<(Vec<Raw>, u32)> {
    let bytes = pages.page(number)?;
    let head = expect(&bytes, number, section, &[kind])?;
    let count = usize::from(head.count);
    if count > capacity(section) {
        return Err(Error::Bound(head_place(number, "count")));
    }
    if head.extra > 1 || (kind == 3 && head.extra != 0) {
        return Err(Error::Value(head_place(number, "extra")));
    }
    let mut f = content(&bytes, number);
    let mut entries: Vec<Raw> = Vec::new();
    let mut deleted = head.deleted;
    for _ in 0..count {
        let key = f.take("key", 32)?.to_vec();
        f.check(entries.last().is_none_or(|(before, _)| *before < key), Error::Order)?;
        let is_deletion = deleted & 1 == 1;
        deleted >>= 1;
        if is_deletion {
            f.reserved(value_length(section))?;
            entries.push((key, None));
        } else {
            entries.push((key, Some(f.take("value", value_length(section))?.to_vec())));
        }
    }
    if deleted != 0 {
        return Err(Error::Value(head_place(number, "deleted")));
    }
    f.reserved(f.left())?;
    Ok((entries, head.extra))
}

/// Every entry in order.
pub(super) fn read(section: &Section, pages: &dyn Pages) -> Result<Vec<Raw>> {
    let mut overflow: Vec<Raw> = Vec::new();
    for number in section.extra_first()..section.extra_first() + section.extra_pages {
        let (entries, _) = page(section, pages, number, 3)?;
        if entries.is_empty() {
            return Err(Error::Value(head_place(number, "count")));
        }
        overflow.extend(entries);
    }
    let mut rest = overflow.into_iter().peekable();
    let mut all = Vec::new();
    for bucket in 0..section.data_pages {
        let number = section.first_page + bucket;
        let (entries, extra) = page(section, pages, number, 2)?;
        let full = entries.len() == capacity(section);
        for (key, value) in entries {
            if bucket_of(section, &key) != Some(bucket) {
                return Err(Error::Mismatch(head_place(number, "key")));
            }
            all.push((key, value));
        }
        let before = all.len();
        while let Some(entry) = rest.next_if(|(key, _)| bucket_of(section, key) == Some(bucket)) {
            all.push(entry);
        }
        let overflows = all.len() > before;
        if overflows != (extra == 1) || (overflows && !full) {
            return Err(Error::Mismatch(head_place(number, "extra")));
        }
    }
    let ends = (all.first().map(|(key, _)| front(key)), all.last().map(|(key, _)| front(key)));
    if rest.next().is_some() || ends != (Some(section.low), Some(section.high)) {
        return Err(Error::Mismatch(head_place(section.first_page, "low")));
    }
    Ok(all)
}
