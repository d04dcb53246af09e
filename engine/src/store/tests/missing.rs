//! Stores whose superblock, or whose commits, are gone: nothing is made over, and nothing that may have been there is said never to have
//! been.

use super::*;

fn closed_store(commits: u64) -> SimDisk {
    let disk = new_store();
    let store = open(&disk).expect("opens");
    for number in 1..=commits {
        commit(&store, number).expect("commits");
    }
    store.close().expect("closes");
    disk
}

fn verified(disk: &SimDisk) -> VerifyReport {
    Store::verify(&world(disk), &VerifyOptions::default(), &mut |_, _| {}).expect("verifies")
}

#[test]
fn a_lost_or_empty_superblock_is_named_whatever_else_lies_there() {
    let whole = closed_store(1).image();
    let superblock = crate::superblock::name();
    let mut lost = whole.clone();
    lost.remove(&superblock);
    let mut empty = whole.clone();
    empty.insert(&superblock, &[]);
    let mut zeros = whole;
    zeros.insert(&superblock, &[0; 16384]);
    for (image, what) in [(&lost, "lost"), (&empty, "empty"), (&zeros, "zeros")] {
        for strange in [vec![], vec![".DS_Store".to_owned()], vec!["lost+found".to_owned(), ".nfs0001".to_owned()]] {
            let disk = SimDisk::from_image(image, 1);
            disk.set_strange(strange);
            let problems = verified(&disk).problems;
            assert_eq!(problems.len(), 1, "{what}");
            assert_eq!((problems[0].kind, problems[0].file.as_deref()), (Kind::Corrupt, Some("superblock")), "{what}");
            for error in [open(&disk).err(), read_only(&disk).err()] {
                assert_eq!(error.expect("no root").kind(), Kind::Corrupt, "{what}");
            }
            let again = Store::init(&world(&disk), &InitOptions { options: SMALL });
            assert_eq!(again.expect_err("refused").kind(), Kind::Corrupt, "{what}");
        }
    }
}

#[test]
fn an_older_superblock_is_called_older_and_not_a_loss_in_the_log() {
    let disk = closed_store(2);
    let older = disk.image().read(&crate::superblock::name()).expect("there");
    let store = open(&disk).expect("opens");
    commit(&store, 3).expect("commits");
    store.close().expect("closes");
    let mut image = disk.image();
    image.insert(&crate::superblock::name(), &older);
    let store = open(&SimDisk::from_image(&image, 1)).expect("opens");
    assert_eq!(numbers(&store).len(), 3);
    let refusal = store.report().refusal().expect("it takes no writes");
    assert_eq!((refusal.kind(), refusal.place().file.as_deref()), (Kind::ReadOnly, Some("superblock")));
    assert!(refusal.message().contains("older than the log"), "{refusal}");
}

#[test]
fn what_may_have_been_lost_is_never_not_found() {
    let disk = closed_store(20);
    let scope = AccountScope { tenant: "default", account: "a" };
    let nobody = crate::ids::ArtifactId([7; 16]);
    let asked = |store: &Store| store.stat(scope, nobody).expect_err("there is none");
    assert_eq!(asked(&read_only(&disk).expect("opens")).kind(), Kind::NotFound);

    let disk = SimDisk::from_image(&flip_in_commit(&disk.image(), 7), 1);
    for mode in [OpenMode::Write, OpenMode::Read] {
        let store = Store::open(world(&disk), &OpenOptions::new(mode, "test")).expect("opens");
        let error = asked(&store);
        assert_eq!(error.kind(), Kind::Corrupt, "{error}");
        assert_eq!(error.place().file.as_deref(), Some("segment-1"));
        assert!(error.place().offset.is_some());
        let mut source: &[u8] = b"bytes";
        let error = store.put(&put("new"), &mut source).expect_err("refused");
        assert_eq!(error.kind(), Kind::ReadOnly);
        assert_eq!(error.place().file.as_deref(), Some("segment-1"));
    }
}

#[test]
fn a_sealed_log_segment_that_lost_zeros_of_its_end_is_named() {
    let disk = closed_store(200);
    let store = read_only(&disk).expect("opens");
    let segments: Vec<_> = store.segments.all().iter().map(|(id, _)| segment::name(*id)).collect();
    drop(store);
    assert!(segments.len() > 3);
    for name in segments {
        let mut image = disk.image();
        let len = image.len(&name).expect("there");
        // Bytes of the seal, which ends with its payload, are not cut off.
        if image.read(&name).expect("there").ends_with(&[0; 64]) {
            image.set_len(&name, len - 1);
            let problems = verified(&SimDisk::from_image(&image, 1)).problems;
            let named = problems.iter().any(|p| p.file.as_deref() == Some(name.as_str()) && p.offset == Some(len - 1));
            assert!(named, "{name}: {problems:?}");
        }
    }
}

#[test]
fn one_flip_is_one_problem_and_strange_files_are_none() {
    let disk = closed_store(200);
    let mut image = disk.image();
    assert!(image.flip(&segment::name(FileId(1)), 100 * 8));
    let disk = SimDisk::from_image(&image, 1);
    assert_eq!(verified(&disk).problems.len(), 1);

    let mut image = closed_store(1).image();
    let unnamed = segment::name(FileId(900));
    image.insert(&unnamed, b"made by a writer that did not end");
    image.insert(&Name::new("notes.txt").expect("flat"), b"mine");
    image.insert(&segment::name(FileId(1 << 40)), b"never given out");
    let disk = SimDisk::from_image(&image, 1);
    disk.set_strange(vec![".DS_Store".to_owned()]);
    let report = verified(&disk);
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    assert_eq!(report.unnamed_files, [unnamed.to_string()]);
    let strange = [".DS_Store", "notes.txt", "segment-1099511627776"];
    assert_eq!(report.strange_files, strange);
    assert_eq!(read_only(&disk).expect("opens").report().strange_files, strange);
    let store = open(&disk).expect("opens");
    assert_eq!(store.report().strange_files, strange);
    assert_eq!(store.report().destroyed_files, [unnamed.to_string()]);
}
