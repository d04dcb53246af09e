use super::*;
use crate::disk::{
    AlignedBuffer, read_exact, retry,
    sim::{SimDisk, SyncFault},
    write_all, write_all_pieces,
};

const EINTR: i32 = 4;
const EIO: i32 = 5;

fn name(text: &str) -> Name {
    Name::new(text).expect("a flat name")
}

fn disks() -> (FaultDisk, SimDisk) {
    let sim = SimDisk::new(1);
    (FaultDisk::new(Arc::new(sim.clone())), sim)
}

/// Some work that uses every call and repeats what was interrupted.
fn work(disk: &dyn Disk) -> io::Result<Vec<u8>> {
    let Lock::Held(_guard) = retry(|| disk.lock(LockMode::Exclusive, "work"))? else { panic!("nobody else has it") };
    let file = retry(|| disk.open(&name("segment-1"), OpenOptions::CREATE))?;
    retry(|| file.zero(0, 4 * BLOCK))?;
    write_all(&*file, &[7; 5000], 100)?;
    retry(|| file.punch(0, BLOCK))?;
    retry(|| file.set_len(5100))?;
    retry(|| file.sync(SyncKind::All))?;
    retry(|| disk.rename(&name("segment-1"), &name("segment-2")))?;
    let other = retry(|| disk.open(&name("other"), OpenOptions::CREATE))?;
    write_all(&*other, b"x", 0)?;
    retry(|| disk.unlink(&name("other")))?;
    retry(|| disk.sync_dir())?;
    retry(|| disk.free_bytes())?;
    retry(|| file.allocated())?;
    assert_eq!(retry(|| disk.list())?.names.len(), 2);
    let len = usize::try_from(retry(|| file.len())?).expect("small");
    let mut bytes = vec![0; len];
    read_exact(&*file, &mut bytes, 0)?;
    assert_eq!(retry(|| file.map(0, len))?.as_slice(), bytes);
    Ok(bytes)
}

fn work_result() -> Vec<u8> {
    let mut bytes = vec![7; 5100];
    bytes[..4096].fill(0);
    bytes
}

#[test]
fn without_a_plan_every_call_is_counted_and_none_is_spoilt() {
    let (disk, sim) = disks();
    assert_eq!(work(&disk).expect("nothing fails"), work_result());
    let trace = disk.trace();
    assert_eq!((disk.calls(), disk.hits()), (trace.len() as u64, 0));
    let count = |class| trace.iter().filter(|call| call.class == class).count();
    assert_eq!([Class::Read, Class::Write, Class::Sync, Class::Meta].map(count), [2, 5, 2, 9]);
    assert_eq!(trace[2].to_string(), "zero segment-1 0+16384");
    assert_eq!(trace[3].to_string(), "write_at segment-1 100+5000");
    assert_eq!(sim.image().names().count(), 2);
    disk.set_tracing(false);
    disk.list().expect("listed");
    assert!(disk.trace().is_empty() && disk.calls() > trace.len() as u64);
}

#[test]
fn an_error_at_any_call_reaches_the_caller_once_or_for_ever() {
    let (disk, _) = disks();
    work(&disk).expect("nothing fails");
    let calls = disk.calls();
    for at in 0..calls {
        for sticky in [false, true] {
            let (disk, _) = disks();
            let plan = Plan::new(at, Fault::Errno(EIO));
            disk.arm(if sticky { plan.sticky() } else { plan });
            let error = work(&disk).expect_err("one call fails");
            assert_eq!(error.raw_os_error(), Some(EIO), "call {at}");
            let trace = disk.trace();
            assert_eq!((disk.hits(), disk.calls()), (1, at + 1));
            let last = trace.last().expect("one at least");
            assert_eq!(last.fault, Some(Fault::Errno(EIO)), "call {at} is {last}");
        }
    }
    disk.arm(Plan::new(calls, Fault::Errno(EIO)));
    assert!(disk.hits() == 0, "there is no such call");
}

#[test]
fn an_interrupted_call_is_invisible_to_who_repeats_it() {
    let mut hits = 0;
    for at in 0..100 {
        let (disk, _) = disks();
        disk.arm(Plan::new(at, Fault::Errno(EINTR)));
        assert_eq!(work(&disk).expect("repeated"), work_result(), "call {at}");
        hits += disk.hits();
    }
    assert_eq!(hits, 18, "one for each call");
}

#[test]
fn short_reads_and_writes_are_continued() {
    for fault in [Fault::ShortHalf, Fault::ShortOne] {
        for at in 0..20 {
            let (disk, _) = disks();
            disk.arm(Plan::new(at, fault));
            assert_eq!(work(&disk).expect("continued"), work_result(), "{fault:?} at {at}");
        }
        let (disk, _) = disks();
        disk.arm(Plan::new(0, fault).class(Class::Write).sticky());
        let file = disk.open(&name("a"), OpenOptions::CREATE).expect("created");
        write_all(&*file, &[1; 300], 0).expect("continued");
        assert_eq!(disk.hits(), if fault == Fault::ShortOne { 300 } else { 10 });
    }
}

#[test]
fn a_call_that_takes_nothing_is_an_error_and_not_a_loop() {
    let (disk, _) = disks();
    let file = disk.open(&name("a"), OpenOptions::CREATE).expect("created");
    disk.arm(Plan::new(0, Fault::Zero).class(Class::Write).sticky());
    assert_eq!(write_all(&*file, b"abc", 0).expect_err("takes none").kind(), io::ErrorKind::WriteZero);
    file.set_len(10).expect("only reads and writes take less");
    disk.arm(Plan::new(0, Fault::Zero).class(Class::Read));
    assert_eq!(read_exact(&*file, &mut [0; 3], 0).expect_err("ends early").kind(), io::ErrorKind::UnexpectedEof);
    read_exact(&*file, &mut [0; 3], 0).expect("once only");
}

#[test]
fn a_short_direct_write_stays_aligned() {
    let (disk, _) = disks();
    let file = disk.open(&name("a"), OpenOptions { direct: true, ..OpenOptions::CREATE }).expect("created");
    let buffer = AlignedBuffer::zeroed(5 * 4096);
    for (fault, wanted) in [(Fault::ShortHalf, 2 * 4096), (Fault::ShortOne, 4096)] {
        disk.arm(Plan::new(0, fault));
        assert_eq!(file.write_at(buffer.as_slice(), 0).expect("aligned"), wanted);
    }
}

#[test]
fn pieces_that_are_taken_short_are_written_all_the_same() {
    let (disk, _) = disks();
    let file = disk.open(&name("a"), OpenOptions::CREATE).expect("created");
    for fault in [Fault::ShortHalf, Fault::ShortOne] {
        disk.arm(Plan::new(0, fault).class(Class::Write).sticky());
        let mut pieces = [&b"abcde"[..], b"f", b"ghij"].map(io::IoSlice::new);
        write_all_pieces(&*file, &mut pieces, 2).expect("written");
        disk.disarm();
        let mut bytes = [0; 12];
        read_exact(&*file, &mut bytes, 0).expect("read");
        assert_eq!(&bytes, b"\0\0abcdefghij");
    }
    disk.arm(Plan::new(0, Fault::Zero).class(Class::Write));
    let taken_none = write_all_pieces(&*file, &mut [io::IoSlice::new(b"a")], 0);
    assert_eq!(taken_none.expect_err("takes none").kind(), io::ErrorKind::WriteZero);
}

#[test]
fn a_plan_counts_only_what_it_concerns() {
    let (disk, _) = disks();
    disk.arm(Plan::new(1, Fault::Errno(EIO)).class(Class::Write).files("segment-").sticky());
    let open = |text| disk.open(&name(text), OpenOptions::CREATE).expect("not concerned");
    let [segment, table] = ["segment-1", "table-1"].map(open);
    write_all(&*table, b"x", 0).expect("not concerned");
    write_all(&*segment, b"x", 0).expect("number 0");
    table.sync(SyncKind::Data).expect("not concerned");
    for _ in 0..2 {
        segment.set_len(0).expect_err("number 1, and all after it");
        table.set_len(0).expect("not concerned");
        segment.sync(SyncKind::Data).expect("not concerned");
    }
    disk.disarm();
    segment.set_len(0).expect("taken back");
    assert_eq!(disk.hits(), 2);
}

#[test]
fn a_sticky_fault_stays_in_its_class() {
    let (disk, _) = disks();
    let file = disk.open(&name("a"), OpenOptions::CREATE).expect("created");
    disk.arm(Plan::new(1, Fault::Errno(EIO)).sticky());
    write_all(&*file, b"x", 0).expect("number 0");
    file.sync(SyncKind::Data).expect_err("number 1");
    write_all(&*file, b"x", 0).expect("another class");
    disk.sync_dir().expect_err("the same class");
}

#[test]
fn a_failed_zeroing_has_done_a_part() {
    let (disk, sim) = disks();
    let file = disk.open(&name("a"), OpenOptions::CREATE).expect("created");
    write_all(&*file, &[1; 16384], 0).expect("written");
    disk.arm(Plan::new(0, Fault::Errno(28)));
    assert_eq!(file.zero(0, 16384).expect_err("full").kind(), io::ErrorKind::StorageFull);
    assert_eq!(sim.image().read(&name("a")).expect("there"), [[0; 8192], [1; 8192]].concat());
}

#[test]
fn the_hook_lets_the_disk_behind_fail_in_its_own_way() {
    for (fault, live) in [(SyncFault::EioKeep, b"new"), (SyncFault::EioRevert, b"old")] {
        let (disk, sim) = disks();
        let hooked = sim.clone();
        disk.set_hook(move || hooked.fail_sync(Some(fault)));
        let file = disk.open(&name("a"), OpenOptions::CREATE).expect("created");
        write_all(&*file, b"old", 0).expect("written");
        file.sync(SyncKind::Data).expect("synced");
        write_all(&*file, b"new", 0).expect("written");
        disk.arm(Plan::new(0, Fault::Hook).class(Class::Sync));
        assert_eq!(file.sync(SyncKind::Data).expect_err("fails").raw_os_error(), Some(EIO));
        file.sync(SyncKind::Data).expect("once only");
        assert_eq!(sim.image().read(&name("a")).expect("there"), live);
    }
}
