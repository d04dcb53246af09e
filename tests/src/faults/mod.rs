//! The fault campaign: every call of the disk that an operation makes goes wrong once, and for good, in every way.

mod full;
pub mod judge;
pub mod script;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Mutex,
};

use holdfast::{
    Store,
    disk::{
        fault::{Call, Class, Fault, Plan},
        sim::SyncFault,
    },
};

use crate::campaign::{COMMAND, Outcome, Stopwatch, add_to_totals, guarded, keep_panics_quiet};
use judge::{Hit, Role, errno};
use script::{Bench, Script, Stage};

/// Lets every call of the disk go wrong, and checks what comes of it.
#[derive(clap::Args, Clone, Debug)]
pub struct Arguments {
    /// Look at one fault again: `SCRIPT:call:fault[:sticky]`, as a failure prints it.
    #[arg(long)]
    pub replay: Option<String>,
    /// Only one script.
    #[arg(long, value_enum)]
    pub only: Option<Script>,
    /// Go on after a violation.
    #[arg(long)]
    pub all: bool,
    /// Threads, each with a script of its own.
    #[arg(long, default_value_t = 2)]
    pub threads: usize,
    /// Add a line to docs/campaigns.txt.
    #[arg(long)]
    pub totals: bool,
}

impl Default for Arguments {
    fn default() -> Self {
        Self { replay: None, only: None, all: false, threads: 2, totals: false }
    }
}

/// How a call goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Kind {
    name: &'static str,
    fault: Fault,
    /// How a failed sync treats the bytes.
    sync: Option<SyncFault>,
}

const fn kind(name: &'static str, fault: Fault) -> Kind {
    Kind { name, fault, sync: None }
}

const KINDS: [Kind; 12] = [
    kind("EIO", Fault::Errno(errno::EIO)),
    kind("ENOSPC", Fault::Errno(errno::ENOSPC)),
    kind("EINTR", Fault::Errno(errno::EINTR)),
    kind("EMFILE", Fault::Errno(errno::EMFILE)),
    kind("EROFS", Fault::Errno(errno::EROFS)),
    kind("EDQUOT", Fault::Errno(errno::EDQUOT)),
    kind("EFBIG", Fault::Errno(errno::EFBIG)),
    kind("half", Fault::ShortHalf),
    kind("one", Fault::ShortOne),
    kind("zero", Fault::Zero),
    Kind { name: "sync-keep", fault: Fault::Hook, sync: Some(SyncFault::EioKeep) },
    Kind { name: "sync-revert", fault: Fault::Hook, sync: Some(SyncFault::EioRevert) },
];

impl Kind {
    /// True if a system could answer this to such a call.
    fn fits(&self, call: &Call, sticky: bool) -> bool {
        match self.fault {
            // A process that is interrupted for ever gets nowhere, and must not.
            Fault::Errno(errno::EINTR) => !sticky,
            Fault::Errno(errno::EMFILE) => matches!(call.method, "open" | "lock"),
            Fault::Errno(errno::ENOSPC | errno::EDQUOT) => {
                matches!(call.class, Class::Write | Class::Sync) || call.method == "open"
            }
            Fault::Errno(errno::EFBIG) => matches!(call.method, "write_at" | "zero" | "set_len"),
            Fault::Errno(errno::EROFS) => call.class != Class::Read && call.method != "len" && call.method != "list",
            Fault::Errno(_) => true,
            Fault::ShortHalf | Fault::ShortOne | Fault::Zero => matches!(call.method, "read_at" | "write_at"),
            Fault::Hook => call.class == Class::Sync && !sticky,
        }
    }
}

/// Calls that a script makes, with what they are to the store.
struct Rehearsal {
    bench: Bench,
    calls: Vec<(Call, Role)>,
}

/// One fault.
#[derive(Clone, Copy, Debug)]
struct Spoilt {
    script: Script,
    at: usize,
    kind: Kind,
    sticky: bool,
}

impl Spoilt {
    fn text(&self) -> String {
        let sticky = if self.sticky { ":sticky" } else { "" };
        format!("{:?}:{}:{}{sticky}", self.script, self.at, self.kind.name)
    }

    fn parse(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split(':').collect();
        let script = Script::ALL.into_iter().find(|script| format!("{script:?}") == parts[0])?;
        let kind = KINDS.into_iter().find(|kind| Some(&kind.name) == parts.get(2))?;
        Some(Self { script, at: parts.get(1)?.parse().ok()?, kind, sticky: parts.get(3) == Some(&"sticky") })
    }
}

/// Runs the campaign.
pub fn run(arguments: &Arguments) -> Outcome {
    keep_panics_quiet();
    if let Some(text) = &arguments.replay {
        return replay(text);
    }
    let watch = Stopwatch::start();
    let mut tally = spoil_scripts(arguments);
    for (name, scenario) in full::SCENARIOS {
        if let Err(what) = guarded(scenario) {
            tally.violations += 1;
            println!("faults: VIOLATION {name}: {what}");
        }
    }
    tally.print();
    let line = format!(
        "faults: {} calls, {} faults, {} full disks, {} violations, {} s",
        tally.calls,
        tally.runs,
        full::SCENARIOS.len(),
        tally.violations,
        watch.elapsed().as_secs()
    );
    println!("{line}");
    if arguments.totals {
        add_to_totals(&line);
    }
    if tally.violations == 0 { Outcome::Held } else { Outcome::Broke }
}

/// Every fault of every script that is asked for.
fn spoil_scripts(arguments: &Arguments) -> Tally {
    let scripts = Script::ALL.into_iter().filter(|script| arguments.only.is_none_or(|only| only == *script));
    let queue = Mutex::new(scripts.collect::<VecDeque<_>>());
    let sum = Mutex::new(Tally::default());
    let next = || queue.lock().ok().and_then(|mut queue| queue.pop_front());
    std::thread::scope(|scope| {
        for _ in 0..arguments.threads.max(1) {
            scope.spawn(|| {
                while let Some(script) = next() {
                    let mut tally = Tally::default();
                    spoil_all(script, arguments.all, &mut tally);
                    if let Ok(mut sum) = sum.lock() {
                        sum.add(tally);
                    }
                }
            });
        }
    });
    sum.into_inner().unwrap_or_default()
}

/// Runs faults until something breaks: how many, and what broke.
pub fn until_violation() -> (u64, Option<String>) {
    let mut tally = Tally::default();
    for script in Script::ALL {
        spoil_all(script, false, &mut tally);
        if tally.first.is_some() {
            break;
        }
    }
    (tally.runs, tally.first)
}

#[derive(Default)]
struct Tally {
    calls: usize,
    runs: u64,
    violations: u64,
    first: Option<String>,
    by_role: BTreeMap<(Role, Class, &'static str), u64>,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.calls += other.calls;
        self.runs += other.runs;
        self.violations += other.violations;
        self.first = self.first.take().or(other.first);
        for (key, count) in other.by_role {
            *self.by_role.entry(key).or_default() += count;
        }
    }

    fn print(&self) {
        println!("faults by role, class of call and kind:");
        let mut rows: BTreeMap<(Role, Class), Vec<String>> = BTreeMap::new();
        for ((role, class, kind), count) in &self.by_role {
            rows.entry((*role, *class)).or_default().push(format!("{kind} {count}"));
        }
        for ((role, class), kinds) in rows {
            println!("  {:<10} {:<6} {}", format!("{role:?}"), format!("{class:?}"), kinds.join("  "));
        }
    }
}

/// Every fault of a script, or those up to the first that breaks something.
fn spoil_all(script: Script, go_on: bool, tally: &mut Tally) {
    let rehearsal = match guarded(|| rehearse(script)) {
        Ok(rehearsal) => rehearsal,
        Err(what) => {
            tally.violations += 1;
            println!("faults: {script:?} without any fault: {what}");
            tally.first.get_or_insert(what);
            return;
        }
    };
    tally.calls += rehearsal.calls.len();
    for (at, (call, role)) in rehearsal.calls.iter().enumerate() {
        for kind in KINDS {
            for sticky in [false, true] {
                if !kind.fits(call, sticky) {
                    continue;
                }
                tally.runs += 1;
                *tally.by_role.entry((*role, call.class, kind.name)).or_default() += 1;
                let spoilt = Spoilt { script, at, kind, sticky };
                let Err(what) = guarded(|| spoil(&rehearsal, spoilt)) else { continue };
                tally.violations += 1;
                let text = format!("{} ({call}, {role:?}): {what}", spoilt.text());
                if tally.first.is_none() || go_on {
                    println!("faults: VIOLATION {text}");
                    println!("repeat: {COMMAND} faults --replay {}", spoilt.text());
                }
                tally.first.get_or_insert(text);
                if !go_on {
                    return;
                }
            }
        }
    }
}

fn replay(text: &str) -> Outcome {
    let Some(spoilt) = Spoilt::parse(text) else {
        println!("not a fault: {text}");
        return Outcome::Broke;
    };
    let outcome = guarded(|| {
        let rehearsal = rehearse(spoilt.script)?;
        let first = spoilt.at.saturating_sub(10);
        for (at, (call, role)) in rehearsal.calls.iter().enumerate().skip(first).take(20) {
            println!("{at:>4} {role:?} {call}");
        }
        spoil(&rehearsal, spoilt)
    });
    match outcome {
        Ok(()) => {
            println!("faults: {text} holds");
            Outcome::Held
        }
        Err(what) => {
            println!("faults: VIOLATION {text}: {what}");
            Outcome::Broke
        }
    }
}

/// Opens the store for a script that needs it open.
fn opened(script: Script, stage: &Stage) -> Result<Option<Store>, String> {
    if !script.is_on_open_store() {
        return Ok(None);
    }
    stage.machine.open().map(Some).map_err(|e| format!("open: {e}"))
}

/// Does the script without any fault and writes its calls down.
fn rehearse(script: Script) -> Result<Rehearsal, String> {
    let bench = Bench::of(script)?;
    let stage = Stage::new(&bench, SEED);
    let store = opened(script, &stage)?;
    stage.faults.set_tracing(true);
    let (store, answer) = stage.act(script, &bench, store);
    let calls = stage.faults.trace();
    if let Err(error) = answer
        && script != Script::PutLongFails
    {
        return Err(error.to_string());
    }
    drop(store);
    let bulk = bulk_segments(&stage);
    let roles = calls.iter().enumerate().map(|(at, call)| role(&calls, at, call, &bulk)).collect::<Vec<_>>();
    Ok(Rehearsal { bench, calls: calls.into_iter().zip(roles).collect() })
}

const SEED: u64 = 4;

fn bulk_segments(stage: &Stage) -> Vec<String> {
    let image = stage.machine.sim.image();
    let is_bulk = |name: &&holdfast::disk::Name| {
        let mut lane = [0];
        name.as_str().starts_with("segment-") && image.read_at(name, &mut lane, 56) == 1 && lane == [2]
    };
    image.names().filter(is_bulk).map(ToString::to_string).collect()
}

fn role(calls: &[Call], at: usize, call: &Call, bulk: &[String]) -> Role {
    let Some(name) = call.name.as_ref().map(ToString::to_string) else { return Role::Directory };
    match name.as_str() {
        "superblock" => Role::Root,
        "LOCK" => Role::Directory,
        name if name.starts_with("manifest-") => Role::Manifest,
        name if name.starts_with("table-") => Role::Table,
        name if name.starts_with("reserve-") => Role::Spare,
        name if bulk.iter().any(|bulk| bulk == name) => Role::Bulk,
        _ => {
            // Zeroed now: it is a spare file until something else is written to it.
            let of_it = |other: &Call| other.name == call.name;
            let written = calls[..at].iter().any(|other| of_it(other) && other.method == "write_at");
            let zeroed = calls.iter().any(|other| of_it(other) && other.method == "zero");
            if zeroed && !written && call.method != "write_at" { Role::Spare } else { Role::Log }
        }
    }
}

/// Does the script once more, and lets one call go wrong.
fn spoil(rehearsal: &Rehearsal, spoilt: Spoilt) -> Result<(), String> {
    let Spoilt { script, at, kind, sticky } = spoilt;
    let bench = &rehearsal.bench;
    let stage = Stage::new(bench, SEED);
    let store = opened(script, &stage)?;
    if let Some(model) = kind.sync {
        let sim = stage.machine.sim.clone();
        stage.faults.set_hook(move || sim.fail_sync(Some(model)));
    }
    let plan = Plan::new(at as u64, kind.fault);
    stage.faults.arm(if sticky { plan.sticky() } else { plan });
    let (store, answer) = stage.act(script, bench, store);
    let hits = stage.faults.hits();
    stage.faults.disarm();
    stage.machine.sim.fail_sync(None);
    if hits == 0 {
        return Err("the call was not made: the script is not the same each time".to_owned());
    }
    let (call, role) = rehearsal.calls.get(at).cloned().ok_or("there is no such call")?;
    let hit = Hit { call, role, fault: kind.fault, sticky };
    judge::judge(script, bench, &stage, store, &answer, &hit)
}
