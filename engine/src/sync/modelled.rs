//! Locks at which a model checker decides who goes on, in tests that it runs; in all others they are what they are in a release.
//!
//! Its threads take turns on one thread of the system, so that nothing happens between two decisions but what one of them does. There is a
//! decision before each lock, and whoever finds one taken asks for another turn. It knows nothing of what the locks protect.

use parking_lot::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};
use shuttle::{current, sync::atomic::AtomicBool, sync::atomic::Ordering, thread};

/// True in a thread of the model checker.
fn is_modelled() -> bool {
    current::try_get_current_task().is_some()
}

/// Lets the model checker decide who goes on, as an atomic access does.
fn decide() {
    let _ = AtomicBool::new(false).load(Ordering::SeqCst);
}

/// Takes a lock, or waits for its turn and tries again.
fn take<G>(try_to: impl Fn() -> Option<G>, wait: impl FnOnce() -> G) -> G {
    // What is dropped while a run is torn down has nobody to wait for.
    if !is_modelled() || thread::panicking() {
        return wait();
    }
    decide();
    loop {
        match try_to() {
            Some(guard) => return guard,
            None => thread::yield_now(),
        }
    }
}

#[derive(Default, Debug)]
pub(crate) struct Mutex<T>(parking_lot::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(parking_lot::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        take(|| self.0.try_lock(), || self.0.lock())
    }

    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        if is_modelled() {
            decide();
        }
        self.0.try_lock()
    }

    pub(crate) fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

#[derive(Default, Debug)]
pub(crate) struct RwLock<T>(parking_lot::RwLock<T>);

impl<T> RwLock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(parking_lot::RwLock::new(value))
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
        take(|| self.0.try_read(), || self.0.read())
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
        take(|| self.0.try_write(), || self.0.write())
    }
}

#[derive(Default, Debug)]
pub(crate) struct Condvar(parking_lot::Condvar);

impl Condvar {
    pub(crate) const fn new() -> Self {
        Self(parking_lot::Condvar::new())
    }

    /// Under the model checker it wakes for nothing, again and again, as any condition variable may.
    pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        if !is_modelled() {
            return self.0.wait(guard);
        }
        let mutex = MutexGuard::mutex(guard);
        MutexGuard::unlocked(guard, || {
            // It is taken again behind this, by the system's own way, which must not have to wait for another turn.
            thread::yield_now();
            while mutex.is_locked() {
                thread::yield_now();
            }
        });
    }

    pub(crate) fn notify_one(&self) -> bool {
        self.0.notify_one()
    }

    pub(crate) fn notify_all(&self) -> usize {
        self.0.notify_all()
    }
}
