//! Checkpoints that fail: what they leave behind, and that puts go on.

use super::{
    checkpoints::{TINY, nothing_is_left_over, open_with},
    *,
};
use crate::{
    checkpoint::Tuning,
    disk::fault::{Call, Class, Fault, FaultDisk, Plan},
};

const EIO: i32 = 5;

/// A store with twenty records behind a disk that can spoil calls.
fn behind_faults() -> (SimDisk, FaultDisk, Store) {
    let disk = new_store();
    let fault = FaultDisk::new(Arc::new(disk.clone()));
    let world = World { disk: Arc::new(fault.clone()), ..world(&disk) };
    let store = Store::open(world, &OpenOptions::new(OpenMode::Write, "test")).expect("opens");
    (0..20).try_for_each(|number| commit(&store, number)).expect("commits");
    (disk, fault, store)
}

fn goes_on(disk: &SimDisk, store: Store) {
    commit(&store, 20).expect("goes on");
    store.checkpoint().expect("makes one under other names");
    nothing_is_left_over(disk, &store);
    drop(store);
    let store = open(disk).expect("opens");
    assert!(store.report().problems.is_empty(), "{:?}", store.report());
    assert_eq!(numbers(&store).len(), 21);
}

/// What was done to the file of the first call that was spoilt, behind it.
fn done_since(calls: &[Call]) -> (Name, Vec<&'static str>) {
    let hit = calls.iter().position(|call| call.fault.is_some()).expect("one was hit");
    let name = calls[hit].name.clone().expect("it has a name");
    let of_it = calls[hit + 1..].iter().filter(|call| call.name.as_ref() == Some(&name));
    let methods = of_it.map(|call| call.method).collect();
    (name, methods)
}

#[test]
fn a_file_of_a_checkpoint_that_cannot_be_written_or_synced_is_destroyed_and_never_tried_again() {
    let mut faults = 0;
    for (front, class) in ["table-", "manifest-"].into_iter().flat_map(|f| [(f, Class::Write), (f, Class::Sync)]) {
        for at in 0.. {
            let (disk, fault, store) = behind_faults();
            fault.set_tracing(true);
            fault.arm(Plan::new(at, Fault::Errno(EIO)).class(class).files(front));
            let done = store.checkpoint();
            if fault.hits() == 0 {
                break;
            }
            faults += 1;
            assert_eq!(done.expect_err("it cannot be written").kind(), Kind::Io, "{front} {class:?} {at}");
            goes_on(&disk, store);
            let (name, since) = done_since(&fault.trace());
            assert!(since.contains(&"unlink"), "{name}: {since:?}");
            assert!(!since.iter().any(|method| matches!(*method, "write_at" | "sync")), "{name}: {since:?}");
        }
    }
    assert!(faults >= 8, "{faults}: copies of table and manifest, written and synced");
}

#[test]
fn what_a_failed_checkpoint_cannot_destroy_the_next_open_does() {
    let (disk, fault, store) = behind_faults();
    // The first copy stands when the second cannot be made, nor anything be unlinked.
    fault.set_tracing(true);
    fault.arm(Plan::new(3, Fault::Errno(EIO)).sticky().files("table-"));
    assert_eq!(store.checkpoint().expect_err("fails").kind(), Kind::Io);
    fault.disarm();
    let (name, _) = done_since(&fault.trace());
    let left: Vec<_> = disk.image().names().filter(|name| crate::table::parse_name(name).is_some()).cloned().collect();
    let [first, mirror] = crate::table::names(crate::table::parse_name(&name).expect("a table"));
    assert_eq!((left.as_slice(), &name), ([first].as_slice(), &mirror));
    drop(store);
    let store = open(&disk).expect("opens");
    assert_eq!(store.report().destroyed_files, [left[0].to_string()]);
    goes_on(&disk, store);
}

#[test]
fn a_checkpoint_without_room_fails_alone_and_is_made_once_there_is_room() {
    let disk = new_store();
    let store = open_with(&disk, Tuning::default());
    (0..20).try_for_each(|number| commit(&store, number)).expect("commits");
    disk.set_capacity(disk.allocated() + 4096);
    assert_eq!(store.checkpoint().expect_err("no room").kind(), Kind::NoSpace);
    (20..30).try_for_each(|number| commit(&store, number)).expect("the log goes on");
    assert_eq!(numbers(&store).len(), 30);
    disk.set_capacity(u64::MAX);
    store.checkpoint().expect("there is room");
    nothing_is_left_over(&disk, &store);
    drop(store);
    assert_eq!(numbers(&open(&disk).expect("opens")).len(), 30);
}

#[test]
fn memory_stays_bounded_where_no_checkpoint_can_be_made() {
    let disk = new_store();
    // So small that the log has room for what does not fit into memory.
    let tuning = Tuning { memtable_bytes: 1 << 10, ..TINY };
    let store = open_with(&disk, tuning);
    disk.set_capacity(disk.allocated());
    let refused = (0..1000).find_map(|number| commit(&store, number).err()).expect("is refused");
    assert_eq!(refused.kind(), Kind::NoSpace);
    assert!(store.published.read().memory_bytes() < 8 * tuning.memtable_bytes);
    assert!(refused.message().contains("checkpoint"), "{refused}");
    disk.set_capacity(u64::MAX);
    commit(&store, 5000).expect("goes on by itself once there is room");
    assert!(store.stats().expect("counts").tables > 0, "with a checkpoint");
    nothing_is_left_over(&disk, &store);
}
