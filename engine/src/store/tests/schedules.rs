//! Readers beside commits, checkpoints and merges, with a model checker that decides at each lock who goes on.
//!
//! Each commit changes every key, so that what a reader sees of any key says which commit it saw. A reader may see the state behind any
//! commit from the last that was answered when it began to the last that was decided when it ended: never one key older than another of
//! the same page, never an older commit after a newer one. The tables that it has entered keep their files until it leaves, and each
//! table goes once.

use std::{collections::BTreeMap, env, io};

use shuttle::{
    Config, Runner,
    scheduler::{PctScheduler, RandomScheduler, ReplayScheduler, Scheduler},
    thread,
};

use super::*;
use crate::{
    checkpoint::Tuning,
    disk::{self, Disk, File, Listing, Lock, LockMode, sim::Op},
    sync::{AtomicU64, Mutex, Ordering},
    table,
};

/// Keys that each commit changes. One of them is removed, another one each time.
const KEYS: u64 = 3;
/// Behind this stands a key for each commit, which it adds: the memtable grows by them.
const ADDED: u64 = 1000;
const WRITERS: u64 = 2;
/// Commits of each writer: enough for a merge or two.
const COMMITS: u64 = 8;
/// Checkpoints that a thread makes which does nothing else.
const CHECKPOINTS: u64 = 2;
const READERS: u64 = 2;
/// Rounds of each reader.
const ROUNDS: usize = 4;
/// Every second commit calls for a checkpoint, and those between them for a step of a merge.
const TIGHT: Tuning = Tuning { memtable_bytes: 900, log_bytes: 1 << 20, table_pages: 5 };

/// So many runs by default, of each kind of scheduler; this variable gives another number.
const RUNS: usize = 500;
const RUNS_VARIABLE: &str = "HOLDFAST_SCHEDULES";
/// A schedule that is run once, as a failure printed it.
const REPEAT_VARIABLE: &str = "HOLDFAST_SCHEDULE";
/// Where the schedulers begin.
const SEED: u64 = 7;
/// What a debug build needs of a stack to write a table.
const STACK: usize = 1 << 20;

/// A store, and what its readers may see. The numbers are the model's own: no thread goes on between two locks.
struct Bed {
    store: Store,
    /// The last commit that was decided.
    decided: AtomicU64,
    /// The last one that was answered.
    answered: AtomicU64,
}

impl Bed {
    /// One commit of all keys.
    fn commit(self: &Arc<Self>) {
        let bed = Arc::clone(self);
        let request = Request::new(2000, move |stage| {
            let number = bed.decided.load(Ordering::SeqCst) + 1;
            bed.decided.store(number, Ordering::SeqCst);
            let edit = |key: u64| match value_of(key, number) {
                None => Edit::delete(Keyspace::Account, account(key).key()),
                Some(text) => {
                    let value = AccountValue { created_lsn: stage.lsn(), created_at: stage.now(), text };
                    Edit::put(Keyspace::Account, account(key).key(), value.encode())
                }
            };
            Ok(((0..KEYS).chain([ADDED + number]).map(edit).collect(), number))
        });
        let number = self.store.writing.as_ref().expect("open for writing").commit.run(request).expect("commits");
        self.answered.fetch_max(number, Ordering::SeqCst);
    }

    /// Everything that a reader can do, each time held against what may be seen. `seen`: the newest commit that it saw.
    fn read(&self, seen: &mut u64) {
        for key in 0..KEYS {
            self.see(seen, || {
                let found = self.store.published.read().account(&account(key)).expect("reads");
                BTreeMap::from([(key, found.map(|value| value.text))])
            });
        }
        self.see(seen, || {
            let page = self.store.published.read().scan(Keyspace::Account, &[], None, 100).expect("reads");
            let all = (0..KEYS).chain(ADDED + 1..=ADDED + WRITERS * COMMITS);
            let mut state: BTreeMap<u64, Option<String>> = all.map(|key| (key, None)).collect();
            state.extend(page.iter().map(|(key, value)| entry(key, value)));
            state
        });
        self.page_by_page();
        self.enter();
    }

    /// Looks, and finds the commit behind which everything is as it was seen.
    fn see(&self, seen: &mut u64, look: impl FnOnce() -> BTreeMap<u64, Option<String>>) {
        let first = self.answered.load(Ordering::SeqCst).max(*seen);
        let found = look();
        let last = self.decided.load(Ordering::SeqCst);
        let fits = |number: &u64| found.iter().all(|(key, text)| *text == value_of(*key, *number));
        // A key that is not there may be gone since any of several commits, of which the oldest forbids the least.
        *seen = (first..=last).find(fits).unwrap_or_else(|| panic!("between {first} and {last} was never {found:?}"));
    }

    /// A list of one key a page: each page may see a newer state, and none an older one.
    fn page_by_page(&self) {
        let (mut after, mut newest) = (None, self.answered.load(Ordering::SeqCst));
        loop {
            let view = self.store.published.read();
            let page = view.scan(Keyspace::Account, &[], after.as_deref(), 1).expect("reads");
            let Some((key, value)) = page.into_iter().next() else { return };
            let (place, text) = entry(&key, &value);
            if place >= KEYS {
                return;
            }
            let number: u64 = text.expect("it is there").parse().expect("a number");
            assert!(number >= newest, "{number} after {newest}");
            (newest, after) = (number, Some(key));
        }
    }

    /// Enters the tables and leaves them: until then their files stay, also those that were merged meanwhile.
    fn enter(&self) {
        let tables = self.store.published.read().tables();
        for key in 0..KEYS {
            tables.get(Keyspace::Account, &account(key).key()).expect("reads what it has entered");
        }
        let there = self.store.world.disk.list().expect("lists").names;
        for meta in tables.metas() {
            assert!(table::names(meta.id).iter().all(|name| there.contains(name)), "table {} went too early", meta.id);
        }
    }
}

/// What a commit makes of a key; before the first there is none.
fn value_of(key: u64, number: u64) -> Option<String> {
    let there = if key < KEYS { number > 0 && number % (KEYS + 1) != key } else { key - ADDED <= number };
    there.then(|| format!("{:0>100}", if key < KEYS { number } else { key - ADDED }))
}

fn entry(key: &[u8], value: &[u8]) -> (u64, Option<String>) {
    let number = u64::from_le_bytes(key[4..12].try_into().expect("8"));
    (number, Some(AccountValue::decode(value).expect("decodes").text))
}

/// The simulated disk, with how often each name was asked to go: once too often fails there, and nobody hears of it.
struct Counting {
    disk: SimDisk,
    unlinked: Mutex<BTreeMap<Name, u32>>,
}

impl Disk for Counting {
    fn open(&self, name: &Name, options: disk::OpenOptions) -> io::Result<Box<dyn File>> {
        self.disk.open(name, options)
    }

    fn rename(&self, from: &Name, to: &Name) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn unlink(&self, name: &Name) -> io::Result<()> {
        *self.unlinked.lock().entry(name.clone()).or_insert(0) += 1;
        self.disk.unlink(name)
    }

    fn list(&self) -> io::Result<Listing> {
        self.disk.list()
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.disk.sync_dir()
    }

    fn lock(&self, mode: LockMode, holder: &str) -> io::Result<Lock> {
        self.disk.lock(mode, holder)
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.disk.free_bytes()
    }
}

/// One run. The answer is how many tables went in it.
fn run(image: &Image) -> u64 {
    let counting = Arc::new(Counting { disk: SimDisk::from_image(image, 1), unlinked: Mutex::default() });
    let options = OpenOptions { checkpoints: TIGHT, ..OpenOptions::new(OpenMode::Write, "test") };
    let world = World { disk: Arc::<Counting>::clone(&counting), ..world(&counting.disk) };
    let store = Store::open(world, &options).expect("opens");
    let bed = Arc::new(Bed { store, decided: AtomicU64::new(0), answered: AtomicU64::new(0) });
    let spawn = |work: fn(&Arc<Bed>)| {
        let bed = Arc::clone(&bed);
        thread::spawn(move || work(&bed))
    };
    let mut threads: Vec<_> = (0..WRITERS).map(|_| spawn(|bed| (0..COMMITS).for_each(|_| bed.commit()))).collect();
    threads.push(spawn(|bed| {
        for _ in 0..CHECKPOINTS {
            bed.store.checkpoint().expect("makes one");
        }
    }));
    threads.extend((0..READERS).map(|_| {
        spawn(|bed| {
            let mut seen = 0;
            (0..ROUNDS).for_each(|_| bed.read(&mut seen));
        })
    }));
    for thread in threads {
        thread.join().expect("a panic ends the run before");
    }
    let bed = Arc::into_inner(bed).expect("the threads are done");
    assert_eq!(bed.answered.load(Ordering::SeqCst), WRITERS * COMMITS);
    bed.read(&mut 0);
    bed.store.close().expect("closes");
    gone(&counting)
}

/// Every table that was made is named at the end, or was asked to go once. How many went.
fn gone(counting: &Counting) -> u64 {
    let report = Store::verify(&world(&counting.disk), &VerifyOptions::default(), &mut |_, _| {}).expect("verifies");
    assert!(report.problems.is_empty() && report.unnamed_files.is_empty(), "{report:?}");
    let there = counting.disk.list().expect("lists").names;
    let unlinked = counting.unlinked.lock();
    let log = counting.disk.log();
    let made = log.ops().iter().filter_map(|op| if let Op::Create { name, .. } = op { Some(name) } else { None });
    let mut gone = 0;
    for name in made.filter(|name| table::parse_name(name).is_some()) {
        let times = unlinked.get(name).copied().unwrap_or(0);
        assert_eq!(times, u32::from(!there.contains(name)), "{name} was asked to go {times} times");
        gone += u64::from(times);
    }
    gone
}

/// Runs schedules. How many tables went in them.
fn check(scheduler: impl Scheduler + 'static) -> u64 {
    let image = new_store().image();
    let tables_gone = Arc::new(AtomicU64::new(0));
    let sum = Arc::clone(&tables_gone);
    let mut config = Config::new();
    config.stack_size = STACK;
    let runs = Runner::new(scheduler, config).run(move || {
        sum.fetch_add(run(&image), Ordering::SeqCst);
    });
    let gone = tables_gone.load(Ordering::SeqCst);
    println!("{runs} schedules, in which {gone} tables went");
    gone
}

/// Runs as many schedules as are asked for, or the one that is to be repeated.
fn check_all<S: Scheduler + 'static>(scheduler: impl FnOnce(usize) -> S) {
    println!(
        "A failing schedule is printed; {REPEAT_VARIABLE}='...' cargo test -p holdfast --lib schedules repeats it."
    );
    println!("{RUNS_VARIABLE}=N tries N of each kind.");
    if let Ok(schedule) = env::var(REPEAT_VARIABLE) {
        let mut replay = ReplayScheduler::new_from_encoded(&schedule);
        // It ends where it failed: whoever comes past that has mended it.
        replay.set_allow_incomplete();
        check(replay);
        return;
    }
    let runs = env::var(RUNS_VARIABLE).map_or(RUNS, |runs| runs.parse().expect("a number of schedules"));
    assert!(check(scheduler(runs)) > 0, "no table was merged away, so that nothing was tried");
}

#[test]
fn a_reader_sees_each_commit_whole_and_no_table_goes_under_it_whoever_goes_on() {
    check_all(|runs| RandomScheduler::new_from_seed(SEED, runs));
}

#[test]
fn a_reader_sees_the_same_where_a_thread_is_held_up_for_long() {
    check_all(|runs| PctScheduler::new_from_seed(SEED, 3, runs));
}
