//! The walk through a recipe, depth first. What pages say is hostile: levels fall by one, lengths are those that the parent gave.

use std::ops::Range;

use super::{Fetched, Reader};
use crate::{
    digest::TenantKeys,
    error::Result,
    format::{
        frame::FrameKind,
        page::{Page, PageEntry},
        value::ChunkValue,
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

/// A chunk that is to be handed out, and where the catalog says that it lies.
pub(super) struct Wanted {
    /// What the recipe says of it.
    pub(super) entry: PageEntry,
    /// What the catalog says of it.
    pub(super) value: ChunkValue,
    /// The part of it that lies within the range.
    pub(super) part: Range<u64>,
}

impl Wanted {
    /// The chunk, if that is what its recipe gives.
    pub(super) fn check(&self, fetched: &Fetched) -> Result<()> {
        if fetched.kind == FrameKind::Page || fetched.raw.len() as u64 != self.entry.len {
            return Err(fetched.corrupt("a chunk of another length or level than its recipe gives"));
        }
        Ok(())
    }
}

/// A walk that stands somewhere. Memory: a page a level.
pub(super) struct Walk<'a> {
    reader: &'a Reader,
    keys: &'a TenantKeys,
    range: Range<u64>,
    root: Option<PageEntry>,
    open: Vec<Open>,
}

impl<'a> Walk<'a> {
    /// Begins at the root. The range lies within the blob.
    pub(super) fn new(reader: &'a Reader, keys: &'a TenantKeys, root: PageEntry, range: Range<u64>) -> Self {
        let root = (!range.is_empty()).then_some(root);
        Self { reader, keys, range, root, open: Vec::new() }
    }

    /// The next chunk that the range touches. Pages on the way are read and checked.
    pub(super) fn next(&mut self) -> Result<Option<Wanted>> {
        while let Some(Step { entry, at, expected }) = self.step() {
            let value = self.reader.locate(entry.id)?;
            if value.kind != FrameKind::Page && !matches!(expected, Expected::Page(_)) {
                let part = within(at, entry.len, &self.range);
                return Ok(Some(Wanted { entry, value, part }));
            }
            let fetched = self.reader.fetch(self.keys, entry.id)?;
            if fetched.kind != FrameKind::Page {
                return Err(fetched.corrupt("a chunk of another length or level than its recipe gives"));
            }
            self.open.push(Open { page: page(&fetched, entry.len, expected)?, next: 0, at });
        }
        Ok(None)
    }

    /// The next entry that the range touches. Pages that are done are closed.
    fn step(&mut self) -> Option<Step> {
        if let Some(entry) = self.root.take() {
            return Some(Step { entry, at: 0, expected: Expected::Root });
        }
        while let Some(top) = self.open.last_mut() {
            let Some(entry) = top.page.entries.get(top.next).copied() else {
                self.open.pop();
                continue;
            };
            let at = top.at;
            top.next += 1;
            // Ends within the page's total, which lies within the blob's size.
            top.at += entry.len;
            if at >= self.range.end {
                return None;
            }
            if top.at > self.range.start {
                let expected = top.page.level.checked_sub(1).map_or(Expected::Chunk, Expected::Page);
                return Some(Step { entry, at, expected });
            }
        }
        None
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

/// The part of a chunk of `len` bytes at `at` that lies within the range.
fn within(at: u64, len: u64, range: &Range<u64>) -> Range<u64> {
    let index = |offset: u64| offset.saturating_sub(at).min(len);
    index(range.start)..index(range.end)
}
