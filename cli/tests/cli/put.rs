//! `put`: what is taken, what is refused, and that one refused file does not stop the others.

use std::{fs, os::unix::ffi::OsStrExt};

use serde_json::{Value, json};

use crate::support::{Place, noise, text};

#[test]
fn files_of_every_size_come_back() {
    let place = Place::new();
    for (seed, size) in
        [0, 1, 2, 4095, 65_536, 65_537, 700_000, 1 << 20, (1 << 20) + 1, 3_000_000].into_iter().enumerate()
    {
        let bytes = noise(seed as u64, size);
        let id = place.put("file", &bytes);
        let stat = place.json(["stat", &id]).well().line();
        assert_eq!(stat["size"], size as u64);
        assert!(place.run(["get", &id, "-"]).well().bytes == bytes, "{size} bytes came back as others");
    }
    place.run(["verify", "--deep", "--refs"]).well();
}

#[test]
fn the_empty_file_has_the_sha256_of_nothing() {
    let place = Place::new();
    place.write("empty", "");
    let put = place.json(["put", "empty"]).well().line();
    assert_eq!(put["sha256"], "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_eq!(put["size"], 0);
}

#[test]
fn a_file_that_fails_does_not_stop_the_others_and_the_first_failure_gives_the_code() {
    let place = Place::new();
    fs::create_dir(place.path("directory")).expect("made");
    place.write("a", "first");
    place.write("b", "second");
    place.write("bad\nname", "third");
    let ran = place.json(["put", "a", "directory", "missing", "bad\nname", "b"]);
    assert_eq!(ran.code, 2, "that of the directory, which came first: {}", ran.err);
    let stored: Vec<_> = ran.lines().iter().map(|line| text(line, "path")).collect();
    assert_eq!(stored, ["a", "b"]);
    let errors: Vec<Value> = ran.err.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    let told: Vec<_> = errors.iter().map(|e| (text(&e["error"], "kind"), e["error"]["message"].to_string())).collect();
    for ((kind, message), (expected, about)) in
        told.iter().zip([("NOT_REGULAR", "directory"), ("NOT_READY", "missing"), ("BAD_NAME", "bad")])
    {
        assert_eq!(kind, expected);
        assert!(message.contains(about), "{message}");
    }
    assert_eq!(told.len(), 3);

    assert_eq!(place.run(["put", "missing", "directory"]).code, 6);
}

#[test]
fn an_error_shows_no_line_break_of_a_name() {
    let place = Place::new();
    let ran = place.run(["put", "no\nsuch\u{1b}[31mfile"]).failed(6, "NOT_READY");
    assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
    assert!(!ran.err.contains('\u{1b}'));
}

#[test]
fn names_follow_the_rule() {
    let place = Place::new();
    place.write("file", "bytes");
    for bad in ["", ".", "..", "a/b", "a\nb", "a\u{202e}b", "a\u{7f}b", &"x".repeat(256), &"é".repeat(128)] {
        place.run(["put", "--name", bad, "file"]).failed(2, "BAD_NAME");
    }
    place.run(["put", ".."]).failed(2, "BAD_NAME");
    place.run(["put", &"x".repeat(256)]).failed(2, "BAD_NAME");
    for good in [" spaced name ", ".hidden", "back\\slash", "-dash", "日本語", &"x".repeat(255)] {
        let put = place.json(["put", &format!("--name={good}"), "file"]);
        assert_eq!(text(&put.well().line(), "name"), good);
    }
    let put = place.json(["put", "--name", "e\u{301}", "file"]).well().line();
    assert_eq!(put["name"], "\u{e9}", "normalised to NFC");
}

#[test]
fn a_name_of_255_bytes_goes_in_from_its_path_and_out_again() {
    let place = Place::new();
    let name = "n".repeat(255);
    fs::create_dir(place.path("in")).expect("made");
    place.write(&format!("in/{name}"), "bytes");
    let put = place.json(["put", &format!("in/{name}")]).well().line();
    assert_eq!(text(&put, "name"), name);
    place.run(["get", &text(&put, "id")]).well();
    assert_eq!(fs::read(place.path(&name)).expect("written"), b"bytes");
}

#[test]
fn a_name_that_is_not_utf8_is_refused() {
    let place = Place::new();
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9");
    fs::write(place.path("").join(name), "bytes").expect("written");
    place.run([std::ffi::OsStr::new("put"), name]).failed(2, "BAD_NAME");
}

#[test]
fn a_fifo_a_socket_a_device_and_a_directory_are_not_regular_and_do_not_block() {
    let place = Place::new();
    let fifo = place.path("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).expect("made");
    let _socket = std::os::unix::net::UnixListener::bind(place.path("socket")).expect("bound");
    for path in ["fifo", "socket", "/dev/null", "/dev/zero", "/"] {
        let args = ["put", "--name", "n", path];
        place.run(args).failed(2, "NOT_REGULAR");
    }
    assert_eq!(place.run(["list"]).well().out, "");
}

#[test]
fn without_a_root_a_link_is_followed_as_cp_would() {
    let place = Place::new();
    place.write("file", "bytes");
    std::os::unix::fs::symlink("file", place.path("link")).expect("made");
    let put = place.json(["put", "link"]).well().line();
    assert_eq!((&put["name"], &put["size"]), (&json!("link"), &json!(5)));
    std::os::unix::fs::symlink("nowhere", place.path("dangling")).expect("made");
    place.run(["put", "dangling"]).failed(6, "NOT_READY");
}

#[test]
fn an_op_id_makes_a_retry_safe() {
    let place = Place::new();
    place.write("file", "bytes");
    let first = place.json(["put", "--op-id", "job-1", "file"]).well().line();
    let again = place.json(["put", "--op-id", "job-1", "file"]).well().line();
    assert_eq!((&first["id"], &again["replayed"]), (&again["id"], &json!(true)));
    let other = place.json(["put", "--op-id", "job-2", "file"]).well().line();
    assert_ne!(other["id"], first["id"]);
    assert_eq!(place.json(["list"]).well().lines().len(), 2);
}

#[test]
fn what_has_expired_is_gone() {
    let place = Place::new();
    place.write("file", "bytes");
    let kept = place.json(["put", "--expires-in", "12h", "file"]).well().line();
    place.run(["get", &text(&kept, "id"), "-"]).well();
    place.run(["put", "--expires-in", "18446744073709551615d", "file"]).failed(2, "year 9999");
}

#[test]
fn the_media_type_is_the_callers_or_what_the_bytes_say() {
    let place = Place::new();
    let png = place.write("picture", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    let put = |args: &[&str]| place.json([&["put"], args].concat()).well().line();
    let picture = png.to_str().expect("ASCII");
    assert_eq!(put(&[picture])["media_type"], "image/png");
    assert_eq!(put(&["--media-type", "text/csv", picture])["media_type"], "text/csv");
    let stat = place.json(["stat", &text(&put(&["--media-type", "text/csv", picture]), "id")]).well().line();
    assert_eq!(stat["detected_type"], "image/png");
    assert_eq!(put(&["--media-type", "not a type", picture])["media_type"], "image/png");
}

#[test]
fn accounts_do_not_see_each_other() {
    let place = Place::new();
    place.write("file", "bytes");
    let id = text(&place.json(["put", "--account", "ann", "file"]).well().line(), "id");
    place.json(["put", "--account", "bob", "file"]).well();
    place.run(["stat", "--account", "bob", &id]).failed(3, "NOT_FOUND");
    place.run(["get", "--account", "bob", &id, "-"]).failed(3, "NOT_FOUND");
    place.run(["get", &id, "-"]).failed(3, "NOT_FOUND");
    place.run(["get", "--account", "ann", &id, "-"]).well();
}

#[test]
fn the_same_bytes_are_kept_once_within_a_tenant() {
    let place = Place::new();
    let bytes = noise(1, 500_000);
    place.put("one", &bytes);
    let before = place.json(["stats"]).well().line();
    place.put("two", &bytes);
    let after = place.json(["stats"]).well().line();
    assert_eq!(before["unique_bytes"], after["unique_bytes"]);
    assert_eq!(after["artifacts"], 2);
    assert_eq!(after["blobs"], 1);
}

#[test]
fn no_path_of_the_caller_is_kept_in_the_store() {
    let place = Place::new();
    let secret = "a-directory-that-nobody-should-learn-of";
    fs::create_dir(place.path(secret)).expect("made");
    place.write(&format!("{secret}/file"), "bytes");
    place.run(["put".as_ref(), place.path(secret).join("file").as_os_str()]).well();
    for name in place.names("store") {
        let bytes = fs::read(place.store().join(&name)).expect("readable");
        let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        assert!(!found, "{name} holds the source path");
    }
}

#[test]
fn the_order_of_several_files_rises_and_has_an_end() {
    let place = Place::new();
    place.write("a", "first");
    place.write("b", "second");
    let last = u64::MAX.to_string();
    let ran = place.json(["put", "--order", &last, "a", "b"]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert_eq!(ran.lines().len(), 1);
    assert!(ran.err.contains("--order"), "{}", ran.err);
}

#[test]
fn an_error_names_the_file_as_it_was_given_to_a_script_and_escaped_to_people() {
    let place = Place::new();
    let name = "no\nsuch\u{202e}file";
    let ran = place.json(["put", name]);
    let error: Value = serde_json::from_str(&ran.err).expect("one object");
    assert_eq!(error["error"]["file"], json!(name));
    let ran = place.run(["put", name]).failed(6, "NOT_READY");
    assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
    assert!(!ran.err.contains('\u{202e}'), "{}", ran.err);
}

#[test]
fn a_limit_on_the_size_of_files_is_told_like_a_full_disk() {
    let place = Place::new();
    place.write("long", noise(5, 3 << 20));
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", "ulimit -f 1000; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_holdfast"), "--store"]);
    let ran: crate::support::Ran = limited
        .arg(place.store())
        .args(["put", "long"])
        .current_dir(place.path(""))
        .output()
        .expect("it starts")
        .into();
    ran.failed(7, "NO_SPACE");
    let id = place.put("again", "bytes");
    assert_eq!(place.run(["get", &id, "-"]).well().out, "bytes");
    place.run(["verify", "--deep", "--refs"]).well();
}

#[test]
fn a20_a_text_is_checked_before_it_is_stored() {
    let place = Place::new();
    place.write("note.md", "fine");
    place.write("bytes", b"\xff\xfe");
    place.write("large", vec![b'a'; (1 << 20) + 1]);
    let put = place.json(["put", "--text", "--media-type", "text/markdown", "note.md"]).well().line();
    assert_eq!(put["media_type"], "text/markdown");
    let ran = place.json(["put", "--text", "bytes", "note.md"]).failed(2, "BAD_UTF8");
    assert_eq!(text(&ran.line(), "media_type"), "text/plain", "the others go on");
    place.run(["put", "--text", "large"]).failed(7, "TOO_LARGE");
    place.run(["put", "--text", "--media-type", "image/png", "note.md"]).failed(2, "BAD_TYPE");
    assert_eq!(place.json(["list"]).well().lines().len(), 2);
}
