//! `inspect`: files of a store, whole and damaged, also where the store itself cannot be opened.

use std::fs;

use serde_json::Value;

use crate::support::{Place, keys, noise, text};

fn inspected(place: &Place, args: &[&str]) -> Vec<Value> {
    let lines = place.json([&["inspect"], args].concat()).well().lines();
    assert!(!lines.is_empty(), "{args:?}");
    for line in &lines {
        assert_eq!(keys(line), ["fields", "kind", "offset"]);
        assert!(line["offset"].is_u64() && line["kind"].is_string() && line["fields"].is_object(), "{line}");
    }
    lines
}

fn has_damage(line: &Value) -> bool {
    line["fields"].get("damage").is_some()
}

#[test]
fn every_file_of_a_closed_store_is_read_without_damage() {
    let place = Place::new();
    place.put("short", "bytes");
    place.put("long", noise(1, 2_500_000));
    for name in place.names("store") {
        let lines = inspected(&place, &["--frames", &format!("store/{name}")]);
        assert!(!lines.iter().any(has_damage), "{name}: {lines:?}");
        assert!(lines[0]["kind"] != "unknown", "{name}");
    }
}

#[test]
fn it_prints_no_payload_and_no_name() {
    let place = Place::new();
    place.write("a-name-to-look-for", "a payload to look for");
    place.run(["put", "--account", "an-account-to-look-for", "a-name-to-look-for"]).well();
    for name in place.names("store") {
        let out = place.run(["inspect", "--frames", &format!("store/{name}")]).well().out;
        assert!(!out.contains("to-look-for") && !out.contains("to look for"), "{name}: {out}");
    }
}

#[test]
fn frames_are_shown_one_by_one_when_asked_for() {
    let place = Place::new();
    place.put("name", "bytes");
    let kinds =
        |args: &[&str]| -> Vec<String> { inspected(&place, args).iter().map(|line| text(line, "kind")).collect() };
    let all = kinds(&["--frames", "store/segment-1"]);
    assert!(all.iter().any(|kind| kind == "chunk") && all.iter().any(|kind| kind == "commit"), "{all:?}");
    assert!(!kinds(&["store/segment-1"]).iter().any(|kind| kind == "chunk"));
}

#[test]
fn a_store_that_cannot_be_opened_is_still_read() {
    let place = Place::new();
    place.put("name", "bytes");
    let path = place.store().join("superblock");
    let mut bytes = fs::read(&path).expect("there");
    for copy in 0..4 {
        bytes[copy * 4096 + 100] ^= 0x10;
    }
    fs::write(&path, bytes).expect("written");
    place.run(["list"]).failed(5, "CORRUPT");
    assert!(inspected(&place, &["store/superblock"]).iter().any(has_damage));
    let frames = inspected(&place, &["--frames", "store/segment-1"]);
    assert!(frames.iter().any(|line| line["kind"] == "commit"), "{frames:?}");
}

#[test]
fn frames_behind_two_damaged_headers_are_found_through_the_superblock() {
    let place = Place::new();
    place.put("name", "bytes");
    let path = place.store().join("segment-1");
    let mut bytes = fs::read(&path).expect("there");
    bytes[60] ^= 1;
    bytes[4096 + 60] ^= 1;
    fs::write(&path, bytes).expect("written");
    let lines = inspected(&place, &["--frames", "store/segment-1"]);
    assert!(lines.iter().filter(|line| has_damage(line)).count() >= 2, "{lines:?}");
    assert!(lines.iter().any(|line| line["kind"] == "commit"), "{lines:?}");
}

#[test]
fn what_is_no_file_of_a_store_is_told() {
    let place = Place::new();
    place.write("letter", "dear store");
    assert_eq!(inspected(&place, &["letter"])[0]["kind"], "unknown");
    place.write("empty", "");
    assert_eq!(inspected(&place, &["empty"])[0]["kind"], "unknown");
    place.run(["inspect", "store"]).failed(2, "NOT_REGULAR");
    place.run(["inspect", "nowhere"]).failed(6, "NOT_READY");
}

#[test]
fn bytes_of_any_kind_under_a_stores_name_are_no_panic() {
    let place = Place::empty();
    for (name, seed) in [("superblock", 1), ("manifest-1.a", 2), ("segment-1", 3), ("reserve-2", 4), ("LOCK", 5)] {
        for len in [0, 1, 63, 4096, 20_000] {
            place.write(name, noise(seed, len));
            place.run(["inspect", "--frames", name]).well();
        }
    }
}
