//! Looks at every crash of a run, and at the crashes of some of the recoveries.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    ops::{ControlFlow, Range},
    sync::atomic::{AtomicU64, Ordering},
};

use holdfast::disk::{
    Name,
    sim::{Budget, CrashPoint, Crashes, Image, Mode, Op, OpLog},
};

use crate::{
    campaign::guarded,
    coverage::{Coverage, Situation},
    harness::Run,
    oracle::{self, Checks, Used},
    random::Random,
};

/// One recovery in so many is crashed again.
pub const NESTED: u64 = 50;
/// Operations of such a recovery after which it crashes.
const NESTED_OPS: usize = 5;
/// Lies about prepared segments in one run at most.
const LIES: usize = 2;
/// Operations before a crash that a replay prints.
const SHOWN: usize = 40;
/// A recovery, a recovery of a crashed recovery, and one of that.
pub const DEPTH_MAX: usize = 3;

/// What a filesystem may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Profile {
    /// No more than POSIX promises.
    Posix,
    /// A length is never durable before its bytes.
    Ext4Ordered,
}

/// A crash, or a crash of a recovery: `SEED:op:mode:variant`, and `:op:mode:variant` for each level further down. `SEED~op` is a run on
/// a disk that answered the sync of that index and did nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Path {
    /// Seed of the workload.
    pub seed: u64,
    /// The sync that was a lie.
    pub lie: Option<usize>,
    /// The crash of each level.
    pub points: Vec<CrashPoint>,
}

impl Path {
    /// Reads what [`Display`](fmt::Display) wrote.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let (seed, lie) = match parts.next()?.split_once('~') {
            Some((seed, lie)) => (seed.parse().ok()?, Some(lie.parse().ok()?)),
            None => (text.split(':').next()?.parse().ok()?, None),
        };
        let rest: Vec<&str> = parts.collect();
        let point = |part: &[&str]| CrashPoint::parse(&format!("{}@{}/{}", part.get(1)?, part.first()?, part.get(2)?));
        Some(Self { seed, lie, points: rest.chunks(3).map(point).collect::<Option<_>>()? })
    }

    /// This crash, and then that one of its recovery.
    fn with(&self, point: &CrashPoint) -> Self {
        Self { points: self.points.iter().chain([point]).copied().collect(), ..*self }
    }

    /// Everything that is decided at random about it.
    fn random(&self, purpose: u64) -> u64 {
        let lie = self.lie.map(|lie| lie as u64);
        let parts = self.points.iter().flat_map(|p| [p.op_index as u64, p.mode as u64, p.variant]);
        Random::of(self.seed, &parts.chain(lie).chain([purpose]).collect::<Vec<_>>()).next_u64()
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.seed)?;
        if let Some(lie) = self.lie {
            write!(f, "~{lie}")?;
        }
        for point in &self.points {
            write!(f, ":{}:{}:{}", point.op_index, point.mode.as_str(), point.variant)?;
        }
        Ok(())
    }
}

/// Something that did not hold.
#[derive(Clone, Debug)]
pub struct Violation {
    /// Where.
    pub path: Path,
    /// What.
    pub what: String,
}

/// Distinct images that were looked at, by depth.
#[derive(Debug, Default)]
pub struct Counts([AtomicU64; DEPTH_MAX]);

impl Counts {
    /// Of one depth, 1 to 3.
    pub fn of(&self, depth: usize) -> u64 {
        self.0[depth - 1].load(Ordering::Relaxed)
    }

    /// Of all depths.
    pub fn sum(&self) -> u64 {
        (1..=DEPTH_MAX).map(|depth| self.of(depth)).sum()
    }
}

/// An exploration.
pub struct Explorer<'a> {
    /// What a filesystem may do.
    pub profile: Profile,
    /// Counts images.
    pub counts: &'a Counts,
    /// Counts situations.
    pub coverage: &'a Coverage,
    /// Images of one mode after one operation at most; by the seed if not given.
    pub per_mode: Option<u64>,
    /// Ends the exploration before the next image.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

impl Explorer<'_> {
    /// Carries out the workload of a seed and looks at its crashes. `Ok(false)`: it was stopped.
    pub fn explore(&self, seed: u64) -> Result<bool, Box<Violation>> {
        let path = Path { seed, lie: None, points: Vec::new() };
        let run = guarded(|| Run::of(seed)).map_err(|what| Box::new(Violation { path: path.clone(), what }))?;
        Ok(self.crashes(&run, &path, &Used::new())? && self.lies(&run, &path)?)
    }

    /// A lie about the zeros of a prepared segment must harm nobody, as long as the process that was lied to does not use it: the next
    /// one writes them again.
    fn lies(&self, run: &Run, path: &Path) -> Result<bool, Box<Violation>> {
        for (lie, until) in lies(&run.log).into_iter().take(LIES) {
            let Some(log) = run.log.with_lie(lie) else { continue };
            let path = Path { lie: Some(lie), ..path.clone() };
            let crashes = Crashes::new(&log, path.random(1), Self::lying());
            let ids = Ids::of(&log, &Used::new());
            let mut outcome = Ok(true);
            let last = until.saturating_sub(1);
            let _ = crashes.for_each_image(last..until, &mut |image, point| {
                if (self.stop)() {
                    outcome = Ok(false);
                    return ControlFlow::Break(());
                }
                self.counts.0[0].fetch_add(1, Ordering::Relaxed);
                outcome = self.lied(run, &ids, image, &path.with(point)).map(|()| true);
                if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            if !outcome? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn lied(&self, run: &Run, ids: &Ids, image: &Image, path: &Path) -> Result<(), Box<Violation>> {
        let op_index = path.points[0].op_index;
        let checks = Checks { after: oracle::After::Fill, ..Checks::ALL };
        self.coverage.met(Situation::Lied, true);
        let (promise, used) = (run.timeline.at(op_index), ids.used(op_index));
        guarded(|| oracle::recover(image, promise, &used, path.random(4), checks, self.coverage))
            .map(drop)
            .map_err(|what| Box::new(Violation { path: path.clone(), what }))
    }

    fn lying() -> Budget {
        Budget { modes: vec![Mode::DropAll, Mode::KeepAll, Mode::SizeFirst], per_mode: 6, byte_cut_max: 256 }
    }

    fn crashes(&self, run: &Run, path: &Path, used_before: &Used) -> Result<bool, Box<Violation>> {
        let depth = path.points.len() + 1;
        let crashes = Crashes::new(&run.log, path.random(1), self.budget(path));
        let ids = Ids::of(&run.log, used_before);
        let mut seen = BTreeSet::new();
        let mut broke = None;
        let mut visit = |image: &Image, point: &CrashPoint| {
            if !seen.insert((image.digest(), ids.marks(point.op_index))) {
                return ControlFlow::Continue(());
            }
            if (self.stop)() {
                broke = Some(None);
                return ControlFlow::Break(());
            }
            self.counts.0[depth - 1].fetch_add(1, Ordering::Relaxed);
            let path = path.with(point);
            let found = self.crash(run, &ids, image, &path, Checks::sample(path.random(2)));
            match found {
                Ok(true) => ControlFlow::Continue(()),
                Ok(false) => {
                    broke = Some(None);
                    ControlFlow::Break(())
                }
                Err(violation) => {
                    broke = Some(Some(violation));
                    ControlFlow::Break(())
                }
            }
        };
        for range in ranges(run, path) {
            if crashes.for_each_image(range, &mut visit).is_break() {
                break;
            }
        }
        match broke {
            None => Ok(true),
            Some(None) => Ok(false),
            Some(Some(violation)) => Err(violation),
        }
    }

    /// One crash, and perhaps those of its recovery.
    fn crash(&self, run: &Run, ids: &Ids, image: &Image, path: &Path, checks: Checks) -> Result<bool, Box<Violation>> {
        let depth = path.points.len();
        let op_index = path.points.last().expect("a crash has a point").op_index;
        let nested = depth < DEPTH_MAX && path.random(3).is_multiple_of(NESTED);
        let checks = if nested { Checks { after: oracle::After::Use, ..checks } } else { checks };
        let used = ids.used(op_index);
        let recovered =
            guarded(|| oracle::recover(image, run.timeline.at(op_index), &used, path.random(4), checks, self.coverage))
                .map_err(|what| Box::new(Violation { path: path.clone(), what }))?;
        if !nested {
            return Ok(true);
        }
        self.coverage.met(if depth == 1 { Situation::Nested } else { Situation::NestedTwice }, true);
        self.crashes(&recovered, path, &used)
    }

    /// Looks at one crash with every check.
    pub fn replay(&self, path: &Path) -> Result<(), Box<Violation>> {
        let wrong = |at: &Path, what: String| Box::new(Violation { path: at.clone(), what });
        let mut at = Path { points: Vec::new(), ..path.clone() };
        let mut run = guarded(|| Run::of(path.seed)).map_err(|what| wrong(&at, what))?;
        if let (Some(lie), Some(point)) = (path.lie, path.points.first()) {
            let log = run.log.with_lie(lie).ok_or_else(|| wrong(&at, format!("operation {lie} is no sync")))?;
            let image = Crashes::new(&log, at.random(1), Self::lying()).image(point);
            let image = image.ok_or_else(|| wrong(&at, format!("the run has no crash {point}")))?;
            show_ops(&log, point.op_index);
            return self.lied(&run, &Ids::of(&log, &Used::new()), &image, path);
        }
        let mut used = Used::new();
        for (level, point) in path.points.iter().enumerate() {
            let crashes = Crashes::new(&run.log, at.random(1), self.budget(&at));
            let ids = Ids::of(&run.log, &used);
            let image = crashes.image(point).ok_or_else(|| wrong(&at, format!("the run has no crash {point}")))?;
            at = at.with(point);
            show_ops(&run.log, point.op_index);
            used = ids.used(point.op_index);
            let promise = run.timeline.at(point.op_index);
            // Crashes of a recovery need the same recovery, and that depends on what was checked.
            let sampled = Checks { after: oracle::After::Use, ..Checks::sample(at.random(2)) };
            let is_last = level + 1 == path.points.len();
            let all = if is_last { vec![Checks::sample(at.random(2)), Checks::ALL] } else { vec![sampled] };
            let all = if is_last {
                [all, vec![Checks { after: oracle::After::Repeat, ..Checks::ALL }]].concat()
            } else {
                all
            };
            let mut recovered = None;
            for checks in all {
                let found = guarded(|| oracle::recover(&image, promise, &used, at.random(4), checks, self.coverage));
                recovered = Some(found.map_err(|what| wrong(&at, what))?);
            }
            run = recovered.expect("at least one check");
        }
        Ok(())
    }

    fn budget(&self, path: &Path) -> Budget {
        let modes = Mode::ALL.iter().copied();
        let modes = modes.filter(|mode| self.profile == Profile::Posix || *mode != Mode::SizeFirst).collect();
        let by_seed = match (path.points.len(), path.seed % 64) {
            // Now and then everything.
            (0, 62) => u64::MAX,
            (0, _) => 12,
            _ => 2,
        };
        // Now and then every byte of every write.
        let byte_cut_max = if matches!(path.seed % 8, 2 | 3) { 1 << 16 } else { 256 };
        Budget { modes, per_mode: self.per_mode.unwrap_or(by_seed), byte_cut_max }
    }
}

/// Syncs of the zeros of a segment that the log enters later or never, each with the operation before which it does.
fn lies(log: &OpLog) -> Vec<(usize, usize)> {
    let mut zeroed = BTreeMap::new();
    let mut found: BTreeMap<u64, (usize, usize)> = BTreeMap::new();
    for (index, op) in log.ops().iter().enumerate() {
        match op {
            Op::Create { ino, name } if name.as_str().starts_with("segment-") => drop(zeroed.insert(*ino, false)),
            Op::Zero { ino, offset: 0, .. } => drop(zeroed.get_mut(ino).map(|zeroed| *zeroed = true)),
            Op::Sync { ino, .. } if zeroed.get(ino) == Some(&true) => {
                found.insert(*ino, (index, log.ops().len()));
                zeroed.remove(ino);
            }
            // Only the superblock that follows makes it a prepared segment.
            Op::Write { ino, .. } | Op::Zero { ino, .. } => {
                if let Some((_, until)) = found.get_mut(ino).filter(|(_, until)| *until == log.ops().len()) {
                    *until = index;
                }
            }
            _ => {}
        }
    }
    found.into_values().collect()
}

/// Prints the operations before a crash, for whoever looks for its cause.
fn show_ops(log: &OpLog, op_index: usize) {
    let names: BTreeMap<u64, String> = log
        .ops()
        .iter()
        .filter_map(|op| match op {
            Op::Create { ino, name } | Op::Lock { ino, name } => Some((*ino, name.to_string())),
            _ => None,
        })
        .collect();
    let file = |ino: &u64| names.get(ino).cloned().unwrap_or_else(|| format!("file {ino} of the image"));
    println!("the image: {:?}", log.base());
    for (index, op) in log.ops().iter().enumerate().take(op_index + 1).skip(op_index.saturating_sub(SHOWN)) {
        let text = match op {
            Op::Write { ino, offset, bytes } => format!("write {} {offset}+{}", file(ino), bytes.len()),
            Op::Zero { ino, offset, len } => format!("zero {} {offset}+{len}", file(ino)),
            Op::SetLen { ino, len } => format!("set_len {} {len}", file(ino)),
            Op::Sync { ino, .. } => format!("sync {}", file(ino)),
            other => format!("{other:?}"),
        };
        println!("{index:>6} {text}");
    }
}

/// Which operations of a run are looked at: all of a workload's, a few of a recovery's, since there are many recoveries.
fn ranges(run: &Run, path: &Path) -> Vec<Range<usize>> {
    if path.points.is_empty() {
        return vec![run.log.indexes()];
    }
    let mut random = Random::new(path.random(5));
    let ops: BTreeSet<usize> = (0..NESTED_OPS).map(|_| random.index(run.log.ops().len())).collect();
    ops.into_iter().map(|op| op..op + 1).collect()
}

/// Ids of files that a run used, and how often it promised something.
struct Ids {
    before: Used,
    /// From which operation on a name is used.
    made: Vec<(usize, Name)>,
    /// Operations that are marks.
    marks: Vec<usize>,
}

impl Ids {
    fn of(log: &OpLog, before: &Used) -> Self {
        let is_numbered = |name: &Name| {
            ["segment-", "reserve-", "table-", "manifest-"].iter().any(|front| name.as_str().starts_with(front))
        };
        let named = log.base().names().filter(|name| is_numbered(name)).map(ToString::to_string);
        let before = before.iter().cloned().chain(named).collect();
        let mut ids = Self { before, made: Vec::new(), marks: Vec::new() };
        for (index, op) in log.ops().iter().enumerate() {
            match op {
                Op::Create { name, .. } if is_numbered(name) => ids.made.push((index, name.clone())),
                Op::Ack(_) => ids.marks.push(index),
                _ => {}
            }
        }
        ids
    }

    fn marks(&self, op_index: usize) -> usize {
        self.marks.partition_point(|index| *index <= op_index)
    }

    fn used(&self, op_index: usize) -> Used {
        let made = self.made.iter().filter(|(index, _)| *index <= op_index).map(|(_, name)| name.to_string());
        self.before.iter().cloned().chain(made).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_one_text() {
        for text in ["17", "17:133:M4:5", "17:133:M4:5:12:M3:2", "17~20:133:M5:5"] {
            assert_eq!(Path::parse(text).map(|path| path.to_string()).as_deref(), Some(text));
        }
        for text in ["", "x", "17~", "17:1", "17:1:M9:1", "17:1:M4:1:2"] {
            assert_eq!(Path::parse(text), None, "{text}");
        }
    }
}
