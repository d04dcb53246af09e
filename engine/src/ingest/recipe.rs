//! Building recipes (FORMAT.md section 11.1): the tree of pages over the chunks of a stream, from left to right.
//!
//! Memory is the right edge: less than one page a level. It knows nothing of where pages are kept.

use crate::{
    digest::TenantKeys,
    format::page::{Page, PageEntry},
    ids::ChunkId,
};

/// A page that is complete.
pub struct ClosedPage {
    /// Its id.
    pub id: ChunkId,
    /// Its payload, of which the id is the keyed hash.
    pub payload: Vec<u8>,
    /// Ids of its entries.
    pub entries: Vec<ChunkId>,
}

/// The tree of a stream so far.
pub struct RecipeBuilder {
    keys: TenantKeys,
    right_edge: Vec<Vec<PageEntry>>,
}

impl RecipeBuilder {
    /// The tree of an empty stream.
    pub fn new(keys: TenantKeys) -> Self {
        Self { keys, right_edge: Vec::new() }
    }

    /// A tree that goes on where an earlier one stood.
    pub const fn resumed(keys: TenantKeys, right_edge: Vec<Vec<PageEntry>>) -> Self {
        Self { keys, right_edge }
    }

    /// Entries that no page holds yet, a list a level, from the chunks upwards.
    pub fn right_edge(&self) -> &[Vec<PageEntry>] {
        &self.right_edge
    }

    /// Adds a chunk and gives the pages that end with it, lower ones first. O(1) on average.
    pub fn push(&mut self, chunk: PageEntry) -> Vec<ClosedPage> {
        let mut closed = Vec::new();
        self.push_at(0, chunk, &mut closed);
        closed
    }

    /// Ends the stream: the pages that were open, lower ones first, and the root.
    pub fn finish(mut self) -> (Vec<ClosedPage>, ChunkId) {
        let mut closed = Vec::new();
        let mut level = 0;
        while level < self.right_edge.len() {
            let is_top = level + 1 == self.right_edge.len();
            match self.right_edge[level].as_slice() {
                // A page that ended here made a level above.
                [root] if is_top => return (closed, root.id),
                [] => {}
                _ => {
                    let page = self.close(level, &mut closed);
                    self.push_at(level + 1, page, &mut closed);
                }
            }
            level += 1;
        }
        (closed, ChunkId::ZERO)
    }

    fn push_at(&mut self, mut level: usize, mut entry: PageEntry, closed: &mut Vec<ClosedPage>) {
        loop {
            if level == self.right_edge.len() {
                self.right_edge.push(Vec::new());
            }
            self.right_edge[level].push(entry);
            if !entry.ends_page(self.right_edge[level].len()) {
                return;
            }
            entry = self.close(level, closed);
            level += 1;
        }
    }

    /// Makes a page of what a level holds and gives its entry for the level above.
    fn close(&mut self, level: usize, closed: &mut Vec<ClosedPage>) -> PageEntry {
        let entries = std::mem::take(&mut self.right_edge[level]);
        let page = Page { level: u8::try_from(level).expect("a level multiplies by two or more"), entries };
        let payload = page.encode();
        let id = self.keys.page(&payload);
        let entry = PageEntry { id, len: page.total() };
        closed.push(ClosedPage { id, payload, entries: page.entries.iter().map(|e| e.id).collect() });
        entry
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::limits::PAGE_ENTRIES_MAX;

    fn keys() -> TenantKeys {
        TenantKeys::new(&[1; 32])
    }

    /// A chunk whose id ends a page, or not.
    fn chunk(n: u32, ends: bool) -> PageEntry {
        let mut id = *blake3::hash(&n.to_le_bytes()).as_bytes();
        id[0] = u8::from(!ends);
        id[1] &= 0xfe;
        PageEntry { id: ChunkId(id), len: u64::from(n) + 1 }
    }

    fn build(chunks: &[PageEntry]) -> (Vec<ClosedPage>, ChunkId) {
        let mut builder = RecipeBuilder::new(keys());
        let mut pages: Vec<ClosedPage> = chunks.iter().flat_map(|chunk| builder.push(*chunk)).collect();
        let (rest, root) = builder.finish();
        pages.extend(rest);
        (pages, root)
    }

    /// The rule applied to a whole level at a time.
    fn root_as_written(chunks: &[PageEntry]) -> ChunkId {
        let mut entries = chunks.to_vec();
        let mut level = 0;
        loop {
            match entries.as_slice() {
                [] => return ChunkId::ZERO,
                [root] => return root.id,
                _ => {}
            }
            let mut pages = vec![Vec::new()];
            for entry in entries {
                let page = pages.last_mut().expect("one is open");
                page.push(entry);
                let low = u16::from_le_bytes([entry.id.0[0], entry.id.0[1]]) % 512;
                if page.len() == PAGE_ENTRIES_MAX || (page.len() >= 2 && low == 0) {
                    pages.push(Vec::new());
                }
            }
            pages.retain(|page| !page.is_empty());
            let encoded = pages.into_iter().map(|entries| Page { level, entries });
            entries = encoded.map(|page| PageEntry { id: keys().page(&page.encode()), len: page.total() }).collect();
            level += 1;
        }
    }

    /// The chunks that the pages give, walked from the root.
    fn walk(pages: &[ClosedPage], root: ChunkId) -> Vec<ChunkId> {
        let pages: BTreeMap<ChunkId, Page> =
            pages.iter().map(|p| (p.id, Page::decode(&p.payload).expect("a page"))).collect();
        let mut chunks = Vec::new();
        let mut open = vec![root];
        while let Some(id) = open.pop() {
            match pages.get(&id) {
                Some(page) => open.extend(page.entries.iter().rev().map(|e| e.id)),
                None => chunks.push(id),
            }
        }
        chunks
    }

    fn check(chunks: &[PageEntry]) -> Vec<ClosedPage> {
        let (pages, root) = build(chunks);
        assert_eq!(root, root_as_written(chunks));
        if !chunks.is_empty() {
            assert_eq!(walk(&pages, root), chunks.iter().map(|c| c.id).collect::<Vec<_>>());
        }
        pages
    }

    #[test]
    fn a_stream_without_chunks_has_no_root_and_one_of_a_single_chunk_no_page() {
        assert!(check(&[]).is_empty());
        assert!(check(&[chunk(1, false)]).is_empty());
        assert!(check(&[chunk(1, true)]).is_empty());
        assert_eq!(check(&[chunk(1, false), chunk(2, false)]).len(), 1);
        assert_eq!(check(&[chunk(1, false), chunk(2, true)]).len(), 1);
    }

    #[test]
    fn a_full_page_ends_and_the_next_chunk_needs_a_level_more() {
        for (count, pages) in [(1023, 1), (1024, 1), (1025, 3), (2048, 3), (2049, 4)] {
            let chunks: Vec<_> = (0..count).map(|n| chunk(n, false)).collect();
            assert_eq!(check(&chunks).len(), pages, "{count} chunks");
        }
    }

    #[test]
    fn a_chunk_whose_id_ends_pages_does_not_end_one_alone() {
        // All of them would end a page: each page has two.
        let chunks: Vec<_> = (0..9).map(|n| chunk(n, true)).collect();
        let leaves = check(&chunks).iter().filter(|p| p.payload[0] == 0).map(|p| p.entries.len()).collect::<Vec<_>>();
        assert_eq!(leaves, [2, 2, 2, 2, 1]);
    }

    proptest! {
        #[test]
        fn the_tree_is_the_one_that_the_format_gives(ends in proptest::collection::vec(prop::bool::weighted(0.3), 0..300)) {
            let chunks: Vec<_> = ends.iter().zip(0..).map(|(ends, n)| chunk(n, *ends)).collect();
            check(&chunks);
        }
    }
}
