//! When a checkpoint or a step of a merge is due, and who makes it: the thread of a request that has its answer.
//!
//! A checkpoint that fails is put off until more has come, and fails no request: its edits are in the log. Only where four memtables
//! wait is it tried again before a request is let in, and only then does a request answer what it came to. It does not know how
//! checkpoints are made.

use super::{Checkpointer, Load, State};
use crate::{
    commit::{Commit, Upkeep},
    error::{Error, Result},
    sync::{Arc, Ordering},
};

/// Steps of a merge while a memtable fills: each writes a table, of about half the size of a memtable, so that merging keeps up where
/// every byte is written again seven times.
const MERGE_STEPS: u64 = 16;
/// Log segments that a checkpoint looks at, for one in which nothing is live: those of a large store take turns.
const LOOKS: usize = 64;
/// So many memtables may wait for a checkpoint before requests do.
const WAITING_MAX: u64 = 4;

impl Checkpointer {
    const fn is_due(&self, load: Load, least: Load) -> bool {
        let (memtable, log) = (self.tuning.memtable_bytes, self.tuning.log_bytes);
        load.memtable >= memtable && load.memtable >= least.memtable || load.log >= log && load.log >= least.log
    }

    /// Makes the checkpoint that failed. Of those who ask at the same time one tries, and the others take its answer: on a full disk
    /// each try builds a table.
    fn try_again(&self, commit: &Commit) -> Result<()> {
        let tries = self.tries.load(Ordering::Acquire);
        let mut state = self.state.lock();
        match state.failed.as_ref() {
            None => Ok(()),
            Some((error, _)) if self.tries.load(Ordering::Acquire) != tries => Err(put_off(error)),
            Some(_) => self.step(&mut state, commit, LOOKS).map(drop).map_err(|error| put_off(&error)),
        }
    }

    /// The work of merging is spread over the time that a memtable takes to fill. What fails is begun again later.
    fn merge_if_due(&self, state: &mut State, load: Load) {
        if load.memtable >= state.merge_at && state.failed.is_none() {
            state.merge_at = load.memtable + self.tuning.memtable_bytes / MERGE_STEPS;
            if self.merge_step(state).is_err() {
                state.merge_at = load.memtable + self.tuning.memtable_bytes / 4;
            }
        }
    }
}

/// What a request is told that finds no room in memory.
fn put_off(error: &Error) -> Error {
    let file = error.place().file.as_deref().unwrap_or("the store");
    let why = format!("too much waits for a checkpoint, and none can be made: {} ({file})", error.message());
    Error::new(error.kind(), why)
}

/// Makes a checkpoint when one is due.
pub struct Keeper(pub Arc<Checkpointer>);

impl Upkeep for Keeper {
    fn admits(&self, commit: &Commit) -> Result<()> {
        let Keeper(checkpointer) = self;
        let most = checkpointer.tuning.memtable_bytes.saturating_mul(WAITING_MAX);
        if checkpointer.ground.published.memtable_bytes() < most { Ok(()) } else { checkpointer.try_again(commit) }
    }

    fn after(&self, commit: &Commit) {
        let Keeper(checkpointer) = self;
        let load = checkpointer.load(commit);
        if !checkpointer.ground.health.is_writable() {
            return;
        }
        if !checkpointer.is_due(load, Load::default()) {
            // Whoever comes by first; nobody waits for a merge.
            if let Some(mut state) = checkpointer.state.try_lock() {
                checkpointer.merge_if_due(&mut state, load);
            }
            return;
        }
        // Somebody else is at it. Whoever commits faster than tables are written waits for it, so that memory stays bounded.
        let state = if load.memtable < checkpointer.tuning.memtable_bytes.saturating_mul(2) {
            checkpointer.state.try_lock()
        } else {
            Some(checkpointer.state.lock())
        };
        let Some(mut state) = state else { return };
        let least = state.failed.as_ref().map_or_else(Load::default, |(_, load)| *load);
        if checkpointer.is_due(checkpointer.load(commit), least) {
            // The request that came by has its answer; what failed is kept for those that ask, and tried again.
            let _ = checkpointer.step(&mut state, commit, LOOKS);
        }
    }
}
