//! The two seeded bugs of ingest lose what was acknowledged, and the same runs without them do not. One test, since the chosen bug is
//! the whole process's.
#![cfg(feature = "canaries")]

use std::{
    io::{self, Read},
    sync::Arc,
};

use holdfast::{
    AccountScope, Get, InitOptions, OpenMode, OpenOptions, Put, Store, Tuning, World,
    canary::{self, Canary},
    chunker::ChunkParams,
    clock::ManualClock,
    disk::sim::{Budget, Crashes, Image, Mode, SimDisk},
    entropy::SeededEntropy,
    format::{artifact::Origin, superblock::Options},
    ids::{ArtifactId, Time},
};

const SCOPE: AccountScope<'static> = AccountScope { tenant: "default", account: "someone" };
const PUT: Put<'static> = Put {
    scope: holdfast::Destination::Account(SCOPE),
    name: "a",
    origin: Origin::Upload,
    media_type: None,
    op_id: None,
    order: None,
    expires_at: None,
    size_hint: None,
    logical_size: None,
    supersedes: None,
};

fn world(disk: &SimDisk, seed: u64) -> World {
    World {
        disk: Arc::new(disk.clone()),
        clock: Arc::new(ManualClock::new(Time(1_700_000_000_000))),
        entropy: Arc::new(SeededEntropy::new(seed)),
    }
}

fn open(disk: &SimDisk, seed: u64) -> holdfast::Result<Store> {
    let tuning = Tuning { small_stream_max: 4 << 10, progress_bytes: 1 << 20 };
    // On several threads a short stream that fails is read to its end before any of it is stored.
    let options = OpenOptions { tuning, ingest_memory: 0, ..OpenOptions::new(OpenMode::Write, "test") };
    Store::open(world(disk, seed), &options)
}

fn noise(len: usize) -> Vec<u8> {
    let mut out = vec![0; len];
    blake3::Hasher::new().update(b"canary").finalize_xof().fill(&mut out);
    out
}

/// What a power cut leaves behind a run if nothing reached the disk that no sync asked for.
fn cut_off(disk: &SimDisk) -> Image {
    let log = disk.log();
    let crashes = Crashes::new(&log, 1, Budget { modes: vec![Mode::DropAll], ..Budget::default() });
    let mut last = None;
    let end = log.ops().len();
    let _ = crashes.for_each_image(end - 1..end, &mut |image, _| {
        last = Some(image.clone());
        std::ops::ControlFlow::Continue(())
    });
    last.expect("a crash behind the last operation")
}

/// True if an acknowledged put is whole after the cut.
fn survives(chosen: Option<Canary>, run: impl Fn(&Store) -> (ArtifactId, Vec<u8>)) -> bool {
    let disk = SimDisk::new(1);
    let chunks = ChunkParams { min: 64, avg: 1024, max: 4096, single_max: 512 };
    let options = Options { chunks, bulk_segment: 256 << 10, ..Options::DEFAULT };
    Store::init(&world(&disk, 1), &InitOptions { options }).expect("a store is made");
    let store = open(&disk, 2).expect("opens");
    canary::choose(chosen);
    let (id, bytes) = run(&store);
    canary::choose(None);
    let after = SimDisk::from_image(&cut_off(&disk), 1);
    drop(store);
    let mut read = Vec::new();
    let got = open(&after, 3).and_then(|store| store.get(SCOPE, id, &Get::WHOLE, &mut read));
    got.is_ok() && read == bytes
}

/// A long put.
fn long(store: &Store) -> (ArtifactId, Vec<u8>) {
    let bytes = noise(30_000);
    (store.put(&PUT, &mut &*bytes).expect("puts").id, bytes)
}

/// A long put that fails, and a short one of the same front.
fn short_behind_failed(store: &Store) -> (ArtifactId, Vec<u8>) {
    let bytes = noise(30_000);
    store.put(&PUT, &mut bytes.chain(Broken)).expect_err("the source fails");
    // Whole chunks of it: what is behind the last cut would be another chunk.
    let bytes = bytes[..4_000].to_vec();
    (store.put(&PUT, &mut &*bytes).expect("puts").id, bytes)
}

struct Broken;

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other("broken"))
    }
}

#[test]
fn the_seeded_bugs_of_ingest_lose_what_was_acknowledged() {
    assert!(survives(None, long));
    assert!(!survives(Some(Canary::BulkNotSynced), long));
    assert!(survives(None, short_behind_failed));
    assert!(!survives(Some(Canary::DedupUncommitted), short_behind_failed));
}
