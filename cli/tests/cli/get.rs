//! `get`: the right bytes, and never a part of them at PATH.

use std::{fs, os::unix::fs::PermissionsExt};

use crate::support::{Place, noise, text};

/// Nothing that a get left behind under a name of its own.
fn assert_no_leftovers(place: &Place) {
    let left: Vec<_> = place.names(".").into_iter().filter(|name| name.starts_with(".holdfast")).collect();
    assert_eq!(left, <[String; 0]>::default());
}

#[test]
fn without_a_path_the_file_gets_the_artifacts_name_which_must_be_free() {
    let place = Place::new();
    let id = place.put("report.txt", "the report");
    place.run(["get", &id]).well();
    assert_eq!(fs::read(place.path("report.txt")).expect("written"), b"the report");
    assert_eq!(fs::metadata(place.path("report.txt")).expect("there").permissions().mode() & 0o777, 0o600);

    place.write("report.txt", "mine");
    place.run(["get", &id]).failed(2, "exists");
    assert_eq!(fs::read(place.path("report.txt")).expect("there"), b"mine");
    assert_no_leftovers(&place);
}

#[test]
fn a_dangling_link_counts_as_there() {
    let place = Place::new();
    let id = place.put("report.txt", "the report");
    std::os::unix::fs::symlink("elsewhere", place.path("report.txt")).expect("made");
    place.run(["get", &id]).failed(2, "exists");
    assert!(!place.path("elsewhere").exists());
    assert_no_leftovers(&place);
}

#[test]
fn with_a_path_the_file_is_replaced_whole() {
    let place = Place::new();
    let bytes = noise(4, 2_500_000);
    let id = place.put("long", &bytes);
    place.write("out", "what was there");
    place.run(["get", &id, "out"]).well();
    assert!(fs::read(place.path("out")).expect("there") == bytes);
    place.run(["get", "--range", "10-19", &id, "out"]).well();
    assert_eq!(fs::read(place.path("out")).expect("there"), &bytes[10..20]);
    assert_no_leftovers(&place);
}

#[test]
fn what_is_no_file_is_not_replaced() {
    let place = Place::new();
    let id = place.put("name", "bytes");
    fs::create_dir(place.path("directory")).expect("made");
    let fifo = place.path("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).expect("made");
    place.run(["get", &id, "directory"]).failed(2, "NOT_REGULAR");
    place.run(["get", &id, "fifo"]).failed(2, "NOT_REGULAR");
    place.run(["get", &id, "/dev/null"]).failed(2, "NOT_REGULAR");
    place.run(["get", &id, "nowhere/"]).failed(2, "INVALID_ARGUMENT");
    place.run(["get", &id, ".."]).failed(2, "INVALID_ARGUMENT");
    place.run(["get", &id, "no/such/directory"]).failed(1, "IO");
    assert_no_leftovers(&place);
}

#[test]
fn a_range_gives_its_bytes_and_no_others() {
    let place = Place::new();
    let bytes = noise(9, 1_500_000);
    let id = place.put("long", &bytes);
    let last = bytes.len() - 1;
    for (range, expected) in [
        ("0-0".to_owned(), &bytes[..1]),
        ("0-99".to_owned(), &bytes[..100]),
        ("700000-900000".to_owned(), &bytes[700_000..=900_000]),
        (format!("{last}-{last}"), &bytes[last..]),
        (format!("{last}-"), &bytes[last..]),
        ("1499990-99999999".to_owned(), &bytes[1_499_990..]),
    ] {
        assert!(place.run(["get", "--range", &range, &id, "-"]).well().bytes == expected, "{range}");
    }
    place.run(["get", "--range", "1500000-", &id, "-"]).failed(2, "INVALID_ARGUMENT");
    let empty = place.put("empty", "");
    place.run(["get", "--range", "0-", &empty, "-"]).failed(2, "INVALID_ARGUMENT");
    assert_eq!(place.run(["get", &empty, "-"]).well().bytes, b"");
}

#[test]
fn an_unexpected_digest_refuses_before_the_first_byte() {
    let place = Place::new();
    let id = place.put("name", "bytes");
    let sha256 = text(&place.json(["stat", &id]).well().line(), "sha256");
    place.run(["get", "--expect-sha256", &sha256, &id, "-"]).well();
    place.run(["get", "--expect-sha256", &sha256.to_uppercase(), &id, "-"]).well();
    let other = "0".repeat(64);
    let ran = place.run(["get", "--expect-sha256", &other, &id, "-"]).failed(4, "DIGEST_MISMATCH");
    assert_eq!(ran.bytes, b"");
    place.run(["get", "--expect-sha256", &other, &id, "out"]).failed(4, "DIGEST_MISMATCH");
    assert!(!place.path("out").exists());
    assert_no_leftovers(&place);
}

#[test]
fn json_does_not_mix_with_the_bytes_on_standard_output() {
    let place = Place::new();
    let id = place.put("name", "bytes");
    assert_eq!(place.json(["get", &id, "-"]).well().bytes, b"bytes");
}
