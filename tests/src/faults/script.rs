//! What is done while one call of the disk goes wrong: one operation on a small store.

use std::{ops::ControlFlow, sync::Arc};

use holdfast::{
    CheckpointTuning, Error, Store, VerifyOptions,
    disk::{
        fault::FaultDisk,
        sim::{Budget, Crashes, Image, SimDisk},
    },
    store::{Get, Stats},
};

use crate::{
    coverage::Coverage,
    harness::{
        Machine, Promise, PutStep, Run, Stored,
        content::Contents,
        machine::{CHECKPOINTS, START},
        promise::Event,
        run::{Recorder, request},
        source::Source,
        workload::Into,
    },
    oracle::{independent, logical},
    random::Random,
};

/// An operation, and the store that it is done to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Script {
    /// A store is made.
    Init,
    /// A store is opened that was closed.
    OpenClean,
    /// A store is opened that a crash left with a torn log and an unfinished put.
    OpenTorn,
    /// ... with a sealed segment, and nothing of the next one.
    OpenSealed,
    /// A put that goes into the log.
    PutSmall,
    /// One for which the log goes on in the next segment.
    PutRolls,
    /// One that goes into the bulk lane, in a new segment, and commits its progress.
    PutLong,
    /// One whose source fails behind a progress commit.
    PutLongFails,
    /// One of bytes that are there.
    PutAgain,
    /// One behind which tables are merged.
    PutMerges,
    /// A checkpoint of all that there is.
    Checkpoint,
    /// Artifacts are read.
    Get,
    /// Artifacts are listed.
    List,
    /// An artifact is looked at that has just expired.
    Look,
    /// The store is counted.
    Stats,
    /// A closed store is verified.
    Verify,
    /// The store is closed.
    Close,
}

impl Script {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::Init,
        Self::OpenClean,
        Self::OpenTorn,
        Self::OpenSealed,
        Self::PutSmall,
        Self::PutRolls,
        Self::PutLong,
        Self::PutLongFails,
        Self::PutAgain,
        Self::PutMerges,
        Self::Checkpoint,
        Self::Get,
        Self::List,
        Self::Look,
        Self::Stats,
        Self::Verify,
        Self::Close,
    ];

    /// True if the operation is done to an open store.
    pub const fn is_on_open_store(self) -> bool {
        !matches!(self, Self::Init | Self::OpenClean | Self::OpenTorn | Self::OpenSealed | Self::Verify)
    }

    /// True if the operation only reads.
    pub const fn only_reads(self) -> bool {
        matches!(self, Self::Get | Self::List | Self::Stats | Self::Verify)
    }

    /// The put that it makes, if it makes one.
    pub fn put(self, bench: &Bench) -> Option<PutStep> {
        let step = |len, fails_at| {
            let bytes = Contents::new(Random::new(77)).new_of(len);
            Some(PutStep { fails_at, ..step("put", bytes) })
        };
        match self {
            Self::PutSmall | Self::PutMerges => step(900, None),
            Self::PutRolls => step(2500, None),
            Self::PutLong => step(30 << 10, None),
            Self::PutLongFails => step(30 << 10, Some(25 << 10)),
            Self::PutAgain => Some(self::step("again", Arc::clone(&bench.promise.order[3].bytes))),
            _ => None,
        }
    }
}

/// A put under a name.
pub fn step(name: &str, bytes: Arc<[u8]>) -> PutStep {
    PutStep {
        account: 0,
        name: name.to_owned(),
        bytes,
        op_id: Some(format!("op-of-{name}")),
        expires_in: None,
        fails_at: None,
        piece: 5000,
        during: Vec::new(),
        into: Into::Account,
        deletes: None,
    }
}

/// What a script begins with.
#[derive(Clone, Debug)]
pub struct Bench {
    /// The disk.
    pub image: Image,
    /// What it promises.
    pub promise: Promise,
    /// When its store makes checkpoints.
    pub checkpoints: CheckpointTuning,
}

impl Bench {
    /// The store of a script.
    pub fn of(script: Script) -> Result<Self, String> {
        match script {
            Script::Init => {
                Ok(Self { image: Image::new(), promise: Promise::nothing(START), checkpoints: CHECKPOINTS })
            }
            Script::OpenTorn => crashed(|view| view.torn && view.uploads > 0),
            Script::OpenSealed => crashed(|view| view.seal_alone),
            Script::PutRolls => filled(script, CHECKPOINTS, Some(&|before, after| after.segments > before.segments)),
            // In one step.
            Script::PutMerges => {
                let checkpoints = CheckpointTuning { table_pages: usize::MAX, ..CHECKPOINTS };
                filled(script, checkpoints, Some(&|before, after| after.tables < before.tables))
            }
            Script::Checkpoint => {
                filled(script, CheckpointTuning { table_pages: 12, ..CheckpointTuning::default() }, None)
            }
            _ => filled(script, CHECKPOINTS, None),
        }
    }
}

/// Whether a put of the script does to these counts what the script is for.
type Wanted<'w> = &'w dyn Fn(&Stats, &Stats) -> bool;

/// A store with a few artifacts in both lanes, and as many more as it takes until the next put is one that is `wanted`.
fn filled(script: Script, checkpoints: CheckpointTuning, wanted: Option<Wanted<'_>>) -> Result<Bench, String> {
    let machine = Machine { checkpoints, ..Machine::new(SimDisk::new(1), START, 1) };
    machine.init().map_err(|e| format!("init: {e}"))?;
    let recorder = Recorder::new(&machine, Promise { made: true, ..Promise::nothing(START) });
    let store = machine.open().map_err(|e| format!("open: {e}"))?;
    let mut contents = Contents::new(Random::new(5));
    for (name, len) in [("one", 700), ("two", 60), ("empty", 0), ("long", 9000), ("three", 1500)] {
        recorder.put(&store, &step(name, contents.new_of(len)))?;
    }
    recorder
        .put(&store, &PutStep { expires_in: Some(1000), op_id: None, ..step("short-lived", contents.new_of(300)) })?;
    for number in 0..1000 {
        let bench = Bench { image: machine.sim.image(), promise: recorder.promise(), checkpoints };
        if wanted.map_or(Ok(true), |wanted| is_next(&bench, script, wanted))? {
            break;
        }
        recorder.put(&store, &step(&format!("fill-{number}"), contents.new_of(400)))?;
    }
    store.close().map_err(|e| format!("close: {e}"))?;
    Ok(Bench { image: machine.sim.image(), promise: recorder.promise(), checkpoints })
}

/// Puts into a copy of a store and looks at what that changes.
fn is_next(bench: &Bench, script: Script, wanted: Wanted<'_>) -> Result<bool, String> {
    let stats = |store: &Store| store.stats().map_err(|e| format!("stats: {e}"));
    let copy = Stage::new(bench, 9).machine;
    let opened = copy.open().map_err(|e| format!("open: {e}"))?;
    let before = stats(&opened)?;
    let put = script.put(bench).ok_or("the script puts nothing")?;
    Recorder::new(&copy, bench.promise.clone()).put(&opened, &put)?;
    Ok(wanted(&before, &stats(&opened)?))
}

/// The first crash of the first workload that leaves such a store.
fn crashed(wanted: impl Fn(&independent::View) -> bool) -> Result<Bench, String> {
    let coverage = Coverage::default();
    for seed in (1..).step_by(2).take(20) {
        let run = Run::of(seed)?;
        let crashes = Crashes::new(&run.log, seed, Budget { per_mode: 3, ..Budget::default() });
        let mut found = None;
        let _ = crashes.for_each_image(run.log.indexes(), &mut |image, point| {
            let promise = run.timeline.at(point.op_index);
            let fits = promise.made
                && promise.order.len() > 3
                && independent::read(image, &coverage).is_ok_and(|view| view.is_some_and(|view| wanted(&view)));
            if fits {
                found = Some(Bench { image: image.clone(), promise: promise.clone(), checkpoints: CHECKPOINTS });
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        if let Some(found) = found {
            return Ok(found);
        }
    }
    Err("no workload leaves the store that a script needs".to_owned())
}

/// A machine in the middle of a script.
pub struct Stage {
    /// The machine.
    pub machine: Machine,
    /// The disk that spoils calls.
    pub faults: FaultDisk,
}

impl Stage {
    /// A machine with the script's disk behind one that can spoil calls.
    pub fn new(bench: &Bench, seed: u64) -> Self {
        let sim = SimDisk::from_image(&bench.image, seed);
        let faults = FaultDisk::new(Arc::new(sim.clone()));
        let machine = Machine::behind(sim, Arc::new(faults.clone()), bench.promise.wall, seed);
        let machine = Machine { checkpoints: bench.checkpoints, ..machine };
        Self { machine, faults }
    }

    /// Does it. The store is given back if it is open in the end.
    pub fn act(&self, script: Script, bench: &Bench, store: Option<Store>) -> (Option<Store>, Result<Done, Error>) {
        let Some(store) = store else { return self.act_on_closed(script) };
        if let Some(step) = script.put(bench) {
            let mut source = Source::new(&step.bytes, step.piece).failing_at(step.fails_at);
            let answer = store.put(&request(&step, None), &mut source).map(|reply| Done::Put(Box::new(reply)));
            return (Some(store), answer);
        }
        let answer = match script {
            Script::Get => bench.promise.order.iter().try_for_each(|stored| {
                store.get(logical::scope(stored), stored.id, &Get::WHOLE, &mut std::io::sink()).map(drop)
            }),
            Script::Look => bench.promise.order.iter().try_for_each(|stored| self.look(&store, stored)),
            Script::List => store.list(logical::scope(&bench.promise.order[0]), None, 100).map(drop),
            Script::Stats => store.stats().map(drop),
            Script::Checkpoint => store.checkpoint().map(drop),
            Script::Close => return (None, store.close().map(|()| Done::Nothing)),
            _ => unreachable!("a script on a closed store"),
        };
        (Some(store), answer.map(|()| Done::Nothing))
    }

    fn act_on_closed(&self, script: Script) -> (Option<Store>, Result<Done, Error>) {
        match script {
            Script::Init => (None, self.machine.init().map(|()| Done::Nothing)),
            Script::Verify => {
                let options = VerifyOptions { deep: true, refs: true, memory: 0 };
                let report = Store::verify(&self.machine.world, &options, &mut |_, _| {});
                (None, report.map(|report| Done::Verified(report.problems.len())))
            }
            _ => match self.machine.open() {
                Ok(store) => (Some(store), Ok(Done::Nothing)),
                Err(error) => (None, Err(error)),
            },
        }
    }

    fn look(&self, store: &Store, stored: &Stored) -> Result<(), Error> {
        let end = stored.expires_at.unwrap_or(self.machine.world.clock.wall());
        self.machine.clock.set(end.max(self.machine.world.clock.wall()));
        store.stat(logical::scope(stored), stored.id).map(drop)
    }
}

/// What an operation answered.
#[derive(Debug)]
pub enum Done {
    /// Nothing to remember.
    Nothing,
    /// A put.
    Put(Box<holdfast::PutReply>),
    /// A report with so many problems.
    Verified(usize),
}

/// What is promised once the clock was moved by a look.
pub fn after_look(promise: &Promise, now: holdfast::ids::Time) -> Promise {
    let events = [(0, Event::Clock(now))];
    crate::harness::promise::Timeline::new(promise.clone(), &events).last().clone()
}
