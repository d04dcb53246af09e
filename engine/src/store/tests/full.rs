//! A disk that is full, a process without descriptors, and what may still be written once something failed.

use super::*;
use crate::{
    disk::{
        self,
        fault::{Class, Fault, FaultDisk, Plan},
        sim::{Mode, Op},
    },
    format::{keyspace::upload_key, upload::Upload},
    ids::UploadId,
};

const ENOSPC: i32 = 28;

/// Commits of the shortest kind until there is no room for another.
fn fill(store: &Store, privileged: bool) {
    let commits = &store.writing.as_ref().expect("open for writing").commit;
    for _ in 0..10_000 {
        let shortest = Request::new(0, |_| Ok((Vec::new(), ()))).forced();
        if commits.run(if privileged { shortest.privileged() } else { shortest }).is_err() {
            return;
        }
    }
    panic!("the disk fills");
}

fn expiring(end: u64) -> Put<'static> {
    Put { expires_at: Some(Time(end)), ..put("ends") }
}

#[test]
fn a_log_of_many_segments_opens_with_few_descriptors() {
    let disk = new_store();
    let store = open(&disk).expect("opens");
    for number in 0..3_000 {
        commit(&store, number).expect("commits");
    }
    assert!(store.segments.all().len() > 20, "{}", store.segments.all().len());
    drop(store);
    disk.set_handles_max(16);
    assert_eq!(numbers(&read_only(&disk).expect("opens")).len(), 3_000);
    assert_eq!(numbers(&open(&disk).expect("opens")).len(), 3_000);
    verify_clean(&disk);
}

#[test]
fn on_a_full_disk_nothing_is_linked_and_what_is_there_can_be_deleted() {
    let disk = new_store();
    let store = open(&disk).expect("opens");
    let ids = [1, 2, 3].map(|n| store.put(&put("kept"), &mut noise(100, n).as_slice()).expect("puts").id);
    disk.set_capacity(disk.allocated());
    fill(&store, false);
    let (from, to) = (SCOPE.into(), SCOPE.into());
    let link = Link { from, id: ids[0], to, name: None, detach: false, op_id: None };
    assert_eq!(store.link(&link).expect_err("no room").kind(), Kind::NoSpace);
    for id in ids {
        assert_eq!(store.delete(SCOPE, id).expect("the reserve has room for it").state.as_str(), "deleted");
    }
    assert!(store.list(SCOPE, None, 10).expect("lists").artifacts.is_empty());
}

#[test]
fn a_long_put_that_finds_the_disk_full_gives_back_what_it_wrote() {
    let disk = new_store();
    let tuning = crate::ingest::Tuning { small_stream_max: 4 << 10, progress_bytes: 32 << 10 };
    // On one thread, so that what is committed on the way, and stays, is the same each time.
    let options = OpenOptions { tuning, ingest_memory: 0, ..OpenOptions::new(OpenMode::Write, "test") };
    let store = Store::open(world(&disk), &options).expect("opens");
    let kept = store.put(&put("kept"), &mut noise(50_000, 9).as_slice()).expect("puts");
    for room in [40 << 10, 300 << 10] {
        let before = disk.allocated();
        disk.set_capacity(before + room);
        for seed in 0..3 {
            let error = store.put(&put("long"), &mut noise(2 << 20, seed).as_slice()).expect_err("no room");
            assert_eq!(error.kind(), Kind::NoSpace);
        }
        let left = disk.allocated() - before;
        // What was committed on the way is dead and stays; what no commit names does not.
        assert!(left < room, "{left} of {room} bytes are gone");
        disk.set_capacity(u64::MAX);
    }
    store.put(&put("long"), &mut noise(2 << 20, 1).as_slice()).expect("space is back");
    let mut out = Vec::new();
    store.get(SCOPE, kept.id, &Get::WHOLE, &mut out).expect("reads");
    assert!(out == noise(50_000, 9));
    store.close().expect("closes");
    verify_clean(&disk);
    open(&disk).expect("opens").close().expect("closes");
    verify_clean(&disk);
}

#[test]
fn a_full_disk_does_not_keep_an_expired_artifact_from_being_told() {
    let disk = new_store();
    let clock = Arc::new(ManualClock::new(Time(1_000_000)));
    let world = World { clock: Arc::<ManualClock>::clone(&clock), ..world(&disk) };
    let store = Store::open(world, &OpenOptions::new(OpenMode::Write, "test")).expect("opens");
    let id = store.put(&expiring(1_000_100), &mut &b"x"[..]).expect("puts").id;
    disk.set_capacity(disk.allocated());
    fill(&store, false);
    clock.advance(200);
    assert_eq!(store.stat(SCOPE, id).expect("reads go on").state, ArtifactState::Expired);
}

/// The number of the first commit that rolls the log of a new store.
fn first_roll() -> u64 {
    let disk = new_store();
    let store = open(&disk).expect("opens");
    let segments = store.segments.all().len();
    let mut number = 0;
    while store.segments.all().len() == segments {
        commit(&store, number).expect("commits");
        number += 1;
    }
    number - 1
}

#[test]
fn nothing_is_written_behind_a_seal_that_a_full_disk_refused() {
    let rolls = first_roll();
    for class in [Class::Write, Class::Sync] {
        let disk = new_store();
        let fault = FaultDisk::new(Arc::new(disk.clone()));
        let world = World { disk: Arc::new(fault.clone()), ..world(&disk) };
        let store = Store::open(world, &OpenOptions::new(OpenMode::Write, "test")).expect("opens");
        for number in 0..rolls {
            commit(&store, number).expect("commits");
        }
        fault.arm(Plan::new(0, Fault::Errno(ENOSPC)).class(class).files("segment-"));
        fault.set_tracing(true);
        let error = commit(&store, rolls).expect_err("the seal fails");
        assert_eq!(fault.hits(), 1);
        assert_eq!(error.kind(), Kind::Poisoned, "{class:?}: room alone mends nothing");
        let hit = fault.trace().iter().position(|call| call.fault.is_some()).expect("one was hit");
        let later: Vec<_> = fault.trace().split_off(hit + 1).into_iter().filter(|c| c.class != Class::Meta).collect();
        assert!(later.is_empty(), "{class:?}: {later:?}");
        assert_eq!(commit(&store, rolls).expect_err("poisoned").kind(), Kind::Poisoned);
        assert_eq!(store.close().expect_err("it is not clean").kind(), Kind::Poisoned);
    }
}

#[test]
fn a_read_only_filesystem_under_the_log_ends_writing_until_the_next_open() {
    let rolls = first_roll();
    let disk = new_store();
    let fault = FaultDisk::new(Arc::new(disk.clone()));
    let world = World { disk: Arc::new(fault.clone()), ..world(&disk) };
    let store = Store::open(world, &OpenOptions::new(OpenMode::Write, "test")).expect("opens");
    for number in 0..rolls {
        commit(&store, number).expect("commits");
    }
    fault.arm(Plan::new(0, Fault::Errno(30)).sticky().class(Class::Write));
    assert_eq!(commit(&store, rolls).expect_err("EROFS").kind(), Kind::ReadOnly);
    fault.disarm();
    assert_eq!(commit(&store, rolls).expect_err("the latch fell").kind(), Kind::ReadOnly);
    assert_eq!(numbers(&store).len() as u64, rolls);
}

#[test]
fn a_store_opens_on_a_full_disk_without_a_reserve() {
    let disk = new_store();
    let store = open(&disk).expect("opens");
    let writing = store.writing.as_ref().expect("open for writing");
    let upload = Upload {
        account: account(1),
        begin_lsn: Lsn::FIRST,
        created_at: Time(1),
        offset: 0,
        declared: None,
        expires_at: None,
        sha_state: None,
        tail: None,
        right_edge: Vec::new(),
    };
    let record = vec![Edit::put(Keyspace::Upload, upload_key(UploadId([1; 16])), upload.encode())];
    writing.commit.run(Request::new(300, move |_| Ok((record, ())))).expect("commits");
    disk.set_capacity(disk.allocated());
    fill(&store, true);
    drop(store);
    let store = open(&disk).expect("opens");
    assert_eq!(store.report().aborted_uploads, 0, "there is no room for that");
    disk.set_capacity(u64::MAX);
    drop(store);
    assert_eq!(open(&disk).expect("opens").report().aborted_uploads, 1);
}

#[test]
fn a_tenant_that_finds_no_room_for_its_record_uses_up_one_number_however_often_it_is_tried() {
    let disk = new_store();
    let store = open(&disk).expect("opens");
    // Enough for a manifest and too little for a log segment.
    disk.set_capacity(disk.allocated() + (8 << 10));
    fill(&store, false);
    let manifests = || disk.log().ops().iter().filter(|op| is_manifest(op)).count();
    let before = manifests();
    for _ in 0..3 {
        assert_eq!(store.create_tenant("acme").expect_err("no room").kind(), Kind::NoSpace);
    }
    assert_eq!(manifests(), before + 2, "both copies of one");
    disk.set_capacity(u64::MAX);
    assert_eq!(store.create_tenant("acme").expect("there is room").number, TenantNumber(2));
    assert_eq!(store.create_tenant("other").expect("there is room").number, TenantNumber(3));
}

fn is_manifest(op: &Op) -> bool {
    matches!(op, Op::Create { name, .. } if name.as_str().starts_with("manifest-"))
}

#[test]
fn a_store_opens_on_a_full_disk_wherever_the_last_process_died_on_it() {
    let disk = new_store();
    let store = open(&disk).expect("opens");
    disk.set_capacity(disk.allocated());
    let begun = disk.op_count();
    fill(&store, true);
    let log = disk.log();
    let mut images = 0;
    let budget = Budget { modes: vec![Mode::KeepAll], ..Budget::default() };
    let _ = Crashes::new(&log, 1, budget).for_each_image(begun..log.ops().len(), &mut |image, point| {
        images += 1;
        let disk = SimDisk::from_image(image, 1);
        disk.set_capacity(disk.allocated());
        if let Err(error) = open(&disk) {
            panic!("{point}: {error} ({:?})", error.place().file);
        }
        std::ops::ControlFlow::Continue(())
    });
    assert!(images > 100, "{images}");
}

#[test]
fn a_decision_that_panics_ends_writing() {
    let disk = new_store();
    let store = open(&disk).expect("opens");
    commit(&store, 1).expect("commits");
    let commits = &store.writing.as_ref().expect("open for writing").commit;
    let run = || commits.run(Request::<()>::new(10, |_| panic!("a bug")));
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err());
    assert_eq!(commit(&store, 2).expect_err("who knows").kind(), Kind::Poisoned);
    assert_eq!(numbers(&store), [1]);
}

/// A group of which one part must find room and the other may use the reserve.
#[test]
fn what_gives_space_back_does_not_need_the_room_of_its_whole_group() {
    let disk = new_store();
    let store = open(&disk).expect("opens");
    disk.set_capacity(disk.allocated());
    fill(&store, false);
    let commits = &store.writing.as_ref().expect("open for writing").commit;
    let (large, small) = std::thread::scope(|threads| {
        let (large, small) = commits.with_log(|_| {
            let large = threads.spawn(|| {
                let large = Request::new(0, |_| Ok((Vec::new(), ()))).forced().with_frames(1, 8 << 20);
                commits.run(large)
            });
            let small = threads.spawn(|| commits.run(Request::new(0, |_| Ok((Vec::new(), ()))).forced().privileged()));
            while commits.waiting() < 2 {
                std::thread::yield_now();
            }
            (large, small)
        });
        (large.join().expect("answered"), small.join().expect("answered"))
    });
    assert_eq!(large.expect_err("no room").kind(), Kind::NoSpace);
    small.expect("the reserve has room for it");
}

#[test]
fn a_commit_does_not_fill_the_disk_to_learn_that_it_is_full() {
    let disk = new_store();
    let store = open(&disk).expect("opens");
    for number in 0..first_roll() {
        commit(&store, number).expect("commits");
    }
    // Room for less than the next segment, and none for the reserve.
    disk.set_capacity(disk.allocated() + (12 << 10));
    commit(&store, 1000).expect("the prepared segment takes it");
    let before = disk.op_count();
    for number in 1001..1005 {
        commit(&store, number).expect("commits");
    }
    let made = disk.log().ops()[before..].iter().filter(|op| matches!(op, Op::Create { .. })).count();
    assert_eq!(made, 0);
    disk.set_capacity(u64::MAX);
    let writing = store.writing.as_ref().expect("open for writing");
    let segments = store.segments.all().len();
    for number in 1005..1100 {
        commit(&store, number).expect("commits");
        if writing.commit.with_log(|log| log.spare().prepared_ids().len()) == 1 {
            assert_eq!(store.segments.all().len(), segments, "it is ready before the log needs it");
            return;
        }
    }
    panic!("room is found when it is back");
}

#[test]
fn the_reserve_is_filled_again_whatever_it_was_needed_for() {
    let rolls = first_roll();
    let disk = new_store();
    let fault = FaultDisk::new(Arc::new(disk.clone()));
    let world = World { disk: Arc::new(fault.clone()), ..world(&disk) };
    let store = Store::open(world.clone(), &OpenOptions::new(OpenMode::Write, "test")).expect("opens");
    let reserved = |disk: &SimDisk| -> u64 {
        let image = disk.image();
        image.names().filter(|n| n.as_str().starts_with("reserve-")).filter_map(|n| image.len(n)).sum()
    };
    let full = reserved(&disk);
    assert!(full > 0);
    for number in 0..rolls {
        commit(&store, number).expect("commits");
    }
    drop(store);
    let store = Store::open(world, &OpenOptions::new(OpenMode::Write, "test")).expect("opens");
    // The prepared segment is zeroed again, on a filesystem that copies on write.
    fault.arm(Plan::new(0, Fault::Errno(ENOSPC)).class(Class::Write).files("segment-"));
    let commits = &store.writing.as_ref().expect("open for writing").commit;
    commits.run(Request::new(400, |_| Ok((Vec::new(), ()))).forced().privileged()).expect("the reserve makes room");
    assert_eq!(fault.hits(), 1);
    assert_eq!(reserved(&disk), full);
}

#[test]
fn a_long_put_stops_writing_when_the_latch_falls() {
    /// Lets a commit of somebody else fail in the middle.
    struct Source<'a> {
        store: &'a Store,
        fault: &'a FaultDisk,
        left: usize,
    }
    impl io::Read for Source<'_> {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            let len = bytes.len().min(self.left).min(1000);
            bytes[..len].copy_from_slice(&noise(len, u8::try_from(self.left % 251).expect("below 256")));
            if self.left > 4_000_000 && self.left - len <= 4_000_000 {
                self.fault.arm(Plan::new(0, Fault::Errno(5)).class(Class::Sync).files("segment-"));
                commit(self.store, 1).expect_err("EIO");
                assert_eq!(self.fault.hits(), 1);
                self.fault.set_tracing(true);
            }
            self.left -= len;
            Ok(len)
        }
    }
    let disk = new_store();
    let fault = FaultDisk::new(Arc::new(disk.clone()));
    let world = World { disk: Arc::new(fault.clone()), ..world(&disk) };
    let store = Store::open(world, &OpenOptions::new(OpenMode::Write, "test")).expect("opens");
    let mut source = Source { store: &store, fault: &fault, left: 6_000_000 };
    assert_eq!(store.put(&put("long"), &mut source).expect_err("poisoned").kind(), Kind::Poisoned);
    let changes = |call: &disk::fault::Call| matches!(call.class, Class::Write | Class::Sync);
    let later: Vec<_> = fault.trace().into_iter().filter(changes).collect();
    assert!(later.is_empty(), "{later:?}");
}

#[test]
fn a_segment_that_was_prepared_is_named_also_where_the_reserve_fails() {
    let disk = new_store();
    let store = open(&disk).expect("opens");
    disk.set_capacity(disk.allocated());
    for number in 0..=first_roll() {
        commit(&store, number).expect("commits");
    }
    drop(store);
    disk.set_capacity(u64::MAX);
    let fault = FaultDisk::new(Arc::new(disk.clone()));
    let world = World { disk: Arc::new(fault.clone()), ..world(&disk) };
    // The first call is its open.
    fault.arm(Plan::new(1, Fault::Errno(5)).files("reserve-"));
    let store = Store::open(world, &OpenOptions::new(OpenMode::Write, "test")).expect("opens");
    assert_eq!(fault.hits(), 1);
    let writing = store.writing.as_ref().expect("open for writing");
    assert_eq!(writing.commit.with_log(|log| log.spare().prepared_ids().len()), 1);
    drop(store);
    assert_eq!(open(&disk).expect("opens").report().destroyed_files, [""; 0]);
}

/// Makes log segments larger than the steps in which they are zeroed.
const STEPPED: Options = Options { log_segment_first: 1 << 20, log_segment_max: 1 << 20, ..SMALL };

#[test]
fn no_group_waits_for_more_than_a_step_of_the_next_segment_and_a_roll_finds_it_ready() {
    use crate::disk::sim::Op;
    let disk = SimDisk::new(1);
    Store::init(&world(&disk), &InitOptions { options: STEPPED }).expect("a store is made");
    let store = open(&disk).expect("opens");
    let (mut rolls, mut segments) = (0, store.segments.all().len());
    for number in 0..400 {
        let before = disk.op_count();
        store
            .put(&put("small"), &mut noise(10_000, u8::try_from(number % 250).expect("below 250")).as_slice())
            .expect("puts");
        commit(&store, number).expect("commits");
        let log = disk.log();
        let done = &log.ops()[before..];
        let zeroed: u64 = done.iter().map(|op| if let Op::Zero { len, .. } = op { *len } else { 0 }).sum();
        assert!(zeroed <= 256 << 10, "{zeroed} bytes of zeros beside two commits");
        if store.segments.all().len() > segments {
            (rolls, segments) = (rolls + 1, store.segments.all().len());
            assert_eq!(zeroed, 0, "the next segment was ready");
        }
    }
    assert!(rolls >= 2, "{rolls}");
    let len = |name: &str| disk.image().names().filter(|n| n.as_str().starts_with(name)).count();
    assert_eq!(len("reserve-"), 1);
    store.close().expect("closes");
    assert_eq!(open(&disk).expect("opens").report().destroyed_files, [""; 0], "a close finishes what was begun");
    verify_clean(&disk);
}

#[test]
fn a_reserve_that_was_given_back_is_filled_again_step_by_step() {
    use crate::disk::sim::Op;
    let disk = SimDisk::new(1);
    Store::init(&world(&disk), &InitOptions { options: STEPPED }).expect("a store is made");
    let store = open(&disk).expect("opens");
    disk.set_capacity(disk.allocated());
    let commits = &store.writing.as_ref().expect("open for writing").commit;
    let rolls = || Request::new(0, |_| Ok((Vec::new(), ()))).forced().privileged().with_frames(1, 900 << 10);
    while commits.run(rolls()).is_ok() {}
    let reserved = || -> u64 {
        let image = disk.image();
        image.names().filter(|n| n.as_str().starts_with("reserve-")).filter_map(|n| image.len(n)).sum()
    };
    assert_eq!(reserved(), 0);
    disk.set_capacity(u64::MAX);
    let before = disk.op_count();
    for number in 0..100 {
        commit(&store, number).expect("commits");
    }
    assert_eq!(reserved(), 1 << 20);
    let steps =
        disk.log().ops()[before..].iter().filter(|op| matches!(op, Op::Zero { len, .. } if *len <= 128 << 10)).count();
    assert!(steps >= 8, "{steps}");
}

/// The offset of the seal of a segment.
fn seal_of(image: &Image, id: FileId) -> u64 {
    let bytes = image.read(&segment::name(id)).expect("a segment");
    let at = bytes.chunks(64).rposition(|frame| frame.starts_with(b"HFr1\x05"));
    at.expect("a seal") as u64 * 64
}

#[test]
fn a_segment_made_for_a_large_group_is_found_also_where_the_seal_before_it_rots() {
    let mut acknowledged = 0;
    // The superblock fails at each of its writes, the last of which follow the answer.
    for write in 0..20 {
        let disk = new_store();
        let fault = FaultDisk::new(Arc::new(disk.clone()));
        let world = World { disk: Arc::new(fault.clone()), ..world(&disk) };
        let store = Store::open(world, &OpenOptions::new(OpenMode::Write, "test")).expect("opens");
        fault.arm(Plan::new(write, Fault::Errno(5)).class(Class::Write).files("superblock"));
        let large = Request::new(400, |stage: &mut crate::commit::Stage<'_>| {
            let value = AccountValue { created_lsn: stage.lsn(), created_at: stage.now(), text: "a".to_owned() };
            Ok((vec![Edit::put(Keyspace::Account, account(7).key(), value.encode())], ()))
        });
        let done = store.writing.as_ref().expect("open for writing").commit.run(large.with_frames(1, 64 << 10));
        if fault.hits() == 0 {
            break;
        }
        drop(store);
        if done.is_err() {
            continue;
        }
        acknowledged += 1;
        let mut image = disk.image();
        let seal = seal_of(&image, FileId(1));
        image.flip(&segment::name(FileId(1)), seal * 8 + 300);
        let store = open(&SimDisk::from_image(&image, 1)).expect("opens");
        assert_eq!(numbers(&store), [7], "write {write}");
        assert!(!store.report().problems.is_empty(), "write {write}");
    }
    assert!(acknowledged > 0, "a write behind the answer was reached");
}

/// A filesystem may let a length outlive a crash that the bytes did not, and show what an unlinked file held there.
#[test]
fn what_a_crash_left_in_the_reserve_is_zeros_again_once_the_store_is_closed() {
    let disk = new_store();
    drop(open(&disk).expect("opens"));
    let image = disk.image();
    let name = image.names().find(|n| n.as_str().starts_with("reserve-")).expect("a reserve").clone();
    let file = disk.open(&name, disk::OpenOptions::WRITE).expect("opens");
    let len = file.len().expect("length");
    for offset in [0, len / 2, len - 1] {
        disk::write_all(&*file, b"s", offset).expect("written");
    }
    // As the next open finds it where no sync of the new bytes came between.
    open(&disk).expect("opens").close().expect("closes");
    verify_clean(&disk);
    assert_eq!(file.len().expect("length"), len);
}
