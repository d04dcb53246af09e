//! Filters.

use super::buckets::front;
use super::{FilterShape, HEAD, Pages, Raw, SUM, Section, Shape, content, expect, head_place};
use crate::derive::digest;
use crate::error::{Error, Result};

fn mix(number: u64) -> u64 {
    let x = (number ^ (number >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let x = (x ^ (x >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ (x >> 33)
}

/// Whether a filter lets a key pass.
fn passes(shape: &FilterShape, fingerprints: &[u8], number: u64) -> bool {
    let h = mix(number.wrapping_add(shape.seed));
    let (segment, count) = (u64::from(shape.segment_length), u64::from(shape.segment_count_length));
    let a = u64::try_from((u128::from(h) * u128::from(count)) >> 64).unwrap_or(u64::MAX);
    let b = (a + segment) ^ ((h >> 18) & (segment - 1));
    let c = (a + 2 * segment) ^ (h & (segment - 1));
    let mut bits = (h ^ (h >> 32)).to_le_bytes().first().copied().unwrap_or_default();
    for place in [a, b, c] {
        let byte = usize::try_from(place).ok().and_then(|place| fingerprints.get(place));
        bits ^= byte.copied().unwrap_or_default();
    }
    bits == 0
}

/// Reads a filter; every key of the section must pass.
pub(super) fn check(section: &Section, shape: &FilterShape, pages: &dyn Pages, rows: &[Raw]) -> Result<()> {
    let first = section.extra_first() + section.extra_pages;
    let mut fingerprints = Vec::new();
    let wanted = usize::try_from(shape.fingerprints).unwrap_or(usize::MAX);
    for place in 0..section.filter_pages {
        let number = first + place;
        let bytes = pages.page(number)?;
        let head = expect(&bytes, number, section, &[8])?;
        if (head.count, head.extra, head.deleted) != (0, place, 0) {
            return Err(Error::Mismatch(head_place(number, "head")));
        }
        let mut f = content(&bytes, number);
        let here = (wanted - fingerprints.len()).min(SUM - HEAD);
        fingerprints.extend(f.take("fingerprints", here)?);
        f.reserved(f.left())?;
    }
    let number = |key: &[u8]| if section.shape == Shape::Buckets { front(key) } else { front(&digest(key)) };
    let all = rows.iter().all(|(key, _)| passes(shape, &fingerprints, number(key)));
    if all { Ok(()) } else { Err(Error::Mismatch(head_place(first, "fingerprints"))) }
}
