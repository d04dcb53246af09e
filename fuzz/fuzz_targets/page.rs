#![no_main]

use holdfast_fuzz::{alloc::Capped, decoders};
use holdfast_tests::differential::structure::Structure;

#[global_allocator]
static CAPPED: Capped = Capped;

libfuzzer_sys::fuzz_target!(|data: &[u8]| decoders::run(Structure::Page, data));
