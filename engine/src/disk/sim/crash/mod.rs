//! Every state that a crash could leave, built from the log of one run.
//!
//! After each operation the medium is what is durable plus any part of what is pending, within what POSIX promises and no more.
//! A [`Mode`] is one way to choose that part; a variant is one choice. The module knows nothing of what the files mean.

use std::{
    fmt,
    ops::{ControlFlow, Range},
};

use super::{Image, Op, OpLog, random::Random};

mod medium;
mod modes;
mod subsets;

#[cfg(test)]
mod tests;

use medium::Medium;

/// Unit in which a medium writes: some of a write's sectors can be on it and others not.
pub const SECTOR: u64 = 512;

macro_rules! modes {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// A way to choose which pending effects a crash keeps.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Mode { $($(#[$doc])* $name,)* }

        impl Mode {
            /// All of them: what a filesystem that promises no more than POSIX can do.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The short name, `M0` to `M7`.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

modes! {
    /// None of it.
    DropAll = "M0",
    /// All of it.
    KeepAll = "M1",
    /// The first of it, in order.
    Prefix = "M2",
    /// All up to the last write, and that one torn: what lies behind the cut keeps its old bytes.
    Cut = "M3",
    /// Any sectors of the writes, in any order; everything else.
    Sectors = "M4",
    /// A file's new length before its new bytes: zeros, 0xFF, or what freed blocks held stand in their place.
    SizeFirst = "M5",
    /// Any of the names, with all or none of the bytes.
    Names = "M6",
    /// Blocks given back before everything else, or after it.
    Punches = "M7",
}

/// One crash: after which operation, and what it kept. Its text is, for instance, `M4@17/33`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct CrashPoint {
    /// Index of the last operation that was issued.
    pub op_index: usize,
    /// How the kept effects were chosen.
    pub mode: Mode,
    /// Which of the mode's choices.
    pub variant: u64,
}

impl CrashPoint {
    /// Reads what [`Display`](fmt::Display) wrote.
    pub fn parse(text: &str) -> Option<Self> {
        let (mode, rest) = text.split_once('@')?;
        let (op_index, variant) = rest.split_once('/')?;
        let mode = *Mode::ALL.iter().find(|known| known.as_str() == mode)?;
        Some(Self { op_index: op_index.parse().ok()?, mode, variant: variant.parse().ok()? })
    }

    /// True if the image may show bytes of blocks that were freed before. Whoever looks for erased bytes on the medium must
    /// expect to find them in such an image: keeping them out of new files is the filesystem's promise and not the store's.
    pub fn has_stale_bytes(&self) -> bool {
        self.mode == Mode::SizeFirst && modes::is_stale(self.variant)
    }
}

impl fmt::Display for CrashPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}/{}", self.mode.as_str(), self.op_index, self.variant)
    }
}

/// How many images to build.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Budget {
    /// In which modes. A filesystem that never shows a length before its bytes needs no [`Mode::SizeFirst`].
    pub modes: Vec<Mode>,
    /// At most so many of one mode after one operation, spread over its choices by the seed.
    pub per_mode: u64,
    /// Writes up to this length are cut at every byte, longer ones beside the edges of sectors.
    pub byte_cut_max: u64,
}

impl Default for Budget {
    /// Every image that there is.
    fn default() -> Self {
        Self { modes: Mode::ALL.to_vec(), per_mode: u64::MAX, byte_cut_max: 256 }
    }
}

/// The crashes of one run.
pub struct Crashes<'a> {
    log: &'a OpLog,
    seed: u64,
    budget: Budget,
}

impl<'a> Crashes<'a> {
    /// Equal arguments give equal images in equal order.
    pub fn new(log: &'a OpLog, seed: u64, budget: Budget) -> Self {
        Self { log, seed, budget }
    }

    /// Shows each image of a crash after one of the operations in `range`, until told to stop.
    ///
    /// Images repeat: many choices lead to the same bytes. Whoever skips what it saw before, by [`Image::digest`], must see again
    /// what it saw before the last [`Op::Ack`], since more is promised now.
    pub fn for_each_image(
        &self,
        range: Range<usize>,
        visit: &mut dyn FnMut(&Image, &CrashPoint) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut medium = Medium::new(self.log.base().clone());
        for (op_index, op) in self.log.ops().iter().enumerate().take(range.end) {
            medium.step(op);
            // A lock leaves nothing that could be lost.
            if op_index < range.start || matches!(op, Op::Lock { .. }) {
                continue;
            }
            for mode in &self.budget.modes {
                let choices = modes::choices(*mode, &medium, self.seed_of(op_index), self.budget.byte_cut_max);
                for variant in self.sample(op_index, *mode, choices.count()) {
                    visit(&choices.build(variant), &CrashPoint { op_index, mode: *mode, variant })?;
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Builds one image again. `None` if the log has no such crash.
    pub fn image(&self, point: &CrashPoint) -> Option<Image> {
        let mut medium = Medium::new(self.log.base().clone());
        self.log.ops().get(..=point.op_index)?.iter().for_each(|op| medium.step(op));
        let choices = modes::choices(point.mode, &medium, self.seed_of(point.op_index), self.budget.byte_cut_max);
        (point.variant < choices.count()).then(|| choices.build(point.variant))
    }

    fn seed_of(&self, op_index: usize) -> u64 {
        Random::of(self.seed, &[op_index as u64]).next()
    }

    /// Which of `count` variants to build: all, or one at random out of each of `per_mode` equal stretches.
    fn sample(&self, op_index: usize, mode: Mode, count: u64) -> impl Iterator<Item = u64> {
        let taken = count.min(self.budget.per_mode);
        let mut random = Random::of(self.seed, &[op_index as u64, mode as u64]);
        let edge = move |index: u64| {
            let edge = u128::from(index) * u128::from(count) / u128::from(taken.max(1));
            u64::try_from(edge).expect("no more than the count")
        };
        (0..taken).map(move |index| edge(index) + random.below((edge(index + 1) - edge(index)).max(1)))
    }
}
