//! What holds for the sources and papers of this repository as a whole.

#![expect(clippy::disallowed_methods, reason = "the tests read the repository")]

mod commands;
mod contract;
mod floors;
mod tidy;
mod tree;
