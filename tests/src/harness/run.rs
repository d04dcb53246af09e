//! Carries out a workload on one machine and keeps what was promised at each operation of its disk.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
    sync::Arc,
};

use holdfast::{
    AccountScope, Destination, Kind, Put, PutReply, RunToken, Store,
    disk::sim::{OpLog, SimDisk},
    format::artifact::Origin,
    ids::{ArtifactId, Time},
};

use super::{
    Machine, Promise, PutStep, Step, Stored, Workload,
    deeds::{Deed, Home, conversation, named, of_run},
    machine::START,
    promise::{Event, Life, Timeline},
    source::Source,
    workload::{ACCOUNTS, Into},
};
use crate::{oracle::logical, random::Random};

/// What a run has left: enough to build every crash and to say what must hold after it.
#[derive(Clone, Debug)]
pub struct Run {
    /// Everything that was done to the disk.
    pub log: OpLog,
    /// What held when.
    pub timeline: Timeline,
}

impl Run {
    /// Carries out the workload of a seed. An error is a violation without any crash.
    pub fn of(seed: u64) -> Result<Self, String> {
        Self::carry_out(&Workload::of(seed), seed)
    }

    /// Carries out a workload.
    pub fn carry_out(workload: &Workload, seed: u64) -> Result<Self, String> {
        let entropy = Random::of(seed, &[3]).next_u64();
        let (sim, promise) = if workload.from_init {
            (SimDisk::new(seed), Promise::nothing(START))
        } else {
            let machine = Machine::new(SimDisk::new(seed), START, !entropy);
            machine.init().map_err(|e| format!("init: {e}"))?;
            let made = Promise { made: true, ..Promise::nothing(START) };
            (SimDisk::from_image(&machine.sim.image(), seed), made)
        };
        let machine = Machine::new(sim, START, entropy);
        let recorder = Recorder::new(&machine, promise.clone());
        if workload.from_init {
            machine.init().map_err(|e| format!("init: {e}"))?;
            recorder.mark(Event::Made);
        }
        let mut store = machine.open().map_err(|e| format!("open: {e}"))?;
        for step in &workload.steps {
            store = recorder.step(store, step)?;
        }
        recorder.look(&store)?;
        drop(store);
        Ok(recorder.finish())
    }
}

/// Does things to a store and writes down what they promise.
pub struct Recorder<'m> {
    machine: &'m Machine,
    start: Promise,
    events: RefCell<Vec<(usize, Event)>>,
    /// What must be there now, in order.
    pub(super) stored: RefCell<Vec<Arc<Stored>>>,
    /// Conversations that were opened, by their index.
    pub(super) opened: RefCell<BTreeSet<usize>>,
    /// Runs that were begun.
    pub(super) runs: RefCell<Vec<RunToken>>,
    /// Those of which somebody was told that they have expired.
    pub(super) told: RefCell<Vec<ArtifactId>>,
    tickets: Cell<u64>,
    /// The disk has a limit.
    full: Cell<bool>,
    /// What went wrong within a put that another one's source called for.
    wrong: RefCell<Option<String>>,
}

impl<'m> Recorder<'m> {
    /// Begins with what is promised already.
    pub fn new(machine: &'m Machine, start: Promise) -> Self {
        Self {
            machine,
            start,
            events: RefCell::default(),
            stored: RefCell::default(),
            opened: RefCell::default(),
            runs: RefCell::default(),
            told: RefCell::default(),
            tickets: Cell::new(0),
            full: Cell::new(false),
            wrong: RefCell::default(),
        }
    }

    /// Writes down what counts from now on, with a mark in the disk's log, since equal bytes promise more now.
    pub fn mark(&self, event: Event) {
        if let Event::Shown(count) = event {
            *self.stored.borrow_mut() = self.start.order[..count].to_vec();
        }
        let index = self.machine.sim.op_count();
        self.machine.sim.ack(index as u64);
        self.events.borrow_mut().push((index, event));
    }

    /// What was promised before.
    pub const fn start(&self) -> &Promise {
        &self.start
    }

    /// What must hold now.
    pub fn promise(&self) -> Promise {
        Timeline::new(self.start.clone(), &self.events.borrow()).last().clone()
    }

    /// What was recorded.
    pub fn finish(self) -> Run {
        Run { log: self.machine.sim.log(), timeline: Timeline::new(self.start, &self.events.into_inner()) }
    }

    fn step(&self, store: Store, step: &Step) -> Result<Store, String> {
        match step {
            Step::Put(put) => self.put(&store, put)?,
            Step::Clock(by) => {
                let now = self.machine.world.clock.wall().0.saturating_add_signed(*by);
                self.machine.clock.set(Time(now));
                self.mark(Event::Clock(Time(now)));
            }
            Step::Full(room) => {
                self.machine.sim.set_capacity(self.machine.sim.allocated() + room);
                self.full.set(true);
            }
            Step::Room => {
                self.machine.sim.set_capacity(u64::MAX);
                self.full.set(false);
            }
            Step::Own(step) => self.own(&store, *step)?,
            Step::Look => self.look(&store)?,
            Step::Close => {
                store.close().map_err(|e| format!("close: {e}"))?;
                return self.open_again("close");
            }
            Step::Kill => {
                drop(store);
                return self.open_again("kill");
            }
        }
        Ok(store)
    }

    fn open_again(&self, after: &str) -> Result<Store, String> {
        let store = self.machine.open().map_err(|e| format!("open after a {after}: {e}"))?;
        let report = store.report();
        if report.read_only.is_some() || !report.problems.is_empty() {
            return Err(format!("open after a {after}: {report:?}"));
        }
        self.look(&store)?;
        Ok(store)
    }

    /// Looks at everything. Whoever does so is told of what has expired.
    pub fn look(&self, store: &Store) -> Result<(), String> {
        let seen = logical::check(store, &self.promise(), logical::Depth::Newest)?;
        let mut told = self.told.borrow_mut();
        let new: Vec<ArtifactId> = seen.expired.into_iter().filter(|id| !told.contains(id)).collect();
        if !new.is_empty() {
            told.extend(&new);
            self.mark(Event::Told(new));
        }
        Ok(())
    }

    /// Puts, and holds the answer against what must be answered.
    pub fn put(&self, store: &Store, step: &PutStep) -> Result<(), String> {
        let Some((home, destination)) = self.destination(step) else { return Ok(()) };
        let ticket = self.begun();
        let expires_at = step.expires_in.map(|after| Time(self.machine.world.clock.wall().0 + after));
        let mut source = Source::new(&step.bytes, step.piece).failing_at(step.fails_at);
        for (at, inner) in &step.during {
            source = source.with(*at, move || {
                if let Err(wrong) = self.put(store, inner) {
                    self.wrong.borrow_mut().get_or_insert(wrong);
                }
            });
        }
        if let Some((at, n)) = step.deletes {
            source = source.with(at, move || {
                if let Err(wrong) = self.delete(store, n) {
                    self.wrong.borrow_mut().get_or_insert(wrong);
                }
            });
        }
        let origin = if home == Home::Account { Origin::Upload } else { Origin::SandboxExport };
        let put = Put { scope: destination, origin, ..request(step, expires_at) };
        let answer = store.put(&put, &mut source);
        drop(source);
        if let Some(wrong) = self.wrong.take() {
            return Err(wrong);
        }
        let latest = self.promise().latest;
        let done = self.stored.borrow().iter().find(|s| s.op_id.is_some() && s.op_id == step.op_id).cloned();
        let deleted = matches!(home, Home::Conversation(n) if self.owned().is_deleted(n));
        let fails = step.fails_at.is_some_and(|at| at <= step.bytes.len());
        // What became of that which a retry asks for.
        let before = done.as_ref().map(|done| {
            let at = self.owned().at(done.id);
            (at.deleted, self.promise().life(done.id, &at))
        });
        match (answer, done) {
            (Err(error), Some(_)) if error.kind() == Kind::Gone && before != Some((false, Life::Readable)) => Ok(()),
            (Ok(_), Some(done)) if matches!(before, Some((true, _) | (_, Life::Gone))) => {
                Err(format!("a retry of {} was answered, which is gone", done.name))
            }
            (Err(error), _) if deleted && error.kind() == Kind::ConvGone => Ok(()),
            (Ok(_), _) if deleted => Err(format!("put {} came into a deleted conversation", step.name)),
            (Ok(reply), Some(done)) if reply.replayed && reply.id == done.id => Ok(()),
            (Ok(reply), Some(_)) => Err(format!("a retry of {} gave another artifact: {reply:?}", step.name)),
            (Ok(reply), None) if reply.replayed || fails || reply.size != step.bytes.len() as u64 => {
                Err(format!("put {} of {} bytes: {reply:?}", step.name, step.bytes.len()))
            }
            (Ok(reply), None) => {
                self.done(ticket, step, &reply, Self::end_of(store, home, &reply, expires_at)?, home);
                Ok(())
            }
            (Err(_), _) if fails => Ok(()),
            (Err(error), _) if error.kind() == Kind::NoSpace && self.full.get() => Ok(()),
            // Engine time may be ahead of a clock that went back.
            (Err(error), _) if error.kind() == Kind::InvalidArgument && expires_at.is_some_and(|at| at <= latest) => {
                Ok(())
            }
            (Err(error), _) => Err(format!("put {} of {} bytes: {error}", step.name, step.bytes.len())),
        }
    }
}

impl Recorder<'_> {
    /// Where a put goes; none if there is no such conversation or run.
    fn destination(&self, step: &PutStep) -> Option<(Home, Destination<'static>)> {
        Some(match step.into {
            Into::Account => {
                let scope = AccountScope { tenant: "default", account: ACCOUNTS[step.account] };
                (Home::Account, Destination::Account(scope))
            }
            Into::Conversation(n) if self.opened.borrow().contains(&n) => {
                (Home::Conversation(n), Destination::Conversation(named(n)))
            }
            Into::Conversation(_) => return None,
            Into::Run(n) => {
                let token = self.run_of(n)?;
                (Home::Run(token.run), Destination::Run { tenant: "default", token })
            }
        })
    }

    /// A run, by any number.
    pub(super) fn run_of(&self, number: usize) -> Option<RunToken> {
        let runs = self.runs.borrow();
        runs.get(number % runs.len().max(1)).copied()
    }

    /// What is put into a run ends by the engine's time, which may be ahead of the clock.
    fn end_of(store: &Store, home: Home, reply: &PutReply, expires_at: Option<Time>) -> Result<Option<Time>, String> {
        let scope = match home {
            Home::Account => return Ok(expires_at),
            Home::Conversation(n) => conversation(n),
            Home::Run(run) => of_run(run),
        };
        store.stat(scope, reply.id).map(|info| info.expires_at).map_err(|e| format!("stat behind a put: {e}"))
    }

    /// Writes down that something has begun.
    pub(super) fn begun(&self) -> u64 {
        let ticket = self.tickets.replace(self.tickets.get() + 1);
        self.events.borrow_mut().push((self.machine.sim.op_count(), Event::Begun(ticket)));
        ticket
    }

    /// What the clock shows.
    pub(super) fn now(&self) -> Time {
        self.machine.world.clock.wall()
    }

    /// True while the disk has a limit.
    pub(super) fn is_full(&self) -> bool {
        self.full.get()
    }

    fn done(&self, ticket: u64, step: &PutStep, reply: &PutReply, expires_at: Option<Time>, home: Home) {
        let stored = Arc::new(Stored {
            account: step.account,
            id: reply.id,
            name: reply.name.clone(),
            bytes: Arc::clone(&step.bytes),
            sha256: reply.sha256,
            expires_at,
            op_id: step.op_id.clone(),
            deed: Deed::Put(home),
        });
        self.stored.borrow_mut().push(Arc::clone(&stored));
        self.mark(Event::Done(ticket, stored));
    }

    /// Writes down a put that somebody else made.
    pub fn note(&self, step: &PutStep, reply: &PutReply) {
        let ticket = self.begun();
        self.done(ticket, step, reply, None, Home::Account);
    }

    /// Remembers what is there already, so that a retry of it is known.
    pub fn note_there(&self, promise: &Promise) {
        *self.stored.borrow_mut() = promise.order.to_vec();
    }
}

/// The request that a step makes.
pub fn request(step: &PutStep, expires_at: Option<Time>) -> Put<'_> {
    Put {
        scope: Destination::Account(AccountScope { tenant: "default", account: ACCOUNTS[step.account] }),
        name: &step.name,
        origin: Origin::Upload,
        media_type: None,
        op_id: step.op_id.as_deref(),
        order: None,
        expires_at,
        size_hint: None,
        logical_size: None,
        supersedes: None,
    }
}
