//! What must hold in every state that a crash could leave: the store opens, it holds what was acknowledged and nothing that was not
//! put, the independent parser agrees, a second open changes nothing, and the store can be used.

pub mod independent;
pub mod logical;
mod repeat;

use std::{collections::BTreeSet, sync::Arc};

use holdfast::{
    Kind, Store, VerifyOptions,
    disk::sim::{Image, Op, SimDisk},
    store::OpenMode,
};

use crate::{
    coverage::{Coverage, Situation},
    harness::{
        Machine, Promise, PutStep, Run, Stored, content::Contents, deeds::Deed, promise::Event, run::Recorder,
        workload::Into,
    },
    random::Random,
};
use logical::Depth;

/// Which of the costly checks are made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Checks {
    /// Bytes of artifacts.
    pub depth: Depth,
    /// The independent parser reads the image as it is.
    pub raw: bool,
    /// What is done with the recovered store.
    pub after: After,
    /// The independent parser, and `verify`, read what is left in the end.
    pub clean: bool,
}

/// What is done with a recovered store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum After {
    /// Nothing.
    Drop,
    /// It is opened again, and nothing may have changed.
    Repeat,
    /// It is used: put, get, and open again.
    Use,
    /// It is opened while the disk is full, and again when there is room.
    Full,
    /// It is filled until the log goes on in the next segment.
    Fill,
}

impl Checks {
    /// All of them, as far as they go together.
    pub const ALL: Self = Self { depth: Depth::Every, raw: true, after: After::Use, clean: true };

    /// Some, as a seed decides: each costs so much that not every image can have it.
    pub fn sample(seed: u64) -> Self {
        let mut random = Random::of(seed, &[11]);
        Self {
            depth: if random.one_in(4) { Depth::Every } else { Depth::Newest },
            raw: random.one_in(8),
            after: match random.below(16) {
                0 => After::Repeat,
                1 | 2 => After::Use,
                3 => After::Full,
                _ => After::Drop,
            },
            clean: random.one_in(16),
        }
    }
}

/// Names of segments and reserves that a store has used.
pub type Used = BTreeSet<String>;

/// Opens an image and checks it. The answer is what was done to its disk meanwhile, to be crashed again.
pub fn recover(
    image: &Image,
    promise: &Promise,
    used: &Used,
    seed: u64,
    checks: Checks,
    coverage: &Coverage,
) -> Result<Run, String> {
    let raw = if checks.raw { Some(independent::read(image, coverage)?) } else { None };
    if checks.after == After::Full {
        on_a_full_disk(image, promise, seed, coverage)?;
    }
    if checks.raw {
        only_reading(image, promise, seed)?;
    }
    let machine = Machine::new(SimDisk::from_image(image, seed), promise.wall, seed);
    let recorder = Recorder::new(&machine, promise.clone());
    let (store, made) = open(&machine, promise, &recorder, coverage)?;
    let count = first_look(&store, promise, &recorder, checks.depth, coverage)?;
    if let Some(raw) = raw {
        same_artifacts(raw.map(|view| view.artifacts), &promise.order[..count])?;
    }
    if !made {
        fresh_ids(&machine, used)?;
    }
    if checks.raw {
        let entered = independent::took_prepared(image, &machine.sim.image());
        coverage.met(Situation::PreparedReused, entered);
    }
    match checks.after {
        After::Drop | After::Full => drop(store),
        After::Repeat => repeat::check(&machine, store, image, &recorder.promise())?,
        After::Fill => fill(store, &recorder, seed)?,
        After::Use => use_it(&machine, store, &recorder, count, seed, coverage)?,
    }
    if checks.clean {
        clean(&machine, &recorder.promise())?;
    }
    Ok(recorder.finish())
}

/// Opens the store; where making it was never acknowledged and did not come to its end, makes it. True if it did.
fn open(
    machine: &Machine,
    promise: &Promise,
    recorder: &Recorder<'_>,
    coverage: &Coverage,
) -> Result<(Store, bool), String> {
    match machine.open() {
        Ok(store) => {
            if !promise.made {
                recorder.mark(Event::Made);
            }
            Ok((store, false))
        }
        Err(error) if !promise.made && error.kind() == Kind::InvalidArgument => {
            coverage.met(Situation::InitUnfinished, true);
            machine.init().map_err(|e| format!("init over an unfinished one: {e}"))?;
            recorder.mark(Event::Made);
            Ok((machine.open().map_err(|e| format!("open behind init: {e}"))?, true))
        }
        Err(error) => Err(format!("open: {} {error}", error.kind().as_str())),
    }
}

fn first_look(
    store: &Store,
    promise: &Promise,
    recorder: &Recorder<'_>,
    depth: Depth,
    coverage: &Coverage,
) -> Result<usize, String> {
    let report = store.report();
    if report.read_only.is_some() || !report.problems.is_empty() {
        return Err(format!("a crash was taken for damage: {report:?}"));
    }
    coverage.met(Situation::Adopted, report.adopted_commits > 0);
    coverage.met(Situation::TornBytes, report.torn_bytes > 0);
    coverage.met(Situation::UploadAborted, report.aborted_uploads > 0);
    coverage.met(Situation::FilesDestroyed, !report.destroyed_files.is_empty());
    let destroyed = |front: &str| report.destroyed_files.iter().any(|name| name.starts_with(front));
    coverage.met(Situation::CheckpointCut, destroyed("table-"));
    coverage.met(Situation::ManifestCut, destroyed("manifest-"));
    coverage.met(Situation::WithTables, store.stats().is_ok_and(|stats| stats.tables > 0));
    let seen = logical::check(store, promise, depth)?;
    let is = |is: fn(&Deed) -> bool| promise.order[..seen.count].iter().any(|stored: &Arc<Stored>| is(&stored.deed));
    coverage.met(Situation::ConversationDeleted, is(|deed| matches!(deed, Deed::Delete(_))));
    coverage.met(Situation::RunClaimed, is(|deed| matches!(deed, Deed::Claim(..))));
    coverage.met(Situation::ArtifactDeleted, is(|deed| matches!(deed, Deed::Drop(_) | Deed::Link(_, _, true))));
    coverage.met(Situation::OtherEnd, is(|deed| matches!(deed, Deed::End(..))));
    coverage.met(Situation::Linked, is(|deed| matches!(deed, Deed::Link(..))));
    coverage.met(Situation::Forked, is(|deed| matches!(deed, Deed::Fork(..))));
    let unknown = promise.order[promise.least..].iter().any(|stored| !matches!(stored.deed, Deed::Put(_)));
    coverage.met(Situation::DeedUnknown, unknown);
    coverage.met(Situation::Expired, !seen.expired.is_empty());
    coverage.met(Situation::PutUnknownKept, seen.count > promise.least);
    coverage.met(Situation::PutUnknownDropped, seen.count == promise.least && promise.order.len() > seen.count);
    recorder.mark(Event::Shown(seen.count));
    if !seen.expired.is_empty() {
        recorder.mark(Event::Told(seen.expired));
    }
    Ok(seen.count)
}

fn same_artifacts(parsed: Option<BTreeSet<[u8; 16]>>, there: &[Arc<Stored>]) -> Result<(), String> {
    let there: BTreeSet<_> = there.iter().flat_map(Stored::brought).map(|stored| stored.id.0).collect();
    match parsed {
        None if there.is_empty() => Ok(()),
        Some(parsed) if parsed == there => Ok(()),
        parsed => Err(format!(
            "the independent parser finds {:?} artifacts and the engine {}",
            parsed.map(|ids| ids.len()),
            there.len()
        )),
    }
}

/// No id of a file is used twice in the life of a store.
fn fresh_ids(machine: &Machine, used: &Used) -> Result<(), String> {
    for op in machine.sim.log().ops() {
        if let Op::Create { name, .. } = op
            && used.contains(name.as_str())
        {
            return Err(format!("{name} was used before"));
        }
    }
    Ok(())
}

/// A retry of what was not answered, a new artifact, a clean close or none, and another open.
fn use_it(
    machine: &Machine,
    store: Store,
    recorder: &Recorder<'_>,
    count: usize,
    seed: u64,
    coverage: &Coverage,
) -> Result<(), String> {
    let mut random = Random::of(seed, &[12]);
    let promise = recorder.promise();
    let retried = recorder.start().order.iter().skip(count.saturating_sub(2)).filter(|s| s.op_id.is_some());
    for stored in retried.take(2) {
        coverage.met(Situation::Retried, true);
        recorder.put(&store, &again(stored))?;
    }
    let len = if random.one_in(3) { 9000 } else { 700 };
    let bytes = Contents::new(Random::of(seed, &[13])).new_of(len);
    recorder.put(&store, &plain("after".to_owned(), bytes))?;
    debug_assert!(promise.least < recorder.promise().least);
    recorder.look(&store)?;
    if random.one_in(2) {
        store.close().map_err(|e| format!("close: {e}"))?;
    } else {
        drop(store);
    }
    let store = machine.open().map_err(|e| format!("second open: {e}"))?;
    let report = store.report();
    if report.read_only.is_some() || !report.problems.is_empty() || report.torn_bytes > 0 {
        return Err(format!("second open: {report:?}"));
    }
    recorder.look(&store)
}

/// Without room the store opens all the same, for reading at least; what it shows stays.
fn on_a_full_disk(image: &Image, promise: &Promise, seed: u64, coverage: &Coverage) -> Result<(), String> {
    let machine = Machine::new(SimDisk::from_image(image, seed), promise.wall, seed);
    machine.sim.set_capacity(machine.sim.allocated());
    let store = match machine.open() {
        // A store whose making was not acknowledged may lack room for its superblock.
        Err(error) if !promise.made && matches!(error.kind(), Kind::InvalidArgument | Kind::NoSpace) => return Ok(()),
        result => result.map_err(|e| format!("open on a full disk: {} {e}", e.kind().as_str()))?,
    };
    let report = store.report();
    if !report.problems.is_empty() {
        return Err(format!("a crash was taken for damage on a full disk: {report:?}"));
    }
    coverage.met(Situation::FullAndTorn, report.torn_bytes > 0);
    let shown = logical::check(&store, promise, Depth::Newest).map_err(|what| format!("on a full disk: {what}"))?;
    drop(store);
    machine.sim.set_capacity(u64::MAX);
    let store = machine.open().map_err(|e| format!("open once there is room: {e}"))?;
    let report = store.report();
    if report.read_only.is_some() || !report.problems.is_empty() {
        return Err(format!("once there is room: {report:?}"));
    }
    let recorder = Recorder::new(&machine, promise.clone());
    recorder.mark(Event::Shown(shown.count));
    recorder.put(&store, &plain("room".to_owned(), Arc::from(&b"there is room"[..])))?;
    recorder.look(&store).map_err(|what| format!("once there is room: {what}"))?;
    drop(store);
    clean(&machine, &recorder.promise()).map_err(|what| format!("once there is room: {what}"))
}

/// A reader changes nothing and sees what a writer would.
fn only_reading(image: &Image, promise: &Promise, seed: u64) -> Result<(), String> {
    let machine = Machine::new(SimDisk::from_image(image, seed), promise.wall, seed);
    let store = match machine.open_for(OpenMode::Read) {
        Err(error) if !promise.made && error.kind() == Kind::InvalidArgument => return Ok(()),
        result => result.map_err(|e| format!("open for reading: {} {e}", e.kind().as_str()))?,
    };
    logical::check(&store, promise, Depth::Newest).map_err(|what| format!("a reader: {what}"))?;
    drop(store);
    let written = machine.sim.log().ops().iter().any(|op| !matches!(op, Op::Lock { .. }));
    if written { Err("a reader wrote".to_owned()) } else { Ok(()) }
}

/// Puts until the log has entered another segment.
fn fill(store: Store, recorder: &Recorder<'_>, seed: u64) -> Result<(), String> {
    let segments = || store.stats().map(|stats| stats.segments).map_err(|e| format!("stats: {e}"));
    let before = segments()?;
    let mut random = Random::of(seed, &[14]);
    for number in 0..FILL_MAX {
        if segments()? > before {
            break;
        }
        let mut noise = vec![0; 3000];
        random.fill(&mut noise);
        let name = format!("fill-{number}");
        recorder.put(&store, &plain(name, noise.into()))?;
    }
    recorder.look(&store)?;
    store.close().map_err(|e| format!("close: {e}"))
}

/// Puts that fill the longest log segment.
const FILL_MAX: usize = 30;

/// The same put once more.
fn again(stored: &Stored) -> PutStep {
    let step = plain(stored.name.clone(), Arc::clone(&stored.bytes));
    PutStep { account: stored.account, op_id: stored.op_id.clone(), ..step }
}

fn plain(name: String, bytes: Arc<[u8]>) -> PutStep {
    PutStep {
        account: 0,
        name,
        bytes,
        op_id: None,
        expires_in: None,
        fails_at: None,
        piece: 4000,
        during: Vec::new(),
        into: Into::Account,
        deletes: None,
    }
}

/// Closes the store in good order; then nothing may be wrong with it in anybody's eyes.
fn clean(machine: &Machine, promise: &Promise) -> Result<(), String> {
    let store = machine.open().map_err(|e| format!("open before a clean close: {e}"))?;
    store.close().map_err(|e| format!("close: {e}"))?;
    let view = independent::read_clean(&machine.sim.image())?;
    same_artifacts(Some(view.artifacts), &promise.order)?;
    if view.uploads > 0 {
        return Err(format!("{} uploads are left", view.uploads));
    }
    let report = Store::verify(&machine.world, &VerifyOptions { deep: true, refs: true, memory: 0 }, &mut |_, _| {})
        .map_err(|e| format!("verify: {e}"))?;
    match report.problems.first() {
        None => Ok(()),
        Some(problem) => Err(format!("verify of an undamaged store: {problem:?}")),
    }
}
