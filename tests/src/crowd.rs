//! Many threads put at a time, so that one commit carries several requests; then every crash of that.
//!
//! The seed decides what is put, but not how the system schedules threads: a failure prints what it found, and may take a few rounds
//! to come again. All that a single thread can do is in the crash campaign.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::ControlFlow,
    sync::{Barrier, Mutex},
};

use holdfast::{
    AccountScope, Store,
    disk::sim::{Budget, Crashes, Op, SimDisk},
    ids::ArtifactId,
};

use crate::{
    campaign::{COMMAND, Outcome, Stopwatch, add_to_totals, guarded, keep_panics_quiet},
    coverage::Coverage,
    harness::{
        Machine, Promise, PutStep, Stored,
        content::Contents,
        deeds::Deed,
        machine::START,
        promise::{Event, Timeline},
        run::request,
        source::Source,
        workload::{ACCOUNTS, Into},
    },
    oracle::{self, Checks, Used, independent, logical},
    random::Random,
};

/// Lets many threads put at a time and looks at the crashes.
#[derive(clap::Args, Clone, Debug)]
pub struct Arguments {
    /// Rounds, each with a store of its own.
    #[arg(long, default_value_t = 40)]
    pub rounds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    pub from: u64,
    /// Add a line to docs/campaigns.txt.
    #[arg(long)]
    pub totals: bool,
}

const THREADS: usize = 5;
const PUTS: usize = 4;
/// Images of one mode after one operation at most.
const PER_MODE: u64 = 6;

/// What the rounds came to.
#[derive(Default)]
struct Tally {
    images: u64,
    /// Commits with more than one artifact.
    shared: u64,
}

/// Runs the campaign.
pub fn run(arguments: &Arguments) -> Outcome {
    keep_panics_quiet();
    let watch = Stopwatch::start();
    let mut tally = Tally::default();
    let mut violations = 0;
    for seed in arguments.from..arguments.from + arguments.rounds {
        if let Err(what) = guarded(|| round(seed, &mut tally)) {
            violations += 1;
            println!("crowd: VIOLATION {seed}: {what}");
            println!("repeat: {COMMAND} crowd --from {seed} --rounds 20");
            break;
        }
    }
    let line = format!(
        "crowd: {} distinct images, {} puts in a commit with others, seeds {}..{}, {violations} violations, {} s",
        tally.images,
        tally.shared,
        arguments.from,
        arguments.from + arguments.rounds,
        watch.elapsed().as_secs()
    );
    println!("{line}");
    if arguments.totals {
        add_to_totals(&line);
    }
    // Few rounds may by chance have no commit of several requests.
    let covered = tally.shared > 0 || arguments.rounds < 20;
    if violations == 0 && covered { Outcome::Held } else { Outcome::Broke }
}

/// One put of one thread.
struct Answered {
    ticket: u64,
    begun: usize,
    stored: Option<Stored>,
}

fn round(seed: u64, tally: &mut Tally) -> Result<(), String> {
    let made = Machine::new(SimDisk::new(seed), START, seed);
    made.init().map_err(|e| format!("init: {e}"))?;
    let machine = Machine::new(SimDisk::from_image(&made.sim.image(), seed), START, !seed);
    let store = machine.open().map_err(|e| format!("open: {e}"))?;
    let answered = put_all(&machine, &store, &plans(seed))?;
    let order = order(&store)?;
    let promise = Promise { made: true, ..Promise::nothing(START) };
    let timeline = timeline(&machine, &promise, answered, &order)?;
    if timeline.last().least != order.len() {
        return Err(format!("{} artifacts are listed, and {} were answered", order.len(), timeline.last().least));
    }
    logical::check(&store, timeline.last(), logical::Depth::Every)?;
    tally.shared += shared(&machine);
    drop(store);
    crashes(&machine, &timeline, seed, tally)
}

/// What each thread puts. Many contents are the same, and some operations are.
fn plans(seed: u64) -> Vec<Vec<PutStep>> {
    let mut random = Random::of(seed, &[21]);
    let mut contents = Contents::new(Random::of(seed, &[22]));
    let mut plan = |thread: usize| {
        (0..PUTS)
            .map(|number| PutStep {
                account: 0,
                name: format!("file-{thread}-{number}"),
                bytes: contents.any(),
                op_id: random.one_in(4).then(|| format!("op-{}", random.below(3))),
                expires_in: None,
                fails_at: None,
                piece: 1 + random.index(5000),
                during: Vec::new(),
                into: Into::Account,
                deletes: None,
            })
            .collect()
    };
    (0..THREADS).map(&mut plan).collect()
}

fn put_all(machine: &Machine, store: &Store, plans: &[Vec<PutStep>]) -> Result<Vec<Answered>, String> {
    let barrier = Barrier::new(plans.len());
    let answers = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for (thread, plan) in plans.iter().enumerate() {
            let (barrier, answers) = (&barrier, &answers);
            scope.spawn(move || {
                barrier.wait();
                for (number, step) in plan.iter().enumerate() {
                    let begun = machine.sim.op_count();
                    let reply = store.put(&request(step, None), &mut Source::new(&step.bytes, step.piece));
                    let ticket = (thread * PUTS + number) as u64;
                    machine.sim.ack(ticket);
                    let stored = reply.map(|reply| (!reply.replayed).then(|| stored(step, reply)));
                    let answer = stored.map(|stored| Answered { ticket, begun, stored });
                    answers.lock().expect("no thread panics with it").push(answer.map_err(|e| e.to_string()));
                }
            });
        }
    });
    answers.into_inner().map_err(|_| "a thread panicked".to_owned())?.into_iter().collect()
}

fn stored(step: &PutStep, reply: holdfast::PutReply) -> Stored {
    Stored {
        account: step.account,
        id: reply.id,
        name: reply.name,
        bytes: std::sync::Arc::clone(&step.bytes),
        sha256: reply.sha256,
        expires_at: None,
        op_id: step.op_id.clone(),
        deed: Deed::default(),
    }
}

/// All artifacts in the order of their commits.
fn order(store: &Store) -> Result<Vec<ArtifactId>, String> {
    let scope = AccountScope { tenant: "default", account: ACCOUNTS[0] };
    let page = store.list(scope, None, 1000).map_err(|e| format!("list: {e}"))?;
    Ok(page.artifacts.iter().map(|info| info.id).collect())
}

fn timeline(
    machine: &Machine,
    promise: &Promise,
    answered: Vec<Answered>,
    order: &[ArtifactId],
) -> Result<Timeline, String> {
    let log = machine.sim.log();
    let acked: BTreeMap<u64, usize> = (0..)
        .zip(log.ops())
        .filter_map(|(index, op)| if let Op::Ack(ticket) = op { Some((*ticket, index)) } else { None })
        .collect();
    let mut events = Vec::new();
    let mut ranks = BTreeMap::new();
    for Answered { ticket, begun, stored } in answered {
        let Some(stored) = stored else { continue };
        let rank = order.iter().position(|id| *id == stored.id).ok_or("a put was acknowledged and is not listed")?;
        ranks.insert(ticket, rank);
        events.push((begun, Event::Begun(ticket)));
        events.push((acked[&ticket], Event::Done(ticket, std::sync::Arc::new(stored))));
    }
    events.sort_by_key(|(index, event)| (*index, matches!(event, Event::Done(..))));
    Ok(Timeline::ranked(promise.clone(), &events, &ranks))
}

/// Puts that shared a commit: acknowledged without a sync of the log since the last one was.
fn shared(machine: &Machine) -> u64 {
    let log = machine.sim.log();
    let mut synced = true;
    let mut shared = 0;
    for op in log.ops() {
        match op {
            Op::Sync { .. } => synced = true,
            Op::Ack(_) => {
                shared += u64::from(!synced);
                synced = false;
            }
            _ => {}
        }
    }
    shared
}

fn crashes(machine: &Machine, timeline: &Timeline, seed: u64, tally: &mut Tally) -> Result<(), String> {
    let log = machine.sim.log();
    let coverage = Coverage::default();
    let mut known = BTreeSet::new();
    let mut outcome = Ok(());
    let budget = Budget { per_mode: PER_MODE, ..Budget::default() };
    let _ = Crashes::new(&log, seed, budget).for_each_image(log.indexes(), &mut |image, point| {
        if !known.insert((image.digest(), log.acked_before(point.op_index).count())) {
            return ControlFlow::Continue(());
        }
        tally.images += 1;
        let promise = timeline.at(point.op_index);
        let found = oracle::recover(image, promise, &Used::new(), seed, Checks::sample(tally.images), &coverage);
        outcome = found.map(drop).map_err(|what| format!("{point}: {what}"));
        if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    outcome?;
    independent::read(&machine.sim.image(), &coverage).map(drop)
}
