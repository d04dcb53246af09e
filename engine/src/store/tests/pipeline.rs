//! Long streams on several threads: the same as on one, and over as soon as something goes wrong.

use super::*;
use crate::ids::ArtifactId;
use crate::{
    budget::Budget,
    disk::fault::{Class, Fault, FaultDisk, Plan},
    format::keyspace::Keyspace,
    limits::INGEST_MEMORY,
};

const EIO: i32 = 5;
const ENOSPC: i32 = 28;
/// Several blocks, and a part of one.
const LEN: usize = 7 << 20;

fn options(ingest_memory: u64) -> OpenOptions {
    let tuning = crate::ingest::Tuning { small_stream_max: 4 << 10, progress_bytes: 256 << 10 };
    OpenOptions { tuning, ingest_memory, ..OpenOptions::new(OpenMode::Write, "test") }
}

/// A new store behind a disk that fails when it is told to.
fn faulty() -> (SimDisk, FaultDisk, Store) {
    let disk = new_store();
    disk.record(false);
    let fault = FaultDisk::new(Arc::new(disk.clone()));
    fault.set_tracing(false);
    let world = World { disk: Arc::new(fault.clone()), ..world(&disk) };
    let store = Store::open(world, &options(INGEST_MEMORY)).expect("opens");
    (disk, fault, store)
}

fn budget(store: &Store) -> &Arc<Budget> {
    store.writing.as_ref().expect("open for writing").ingest.budget()
}

/// Nothing is held for a stream that is over: no memory, and no upload.
fn assert_nothing_is_left(store: &Store) {
    assert_eq!(budget(store).left(), INGEST_MEMORY);
    assert_eq!(store.published.read().count(Keyspace::Upload).expect("reads"), 0);
}

fn assert_reads(store: &Store, id: ArtifactId, bytes: &[u8]) {
    let mut out = Vec::new();
    store.get(SCOPE, id, &Get::WHOLE, &mut out).expect("reads");
    assert!(out == bytes, "other bytes than were put");
}

/// Calls something when so many bytes were given, and goes on with what that says.
struct Acting<'a> {
    bytes: &'a [u8],
    given: usize,
    at: usize,
    act: Option<Box<dyn FnOnce() -> io::Result<()> + 'a>>,
}

impl<'a> Acting<'a> {
    fn new(bytes: &'a [u8], at: usize, act: impl FnOnce() -> io::Result<()> + 'a) -> Self {
        Self { bytes, given: 0, at, act: Some(Box::new(act)) }
    }
}

impl io::Read for Acting<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.given >= self.at
            && let Some(act) = self.act.take()
        {
            act()?;
        }
        let until = if self.act.is_some() { self.at } else { self.bytes.len() };
        let len = bytes.len().min(until - self.given).min(100_000);
        bytes[..len].copy_from_slice(&self.bytes[self.given..self.given + len]);
        self.given += len;
        Ok(len)
    }
}

#[test]
fn a_stream_is_the_same_on_several_threads_as_on_one() {
    let mut bytes = noise(LEN, 1);
    // A part that repeats within what one commit has, and across several, and one that can be compressed.
    bytes.extend_from_within(LEN - 100_000..);
    bytes.extend_from_within(1 << 20..2 << 20);
    bytes.extend_from_slice(&b"it was the best of times ".repeat(20_000));
    let stored = [0, INGEST_MEMORY].map(|memory| {
        let disk = new_store();
        disk.record(false);
        let store = Store::open(world(&disk), &options(memory)).expect("opens");
        let first = store.put(&put("first"), &mut bytes.as_slice()).expect("puts");
        let again = store.put(&put("again"), &mut bytes.as_slice()).expect("puts");
        for id in [first.id, again.id] {
            assert_reads(&store, id, &bytes);
        }
        assert_eq!(budget(&store).left(), memory);
        let usage = store.published.read().usage();
        let roots = [first.id, again.id].map(|id| store.record(&store.place(&SCOPE.into()).expect("there"), id));
        store.close().expect("closes");
        verify_clean(&disk);
        (usage, first.sha256, roots.map(|record| record.expect("there").blob_root))
    });
    assert_eq!(stored[0], stored[1]);
}

#[test]
fn a_source_that_fails_in_the_middle_leaves_nothing_behind() {
    let (disk, _fault, store) = faulty();
    let bytes = noise(LEN, 2);
    for at in [5_000, 3 << 20, LEN] {
        let mut source = Acting::new(&bytes, at, || Err(io::Error::other(Error::new(Kind::NotReady, "still written"))));
        assert_eq!(store.put(&put("cut"), &mut source).expect_err("the source fails").kind(), Kind::NotReady);
        assert_nothing_is_left(&store);
    }
    let id = store.put(&put("whole"), &mut bytes.as_slice()).expect("puts").id;
    assert_reads(&store, id, &bytes);
    store.close().expect("closes");
    verify_clean(&disk);
}

#[test]
fn a_source_that_panics_ends_every_thread_and_the_store_goes_on() {
    let (disk, _fault, store) = faulty();
    let bytes = noise(LEN, 3);
    let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        store.put(&put("cut"), &mut Acting::new(&bytes, 5 << 20, || panic!("a source that panics")))
    }));
    assert!(panics.is_err());
    assert_eq!(budget(&store).left(), INGEST_MEMORY);
    let id = store.put(&put("whole"), &mut bytes.as_slice()).expect("puts").id;
    assert_reads(&store, id, &bytes);
    store.close().expect("closes");
    // What the panic left is released by the next open.
    open(&disk).expect("opens").close().expect("closes");
    verify_clean(&disk);
}

#[test]
fn a_disk_that_is_full_in_the_middle_fails_the_stream_alone() {
    let (disk, fault, store) = faulty();
    let bytes = noise(LEN, 4);
    // Early enough that the log has not gone on into such a file: a write to it that fails poisons the store.
    for at in [0, 1, 20] {
        fault.arm(Plan::new(at, Fault::Errno(ENOSPC)).class(Class::Write).files("segment-2"));
        let error = store.put(&put("cut"), &mut bytes.as_slice());
        fault.disarm();
        match error {
            // A write to the log's own file may be the one that was hit.
            Err(error) if error.kind() == Kind::NoSpace => assert_nothing_is_left(&store),
            other => panic!("write {at}: {other:?}"),
        }
    }
    let id = store.put(&put("whole"), &mut bytes.as_slice()).expect("puts").id;
    assert_reads(&store, id, &bytes);
    store.close().expect("closes");
    let store = open(&disk).expect("opens");
    assert!(store.report().destroyed_files.is_empty(), "a put that fails removes what it made ahead");
    store.close().expect("closes");
    verify_clean(&disk);
}

#[test]
fn a_write_that_fails_poisons_the_store_and_ends_every_stream() {
    for class in [Class::Write, Class::Sync] {
        let (disk, fault, store) = faulty();
        let (bytes, other) = (noise(LEN, 5), noise(LEN, 6));
        let (failing, waiting) = std::thread::scope(|scope| {
            let (fails, has_failed) = std::sync::mpsc::channel::<()>();
            let (store, other) = (&store, &other);
            // This stream is in its middle, with all its stages busy, until the other one has failed.
            let waiting = scope.spawn(move || {
                let wait = move || has_failed.recv().map_err(io::Error::other);
                store.put(&put("waits"), &mut Acting::new(other, 5 << 20, wait)).map(drop)
            });
            let failing = store
                .put(
                    &put("fails"),
                    &mut Acting::new(&bytes, 5 << 20, || {
                        fault.arm(Plan::new(3, Fault::Errno(EIO)).sticky().class(class).files("segment-"));
                        Ok(())
                    }),
                )
                .map(drop);
            // It does not wait any more if the fault hit it first.
            let _ = fails.send(());
            (failing, waiting.join().expect("no panic"))
        });
        for result in [failing, waiting] {
            let kind = result.expect_err("poisoned").kind();
            // Whichever is hit hears of the call that failed, the other of what came of it.
            assert!(matches!(kind, Kind::Io | Kind::Poisoned | Kind::OutcomeUnknown), "{class:?}: {kind:?}");
        }
        let after = store.put(&put("after"), &mut bytes.as_slice()).expect_err("poisoned").kind();
        assert_eq!(after, Kind::Poisoned);
        assert_eq!(budget(&store).left(), INGEST_MEMORY);
        fault.disarm();
        drop(store);
        open(&disk).expect("opens").close().expect("closes");
        verify_clean(&disk);
    }
}

#[test]
fn a_source_that_waits_holds_little_and_its_memory_serves_others() {
    let (_disk, _fault, store) = faulty();
    let bytes = noise(LEN, 7);
    // A grant for the pipeline, and one block more.
    let few = 20 << 20;
    let mut source = Acting::new(&bytes, 6 << 20, || {
        while budget(&store).left() < INGEST_MEMORY - few {
            std::thread::yield_now();
        }
        store.put(&put("inner"), &mut noise(LEN, 8).as_slice()).map(drop).map_err(io::Error::other)
    });
    let id = store.put(&put("outer"), &mut source).expect("puts").id;
    drop(source);
    assert_reads(&store, id, &bytes);
    assert_nothing_is_left(&store);
}

#[test]
fn a_stream_that_finds_no_memory_goes_on_by_itself() {
    let (disk, _fault, store) = faulty();
    let bytes = noise(LEN, 9);
    let all = budget(&store).take(INGEST_MEMORY - 1000).expect("there");
    let id = store.put(&put("alone"), &mut bytes.as_slice()).expect("puts").id;
    assert_eq!(budget(&store).left(), 1000);
    drop(all);
    assert_reads(&store, id, &bytes);
    store.close().expect("closes");
    verify_clean(&disk);
}
