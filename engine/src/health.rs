//! Whether the store may still write. It only ever gets worse, until it is opened again.

use crate::{
    canary::{self, Canary},
    error::{Error, Kind, Result},
    sync::{AtomicU8, Ordering},
};

const WRITABLE: u8 = 0;
const READ_ONLY: u8 = 1;
const POISONED: u8 = 2;

/// One latch for the whole store.
#[derive(Default, Debug)]
pub struct Health(AtomicU8);

impl Health {
    /// Refuses a write when the latch has fallen.
    pub fn check(&self) -> Result<()> {
        if canary::sings(Canary::PoisonIgnored) {
            return Ok(());
        }
        match self.0.load(Ordering::Acquire) {
            WRITABLE => Ok(()),
            READ_ONLY => Err(Error::new(Kind::ReadOnly, "the store takes no writes: mend the cause and open it again")),
            _ => Err(Error::new(Kind::Poisoned, "an earlier write or sync failed: open the store again")),
        }
    }

    /// True while writes may go on.
    pub fn is_writable(&self) -> bool {
        self.0.load(Ordering::Acquire) == WRITABLE
    }

    /// Reads go on, writes do not.
    pub fn make_read_only(&self) {
        self.0.fetch_max(READ_ONLY, Ordering::AcqRel);
    }

    /// What was staged may or may not be on the medium: nothing may be written that assumes either.
    pub fn poison(&self) {
        self.0.fetch_max(POISONED, Ordering::AcqRel);
    }

    /// Lets the latch fall for an error of a write or sync that the store rests on. The error that comes back says so: room, or
    /// another try, mends nothing before the store is opened again.
    pub fn fail(&self, error: Error) -> Error {
        if error.kind() == Kind::ReadOnly {
            return self.notice(error);
        }
        self.poison();
        error.with_kind(Kind::Poisoned)
    }

    /// Gives back the error of something that only its request rests on; but where the filesystem takes no writes, the latch falls.
    pub fn notice(&self, error: Error) -> Error {
        if error.kind() == Kind::ReadOnly {
            self.make_read_only();
        }
        error
    }
}
