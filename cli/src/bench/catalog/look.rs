//! Look-ups in a catalog: of what is there and of what is not, in memory, in the page cache and on the disk.
//!
//! It runs in a process of its own, so that what is in memory is what look-ups put there.

use std::{io, path::Path, sync::Arc};

use holdfast::{
    Error, Kind, OpenMode, OpenOptions, Probe, Store, World,
    catalog::Tables,
    clock::OsClock,
    disk::{Disk, Name, os::OsDisk},
    entropy::OsEntropy,
    format::keyspace::Keyspace,
    ids::ChunkId,
};
use holdfast_benches::{
    Stopwatch,
    counted::{Counted, Counts},
    figure, process,
    yardstick::{self, RandomPages},
};

use super::{
    Plan, fill, generated,
    keys::{Key, Keys, mix},
};
use crate::{
    bench::{Best, Row, mib, place::SCOPE, print},
    exit_code::Outcome,
    output::shown,
    progress::Progress,
    session::{Session, cannot_enter},
};

/// Every row, in the order in which they are printed.
pub(super) const ROWS: [&str; 8] = [
    "open_clean",
    "memory_open",
    "lookup_near",
    "lookup_hit",
    "lookup_miss",
    "memory_lookups",
    "lookup_cold",
    "cold_pages",
];

/// Look-ups on the disk in a round: few, so that hardly any of them reads a page that another one has read.
const COLD: u64 = 2_000;
/// Keys that are looked up again and again: their pages stay in memory.
const NEAR: u64 = 2_000;
/// Look-ups that meet every table.
const FIRST: u64 = 100_000;
/// Keys are made so many at a time, and not while the watch runs.
const BATCH: u64 = 1_000;
const PAGE: u64 = 4096;
const HOT: &str = "4 KiB reads of the same files, in the page cache";
const UNCACHED: &str = "4 KiB reads of the same files, not in the page cache";

/// What is looked up in.
trait Catalog {
    /// The key of a chunk that is there.
    fn hit(&self, number: u64) -> Key;
    /// The key of one that is not.
    fn miss(&self, number: u64) -> Key;
    /// Looks up.
    fn has(&self, key: Key) -> Result<bool, Error>;
}

/// Chunks of a store, as a put looks for them.
struct Stored<'a>(Probe<'a>);

impl Stored<'_> {
    fn key(&self, seed: u64, number: u64) -> Key {
        let mut bytes = [0; fill::BLOB_LEN];
        fill::blob(seed, number, &mut bytes);
        self.0.id(&bytes).0
    }
}

impl Catalog for Stored<'_> {
    fn hit(&self, number: u64) -> Key {
        self.key(0, number)
    }

    fn miss(&self, number: u64) -> Key {
        self.key(1, number)
    }

    fn has(&self, key: Key) -> Result<bool, Error> {
        self.0.has(ChunkId(key))
    }
}

/// Generated ones.
struct Generated {
    keys: Keys,
    tables: Tables,
}

impl Catalog for Generated {
    fn hit(&self, number: u64) -> Key {
        self.keys.hit(number)
    }

    fn miss(&self, number: u64) -> Key {
        self.keys.miss(number)
    }

    fn has(&self, key: Key) -> Result<bool, Error> {
        Ok(self.tables.get(Keyspace::Chunk, &key)?.is_some())
    }
}

/// Opens what is in the directory, looks up, and prints.
pub(super) fn run(plan: &Plan, directory: &Path, session: &Session) -> Outcome {
    let disk = OsDisk::open(directory).map_err(|error| cannot_enter(directory, error))?;
    let failed = |error| Error::io(error, shown(&directory.to_string_lossy()), "measure");
    let names = disk.list().map_err(failed)?.names;
    let tables: Vec<Name> = names.into_iter().filter(is_first_copy).collect();
    let pages = RandomPages::open(&disk, &tables).map_err(failed)?;
    let memory = |row| Ok::<_, Error>(Row::alone(row, mib(process::memory_anonymous().map_err(failed)?), "MiB"));
    let mut seen = Seen::default();
    opened(plan, directory, &mut |catalog, _, seconds| {
        let rows = [Row::alone("open_clean", seconds * 1e3, "ms"), memory("memory_open")?];
        print(&rows, &plan.rows, session)?;
        Look { plan, catalog, pages: &pages, seen: &mut seen }.hot()?;
        print(&seen.hot_rows(), &plan.rows, session)?;
        print(&[memory("memory_lookups")?], &plan.rows, session)
    })?;
    for round in 0..u64::from(plan.rounds) {
        // Opened again: no page of a table is in memory.
        opened(plan, directory, &mut |catalog, counts, _| {
            Look { plan, catalog, pages: &pages, seen: &mut seen }.cold(&disk, counts, round)
        })?;
    }
    print(&seen.cold_rows(), &plan.rows, session)
}

/// What is done with an open catalog, with what its disk counts, and the seconds that it took to open.
type Act<'a> = &'a mut dyn FnMut(&dyn Catalog, &Counts, f64) -> Outcome;

fn opened(plan: &Plan, directory: &Path, act: Act<'_>) -> Outcome {
    let counted = Counted::new(OsDisk::open(directory).map_err(|error| cannot_enter(directory, error))?);
    let (counts, watch) = (counted.counts(), Stopwatch::start());
    let disk: Arc<dyn Disk> = Arc::new(counted);
    if plan.is_generated {
        let tables = generated::open(&disk)?;
        return act(&Generated { keys: Keys::new(plan.chunks), tables }, &counts, watch.seconds());
    }
    let world = World { disk, clock: Arc::new(OsClock), entropy: Arc::new(OsEntropy) };
    let store = Store::open(world, &OpenOptions::new(OpenMode::Write, "holdfast bench"))?;
    act(&Stored(store.probe(SCOPE.tenant)?), &counts, watch.seconds())?;
    Ok(store.close()?)
}

fn is_first_copy(name: &Name) -> bool {
    name.as_str().strip_prefix("table-").is_some_and(|rest| rest.strip_suffix(".a").is_some())
}

/// What was seen in all rounds.
#[derive(Default)]
struct Seen {
    near: Best,
    hit: Best,
    miss: Best,
    cold: Best,
    hot_reads: Best,
    cold_reads: Best,
    cold_lookups: u64,
    cold_bytes: u64,
}

impl Seen {
    fn hot_rows(&self) -> [Row; 3] {
        let reads = self.hot_reads.rate();
        [
            Row::against("lookup_near", self.near.rate(), "1/s", reads, HOT),
            Row::against("lookup_hit", self.hit.rate(), "1/s", reads, HOT),
            Row::alone("lookup_miss", self.miss.rate(), "1/s"),
        ]
    }

    fn cold_rows(&self) -> [Row; 2] {
        let pages = figure(self.cold_bytes / PAGE) / figure(self.cold_lookups.max(1));
        [
            Row::against("lookup_cold", self.cold.rate(), "1/s", self.cold_reads.rate(), UNCACHED),
            Row::alone("cold_pages", pages, "pages"),
        ]
    }
}

fn failed(error: io::Error) -> Error {
    Error::io(error, "the tables", "read pages")
}

struct Look<'a> {
    plan: &'a Plan,
    catalog: &'a dyn Catalog,
    pages: &'a RandomPages,
    seen: &'a mut Seen,
}

impl Look<'_> {
    fn hot(&mut self) -> Outcome {
        let Plan { lookups, chunks, rounds, .. } = *self.plan;
        let mut progress = Progress::steps("bench catalog, look-ups, round", u64::from(rounds));
        self.load_filters()?;
        for round in 0..u64::from(rounds) {
            progress.set(round);
            let near = self.rate(lookups, &|number| self.catalog.hit(number % NEAR.min(chunks)), true)?;
            let miss = self.rate(lookups, &|number| self.catalog.miss(number), false)?;
            // The same keys and pages in each round: from the second on they are in the page cache.
            let hit = self.rate(lookups, &|number| self.catalog.hit(mix(number) % chunks), true)?;
            self.seen.near.add(near);
            self.seen.miss.add(miss);
            self.seen.hit.add(hit);
            self.seen.hot_reads.add(self.pages.read(0, lookups).map_err(failed)?);
        }
        Ok(())
    }

    /// Each round has keys and pages of its own.
    fn cold(&mut self, disk: &OsDisk, counts: &Counts, round: u64) -> Outcome {
        let (count, chunks, from) = (COLD.min(self.plan.lookups), self.plan.chunks, (round + 1) << 32);
        self.load_filters()?;
        yardstick::drop_caches(disk).map_err(failed)?;
        self.seen.cold_reads.add(self.pages.read(from, count).map_err(failed)?);
        yardstick::drop_caches(disk).map_err(failed)?;
        let before = counts.tables.read();
        let cold = self.rate(count, &|number| self.catalog.hit(mix(from + number) % chunks), true)?;
        self.seen.cold.add(cold);
        self.seen.cold_lookups += count;
        self.seen.cold_bytes += counts.tables.read() - before;
        Ok(())
    }

    /// Headers and filters come into memory with the first look-ups that want them. What is not there wants hardly any page.
    fn load_filters(&self) -> Outcome {
        self.rate(self.plan.lookups.min(FIRST), &|number| self.catalog.miss(number), false)?;
        Ok(())
    }

    /// Looks up so many keys on this thread, and gives the look-ups a second.
    fn rate(&self, count: u64, key: &dyn Fn(u64) -> Key, there: bool) -> Result<f64, Error> {
        let mut seconds = 0.0;
        for first in (0..count).step_by(usize::try_from(BATCH).expect("a small number")) {
            let keys: Vec<Key> = (first..count.min(first + BATCH)).map(key).collect();
            let watch = Stopwatch::start();
            for key in keys {
                if self.catalog.has(key)? != there {
                    return Err(Error::new(Kind::Corrupt, "bench: a look-up gave a wrong answer"));
                }
            }
            seconds += watch.seconds();
        }
        Ok(figure(count) / seconds)
    }
}
