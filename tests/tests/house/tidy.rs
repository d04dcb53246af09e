//! Small things that should not creep in.

use std::fs;

use crate::tree::{files, is_rust, is_text, root, text};

const LINES_MAX: usize = 500;

/// Each broken rule as `path:line: what`, over the lines of all texts.
fn broken(rule: impl Fn(&str, &str) -> Option<&'static str>) -> Vec<String> {
    let mut found = Vec::new();
    for path in files("").iter().filter(|path| is_text(path)) {
        for (index, line) in text(path).lines().enumerate() {
            if let Some(what) = rule(path, line) {
                found.push(format!("{path}:{}: {what}", index + 1));
            }
        }
    }
    found
}

#[track_caller]
fn assert_none(found: &[String]) {
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn no_source_file_is_longer_than_500_lines() {
    let long: Vec<_> = files("")
        .into_iter()
        .filter(|path| is_rust(path))
        .map(|path| (text(&path).lines().count(), path))
        .filter(|(lines, _)| *lines > LINES_MAX)
        .map(|(lines, path)| format!("{path}: {lines} lines"))
        .collect();
    assert_none(&long);
}

#[test]
fn nothing_is_left_for_later() {
    // Written in two parts each, so that this file passes its own test.
    let words = [["to", "do!"], ["unimple", "mented!"], ["FIX", "ME"], ["TO", "DO"], ["XX", "X"], ["#[ig", "nore"]]
        .map(|w| w.concat());
    assert_none(&broken(|path, line| {
        (is_rust(path) && words.iter().any(|word| line.contains(word))).then_some("left for later")
    }));
}

#[test]
fn no_text_names_a_place_of_one_machine() {
    let places = [["/wo", "rk/"], ["/ro", "ot/"], ["/ho", "me/"], ["/fa", "rm/"], ["/tm", "p/"], ["../sha", "red"]]
        .map(|p| p.concat());
    assert_none(&broken(|_, line| {
        let begins_here = |at: usize| !line[..at].ends_with(|c: char| c.is_alphanumeric() || "_-}~".contains(c));
        let named = |place: &String| line.match_indices(place.as_str()).any(|(at, _)| begins_here(at));
        places.iter().any(named).then_some("a path of one machine")
    }));
}

#[test]
fn texts_are_utf8_without_surprises() {
    for path in files("") {
        let bytes = fs::read(root().join(&path)).expect("readable");
        let readable = std::str::from_utf8(&bytes).is_ok_and(|text| !text.contains('\0'));
        let kept_as_bytes = path.starts_with("format-spec/vectors/");
        assert!(readable || kept_as_bytes, "{path} is neither UTF-8 nor a vector");
    }
    assert_none(&broken(|_, line| {
        let hidden = |c: char| {
            c.is_control() || ('\u{200b}'..='\u{200f}').contains(&c) || ('\u{202a}'..='\u{202e}').contains(&c)
        };
        if line.chars().any(hidden) {
            Some("a tab, a carriage return, or a character that nobody sees")
        } else if line.ends_with(' ') {
            Some("a space at the end of the line")
        } else {
            None
        }
    }));
}

#[test]
fn unsafe_code_stands_where_the_papers_say() {
    let opening = ["unsafe", " {"].concat();
    // The allocator is of the fuzz targets alone: it ends a process whose input makes it take too much.
    // The pair calls what is compiled for instructions that not every CPU has: twice the speed of SHA-256.
    let allowed = [
        "engine/src/disk/os.rs",
        "engine/src/disk/os/",
        "engine/src/disk/buffer.rs",
        "engine/src/digest/pair.rs",
        "fuzz/src/alloc.rs",
    ];
    assert_none(&broken(|path, line| {
        let outside = is_rust(path) && !allowed.iter().any(|place| path.starts_with(place));
        (outside && line.contains(&opening)).then_some("unsafe code")
    }));
}

#[test]
fn the_machinery_of_ci_can_be_run() {
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::metadata(root().join(".ci/run")).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o111, 0o111);
}
