//! Recovery is idempotent: a second open finds the same state and changes no more than it must.

use holdfast::{
    Store,
    disk::{Name, sim::Image},
    store::Stats,
};

use super::logical::{self, Depth};
use crate::harness::{Machine, Promise};

/// What an open may add to the newest log segment: a mark.
const MARK: usize = 64;

/// Drops the recovered store and opens it again.
pub(super) fn check(machine: &Machine, store: Store, promise: &Promise) -> Result<(), String> {
    let before = counts(&store)?;
    drop(store);
    let first = machine.sim.image();
    let store = machine.open().map_err(|e| format!("second open: {e}"))?;
    let report = store.report();
    let changed = report.read_only.is_some()
        || !report.problems.is_empty()
        || report.torn_bytes > 0
        || report.aborted_uploads > 0
        || !report.destroyed_files.is_empty();
    if changed {
        return Err(format!("a second open still finds something to do: {report:?}"));
    }
    let after = counts(&store)?;
    if before != after {
        return Err(format!("a second open counts otherwise: {before:?}, {after:?}"));
    }
    let seen = logical::check(&store, promise, Depth::Newest)?;
    if seen.count != promise.order.len() {
        return Err(format!("a second open finds {} of {} artifacts", seen.count, promise.order.len()));
    }
    drop(store);
    difference(&first, &machine.sim.image())
}

fn counts(store: &Store) -> Result<Stats, String> {
    store.stats().map_err(|e| format!("stats: {e}"))
}

/// The second open may write the superblock, and one mark behind the frames of one segment.
fn difference(first: &Image, second: &Image) -> Result<(), String> {
    let names = |image: &Image| image.names().cloned().collect::<Vec<Name>>();
    if names(first) != names(second) {
        return Err(format!("a second open changes the files: {first:?} {second:?}"));
    }
    let mut marks = 0;
    for name in first.names().filter(|name| name.as_str() != "superblock") {
        let [before, after] = [first, second].map(|image| image.read(name).unwrap_or_default());
        if before == after {
            continue;
        }
        let from = before.iter().zip(&after).position(|(a, b)| a != b).unwrap_or(before.len());
        let end = (from + MARK).min(after.len());
        let only_a_mark = before.len() == after.len()
            && before[from..].iter().all(|byte| *byte == 0)
            && after[end..].iter().all(|byte| *byte == 0)
            && after[from..].starts_with(b"HFr1\x04");
        if !only_a_mark || marks > 0 {
            return Err(format!("a second open changes {name} from {from} on"));
        }
        marks += 1;
    }
    Ok(())
}
