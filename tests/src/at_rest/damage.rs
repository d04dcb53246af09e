//! The ways in which a store at rest is damaged, each with a text that repeats it.

use std::{collections::BTreeMap, fmt, ops::Range};

use holdfast::disk::{Name, sim::Image};

use super::reference::Reference;
use crate::random::Random;

/// Bytes of a sector.
pub const SECTOR: u64 = 512;

/// One damage.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Damage {
    /// A bit is inverted.
    Flip(Name, u64),
    /// A file is cut to a length.
    Cut(Name, u64),
    /// A file is lost.
    Lost(Name),
    /// Two files have each other's names.
    Swapped(Name, Name),
    /// A file stands under another name too, perhaps in place of another file.
    Copied(Name, Name),
    /// A sector holds zeros.
    Zeroed(Name, u64),
    /// A sector holds ones.
    Filled(Name, u64),
    /// Two sectors have each other's bytes.
    Exchanged(Name, u64, Name, u64),
    /// A sector holds what it held at an earlier close: a write of it was lost.
    Stale(Name, u64),
    /// A file is what it was at an earlier close, or not there as it was not then.
    Earlier(Name),
    /// Each file is of the earlier close or of now, as a number decides.
    MixedTimes(u64),
    /// A file is that of another store.
    Foreign(Name),
    /// Each file is of this store or of another, as a number decides.
    MixedStores(u64),
}

/// How much a damage may concern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// One place: it must be named, in the file that was hit.
    One,
    /// Two places, which may hide each other: one of them must be named.
    Two,
    /// All copies of the superblock, and with them what is taken for the store's state: something must be named, or the state must be
    /// an earlier one.
    Roots,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flip(name, bit) => write!(f, "flip:{name}:{bit}"),
            Self::Cut(name, len) => write!(f, "cut:{name}:{len}"),
            Self::Lost(name) => write!(f, "lost:{name}"),
            Self::Swapped(one, other) => write!(f, "swapped:{one}:{other}"),
            Self::Copied(from, to) => write!(f, "copied:{from}:{to}"),
            Self::Zeroed(name, sector) => write!(f, "zeroed:{name}:{sector}"),
            Self::Filled(name, sector) => write!(f, "filled:{name}:{sector}"),
            Self::Exchanged(one, sector, other, place) => write!(f, "exchanged:{one}:{sector}:{other}:{place}"),
            Self::Stale(name, sector) => write!(f, "stale:{name}:{sector}"),
            Self::Earlier(name) => write!(f, "earlier:{name}"),
            Self::MixedTimes(number) => write!(f, "times:{number}"),
            Self::Foreign(name) => write!(f, "foreign:{name}"),
            Self::MixedStores(number) => write!(f, "stores:{number}"),
        }
    }
}

impl Damage {
    /// Reads what [`Display`](fmt::Display) writes.
    pub fn parse(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split(':').collect();
        let number = |text: &str| text.parse::<u64>().ok();
        Some(match *parts.as_slice() {
            ["flip", name, bit] => Self::Flip(Name::new(name)?, number(bit)?),
            ["cut", name, len] => Self::Cut(Name::new(name)?, number(len)?),
            ["lost", name] => Self::Lost(Name::new(name)?),
            ["swapped", one, other] => Self::Swapped(Name::new(one)?, Name::new(other)?),
            ["copied", from, to] => Self::Copied(Name::new(from)?, Name::new(to)?),
            ["zeroed", name, sector] => Self::Zeroed(Name::new(name)?, number(sector)?),
            ["filled", name, sector] => Self::Filled(Name::new(name)?, number(sector)?),
            ["exchanged", one, sector, other, place] => {
                Self::Exchanged(Name::new(one)?, number(sector)?, Name::new(other)?, number(place)?)
            }
            ["stale", name, sector] => Self::Stale(Name::new(name)?, number(sector)?),
            ["earlier", name] => Self::Earlier(Name::new(name)?),
            ["times", of] => Self::MixedTimes(number(of)?),
            ["foreign", name] => Self::Foreign(Name::new(name)?),
            ["stores", of] => Self::MixedStores(number(of)?),
            _ => return None,
        })
    }

    /// How much of the store it may concern.
    pub fn reach(&self) -> Reach {
        match self {
            Self::Flip(..) | Self::Cut(..) | Self::Lost(_) | Self::Zeroed(..) | Self::Filled(..) | Self::Stale(..) => {
                Reach::One
            }
            Self::Earlier(name) | Self::Foreign(name) if name.as_str() == "superblock" => Reach::Roots,
            Self::Earlier(_) | Self::Foreign(_) | Self::Swapped(..) | Self::Copied(..) | Self::Exchanged(..) => {
                Reach::Two
            }
            Self::MixedTimes(_) | Self::MixedStores(_) => Reach::Roots,
        }
    }

    /// The damaged store. `None`: the damage changes nothing.
    pub fn apply(&self, reference: &Reference, other: &Image) -> Option<Image> {
        let mut image = reference.image.clone();
        match self {
            Self::Flip(name, bit) => {
                // A bit always changes something.
                return image.flip(name, *bit).then_some(image);
            }
            Self::Cut(name, len) => drop(image.set_len(name, *len)),
            Self::Lost(name) => drop(image.remove(name)),
            Self::Swapped(one, two) => {
                let bytes = (image.read(one)?, image.read(two)?);
                image.insert(one, &bytes.1);
                image.insert(two, &bytes.0);
            }
            Self::Copied(from, to) => drop(image.copy(from, to)),
            Self::Zeroed(name, sector) => fill(&mut image, name, *sector, 0),
            Self::Filled(name, sector) => fill(&mut image, name, *sector, 0xff),
            Self::Exchanged(one, sector, two, place) => {
                let bytes = (read(&image, one, *sector), read(&image, two, *place));
                image.write(one, sector * SECTOR, &bytes.1);
                image.write(two, place * SECTOR, &bytes.0);
            }
            Self::Stale(name, sector) => {
                let bytes = read(&reference.earlier, name, *sector);
                image.write(name, sector * SECTOR, &bytes);
            }
            Self::Earlier(name) => take(&mut image, name, &reference.earlier),
            Self::Foreign(name) => take(&mut image, name, other),
            Self::MixedTimes(number) => mix(&mut image, *number, &reference.earlier),
            Self::MixedStores(number) => mix(&mut image, *number, other),
        }
        (image.digest() != reference.image.digest()).then_some(image)
    }

    /// Bytes that differ from the reference, by file; files that are new are not among them.
    pub fn differences(&self, reference: &Image, damaged: &Image) -> BTreeMap<Name, Vec<Range<u64>>> {
        if let Self::Flip(name, bit) = self {
            return BTreeMap::from([(name.clone(), std::iter::once(bit / 8..bit / 8 + 1).collect())]);
        }
        let mut differences = BTreeMap::new();
        for name in reference.names() {
            let before = reference.read(name).unwrap_or_default();
            let after = damaged.read(name).unwrap_or_default();
            let ranges = difference(&before, &after);
            if !ranges.is_empty() {
                differences.insert(name.clone(), ranges);
            }
        }
        differences
    }
}

fn read(image: &Image, name: &Name, sector: u64) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(SECTOR).expect("small")];
    let len = image.read_at(name, &mut bytes, sector * SECTOR);
    bytes.truncate(len);
    bytes
}

fn fill(image: &mut Image, name: &Name, sector: u64, byte: u8) {
    let mut bytes = read(image, name, sector);
    bytes.fill(byte);
    image.write(name, sector * SECTOR, &bytes);
}

/// Takes a file from another image, or away if that one has none.
fn take(image: &mut Image, name: &Name, from: &Image) {
    match from.read(name) {
        Some(bytes) => image.insert(name, &bytes),
        None => drop(image.remove(name)),
    }
}

fn mix(image: &mut Image, number: u64, from: &Image) {
    let mut names: Vec<Name> = image.names().chain(from.names()).cloned().collect();
    names.sort_unstable();
    names.dedup();
    let mut random = Random::new(number);
    for name in names.iter().filter(|name| name.as_str() != "LOCK") {
        if random.one_in(2) {
            take(image, name, from);
        }
    }
}

/// Ranges of bytes that differ, those that are missing included; bytes behind the end of `before` count at its end.
fn difference(before: &[u8], after: &[u8]) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    let len = before.len().max(after.len());
    for at in 0..len {
        if before.get(at) == after.get(at) {
            continue;
        }
        let at = at as u64;
        match ranges.last_mut() {
            Some(last) if last.end == at => last.end += 1,
            _ => ranges.push(at..at + 1),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damage_is_repeated_by_its_text() {
        let name = |text| Name::new(text).expect("flat");
        for damage in [
            Damage::Flip(name("segment-1"), 77),
            Damage::Cut(name("superblock"), 3),
            Damage::Lost(name("manifest-1.a")),
            Damage::Swapped(name("segment-1"), name("segment-2")),
            Damage::Copied(name("segment-1"), name("segment-9")),
            Damage::Exchanged(name("segment-1"), 5, name("superblock"), 6),
            Damage::MixedStores(8),
        ] {
            assert_eq!(Damage::parse(&damage.to_string()), Some(damage));
        }
    }

    #[test]
    fn differences_are_ranges_of_bytes() {
        assert_eq!(difference(b"abcdef", b"aXcdeX"), [1..2, 5..6]);
        assert_eq!(difference(b"abcdef", b"Xbc"), [0..1, 3..6]);
        assert!(difference(b"abc", b"abc").is_empty());
    }
}
