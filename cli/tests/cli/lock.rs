//! One process writes, or several read: who comes second is told, whatever became of `LOCK`.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    process::{Child, Stdio},
};

use holdfast::{OpenMode, OpenOptions, Store, World};

use crate::support::Place;

fn open(place: &Place, mode: OpenMode) -> Store {
    let world = World::os(&place.store()).expect("a directory");
    Store::open(world, &OpenOptions::new(mode, "a test")).expect("opens")
}

/// A `put` in the middle of its standard input, which came so far that it has the store.
fn putting(place: &Place) -> Child {
    let mut child = place
        .command()
        .args(["put", "--name", "long", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let lock = place.store().join("LOCK");
    // The holder writes its name once it has the lock.
    while fs::read(&lock).is_ok_and(|text| text.is_empty()) {
        std::thread::yield_now();
    }
    child.stdin.as_mut().expect("piped").write_all(b"the first half, ").expect("taken");
    child
}

#[test]
fn who_removes_the_lock_under_a_writer_does_not_get_in_and_the_writer_loses_nothing() {
    let place = Place::new();
    let before = place.put("before", "before");
    let mut child = putting(&place);
    fs::remove_file(place.store().join("LOCK")).expect("removed");

    place.write("second", "second");
    for args in [vec!["put", "second"], vec!["list"], vec!["verify"]] {
        place.run(&args).failed(6, "LOCKED");
    }

    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(b"and the second").expect("taken");
    drop(stdin);
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("readable");
    assert!(child.wait().expect("ends").success());
    let long = line.split_whitespace().next().expect("an id").to_owned();
    let second = place.put("second", "second");
    for (id, content) in [(&before, "before"), (&long, "the first half, and the second"), (&second, "second")] {
        assert_eq!(place.run(["get", id, "-"]).well().out, content);
    }
    place.run(["verify", "--deep", "--refs"]).well();
}

#[test]
fn a_writer_is_named_to_whoever_comes_second() {
    let place = Place::new();
    let _store = open(&place, OpenMode::Write);
    let ran = place.run(["list"]).failed(6, "LOCKED");
    assert!(ran.err.contains(&format!("pid {}: a test", std::process::id())), "{}", ran.err);
}

#[test]
fn readers_keep_a_writer_out_also_where_there_is_no_lock_file_and_let_readers_in() {
    let place = Place::new();
    fs::remove_file(place.store().join("LOCK")).expect("removed");
    let _store = open(&place, OpenMode::Read);
    place.run(["list"]).well();
    place.write("file", "bytes");
    let ran = place.run(["put", "file"]).failed(6, "LOCKED");
    assert!(ran.err.contains("readers"), "{}", ran.err);
    assert!(!place.store().join("LOCK").exists(), "who was refused made no file");
}
