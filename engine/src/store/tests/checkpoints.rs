//! Checkpoints and merges under an open store: what they keep and what they leave behind.

use std::collections::BTreeSet;

use super::{release, *};
use crate::{checkpoint::Tuning, disk, manifest, table};

pub(super) const TINY: Tuning = Tuning { memtable_bytes: 4 << 10, log_bytes: 1 << 20, table_pages: 5 };

pub(super) fn open_tiny(disk: &SimDisk) -> Store {
    open_with(disk, TINY)
}

pub(super) fn open_with(disk: &SimDisk, checkpoints: Tuning) -> Store {
    let options = OpenOptions { checkpoints, ..OpenOptions::new(OpenMode::Write, "test") };
    Store::open(world(disk), &options).expect("opens")
}

fn remove(store: &Store, number: u64) {
    let edit = Edit::delete(Keyspace::Account, account(number).key());
    let commit = &store.writing.as_ref().expect("open for writing").commit;
    commit.run(Request::new(100, move |_| Ok((vec![edit], ())))).expect("commits");
}

/// Every file is one that superblock, manifest or log name.
pub(super) fn nothing_is_left_over(disk: &SimDisk, store: &Store) {
    let root = crate::superblock::read(disk).expect("reads").expect("a superblock").superblock;
    let named: Vec<_> = store.published.read().tables().metas().iter().flat_map(|t| table::names(t.id)).collect();
    for name in disk.list().expect("lists").names {
        let is_table = table::parse_name(&name).is_some();
        assert!(!is_table || named.contains(&name), "{name} is left over");
        assert!(manifest::parse_name(&name).is_none_or(|generation| generation == root.manifest.0), "{name}");
    }
    for name in named {
        disk.open(&name, disk::OpenOptions::READ).expect("a table that is named is there");
    }
}

#[test]
fn an_open_behind_a_checkpoint_replays_nothing_and_finds_everything() {
    let disk = new_store();
    let store = open(&disk).expect("opens");
    (0..60).try_for_each(|number| commit(&store, number)).expect("commits");
    let before = numbers(&store);
    let done = store.checkpoint().expect("makes one");
    assert!(done.generation > 1 && done.tables > 0, "{done:?}");
    let again = store.checkpoint().expect("has nothing to do");
    assert_eq!(again.generation, done.generation);
    nothing_is_left_over(&disk, &store);
    store.close().expect("closes");
    let rebuilt = crate::recovery::rebuild(&world(&disk).disk).expect("rebuilds");
    assert_eq!(rebuilt.found.replayed_bytes(rebuilt.superblock.replay.offset), 64, "the mark of the close");
    let store = open(&disk).expect("opens");
    assert_eq!(numbers(&store), before);
    assert_eq!(store.stats().expect("counts").tables, done.tables);
    drop(store);
    verify_clean(&disk);
}

#[test]
fn puts_and_removals_through_many_checkpoints_and_merges_are_a_map() {
    let disk = new_store();
    let mut model: BTreeSet<u64> = BTreeSet::new();
    let mut next = 1_u64;
    let mut random = move || {
        next = next.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        next >> 33
    };
    let mut most = 0;
    for round in 0..12 {
        let store = open_tiny(&disk);
        // A merge that was under way when the store went has left tables that nothing names.
        nothing_is_left_over(&disk, &store);
        for _ in 0..120 {
            let number = random() % 300;
            if random() % 3 == 0 {
                remove(&store, number);
                model.remove(&number);
            } else {
                commit(&store, number).expect("commits");
                model.insert(number);
            }
            most = most.max(store.published.read().tables().runs().len());
        }
        assert_eq!(sorted(numbers(&store)), model.iter().copied().collect::<Vec<_>>(), "round {round}");
        for number in 0..300 {
            let there = store.published.read().account(&account(number)).expect("reads").is_some();
            assert_eq!(there, model.contains(&number));
        }
        if round % 2 == 0 {
            store.close().expect("closes");
        }
    }
    assert!((2..=14).contains(&most), "{most} runs");
    let store = open_tiny(&disk);
    assert_eq!(sorted(numbers(&store)), model.iter().copied().collect::<Vec<_>>());
    store.close().expect("closes");
    verify_clean(&disk);
}

#[test]
fn who_entered_tables_before_they_were_merged_reads_on_and_then_they_go() {
    let disk = new_store();
    let store = open_tiny(&disk);
    let mut entered = None;
    for number in 0..2000 {
        commit(&store, number).expect("commits");
        let tables = store.published.read().tables();
        if entered.is_none() && tables.runs().len() >= 4 {
            entered = Some((number, tables));
        }
        if let Some((at, old)) = &entered
            && number > at + 60
        {
            let now = store.published.read().tables().metas();
            let gone: Vec<_> = old.metas().into_iter().filter(|table| !now.contains(table)).collect();
            assert!(!gone.is_empty(), "they were merged meanwhile");
            for known in 0..at - 60 {
                let found = old.get(Keyspace::Account, &account(known).key()).expect("reads");
                assert!(found.flatten().is_some(), "{known}");
            }
            let there = |table: &crate::format::manifest::ManifestTable| {
                table::names(table.id).iter().all(|name| disk.open(name, disk::OpenOptions::READ).is_ok())
            };
            assert!(gone.iter().all(there), "they stay while somebody reads them");
            entered = None;
            break;
        }
    }
    drop(entered);
    store.checkpoint().expect("makes one");
    nothing_is_left_over(&disk, &store);
}

#[test]
fn every_damaged_byte_of_a_table_a_mirror_or_a_manifest_changes_no_answer_and_is_named() {
    let disk = new_store();
    let store = open(&disk).expect("opens");
    (0..20).try_for_each(|number| commit(&store, number)).expect("commits");
    store.checkpoint().expect("makes one");
    (20..23).try_for_each(|number| commit(&store, number)).expect("commits");
    store.close().expect("closes");
    let image = disk.image();
    let files: Vec<Name> = image
        .names()
        .filter(|name| table::parse_name(name).is_some() || manifest::parse_name(name).is_some())
        .cloned()
        .collect();
    assert!(files.len() >= 4, "{files:?}");
    for name in &files {
        let len = image.len(name).expect("it is named");
        for offset in (0..len).step_by(if len > 1000 { 97 } else { 1 }) {
            let damaged = SimDisk::from_image(&image, 1);
            let file = damaged.open(name, disk::OpenOptions::WRITE).expect("is there");
            let mut byte = [0];
            disk::read_exact(&*file, &mut byte, offset).expect("is there");
            disk::write_all(&*file, &[byte[0] ^ 0x40], offset).expect("writes");
            let report = Store::verify(&world(&damaged), &VerifyOptions::default(), &mut |_, _| {}).expect("verifies");
            let named = report.problems.iter().any(|p| p.file.as_deref() == Some(name.as_str()));
            assert!(named, "{name} at {offset}: {:?}", report.problems);
            let store = read_only(&damaged).expect("opens");
            assert_eq!(numbers(&store).len(), 23, "{name} at {offset}");
        }
    }
}

#[test]
fn a_table_that_lost_both_copies_is_named_and_the_store_takes_no_writes() {
    let disk = new_store();
    let store = open(&disk).expect("opens");
    (0..5).try_for_each(|number| commit(&store, number)).expect("commits");
    store.checkpoint().expect("makes one");
    let lost = store.published.read().tables().metas()[0].id;
    store.close().expect("closes");
    for name in table::names(lost) {
        disk.unlink(&name).expect("is there");
    }
    let before: Vec<_> = disk.image().names().cloned().collect();
    let store = open(&disk).expect("opens all the same");
    assert!(store.report().read_only.is_some() && store.report().problems.len() >= 2, "{:?}", store.report());
    assert_eq!(store.checkpoint().expect_err("takes no writes").kind(), Kind::ReadOnly);
    let error = store.published.read().account(&account(3)).expect_err("never: not there");
    assert_eq!(error.kind(), Kind::Corrupt);
    drop(store);
    assert_eq!(disk.image().names().cloned().collect::<Vec<_>>(), before, "nothing is destroyed");
}

#[test]
fn behind_a_lost_log_the_tables_are_read_and_no_older_commit_is_made_again() {
    let disk = new_store();
    let store = open(&disk).expect("opens");
    for number in 0..200 {
        commit(&store, number).expect("commits");
    }
    remove(&store, 5);
    store.checkpoint().expect("makes one");
    commit(&store, 200).expect("commits");
    let newest = store.writing.as_ref().expect("open for writing").commit.with_log(|log| log.tail().id);
    store.close().expect("closes");
    let (mut beheaded, name) = (disk.image(), segment::name(newest));
    beheaded.write(&name, 0, &[0xff; 8192]);
    disk.unlink(&name).expect("is there");
    for image in [disk.image(), beheaded] {
        let store = open(&SimDisk::from_image(&image, 1)).expect("opens all the same");
        assert!(store.report().read_only.is_some(), "{:?}", store.report());
        let named = store.report().lost.iter().any(|loss| loss.file.as_deref() == Some(name.as_str()));
        assert!(named, "{:?}", store.report());
        let wanted: Vec<u64> = (0..200).filter(|number| *number != 5).collect();
        assert_eq!(sorted(numbers(&store)), wanted, "the newest is lost with the log, and nothing comes back");
    }
}

#[test]
fn every_damaged_bit_of_a_commit_that_no_replay_needs_is_named() {
    let disk = new_store();
    let store = open(&disk).expect("opens");
    // A live chunk keeps the segment.
    release::put(&store, "live", &[1; 100]);
    (0..200).try_for_each(|number| commit(&store, number)).expect("commits");
    store.checkpoint().expect("makes one");
    store.close().expect("closes");
    let image = disk.image();
    let newest = crate::superblock::read(&disk).expect("reads").expect("a superblock").superblock.log_head.0;
    for name in [segment::name(FileId(1)), segment::name(newest)] {
        for offset in (8192..9000).step_by(7) {
            let mut image = image.clone();
            assert!(image.flip(&name, offset * 8 + offset % 8));
            let damaged = SimDisk::from_image(&image, 1);
            let options = VerifyOptions { deep: true, refs: false, memory: 0 };
            let report = Store::verify(&world(&damaged), &options, &mut |_, _| {}).expect("verifies");
            let named = report.problems.iter().any(|p| p.file.as_deref() == Some(name.as_str()));
            assert!(named, "{name} at {offset}: {:?}", report.problems);
            assert_eq!(numbers(&read_only(&damaged).expect("opens")).len(), 201, "with the account of the put");
        }
    }
}
