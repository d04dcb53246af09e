//! `put --root`: nothing outside of the root is read, however the path is written.

use std::{
    fs,
    os::unix::fs::symlink,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use crate::support::{Place, text};

fn place() -> Place {
    let place = Place::new();
    fs::create_dir_all(place.path("root/sub")).expect("made");
    place.write("outside", "a secret");
    place.write("root/inside", "fine");
    place.write("root/sub/deep", "fine");
    symlink("../outside", place.path("root/link")).expect("made");
    symlink("inside", place.path("root/harmless")).expect("made");
    symlink("..", place.path("root/up")).expect("made");
    symlink("sub", place.path("root/side")).expect("made");
    place
}

#[test]
fn what_lies_beneath_is_taken() {
    let place = place();
    let ran = place.json(["put", "--root", "root", "inside", "sub/deep", "./sub/./deep"]).well();
    let names: Vec<_> = ran.lines().iter().map(|line| text(line, "name")).collect();
    assert_eq!(names, ["inside", "deep", "deep"]);
}

#[test]
fn whatever_leads_out_or_through_a_link_is_refused() {
    let place = place();
    let absolute = place.path("root/inside");
    for path in [
        "../outside",
        "sub/../../outside",
        "sub/../inside",
        "link",
        "harmless",
        "up/outside",
        "up/root/inside",
        "side/deep",
        "/etc/hostname",
        absolute.to_str().expect("ASCII"),
    ] {
        place.run(["put", "--root", "root", path]).failed(2, "ESCAPES_ROOT");
    }
    assert_eq!(place.run(["list"]).well().out, "");
}

#[test]
fn kinds_are_told_apart_beneath_a_root_too() {
    let place = place();
    let fifo = place.path("root/fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).expect("made");
    place.run(["put", "--root", "root", "fifo"]).failed(2, "NOT_REGULAR");
    place.run(["put", "--root", "root", "sub"]).failed(2, "NOT_REGULAR");
    place.run(["put", "--root", "root", "missing"]).failed(6, "NOT_READY");
    place.run(["put", "--root", "root", "inside/x"]).failed(6, "NOT_READY");
    place.run(["put", "--root", "nowhere", "inside"]).failed(1, "IO");
    place.run(["put", "--root", "outside", "inside"]).failed(1, "IO");
}

#[test]
fn s43_a_path_that_is_swapped_for_a_link_gives_the_file_or_an_error_and_never_what_lies_outside() {
    let place = place();
    let (path, other) = (place.path("root/swapped"), place.path("root/next"));
    fs::write(&path, "fine").expect("written");
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                symlink("../outside", &other).expect("made");
                fs::rename(&other, &path).expect("swapped");
                fs::write(&other, "fine").expect("written");
                fs::rename(&other, &path).expect("swapped back");
            }
        });
        for _ in 0..40 {
            let ran = place.run(["put", "--root", "root", "swapped", "swapped", "swapped"]);
            assert!([0, 2, 6].contains(&ran.code), "{}", ran.err);
            let refused = ran.err.lines().filter(|line| !line.is_empty());
            let known = |line: &str| line.contains("ESCAPES_ROOT") || line.contains("NOT_READY");
            refused.for_each(|line| assert!(known(line), "{line}"));
        }
        done.store(true, Ordering::Relaxed);
    });
    for line in place.json(["list"]).well().lines() {
        assert_eq!(place.run(["get", &text(&line, "id"), "-"]).well().out, "fine");
    }
}
