//! The one door to locks and atomics, so that a model checker can take their place.

pub(crate) use parking_lot::{Condvar, Mutex, RwLock};
pub(crate) use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
pub(crate) use std::sync::{Arc, OnceLock};
