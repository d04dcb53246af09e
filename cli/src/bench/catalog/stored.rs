//! A real store of so many chunks, each a blob of its own: what checkpoints and merges wrote for it, and how long it takes to open when its
//! process was killed.

use std::{
    io::{BufRead as _, BufReader},
    process::Stdio,
    sync::Arc,
};

use holdfast::{Error, OpenMode, OpenOptions, Store, World, clock::OsClock, disk::Disk as _, entropy::OsEntropy};
use holdfast_benches::{
    Stopwatch,
    counted::{Counted, Counts},
};

use super::{Child, Plan, again, fill, told};
use crate::{
    bench::{Row, mib, place::Place, print},
    exit_code::Outcome,
    progress::Progress,
    session::Session,
};

/// Every row but those of look-ups, in the order in which they are printed.
pub(super) const ROWS: [&str; 6] =
    ["put", "log_written", "tables_written", "tables_rewritten", "open_killed", "open_killed_read"];

/// Bytes of disk a chunk: log, tables with mirrors, and what a merge takes for a while.
pub(super) const ROOM: u64 = 3_000;
/// Chunks of the store that the opens of the other are compared with.
const FEW: u64 = 10_000;
const AGAINST_FEW: &str = "the same with 10,000 chunks";

/// A store in a directory, reached through a disk that counts.
struct Counting {
    store: Store,
    world: World,
    counts: Arc<Counts>,
}

impl Counting {
    fn open(place: &Place, name: &str) -> Result<(Self, f64), Error> {
        let disk = Counted::new(place.open_directory(name)?);
        let counts = disk.counts();
        let world = World { disk: Arc::new(disk), clock: Arc::new(OsClock), entropy: Arc::new(OsEntropy) };
        let watch = Stopwatch::start();
        let store = Store::open(world.clone(), &OpenOptions::new(OpenMode::Write, "holdfast bench"))?;
        let seconds = watch.seconds();
        Ok((Self { store, world, counts }, seconds))
    }
}

/// Fills the stores, kills and opens them, and has one looked up in.
pub(super) fn run(plan: &Plan, place: &Place, session: &Session) -> Outcome {
    print(&fill_one("store", plan.chunks, place)?, &plan.rows, session)?;
    if plan.wants(&["open_killed", "open_killed_read"]) {
        fill_one("few", FEW.min(plan.chunks), place)?;
        print(&opens(plan, place)?, &plan.rows, session)?;
        // What the last tail left in the log becomes tables: the memtable of whoever looks up is empty.
        let (counting, _) = Counting::open(place, "store")?;
        counting.store.checkpoint()?;
        counting.store.close()?;
    }
    place.settle()?;
    plan.look_elsewhere(&place.path("store"), place)
}

/// Makes a store of so many chunks, leaves it clean, and tells what was written for it.
fn fill_one(name: &'static str, chunks: u64, place: &Place) -> Outcome<[Row; 4]> {
    place.make_store(name)?.close()?;
    let (Counting { store, counts, .. }, _) = Counting::open(place, name)?;
    let rate = fill::fill(&store, 0, chunks, fill::BLOB, &mut Progress::steps("bench catalog, blob", chunks))?;
    store.checkpoint()?;
    store.close()?;
    let (log, tables) = (mib(counts.others.written()), mib(counts.tables.written()));
    let (put, kept) = (mib(chunks * fill::BLOB), mib(table_bytes(name, place)?));
    Ok([
        Row::alone("put", rate, "1/s"),
        Row::against("log_written", log, "MiB", put, "bytes put, of 64 a blob"),
        Row::against("tables_written", tables, "MiB", log, "log_written"),
        Row::against("tables_rewritten", tables, "MiB", kept, "tables at the end, with mirrors"),
    ])
}

/// Bytes of all tables and mirrors.
fn table_bytes(name: &str, place: &Place) -> Result<u64, Error> {
    let failed = place.failed("look at the tables");
    let disk = place.open_directory(name)?;
    let names = disk.list().map_err(&failed)?.names;
    let tables = names.iter().filter(|name| name.as_str().starts_with("table-"));
    let len = |name| disk.open(name, holdfast::disk::OpenOptions::READ).and_then(|file| file.len());
    tables.map(|name| len(name).map_err(&failed)).sum()
}

/// Opens both stores, alternately, each time behind a process that was killed with as much log as a checkpoint lets come.
fn opens(plan: &Plan, place: &Place) -> Outcome<[Row; 2]> {
    let (counting, _) = Counting::open(place, "few")?;
    let tail = fill::tail_len(counting.store, &counting.world, &counting.counts)?.min(plan.chunks);
    let (mut many, mut few) = (Opens::default(), Opens::default());
    let mut progress = Progress::steps("bench catalog, kills, round", u64::from(plan.rounds));
    for round in 0..plan.rounds {
        progress.set(u64::from(round));
        for (name, opens) in [("store", &mut many), ("few", &mut few)] {
            kill_with_tail(name, tail, place)?;
            let (counting, seconds) = Counting::open(place, name)?;
            let read = counting.counts.tables.read() + counting.counts.others.read();
            opens.0.push((seconds * 1e3, mib(read)));
            // Dropped, it is as if killed again: the next process does what this one would have.
        }
    }
    let ((many, many_read), (few, few_read)) = (many.median(), few.median());
    Ok([
        Row::against("open_killed", many, "ms", few, AGAINST_FEW),
        Row::against("open_killed_read", many_read, "MiB", few_read, AGAINST_FEW),
    ])
}

/// A process that puts what its log can hold behind a checkpoint, and is killed.
fn kill_with_tail(name: &str, tail: u64, place: &Place) -> Outcome {
    let failed = place.failed("run itself again");
    let mut command = again(&place.path(name), Child::Tail, place)?;
    let mut child = command.args(["--chunks", &tail.to_string()]).stdout(Stdio::piped()).spawn().map_err(&failed)?;
    let mut line = String::new();
    let said = child.stdout.take().map_or(Ok(0), |out| BufReader::new(out).read_line(&mut line));
    if said.map_err(&failed)? == 0 {
        return Err(told(child.wait().map_err(&failed)?.code()));
    }
    child.kill().map_err(&failed)?;
    child.wait().map_err(&failed)?;
    Ok(())
}

/// Time of each open in milliseconds, and the MiB that it read.
#[derive(Default)]
struct Opens(Vec<(f64, f64)>);

impl Opens {
    /// The one in the middle by time; of an even number the slower of two.
    fn median(&mut self) -> (f64, f64) {
        self.0.sort_by(|one, other| one.0.total_cmp(&other.0));
        self.0.get(self.0.len() / 2).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_an_open_that_was_measured() {
        let mut opens = Opens(vec![(3.0, 30.0), (1.0, 10.0), (2.0, 20.0)]);
        assert_eq!(opens.median(), (2.0, 20.0));
        assert_eq!(Opens(vec![(2.0, 0.0), (1.0, 0.0)]).median(), (2.0, 0.0));
        assert_eq!(Opens::default().median(), (0.0, 0.0));
    }
}
