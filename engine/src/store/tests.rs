//! Log, commit and recovery through the open store, on the simulated disk, with edits that are made by hand.

use super::*;
use crate::{
    catalog::State as _,
    clock::ManualClock,
    commit::Request,
    disk::{
        Name,
        sim::{Budget, Crashes, Image, SimDisk},
    },
    entropy::SeededEntropy,
    format::{commit::Edit, keyspace::Keyspace, superblock::Options, value::AccountValue},
    ids::{FileId, Lsn, ScopeHash, TenantNumber},
    ownership::Destination,
    segment,
};

mod checkpoints;
mod deep;
mod full;
mod hostile;
mod missing;
mod pipeline;
mod put_off;
mod release;
mod repair;
mod schedules;

const SMALL: Options = Options {
    chunks: crate::chunker::ChunkParams { min: 64, avg: 1024, max: 4096, single_max: 512 },
    log_segment_first: 16 << 10,
    log_segment_max: 32 << 10,
    bulk_segment: 64 << 10,
    ..Options::DEFAULT
};

fn world(disk: &SimDisk) -> World {
    World {
        disk: Arc::new(disk.clone()),
        clock: Arc::new(ManualClock::new(Time(1_000_000))),
        entropy: Arc::new(SeededEntropy::new(7)),
    }
}

fn new_store() -> SimDisk {
    let disk = SimDisk::new(1);
    Store::init(&world(&disk), &InitOptions { options: SMALL }).expect("a store is made");
    disk
}

fn open(disk: &SimDisk) -> Result<Store> {
    Store::open(world(disk), &OpenOptions::new(OpenMode::Write, "test"))
}

fn read_only(disk: &SimDisk) -> Result<Store> {
    Store::open(world(disk), &OpenOptions::new(OpenMode::Read, "test"))
}

fn account(number: u64) -> AccountRef {
    let mut hash = [0; 16];
    hash[..8].copy_from_slice(&number.to_le_bytes());
    AccountRef { tenant: TenantNumber(1), account: ScopeHash(hash) }
}

/// Commits a record of about `len` bytes under a number.
fn commit(store: &Store, number: u64) -> Result<()> {
    let writing = store.writing.as_ref().expect("open for writing");
    writing.commit.run(Request::new(400, move |stage| {
        let value = AccountValue { created_lsn: stage.lsn(), created_at: stage.now(), text: "a".repeat(100) };
        Ok((vec![Edit::put(Keyspace::Account, account(number).key(), value.encode())], ()))
    }))
}

/// The numbers that are there.
fn numbers(store: &Store) -> Vec<u64> {
    let entries = store.published.read().scan(Keyspace::Account, &[], None, usize::MAX).expect("in memory");
    entries.iter().map(|(key, _)| u64::from_le_bytes(key[4..12].try_into().expect("8"))).collect()
}

fn verify_clean(disk: &SimDisk) {
    let report = Store::verify(&world(disk), &VerifyOptions { deep: true, refs: true, memory: 0 }, &mut |_, _| {})
        .expect("verifies");
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

fn sorted(mut numbers: Vec<u64>) -> Vec<u64> {
    numbers.sort_unstable();
    numbers
}

#[test]
fn a_new_store_opens_verifies_and_closes_clean() {
    let disk = new_store();
    verify_clean(&disk);
    let store = open(&disk).expect("opens");
    assert_eq!(store.report().adopted_commits, 0);
    assert_eq!(store.report().torn_bytes, 0);
    store.close().expect("closes");
    verify_clean(&disk);
}

#[test]
fn commits_survive_close_drop_and_many_segments() {
    let disk = new_store();
    let mut expected = Vec::new();
    for round in 0..6 {
        let store = open(&disk).expect("opens");
        assert_eq!(sorted(numbers(&store)), expected, "round {round}");
        for n in 0..60 {
            let number = round * 100 + n;
            commit(&store, number).expect("commits");
            expected.push(number);
        }
        if round % 2 == 0 {
            store.close().expect("closes");
            verify_clean(&disk);
        }
    }
    let store = read_only(&disk).expect("opens");
    assert_eq!(sorted(numbers(&store)), expected);
    assert!(store.segments.all().len() > 3, "the log rolled");
    assert!(store.report().problems.is_empty(), "{:?}", store.report().problems);
}

#[test]
fn a_read_only_open_writes_nothing() {
    let disk = new_store();
    let store = open(&disk).expect("opens");
    commit(&store, 1).expect("commits");
    drop(store);
    let before = disk.image().digest();
    let store = read_only(&disk).expect("opens");
    assert_eq!(numbers(&store), vec![1]);
    assert_eq!(store.put_error(), Kind::ReadOnly);
    drop(store);
    assert_eq!(disk.image().digest(), before);
}

impl Store {
    fn put_error(&self) -> Kind {
        self.writing().err().map_or(Kind::Io, |e| e.kind())
    }
}

#[test]
fn a_second_writer_and_a_reader_beside_a_writer_are_told_who_has_the_store() {
    let disk = new_store();
    let store = open(&disk).expect("opens");
    for result in [open(&disk), read_only(&disk)] {
        let error = result.err().expect("locked");
        assert_eq!(error.kind(), Kind::Locked);
        assert!(error.message().contains("test"), "{error}");
    }
    drop(store);
    let (first, second) = (read_only(&disk).expect("opens"), read_only(&disk).expect("opens too"));
    assert_eq!(open(&disk).err().expect("locked").kind(), Kind::Locked);
    drop((first, second));
    open(&disk).expect("opens");
}

/// Every crash image of a run of commits: what was acknowledged is there, in order, and nothing else but whole groups.
#[test]
fn every_crash_image_of_commits_rolls_and_reopens_holds_what_was_acknowledged() {
    let disk = SimDisk::from_image(&new_store().image(), 1);
    let mut acked = 0;
    for round in 0..3 {
        let store = open(&disk).expect("opens");
        for _ in 0..25 {
            acked += 1;
            commit(&store, acked).expect("commits");
            disk.ack(acked);
        }
        if round == 1 {
            store.close().expect("closes");
        }
    }
    let log = disk.log();
    let mut images = 0_u64;
    let mut adopted = 0;
    let mut torn = 0;
    let budget = Budget::default();
    let _ = Crashes::new(&log, 3, budget).for_each_image(log.indexes(), &mut |image, point| {
        images += 1;
        if !images.is_multiple_of(7) {
            return std::ops::ControlFlow::Continue(());
        }
        let acked = log.acked_before(point.op_index).last().unwrap_or(0);
        let disk = SimDisk::from_image(image, 5);
        let store = open(&disk).unwrap_or_else(|e| panic!("{point}: {e}"));
        let found = sorted(numbers(&store));
        assert!(found.len() as u64 >= acked, "{point}: {} of {acked}", found.len());
        assert_eq!(found, (1..=found.len() as u64).collect::<Vec<_>>(), "{point}");
        assert!(store.report().problems.is_empty(), "{point}: {:?}", store.report());
        adopted += store.report().adopted_commits;
        torn += store.report().torn_bytes;
        commit(&store, 1000).unwrap_or_else(|e| panic!("{point}: {e}"));
        drop(store);
        let again = open(&disk).unwrap_or_else(|e| panic!("{point}: {e}"));
        assert_eq!(numbers(&again).len(), found.len() + 1, "{point}");
        std::ops::ControlFlow::Continue(())
    });
    assert!(images > 5_000, "{images}");
    assert!(adopted > 0 && torn > 0, "adopted {adopted}, torn {torn}");
}

fn flip_in_commit(image: &Image, number: u64) -> Image {
    // The text of a number's record stands in its commit frame: find its key in segment 1.
    let name = segment::name(FileId(1));
    let bytes = image.read(&name).expect("segment 1");
    let key = account(number).key();
    let at = bytes.windows(key.len()).position(|w| w == key).expect("the commit is in segment 1");
    let mut image = image.clone();
    image.flip(&name, at as u64 * 8);
    image
}

#[test]
fn a_damaged_commit_among_synced_ones_opens_read_only_and_loses_itself_alone() {
    let disk = new_store();
    let store = open(&disk).expect("opens");
    for number in 1..=20 {
        commit(&store, number).expect("commits");
    }
    store.close().expect("closes");
    let disk = SimDisk::from_image(&flip_in_commit(&disk.image(), 7), 1);
    let before = disk.image().digest();
    let store = open(&disk).expect("opens");
    assert!(store.report().read_only.is_some());
    let expected: Vec<u64> = (1..=20).filter(|n| *n != 7).collect();
    assert_eq!(sorted(numbers(&store)), expected);
    drop(store);
    assert_eq!(disk.image().digest(), before, "nothing is written over a damaged log");
    let report = Store::verify(&world(&disk), &VerifyOptions::default(), &mut |_, _| {}).expect("verifies");
    assert!(report.problems.iter().any(|p| p.file.as_deref() == Some("segment-1") && p.offset.is_some()));
}

#[test]
fn the_last_commit_of_a_store_that_was_not_closed_is_witnessed_by_its_mark() {
    let disk = new_store();
    let store = open(&disk).expect("opens");
    for number in 1..=5 {
        commit(&store, number).expect("commits");
    }
    drop(store);
    let disk = SimDisk::from_image(&flip_in_commit(&disk.image(), 5), 1);
    let store = open(&disk).expect("opens");
    assert!(store.report().read_only.is_some(), "a damaged acknowledged commit is not an end of the log");
}

#[test]
fn a_missing_log_segment_opens_read_only_and_is_named() {
    let disk = new_store();
    let store = open(&disk).expect("opens");
    for number in 1..=200 {
        commit(&store, number).expect("commits");
    }
    let segments: Vec<Name> = store.segments.all().iter().map(|(id, _)| segment::name(*id)).collect();
    assert!(segments.len() > 3);
    store.close().expect("closes");
    let mut lost = Vec::new();
    for missing in &segments {
        let mut image = disk.image();
        image.remove(missing);
        let disk = SimDisk::from_image(&image, 1);
        let store = open(&disk).expect("opens");
        assert!(store.report().read_only.is_some(), "{missing}");
        assert!(store.report().problems.iter().any(|p| p.file.as_deref() == Some(missing.as_str())), "{missing}");
        let there = numbers(&store);
        assert!(!there.is_empty(), "{missing}");
        lost.extend((1..=200).filter(|number| !there.contains(number)));
    }
    // Every segment takes its own commits with it, and no other's.
    assert_eq!(sorted(lost), (1..=200).collect::<Vec<u64>>());
}

#[test]
fn every_missing_log_segment_is_named() {
    let disk = new_store();
    let store = open(&disk).expect("opens");
    for number in 1..=200 {
        commit(&store, number).expect("commits");
    }
    let segments: Vec<Name> = store.segments.all().iter().map(|(id, _)| segment::name(*id)).collect();
    store.close().expect("closes");
    let mut image = disk.image();
    let missing = &segments[..2];
    assert!(missing.iter().all(|name| image.remove(name)));
    let store = open(&SimDisk::from_image(&image, 1)).expect("opens");
    for name in missing {
        assert!(store.report().problems.iter().any(|p| p.file.as_deref() == Some(name.as_str())), "{name}");
    }
}

#[test]
fn a_store_without_its_superblock_is_corrupt_and_init_leaves_it_alone() {
    let disk = new_store();
    let store = open(&disk).expect("opens");
    commit(&store, 1).expect("commits");
    store.close().expect("closes");
    let mut image = disk.image();
    image.remove(&crate::superblock::name());
    let disk = SimDisk::from_image(&image, 1);
    assert_eq!(open(&disk).err().expect("no root").kind(), Kind::Corrupt);
    let again = Store::init(&world(&disk), &InitOptions { options: SMALL });
    assert_eq!(again.expect_err("refused").kind(), Kind::Corrupt);
    assert_eq!(disk.image().digest(), image.digest());
}

#[test]
fn every_crash_of_an_init_leaves_nothing_or_a_store() {
    let disk = SimDisk::new(1);
    Store::init(&world(&disk), &InitOptions { options: SMALL }).expect("a store is made");
    let log = disk.log();
    let (mut stores, mut unfinished) = (0, 0);
    let _ = Crashes::new(&log, 3, Budget::default()).for_each_image(log.indexes(), &mut |image, point| {
        let disk = SimDisk::from_image(image, 5);
        match open(&disk) {
            Ok(_) => stores += 1,
            Err(e) => {
                assert_eq!(e.kind(), Kind::InvalidArgument, "{point}: {e}");
                Store::init(&world(&disk), &InitOptions { options: SMALL }).unwrap_or_else(|e| panic!("{point}: {e}"));
                unfinished += 1;
            }
        }
        std::ops::ControlFlow::Continue(())
    });
    assert!(stores > 0 && unfinished > 0, "{stores} {unfinished}");
}

#[test]
fn a_full_disk_refuses_requests_and_lets_privileged_ones_pass() {
    let disk = new_store();
    let store = open(&disk).expect("opens");
    disk.set_capacity(disk.allocated());
    let mut number = 0;
    let error = loop {
        number += 1;
        if let Err(error) = commit(&store, number) {
            break error;
        }
        assert!(number < 10_000, "the disk fills");
    };
    assert_eq!(error.kind(), Kind::NoSpace);
    let writing = store.writing.as_ref().expect("open for writing");
    let freed = Request::new(200, |_| Ok((vec![Edit::delete(Keyspace::Account, account(1).key())], ())));
    writing.commit.run(freed.privileged()).expect("the reserve makes room");
    assert!(!numbers(&store).contains(&1));
    disk.set_capacity(u64::MAX);
    for _ in 0..100 {
        commit(&store, number).expect("space is back");
    }
    store.close().expect("closes");
    verify_clean(&disk);
}

#[test]
fn lsns_rise_across_reopens() {
    let disk = new_store();
    let mut last = Lsn::NONE;
    for _ in 0..4 {
        let store = open(&disk).expect("opens");
        commit(&store, 1).expect("commits");
        let lsn = store.writing.as_ref().expect("open for writing").commit.published_lsn();
        assert!(lsn > last);
        last = lsn;
    }
}

const SCOPE: AccountScope<'static> = AccountScope { tenant: "default", account: "default" };

fn put(name: &str) -> Put<'_> {
    Put {
        scope: Destination::Account(SCOPE),
        name,
        origin: crate::format::artifact::Origin::Upload,
        media_type: None,
        op_id: None,
        order: None,
        expires_at: None,
        size_hint: None,
        logical_size: None,
        supersedes: None,
    }
}

fn noise(len: usize, seed: u8) -> Vec<u8> {
    let mut bytes = vec![0; len];
    blake3::Hasher::new().update(&[seed]).finalize_xof().fill(&mut bytes);
    bytes
}

#[test]
fn small_and_long_streams_come_back_after_a_reopen_and_verify_clean() {
    let disk = new_store();
    let tuning = crate::ingest::Tuning { small_stream_max: 8 << 10, progress_bytes: 32 << 10 };
    let options = OpenOptions { tuning, ..OpenOptions::new(OpenMode::Write, "test") };
    let sizes = [0, 1, 511, 512, 513, 4096, 8191, 8192, 8193, 20_000, 70_000, 200_000];
    let mut ids = Vec::new();
    let store = Store::open(world(&disk), &options).expect("opens");
    for (n, size) in (0..).zip(&sizes) {
        let bytes = noise(*size, n);
        for name in ["a", "b"] {
            let reply = store.put(&put(name), &mut bytes.as_slice()).expect("puts");
            assert_eq!(reply.size, *size as u64);
            ids.push((reply.id, bytes.clone()));
        }
    }
    store.close().expect("closes");
    verify_clean(&disk);
    let store = open(&disk).expect("opens");
    let scope = SCOPE;
    for (id, bytes) in &ids {
        let mut out = Vec::new();
        store.get(scope, *id, &Get::WHOLE, &mut out).expect("reads");
        assert!(out == *bytes, "{} bytes", bytes.len());
    }
    let listed = store.list(scope, None, 1000).expect("lists");
    assert_eq!(
        listed.artifacts.iter().map(|a| a.id).collect::<Vec<_>>(),
        ids.iter().map(|(id, _)| *id).collect::<Vec<_>>()
    );
    drop(store);
    verify_clean(&disk);
}

/// An open that held the catalog while it committed the aborts waited for itself.
#[test]
fn an_open_aborts_what_a_killed_put_left() {
    struct Kill(usize);
    impl io::Read for Kill {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            let len = bytes.len().min(self.0).min(1000);
            if len == 0 {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            bytes[..len].copy_from_slice(&noise(len, u8::try_from(self.0 % 251).expect("below 256")));
            self.0 -= len;
            Ok(len)
        }
    }
    let disk = SimDisk::from_image(&new_store().image(), 1);
    let tuning = crate::ingest::Tuning { small_stream_max: 4 << 10, progress_bytes: 16 << 10 };
    // Commits on the way, and not as far as several threads come.
    let options = OpenOptions { tuning, ingest_memory: 0, ..OpenOptions::new(OpenMode::Write, "test") };
    let store = Store::open(world(&disk), &options).expect("opens");
    let begun = disk.op_count();
    store.put(&put("cut"), &mut Kill(100_000)).expect_err("the source fails");
    drop(store);
    let log = disk.log();
    let mut aborted = 0;
    let _ = Crashes::new(&log, 3, Budget::default()).for_each_image(begun..log.ops().len(), &mut |image, point| {
        if point.variant != 0 {
            return std::ops::ControlFlow::Continue(());
        }
        let disk = SimDisk::from_image(image, 5);
        let store = open(&disk).unwrap_or_else(|e| panic!("{point}: {e}"));
        aborted += store.report().aborted_uploads;
        assert!(store.list(SCOPE, None, 10).expect("lists").artifacts.is_empty(), "{point}");
        assert_eq!(store.stats().expect("counts").chunks, 0, "{point}");
        std::ops::ControlFlow::Continue(())
    });
    assert!(aborted > 0);
}

/// A crash between the two syncs of a close leaves older copies in a store that says that it is clean.
#[test]
fn a_close_that_crashed_between_its_two_syncs_verifies_clean() {
    let disk = SimDisk::from_image(&new_store().image(), 1);
    let store = open(&disk).expect("opens");
    commit(&store, 1).expect("commits");
    let begun = disk.op_count();
    store.close().expect("closes");
    let log = disk.log();
    let mut clean = 0;
    let _ = Crashes::new(&log, 3, Budget::default()).for_each_image(begun..log.ops().len(), &mut |image, point| {
        let disk = SimDisk::from_image(image, 5);
        let read = crate::superblock::read(&disk).expect("reads").expect("there");
        if read.superblock.clean.is_some() && read.damaged.is_empty() {
            clean += 1;
            let report = Store::verify(&world(&disk), &VerifyOptions::default(), &mut |_, _| {}).expect("verifies");
            assert!(report.problems.is_empty(), "{point}: {:?}", report.problems);
        }
        std::ops::ControlFlow::Continue(())
    });
    assert!(clean > 1);
}
