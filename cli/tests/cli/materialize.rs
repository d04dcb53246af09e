//! `materialize`: working copies are made where nothing is, and never written over.

use std::{fs, os::unix::fs::symlink};

use serde_json::json;

use crate::support::{Place, text};

const BYTES: &str = "as it was exported";

#[test]
fn c2_a_working_copy_is_made_found_and_left_alone_when_it_was_edited() {
    let place = Place::new();
    let id = place.put("report.txt", BYTES);
    fs::create_dir(place.path("work")).expect("made");
    let copy = ["materialize", "--root", "work", &id, "out/deep/report.txt"];
    let result = || place.json(copy).well().line();
    let line = |result: &str| json!({"id": id, "path": "out/deep/report.txt", "result": result});
    assert_eq!(result(), line("MATERIALIZED"));
    let path = place.path("work/out/deep/report.txt");
    assert_eq!(fs::read_to_string(&path).expect("written"), BYTES);
    assert_eq!(result(), line("PRESENT"));

    for edited in ["as it was edited!!", "longer than it was exported", ""] {
        fs::write(&path, edited).expect("written");
        assert_eq!(result(), line("EDITED"));
        assert_eq!(fs::read_to_string(&path).expect("there"), edited, "it is left as it is");
    }
    fs::remove_file(&path).expect("removed");
    assert_eq!(result(), line("MATERIALIZED"));
    assert_eq!(fs::read_dir(path.parent().expect("a directory")).expect("there").count(), 1, "no part is left");

    place.run(["delete", &id]).well();
    place.run(copy).failed(3, "GONE");
    fs::remove_file(&path).expect("removed");
    place.run(copy).failed(3, "GONE");
    assert!(!path.exists());
}

#[test]
fn b14_nothing_outside_of_the_root_is_made_or_looked_at() {
    let place = Place::new();
    let id = place.put("a", BYTES);
    fs::create_dir_all(place.path("work/sub")).expect("made");
    fs::create_dir(place.path("elsewhere")).expect("made");
    place.write("outside", BYTES);
    symlink("../outside", place.path("work/link")).expect("made");
    symlink("../nowhere", place.path("work/dangling")).expect("made");
    symlink("../elsewhere", place.path("work/way")).expect("made");
    let absolute = place.path("elsewhere/a");
    for path in [
        "../a",
        "sub/../../a",
        "sub/../a",
        "link",
        "dangling",
        "way/a",
        "way/deep/a",
        absolute.to_str().expect("ASCII"),
    ] {
        place.run(["materialize", "--root", "work", &id, path]).failed(2, "ESCAPES_ROOT");
    }
    assert_eq!(fs::read_dir(place.path("elsewhere")).expect("there").count(), 0);
    assert!(!place.path("nowhere").exists() && !place.path("a2").exists());

    place.write("work/file", "");
    place.run(["materialize", "--root", "work", &id, "sub"]).failed(2, "NOT_REGULAR");
    for path in ["file/a", "new/", "", "."] {
        place.run(["materialize", "--root", "work", &id, path]).failed(2, "");
    }
    place.run(["materialize", "--root", "absent", &id, "a"]).failed(1, "IO");
    let other = place.json(["materialize", "--root", "elsewhere", &id, "./a"]).well().line();
    assert_eq!(text(&other, "result"), "MATERIALIZED", "the root is whatever the caller says");
}
