//! The one door to locks, atomics and threads, so that a model checker can take their place.

#[cfg(not(test))]
pub(crate) use parking_lot::{Condvar, Mutex, RwLock};
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
pub(crate) use std::sync::{Arc, OnceLock, mpsc};
pub(crate) use std::thread;

#[cfg(test)]
pub(crate) use modelled::{Condvar, Mutex, RwLock};

#[cfg(test)]
mod modelled;
