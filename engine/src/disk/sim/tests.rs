use std::collections::BTreeSet;

use super::*;
use crate::disk::{SyncKind, write_all};

fn name(text: &str) -> Name {
    Name::new(text).expect("a flat name")
}

fn create(disk: &SimDisk, text: &str) -> Box<dyn File> {
    disk.open(&name(text), OpenOptions::CREATE).expect("created")
}

#[test]
fn a_full_disk_takes_what_fits_and_overwrites_for_ever() {
    let disk = SimDisk::new(1);
    disk.set_capacity(3 * BLOCK + 100);
    assert_eq!(disk.free_bytes().expect("free"), 3 * BLOCK);
    let file = create(&disk, "a");
    assert_eq!(file.write_at(&[1; 16384], 100).expect("some"), 3 * 4096 - 100);
    let full = |result: io::Result<()>| assert_eq!(result.expect_err("full").kind(), io::ErrorKind::StorageFull);
    full(write_all(&*file, b"x", 3 * BLOCK));
    full(file.zero(BLOCK, 3 * BLOCK));
    assert_eq!(file.len().expect("length"), 3 * BLOCK, "what fitted of the zeros was overwritten");
    write_all(&*file, &[2; 3 * 4096], 0).expect("allocated before");
    file.set_len(1 << 40).expect("a hole takes nothing");
    assert_eq!((disk.free_bytes().expect("free"), disk.allocated()), (0, 3 * BLOCK));

    file.punch(BLOCK, BLOCK).expect("punched");
    assert_eq!(disk.free_bytes().expect("free"), BLOCK);
    full(write_all(&*create(&disk, "b"), &[3; 5000], 0));
    disk.set_capacity(0);
    write_all(&*file, b"y", 0).expect("allocated before");
    assert_eq!(disk.free_bytes().expect("free"), 0);
}

#[test]
fn a_full_disk_can_be_locked() {
    let disk = SimDisk::new(1);
    disk.set_capacity(0);
    let Lock::Held(_guard) = disk.lock(LockMode::Exclusive, "test").expect("asked") else { panic!("nobody holds it") };
    assert_eq!(disk.allocated(), 0);
    assert!(matches!(disk.lock(LockMode::Shared, "test").expect("asked"), Lock::Busy(holder) if holder.is_empty()));
}

#[test]
fn an_unlinked_file_takes_room_until_it_is_closed() {
    let disk = SimDisk::new(1);
    let file = create(&disk, "a");
    write_all(&*file, &[1; 5000], 0).expect("room");
    let image = disk.image();
    disk.unlink(&name("a")).expect("removed");
    assert_eq!(disk.allocated(), 2 * BLOCK);
    drop(file);
    assert_eq!(disk.allocated(), 0);
    // The same through a replacing rename, on a disk that starts with the file.
    let disk = SimDisk::from_image(&image, 1);
    assert_eq!(disk.allocated(), 2 * BLOCK);
    create(&disk, "b");
    disk.rename(&name("b"), &name("a")).expect("renamed");
    assert_eq!(disk.allocated(), 0);
}

#[test]
fn a_large_file_of_zeros_takes_no_memory_and_a_copy_shares_its_bytes() {
    let disk = SimDisk::new(1);
    let file = create(&disk, "segment-1");
    file.zero(0, 64 << 20).expect("room");
    file.set_len(1 << 50).expect("room");
    write_all(&*file, b"end", (1 << 50) - 3).expect("room");
    let images: Vec<Image> = (0..1000).map(|_| disk.image()).collect();
    write_all(&*file, b"x", 0).expect("room");
    let digests: BTreeSet<u128> = images.iter().map(Image::digest).collect();
    assert_eq!(digests.len(), 1);
    assert_ne!(disk.image().digest(), images[0].digest());
    assert_eq!(images[0].allocated(), (64 << 20) + BLOCK);
}

#[test]
fn listings_come_in_an_order_that_the_seed_decides() {
    let orders = |seed| {
        let disk = SimDisk::new(seed);
        (0..8).for_each(|index| drop(create(&disk, &format!("file-{index}"))));
        disk.set_strange(vec!["Strange\\n".to_owned()]);
        [(); 4].map(|()| {
            let listing = disk.list().expect("listed");
            assert_eq!((listing.names.len(), listing.strange.len()), (8, 1));
            listing.names.iter().map(ToString::to_string).collect::<Vec<_>>()
        })
    };
    assert_eq!(orders(1), orders(1));
    assert_ne!(orders(1), orders(2));
    assert_ne!(orders(1)[0], orders(1)[1]);
}

#[test]
fn the_log_tells_every_change_and_nothing_else() {
    let disk = SimDisk::new(1);
    let file = create(&disk, "a");
    write_all(&*file, b"x", 5).expect("room");
    file.write_at(b"", 0).expect("nothing");
    file.read_at(&mut [0; 4], 0).expect("read");
    disk.list().expect("listed");
    file.zero(0, 2).expect("room");
    file.punch(0, BLOCK).expect("aligned");
    file.set_len(3).expect("cut");
    file.sync(SyncKind::Data).expect("synced");
    disk.rename(&name("a"), &name("b")).expect("there");
    disk.record(false);
    create(&disk, "unseen");
    disk.record(true);
    disk.unlink(&name("b")).expect("there");
    disk.sync_dir().expect("synced");
    disk.ack(4);
    let ino = 1;
    let wanted = [
        Op::Create { ino, name: name("a") },
        Op::Write { ino, offset: 5, bytes: (*b"x").into() },
        Op::Zero { ino, offset: 0, len: 2 },
        Op::Punch { ino, offset: 0, len: BLOCK },
        Op::SetLen { ino, len: 3 },
        Op::Sync { ino, kind: SyncKind::Data },
        Op::Rename { ino, from: name("a"), to: name("b") },
        Op::Unlink { ino, name: name("b") },
        Op::SyncDir,
        Op::Ack(4),
    ];
    assert_eq!(disk.log().ops(), wanted);
    assert_eq!(disk.op_count(), wanted.len());
    assert!(disk.log().base().is_empty());
}

#[test]
fn a_failed_sync_of_the_directory_can_be_tried_again() {
    let disk = SimDisk::new(1);
    create(&disk, "a");
    disk.fail_sync(Some(SyncFault::EioKeep));
    disk.sync_dir().expect_err("fails once");
    assert!(!disk.log().ops().contains(&Op::SyncDir));
    disk.sync_dir().expect("synced");
    disk.fail_sync(Some(SyncFault::EioKeep));
    disk.fail_sync(None);
    disk.sync_dir().expect("taken back");
}

#[test]
fn a_store_is_free_again_after_a_crash() {
    let disk = SimDisk::new(1);
    let guard = disk.lock(LockMode::Exclusive, "test").expect("asked");
    assert!(matches!(disk.lock(LockMode::Shared, "test").expect("asked"), Lock::Busy(_)));
    let after = SimDisk::from_image(&disk.image(), 1);
    assert!(matches!(after.lock(LockMode::Exclusive, "test").expect("asked"), Lock::Held(_)));
    drop(guard);
    assert!(matches!(disk.lock(LockMode::Shared, "test").expect("asked"), Lock::Held(_)));
}

#[test]
fn an_image_is_damaged_by_hand() {
    let mut image = Image::new();
    image.insert(&name("a"), b"abc");
    let whole = image.clone();
    assert!(image.flip(&name("a"), 8 + 1));
    assert_eq!(image.read(&name("a")).expect("there"), b"a`c");
    assert!(!image.flip(&name("a"), 24) && !image.flip(&name("b"), 0));
    assert!(image.write(&name("a"), 1, b"b"));
    assert_eq!(image.digest(), whole.digest());
    assert!(image.set_len(&name("a"), 2) && image.copy(&name("a"), &name("b")) && !image.copy(&name("x"), &name("b")));
    assert!(image.write(&name("b"), 0, b"B"));
    assert_eq!([image.read(&name("a")), image.read(&name("b"))], [Some(b"ab".to_vec()), Some(b"Bb".to_vec())]);
    assert!(image.remove(&name("a")) && !image.remove(&name("a")));
    assert_eq!((image.len(&name("a")), image.len(&name("b"))), (None, Some(2)));
    assert_eq!(format!("{image:?}"), "{\"b\": 2}", "names and lengths, no bytes");
    let mut renamed = Image::new();
    renamed.insert(&name("c"), b"Bb");
    assert_ne!(renamed.digest(), image.digest());
}

#[test]
fn an_image_goes_to_another_disk_and_back() {
    let mut image = Image::new();
    image.insert(&name("a"), &[7; 5000]);
    image.insert(&name("b"), b"");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let disk = crate::disk::os::OsDisk::open(directory.path()).expect("ours");
    image.write_to(&disk).expect("written");
    assert_eq!(Image::of(&disk).expect("read").digest(), image.digest());
    assert_eq!(Image::of(&SimDisk::from_image(&image, 1)).expect("read").digest(), image.digest());
    image.write_to(&disk).expect_err("they are there already");
}
