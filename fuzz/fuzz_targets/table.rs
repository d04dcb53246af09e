#![no_main]

use holdfast_fuzz::alloc::Capped;

#[global_allocator]
static CAPPED: Capped = Capped;

libfuzzer_sys::fuzz_target!(|data: &[u8]| holdfast_tests::differential::table::run(data));
