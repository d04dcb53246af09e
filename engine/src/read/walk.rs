//! The walk through a recipe, depth first. What pages say is hostile: levels fall by one, lengths are those that the parent gave.

use std::ops::Range;

use super::{Fetched, Reader};
use crate::{
    digest::TenantKeys,
    error::Result,
    format::{
        frame::FrameKind,
        page::{Page, PageEntry},
    },
};

/// What an entry must be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// A chunk, or a page of any level.
    Root,
    Chunk,
    Page(u8),
}

/// An entry with its place in the blob.
struct Step {
    entry: PageEntry,
    at: u64,
    expected: Expected,
}

/// A page on the way down.
struct Open {
    page: Page,
    next: usize,
    /// Place of the next entry in the blob.
    at: u64,
}

impl Reader {
    /// Gives the bytes of a range to `emit`, chunk by chunk. The range lies within the blob.
    pub(super) fn walk(
        &self,
        keys: &TenantKeys,
        root: PageEntry,
        range: &Range<u64>,
        emit: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let mut open = Vec::new();
        let mut step = Some(Step { entry: root, at: 0, expected: Expected::Root });
        while let Some(Step { entry, at, expected }) = step {
            let fetched = self.fetch(keys, entry.id)?;
            if fetched.kind == FrameKind::Page {
                open.push(Open { page: page(&fetched, entry.len, expected)?, next: 0, at });
            } else if matches!(expected, Expected::Page(_)) || fetched.raw.len() as u64 != entry.len {
                return Err(fetched.corrupt("a chunk of another length or level than its recipe gives"));
            } else {
                emit(within(&fetched.raw, at, range))?;
            }
            step = next(&mut open, range);
        }
        Ok(())
    }
}

/// The page that was read, if it is what its parent says.
fn page(fetched: &Fetched, len: u64, expected: Expected) -> Result<Page> {
    let page = Page::decode(&fetched.raw).map_err(|bad| fetched.corrupt(bad.what))?;
    let is_expected = match expected {
        Expected::Root => true,
        Expected::Chunk => false,
        Expected::Page(level) => page.level == level,
    };
    // The sum was checked when the page was decoded.
    if is_expected && page.total() == len {
        Ok(page)
    } else {
        Err(fetched.corrupt("a page of another length or level than its recipe gives"))
    }
}

/// The next entry that the range touches. Pages that are done are closed.
fn next(open: &mut Vec<Open>, range: &Range<u64>) -> Option<Step> {
    while let Some(top) = open.last_mut() {
        let Some(entry) = top.page.entries.get(top.next).copied() else {
            open.pop();
            continue;
        };
        let at = top.at;
        top.next += 1;
        // Ends within the page's total, which lies within the blob's size.
        top.at += entry.len;
        if at >= range.end {
            return None;
        }
        if top.at > range.start {
            let expected = top.page.level.checked_sub(1).map_or(Expected::Chunk, Expected::Page);
            return Some(Step { entry, at, expected });
        }
    }
    None
}

/// The part of a chunk at `at` that lies within the range.
fn within<'a>(raw: &'a [u8], at: u64, range: &Range<u64>) -> &'a [u8] {
    let index = |offset: u64| usize::try_from(offset.saturating_sub(at)).unwrap_or(usize::MAX).min(raw.len());
    &raw[index(range.start)..index(range.end)]
}
