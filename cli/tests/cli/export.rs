//! `conversation export`, and lists that are sorted otherwise than they came.

use std::{collections::BTreeMap, io::Read};

use serde_json::{Value, json};

use crate::{
    damage::flip_where,
    support::{Place, keys, text},
};

/// A conversation with three files, whose own order is not that in which they came. Two have one name.
fn filled() -> (Place, Vec<String>) {
    let place = Place::new();
    place.run(["conversation", "open", "--conversation", "thread-7"]).well();
    place.write("late.txt", "comes first, is third");
    place.write("early.txt", "comes second, is first");
    place.write("other.txt", "comes third, is second");
    let put = |file: &str, name: &str, order: &str| {
        let put = ["put", "--conversation", "thread-7", "--origin", "upload", "--order", order, "--name", name, file];
        text(&place.json(put).well().line(), "id")
    };
    let ids = vec![
        put("late.txt", "late.txt", "30"),
        put("early.txt", "early.txt", "10"),
        put("other.txt", "early.txt", "20"),
    ];
    (place, ids)
}

/// Paths of an archive with their bytes, in its order.
fn entries(archive: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut archive = tar::Archive::new(archive);
    let entries = archive.entries().expect("reads").map(|entry| {
        let mut entry = entry.expect("an entry");
        let path = entry.path().expect("a path").to_string_lossy().into_owned();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).expect("reads");
        (path, bytes)
    });
    entries.collect()
}

#[test]
fn b13_and_c27_an_export_is_a_manifest_and_the_files_in_the_callers_order() {
    let (place, ids) = filled();
    let export = ["conversation", "export", "--conversation", "thread-7"];
    let line = place.json([&export[..], &["out.tar"]].concat()).well().line();
    assert_eq!(keys(&line), ["artifacts", "bytes", "conversation", "missing", "path"]);
    assert_eq!((&line["artifacts"], &line["bytes"], &line["missing"]), (&json!(3), &json!(65), &json!([])));
    let archive = std::fs::read(place.path("out.tar")).expect("written");
    let found = entries(&archive);
    let paths: Vec<_> = found.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["manifest.json", "files/00001/early.txt", "files/00002/early.txt", "files/00003/late.txt"]);
    assert_eq!(found[1].1, b"comes second, is first");
    assert_eq!(found[2].1, b"comes third, is second");
    assert_eq!(found[3].1, b"comes first, is third");

    let manifest: Value = serde_json::from_slice(&found[0].1).expect("JSON");
    assert_eq!(keys(&manifest), ["account", "artifacts", "conversation", "format"]);
    assert_eq!((&manifest["format"], &manifest["conversation"]), (&json!(1), &json!("thread-7")));
    let listed = place.json(["list", "--conversation", "thread-7", "--order", "native"]).well().lines();
    for (number, record) in listed.iter().enumerate() {
        let mut expected = record.clone();
        expected["path"] = json!(paths[number + 1]);
        expected["order"] = json!((number + 1) * 10);
        assert_eq!(manifest["artifacts"][number], expected);
    }
    assert_eq!(text(&listed[0], "id"), ids[1]);

    let streamed = place.run([&export[..], &["-"]].concat()).well().bytes;
    assert_eq!(streamed, archive, "the same state gives the same archive");
}

#[test]
fn b13_a_list_is_sorted_as_it_came_by_the_callers_order_or_by_name() {
    let (place, ids) = filled();
    let list = |order: &[&str]| {
        let lines = place.json([&["list", "--conversation", "thread-7"], order].concat()).well().lines();
        let number: BTreeMap<_, _> = ids.iter().zip(0..).collect();
        lines.iter().map(|line| number[&text(line, "id")]).collect::<Vec<_>>()
    };
    assert_eq!(list(&[]), [0, 1, 2]);
    assert_eq!(list(&["--order", "native"]), [1, 2, 0]);
    assert_eq!(list(&["--order", "name"]), [1, 2, 0]);
    assert_eq!(list(&["--order", "native", "--limit", "2"]), [1, 2]);
    place.run(["list", "--order", "native", "--after", &ids[0]]).failed(2, "cannot be used");
}

#[test]
fn an_export_leaves_out_what_it_cannot_read_and_says_so() {
    let (place, ids) = filled();
    flip_where(&place, b"comes second, is first");
    let export = ["conversation", "export", "--conversation", "thread-7", "out.tar"];
    let ran = place.json(export);
    let line = ran.failed(5, "CORRUPT").line();
    assert_eq!((&line["artifacts"], &line["missing"]), (&json!(2), &json!([ids[1]])));
    let found = entries(&std::fs::read(place.path("out.tar")).expect("written"));
    let paths: Vec<_> = found.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["manifest.json", "files/00002/early.txt", "files/00003/late.txt"]);
}

#[test]
fn what_is_no_conversation_has_no_export() {
    let (place, _) = filled();
    place.run(["conversation", "export", "--conversation", "thread-9", "out.tar"]).failed(3, "NOT_FOUND");
    place.run(["conversation", "delete", "--conversation", "thread-7"]).well();
    place.run(["conversation", "export", "--conversation", "thread-7", "out.tar"]).failed(3, "CONV_GONE");
    assert!(!place.path("out.tar").exists(), "nothing is left of an export that failed");
}
