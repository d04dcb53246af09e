//! Damaged copies are written again from good ones, and nothing else is touched.

use super::{release::put, *};
use crate::{
    disk::{
        self,
        fault::{Class, Fault, FaultDisk, Plan},
        sim::Op,
    },
    manifest, superblock, table,
};

const EIO: i32 = 5;

/// A closed store with tables, a log segment and a bulk segment.
fn store() -> (SimDisk, Image) {
    let disk = new_store();
    let store = open(&disk).expect("opens");
    put(&store, "small", &[1; 300]);
    put(&store, "large", &(0..1_200_000_u32).map(|n| n.to_le_bytes()[1] ^ n.to_le_bytes()[0]).collect::<Vec<_>>());
    (0..60).try_for_each(|number| commit(&store, number)).expect("commits");
    store.checkpoint().expect("makes one");
    store.close().expect("closes");
    let image = disk.image();
    (disk, image)
}

fn problems(disk: &SimDisk) -> Vec<crate::recovery::Problem> {
    let options = VerifyOptions { deep: true, refs: true, memory: 0 };
    Store::verify(&world(disk), &options, &mut |_, _| {}).expect("verifies").problems
}

/// Places that have another copy: file, offset, length.
fn copies(disk: &SimDisk) -> Vec<(Name, u64, u64)> {
    let root = superblock::read(disk).expect("reads").expect("a superblock").superblock;
    let mut places = Vec::new();
    for name in disk.list().expect("lists").names {
        let len = disk.open(&name, disk::OpenOptions::READ).and_then(|file| file.len()).expect("is there");
        let spare = root.prepared.iter().any(|id| segment::name(*id) == name);
        if name == superblock::name() || table::parse_name(&name).is_some() {
            places.extend((0..len / 4096).map(|page| (name.clone(), page * 4096, 4096)));
        } else if manifest::parse_name(&name).is_some() {
            places.push((name, 0, len));
        } else if segment::parse_name(&name, "segment-").is_some() && !spare {
            places.extend([(name.clone(), 0, 4096), (name, 4096, 4096)]);
        }
    }
    places
}

#[test]
fn every_damaged_copy_is_written_again_and_the_store_is_as_it_was() {
    let (disk, image) = store();
    let places = copies(&disk);
    assert!(places.len() > 12, "{places:?}");
    for (number, (name, offset, len)) in places.iter().enumerate() {
        let mut damaged = image.clone();
        let at = offset + (number as u64 * 613) % len;
        assert!(damaged.flip(name, at * 8 + number as u64 % 8), "{name}");
        let disk = SimDisk::from_image(&damaged, 1);
        assert!(!problems(&disk).is_empty(), "{name} at {at}");
        let planned = Store::repair(&world(&disk), true).expect("plans");
        assert_eq!(disk.image().digest(), damaged.digest(), "a dry run changes nothing");
        let done = Store::repair(&world(&disk), false).expect("repairs");
        assert_eq!((done.len(), &done[0].file), (1, &name.to_string()), "{done:?}");
        assert_eq!(done, planned);
        assert_eq!(problems(&disk).len(), 0, "{name} at {at}: {done:?}");
        for name in image.names().filter(|name| name.as_str() != "LOCK") {
            assert_eq!(disk.image().read(name), image.read(name), "{name} is byte for byte what it was");
        }
        assert_eq!(Store::repair(&world(&disk), false).expect("has nothing to do"), []);
    }
}

#[test]
fn a_copy_that_is_missing_or_cut_or_longer_is_made_again() {
    let (_, image) = store();
    let names: Vec<Name> = image.names().filter(|name| table::parse_name(name).is_some()).cloned().collect();
    let manifests = image.names().filter(|name| manifest::parse_name(name).is_some()).cloned();
    for name in names.into_iter().chain(manifests) {
        for (lost, len) in [(true, 0), (false, 5000), (false, 1 << 20)] {
            let disk = SimDisk::from_image(&image, 1);
            if lost {
                disk.unlink(&name).expect("is there");
            } else {
                disk.open(&name, disk::OpenOptions::WRITE).and_then(|file| file.set_len(len)).expect("is there");
            }
            Store::repair(&world(&disk), false).expect("repairs");
            assert_eq!(problems(&disk).len(), 0, "{name}");
            assert_eq!(disk.image().read(&name), image.read(&name), "{name}");
        }
    }
}

#[test]
fn a_page_that_is_bad_in_both_copies_stays_and_is_named() {
    let (disk, image) = store();
    let meta = read_only(&disk).expect("opens").published.read().tables().metas().remove(0);
    let mut damaged = image;
    for (copy, name) in table::names(meta.id).iter().enumerate() {
        assert!(damaged.flip(name, (4096 + 100) * 8 + copy as u64));
    }
    let disk = SimDisk::from_image(&damaged, 1);
    let before = disk.image().digest();
    assert_eq!(Store::repair(&world(&disk), false).expect("has nothing that it could do"), []);
    assert_eq!(disk.image().digest(), before);
    let named = problems(&disk);
    for name in table::names(meta.id) {
        assert!(named.iter().any(|p| p.file.as_deref() == Some(name.as_str())), "{named:?}");
    }
}

#[test]
fn a_copy_of_which_no_sector_can_be_read_is_written_again() {
    let (_, image) = store();
    for copy in ["a", "b"] {
        let disk = SimDisk::from_image(&image, 1);
        let tables: Vec<Name> = image.names().filter(|name| table::parse_name(name).is_some()).cloned().collect();
        let name = tables.iter().find(|name| name.as_str().ends_with(copy)).expect("two copies of each");
        let faults = FaultDisk::new(Arc::new(disk.clone()));
        faults.arm(Plan::new(0, Fault::Errno(EIO)).sticky().class(Class::Read).files(name.as_str()));
        let world = World { disk: Arc::new(faults.clone()), ..world(&disk) };
        let done = Store::repair(&world, false).expect("the other copy holds");
        assert!(faults.hits() > 0);
        assert_eq!((done.len(), done[0].file.as_str()), (1, name.as_str()), "{done:?}");
        assert_eq!(disk.image().read(name), image.read(name));
    }
}

#[test]
fn a_crash_at_any_point_of_a_repair_leaves_a_store_that_reads_and_can_be_repaired() {
    let (_, image) = store();
    let mut damaged = image.clone();
    let names: Vec<Name> = image.names().filter(|name| table::parse_name(name).is_some()).cloned().collect();
    for (number, name) in names.iter().enumerate() {
        // Another page of each copy.
        assert!(damaged.flip(name, (number as u64 % 2 * 4096 + 50) * 8));
    }
    assert!(damaged.flip(&superblock::name(), 4096 * 8 + 1000));
    let disk = SimDisk::from_image(&damaged, 1);
    Store::repair(&world(&disk), false).expect("repairs");
    let log = disk.log();
    assert!(log.ops().iter().filter(|op| matches!(op, Op::Sync { .. })).count() >= 3);
    let mut images = 0;
    let budget = Budget { per_mode: 6, byte_cut_max: 64, ..Budget::default() };
    let _ = Crashes::new(&log, 1, budget).for_each_image(log.indexes(), &mut |crashed, point| {
        images += 1;
        let disk = SimDisk::from_image(crashed, 1);
        assert_eq!(numbers(&read_only(&disk).expect("opens")).len(), 61, "{point}");
        Store::repair(&world(&disk), false).expect("repairs");
        assert_eq!(problems(&disk).len(), 0, "{point}");
        std::ops::ControlFlow::Continue(())
    });
    assert!(images > 20, "{images}");
}

#[test]
fn a_page_that_a_read_found_bad_is_written_again_at_the_next_checkpoint() {
    let (disk, image) = store();
    let meta = read_only(&disk).expect("opens").published.read().tables().metas().remove(0);
    let [name, _] = table::names(meta.id);
    let mut damaged = image.clone();
    for page in 0..u64::from(meta.pages) {
        assert!(damaged.flip(&name, (page * 4096 + 77) * 8));
    }
    let disk = SimDisk::from_image(&damaged, 1);
    let store = open(&disk).expect("opens");
    assert_eq!(numbers(&store).len(), 61);
    let stats = store.stats().expect("counts");
    assert!(stats.mirror_reads > 0 && stats.mended_pages == 0, "{stats:?}");
    commit(&store, 1000).expect("commits");
    store.checkpoint().expect("makes one");
    let stats = store.stats().expect("counts");
    assert_eq!(stats.mended_pages, stats.mirror_reads, "{stats:?}");
    let whole = image.read(&name).expect("is there");
    let now = disk.image().read(&name).expect("is there");
    let same = |page: usize| whole[page * 4096..][..4096] == now[page * 4096..][..4096];
    assert_eq!((0..meta.pages as usize).filter(|page| same(*page)).count() as u64, stats.mended_pages);
}
