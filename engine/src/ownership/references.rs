//! How many parents a chunk or page has, and what a request changes about it.
//!
//! References count direct parents by occurrence: a blob its root, an upload its right edge and tail, a page its entries. A page
//! that the catalog has holds its entries already, so that whoever closes it again lets go of them and takes the page instead.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    catalog::State,
    error::{Error, Kind, Result},
    format::{
        commit::{EDIT_OVERHEAD, Edit},
        keyspace::{Keyspace, chunk_key, zero_chunk_key},
        value::ChunkValue,
    },
    ids::{ChunkId, Location},
};

/// Length of the edits that one chunk or page takes at most: its entry, and its entry in `zero`.
pub const EDITS_LEN_MAX: usize = 2 * EDIT_OVERHEAD + 32 + 40 + 33;

/// A frame that a request brings along.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewFrame {
    /// What the catalog will say of it; its references do not count here.
    pub value: ChunkValue,
    /// Where the damaged frame stands whose place it takes.
    pub replaces: Option<Location>,
}

/// Frames of a request by chunk or page.
pub type NewFrames = BTreeMap<ChunkId, NewFrame>;

/// A page that ended, with its entries.
struct ClosedPage {
    id: ChunkId,
    entries: Vec<ChunkId>,
}

/// What a request changes about who holds what.
#[derive(Default)]
pub struct Changes {
    deltas: BTreeMap<ChunkId, i64>,
    pages: Vec<ClosedPage>,
}

impl Changes {
    /// One parent more.
    pub fn hold(&mut self, id: ChunkId) {
        *self.deltas.entry(id).or_default() += 1;
    }

    /// One parent less.
    pub fn release(&mut self, id: ChunkId) {
        *self.deltas.entry(id).or_default() -= 1;
    }

    /// Entries that were held by themselves are now a page, which is held in their stead.
    pub fn close(&mut self, page: ChunkId, entries: Vec<ChunkId>) {
        self.pages.push(ClosedPage { id: page, entries });
    }

    /// The sums, once it is known which pages are there already. O(n log n) with the catalog's look-ups.
    fn resolve(&self, state: &dyn State) -> Result<BTreeMap<ChunkId, i64>> {
        let mut deltas = self.deltas.clone();
        let mut closed = BTreeSet::new();
        for page in &self.pages {
            *deltas.entry(page.id).or_default() += 1;
            if !closed.insert(page.id) || state.chunk(page.id)?.is_some() {
                for entry in &page.entries {
                    *deltas.entry(*entry).or_default() -= 1;
                }
            }
        }
        Ok(deltas)
    }
}

/// A chunk or page that a request changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settled {
    /// Its id.
    pub id: ChunkId,
    /// True if the request's own frame is needed: the catalog has none, or a damaged one.
    pub takes_frame: bool,
    old: Option<ChunkValue>,
    references: u64,
}

/// What of the changes and frames is needed against a state. Each chunk or page stands in the result at most once, by id.
pub fn settle(state: &dyn State, changes: &Changes, frames: &NewFrames) -> Result<Vec<Settled>> {
    let mut deltas = changes.resolve(state)?;
    for (id, _) in frames.iter().filter(|(_, frame)| frame.replaces.is_some()) {
        deltas.entry(*id).or_default();
    }
    let settled = deltas.into_iter().map(|(id, delta)| settle_one(state, id, delta, frames.get(&id)));
    settled.filter_map(Result::transpose).collect()
}

fn settle_one(state: &dyn State, id: ChunkId, delta: i64, frame: Option<&NewFrame>) -> Result<Option<Settled>> {
    let old = state.chunk(id)?;
    let references = old.map_or(0, |old| old.references).checked_add_signed(delta);
    let references =
        references.ok_or_else(|| Error::new(Kind::Corrupt, "a chunk has fewer references than parents"))?;
    let takes_frame = match old {
        None if references == 0 => return Ok(None),
        None if frame.is_none() => {
            return Err(Error::new(Kind::Corrupt, "a recipe needs a chunk that the catalog does not have"));
        }
        None => true,
        // Somebody else may have healed it meanwhile.
        Some(old) => frame.is_some_and(|frame| frame.replaces == Some(old.location)),
    };
    Ok((takes_frame || delta != 0).then_some(Settled { id, takes_frame, old, references }))
}

/// The edits. `value_of` gives the entry of a frame that is taken, at its final place.
pub fn edits(settled: &[Settled], mut value_of: impl FnMut(ChunkId) -> ChunkValue) -> Vec<Edit> {
    let mut edits = Vec::with_capacity(settled.len());
    for Settled { id, takes_frame, old, references } in settled {
        let value = match old {
            Some(old) if !takes_frame => *old,
            _ => value_of(*id),
        };
        let value = ChunkValue { references: *references, ..value };
        edits.push(Edit::put(Keyspace::Chunk, chunk_key(*id), value.encode()));
        match (old.map(|old| old.references), references) {
            (Some(0), 1..) => edits.push(Edit::delete(Keyspace::Zero, zero_chunk_key(*id))),
            (Some(1..), 0) => edits.push(Edit::put(Keyspace::Zero, zero_chunk_key(*id), [])),
            _ => {}
        }
    }
    edits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        catalog::Catalog,
        codec::Codec,
        format::frame::FrameKind,
        ids::{FileId, TenantNumber},
        limits::FRAMES_START,
    };

    fn id(n: u8) -> ChunkId {
        ChunkId([n; 32])
    }

    fn at(number: u64) -> Location {
        Location { segment: FileId(1), offset: FRAMES_START + 64 * number }
    }

    fn frame(number: u64) -> NewFrame {
        let value = ChunkValue {
            location: at(number),
            stored: 10,
            raw: 10,
            tenant: TenantNumber(1),
            codec: Codec::Raw,
            kind: FrameKind::Chunk,
            references: 0,
        };
        NewFrame { value, replaces: None }
    }

    /// Settles and applies, as a commit does.
    fn apply(catalog: &mut Catalog, changes: &Changes, frames: &NewFrames) {
        let settled = settle(catalog, changes, frames).expect("settles");
        let edits = edits(&settled, |id| frames[&id].value);
        assert!(edits.iter().map(Edit::encoded_len).sum::<usize>() <= settled.len() * EDITS_LEN_MAX);
        for edit in edits {
            catalog.apply(&edit).expect("applies");
        }
    }

    fn references(catalog: &Catalog, n: u8) -> Option<u64> {
        catalog.chunk(id(n)).expect("reads").map(|chunk| chunk.references)
    }

    /// A page 9 of the chunks 1, 2, 1.
    fn page() -> Changes {
        let mut changes = Changes::default();
        for n in [1, 2, 1] {
            changes.hold(id(n));
        }
        changes.close(id(9), vec![id(1), id(2), id(1)]);
        changes
    }

    fn frames() -> NewFrames {
        [(id(1), frame(1)), (id(2), frame(2)), (id(9), frame(3))].into()
    }

    #[test]
    fn entries_of_a_new_page_are_counted_by_occurrence() {
        let mut catalog = Catalog::default();
        apply(&mut catalog, &page(), &frames());
        assert_eq!([1, 2, 9].map(|n| references(&catalog, n)), [Some(2), Some(1), Some(1)]);
    }

    #[test]
    fn a_page_that_is_there_already_keeps_its_entries_and_gets_one_more_parent() {
        let mut catalog = Catalog::default();
        apply(&mut catalog, &page(), &frames());
        apply(&mut catalog, &page(), &frames());
        assert_eq!([1, 2, 9].map(|n| references(&catalog, n)), [Some(2), Some(1), Some(2)]);
    }

    #[test]
    fn a_page_closed_twice_in_one_request_holds_its_entries_once() {
        let mut catalog = Catalog::default();
        let mut twice = page();
        for n in [1, 2, 1] {
            twice.hold(id(n));
        }
        twice.close(id(9), vec![id(1), id(2), id(1)]);
        apply(&mut catalog, &twice, &frames());
        assert_eq!([1, 2, 9].map(|n| references(&catalog, n)), [Some(2), Some(1), Some(2)]);
    }

    #[test]
    fn an_entry_at_zero_stays_and_is_listed_until_it_is_held_again() {
        let mut catalog = Catalog::default();
        let listed = |catalog: &Catalog| catalog.get(Keyspace::Zero, &zero_chunk_key(id(1))).expect("reads").is_some();
        let (mut hold, mut release) = (Changes::default(), Changes::default());
        hold.hold(id(1));
        release.release(id(1));
        apply(&mut catalog, &hold, &frames());
        assert!(!listed(&catalog));
        apply(&mut catalog, &release, &NewFrames::new());
        assert_eq!((references(&catalog, 1), listed(&catalog)), (Some(0), true));
        apply(&mut catalog, &hold, &NewFrames::new());
        assert_eq!((references(&catalog, 1), listed(&catalog)), (Some(1), false));
    }

    #[test]
    fn counts_never_go_below_zero_and_a_chunk_that_is_missing_is_never_counted() {
        let mut changes = Changes::default();
        changes.hold(id(1));
        assert_eq!(
            settle(&Catalog::default(), &changes, &NewFrames::new()).expect_err("missing").kind(),
            Kind::Corrupt
        );
        changes.release(id(1));
        assert_eq!(settle(&Catalog::default(), &changes, &NewFrames::new()).expect("nothing"), []);
        changes.release(id(1));
        assert_eq!(settle(&Catalog::default(), &changes, &frames()).expect_err("negative").kind(), Kind::Corrupt);
    }

    #[test]
    fn a_good_frame_takes_the_place_of_the_bad_one_only() {
        let mut catalog = Catalog::default();
        apply(&mut catalog, &page(), &frames());
        let heal =
            |bad: u64, good: u64| NewFrames::from([(id(2), NewFrame { replaces: Some(at(bad)), ..frame(good) })]);
        let place = |catalog: &Catalog| catalog.chunk(id(2)).expect("reads").expect("there").location;
        apply(&mut catalog, &Changes::default(), &heal(2, 10));
        assert_eq!((place(&catalog), references(&catalog, 2)), (at(10), Some(1)));
        apply(&mut catalog, &Changes::default(), &heal(2, 11));
        assert_eq!(place(&catalog), at(10), "another put healed it first");
    }
}
