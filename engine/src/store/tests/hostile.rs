//! Stores whose every checksum is right and whose numbers are those of somebody who means harm: an error or damage, and no panic.

use super::*;
use crate::{
    format::{
        keyspace::segment_key,
        manifest::SegmentState,
        segment_header::SegmentHeader,
        superblock::{COPIES, LEN, LogEnd, Superblock},
        value::SegmentValue,
    },
    ids::Epoch,
    limits::FILE_ID_MAX,
};

const LAST: u64 = u64::MAX - 63;

/// A store of a few commits, closed or not.
fn image(clean: bool) -> Image {
    let disk = new_store();
    let store = open(&disk).expect("opens");
    for number in 0..5 {
        commit(&store, number).expect("commits");
    }
    if clean {
        store.close().expect("closes");
    }
    disk.image()
}

fn superblock(image: &Image) -> Superblock {
    let bytes = image.read(&crate::superblock::name()).expect("a superblock");
    Superblock::decode(bytes[..LEN].try_into().expect("a copy"), 0).expect("valid")
}

fn with_superblock(image: &Image, change: impl FnOnce(&mut Superblock)) -> Image {
    let mut superblock = superblock(image);
    change(&mut superblock);
    let bytes: Vec<u8> = (0..COPIES).flat_map(|copy| superblock.encode(copy)).collect();
    let mut image = image.clone();
    image.insert(&crate::superblock::name(), &bytes);
    image
}

fn with_header(image: &Image, id: FileId, change: impl FnOnce(&mut SegmentHeader)) -> Image {
    let mut bytes = image.read(&segment::name(id)).expect("a segment");
    let uuid = superblock(image).uuid;
    let front = bytes[..LEN].try_into().expect("a copy");
    let mut header = SegmentHeader::decode(front, uuid, id, 0).expect("valid");
    change(&mut header);
    bytes[..2 * LEN].copy_from_slice(&header.encode());
    let mut image = image.clone();
    image.insert(&segment::name(id), &bytes);
    image
}

/// Does all that can be done with it, whatever comes of that.
fn use_it(image: &Image) -> Option<Store> {
    let disk = SimDisk::from_image(image, 1);
    let _ = Store::verify(&world(&disk), &VerifyOptions { deep: true, refs: true, memory: 0 }, &mut |_, _| {});
    drop(read_only(&disk));
    let store = open(&disk).ok()?;
    for number in 100..300 {
        if store.writing.is_none() || commit(&store, number).is_err() {
            return Some(store);
        }
    }
    let _ = store.stats();
    let _ = store.close();
    open(&disk).ok()
}

#[test]
fn a_log_end_at_the_end_of_numbers_is_damage() {
    for offset in [LAST, 1 << 62, 1 << 20] {
        let image = with_superblock(&image(true), |s| s.clean = s.clean.map(|end| LogEnd { offset, ..end }));
        let store = use_it(&image);
        assert!(store.is_none_or(|s| !s.report().problems.is_empty()), "{offset}");
    }
}

#[test]
fn a_replay_position_behind_the_segment_is_damage() {
    for clean in [true, false] {
        for offset in [LAST, 1 << 62, 1 << 20] {
            let image = with_superblock(&image(clean), |s| s.replay.offset = offset);
            let store = use_it(&image);
            assert!(store.is_none_or(|s| s.report().read_only.is_some()), "{offset}");
        }
    }
}

#[test]
fn numbers_that_are_used_up_refuse_writes_and_leave_the_store_readable() {
    for exhausted in [
        with_superblock(&image(true), |s| s.sequence = u64::MAX),
        with_superblock(&image(true), |s| s.sequence = u64::MAX - 1),
        with_superblock(&image(true), |s| s.ceiling_file = FileId(FILE_ID_MAX)),
        with_superblock(&image(true), |s| s.ceiling_file = FileId(FILE_ID_MAX - 2000)),
    ] {
        use_it(&exhausted);
        let disk = SimDisk::from_image(&exhausted, 1);
        drop(open(&disk).map(|store| (0..300).try_for_each(|number| commit(&store, number))));
        assert!(numbers(&read_only(&disk).expect("opens")).len() >= 5);
    }
}

#[test]
fn an_lsn_at_the_end_of_numbers_is_no_panic() {
    let last = Lsn(u64::MAX);
    use_it(&with_superblock(&image(true), |s| s.clean = s.clean.map(|end| LogEnd { lsn: last, ..end })));
    use_it(&with_superblock(&image(true), |s| s.replay.lsn = last));
    let fresh = with_superblock(&image(false), |s| s.replay.lsn = last);
    use_it(&with_header(&fresh, FileId(1), |h| h.first_lsn = last));
}

#[test]
fn a_segment_that_says_it_is_endless_ends_with_its_file() {
    let image = with_header(&image(true), FileId(1), |h| h.capacity = u64::MAX);
    let store = use_it(&image).expect("opens");
    assert!(store.segments.all().len() > 1, "the log rolled");
    assert!(store.report().problems.is_empty());
}

#[test]
fn segments_that_end_at_the_end_of_numbers_are_counted_without_a_panic() {
    let disk = new_store();
    let store = open(&disk).expect("opens");
    let value = SegmentValue { epoch: Epoch([1; 16]), state: SegmentState::Sealed, end: LAST };
    let edits = (90..93).map(|id| Edit::put(Keyspace::Segment, segment_key(FileId(id)), value.encode())).collect();
    let commits = &store.writing.as_ref().expect("open for writing").commit;
    commits.run(Request::new(400, |_| Ok((edits, ())))).expect("commits");
    store.stats().expect("counts");
    store.close().expect("closes");
    let report = Store::verify(&world(&disk), &VerifyOptions::default(), &mut |_, _| {}).expect("verifies");
    assert_eq!(report.problems.len(), 3, "{:?}", report.problems);
}
