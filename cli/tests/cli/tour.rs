//! `quickstart`, run as a newcomer would, and the figures that it shows.

use std::fs;

use crate::support::{Place, Ran, holdfast, names};

#[test]
fn the_tour_holds_in_a_named_directory() {
    let place = Place::empty();
    let ran = place.run(["quickstart"]).well();
    for shown in
        ["$ holdfast init", "$ holdfast put", "$ holdfast get", "$ holdfast verify", "no problem found", "Next:"]
    {
        assert!(ran.out.contains(shown), "{shown} is not in:\n{}", ran.out);
    }
    place.run(["verify", "--deep", "--refs"]).well();
    assert!(!place.run(["list"]).well().out.is_empty());
}

#[test]
fn the_tour_makes_its_own_directory_and_cleans_up_what_is_not_the_store() {
    let place = Place::empty();
    let ran: Ran = holdfast()
        .arg("quickstart")
        .env("TMPDIR", place.path(""))
        .current_dir(place.path(""))
        .output()
        .expect("it starts")
        .into();
    ran.well();
    let left = names(&place.path(""));
    assert_eq!(left.len(), 1, "{left:?}");
    let store = left.first().expect("one name");
    assert!(store.starts_with("holdfast-quickstart-") && place.path(store).join("superblock").exists());
}

#[test]
fn the_tour_does_not_enter_a_directory_that_holds_something() {
    let place = Place::empty();
    fs::create_dir(place.store()).expect("made");
    fs::write(place.store().join("mine"), "mine").expect("written");
    assert_ne!(place.run(["quickstart"]).code, 0);
    assert_eq!(place.names("store").into_iter().collect::<Vec<_>>(), ["mine"]);
}

#[test]
fn under_json_the_tour_prints_the_objects_of_its_commands_alone() {
    let place = Place::empty();
    let lines = place.json(["quickstart"]).well().lines();
    assert!(lines.len() > 6);
    assert_eq!(lines[0]["format"], 1);
    assert!(lines.iter().any(|line| line["ok"] == true));
}

#[test]
fn the_tour_leaves_the_store_of_the_environment_alone() {
    let place = Place::new();
    let before = place.names("store");
    let ran: Ran = holdfast()
        .arg("quickstart")
        .env("TMPDIR", place.path(""))
        .env("HOLDFAST_STORE", place.store())
        .current_dir(place.path(""))
        .output()
        .expect("it starts")
        .into();
    ran.well();
    assert_eq!(place.names("store"), before);
    assert_eq!(place.run(["list"]).well().out, "");
}

#[test]
fn verify_and_stats_count_the_same_chunks() {
    let place = Place::new();
    place.put("long", crate::support::noise(1, 3 << 20));
    let count = |command| place.json([command]).well().line()["chunks"].as_u64().expect("a number");
    assert_eq!(count("verify"), count("stats"));
}
