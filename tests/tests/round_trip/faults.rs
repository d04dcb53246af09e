//! Damage that a put heals or a read names, and disks that fail while a stream is written.

use holdfast::{
    Kind,
    disk::{
        Name,
        fault::{Class, Fault, Plan},
        sim::SyncFault,
    },
    ids::ArtifactId,
};

use super::bench::{Bench, LOW, OPTIONS, noise, put, with_image};

/// Places of the chunks and pages of an artifact that is alone in its store: file, offset of the payload.
fn places(bench: &Bench) -> Vec<(Name, u64)> {
    with_image(&bench.files(), |image| {
        let live = image.catalog.chunks.values().filter(|chunk| chunk.references > 0);
        live.map(|c| (Name::new(&format!("segment-{}", c.segment)).expect("flat"), c.offset + 64)).collect()
    })
}

fn flip(bench: &mut Bench, place: &(Name, u64)) {
    bench.change(|image| {
        image.flip(&place.0, place.1 * 8 + 3);
    });
}

/// An artifact alone in its store, in the log or in bulk segments.
fn alone(len: usize) -> (Bench, ArtifactId, Vec<u8>) {
    let mut bench = Bench::new(OPTIONS, LOW);
    let bytes = noise(6, len);
    let id = bench.put(&put("alone"), &bytes).id;
    (bench, id, bytes)
}

#[test]
fn a_damaged_chunk_or_page_is_named_and_the_next_put_of_its_bytes_heals_it() {
    for len in [300, 3_000, 30_000] {
        for index in 0..places(&alone(len).0).len().min(6) {
            let (mut bench, id, bytes) = alone(len);
            let place = places(&bench)[index].clone();
            flip(&mut bench, &place);
            let error = bench.get(id, None).expect_err("damaged");
            assert_eq!(error.kind(), Kind::Corrupt);
            let named = error.place();
            assert_eq!(named.file.as_deref(), Some(place.0.as_str()));
            assert_eq!((named.offset, named.artifact), (Some(place.1 - 64), Some(id)));

            let healing = bench.store().put(&put("healing"), &mut &*bytes).expect("puts").id;
            for id in [id, healing] {
                assert!(bench.get(id, None).expect("healed") == bytes);
            }
            bench.reopen(true);
            assert!(bench.get(id, None).expect("healed") == bytes);
        }
    }
}

#[test]
fn a_read_that_the_disk_fails_is_an_error_of_the_disk_and_of_that_read_alone() {
    let (bench, id, bytes) = alone(30_000);
    bench.disk.arm(Plan::new(0, Fault::Errno(5)).class(Class::Read));
    assert_eq!(bench.get(id, None).expect_err("EIO").kind(), Kind::Io);
    assert!(bench.get(id, None).expect("reads again") == bytes);
}

#[test]
fn bytes_that_cannot_be_read_are_written_again_by_the_next_put_of_them() {
    let (mut bench, id, bytes) = alone(30_000);
    bench.disk.arm(Plan::new(0, Fault::Errno(5)).class(Class::Read).sticky());
    let again = bench.store().put(&put("again"), &mut &*bytes).expect("puts its own bytes").id;
    bench.disk.disarm();
    bench.contents.insert(again, bytes);
    assert!(bench.get(id, None).is_ok());
    bench.check();
}

#[test]
fn a_full_disk_refuses_a_long_put_alone_and_takes_it_when_there_is_room_again() {
    let (mut bench, _, _) = alone(30_000);
    let bytes = noise(7, 400_000);
    let held = bench.held();
    for extra in [0, 5_000, 70_000, 200_000] {
        bench.sim.set_capacity(bench.sim.allocated() + extra);
        let error = bench.store().put(&put("too much"), &mut &*bytes).expect_err("no room");
        assert_eq!(error.kind(), Kind::NoSpace, "{error}");
        bench.sim.set_capacity(u64::MAX);
        assert_eq!(bench.held(), held);
        bench.check();
    }
    bench.put(&put("fits"), &bytes);
    bench.check();
    bench.reopen(false);
    bench.check();
}

#[test]
fn a_process_without_descriptors_refuses_a_long_put_and_stays_healthy() {
    let (mut bench, _, _) = alone(300);
    bench.disk.arm(Plan::new(0, Fault::Errno(24)).class(Class::Meta).files("segment-"));
    let bytes = noise(7, 30_000);
    assert_eq!(bench.store().put(&put("a"), &mut &*bytes).expect_err("EMFILE").kind(), Kind::Limit);
    bench.put(&put("a"), &bytes);
    bench.check();
}

#[test]
fn a_write_or_sync_of_a_bulk_segment_that_fails_ends_writing_until_the_next_open() {
    // Files of the log are written by short puts too; the long one's first writes and syncs are those of its segment.
    for class in [Class::Write, Class::Sync] {
        let (mut bench, _, _) = alone(300);
        let bytes = noise(7, 100_000);
        bench.disk.arm(Plan::new(0, Fault::Errno(5)).class(class).files("segment-"));
        bench.store().put(&put("fails"), &mut &*bytes).expect_err("EIO");
        assert_eq!(bench.disk.hits(), 1);
        assert_eq!(bench.store().put(&put("later"), &mut &b"x"[..]).expect_err("poisoned").kind(), Kind::Poisoned);
        bench.disk.disarm();
        bench.reopen(false);
        bench.check();
        bench.put(&put("works"), &bytes);
        bench.check();
    }
}

#[test]
fn what_a_failed_sync_lost_is_never_referenced() {
    for fault in [SyncFault::EioKeep, SyncFault::EioRevert] {
        let (mut bench, _, _) = alone(300);
        let sim = bench.sim.clone();
        bench.disk.set_hook(move || sim.fail_sync(Some(fault)));
        bench.disk.arm(Plan::new(0, Fault::Hook).class(Class::Sync).files("segment-"));
        bench.store().put(&put("fails"), &mut &*noise(7, 100_000)).expect_err("EIO");
        bench.disk.disarm();
        bench.sim.fail_sync(None);
        bench.reopen(false);
        bench.check();
        bench.put(&put("works"), &noise(7, 100_000));
        bench.check();
    }
}
