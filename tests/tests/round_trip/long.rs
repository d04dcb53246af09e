//! Streams that commit their progress: as uploads while they run, and what is left of them when they fail.

use holdfast::{Error, Kind, Tuning};

use super::bench::{Bench, LOW, OPTIONS, noise, put};

#[test]
fn a_stream_of_twenty_megabytes_comes_back_and_counts() {
    let mut bench = Bench::new(OPTIONS, Tuning::default());
    let bytes = noise(1, 20 << 20);
    let id = bench.put(&put("long"), &bytes).id;
    bench.check();
    let range = (18 << 20) - 7..(18 << 20) + 9;
    assert_eq!(bench.get(id, Some(range)).expect("reads"), bytes[(18 << 20) - 7..(18 << 20) + 9]);
}

#[test]
fn zeros_become_one_chunk_however_many_there_are() {
    let mut bench = Bench::new(OPTIONS, LOW);
    bench.put(&put("zeros"), &vec![0; 6_000_000]);
    bench.check();
    let stats = bench.store().stats().expect("counts");
    // The longest chunk, the rest of the stream, and no more.
    assert_eq!((stats.chunks, stats.unique_bytes), (2, 4096 + 6_000_000 % 4096));
}

#[test]
fn a_stream_that_fails_is_released_and_its_bytes_serve_the_next() {
    let mut bench = Bench::new(OPTIONS, LOW);
    bench.put(&put("before"), &noise(8, 30_000));
    let held = bench.held();
    let bytes = noise(2, 90_000);
    for len in [2_000, 10_000, 17_000, 50_000, 90_000] {
        let error = bench.put_failing(&bytes[..len], Error::new(Kind::NotReady, "still written"));
        assert_eq!(error.kind(), Kind::NotReady);
        assert_eq!(bench.held(), held, "after {len} bytes");
        bench.check();
    }
    let chunks = bench.store().stats().expect("counts");
    bench.put(&put("after"), &bytes);
    bench.check();
    bench.reopen(true);
    bench.check();
    assert_eq!(bench.store().stats().expect("counts").blobs, chunks.blobs + 1);
}

#[test]
fn an_upload_that_a_crash_left_is_aborted_by_the_next_open() {
    let mut bench = Bench::new(OPTIONS, LOW);
    bench.put(&put("before"), &noise(8, 30_000));
    let held = bench.held();
    // The source panics where a process would be killed: nobody aborts.
    let bytes = noise(2, 60_000);
    let store = bench.store();
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        drop(store.put(&put("killed"), &mut Killed(&bytes)));
    }));
    assert!(outcome.is_err());
    assert_eq!(bench.held().1, 1, "an upload is left");
    bench.reopen(false);
    assert_eq!(bench.store().report().aborted_uploads, 1);
    assert_eq!(bench.held(), held);
    bench.check();
    bench.put(&put("again"), &bytes);
    bench.check();
}

struct Killed<'a>(&'a [u8]);

impl std::io::Read for Killed<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        assert!(!self.0.is_empty(), "killed");
        self.0.read(bytes)
    }
}

#[test]
fn a_put_of_what_is_there_leaves_an_upload_nothing() {
    let mut bench = Bench::new(OPTIONS, LOW);
    let bytes = noise(2, 90_000);
    bench.put(&put("first"), &bytes);
    let held = bench.held();
    bench.put(&put("second"), &bytes);
    assert_eq!(bench.held(), held);
    bench.check();
}

#[test]
fn segments_are_sealed_when_they_are_full_and_at_the_next_open() {
    let mut bench = Bench::new(OPTIONS, LOW);
    for seed in 0..6 {
        bench.put(&put("a"), &noise(seed, 50_000));
    }
    let sealed = |bench: &Bench| {
        super::bench::with_image(&bench.files(), |image| {
            let segments = &image.catalog.segments;
            (segments.values().filter(|s| s.sealed).count(), segments.len())
        })
    };
    let (before, count) = sealed(&bench);
    assert!(before >= 4 && count == before + 1, "{before} of {count} sealed");
    bench.reopen(false);
    assert_eq!(sealed(&bench), (count, count));
    bench.check();
}
