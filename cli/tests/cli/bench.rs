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
