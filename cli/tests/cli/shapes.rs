//! The JSON names, which scripts rely on. A key more or less is a change of the interface.

use serde_json::{Value, json};

use crate::support::{Place, keys, text};

pub(crate) const VERIFIED: [&str; 8] =
    ["artifacts", "blobs", "bytes", "chunks", "ok", "problems", "strange_files", "unnamed_files"];

const RECORD: [&str; 17] = [
    "account",
    "created_at",
    "detected_type",
    "expires_at",
    "id",
    "logical_size",
    "media_type",
    "name",
    "origin",
    "owner",
    "sha256",
    "size",
    "state",
    "supersedes",
    "tenant",
    "truncated",
    "version",
];

#[test]
fn init_put_get_and_stats_have_their_names() {
    let place = Place::empty();
    let made = place.json(["init"]).well().line();
    assert_eq!(keys(&made), ["format", "store", "uuid"]);
    assert_eq!(made["format"], json!(1));
    assert_eq!(text(&made, "store"), place.store().to_string_lossy());

    place.write("notes.txt", "some notes\n");
    let put = place.json(["put", "./notes.txt"]).well().line();
    assert_eq!(keys(&put), ["id", "media_type", "name", "path", "replayed", "sha256", "size"]);
    assert_eq!(put["name"], "notes.txt");
    assert_eq!(put["path"], "./notes.txt", "the argument as given");
    assert_eq!(put["size"], 11);
    assert_eq!(put["replayed"], false);
    let id = text(&put, "id");
    assert_eq!(id.len(), 26);

    let got = place.json(["get", &id, "out.txt"]).well().line();
    assert_eq!(keys(&got), ["id", "path", "sha256", "size"]);
    assert_eq!((&got["id"], &got["sha256"], &got["size"]), (&put["id"], &put["sha256"], &put["size"]));
    assert_eq!(got["path"], "out.txt");

    let stats = place.json(["stats"]).well().line();
    assert_eq!(
        keys(&stats),
        [
            "artifacts",
            "blobs",
            "chunks",
            "dead_bytes",
            "disk_bytes",
            "live_bytes",
            "logical_bytes",
            "mended_pages",
            "mirror_reads",
            "problems",
            "read_only",
            "replayed_bytes",
            "segments",
            "strange_files",
            "tables",
            "unique_bytes"
        ]
    );
    assert_eq!((&stats["read_only"], &stats["strange_files"]), (&Value::Null, &json!([])));
    let figures = stats.as_object().expect("an object").iter();
    let mut figures = figures.filter(|(key, _)| !["read_only", "strange_files"].contains(&key.as_str()));
    assert!(figures.all(|(_, value)| value.is_u64()), "{stats}");
    assert_eq!(
        (&stats["artifacts"], &stats["logical_bytes"], &stats["unique_bytes"]),
        (&json!(1), &json!(11), &json!(11))
    );
}

#[test]
fn a_record_has_its_names_and_words() {
    let place = Place::new();
    place.write("a.txt", "text");
    place.json(["put", "--account", "ann", "--origin", "tool_output", "--expires-in", "30d", "a.txt"]).well();
    let listed = place.json(["list", "--account", "ann"]).well().line();
    assert_eq!(keys(&listed), RECORD);
    assert_eq!(keys(&listed["owner"]), ["id", "kind"]);
    assert_eq!(listed["owner"], json!({"kind": "account", "id": "ann"}));
    assert_eq!((&listed["account"], &listed["tenant"]), (&json!("ann"), &json!("default")));
    assert_eq!(
        (&listed["origin"], &listed["state"], &listed["version"]),
        (&json!("tool_output"), &json!("owned"), &json!(1))
    );
    for time in ["created_at", "expires_at"] {
        let time = text(&listed, time);
        assert!(time.starts_with("20") && time.ends_with('Z') && time.contains('T'), "{time}");
        assert_eq!(time.len(), "2026-01-01T00:00:00.000Z".len(), "{time}");
    }
    let stat = place.json(["stat", "--account", "ann", &text(&listed, "id")]).well().line();
    assert_eq!(stat, listed);

    let forever = place.put("b", [0, 1, 2]);
    let stat = place.json(["stat", &forever]).well().line();
    assert_eq!(stat["expires_at"], Value::Null);
}

#[test]
fn verify_has_its_names() {
    let place = Place::new();
    place.put("a", "bytes");
    for args in [&["verify"][..], &["verify", "--deep"], &["verify", "--refs"], &["verify", "--deep", "--refs"]] {
        let report = place.json(args).well().line();
        assert_eq!(keys(&report), VERIFIED, "{args:?}");
        assert_eq!((&report["ok"], &report["problems"], &report["artifacts"]), (&json!(true), &json!([]), &json!(1)));
    }
}

#[test]
fn repair_has_its_names() {
    let place = Place::new();
    place.put("a", "bytes");
    for args in [&["repair"][..], &["repair", "--dry-run"]] {
        let report = place.json(args).well().line();
        assert_eq!(keys(&report), ["done", "lost", "plan", "problems"]);
        let wanted = json!({"done": args.len() == 1, "lost": [], "plan": [], "problems": 0});
        assert_eq!(report, wanted, "{args:?}");
    }
}

#[test]
fn an_error_has_its_names_on_standard_error_alone() {
    let place = Place::new();
    for (args, code, kind) in [
        (vec!["stat", "aaaaaaaaaaaaaaaaaaaaaaaaaa"], 3, "NOT_FOUND"),
        (vec!["get", "aaaaaaaaaaaaaaaaaaaaaaaaaa"], 3, "NOT_FOUND"),
        (vec!["put", "nowhere"], 6, "NOT_READY"),
        (vec!["put", "store"], 2, "NOT_REGULAR"),
        (vec!["put", "--root", ".", "/etc/hostname"], 2, "ESCAPES_ROOT"),
    ] {
        let ran = place.json(&args);
        assert_eq!((ran.code, ran.out.as_str()), (code, ""), "{args:?} {}", ran.err);
        let error: Value = serde_json::from_str(&ran.err).expect("one object");
        assert_eq!(keys(&error), ["error"]);
        assert_eq!(keys(&error["error"]), ["file", "kind", "message", "offset"]);
        assert_eq!(error["error"]["kind"], kind, "{args:?}");
    }
}

#[test]
fn a_list_is_in_the_order_of_the_puts_and_goes_on_behind_an_id() {
    let place = Place::new();
    let ids: Vec<_> = (0..7).map(|n| place.put(&format!("file-{n}"), [n])).collect();
    let listed = |args: &[&str]| -> Vec<String> {
        place.json([&["list"], args].concat()).well().lines().iter().map(|line| text(line, "id")).collect()
    };
    assert_eq!(listed(&[]), ids);
    assert_eq!(listed(&["--limit", "3"]), ids[..3]);
    assert_eq!(listed(&["--limit", "3", "--after", &ids[2]]), ids[3..6]);
    assert_eq!(listed(&["--after", &ids[6]]), <[String; 0]>::default());
    place.run(["list", "--after", "aaaaaaaaaaaaaaaaaaaaaaaaaa"]).failed(3, "NOT_FOUND");
}
