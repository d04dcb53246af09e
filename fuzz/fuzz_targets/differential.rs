#![no_main]

use holdfast_fuzz::alloc::Capped;
use holdfast_tests::differential;

#[global_allocator]
static CAPPED: Capped = Capped;

libfuzzer_sys::fuzz_target!(|data: &[u8]| differential::run(data));
