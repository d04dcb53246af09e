//! `upload`: parts in, over restarts of the process; a commit, a claim.

use std::{io::Write as _, process::Stdio};

use serde_json::{Value, json};

use crate::support::{Place, keys, noise, text};

fn begun(place: &Place, args: &[&str]) -> String {
    let begun = place.json([&["upload", "begin"], args].concat()).well().line();
    assert_eq!(keys(&begun), ["declared", "expires_at", "offset", "upload"]);
    assert!(begun["expires_at"].is_string());
    text(&begun, "upload")
}

#[test]
fn c8_a_file_that_was_interrupted_goes_on_where_it_was_and_is_sent() {
    let place = Place::new();
    let bytes = noise(1, 2_500_000);
    place.write("part", &bytes[..1_200_000]);
    place.write("scan.tif", &bytes);
    let upload = begun(&place, &["--size", "2500000"]);
    let append = |file: &str| place.json(["upload", "append", &upload, file]);
    assert_eq!(append("part").well().line()["offset"], 1_200_000);
    assert_eq!(append("part").well().line()["offset"], 1_200_000, "a second time adds nothing");
    place.run(["upload", "append", "--offset", "7", &upload, "scan.tif"]).failed(4, "OFFSET_CONFLICT");
    let commit = ["upload", "commit", "--name", "scan.tif", &upload];
    place.run(commit).failed(6, "NOT_READY");
    let listed = place.json(["upload", "list"]).well().line();
    assert_eq!((text(&listed, "upload"), &listed["offset"]), (upload.clone(), &json!(1_200_000)));
    assert_eq!(append("scan.tif").well().line()["offset"], 2_500_000);
    place.run(["upload", "append", &upload, "part"]).failed(2, "INVALID_ARGUMENT");

    let committed = place.json(commit).well().line();
    assert_eq!(keys(&committed), ["id", "media_type", "name", "replayed", "sha256", "size", "upload"]);
    let id = text(&committed, "id");
    let again = place.json(commit).well().line();
    assert_eq!((text(&again, "id"), &again["replayed"]), (id.clone(), &json!(true)));
    assert_eq!(place.run(["upload", "list"]).well().out, "");
    let unsent = place.json(["upload", "list", "--unsent"]).well().line();
    assert_eq!((text(&unsent, "id"), &unsent["owner"]), (id.clone(), &json!({"kind": "upload", "id": upload})));
    assert!(place.run(["get", "--upload", &upload, &id, "-"]).well().bytes == bytes);

    place.run(["conversation", "open", "--conversation", "c"]).well();
    let claim = ["upload", "claim", "--conversation", "c", "--message-id", "m", &id];
    let claimed = place.json(claim).well().line();
    assert_eq!(keys(&claimed), ["artifacts", "replayed"]);
    assert_eq!((&claimed["artifacts"][0]["id"], &claimed["replayed"]), (&json!(id), &json!(false)));
    assert_eq!(claimed["artifacts"][0]["expires_at"], Value::Null);
    assert_eq!(place.json(claim).well().line()["replayed"], true);
    place.run([&claim[..5], &["other", &id]].concat()).failed(4, "ALREADY_CLAIMED");
    place.run(["get", "--upload", &upload, &id, "-"]).failed(3, "NOT_FOUND");
    assert!(place.run(["get", "--conversation", "c", &id, "-"]).well().bytes == bytes);
    assert_eq!(place.run(["upload", "list", "--unsent"]).well().out, "");
    place.run(["verify", "--deep", "--refs"]).well();
}

#[test]
fn c8_what_standard_input_brings_is_appended_and_an_abort_ends_it() {
    let place = Place::new();
    let upload = begun(&place, &["--account", "ann"]);
    let mut child = place
        .command()
        .args(["--json", "upload", "append", "--account", "ann", "--offset", "0", &upload, "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    child.stdin.take().expect("a pipe").write_all(b"from a pipe").expect("written");
    assert!(child.wait().expect("ends").success());
    let append = |account: &str| place.run(["upload", "append", "--account", account, &upload, "missing"]);
    append("ann").failed(6, "NOT_READY");
    append("bob").failed(3, "NOT_FOUND");
    let listed = place.json(["upload", "list", "--account", "ann"]).well().line();
    assert_eq!(listed["offset"], 11);
    for _ in 0..2 {
        let aborted = place.json(["upload", "abort", "--account", "ann", &upload]).well().line();
        assert_eq!(aborted, json!({"upload": upload}));
    }
    place.run(["upload", "commit", "--account", "ann", "--name", "a", &upload]).failed(3, "NOT_FOUND");
    place.run(["verify", "--deep", "--refs"]).well();
}
