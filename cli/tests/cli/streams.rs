//! Standard input that ends, standard output and standard error that nobody reads, and a store that somebody else holds.

use std::{
    fs::File,
    io::{self, Write},
    process::Stdio,
};

use serde_json::json;

use crate::support::{Place, Ran, noise, text};

/// The write end of a pipe that nobody reads.
fn unread() -> Stdio {
    let (reader, writer) = io::pipe().expect("a pipe");
    drop(reader);
    writer.into()
}

#[test]
fn standard_input_is_stored_to_its_end() {
    let place = Place::new();
    let bytes = noise(2, 1_200_000);
    let mut child = place
        .command()
        .args(["--json", "put", "--name", "piped", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    child.stdin.take().expect("piped").write_all(&bytes).expect("it reads");
    let put = Ran::from(child.wait_with_output().expect("it ends")).well().line();
    assert_eq!((&put["name"], &put["path"], &put["size"]), (&json!("piped"), &json!("-"), &json!(1_200_000)));
    assert!(place.run(["get", &text(&put, "id"), "-"]).well().bytes == bytes);
}

#[test]
fn standard_input_that_was_never_open_is_empty() {
    let place = Place::new();
    let (reader, writer) = io::pipe().expect("a pipe");
    drop(writer);
    let ran: Ran =
        place.command().args(["--json", "put", "--name", "n", "-"]).stdin(reader).output().expect("it starts").into();
    assert_eq!(ran.well().line()["size"], 0);
}

#[test]
fn standard_input_that_is_a_directory_is_an_error() {
    let place = Place::new();
    let directory = File::open(place.path(".")).expect("it is there");
    let ran: Ran =
        place.command().args(["put", "--name", "n", "-"]).stdin(directory).output().expect("it starts").into();
    ran.failed(1, "IO");
    assert_eq!(place.run(["list"]).well().out, "", "nothing was stored");
}

#[test]
fn an_output_that_nobody_reads_ends_every_command_quietly() {
    let place = Place::new();
    place.write("file", "bytes");
    let id = place.put("name", noise(3, 200_000));
    for args in [
        vec!["put", "file"],
        vec!["get", &id, "-"],
        vec!["get", &id, "out"],
        vec!["stat", &id],
        vec!["list"],
        vec!["--json", "list"],
        vec!["stats"],
        vec!["verify"],
        vec!["inspect", "store/superblock"],
        vec!["completions", "bash"],
        vec!["--help"],
        vec!["put", "--help"],
        vec!["--version"],
        vec!["quickstart", "--store", "tour"],
    ] {
        let ran: Ran = place.command().args(&args).stdout(unread()).output().expect("it starts").into();
        assert_eq!((ran.code, ran.err.as_str()), (1, ""), "{args:?}");
    }
    place.run(["verify", "--deep", "--refs"]).well();
}

#[test]
fn a_full_output_is_an_error_that_is_told() {
    let place = Place::new();
    let id = place.put("name", "bytes");
    for args in [vec!["list"], vec!["get", &id, "-"], vec!["stats"]] {
        let full = File::options().write(true).open("/dev/full").expect("Linux has it");
        let ran: Ran = place.command().args(&args).stdout(full).output().expect("it starts").into();
        ran.failed(7, "NO_SPACE");
    }
}

#[test]
fn an_error_that_nobody_reads_still_has_its_code() {
    let place = Place::new();
    for (args, code) in
        [(vec!["put", "missing"], 6), (vec!["stat", "short"], 2), (vec!["--json", "list", "--limit", "0"], 2)]
    {
        let ran: Ran = place.command().args(&args).stderr(unread()).output().expect("it starts").into();
        assert_eq!(ran.code, code, "{args:?}");
    }
}

#[test]
fn a_second_process_is_told_who_holds_the_store() {
    let place = Place::new();
    let mut holder = place
        .command()
        .args(["--json", "put", "--name", "slow", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    // More than a pipe holds: when it is written, the first process has opened the store and reads.
    let bytes = noise(5, 300_000);
    let mut stdin = holder.stdin.take().expect("piped");
    stdin.write_all(&bytes).expect("it reads");

    place.write("file", "bytes");
    for args in [vec!["put", "file"], vec!["list"], vec!["verify"], vec!["stats"]] {
        let ran = place.run(&args).failed(6, "LOCKED");
        assert!(ran.err.contains(&holder.id().to_string()), "no process id in: {}", ran.err);
        assert!(ran.err.contains("holdfast put"), "no command in: {}", ran.err);
        assert_eq!(ran.out, "");
    }
    drop(stdin);
    let put = Ran::from(holder.wait_with_output().expect("it ends")).line();
    assert_eq!(put["size"], 300_000);
    place.run(["put", "file"]).well();
}

#[test]
fn a_put_that_is_killed_leaves_a_store_that_opens() {
    let place = Place::new();
    let id = place.put("before", "bytes");
    let mut child = place.command().args(["put", "--name", "n", "-"]).stdin(Stdio::piped()).spawn().expect("it starts");
    child.stdin.take().expect("piped").write_all(&noise(6, 3_000_000)).expect("it reads");
    child.kill().expect("it runs or has ended");
    child.wait().expect("it ends");
    assert_eq!(place.run(["get", &id, "-"]).well().bytes, b"bytes");
    let report = place.json(["verify", "--deep", "--refs"]).well().line();
    assert_eq!(report["ok"], true);
}
