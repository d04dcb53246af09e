//! What goes in comes out: puts, reads, ranges, deduplication, healing and aborts through the open store, its references counted
//! again by the second parser.

mod bench;
mod faults;
mod long;

use bench::{Bench, LOW, NOW, OPTIONS, Random, SCOPE, every_seed, noise, put, sha256};
use holdfast::{
    Destination, Error, Get, Kind, Put, Tuning,
    ids::{ArtifactId, Sha256, Time},
};

/// Lengths at which something changes, and some between.
fn len(random: &mut Random) -> usize {
    const EDGES: [usize; 17] =
        [0, 1, 63, 64, 65, 511, 512, 513, 1024, 4095, 4096, 4097, 8192, 16_384, 16_385, 40_000, 70_000];
    match random.below(3) {
        0 => EDGES[random.index(EDGES.len())],
        1 => random.index(5_000),
        _ => random.index(50_000),
    }
}

/// Noise, zeros, text, something that was put before, changed at one place, or so much that its recipe has many pages, most of
/// them shared with others.
fn content(random: &mut Random, bench: &Bench) -> Vec<u8> {
    let len = len(random);
    if random.below(20) == 0 {
        return [noise(random.below(1000), 10), noise(7, 500_000 + len)].concat();
    }
    match random.below(6) {
        0 => vec![0; len],
        1 => b"the quick brown fox ".iter().copied().cycle().take(len).collect(),
        2 | 3 => noise(random.below(4), len),
        _ => {
            let before: Vec<&Vec<u8>> = bench.contents.values().collect();
            let Some(old) = before.get(random.index(before.len().max(1))) else { return noise(9, len) };
            let mut bytes = (*old).clone();
            let at = random.index(bytes.len() + 1);
            match random.below(3) {
                0 => {}
                1 => drop(bytes.splice(at..at, noise(random.below(1000), 10))),
                _ => bytes.truncate(at),
            }
            bytes
        }
    }
}

fn run(seed: u64, tuning: Tuning) {
    let mut random = Random::new(seed);
    let mut bench = Bench::new(OPTIONS, tuning);
    for _ in 0..12 {
        let bytes = content(&mut random, &bench);
        match random.below(8) {
            0 => bench.reopen(random.below(2) == 0),
            1 => {
                let error = bench.put_failing(&bytes, Error::new(Kind::NotReady, "still written"));
                assert_eq!(error.kind(), Kind::NotReady);
            }
            _ => drop(bench.put(&put("a name"), &bytes)),
        }
        bench.check();
    }
    for (id, bytes) in &bench.contents {
        let size = bytes.len() as u64;
        let (a, b) = (random.below(size + 1), random.below(size + 1));
        let range = a.min(b)..a.max(b);
        let wanted = &bytes[usize::try_from(range.start).expect("small")..usize::try_from(range.end).expect("small")];
        assert!(bench.get(*id, Some(range.clone())).expect("reads") == wanted, "{range:?} of {size}");
    }
}

#[test]
fn what_was_put_comes_back_and_every_reference_is_counted_with_low_lanes() {
    every_seed("with_low_lanes", 40, |seed| run(seed, LOW));
}

#[test]
fn what_was_put_comes_back_and_every_reference_is_counted_through_the_log() {
    every_seed("through_the_log", 15, |seed| run(seed, Tuning::default()));
}

#[test]
fn a_range_outside_of_the_artifact_is_refused() {
    let mut bench = Bench::new(OPTIONS, LOW);
    let id = bench.put(&put("a"), &noise(1, 1000)).id;
    for range in [0..1001, 1001..1001, u64::MAX - 1..u64::MAX] {
        assert_eq!(bench.get(id, Some(range)).expect_err("outside").kind(), Kind::InvalidArgument);
    }
    #[expect(clippy::reversed_empty_ranges, reason = "a caller may give one")]
    let reversed = 5..3;
    assert_eq!(bench.get(id, Some(reversed)).expect_err("reversed").kind(), Kind::InvalidArgument);
    assert_eq!(bench.get(id, Some(1000..1000)).expect("empty"), b"");
}

#[test]
fn equal_bytes_are_kept_once_whoever_puts_them() {
    for len in [0, 300, 3_000, 30_000] {
        let mut bench = Bench::new(OPTIONS, LOW);
        let bytes = noise(3, len);
        bench.put(&put("first"), &bytes);
        let chunks = bench.held();
        let disk = bench.store().stats().expect("counts").live_bytes;
        let other =
            Put { scope: Destination::Account(holdfast::AccountScope { account: "other", ..SCOPE }), ..put("second") };
        let reply = bench.store().put(&other, &mut &*bytes).expect("puts");
        assert_eq!(bench.held(), chunks);
        let stats = bench.store().stats().expect("counts");
        assert_eq!((stats.live_bytes, stats.artifacts, stats.blobs), (disk, 2, 1));
        // Another account's artifact is none of this account's.
        assert_eq!(bench.get(reply.id, None).expect_err("elsewhere").kind(), Kind::NotFound);
    }
}

#[test]
fn bytes_in_front_leave_the_chunks_behind_them_shared() {
    let mut bench = Bench::new(OPTIONS, LOW);
    let bytes = noise(4, 200_000);
    bench.put(&put("first"), &bytes);
    let before = bench.store().stats().expect("counts").unique_bytes;
    bench.put(&put("second"), &[b"in front", &*bytes].concat());
    let more = bench.store().stats().expect("counts").unique_bytes - before;
    assert!(more < 10_000, "{more} new bytes for 8");
    bench.check();
}

#[test]
fn a_retry_with_the_same_op_id_gives_the_first_artifact_until_it_is_gone() {
    for len in [300, 30_000] {
        let mut bench = Bench::new(OPTIONS, LOW);
        let asked = Put { op_id: Some("op-1"), expires_at: Some(Time(NOW.0 + 1000)), ..put("first") };
        let first = bench.put(&asked, &noise(5, len));
        bench.reopen(false);
        let again = bench.store().put(&asked, &mut &b"other bytes"[..]).expect("replays");
        assert_eq!((again.id, again.sha256, again.replayed, first.replayed), (first.id, first.sha256, true, false));
        bench.check();
        bench.clock.advance(1000);
        assert_eq!(bench.store().put(&asked, &mut &b"x"[..]).expect_err("expired").kind(), Kind::Gone);
        // After seven days it is a new call.
        bench.clock.advance(7 * 24 * 3600 * 1000);
        let asked = Put { expires_at: None, ..asked };
        let new = bench.store().put(&asked, &mut &b"new bytes"[..]).expect("a new call");
        assert_ne!(new.id, first.id);
        assert!(!new.replayed);
    }
}

#[test]
fn a_put_that_breaks_a_rule_leaves_nothing() {
    let bench = Bench::new(OPTIONS, LOW);
    let before = bench.store().stats().expect("counts");
    let bad = [
        (Put { name: "a/b", ..put("") }, Kind::BadName),
        (Put { op_id: Some("a b"), ..put("a") }, Kind::InvalidArgument),
        (Put { expires_at: Some(NOW), ..put("a") }, Kind::InvalidArgument),
        (
            Put { scope: Destination::Account(holdfast::AccountScope { account: "", ..SCOPE }), ..put("a") },
            Kind::InvalidArgument,
        ),
        (
            Put { scope: Destination::Account(holdfast::AccountScope { tenant: "nobody", ..SCOPE }), ..put("a") },
            Kind::NotFound,
        ),
    ];
    for (asked, kind) in bad {
        assert_eq!(bench.store().put(&asked, &mut &b"bytes"[..]).expect_err("refused").kind(), kind);
    }
    assert_eq!(bench.store().stats().expect("counts"), before);
    bench.check();
}

#[test]
fn a_record_says_what_was_put() {
    let mut bench = Bench::new(OPTIONS, LOW);
    let png = [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", &*noise(1, 100)].concat();
    let asked = Put { media_type: Some("Text/Plain; charset=utf-8"), order: Some(7), ..put("e\u{301}.png") };
    let reply = bench.put(&asked, &png);
    let info = bench.store().stat(SCOPE, reply.id).expect("there");
    assert_eq!((info.name.as_str(), reply.name.as_str()), ("é.png", "é.png"));
    assert_eq!(info.media_type, "text/plain; charset=utf-8");
    assert_eq!(info.detected_type.as_deref(), Some("image/png"));
    assert_eq!((info.size, info.sha256, info.created_at), (png.len() as u64, sha256(&png), NOW));
    let other = Get::expecting(Sha256([0; 32]));
    let error = bench.store().get(SCOPE, reply.id, &other, &mut Vec::new()).expect_err("another digest");
    assert_eq!(error.kind(), Kind::DigestMismatch);
    assert_eq!(bench.get(ArtifactId([9; 16]), None).expect_err("no such").kind(), Kind::NotFound);
}

#[test]
fn puts_of_many_threads_share_what_they_have_in_common() {
    let mut bench = Bench::new(OPTIONS, LOW);
    let contents: Vec<Vec<u8>> = (0..8).map(|n| noise(n % 3, [300, 3_000, 40_000][(n % 3) as usize])).collect();
    let store = bench.store();
    let put = |bytes: &Vec<u8>| store.put(&put("shared"), &mut bytes.as_slice()).expect("puts").id;
    let replies: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| contents.iter().map(put).collect::<Vec<_>>())).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    for ids in replies {
        bench.contents.extend(ids.into_iter().zip(contents.iter().cloned()));
    }
    assert_eq!(bench.contents.len(), 32);
    assert_eq!(bench.store().stats().expect("counts").blobs, 3);
    bench.check();
    bench.reopen(true);
    bench.check();
}
