//! The contract, row by row: `tests/CONTRACT.md` says each in words, and the tests here are named after it.

mod bench;
mod changes;
mod conversations;
mod pruning;
mod records;
mod runs;
mod tenants;
mod texts;
mod together;
mod uploads;
