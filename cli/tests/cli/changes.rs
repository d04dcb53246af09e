//! `delete`, `expire-at`, `link`, `rename` and `stat` of several: what they print, and what they refuse.

use serde_json::{Value, json};

use crate::support::{Place, text};

const NOBODY: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaa";

#[test]
fn a_deletion_goes_on_behind_one_that_fails_and_a_dry_run_deletes_nothing() {
    let place = Place::new();
    let ids = ["a", "b"].map(|name| place.put(name, name));
    let states = |ran: crate::support::Ran| ran.lines().iter().map(|line| text(line, "state")).collect::<Vec<_>>();
    assert_eq!(states(place.json(["delete", "--dry-run", &ids[0], &ids[1]]).well()), ["owned", "owned"]);
    let ran = place.json(["delete", &ids[0], NOBODY, &ids[1]]).failed(3, "NOT_FOUND");
    assert!(ran.err.contains(NOBODY), "it says which: {}", ran.err);
    assert_eq!(states(ran), ["deleted", "deleted"]);
    assert_eq!(place.run(["list"]).well().out, "");
    place.run(["get", &ids[0], "-"]).failed(3, "GONE");
    assert_eq!(states(place.json(["delete", &ids[0]]).well()), ["deleted"], "a second time is done");
    place.run(["delete", "--account", "ann", &ids[0]]).failed(3, "NOT_FOUND");
    place.run(["verify", "--deep", "--refs"]).well();
}

#[test]
fn c3_several_records_are_shown_and_what_is_not_there_is_told_by_its_id() {
    let place = Place::new();
    let ids = ["a", "b"].map(|name| place.put(name, name));
    place.run(["delete", &ids[1]]).well();
    let ran = place.json(["stat", &ids[0], NOBODY, &ids[1]]).failed(3, "NOT_FOUND");
    let error: Value = serde_json::from_str(&ran.err).expect("one object");
    assert_eq!(error["error"]["file"], NOBODY);
    let states: Vec<_> = ran.lines().iter().map(|line| text(line, "state")).collect();
    assert_eq!(states, ["owned", "deleted"]);
}

#[test]
fn an_end_is_set_taken_away_and_held_against_the_version_that_was_seen() {
    let place = Place::new();
    let id = place.put("a", "a");
    let set = |args: &[&str]| place.json([&["expire-at", &id], args].concat());
    let first = set(&["2099-01-01T00:00:00Z", "--if-version", "1"]).well().line();
    assert_eq!(first, json!({"id": id, "expires_at": "2099-01-01T00:00:00.000Z", "version": 2}));
    set(&["30d", "--if-version", "1"]).failed(4, "VERSION_CONFLICT");
    set(&["2001-01-01T00:00:00Z"]).failed(2, "INVALID_ARGUMENT");
    let never = set(&["never", "--if-version", "2"]).well().line();
    assert_eq!(never, json!({"id": id, "expires_at": null, "version": 3}));
    place.run(["conversation", "open", "--conversation", "c"]).well();
    let link = place.json(["link", &id, "--to-conversation", "c"]).well().line();
    let linked = ["expire-at", "--conversation", "c", &text(&link, "id"), "1d"];
    place.run(linked).failed(4, "NOT_EXPIRABLE");
    place.run(["delete", &id]).well();
    set(&["1d"]).failed(3, "GONE");
}

#[test]
fn a_link_is_made_once_by_its_op_id_and_refused_as_a_put_is() {
    let place = Place::new();
    place.run(["conversation", "open", "--conversation", "c"]).well();
    let id = place.put("a", "a");
    let link = ["link", "--to-conversation", "c", "--name", "b", "--op-id", "l-1", &id];
    let first = place.json(link).well().line();
    assert_eq!((&first["name"], &first["replayed"]), (&json!("b"), &json!(false)));
    let again = place.json(link).well().line();
    assert_eq!((&again["id"], &again["replayed"]), (&first["id"], &json!(true)));
    place.run(["link", "--to-conversation", "nowhere", &id]).failed(3, "NOT_FOUND");
    place.run(["link", "--to-conversation", "c", "--to-account", "bob", &id]).failed(3, "NOT_FOUND");
    place.run(["link", "--to-account", "bob", "--name", "..", &id]).failed(2, "BAD_NAME");
    place.run(["conversation", "archive", "--conversation", "c"]).well();
    place.run(["link", "--to-conversation", "c", &id]).failed(4, "CONV_ARCHIVED");
    place.run(["rename", "--conversation", "c", &text(&first, "id"), "x"]).failed(4, "CONV_ARCHIVED");
    place.run(["conversation", "fork", "--conversation", "c", "--to", "c"]).failed(2, "INVALID_ARGUMENT");
    let theirs = place.json(["link", "--to-account", "bob", "--detach", &id]).well().line();
    let record = place.json(["stat", "--account", "bob", &text(&theirs, "id")]).well().line();
    assert_eq!((&record["account"], &record["version"]), (&json!("bob"), &json!(1)));
}

#[test]
fn a_prune_shows_what_goes_and_what_would() {
    let place = Place::new();
    for conversation in ["first", "second", "third"] {
        place.run(["conversation", "open", "--conversation", conversation]).well();
    }
    let lines = |args: &[&str]| -> Vec<(String, String)> {
        let ran = place.json([&["prune"], args].concat()).well();
        ran.lines().iter().map(|line| (text(line, "conversation"), text(line, "state"))).collect()
    };
    let of = |state: &str| ["first", "second"].map(|name| (name.to_owned(), state.to_owned()));
    assert_eq!(lines(&["--keep", "1", "--dry-run"]), of("open"));
    assert_eq!(lines(&["--older-than", "1d"]), []);
    assert_eq!(lines(&["--keep", "1"]), of("deleted"));
    assert_eq!(lines(&["--keep", "1"]), []);
    let left = place.json(["conversation", "list"]).well().line();
    assert_eq!(text(&left, "conversation"), "third");
    for wrong in [&[][..], &["--keep", "1", "--older-than", "1d"], &["--keep", "-1"], &["--older-than", "1"]] {
        place.run([&["prune"], wrong].concat()).failed(2, "");
    }
}
