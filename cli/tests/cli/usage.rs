//! Help, versions, arguments that do not fit, stores that are not there.

use std::fs;

use crate::support::{Place, Ran, holdfast, keys, text};

const COMMANDS: [&str; 24] = [
    "init",
    "put",
    "get",
    "materialize",
    "stat",
    "list",
    "link",
    "rename",
    "expire-at",
    "delete",
    "conversation",
    "run",
    "upload",
    "prune",
    "tenant",
    "verify",
    "repair",
    "inspect",
    "stats",
    "checkpoint",
    "quickstart",
    "bench",
    "completions",
    "man",
];

/// Verbs of commands that have some.
const VERBS: [(&str, &[&str]); 3] = [
    ("conversation", &["open", "archive", "unarchive", "reset", "fork", "export", "delete", "list"]),
    ("run", &["begin", "renew", "pause", "tag", "claim", "finish", "list"]),
    ("tenant", &["create", "show"]),
];

/// Every command with a help of its own.
fn all() -> Vec<Vec<&'static str>> {
    let verbs = VERBS.iter().flat_map(|(command, verbs)| verbs.iter().map(move |verb| vec![*command, *verb]));
    COMMANDS.iter().map(|command| vec![*command]).chain(verbs).collect()
}

/// A token in its form, of no run.
const TOKEN: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

fn run(args: &[&str]) -> Ran {
    holdfast().args(args).output().expect("it starts").into()
}

#[test]
fn the_help_lists_every_command() {
    let help = run(&["--help"]).well().out;
    let (_, rest) = help.split_once("Commands:\n").expect("it lists commands");
    let (list, _) = rest.split_once("\n\n").expect("the list ends");
    let listed: Vec<_> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(listed, COMMANDS, "a new command belongs into this test's list");
}

#[test]
fn every_help_has_an_example_and_its_exit_codes() {
    for command in [vec![]].into_iter().chain(all()) {
        let args: Vec<_> = command.iter().copied().chain(["--help"]).collect();
        let help = run(&args).well().out;
        assert!(help.contains("Example"), "{args:?}: {help}");
        assert!(help.contains("Exit codes:\n  0  done"), "{args:?}: {help}");
        let named = command.is_empty() || help.contains(&format!("  holdfast {}", command.join(" ")));
        assert!(named, "the example of {args:?} shows another command");
    }
}

#[test]
fn every_example_of_a_help_is_understood() {
    // Each example is run on an empty store: it may find nothing, but it is never the arguments that are wrong.
    let place = Place::new();
    place.write("token", TOKEN);
    for command in all() {
        let help = run(&command.iter().copied().chain(["--help"]).collect::<Vec<_>>()).well().out;
        let examples = help.split_once("Example").expect("it has one").1;
        for example in examples.lines().filter_map(|line| line.split_once("holdfast ").map(|(_, rest)| rest)) {
            let words: Vec<_> = example.split(" | ").next().expect("a first part").split_whitespace().collect();
            let words: Vec<_> = words.into_iter().take_while(|word| !word.starts_with('>')).collect();
            if ["init", "quickstart", "bench"].contains(&words[0]) {
                continue;
            }
            let ran: Ran = holdfast()
                .env("HOLDFAST_STORE", place.store())
                .args(&words)
                .current_dir(place.path(""))
                .output()
                .expect("it starts")
                .into();
            assert_ne!(ran.code, 2, "{example}: {}", ran.err);
        }
    }
}

#[test]
fn arguments_that_do_not_fit_exit_with_2_as_text_and_as_json() {
    let place = Place::new();
    place.write("file", "bytes");
    for args in [
        vec![],
        vec!["frobnicate"],
        vec!["put"],
        vec!["put", "--expires-in", "3w", "file"],
        vec!["put", "--origin", "elsewhere", "file"],
        vec!["put", "--order", "-1", "file"],
        vec!["put", "--name", "x", "file", "file"],
        vec!["put", "--op-id", "x", "file", "file"],
        vec!["put", "-"],
        vec!["put", "--name", "x", "--root", ".", "-"],
        vec!["put", "--account", "", "file"],
        vec!["put", "--account", "a b", "file"],
        vec!["get"],
        vec!["get", "short"],
        vec!["get", "AAAAAAAAAAAAAAAAAAAAAAAAAA"],
        vec!["get", "--range", "5-2", "aaaaaaaaaaaaaaaaaaaaaaaaaa"],
        vec!["get", "--expect-sha256", "00", "aaaaaaaaaaaaaaaaaaaaaaaaaa"],
        vec!["list", "--limit", "0"],
        vec!["list", "--after", "x"],
        vec!["init", "--segment-size", "1"],
        vec!["init", "--segment-size", "12345"],
        vec!["conversation"],
        vec!["conversation", "open"],
        vec!["conversation", "open", "--conversation", "a b"],
        vec!["conversation", "open", "--conversation", ""],
        vec!["conversation", "fork", "--conversation", "c"],
        vec!["link", "aaaaaaaaaaaaaaaaaaaaaaaaaa"],
        vec!["link", "--to-account", "a b", "aaaaaaaaaaaaaaaaaaaaaaaaaa"],
        vec!["rename", "aaaaaaaaaaaaaaaaaaaaaaaaaa"],
        vec!["rename", "aaaaaaaaaaaaaaaaaaaaaaaaaa", "a/b"],
        vec!["expire-at", "aaaaaaaaaaaaaaaaaaaaaaaaaa"],
        vec!["expire-at", "aaaaaaaaaaaaaaaaaaaaaaaaaa", "soon"],
        vec!["delete"],
        vec!["delete", "short"],
        vec!["stat"],
        vec!["run"],
        vec!["run", "begin", "--ttl", "0s"],
        vec!["run", "begin", "--tag", "email"],
        vec!["run", "begin", "--tag", "=x"],
        vec!["run", "begin", "--run", "short"],
        vec!["run", "renew"],
        vec!["run", "renew", "--token", "short"],
        vec!["run", "renew", "--token", "@missing"],
        vec!["run", "finish", "--token", TOKEN, "--outcome", "active"],
        vec!["run", "tag", "--tag", "email=x"],
        vec!["put", "--token", TOKEN, "file"],
        vec!["put", "--conversation", "c", "file"],
        vec!["put", "--conversation", "c", "--token", TOKEN, "--origin", "upload", "file"],
        vec!["list", "--conversation", "c", "--all"],
        vec!["bench"],
        vec!["bench", "wide"],
        vec!["bench", "large", "--rows", "put,putt"],
        vec!["bench", "large", "--size", "1K"],
        vec!["bench", "large", "--seconds", "1"],
        vec!["bench", "small", "--size", "1G"],
        vec!["bench", "small", "--rounds", "0"],
        vec!["bench", "small", "--chunks", "1000"],
        vec!["bench", "catalog", "--size", "1G"],
        vec!["bench", "catalog", "--chunks", "0"],
        vec!["bench", "catalog", "--chunks", "1000", "--generated", "1000"],
        vec!["bench", "catalog", "--generated", "1000", "--rows", "put"],
        vec!["completions", "sh"],
        vec!["inspect"],
    ] {
        let ran = place.run(&args);
        assert_eq!(ran.code, 2, "{args:?}: {}{}", ran.out, ran.err);
        assert_eq!(ran.out, "", "{args:?}");
        assert!(!ran.err.is_empty(), "{args:?}");

        let ran = place.json(&args);
        assert_eq!(ran.code, 2, "{args:?}");
        let error: serde_json::Value =
            serde_json::from_str(&ran.err).unwrap_or_else(|e| panic!("{args:?}: {e}: {}", ran.err));
        assert_eq!(keys(&error), ["error"]);
        assert_eq!(keys(&error["error"]), ["file", "kind", "message", "offset"]);
    }
    assert_eq!(place.json(["list"]).well().out, "", "nothing was stored");
}

#[test]
fn a_command_without_a_store_says_how_to_name_one() {
    let ran = run(&["list"]).failed(2, "INVALID_ARGUMENT");
    assert!(ran.err.contains("HOLDFAST_STORE"), "{}", ran.err);
}

#[test]
fn the_store_can_be_named_by_the_environment_and_after_the_command() {
    let place = Place::new();
    let id = place.put("name", "bytes");
    let by_environment: Ran =
        holdfast().env("HOLDFAST_STORE", place.store()).arg("list").output().expect("runs").into();
    assert!(by_environment.well().out.contains(&id));
    let store = place.store();
    let behind = run(&["list", "--store", store.to_str().expect("ASCII"), "--json"]);
    assert_eq!(text(&behind.well().line(), "id"), id);
}

#[test]
fn a_store_that_is_not_there_is_told_and_not_made() {
    let place = Place::empty();
    let commands = [vec!["list"], vec!["stats"], vec!["verify"], vec!["put", "/etc/hostname"]];
    for command in &commands {
        place.run(command).failed(2, "there is no store");
    }
    assert!(!place.store().exists());
    fs::create_dir(place.store()).expect("made");
    for command in &commands {
        place.run(command).failed(2, "there is no store");
    }
    assert!(place.names("store").is_empty(), "nothing was left in a directory that is no store");
}

#[test]
fn a_file_or_a_link_is_no_store() {
    let place = Place::empty();
    place.write("store", "a file");
    for command in [vec!["init"], vec!["list"], vec!["verify"]] {
        place.run(&command).failed(2, "INVALID_ARGUMENT");
    }
    assert_eq!(fs::read(place.store()).expect("it is there"), b"a file");

    let linked = Place::empty();
    fs::create_dir(linked.path("real")).expect("made");
    std::os::unix::fs::symlink("real", linked.store()).expect("linked");
    for command in [vec!["init"], vec!["list"], vec!["verify"]] {
        linked.run(&command).failed(2, "symbolic link");
    }
}

#[test]
fn init_refuses_a_directory_that_holds_anything() {
    let place = Place::new();
    let before = fs::read(place.store().join("superblock")).expect("it is there");
    let ran = place.run(["init"]);
    assert_ne!(ran.code, 0, "a store is not made over");
    assert_eq!(fs::read(place.store().join("superblock")).expect("it is there"), before);

    let other = Place::empty();
    fs::create_dir(other.store()).expect("made");
    fs::write(other.store().join("my-thesis.tex"), "years of work").expect("written");
    assert_ne!(other.run(["init"]).code, 0);
    assert_eq!(fs::read(other.store().join("my-thesis.tex")).expect("it is there"), b"years of work");
}

#[test]
fn init_makes_a_private_directory_and_a_store_that_opens() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::empty();
    let made = place.json(["init"]).well().line();
    assert_eq!(text(&made, "uuid").len(), 32);
    assert_eq!(fs::metadata(place.store()).expect("made").permissions().mode() & 0o777, 0o700);
    for name in place.names("store") {
        let permissions = fs::metadata(place.store().join(&name)).expect("there").permissions();
        assert_eq!(permissions.mode() & 0o777, 0o600, "{name}");
    }
    place.run(["verify", "--deep", "--refs"]).well();
    assert_eq!(place.run(["list"]).well().out, "");
    let on_disk = place.json(["stats"]).well().line()["disk_bytes"].as_u64().expect("a number");
    assert!(on_disk < 16 << 20, "a new store takes {on_disk} bytes");
}

#[test]
fn init_without_a_parent_directory_fails_and_names_it() {
    let place = Place::empty();
    let ran: Ran = holdfast().args(["init", "--store"]).arg(place.path("a/b")).output().expect("runs").into();
    let ran = ran.failed(1, "IO");
    assert!(ran.err.contains("a/b"), "{}", ran.err);
}

#[test]
fn completions_and_manual_pages_know_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let out = run(&["completions", shell]).well().out;
        for command in COMMANDS {
            assert!(out.contains(command), "{shell}: {command}");
        }
    }
    let place = Place::empty();
    fs::create_dir(place.path("man")).expect("made");
    place.run(["man", "man"]).well();
    for command in COMMANDS {
        let page = fs::read_to_string(place.path("man").join(format!("holdfast-{command}.1"))).expect("a page");
        assert!(page.contains("Exit codes"), "{command}");
    }
    place.run(["man", "nowhere"]).failed(1, "IO");
}

#[test]
fn the_version_is_that_of_the_package() {
    assert_eq!(run(&["--version"]).well().out, format!("holdfast {}\n", env!("CARGO_PKG_VERSION")));
}
