//! Carries out a workload on one machine and keeps what was promised at each operation of its disk.

use std::{
    cell::{Cell, RefCell},
    sync::Arc,
};

use holdfast::{
    AccountScope, Kind, Put, PutReply, Store,
    disk::sim::{OpLog, SimDisk},
    format::artifact::Origin,
    ids::{ArtifactId, Time},
};

use super::{
    Machine, Promise, PutStep, Step, Stored, Workload,
    machine::START,
    promise::{Event, Timeline},
    source::Source,
    workload::ACCOUNTS,
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
    stored: RefCell<Vec<Arc<Stored>>>,
    told: RefCell<Vec<ArtifactId>>,
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
        let ticket = self.tickets.replace(self.tickets.get() + 1);
        self.events.borrow_mut().push((self.machine.sim.op_count(), Event::Begun(ticket)));
        let expires_at = step.expires_in.map(|after| Time(self.machine.world.clock.wall().0 + after));
        let mut source = Source::new(&step.bytes, step.piece).failing_at(step.fails_at);
        for (at, inner) in &step.during {
            source = source.with(*at, move || {
                if let Err(wrong) = self.put(store, inner) {
                    self.wrong.borrow_mut().get_or_insert(wrong);
                }
            });
        }
        let answer = store.put(&request(step, expires_at), &mut source);
        drop(source);
        if let Some(wrong) = self.wrong.take() {
            return Err(wrong);
        }
        let latest = self.promise().latest;
        let done = self.stored.borrow().iter().find(|s| s.op_id.is_some() && s.op_id == step.op_id).cloned();
        let fails = step.fails_at.is_some_and(|at| at <= step.bytes.len());
        match (answer, done) {
            (Ok(reply), Some(done)) if reply.replayed && reply.id == done.id => Ok(()),
            (Ok(reply), Some(_)) => Err(format!("a retry of {} gave another artifact: {reply:?}", step.name)),
            (Ok(reply), None) if reply.replayed || fails || reply.size != step.bytes.len() as u64 => {
                Err(format!("put {} of {} bytes: {reply:?}", step.name, step.bytes.len()))
            }
            (Ok(reply), None) => {
                self.done(ticket, step, &reply, expires_at);
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
    fn done(&self, ticket: u64, step: &PutStep, reply: &PutReply, expires_at: Option<Time>) {
        let stored = Arc::new(Stored {
            account: step.account,
            id: reply.id,
            name: reply.name.clone(),
            bytes: Arc::clone(&step.bytes),
            sha256: reply.sha256,
            expires_at,
            op_id: step.op_id.clone(),
        });
        self.stored.borrow_mut().push(Arc::clone(&stored));
        self.mark(Event::Done(ticket, stored));
    }

    /// Writes down a put that somebody else made.
    pub fn note(&self, step: &PutStep, reply: &PutReply) {
        let ticket = self.tickets.replace(self.tickets.get() + 1);
        self.events.borrow_mut().push((self.machine.sim.op_count(), Event::Begun(ticket)));
        self.done(ticket, step, reply, None);
    }

    /// Remembers what is there already, so that a retry of it is known.
    pub fn note_there(&self, promise: &Promise) {
        *self.stored.borrow_mut() = promise.order.to_vec();
    }
}

/// The request that a step makes.
pub fn request(step: &PutStep, expires_at: Option<Time>) -> Put<'_> {
    Put {
        scope: AccountScope { tenant: "default", account: ACCOUNTS[step.account] },
        name: &step.name,
        origin: Origin::Upload,
        media_type: None,
        op_id: step.op_id.as_deref(),
        order: None,
        expires_at,
        size_hint: None,
    }
}
