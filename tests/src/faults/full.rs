//! The disk is full, and then there is room again.

use holdfast::{Kind, disk::sim::SimDisk};

use super::script::{Bench, Script, step};
use crate::{
    coverage::Coverage,
    harness::{
        Machine, Promise, PutStep,
        content::Contents,
        promise::Timeline,
        run::{Recorder, request},
        source::Source,
    },
    oracle::{self, Checks, Used, logical},
    random::Random,
};

/// A situation, by its name.
type Scenario = (&'static str, fn() -> Result<(), String>);

/// All of them.
pub(super) const SCENARIOS: [Scenario; 4] = [
    ("puts until the disk is full", puts_until_full),
    ("a long put on a full disk", long_put_on_full),
    ("a source that fails on a full disk", abort_on_full),
    ("a torn store on a full disk", torn_on_full),
];

fn opened(script: Script) -> Result<(Machine, Bench), String> {
    let bench = Bench::of(script)?;
    let machine = Machine::new(SimDisk::from_image(&bench.image, 1), bench.promise.wall, 6);
    Ok((machine, bench))
}

/// Nothing may be lost in the end, by the whole oracle.
fn end(machine: &Machine, promise: &Promise) -> Result<(), String> {
    let image = machine.sim.image();
    oracle::recover(&image, promise, &Used::new(), 3, Checks::ALL, &Coverage::default()).map(drop)
}

fn fill(machine: &Machine) {
    machine.sim.set_capacity(machine.sim.allocated());
}

fn puts_until_full() -> Result<(), String> {
    let (machine, bench) = opened(Script::PutSmall)?;
    let recorder = Recorder::new(&machine, bench.promise);
    let store = machine.open().map_err(|e| format!("open: {e}"))?;
    fill(&machine);
    let mut contents = Contents::new(Random::new(9));
    let mut refused = None;
    for number in 0..1000 {
        let step = step(&format!("fill-{number}"), contents.new_of(800));
        let answer = store.put(&request(&step, None), &mut Source::new(&step.bytes, 5000));
        match answer {
            Ok(reply) => recorder.note(&step, &reply),
            Err(error) if error.kind() == Kind::NoSpace => {
                refused = Some(step);
                break;
            }
            Err(error) => return Err(format!("put {number}: {} {error}", error.kind().as_str())),
        }
    }
    let refused = refused.ok_or("the disk never filled")?;
    logical::check(&store, &recorder.promise(), logical::Depth::Every)?;
    // Once more, so that a refusal leaves nothing that the next one trips over.
    for _ in 0..3 {
        match store.put(&request(&refused, None), &mut Source::new(&refused.bytes, 5000)) {
            Err(error) if error.kind() == Kind::NoSpace => {}
            other => return Err(format!("a put on a full disk: {other:?}")),
        }
    }
    machine.sim.set_capacity(u64::MAX);
    recorder.put(&store, &refused).map_err(|what| format!("once there is room: {what}"))?;
    recorder.look(&store)?;
    drop(store);
    end(&machine, &recorder.promise())
}

fn long_put_on_full() -> Result<(), String> {
    for room in [0, 4096, 8192, 16_384, 20_480, 40_960] {
        let (machine, bench) = opened(Script::PutLong)?;
        let recorder = Recorder::new(&machine, bench.promise);
        let store = machine.open().map_err(|e| format!("open: {e}"))?;
        machine.sim.set_capacity(machine.sim.allocated() + room);
        let mut noise = vec![0; 60 << 10];
        Random::new(10).fill(&mut noise);
        let step = step("too-long", noise.into());
        match store.put(&request(&step, None), &mut Source::new(&step.bytes, 5000)) {
            Err(error) if error.kind() == Kind::NoSpace => {}
            other => return Err(format!("a long put with {room} bytes of room: {other:?}")),
        }
        logical::check(&store, &recorder.promise(), logical::Depth::Every)?;
        machine.sim.set_capacity(u64::MAX);
        recorder.put(&store, &step).map_err(|what| format!("once there is room ({room}): {what}"))?;
        recorder.look(&store)?;
        drop(store);
        end(&machine, &recorder.promise())?;
    }
    Ok(())
}

/// The abort takes its room from the reserve, so that what the stream had committed is given up although the disk is full.
fn abort_on_full() -> Result<(), String> {
    for late in [17 << 10, 20 << 10, 33 << 10] {
        let (machine, bench) = opened(Script::PutRolls)?;
        let recorder = Recorder::new(&machine, bench.promise);
        let store = machine.open().map_err(|e| format!("open: {e}"))?;
        let bytes = Contents::new(Random::new(11)).new_of(40 << 10);
        let step = PutStep { fails_at: Some(late), ..step("fails", bytes) };
        let sim = machine.sim.clone();
        let mut source = Source::new(&step.bytes, 2000).failing_at(step.fails_at).with(late, move || {
            sim.set_capacity(sim.allocated());
        });
        match store.put(&request(&step, None), &mut source) {
            Err(error) if error.kind() == Kind::Io => {}
            other => return Err(format!("a put whose source fails: {other:?}")),
        }
        drop(source);
        let promise = recorder.promise();
        logical::check(&store, &promise, logical::Depth::Every)?;
        drop(store);
        let store = machine.open().map_err(|e| format!("open on a full disk: {} {e}", e.kind().as_str()))?;
        if store.report().aborted_uploads > 0 {
            return Err("the failed put was not given up while it failed".to_owned());
        }
        logical::check(&store, &promise, logical::Depth::Every)?;
        drop(store);
        machine.sim.set_capacity(u64::MAX);
        end(&machine, &promise)?;
    }
    Ok(())
}

/// Recovery makes room in the reserve, or zeroes the torn bytes in place; either way nothing is lost.
fn torn_on_full() -> Result<(), String> {
    let (machine, bench) = opened(Script::OpenTorn)?;
    fill(&machine);
    let store = machine.open().map_err(|e| format!("open: {} {e}", e.kind().as_str()))?;
    if store.report().read_only.is_some() {
        return Err(format!("{:?}", store.report()));
    }
    let seen = logical::check(&store, &bench.promise, logical::Depth::Every)?;
    let shown = [(0, crate::harness::promise::Event::Shown(seen.count))];
    let promise = Timeline::new(bench.promise.clone(), &shown).last().clone();
    machine.sim.set_capacity(u64::MAX);
    let recorder = Recorder::new(&machine, promise.clone());
    recorder.note_there(&promise);
    let next = step("next", Contents::new(Random::new(12)).new_of(900));
    recorder.put(&store, &next).map_err(|what| format!("once there is room: {what}"))?;
    drop(store);
    end(&machine, &recorder.promise())
}
