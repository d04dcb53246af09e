//! What each mode keeps of the pending operations.

use super::{Mode, SECTOR, medium::Medium, subsets::Subsets};
use crate::disk::sim::{Image, Op};

/// Writes of up to so many sectors are tried in every combination.
const SECTORS_EXHAUSTIVE: u64 = 10;
/// Up to so many names, too.
const NAMES_EXHAUSTIVE: u64 = 8;

/// The choices of one mode after one operation.
pub(super) trait Choices {
    /// How many there are.
    fn count(&self) -> u64;
    /// Builds the image of one, a number below the count.
    fn build(&self, variant: u64) -> Image;
}

/// The choices of a mode.
pub(super) fn choices<'m>(mode: Mode, medium: &'m Medium<'m>, seed: u64, byte_cut_max: u64) -> Box<dyn Choices + 'm> {
    match mode {
        Mode::DropAll => Box::new(All { medium, kept: false }),
        Mode::KeepAll => Box::new(All { medium, kept: true }),
        Mode::Prefix => Box::new(Prefix(medium)),
        Mode::Cut => Box::new(Cut::new(medium, byte_cut_max)),
        Mode::Sectors => Box::new(Sectors::new(medium, seed)),
        Mode::SizeFirst => Box::new(SizeFirst::new(medium)),
        Mode::Names => Box::new(Names::new(medium, seed)),
        Mode::Punches => Box::new(Punches::new(medium)),
    }
}

fn index(number: u64) -> usize {
    usize::try_from(number).expect("an index")
}

/// M0 and M1. Where nothing is pending they are the same, and M0 shows it.
struct All<'m> {
    medium: &'m Medium<'m>,
    kept: bool,
}

impl Choices for All<'_> {
    fn count(&self) -> u64 {
        u64::from(!self.kept || !self.medium.pending.is_empty())
    }

    fn build(&self, _variant: u64) -> Image {
        self.medium.with(|_, _| self.kept)
    }
}

/// M2: variant n keeps the first n + 1. Nothing and everything are M0 and M1.
struct Prefix<'m>(&'m Medium<'m>);

impl Choices for Prefix<'_> {
    fn count(&self) -> u64 {
        (self.0.pending.len() as u64).saturating_sub(1)
    }

    fn build(&self, variant: u64) -> Image {
        self.0.with(|place, _| place as u64 <= variant)
    }
}

/// M3: the last write that is pending, torn.
struct Cut<'m> {
    /// Everything before the write.
    base: Image,
    torn: Option<Torn<'m>>,
}

struct Torn<'m> {
    op: &'m Op,
    start: u64,
    end: u64,
    cuts: Cuts,
}

enum Cuts {
    /// After each byte but the last.
    Bytes,
    /// Beside and at each edge of a sector within.
    Edges,
    /// Once, since the cut shows only in the file's length.
    Middle,
}

impl<'m> Cut<'m> {
    fn new(medium: &'m Medium<'m>, byte_cut_max: u64) -> Self {
        let last = medium.pending.iter().rposition(|op| op.written().is_some());
        let torn = last.and_then(|place| {
            let op = medium.pending[place];
            let (_, start, end) = op.written()?;
            let cuts = match end - start {
                _ if !medium.shows(place) => Cuts::Middle,
                len if len <= byte_cut_max => Cuts::Bytes,
                _ => Cuts::Edges,
            };
            Some(Torn { op, start, end, cuts })
        });
        Self { base: medium.with(|place, _| Some(place) < last), torn }
    }
}

impl Torn<'_> {
    fn count(&self) -> u64 {
        match self.cuts {
            Cuts::Bytes => (self.end - self.start).saturating_sub(1),
            Cuts::Edges => 3 * ((self.end - 1) / SECTOR - self.start / SECTOR),
            Cuts::Middle => u64::from(self.end - self.start > 1),
        }
    }

    /// First byte that is not there.
    fn at(&self, variant: u64) -> u64 {
        match self.cuts {
            Cuts::Bytes => self.start + 1 + variant,
            Cuts::Edges => {
                let edge = (self.start / SECTOR + 1 + variant / 3) * SECTOR;
                (edge + variant % 3 - 1).clamp(self.start + 1, self.end - 1)
            }
            Cuts::Middle => self.start.midpoint(self.end),
        }
    }
}

impl Choices for Cut<'_> {
    fn count(&self) -> u64 {
        self.torn.as_ref().map_or(0, Torn::count)
    }

    fn build(&self, variant: u64) -> Image {
        let torn = self.torn.as_ref().expect("only a torn write has variants");
        let mut image = self.base.clone();
        image.apply_part(torn.op, torn.start, torn.at(variant));
        image
    }
}

/// M4: subsets of the sectors of all writes.
struct Sectors<'m> {
    medium: &'m Medium<'m>,
    /// For each pending operation the number of its first piece.
    first_piece: Vec<u64>,
    subsets: Subsets,
}

impl<'m> Sectors<'m> {
    fn new(medium: &'m Medium<'m>, seed: u64) -> Self {
        let mut pieces = 0;
        let mut first_piece = Vec::with_capacity(medium.pending.len());
        for (place, op) in medium.pending.iter().enumerate() {
            first_piece.push(pieces);
            pieces += match op.written() {
                Some((_, start, end)) if medium.shows(place) => (end - 1) / SECTOR - start / SECTOR + 1,
                Some(_) => 1,
                None => 0,
            };
        }
        Self { medium, first_piece, subsets: Subsets::new(pieces, SECTORS_EXHAUSTIVE, seed) }
    }
}

impl Choices for Sectors<'_> {
    fn count(&self) -> u64 {
        self.subsets.count()
    }

    fn build(&self, variant: u64) -> Image {
        let mut image = self.medium.durable.clone();
        for (place, op) in self.medium.pending.iter().enumerate() {
            let Some((_, start, end)) = op.written() else {
                image.apply(op);
                continue;
            };
            let first = self.first_piece[place];
            if !self.medium.shows(place) {
                if self.subsets.has(variant, first) {
                    image.apply(op);
                }
                continue;
            }
            // Neighbours that are kept are written at one go.
            let mut run = None;
            for (piece, sector) in (first..).zip(start / SECTOR..=(end - 1) / SECTOR) {
                if self.subsets.has(variant, piece) {
                    run = Some(run.unwrap_or(sector));
                } else if let Some(from) = run.take() {
                    image.apply_part(op, from * SECTOR, sector * SECTOR);
                }
            }
            if let Some(from) = run {
                image.apply_part(op, from * SECTOR, end);
            }
        }
        image
    }
}

/// M5: one file has its new length, and other bytes than were written stand in a part of what is new.
struct SizeFirst<'m> {
    medium: &'m Medium<'m>,
    /// File, and how many of the writes that extend it have landed.
    places: Vec<(u64, usize)>,
}

/// Zeros, 0xFF, stale bytes.
const FILLS: u64 = 3;

/// True if this variant of M5 shows stale bytes.
pub(super) fn is_stale(variant: u64) -> bool {
    variant % FILLS == FILLS - 1
}

impl<'m> SizeFirst<'m> {
    fn new(medium: &'m Medium<'m>) -> Self {
        let mut places = Vec::new();
        let mut lens = std::collections::BTreeMap::new();
        for op in &medium.pending {
            let Some(ino) = op.data_ino() else { continue };
            let (len, landed) = lens.entry(ino).or_insert_with(|| (medium.durable.file_len(ino), 0));
            match (op, op.written()) {
                (Op::SetLen { len: new, .. }, _) => *len = *new,
                (_, Some((_, _, end))) if end > *len => {
                    places.push((ino, *landed));
                    *landed += 1;
                    *len = end;
                }
                _ => {}
            }
        }
        Self { medium, places }
    }
}

impl Choices for SizeFirst<'_> {
    fn count(&self) -> u64 {
        self.places.len() as u64 * FILLS * 2
    }

    fn build(&self, variant: u64) -> Image {
        let (file, landed) = self.places[index(variant / FILLS / 2)];
        let others = variant / FILLS % 2 == 1;
        let mut image = self.medium.durable.clone();
        let mut extensions = 0;
        for op in &self.medium.pending {
            let len = image.file_len(file);
            match op.written() {
                Some((ino, start, end)) if ino == file && end > len => {
                    extensions += 1;
                    if extensions <= landed {
                        image.apply(op);
                        continue;
                    }
                    if others {
                        image.apply_part(op, start, len);
                    }
                    let from = start.max(len);
                    let content = image.file_mut(file);
                    match variant % FILLS {
                        0 => content.zero(from, end - from),
                        1 => content.scribble(from, end - from, |_| None),
                        _ => content.scribble(from, end - from, |page| self.medium.stale(page)),
                    }
                }
                // The file must have its name to be seen.
                _ if others || op.name_ino().is_some() => image.apply(op),
                _ => {}
            }
        }
        image
    }
}

/// M6: subsets of the names, with none or all of the bytes.
struct Names {
    bytes: [Image; 2],
    entries: Vec<Op>,
    subsets: Subsets,
}

impl Names {
    fn new(medium: &Medium<'_>, seed: u64) -> Self {
        let entries: Vec<Op> =
            medium.pending.iter().filter(|op| op.name_ino().is_some()).map(|op| (*op).clone()).collect();
        let subsets = Subsets::new(entries.len() as u64, NAMES_EXHAUSTIVE, seed);
        let bytes = [medium.durable.clone(), medium.with(|_, op| op.data_ino().is_some())];
        Self { bytes, entries, subsets }
    }
}

impl Choices for Names {
    fn count(&self) -> u64 {
        self.subsets.count() * 2
    }

    fn build(&self, variant: u64) -> Image {
        let mut image = self.bytes[index(variant % 2)].clone();
        for (piece, op) in (0..).zip(&self.entries) {
            if self.subsets.has(variant / 2, piece) {
                image.apply(op);
            }
        }
        image
    }
}

/// M7: what gives blocks back, alone or missing. Variants: all early, all late, then each by itself early and late.
struct Punches<'m> {
    medium: &'m Medium<'m>,
    places: Vec<usize>,
}

impl<'m> Punches<'m> {
    fn new(medium: &'m Medium<'m>) -> Self {
        let mut image = medium.durable.clone();
        let mut places = Vec::new();
        for (place, op) in medium.pending.iter().enumerate() {
            match op {
                Op::Punch { .. } => places.push(place),
                Op::SetLen { ino, len: new } if *new < image.file_len(*ino) => places.push(place),
                _ => {}
            }
            image.apply(op);
        }
        Self { medium, places }
    }
}

impl Choices for Punches<'_> {
    fn count(&self) -> u64 {
        match self.places.len() as u64 {
            0 => 0,
            1 => 2,
            n => 2 + 2 * n,
        }
    }

    fn build(&self, variant: u64) -> Image {
        let early = variant.is_multiple_of(2);
        let chosen = match variant / 2 {
            0 => &self.places[..],
            n => &self.places[index(n - 1)..index(n)],
        };
        self.medium.with(|place, _| chosen.contains(&place) == early)
    }
}
