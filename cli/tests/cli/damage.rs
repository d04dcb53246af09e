//! Damage on the disk: told with file and offset, never served, and never made worse.

use std::fs;

use holdfast::{checksum::crc, format::superblock::COPIES};
use serde_json::{Value, json};

use crate::{
    shapes::VERIFIED,
    support::{Place, keys, noise, text},
};

const COPY: usize = 4096;

/// Changes the superblock's copies and mends their checksums.
fn patch_superblock(place: &Place, mut change: impl FnMut(&mut [u8])) {
    let path = place.store().join("superblock");
    let mut bytes = fs::read(&path).expect("it is there");
    for copy in 0..COPIES {
        let slot = &mut bytes[copy as usize * COPY..][..COPY];
        change(slot);
        let mut salt = slot[24..40].to_vec();
        salt.extend_from_slice(&copy.to_le_bytes());
        let checksum = crc(&salt, &slot[..COPY - 4]);
        slot[COPY - 4..].copy_from_slice(&checksum.to_le_bytes());
    }
    fs::write(&path, bytes).expect("written");
}

/// Flips a bit of the first place at which a file of the store holds these bytes; gives the file's name and the place.
pub(crate) fn flip_where(place: &Place, needle: &[u8]) -> (String, u64) {
    for name in place.names("store") {
        let path = place.store().join(&name);
        let mut bytes = fs::read(&path).expect("readable");
        if let Some(at) = bytes.windows(needle.len()).position(|window| window == needle) {
            bytes[at] ^= 1;
            fs::write(&path, bytes).expect("written");
            return (name, at as u64);
        }
    }
    panic!("no file holds these bytes");
}

#[test]
fn a_store_of_a_newer_version_is_left_alone() {
    let place = Place::new();
    place.put("name", "bytes");
    patch_superblock(&place, |slot| slot[8..12].copy_from_slice(&2_u32.to_le_bytes()));
    let before: Vec<_> =
        place.names("store").iter().map(|name| fs::read(place.store().join(name)).expect("there")).collect();
    place.write("file", "bytes");
    for args in [vec!["put", "file"], vec!["list"], vec!["verify"], vec!["stats"]] {
        place.run(&args).failed(6, "VERSION");
    }
    assert_ne!(place.run(["init"]).code, 0);
    let after: Vec<_> =
        place.names("store").iter().map(|name| fs::read(place.store().join(name)).expect("there")).collect();
    assert!(before == after, "a file was changed");
}

#[test]
fn c15_and_s41_a_damaged_payload_is_not_served_and_verify_names_its_place() {
    let place = Place::new();
    let bytes = noise(7, 40_000);
    let id = place.put("damaged", &bytes);
    let other = place.put("other", "whole");
    let (file, at) = flip_where(&place, &bytes[20_000..20_064]);

    let ran = place.run(["get", &id, "-"]).failed(5, "CORRUPT");
    assert_eq!(ran.bytes, b"");
    place.run(["get", &id, "out"]).failed(5, "CORRUPT");
    assert!(!place.path("out").exists());
    assert_eq!(place.run(["get", &other, "-"]).well().bytes, b"whole");

    let ran = place.json(["verify", "--deep"]);
    assert_eq!((ran.code, ran.err.as_str()), (5, ""));
    let report = ran.line();
    assert_eq!(report["ok"], false);
    let problems = report["problems"].as_array().expect("a list");
    assert!(!problems.is_empty());
    for problem in problems {
        assert_eq!(keys(problem), ["artifact", "file", "kind", "offset"]);
    }
    let named = problems.iter().any(|problem| {
        let offset = problem["offset"].as_u64().unwrap_or(u64::MAX);
        problem["kind"] == "CORRUPT" && problem["file"] == json!(file) && offset <= at && at < offset + 50_000
    });
    assert!(named, "{file} at {at} is not among {report}");

    let ran = place.run(["verify", "--deep"]);
    assert_eq!(ran.code, 5);
    assert!(ran.out.contains(&file) && ran.out.contains("found"), "{}", ran.out);
}

#[test]
fn verify_reports_a_store_that_cannot_be_opened() {
    let place = Place::new();
    place.put("name", "bytes");
    let path = place.store().join("superblock");
    let mut bytes = fs::read(&path).expect("there");
    for copy in 0..COPIES as usize {
        bytes[copy * COPY + 500] ^= 1;
    }
    fs::write(&path, bytes).expect("written");

    place.run(["list"]).failed(5, "CORRUPT");
    let ran = place.json(["verify"]);
    assert_eq!((ran.code, ran.err.as_str()), (5, ""));
    let report = ran.line();
    assert_eq!(keys(&report), VERIFIED);
    assert_eq!((&report["ok"], &report["problems"][0]["kind"]), (&json!(false), &json!("CORRUPT")));
    assert_eq!(report["problems"][0]["file"], "superblock");
    assert_ne!(place.run(["init"]).code, 0, "a damaged store is not made over");
}

#[test]
fn repair_writes_a_damaged_page_again_and_says_so_before() {
    let place = Place::new();
    let bytes = noise(9, 5_000);
    let id = place.put("kept", &bytes);
    place.run(["checkpoint"]).well();
    let table = place.names("store").into_iter().find(|name| name.starts_with("table-")).expect("there are tables");
    let path = place.store().join(&table);
    let whole = fs::read(&path).expect("there");
    let mut damaged = whole.clone();
    damaged[COPY + 100] ^= 1;
    fs::write(&path, &damaged).expect("written");
    assert_eq!(place.run(["verify"]).code, 5);

    let plan = json!([{"action": "rewrite_table", "file": table, "bytes": COPY}]);
    let planned = place.json(["repair", "--dry-run"]).well().line();
    assert_eq!((&planned["plan"], &planned["done"]), (&plan, &json!(false)));
    assert_eq!(fs::read(&path).expect("there"), damaged, "it only said so");
    let done = place.json(["repair"]).well().line();
    assert_eq!((&done["plan"], &done["done"], &done["problems"]), (&plan, &json!(true), &json!(0)));
    assert_eq!(fs::read(&path).expect("there"), whole);
    place.run(["verify", "--deep", "--refs"]).well();

    // A payload has one copy: it stays what it is.
    flip_where(&place, &bytes[1_000..1_064]);
    assert_eq!(place.json(["repair"]).well().line()["plan"], json!([]));
    place.run(["get", &id, "-"]).failed(5, "CORRUPT");
}

#[test]
fn an_error_of_a_damaged_store_names_file_and_offset() {
    let place = Place::new();
    let bytes = noise(8, 5_000);
    let id = place.put("damaged", &bytes);
    let (file, _) = flip_where(&place, &bytes[1_000..1_064]);
    let ran = place.json(["get", &id, "-"]);
    let error: Value = serde_json::from_str(&ran.err).expect("one object");
    assert_eq!(text(&error["error"], "kind"), "CORRUPT");
    assert_eq!(error["error"]["file"], json!(file));
    assert!(error["error"]["offset"].is_u64(), "{error}");
}

#[test]
fn damage_in_the_middle_of_the_log_is_said_by_whoever_wants_to_write_and_the_rest_is_read() {
    let place = Place::new();
    let ids = [place.put("one", "first"), place.put("two", "second")];
    let path = place.store().join("segment-1");
    let mut bytes = fs::read(&path).expect("there");
    // The header of the first frame of all.
    bytes[8192 + 20] ^= 1;
    fs::write(&path, &bytes).expect("written");

    place.write("file", "bytes");
    let ran = place.run(["put", "file", "file"]).failed(6, "READ_ONLY");
    assert_eq!(ran.err.lines().count(), 1, "once, not for each file: {}", ran.err);
    let error: Value = serde_json::from_str(&place.json(["put", "file"]).err).expect("one object");
    assert_eq!((&error["error"]["file"], &error["error"]["offset"]), (&json!("segment-1"), &json!(8192)));

    // Who asks for what is not there learns that it may have been lost, and whoever looks at all of it is warned.
    for command in ["stat", "get"] {
        place.run([command, "aaaaaaaaaaaaaaaaaaaaaaaaaa"]).failed(5, "CORRUPT");
    }
    for command in ["list", "stats"] {
        let ran = place.run([command]);
        assert_eq!((ran.code, ran.err.lines().count()), (0, 1), "{}", ran.err);
        assert!(ran.err.contains("warning") && ran.err.contains("segment-1"), "{}", ran.err);
        let ran = place.json([command]);
        let warning: Value = serde_json::from_str(&ran.err).expect("one object");
        assert!(text(&warning["warning"], "message").contains("segment-1"), "{warning}");
    }
    assert!(place.json(["stats"]).line()["read_only"].is_string());
    let problems = place.json(["verify"]).line()["problems"].clone();
    assert_eq!((&problems[0]["file"], &problems[0]["offset"]), (&json!("segment-1"), &json!(8192)));
    for (id, content) in ids.iter().zip(["first", "second"]) {
        assert_eq!(place.run(["get", id, "-"]).well().out, content);
    }
    assert!(fs::read(&path).expect("there") == bytes, "nothing was truncated or mended");
}

#[test]
fn a_put_of_the_same_bytes_replaces_a_damaged_copy() {
    let place = Place::new();
    let bytes = noise(9, 40_000);
    let id = place.put("damaged", &bytes);
    flip_where(&place, &bytes[20_000..20_064]);
    place.run(["get", &id, "-"]).failed(5, "CORRUPT");
    place.put("again", &bytes);
    assert!(place.run(["get", &id, "-"]).well().bytes == bytes);
}

#[test]
fn a_store_without_its_superblock_is_damaged_also_where_something_strange_lies_in_it() {
    let place = Place::new();
    place.put("name", "bytes");
    fs::remove_file(place.store().join("superblock")).expect("removed");
    fs::write(place.store().join(".DS_Store"), "").expect("written");
    let ran = place.json(["verify"]);
    assert_eq!(ran.code, 5);
    assert_eq!(ran.line()["problems"][0]["file"], "superblock");
    place.run(["list"]).failed(5, "CORRUPT");
}

#[test]
fn strange_files_are_told_and_are_no_problem() {
    let place = Place::new();
    fs::write(place.store().join(".DS_Store"), "").expect("written");
    for command in ["verify", "stats"] {
        assert_eq!(place.json([command]).well().line()["strange_files"], json!([".DS_Store"]));
        assert!(place.run([command]).well().out.contains(".DS_Store"));
    }
    assert!(place.store().join(".DS_Store").exists());
}
