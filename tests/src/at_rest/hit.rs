//! What a damage has hit: which bytes, and which structures of the reference store.

use std::{collections::BTreeMap, ops::Range};

use holdfast::disk::{Name, sim::Image};

use super::{
    damage::Reach,
    map::{Map, Place, Region, What, meet},
};

/// What a damage has hit.
pub(super) struct Hit<'m> {
    /// How much it may concern.
    pub(super) reach: Reach,
    /// Bytes that differ, by file.
    pub(super) differences: BTreeMap<Name, Vec<Range<u64>>>,
    /// Touched regions whose damage must be named, by file.
    pub(super) regions: BTreeMap<Name, Vec<&'m Region>>,
}

impl<'m> Hit<'m> {
    /// What differences hit.
    pub(super) fn of(map: &'m Map, image: &Image, reach: Reach, differences: BTreeMap<Name, Vec<Range<u64>>>) -> Self {
        let mut regions = BTreeMap::new();
        for (name, ranges) in &differences {
            let cut_at = image.len(name);
            let touched: Vec<&Region> = map
                .touched(name, ranges)
                .filter(|region| region.counts())
                // Where a file may end early, only bytes that are there and wrong are damage.
                .filter(|region| !is_cut(region, cut_at, ranges))
                .collect();
            if !touched.is_empty() {
                regions.insert(name.clone(), touched);
            }
        }
        Self { reach, differences, regions }
    }

    /// Whether a byte of a place differs.
    pub(super) fn touches(&self, place: &Place) -> bool {
        self.differences.get(&place.0).is_some_and(|ranges| ranges.iter().any(|range| meet(range, &place.1)))
    }

    /// Whether both copies of a segment's header are hit: then nobody finds its frames.
    pub(super) fn beheads(&self, map: &Map, name: &Name) -> bool {
        let Some(ranges) = self.differences.get(name) else { return false };
        map.touched(name, ranges).filter(|region| region.what == What::Header).count() == 2
    }

    /// Whether a page of a table is hit in both copies: what stood in it is lost.
    pub(super) fn loses_page(&self) -> bool {
        let mut tables =
            self.regions.iter().filter_map(|(name, pages)| Some((pages, self.regions.get(&mirror_of(name)?)?)));
        tables.any(|(pages, mirrored)| pages.iter().any(|page| mirrored.iter().any(|m| m.range == page.range)))
    }

    /// Whether each structure that was hit has another copy which was not.
    pub(super) fn has_copies(&self) -> bool {
        let copied = |what| matches!(what, What::Superblock | What::Header | What::Manifest | What::Table);
        let mut hit = self.regions.values().flatten();
        let is_one = self.reach == Reach::One && self.regions.values().map(Vec::len).sum::<usize>() == 1;
        is_one && hit.all(|region| copied(region.what))
    }

    /// Copies of the superblock that are left.
    pub(super) fn superblocks(&self) -> usize {
        let hit = self.regions.get(&superblock()).map_or(0, Vec::len);
        4 - hit
    }

    /// Whether too much of what was hit is not named.
    pub(super) fn is_hidden(&self, unnamed: &[&Name]) -> bool {
        match self.reach {
            Reach::One => !unnamed.is_empty(),
            Reach::Two => !self.regions.is_empty() && unnamed.len() == self.regions.len(),
            Reach::Roots => false,
        }
    }

    /// Whether the file that is named is one that was hit. Where all that the store is known by may be another's, any will do.
    pub(super) fn is_of(&self, file: Option<&str>) -> bool {
        let hit = |file| self.regions.keys().any(|name| Some(name.as_str()) == file);
        self.reach == Reach::Roots || hit(file)
    }

    /// Whether a place is one that was hit, or near it.
    pub(super) fn is_near(&self, file: &str, range: Range<u64>) -> bool {
        let found = self.regions.iter().find(|(name, _)| name.as_str() == file);
        found.is_some_and(|(_, regions)| {
            let start = regions.iter().map(|region| region.range.start).min().unwrap_or(0);
            let end = regions.iter().map(|region| region.range.end).max().unwrap_or(0);
            // The end of a file that is longer than it should be is near too.
            meet(&(start..end + 1), &range)
        })
    }
}

/// The mirror of a table, by the name of its first copy.
pub(super) fn mirror_of(name: &Name) -> Option<Name> {
    let id = name.as_str().strip_prefix("table-")?.strip_suffix(".a")?;
    Name::new(&format!("table-{id}.b"))
}

/// Whether a spare file, which may be of any length, lost only its end.
fn is_cut(region: &Region, len: Option<u64>, ranges: &[Range<u64>]) -> bool {
    let (What::Spare, Some(len)) = (region.what, len) else { return false };
    ranges.iter().filter(|range| meet(range, &region.range)).all(|range| range.start >= len)
}

fn superblock() -> Name {
    Name::new("superblock").expect("a flat name")
}
