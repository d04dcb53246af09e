//! Recovery is idempotent: a second open finds the same state and changes no more than it must.

use std::collections::BTreeSet;

use holdfast::{
    Store,
    disk::{Name, sim::Image},
    store::Stats,
};

use super::logical::{self, Depth};
use crate::harness::{Machine, Promise};

/// What an open may add to the newest log segment: a mark.
const MARK: usize = 64;

/// Drops the recovered store and opens it again. `crashed` is what the first open found.
pub(super) fn check(machine: &Machine, store: Store, crashed: &Image, promise: &Promise) -> Result<(), String> {
    let mut before = counts(&store)?;
    drop(store);
    let first = machine.sim.image();
    let store = machine.open().map_err(|e| format!("second open: {e}"))?;
    let report = store.report();
    // A store that is dropped leaves the tables of the merge that it was about; those of the crash are gone since the first open.
    let before_it: BTreeSet<String> = crashed.names().map(ToString::to_string).collect();
    let is_dropped = |name: &String| name.starts_with("table-") && !before_it.contains(name);
    let changed = report.read_only.is_some()
        || !report.problems.is_empty()
        || report.torn_bytes > 0
        || report.aborted_uploads > 0
        || !report.destroyed_files.iter().all(is_dropped);
    if changed {
        return Err(format!("a second open still finds something to do: {report:?}"));
    }
    let dropped = report.destroyed_files.clone();
    let after = counts(&store)?;
    if !dropped.is_empty() {
        before.disk_bytes = after.disk_bytes;
    }
    if before != after {
        return Err(format!("a second open counts otherwise: {before:?}, {after:?}"));
    }
    let seen = logical::check(&store, promise, Depth::Newest)?;
    if seen.count != promise.order.len() {
        return Err(format!("a second open finds {} of {} artifacts", seen.count, promise.order.len()));
    }
    drop(store);
    difference(&first, &machine.sim.image(), &dropped)
}

fn counts(store: &Store) -> Result<Stats, String> {
    store.stats().map_err(|e| format!("stats: {e}"))
}

/// The second open may write the superblock, and one mark behind the frames of one segment, and removes what was dropped.
fn difference(first: &Image, second: &Image, dropped: &[String]) -> Result<(), String> {
    let stays = |name: &&Name| !dropped.iter().any(|dropped| dropped == name.as_str());
    if !first.names().filter(stays).eq(second.names()) {
        return Err(format!("a second open changes the files: {first:?} {second:?}"));
    }
    let mut marks = 0;
    for name in second.names().filter(|name| name.as_str() != "superblock") {
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
