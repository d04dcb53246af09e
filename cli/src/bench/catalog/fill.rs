//! Many puts of small blobs, each with bytes of its own, as fast as a store takes them.

use std::{
    io,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

use holdfast::{CheckpointTuning, Error, OpenMode, OpenOptions, Store, World, catalog::Published, recovery};
use holdfast_benches::{Noise, Stopwatch, counted::Counts, figure};

use crate::{
    bench::place::put,
    exit_code::Outcome,
    progress::Progress,
    session::{Session, cannot_enter},
};

/// Length of the blobs that fill a catalog: as short as blobs with bytes of their own are worth it.
pub(super) const BLOB_LEN: usize = 64;
/// The same, as a length of a put.
pub(super) const BLOB: u64 = BLOB_LEN as u64;
/// Length of those behind the last checkpoint: with it the log is as full as the memtable when the next one is due.
const TAIL_BLOB: u64 = 18 << 10;
/// Puts at a time. They share their syncs, and a sync is what a slow disk is slow at.
const WRITERS: u64 = 512;
/// Noise repeats within a piece of this length.
const PIECE: u64 = 1 << 10;
/// A tail ends before a checkpoint is due, by a twentieth.
const FULL: (u64, u64) = (19, 20);

/// The bytes of a blob.
pub(super) fn blob(seed: u64, number: u64, bytes: &mut [u8]) {
    Noise::new(seed, u64::MAX).fill(number * (bytes.len() as u64).next_multiple_of(PIECE), bytes);
}

/// Puts so many blobs of a length, and gives the puts a second.
pub(super) fn fill(store: &Store, seed: u64, count: u64, len: u64, progress: &mut Progress) -> Result<f64, Error> {
    let next = AtomicU64::new(0);
    let write = |shown: &mut dyn FnMut(u64)| -> Result<(), Error> {
        let mut bytes = vec![0; usize::try_from(len).expect("a small blob")];
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return Ok(());
            }
            blob(seed, number, &mut bytes);
            store.put(&put("small", len), &mut &*bytes)?;
            shown(number);
        }
    };
    let watch = Stopwatch::start();
    thread::scope(|scope| {
        let others: Vec<_> = (1..WRITERS).map(|_| scope.spawn(|| write(&mut |_| ()))).collect();
        let own = write(&mut |number| progress.set(number));
        others.into_iter().map(|other| other.join().expect("a put does not panic")).fold(own, Result::and)
    })?;
    Ok(figure(count) / watch.seconds())
}

/// Puts what the log can hold behind a checkpoint, says so, and waits for what ends the process. Whoever started it may end first.
pub(super) fn leave_tail(directory: &Path, count: u64, session: &Session) -> Outcome {
    let world = World::os(directory).map_err(|error| cannot_enter(directory, error))?;
    let store = Store::open(world, &OpenOptions::new(OpenMode::Write, "holdfast bench"))?;
    store.checkpoint()?;
    // Another tail has other bytes.
    let seed = u64::from(std::process::id());
    fill(&store, seed, count, TAIL_BLOB, &mut Progress::steps("bench catalog, a log tail, blob", count))?;
    session.output.line(&count, count)?;
    let failed = |error| Error::io(error, "standard input", "wait");
    io::stdin().read_line(&mut String::new()).map_err(failed)?;
    Ok(())
}

/// How many blobs a tail has: so many that a checkpoint is nearly due. The store is left like one whose process was killed.
pub(super) fn tail_len(store: Store, world: &World, counts: &Counts) -> Outcome<u64> {
    const PROBED: u64 = 256;
    store.checkpoint()?;
    let before = counts.others.written();
    fill(&store, !0, PROBED, TAIL_BLOB, &mut Progress::steps("bench catalog, blob", PROBED))?;
    let log = counts.others.written() - before;
    drop(store);
    let memtable = Published::new(recovery::rebuild(&world.disk)?.catalog).memtable_bytes();
    let due = CheckpointTuning::default();
    let most = (due.log_bytes * PROBED / log.max(1)).min(due.memtable_bytes * PROBED / memtable.max(1));
    Ok((most * FULL.0 / FULL.1).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_blobs_are_equal() {
        for len in [BLOB, TAIL_BLOB] {
            let mut seen = BTreeSet::new();
            for (seed, number) in (0..3000).map(|number| (number % 3, number / 3)) {
                let mut bytes = vec![0; usize::try_from(len).expect("small")];
                blob(seed, number * 7, &mut bytes);
                assert!(seen.insert(bytes), "{seed} {number}");
            }
        }
    }
}
