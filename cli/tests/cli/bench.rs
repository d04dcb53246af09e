//! `bench`, small: that each row comes with its yardstick, and that nothing stays behind.

use serde_json::Value;

use crate::support::{Place, keys};

#[track_caller]
fn rows(place: &Place, args: &[&str]) -> Vec<Value> {
    let lines = place.json(args).well().lines();
    for line in &lines {
        assert_eq!(keys(line), ["ratio", "row", "unit", "value", "yardstick"]);
        assert!(line["value"].as_f64().is_some_and(|value| value >= 0.0), "{line}");
    }
    lines
}

fn names(rows: &[Value]) -> Vec<&str> {
    rows.iter().map(|row| row["row"].as_str().expect("text")).collect()
}

#[test]
fn long_streams_give_all_rows_and_nothing_stays_behind() {
    let place = Place::empty();
    let rows = rows(&place, &["bench", "large", "--size", "3M", "--rounds", "2", "--dir", "."]);
    let expected = [
        "put",
        "put_written",
        "put_allocated",
        "put_again",
        "put_again_written",
        "get_cold",
        "get_hot",
        "insert_front",
        "put_four",
        "memory_peak",
    ];
    assert_eq!(names(&rows), expected);
    for row in &rows {
        let (value, yardstick, ratio) = (row["value"].as_f64(), row["yardstick"].as_f64(), row["ratio"].as_f64());
        let alone = row["row"] == "memory_peak";
        assert_eq!((yardstick.is_none(), ratio.is_none()), (alone, alone), "{row}");
        // JSON keeps sixteen digits of each.
        let difference = value.zip(yardstick).zip(ratio).map(|((value, yardstick), ratio)| value / yardstick - ratio);
        assert!(difference.unwrap_or(0.0).abs() < 1e-9, "{row}");
    }
    let bytes_put = rows[1]["yardstick"].as_f64();
    assert_eq!(bytes_put, Some(6.0), "two rounds of 3 MiB");
    assert!(place.names("").is_empty(), "{:?}", place.names(""));
}

#[test]
fn small_puts_give_a_rate_and_latencies_for_each_crowd() {
    let place = Place::empty();
    let wanted = "put_4k_8,put_4k_8_p99";
    let rows = rows(&place, &["bench", "small", "--rounds", "1", "--seconds", "1", "--rows", wanted]);
    assert_eq!(names(&rows), wanted.split(',').collect::<Vec<_>>());
    assert!(rows.iter().all(|row| row["ratio"].as_f64().is_some_and(|ratio| ratio > 0.0)), "{rows:?}");
    // The default place is beside the store, which is not touched.
    assert!(place.names("").is_empty(), "{:?}", place.names(""));
}

#[test]
fn a_stream_that_the_disk_has_no_room_for_is_refused_and_nothing_stays_behind() {
    let place = Place::empty();
    let ran = place.run(["bench", "large", "--size", "1024T"]).failed(7, "NO_SPACE");
    assert!(ran.err.contains("--size"), "{}", ran.err);
    assert!(place.names("").is_empty(), "{:?}", place.names(""));
}

/// The rows of look-ups, which are the last of a catalog.
const LOOKUPS: [&str; 8] = [
    "open_clean",
    "memory_open",
    "lookup_near",
    "lookup_hit",
    "lookup_miss",
    "memory_lookups",
    "lookup_cold",
    "cold_pages",
];

#[track_caller]
fn value(rows: &[Value], row: &str) -> f64 {
    let found = rows.iter().find(|found| found["row"] == row).and_then(|found| found["value"].as_f64());
    found.unwrap_or_else(|| panic!("no row {row} in {rows:?}"))
}

#[test]
fn a_catalog_of_a_store_is_filled_killed_opened_and_looked_up_in() {
    let place = Place::empty();
    let args = ["bench", "catalog", "--chunks", "600", "--lookups", "3000", "--rounds", "1"];
    let rows = rows(&place, &args);
    let own = ["put", "log_written", "tables_written", "tables_rewritten", "open_killed", "open_killed_read"];
    assert_eq!(names(&rows), [&own[..], &LOOKUPS].concat());
    // 600 blobs of 18 KiB stand in the log behind the checkpoint: an open that reads less was of a store that was closed.
    assert!(value(&rows, "open_killed_read") > 5.0, "{rows:?}");
    assert!(value(&rows, "cold_pages") < 4.0, "{rows:?}");
    for row in ["put", "tables_written", "open_killed", "memory_open", "lookup_hit", "lookup_miss", "lookup_cold"] {
        assert!(value(&rows, row) > 0.0, "{row}: {rows:?}");
    }
    assert!(place.names("").is_empty(), "{:?}", place.names(""));
}

#[test]
fn a_generated_catalog_has_tables_and_no_store() {
    let place = Place::empty();
    let args = ["bench", "catalog", "--generated", "150000", "--lookups", "3000", "--rounds", "2"];
    let rows = rows(&place, &args);
    let own = ["build", "build_entries", "entry_bytes", "merge", "merge_entries"];
    assert_eq!(names(&rows), [&own[..], &LOOKUPS].concat());
    // 72 bytes in buckets that are not full, and a filter.
    assert!((80.0..130.0).contains(&value(&rows, "entry_bytes")), "{rows:?}");
    assert!(value(&rows, "merge_entries") > 0.0, "{rows:?}");
    assert!(place.names("").is_empty(), "{:?}", place.names(""));
}

#[test]
fn a_catalog_gives_only_the_rows_that_are_asked_for() {
    let place = Place::empty();
    let args = ["bench", "catalog", "--generated", "1000", "--lookups", "100", "--rows", "entry_bytes,lookup_miss"];
    assert_eq!(names(&rows(&place, &args)), ["entry_bytes", "lookup_miss"]);
    let ran = place.run(["bench", "catalog", "--generated", "1000000000000"]).failed(7, "NO_SPACE");
    assert!(ran.err.contains("--dir"), "{}", ran.err);
}
