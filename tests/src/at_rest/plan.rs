//! Which damages a campaign does: all bits of structures, a part or all of the rest, and everything else that can happen to a file or a
//! sector.

use holdfast::disk::Name;

use super::{
    damage::{Damage, SECTOR},
    hit::mirror_of,
    map::{Map, What},
    reference::Reference,
};
use crate::random::Random;

/// How much is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// One in so many bits of payload and zeros is inverted.
    pub fraction: u64,
    /// Longer files are cut at every so many bytes, and beside each border of a region.
    pub cut_step: u64,
    /// Mixtures of two stores, and of two times.
    pub mixtures: u64,
}

impl Extent {
    /// Everything.
    pub const FULL: Self = Self { fraction: 1, cut_step: 1, mixtures: 2000 };

    /// All bits of structures, and one in `fraction` of the others.
    pub const fn part(fraction: u64) -> Self {
        Self { fraction, cut_step: 509, mixtures: 100 }
    }
}

/// Files up to this are cut at every length.
const SHORT_FILE: u64 = 4096;

/// All damages of a campaign, in a fixed order.
pub fn plan(reference: &Reference, map: &Map, extent: Extent) -> Vec<Damage> {
    let mut plan = Vec::new();
    files(reference, map, &mut plan);
    cuts(map, extent, &mut plan);
    sectors(reference.seed, map, &mut plan);
    both_copies(map, &mut plan);
    for number in 0..extent.mixtures {
        plan.push(Damage::MixedTimes(number));
        plan.push(Damage::MixedStores(number));
    }
    flips(reference.seed, map, extent, &mut plan);
    plan
}

/// Whether one of the bits that are not all taken is: of every `fraction` neighbours one.
fn is_taken(bit: u64, seed: u64, fraction: u64) -> bool {
    bit % fraction == Random::of(seed, &[5, bit / fraction]).below(fraction)
}

fn flips(seed: u64, map: &Map, extent: Extent, plan: &mut Vec<Damage>) {
    for (name, regions) in &map.regions {
        for region in regions.iter().filter(|region| region.what != What::Lock) {
            for offset in region.range.clone() {
                let all = region.is_structure(offset);
                let bits = (offset * 8..offset * 8 + 8).filter(|bit| all || is_taken(*bit, seed, extent.fraction));
                plan.extend(bits.map(|bit| Damage::Flip(name.clone(), bit)));
            }
        }
    }
}

fn cuts(map: &Map, extent: Extent, plan: &mut Vec<Damage>) {
    for (name, regions) in &map.regions {
        let len = regions.last().map_or(0, |last| last.range.end);
        let borders = regions.iter().map(|region| region.range.start);
        let is_border = |at: u64| borders.clone().any(|border| at.abs_diff(border) <= 1);
        let lengths = (0..len).filter(|at| len <= SHORT_FILE || at.is_multiple_of(extent.cut_step) || is_border(*at));
        plan.extend(lengths.map(|len| Damage::Cut(name.clone(), len)));
    }
}

/// What can happen to whole files.
fn files(reference: &Reference, map: &Map, plan: &mut Vec<Damage>) {
    let names: Vec<&Name> = map.regions.keys().collect();
    for name in &names {
        plan.push(Damage::Lost((*name).clone()));
        plan.push(Damage::Earlier((*name).clone()));
        plan.push(Damage::Foreign((*name).clone()));
        for other in names.iter().filter(|other| kind(other) == kind(name)) {
            if name < other {
                plan.push(Damage::Swapped((*name).clone(), (*other).clone()));
            }
            if name != other {
                plan.push(Damage::Copied((*name).clone(), (*other).clone()));
            }
        }
    }
    // Below the ceiling of ids, above it, and in place of a spare of the other kind.
    let new = |name: &Name| {
        let front = kind(name).to_owned();
        let ids = match front.as_str() {
            "manifest-" => vec!["2.a", "2.b", "900.b"],
            "table-" => vec!["900.a", "1000.b", "500000.a"],
            _ => vec!["1000", "500000"],
        };
        ids.into_iter().filter_map(move |id| Name::new(&format!("{front}{id}")))
    };
    let of_a_kind = names.iter().filter(|name| kind(name).ends_with('-'));
    plan.extend(of_a_kind.flat_map(|name| new(name).map(|to| Damage::Copied((*name).clone(), to))));
    let earlier = reference.earlier.names().filter(|name| !map.regions.contains_key(name));
    plan.extend(earlier.map(|name| Damage::Earlier(name.clone())));
}

/// The front of a name, which says what kind of file it is.
fn kind(name: &Name) -> &str {
    let text = name.as_str();
    text.find('-').map_or(text, |at| &text[..=at])
}

/// Each page of each table, in both copies: parts of it have each other's bytes.
fn both_copies(map: &Map, plan: &mut Vec<Damage>) {
    for (name, regions) in &map.regions {
        let Some(mirror) = mirror_of(name).filter(|mirror| map.regions.contains_key(mirror)) else { continue };
        for region in regions.iter().filter(|region| region.what == What::Table) {
            let first = region.range.start / SECTOR;
            plan.push(Damage::Exchanged(name.clone(), first, mirror.clone(), first + 1));
        }
    }
}

fn sectors(seed: u64, map: &Map, plan: &mut Vec<Damage>) {
    let mut all = Vec::new();
    for (name, regions) in map.regions.iter().filter(|(name, _)| name.as_str() != "LOCK") {
        let len = regions.last().map_or(0, |last| last.range.end);
        all.extend((0..len.div_ceil(SECTOR)).map(|sector| (name, sector)));
    }
    let mut random = Random::of(seed, &[6]);
    for (name, sector) in &all {
        plan.push(Damage::Zeroed((*name).clone(), *sector));
        plan.push(Damage::Filled((*name).clone(), *sector));
        plan.push(Damage::Stale((*name).clone(), *sector));
        for _ in 0..2 {
            let (other, place) = *random.pick(&all);
            plan.push(Damage::Exchanged((*name).clone(), *sector, other.clone(), place));
        }
    }
}
