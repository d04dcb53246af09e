use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::disk::{BLOCK, Disk, File, LockMode, Name, OpenOptions, SyncKind, sim::SimDisk, sim::SyncFault, write_all};

fn name(text: &str) -> Name {
    Name::new(text).expect("a flat name")
}

fn create(disk: &SimDisk, text: &str) -> Box<dyn File> {
    disk.open(&name(text), OpenOptions::CREATE).expect("created")
}

fn write(file: &dyn File, offset: u64, bytes: &[u8]) {
    write_all(file, bytes, offset).expect("written");
}

/// A disk on which file `a` holds these bytes, durably.
fn disk_with(bytes: &[u8]) -> (SimDisk, Box<dyn File>) {
    let mut image = Image::new();
    image.insert(&name("a"), bytes);
    let disk = SimDisk::from_image(&image, 1);
    let file = disk.open(&name("a"), OpenOptions::WRITE).expect("there");
    (disk, file)
}

fn crashes_of(log: &OpLog, modes: &[Mode], each: &mut dyn FnMut(&Image, &CrashPoint)) {
    let budget = Budget { modes: modes.to_vec(), ..Budget::default() };
    let last = log.indexes().end - 1;
    let end = Crashes::new(log, 1, budget).for_each_image(last..last + 1, &mut |image, point| {
        each(image, point);
        ControlFlow::Continue(())
    });
    assert!(end.is_continue());
}

/// What a file holds in each image of a crash after the last operation; `None` where it is not.
fn contents(disk: &SimDisk, mode: Mode, file: &str) -> Vec<Option<Vec<u8>>> {
    let mut found = Vec::new();
    crashes_of(&disk.log(), &[mode], &mut |image, _| found.push(image.read(&name(file))));
    found
}

fn texts(disk: &SimDisk, mode: Mode) -> Vec<String> {
    let text = |bytes: Option<Vec<u8>>| String::from_utf8(bytes.unwrap_or_default()).expect("text");
    contents(disk, mode, "a").into_iter().map(text).collect()
}

/// The names of each image.
fn listings(disk: &SimDisk, mode: Mode) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    crashes_of(&disk.log(), &[mode], &mut |image, _| {
        found.insert(image.names().map(Name::as_str).collect::<Vec<_>>().join(" "));
    });
    found
}

#[test]
fn bytes_need_a_sync_and_names_a_sync_of_the_directory() {
    let disk = SimDisk::new(1);
    let file = create(&disk, "a");
    write(&*file, 0, b"one");
    assert_eq!(contents(&disk, Mode::DropAll, "a"), [None]);
    assert_eq!(texts(&disk, Mode::KeepAll), ["one"]);
    file.sync(SyncKind::Data).expect("synced");
    assert_eq!(contents(&disk, Mode::DropAll, "a"), [None], "synced bytes without a name are lost");
    disk.sync_dir().expect("synced");
    assert_eq!(texts(&disk, Mode::DropAll), ["one"]);
    assert!(contents(&disk, Mode::KeepAll, "a").is_empty(), "with nothing pending M1 repeats M0");

    let other = create(&disk, "b");
    write(&*other, 0, b"two");
    disk.sync_dir().expect("synced");
    assert_eq!(contents(&disk, Mode::DropAll, "b"), [Some(Vec::new())], "a durable name without bytes");
}

#[test]
fn prefixes_keep_the_order() {
    let (disk, file) = disk_with(b"....");
    for (offset, text) in [(0, b"1"), (1, b"2"), (2, b"3")] {
        write(&*file, offset, text);
    }
    file.set_len(2).expect("cut");
    assert_eq!(texts(&disk, Mode::Prefix), ["1...", "12..", "123."]);
}

#[test]
fn a_short_write_is_torn_at_every_byte() {
    let (disk, file) = disk_with(b"......");
    write(&*file, 0, b"x");
    write(&*file, 1, b"abcd");
    let torn = ["xa....", "xab...", "xabc.."];
    assert_eq!(texts(&disk, Mode::Cut), torn);
    // It stays torn while other files are synced.
    create(&disk, "b").sync(SyncKind::All).expect("synced");
    assert_eq!(texts(&disk, Mode::Cut), torn);
    file.sync(SyncKind::Data).expect("synced");
    assert!(texts(&disk, Mode::Cut).is_empty());
}

#[test]
fn a_long_write_is_torn_beside_the_edges_of_sectors() {
    let (disk, file) = disk_with(b"");
    write(&*file, 100, &[1; 1500]);
    let lens: Vec<_> =
        contents(&disk, Mode::Cut, "a").iter().map(|bytes| bytes.as_ref().expect("there").len()).collect();
    assert_eq!(lens, [511, 512, 513, 1023, 1024, 1025, 1535, 1536, 1537]);
}

#[test]
fn zeros_where_only_zeros_are_make_one_piece() {
    let (disk, file) = disk_with(b"");
    file.zero(0, 1 << 20).expect("zeroed");
    assert_eq!(contents(&disk, Mode::Sectors, "a").len(), 2);
    assert_eq!(contents(&disk, Mode::Cut, "a").len(), 1);
    write(&*file, 5000, b"x");
    file.zero(4096, 4096).expect("zeroed");
    // One piece for the file's first zeros, one for the write, eight for the zeros that hide it.
    assert_eq!(contents(&disk, Mode::Sectors, "a").len(), 1 << 10);
}

#[test]
fn sectors_are_kept_in_any_combination() {
    let (disk, file) = disk_with(&[b'.'; 1600]);
    write(&*file, 500, &[b'x'; 600]);
    write(&*file, 1500, b"y");
    let images = contents(&disk, Mode::Sectors, "a");
    let shape = |bytes: &Vec<u8>| [500, 511, 512, 1023, 1024, 1099, 1500].map(|at: usize| char::from(bytes[at]));
    let shapes: BTreeSet<String> =
        images.iter().map(|bytes| shape(bytes.as_ref().expect("there")).iter().collect()).collect();
    assert_eq!((images.len(), shapes.len()), (16, 16));
    assert!(shapes.contains("..xx..y") && shapes.contains("xx..xx.") && shapes.contains("......."), "{shapes:?}");
    assert!(images.iter().flatten().all(|bytes| bytes.len() == 1600 && bytes[499] == b'.' && bytes[1100] == b'.'));
}

#[test]
fn a_later_sector_can_be_there_without_an_earlier_one() {
    let (disk, file) = disk_with(b"");
    write(&*file, 0, &[7; 20 * 512]);
    let holes = contents(&disk, Mode::Sectors, "a").into_iter().flatten();
    let holes: Vec<_> = holes.filter(|bytes| bytes.len() == 20 * 512 && bytes[..512] == [0; 512]).collect();
    assert!(holes.contains(&[[0; 512].as_slice(), &[7; 19 * 512]].concat()));
    assert!(holes.contains(&[[0; 19 * 512].as_slice(), &[7; 512]].concat()));
}

#[test]
fn a_length_can_be_there_before_its_bytes() {
    let mut image = Image::new();
    image.insert(&name("old"), &[b's'; 6000]);
    image.insert(&name("a"), b"ab");
    let disk = SimDisk::from_image(&image, 1);
    disk.unlink(&name("old")).expect("removed");
    disk.sync_dir().expect("synced");
    let file = disk.open(&name("a"), OpenOptions::WRITE).expect("there");
    write(&*file, 1, b"BC");
    write(&*file, 3, b"DE");
    let mut found = BTreeMap::new();
    crashes_of(&disk.log(), &[Mode::SizeFirst], &mut |image, point| {
        let bytes = image.read(&name("a")).expect("there");
        assert_eq!(point.has_stale_bytes(), bytes.contains(&b's'), "{point}");
        found.insert(bytes.escape_ascii().to_string(), *point);
    });
    let found: Vec<_> = found.into_keys().collect();
    let all = ["ab\\x00\\x00\\x00", "ab\\xff\\xff\\xff", "abC\\x00\\x00", "abC\\xff\\xff", "abCss", "absss"];
    let landed = ["aB\\x00\\x00\\x00", "aB\\xff\\xff\\xff", "aBC\\x00\\x00", "aBC\\xff\\xff", "aBCss", "aBsss"];
    // A write that lands does so whole, also where it overwrites.
    for text in &landed {
        assert!(found.iter().any(|f| f == text), "{text} in {found:?}");
    }
    assert!(found.iter().all(|text| all.contains(&text.as_str()) || landed.contains(&text.as_str())), "{found:?}");
}

#[test]
fn punched_and_cut_blocks_turn_up_in_new_files() {
    let (disk, file) = disk_with(&[b's'; 8192]);
    file.punch(0, BLOCK).expect("punched");
    file.set_len(BLOCK).expect("cut");
    file.sync(SyncKind::All).expect("synced");
    let new = create(&disk, "b");
    write(&*new, 0, &[1; 8192]);
    let mut stale = 0;
    crashes_of(&disk.log(), &[Mode::SizeFirst], &mut |image, point| {
        if point.has_stale_bytes() {
            assert_eq!(image.read(&name("b")), Some(vec![b's'; 8192]));
            stale += 1;
        }
    });
    assert_eq!(stale, 2);
}

#[test]
fn names_and_bytes_are_independent() {
    let (disk, _) = disk_with(b"old");
    let file = create(&disk, "new");
    write(&*file, 0, b"new");
    disk.rename(&name("new"), &name("a")).expect("renamed");
    let found: BTreeSet<_> = contents(&disk, Mode::Names, "a").into_iter().flatten().collect();
    assert_eq!(found, BTreeSet::from([b"old".to_vec(), b"new".to_vec(), Vec::new()]), "renamed before the bytes");
    assert_eq!(listings(&disk, Mode::Names), BTreeSet::from(["a", "a new"].map(String::from)));
    disk.sync_dir().expect("synced");
    assert_eq!(contents(&disk, Mode::DropAll, "a"), [Some(Vec::new())]);
}

#[test]
fn a_removed_file_comes_back_with_its_bytes() {
    let (disk, _) = disk_with(b"old");
    disk.unlink(&name("a")).expect("removed");
    write(&*create(&disk, "a"), 0, b"again");
    assert_eq!(contents(&disk, Mode::DropAll, "a"), [Some(b"old".to_vec())]);
    let found: BTreeSet<_> = contents(&disk, Mode::Names, "a").into_iter().collect();
    let wanted = [None, Some(b"old".to_vec()), Some(Vec::new()), Some(b"again".to_vec())];
    assert_eq!(found, BTreeSet::from(wanted));
}

#[test]
fn a_punch_is_early_or_late() {
    let (disk, file) = disk_with(&[1; 8192]);
    let other = create(&disk, "b");
    write(&*other, 0, b"moved");
    file.punch(0, BLOCK).expect("punched");
    let mut found = Vec::new();
    crashes_of(&disk.log(), &[Mode::Punches], &mut |image, _| {
        let first = image.read(&name("a")).expect("there")[0];
        found.push((first, image.read(&name("b"))));
    });
    assert_eq!(found, [(0, None), (1, Some(b"moved".to_vec()))]);
    file.set_len(0).expect("cut");
    let lens: Vec<_> = contents(&disk, Mode::Punches, "a").iter().map(|a| a.as_ref().expect("there").len()).collect();
    // Both early, both late, then the punch and the cut by themselves, early and late.
    assert_eq!(lens, [0, 8192, 8192, 0, 0, 8192]);
}

#[test]
fn what_a_failed_sync_lost_no_later_sync_brings_back() {
    for (fault, live) in [(SyncFault::EioKeep, b"new."), (SyncFault::EioRevert, b"old.")] {
        let (disk, file) = disk_with(b"old.");
        write(&*file, 0, b"new");
        disk.fail_sync(Some(fault));
        assert_eq!(file.sync(SyncKind::Data).expect_err("fails once").raw_os_error(), Some(5));
        assert_eq!(disk.image().read(&name("a")).expect("there"), live, "{fault:?}");
        file.sync(SyncKind::Data).expect("synced");
        assert_eq!(texts(&disk, Mode::DropAll), ["old."]);
        assert!(texts(&disk, Mode::KeepAll).is_empty());
        // Written again it is as good as new.
        write(&*file, 0, b"n");
        file.sync(SyncKind::Data).expect("synced");
        assert_eq!(texts(&disk, Mode::DropAll), ["nld."]);
        disk.fail_sync(Some(SyncFault::EioRevert));
        file.sync(SyncKind::Data).expect_err("fails once");
        assert_eq!(disk.image().read(&name("a")).expect("there"), b"nld.", "durable is what the log says");
    }
}

#[test]
fn a_disk_that_lied_loses_what_it_said_was_synced() {
    let (disk, file) = disk_with(b"old");
    write(&*file, 0, b"new");
    file.sync(SyncKind::Data).expect("synced");
    let log = disk.log();
    assert!(log.with_lie(0).is_none());
    let lied = log.with_lie(1).expect("a sync");
    let mut found = Vec::new();
    crashes_of(&lied, &[Mode::DropAll, Mode::KeepAll], &mut |image, _| found.push(image.read(&name("a"))));
    assert_eq!(found, [Some(b"old".to_vec()), Some(b"new".to_vec())]);
}

#[test]
fn acknowledgements_count_from_their_own_crash_on() {
    let (disk, file) = disk_with(b"");
    disk.ack(7);
    write(&*file, 0, b"x");
    disk.ack(9);
    let log = disk.log();
    assert_eq!([0, 1, 2, 9].map(|index| log.acked_before(index).count()), [1, 1, 2, 2]);
    assert_eq!(log.acked_before(2).collect::<Vec<_>>(), [7, 9]);
}

#[test]
fn the_lock_is_in_every_image_and_empty() {
    let disk = SimDisk::new(1);
    let _guard = disk.lock(LockMode::Exclusive, "test").expect("asked");
    create(&disk, "a");
    crashes_of(&disk.log(), Mode::ALL, &mut |image, point| {
        assert_eq!(image.read(&name("LOCK")), Some(Vec::new()), "{point}");
    });
}

/// A run of random operations that never touches a file between its last sync and the end, with what must then hold.
fn random_run(seed: u64) -> (SimDisk, BTreeMap<Name, Vec<u8>>) {
    let disk = SimDisk::new(seed);
    let mut random = Random::new(seed);
    let mut synced = BTreeMap::new();
    for step in 0..40 {
        let file_name = name(&format!("file-{}", random.below(6)));
        let Ok(file) =
            disk.open(&file_name, OpenOptions::WRITE).or_else(|_| disk.open(&file_name, OpenOptions::CREATE))
        else {
            continue;
        };
        synced.remove(&file_name);
        let offset = random.below(3000);
        match random.below(8) {
            0 => file.set_len(offset).expect("room"),
            1 => file.punch(0, BLOCK).expect("aligned"),
            2 => file.zero(offset, 700).expect("room"),
            3 => disk.unlink(&file_name).expect("there"),
            4 => {
                let to = name(&format!("file-{}", random.below(6)));
                synced.remove(&to);
                disk.rename(&file_name, &to).expect("there");
            }
            5 | 6 => {
                file.sync(SyncKind::Data).expect("synced");
                disk.sync_dir().expect("synced");
                synced.insert(file_name.clone(), disk.image().read(&file_name).expect("there"));
                disk.ack(step);
            }
            _ => write(&*file, offset, &vec![u8::try_from(step).expect("small"); index(random.below(900))]),
        }
    }
    (disk, synced)
}

fn index(number: u64) -> usize {
    usize::try_from(number).expect("small")
}

#[test]
fn what_was_synced_stands_in_every_image() {
    for seed in 0..100 {
        let (disk, synced) = random_run(seed);
        crashes_of(&disk.log(), Mode::ALL, &mut |image, point| {
            for (file, bytes) in &synced {
                assert_eq!(image.read(file).as_ref(), Some(bytes), "seed {seed}, {point}, {file}");
            }
        });
        let live = disk.image();
        crashes_of(&disk.log(), &[Mode::DropAll, Mode::KeepAll], &mut |image, point| {
            assert!(point.mode == Mode::DropAll || image.digest() == live.digest(), "seed {seed}: M1 is the live view");
        });
    }
}

#[test]
fn an_image_is_built_again_from_its_text() {
    let (disk, _) = random_run(5);
    let log = disk.log();
    let crashes = Crashes::new(&log, 3, Budget { per_mode: 5, ..Budget::default() });
    let mut count = 0;
    let end = crashes.for_each_image(log.indexes(), &mut |image, point| {
        let again = CrashPoint::parse(&point.to_string()).expect("its own text");
        assert_eq!(again, *point);
        assert_eq!(crashes.image(&again).expect("the same log").digest(), image.digest(), "{point}");
        count += 1;
        ControlFlow::Continue(())
    });
    assert!(end.is_continue() && count > 500, "{count}");
    let beyond = [
        CrashPoint { op_index: log.ops().len(), mode: Mode::DropAll, variant: 0 },
        CrashPoint { op_index: 0, mode: Mode::DropAll, variant: 1 },
    ];
    assert!(beyond.iter().all(|point| crashes.image(point).is_none()));
    for bad in ["", "M4", "M4@1", "M4@1/", "M9@1/2", "M4@-1/2", "M4@1/2/3"] {
        assert_eq!(CrashPoint::parse(bad), None, "{bad}");
    }
}

#[test]
fn a_budget_bounds_each_mode_and_the_seed_chooses() {
    let (disk, file) = disk_with(b"");
    write(&*file, 0, &[1; 9000]);
    let log = disk.log();
    let points = |seed, per_mode| {
        let mut points = Vec::new();
        let crashes = Crashes::new(&log, seed, Budget { per_mode, ..Budget::default() });
        let end = crashes.for_each_image(log.indexes(), &mut |_, point| {
            points.push(*point);
            if points.len() == 40 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!(end.is_break(), points.len() == 40);
        points
    };
    let few = points(1, 4);
    for mode in Mode::ALL {
        let variants: Vec<_> = few.iter().filter(|point| point.mode == *mode).collect();
        let distinct: BTreeSet<_> = variants.iter().collect();
        assert!(variants.len() <= 4 && distinct.len() == variants.len(), "{mode:?}");
    }
    assert_eq!(few.iter().filter(|point| point.mode == Mode::Sectors).count(), 4);
    assert_eq!(points(1, 4), few);
    assert_ne!(points(2, 4), few);
    assert_eq!(points(1, u64::MAX).len(), 40);
}
