//! What the fuzz targets do: hostile bytes go through every decoder of the engine, through the engine and the independent parser side
//! by side, and into whole stores.
//!
//! `cargo +nightly fuzz run TARGET` from the repository's root; `cargo run --manifest-path fuzz/Cargo.toml --example seeds` writes the seed
//! corpus first. A target fails on a panic, on more than 512 MiB of memory, and on an answer that breaks its rule.

pub mod alloc;
pub mod decoders;
pub mod mutate;
pub mod store;
