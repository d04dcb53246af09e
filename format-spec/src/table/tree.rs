//! Sections that are trees.

use super::{HEAD, Pages, Raw, SUM, Section, content, expect, head_place};
use crate::error::{Error, Result};
use crate::limits;

/// Bytes of an entry besides key and value, and of a child besides its key.
const ENTRY: usize = 8;

/// A page with the first key of it.
type Child = (Vec<u8>, u32);

/// Every entry in order. The branches must name exactly the pages below them.
pub(super) fn read(section: &Section, pages: &dyn Pages) -> Result<Vec<Raw>> {
    let (mut all, mut below): (Vec<Raw>, Vec<Child>) = (Vec::new(), Vec::new());
    let mut number = section.first_page;
    while number < section.extra_first() {
        let rest = leaf(section, pages, number, &mut all, &mut below)?;
        number += 1 + rest;
    }
    let end = section.extra_first() + section.extra_pages;
    let mut number = section.extra_first();
    for level in 1..=u32::from(section.height) {
        let (mut named, mut branches): (Vec<Child>, Vec<Child>) = (Vec::new(), Vec::new());
        while number < end && named.len() < below.len() {
            let children = branch(section, pages, number, level)?;
            branches.extend(children.first().map(|(key, _)| (key.clone(), number)));
            named.extend(children);
            number += 1;
        }
        if named != below {
            return Err(Error::Mismatch(head_place(section.extra_first(), "children")));
        }
        below = branches;
    }
    if below.len() == 1 && number == end { Ok(all) } else { Err(Error::Mismatch(head_place(number, "root"))) }
}

/// Adds the entries of a leaf, or the one of a large page; answers how many rest pages follow.
fn leaf(section: &Section, pages: &dyn Pages, number: u32, all: &mut Vec<Raw>, below: &mut Vec<Child>) -> Result<u32> {
    let bytes = pages.page(number)?;
    let head = expect(&bytes, number, section, &[4, 5])?;
    let large = head.kind == 5;
    if head.deleted != 0 || head.count == 0 || (large && head.count != 1) || (!large && head.extra != 0) {
        return Err(Error::Value(head_place(number, "head")));
    }
    let mut f = content(&bytes, number);
    for index in 0..head.count {
        let tag = f.u8("tag")?;
        f.check(tag == 1 || tag == 2, Error::Value)?;
        f.reserved(1)?;
        let key_length = f.u16("key length")?;
        f.check((1..=limits::EDIT_KEY).contains(&key_length), Error::Bound)?;
        let length = f.u32("value length")?;
        f.check(length <= limits::EDIT_BODY && (tag == 1 || length == 0), Error::Bound)?;
        let key = f.take("key", usize::from(key_length))?.to_vec();
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let fits = ENTRY + key.len() + length <= SUM - HEAD;
        f.check(fits != large, Error::Mismatch)?;
        let here = if large { f.left() } else { length };
        let mut value = f.take("value", here)?.to_vec();
        if large {
            rests(section, pages, (number, head.extra), length, &mut value)?;
        }
        if index == 0 {
            below.push((key.clone(), number));
        }
        all.push((key, (tag == 1).then_some(value)));
    }
    f.reserved(f.left())?;
    Ok(head.extra)
}

/// The rest of a long value.
fn rests(
    section: &Section,
    pages: &dyn Pages,
    (large, count): (u32, u32),
    length: usize,
    value: &mut Vec<u8>,
) -> Result<()> {
    let wanted = (length - value.len()).div_ceil(SUM - HEAD);
    if usize::try_from(count) != Ok(wanted) || large + count >= section.extra_first() {
        return Err(Error::Mismatch(head_place(large, "extra")));
    }
    for place in 1..=count {
        let number = large + place;
        let bytes = pages.page(number)?;
        let head = expect(&bytes, number, section, &[6])?;
        if (head.count, head.extra, head.deleted) != (0, place, 0) {
            return Err(Error::Mismatch(head_place(number, "head")));
        }
        let mut f = content(&bytes, number);
        let here = (length - value.len()).min(SUM - HEAD);
        value.extend(f.take("value", here)?);
        f.reserved(f.left())?;
    }
    Ok(())
}

fn branch(section: &Section, pages: &dyn Pages, number: u32, level: u32) -> Result<Vec<Child>> {
    let bytes = pages.page(number)?;
    let head = expect(&bytes, number, section, &[7])?;
    if head.extra != level || head.deleted != 0 || head.count == 0 {
        return Err(Error::Mismatch(head_place(number, "head")));
    }
    let mut f = content(&bytes, number);
    let mut children = Vec::new();
    for _ in 0..head.count {
        let key_length = f.u16("key length")?;
        f.check((1..=limits::EDIT_KEY).contains(&key_length), Error::Bound)?;
        f.reserved(2)?;
        let child = f.u32("page number")?;
        children.push((f.take("key", usize::from(key_length))?.to_vec(), child));
    }
    f.reserved(f.left())?;
    Ok(children)
}
