//! The real binary, over every command and over input that it should refuse.

#![expect(clippy::disallowed_methods, reason = "the tests make and damage files, as a user or a bad disk would")]

mod bench;
mod changes;
mod damage;
mod export;
mod get;
mod inspect;
mod lock;
mod materialize;
mod owners;
mod put;
mod root;
mod shapes;
mod streams;
mod support;
mod tour;
mod upload;
mod usage;
