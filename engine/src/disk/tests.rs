//! What every disk must do alike, run against each of them.

use std::io::ErrorKind;

use super::*;

fn name(text: &str) -> Name {
    Name::new(text).expect("a flat name")
}

fn create(disk: &dyn Disk, text: &str, bytes: &[u8]) -> Box<dyn File> {
    let file = disk.open(&name(text), OpenOptions::CREATE).expect("created");
    write_all(&*file, bytes, 0).expect("written");
    file
}

fn content(disk: &dyn Disk, text: &str) -> Vec<u8> {
    let file = disk.open(&name(text), OpenOptions::READ).expect("opened");
    let mut bytes = vec![0; usize::try_from(file.len().expect("length")).expect("small")];
    read_exact(&*file, &mut bytes, 0).expect("read");
    bytes
}

fn names(disk: &dyn Disk) -> Vec<String> {
    let mut names: Vec<_> = disk.list().expect("listed").names.iter().map(ToString::to_string).collect();
    names.sort();
    names
}

fn kind<T>(result: io::Result<T>) -> ErrorKind {
    result.err().expect("refused").kind()
}

/// Runs each of the functions below as a test of each disk.
macro_rules! conformance {
    ($($test:ident)*) => {
        mod os_disk {
            $(#[test]
            fn $test() {
                let directory = tempfile::tempdir().expect("a temporary directory");
                super::$test(&os::OsDisk::open(directory.path()).expect("ours"));
            })*
            use super::os;
        }

        mod sim_disk {
            $(#[test]
            fn $test() {
                super::$test(&super::sim::SimDisk::new(1));
            })*
        }

        mod fault_disk {
            $(#[test]
            fn $test() {
                let inner = crate::sync::Arc::new(super::sim::SimDisk::new(1));
                super::$test(&super::fault::FaultDisk::new(inner));
            })*
        }
    };
}

conformance! {
    a_new_file_is_empty_and_reads_back_what_was_written
    a_file_is_made_once_and_opened_only_where_it_is
    a_file_opened_for_reading_takes_no_writes
    growing_shows_zeros_and_shrinking_forgets
    punching_gives_blocks_back_and_keeps_the_length
    zeroing_allocates_and_extends
    blocks_set_aside_read_as_zeros_and_extend
    a_rename_replaces_and_an_open_file_outlives_its_name
    a_map_shows_the_range_and_never_more_than_the_file
    pieces_are_written_one_behind_the_other
    direct_writes_are_aligned_and_direct_reads_need_not_be
    one_writer_or_many_readers_hold_the_lock
    a_reader_of_a_directory_without_a_lock_file_makes_none
    who_removes_the_lock_file_does_not_get_the_lock
    offsets_beyond_every_file_are_errors
}

fn a_new_file_is_empty_and_reads_back_what_was_written(disk: &dyn Disk) {
    let file = create(disk, "segment-1", b"");
    assert_eq!((file.len().expect("length"), file.align()), (0, 1));
    write_all(&*file, b"hello", 3).expect("written");
    assert_eq!(file.write_at(b"", 100).expect("nothing"), 0);
    file.sync(SyncKind::Data).expect("synced");
    file.sync(SyncKind::All).expect("synced");
    disk.sync_dir().expect("synced");
    file.drop_cache(0, 0);
    file.drop_cache(0, 8);
    assert_eq!(content(disk, "segment-1"), b"\0\0\0hello");
    let mut bytes = [9; 4];
    assert_eq!(read_full(&*file, &mut bytes, 6).expect("read"), 2);
    assert_eq!(&bytes, b"lo\x09\x09");
    assert_eq!(file.read_at(&mut bytes, 8).expect("the end"), 0);
    assert_eq!(file.read_at(&mut bytes, 1 << 40).expect("far behind the end"), 0);
    assert_eq!(kind(read_exact(&*file, &mut bytes, 6)), ErrorKind::UnexpectedEof);
    assert!(disk.free_bytes().expect("free") > 0);
}

fn a_file_is_made_once_and_opened_only_where_it_is(disk: &dyn Disk) {
    assert_eq!(kind(disk.open(&name("a"), OpenOptions::READ)), ErrorKind::NotFound);
    assert_eq!(kind(disk.open(&name("a"), OpenOptions::WRITE)), ErrorKind::NotFound);
    create(disk, "a", b"1");
    assert_eq!(kind(disk.open(&name("a"), OpenOptions::CREATE)), ErrorKind::AlreadyExists);
    create(disk, "b", b"");
    assert_eq!(names(disk), ["a", "b"]);
    disk.unlink(&name("a")).expect("removed");
    assert_eq!(kind(disk.unlink(&name("a"))), ErrorKind::NotFound);
    assert_eq!(names(disk), ["b"]);
}

fn a_file_opened_for_reading_takes_no_writes(disk: &dyn Disk) {
    create(disk, "a", b"1");
    let file = disk.open(&name("a"), OpenOptions::READ).expect("opened");
    assert!(file.write_at(b"2", 0).is_err());
    assert!(file.set_len(0).is_err());
    assert!(file.punch(0, BLOCK).is_err());
    assert!(file.zero(0, 1).is_err());
    assert_eq!(content(disk, "a"), b"1");
}

fn growing_shows_zeros_and_shrinking_forgets(disk: &dyn Disk) {
    let file = create(disk, "a", &[7; 5000]);
    file.set_len(4000).expect("cut");
    file.set_len(9000).expect("extended");
    let mut wanted = vec![7; 4000];
    wanted.resize(9000, 0);
    assert_eq!(content(disk, "a"), wanted);
    file.set_len(0).expect("cut");
    assert_eq!((file.len().expect("length"), file.allocated().expect("space")), (0, 0));
}

fn punching_gives_blocks_back_and_keeps_the_length(disk: &dyn Disk) {
    let file = create(disk, "a", &vec![7; 64 << 10]);
    file.sync(SyncKind::All).expect("synced");
    let before = file.allocated().expect("space");
    file.punch(BLOCK, 8 * BLOCK).expect("punched");
    file.punch(BLOCK, 0).expect("nothing to do");
    assert!(file.punch(1, BLOCK).is_err());
    assert!(file.punch(0, 100).is_err());
    file.sync(SyncKind::All).expect("synced");
    assert_eq!(before - file.allocated().expect("space"), 8 * BLOCK);
    // Also where the file ends within the range, or before it.
    file.punch(15 * BLOCK, 4 * BLOCK).expect("punched");
    file.punch(1 << 30, BLOCK).expect("punched");
    let mut wanted = vec![7; 64 << 10];
    wanted[4096..9 * 4096].fill(0);
    wanted[15 * 4096..].fill(0);
    assert_eq!(content(disk, "a"), wanted);
}

fn zeroing_allocates_and_extends(disk: &dyn Disk) {
    let file = create(disk, "a", &[7; 10]);
    file.zero(5, 3 << 20).expect("zeroed");
    file.sync(SyncKind::All).expect("synced");
    let mut wanted = vec![7; 5];
    wanted.resize((3 << 20) + 5, 0);
    assert_eq!(content(disk, "a"), wanted);
    assert!(file.allocated().expect("space") >= 3 << 20);
    file.zero(1 << 30, 0).expect("nothing to do");
    assert_eq!(file.len().expect("length"), (3 << 20) + 5);
}

fn blocks_set_aside_read_as_zeros_and_extend(disk: &dyn Disk) {
    let file = create(disk, "a", &[7; 10]);
    file.allocate(0, 4096).expect("set aside");
    file.allocate(4096, 3 << 20).expect("set aside");
    file.sync(SyncKind::All).expect("synced");
    assert_eq!(content(disk, "a"), vec![0; (3 << 20) + 4096]);
    assert!(file.allocated().expect("space") >= 3 << 20);
    file.allocate(1 << 30, 0).expect("nothing to do");
    assert_eq!(file.len().expect("length"), (3 << 20) + 4096);
}

fn a_rename_replaces_and_an_open_file_outlives_its_name(disk: &dyn Disk) {
    let old = create(disk, "old", b"old");
    let new = create(disk, "new", b"new");
    disk.rename(&name("new"), &name("old")).expect("renamed");
    disk.rename(&name("old"), &name("old")).expect("nothing to do");
    assert_eq!(kind(disk.rename(&name("new"), &name("x"))), ErrorKind::NotFound);
    assert_eq!((names(disk), content(disk, "old")), (vec!["old".to_owned()], b"new".to_vec()));
    disk.unlink(&name("old")).expect("removed");
    for (file, text) in [(old, b"old"), (new, b"new")] {
        let mut bytes = [0; 3];
        read_exact(&*file, &mut bytes, 0).expect("read");
        assert_eq!(&bytes, text);
        write_all(&*file, b"more", 3).expect("written");
        file.sync(SyncKind::Data).expect("synced");
    }
    assert!(names(disk).is_empty());
}

fn a_map_shows_the_range_and_never_more_than_the_file(disk: &dyn Disk) {
    let file = create(disk, "a", &[&[1; 5000][..], &[2; 5000]].concat());
    let map = file.map(4999, 2).expect("mapped");
    assert_eq!(map.as_slice(), [1, 2]);
    assert_eq!(file.map(0, 10_000).expect("mapped").as_slice().len(), 10_000);
    assert!(file.map(10_000, 0).expect("mapped").as_slice().is_empty());
    assert_eq!(kind(file.map(9999, 2)), ErrorKind::UnexpectedEof);
    assert!(file.map(u64::MAX, 2).is_err());
}

fn pieces_are_written_one_behind_the_other(disk: &dyn Disk) {
    let file = create(disk, "a", b"0123456789");
    let pieces: [&[u8]; 5] = [b"", b"ab", b"", b"cde", b""];
    write_all_pieces(&*file, &mut pieces.map(IoSlice::new), 3).expect("written");
    assert_eq!(content(disk, "a"), b"012abcde89");
    write_all_pieces(&*file, &mut [], 3).expect("nothing to write");
    write_all_pieces(&*file, &mut [IoSlice::new(b"")], 100).expect("nothing to write");
    assert_eq!(content(disk, "a"), b"012abcde89");
}

fn direct_writes_are_aligned_and_direct_reads_need_not_be(disk: &dyn Disk) {
    let file = disk.open(&name("a"), OpenOptions { direct: true, ..OpenOptions::CREATE }).expect("created");
    let mut buffer = AlignedBuffer::zeroed(8192);
    buffer.as_mut_slice().fill(5);
    write_all(&*file, buffer.as_slice(), 4096).expect("written");
    file.zero(8192, 8192).expect("zeroed");
    let mut wanted = vec![0; 16384];
    wanted[4096..8192].fill(5);
    assert_eq!(content(disk, "a"), wanted);
    let mut bytes = [0; 300];
    assert_eq!(read_full(&*file, &mut bytes, 8000).expect("read"), 300);
    assert_eq!(bytes, wanted[8000..8300]);
    assert_eq!(read_full(&*file, &mut bytes, 16_300).expect("read"), 84);
    assert_eq!(read_full(&*file, buffer.as_mut_slice(), 12_288).expect("read"), 4096);
    if file.align() > 1 {
        assert_eq!(file.align(), 4096);
        assert!(file.write_at(&buffer.as_slice()[..100], 0).is_err());
        assert!(file.write_at(&buffer.as_slice()[..4096], 100).is_err());
        assert!(file.zero(0, 100).is_err());
    }
}

fn one_writer_or_many_readers_hold_the_lock(disk: &dyn Disk) {
    let lock = |mode| disk.lock(mode, "test run").expect("asked");
    let busy = |mode| match lock(mode) {
        Lock::Busy(holder) => holder,
        Lock::Held(_) => panic!("held twice"),
    };
    let held = |mode| match lock(mode) {
        Lock::Busy(holder) => panic!("busy: {holder}"),
        Lock::Held(guard) => guard,
    };
    let writer = held(LockMode::Exclusive);
    for mode in [LockMode::Exclusive, LockMode::Shared] {
        let holder = busy(mode);
        assert!(holder.starts_with("pid ") && holder.ends_with(": test run"), "{holder}");
    }
    drop(writer);
    let readers = [held(LockMode::Shared), held(LockMode::Shared)];
    // The writer before them is not taken for the holder.
    assert_eq!(busy(LockMode::Exclusive), "");
    drop(readers);
    drop(held(LockMode::Exclusive));
    assert_eq!(names(disk), ["LOCK"]);
}

fn a_reader_of_a_directory_without_a_lock_file_makes_none(disk: &dyn Disk) {
    let Lock::Held(guard) = disk.lock(LockMode::Shared, "reader").expect("asked") else { panic!("nobody holds it") };
    assert!(names(disk).is_empty());
    drop(guard);
}

fn who_removes_the_lock_file_does_not_get_the_lock(disk: &dyn Disk) {
    let lock = |mode| disk.lock(mode, "test").expect("asked");
    let busy = |mode| matches!(lock(mode), Lock::Busy(holder) if holder.is_empty());
    let Lock::Held(writer) = lock(LockMode::Exclusive) else { panic!("nobody holds it") };
    disk.unlink(&name("LOCK")).expect("removed");
    for mode in [LockMode::Exclusive, LockMode::Shared] {
        assert!(busy(mode), "{mode:?}: the writer is still there");
    }
    assert!(names(disk).is_empty(), "who was refused made no file");
    drop(writer);

    let Lock::Held(reader) = lock(LockMode::Shared) else { panic!("nobody holds it") };
    assert!(busy(LockMode::Exclusive), "a reader holds it without the file");
    drop(reader);
    assert!(matches!(lock(LockMode::Exclusive), Lock::Held(_)));
}

fn offsets_beyond_every_file_are_errors(disk: &dyn Disk) {
    let file = create(disk, "a", b"1");
    for offset in [u64::MAX, u64::MAX - 1, i64::MAX as u64] {
        assert!(file.write_at(b"23", offset).is_err(), "{offset}");
        assert!(file.zero(offset, 2).is_err(), "{offset}");
    }
    assert!(file.set_len(u64::MAX).is_err());
    assert!(file.punch(u64::MAX - 4095, 4096).is_err());
    assert_eq!(content(disk, "a"), b"1");
}

#[test]
fn names_are_flat() {
    for good in ["LOCK", "segment-1", "manifest-3.a", "superblock", "0"] {
        assert_eq!(Name::new(good).map(|n| n.to_string()).as_deref(), Some(good));
    }
    let long = "a".repeat(65);
    for bad in ["", ".", "..", ".hidden", "a/b", "/", "A", "a b", "a\0", "\u{e9}", long.as_str()] {
        assert_eq!(Name::new(bad), None, "{bad:?}");
    }
}
