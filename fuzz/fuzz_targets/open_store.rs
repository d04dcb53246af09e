#![no_main]

use holdfast_fuzz::{alloc::Capped, store};

#[global_allocator]
static CAPPED: Capped = Capped;

libfuzzer_sys::fuzz_target!(|data: &[u8]| store::run(data));
