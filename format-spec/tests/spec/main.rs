//! The tests of the format: structures, vectors, the rules of the log, whole stores.

mod cases;
mod common;
mod describe;
mod inspect;
mod log;
mod records;
mod stores;
mod structures;
mod vectors;
