//! `conversation` and `run`: the life of an exported file, in commands as they are typed.

use serde_json::{Value, json};

use crate::support::{Place, keys, text};

/// A store with an open conversation and a run; gives run and token.
fn begun(place: &Place) -> (String, String) {
    place.run(["conversation", "open", "--conversation", "thread-7"]).well();
    let begun = place.json(["run", "begin", "--conversation", "thread-7", "--request-id", "job-12"]).well().line();
    assert_eq!(keys(&begun), ["run", "token"]);
    (text(&begun, "run"), text(&begun, "token"))
}

#[test]
fn a28_and_b7_the_life_of_an_exported_file_from_run_to_deletion() {
    let place = Place::new();
    let (run, token) = begun(&place);
    let again = place.json(["run", "begin", "--conversation", "thread-7", "--request-id", "job-12"]).well().line();
    assert_eq!(text(&again, "token"), token, "a retry");

    place.write("report.txt", "a report\n");
    let put = place.json(["put", "--token", &token, "--origin", "sandbox_export", "report.txt"]).well().line();
    let id = text(&put, "id");
    let pending = place.json(["stat", "--run", &run, &id]).well().line();
    assert_eq!((&pending["state"], &pending["owner"]), (&json!("pending"), &json!({"kind": "run", "id": run})));
    assert!(pending["expires_at"].is_string());

    let claim = ["run", "claim", "--token", &token, "--conversation", "thread-7", "--reply-id", "msg-3"];
    let claimed = place.json(claim).well().line();
    assert_eq!(keys(&claimed), ["artifacts", "replayed", "skipped"]);
    assert_eq!((&claimed["artifacts"][0]["id"], &claimed["replayed"]), (&json!(id), &json!(false)));
    assert_eq!(place.json(claim).well().line()["replayed"], true);
    place.run([&claim[..7], &["msg-4"]].concat()).failed(4, "ALREADY_CLAIMED");

    let finish = ["run", "finish", "--token", &token, "--outcome", "succeeded"];
    let finished = place.json(finish).well().line();
    assert_eq!(finished, json!({"run": run, "outcome": "succeeded"}));
    place.run(["run", "finish", "--token", &token, "--outcome", "failed"]).failed(4, "ALREADY_FINISHED");

    let listed = place.json(["list", "--conversation", "thread-7"]).well().line();
    assert_eq!((&listed["id"], &listed["expires_at"], &listed["state"]), (&json!(id), &Value::Null, &json!("owned")));
    assert_eq!(listed["owner"], json!({"kind": "conversation", "id": "thread-7"}));
    place.run(["get", "--conversation", "thread-7", &id, "back.txt"]).well();
    assert_eq!(std::fs::read(place.path("back.txt")).expect("written"), b"a report\n");
    place.run(["get", &id, "-"]).failed(3, "NOT_FOUND");
    assert_eq!(place.json(["list", "--all"]).well().line()["id"], id);

    place.run(["conversation", "open", "--conversation", "thread-8"]).well();
    let forked = place.json(["conversation", "fork", "--conversation", "thread-7", "--to", "thread-8"]).well().line();
    assert_eq!(keys(&forked), ["artifacts", "conversation", "replayed"]);
    let copy = text(&forked["artifacts"][0], "id");
    let renamed = place.json(["rename", "--conversation", "thread-7", &id, "report-final.txt"]).well().line();
    assert_eq!(keys(&renamed), ["id", "media_type", "name", "replayed", "sha256", "size"]);
    assert_eq!((&renamed["name"], &renamed["sha256"]), (&json!("report-final.txt"), &put["sha256"]));
    place.run(["get", "--conversation", "thread-7", &id, "-"]).failed(3, "GONE");
    let link = ["link", "--conversation", "thread-8", "--to-account", "default", &copy];
    let link = text(&place.json(link).well().line(), "id");
    let ends = place.json(["expire-at", &link, "90d"]).well().line();
    assert_eq!(keys(&ends), ["expires_at", "id", "version"]);
    assert_eq!((ends["expires_at"].is_string(), &ends["version"]), (true, &json!(2)));
    let deleted = place.json(["delete", &link]).well().line();
    assert_eq!(keys(&deleted), ["id", "name", "size", "state"]);
    assert_eq!(deleted["state"], "deleted");
    let id = text(&renamed, "id");

    let deleted = place.json(["conversation", "delete", "--conversation", "thread-7"]).well().line();
    assert_eq!(deleted, json!({"conversation": "thread-7", "state": "deleted"}));
    place.run(["get", "--conversation", "thread-7", &id, "-"]).failed(3, "GONE");
    assert_eq!(place.run(["list", "--conversation", "thread-7"]).well().out, "");
    place.run(["put", "--conversation", "thread-7", "--origin", "upload", "report.txt"]).failed(3, "CONV_GONE");
    place.run(["conversation", "open", "--conversation", "thread-7"]).failed(3, "CONV_GONE");
    let gone = place.json(["stat", "--conversation", "thread-7", &id]).well().line();
    assert_eq!(gone["state"], "deleted");
    assert_eq!(text(&place.json(["list", "--conversation", "thread-8"]).well().line(), "id"), copy, "the fork stays");
    place.run(["verify", "--deep", "--refs"]).well();
}

#[test]
fn leases_tags_and_lists_have_their_names() {
    let place = Place::new();
    let (run, token) = begun(&place);
    let renewed = place.json(["run", "renew", "--token", &token, "--lease", "1h"]).well().line();
    assert_eq!(keys(&renewed), ["lease_until", "run"]);
    assert!(renewed["lease_until"].is_string());
    let tagged = place.json(["run", "tag", "--run", &run, "--tag", "email=ann@example.org"]).well().line();
    assert_eq!(tagged, json!({"run": run, "affected": false}));
    let paused = place.json(["run", "pause", "--token", &token]).well().line();
    assert_eq!(paused["lease_until"], Value::Null);
    place.run(["run", "renew", "--token", &token]).failed(4, "LEASE_LOST");

    std::fs::write(place.path("token"), &token).expect("written");
    let next = place.json(["run", "begin", "--run", &run]).well().line();
    assert_eq!(text(&next, "run"), run);
    place.run(["run", "pause", "--token", "@token"]).failed(4, "STALE_TOKEN");
    std::fs::write(place.path("token"), text(&next, "token")).expect("written");
    place.run(["run", "pause", "--token", "@token"]).well();

    let listed = place.json(["run", "list"]).well().line();
    let names = ["account", "begun_at", "changed_lsn", "conversation", "ends_at", "generation", "lease_until"];
    assert_eq!(keys(&listed), [&names[..], &["parent", "run", "state"]].concat());
    assert_eq!((&listed["conversation"], &listed["generation"]), (&json!("thread-7"), &json!(2)));
    let conversations = place.json(["conversation", "list"]).well().line();
    assert_eq!(keys(&conversations), ["account", "changed_lsn", "conversation", "opened_at", "reset_lsn", "state"]);
    for (verb, state) in [("archive", "archived"), ("unarchive", "open"), ("reset", "open")] {
        let line = place.json(["conversation", verb, "--conversation", "thread-7"]).well().line();
        assert_eq!(line, json!({"conversation": "thread-7", "state": state}));
    }
}

#[test]
fn a_tenant_is_created_once_and_sees_nothing_of_another() {
    let place = Place::new();
    place.write("report.txt", "a report\n");
    let ours = text(&place.json(["put", "report.txt"]).well().line(), "id");
    place.run(["--tenant", "acme", "put", "report.txt"]).failed(3, "NOT_FOUND");
    place.run(["tenant", "show", "acme"]).failed(3, "NOT_FOUND");
    let created = place.json(["tenant", "create", "acme"]).well().line();
    assert_eq!(keys(&created), ["created_at", "existed", "number", "tenant"]);
    assert_eq!((&created["number"], &created["existed"]), (&json!(2), &json!(false)));
    assert_eq!(place.json(["tenant", "create", "acme"]).well().line()["existed"], true);
    assert_eq!(place.json(["tenant", "show", "acme"]).well().line()["created_at"], created["created_at"]);
    place.run(["tenant", "create", "no name"]).failed(2, "INVALID_ARGUMENT");
    let theirs = text(&place.json(["--tenant", "acme", "put", "report.txt"]).well().line(), "id");
    assert_ne!(ours, theirs);
    place.run(["--tenant", "acme", "stat", &ours]).failed(3, "NOT_FOUND");
    assert_eq!(place.json(["--tenant", "acme", "list"]).well().line()["id"], theirs);
}

#[test]
fn a_conversation_is_found_by_its_own_account_or_by_none() {
    let place = Place::new();
    place.run(["conversation", "open", "--account", "ann", "--conversation", "c"]).well();
    place.run(["conversation", "open", "--conversation", "c"]).failed(3, "NOT_FOUND");
    place.run(["conversation", "archive", "--account", "bob", "--conversation", "c"]).failed(3, "NOT_FOUND");
    place.write("a", "text");
    let put = ["put", "--conversation", "c", "--origin", "model_output", "a"];
    let line = place.json(put).well().line();
    let record = place.json(["stat", "--conversation", "c", &text(&line, "id")]).well().line();
    assert_eq!(record["account"], "ann");
    place.run([&put[..], &["--account", "bob"]].concat()).failed(3, "NOT_FOUND");
    assert_eq!(place.json(put).well().line()["replayed"], true, "the same file again");
    place.run([&put[..], &["--expires-in", "1d"]].concat()).failed(4, "NOT_EXPIRABLE");
    place.run(["--tenant", "other", "list"]).failed(3, "NOT_FOUND");
}
