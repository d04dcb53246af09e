//! The papers against the command line: what they show exists, and what exists is tested and shown.

use std::collections::BTreeSet;

use crate::tree::{files, text};

/// Commands by their files.
fn commands() -> BTreeSet<String> {
    let name = |path: String| Some(path.strip_prefix("cli/src/commands/")?.strip_suffix(".rs")?.replace('_', "-"));
    files("cli/src/commands").into_iter().filter_map(name).filter(|name| name != "mod").collect()
}

/// What the papers show of the command line: each `holdfast ...` in code, as words.
fn shown(paper: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut fenced = false;
    for line in paper.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if fenced {
            found.extend(calls(line));
        } else {
            // Odd parts between backticks are code.
            found.extend(line.split('`').skip(1).step_by(2).flat_map(calls));
        }
    }
    found
}

/// Calls in a line of code, each up to where the shell would begin another one.
fn calls(code: &str) -> Vec<Vec<String>> {
    let code = code.split(" # ").next().unwrap_or_default();
    let code = code.replace("cargo run --release -- ", "holdfast ");
    code.split(['|', ';', '&', '>', '('])
        .filter_map(|part| part.trim().trim_start_matches("$ ").strip_prefix("holdfast "))
        .map(|rest| rest.split_whitespace().map(|word| word.trim_end_matches(')').to_owned()).collect())
        .collect()
}

/// The command among the words; options of all commands, which may stand in front of it, are passed over.
fn command_of(words: &[String]) -> Option<&str> {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--store" => drop(words.next()),
            option if option.starts_with('-') => {}
            command => return Some(command),
        }
    }
    None
}

/// The file of a command, and those of the groups of arguments that it shares with others.
fn arguments_of(command: &str) -> String {
    let own = text(&format!("cli/src/commands/{}.rs", command.replace('-', "_")));
    let shared = files("cli/src").into_iter().filter(|path| !path.starts_with("cli/src/commands/"));
    let shared: String = shared.map(|path| text(&path)).filter(|text| shares(&own, text)).collect();
    own + &shared
}

/// True if a command takes a group of arguments that a text defines.
fn shares(command: &str, text: &str) -> bool {
    let fields = command.split("#[command(flatten)]").skip(1).filter_map(|rest| rest.trim_start().lines().next());
    let mut groups = fields.filter_map(|field| Some(field.split_once(": ")?.1.trim_end_matches(',')));
    groups.any(|group| text.contains(&format!("struct {group} ")))
}

fn papers() -> Vec<String> {
    let mut papers = files("docs");
    papers.push("README.md".to_owned());
    papers
}

#[test]
fn the_papers_show_no_command_and_no_option_that_is_not_there() {
    let commands = commands();
    for paper in papers() {
        for words in shown(&text(&paper)) {
            let Some(command) = command_of(&words) else { continue };
            // A placeholder in capitals stands for any command.
            if command.chars().all(|c| c.is_ascii_uppercase()) {
                continue;
            }
            assert!(commands.contains(command), "{paper} shows `holdfast {}`: there is no {command}", words.join(" "));
            let source = arguments_of(command);
            for option in words.iter().filter_map(|word| word.strip_prefix("--")).filter(|option| !option.is_empty()) {
                let field = format!(" {}:", option.split('=').next().unwrap_or(option).replace('-', "_"));
                let known = ["store", "json", "help", "version"].contains(&option) || source.contains(&field);
                assert!(known, "{paper} shows --{option} of {command}, which has no such option");
            }
        }
    }
}

#[test]
fn the_readme_shows_every_command() {
    let readme = text("README.md");
    let shown: BTreeSet<_> = shown(&readme).iter().filter_map(|words| command_of(words).map(str::to_owned)).collect();
    assert_eq!(shown, commands());
}

#[test]
fn the_tests_of_the_command_line_know_every_command() {
    let usage = text("cli/tests/cli/usage.rs");
    let (_, list) = usage.split_once("const COMMANDS").expect("the tests list the commands");
    let (list, _) = list.split_once(';').map_or(("", ""), |(_, rest)| rest.split_once(';').unwrap_or((rest, "")));
    let listed: BTreeSet<_> = list.split('"').skip(1).step_by(2).map(str::to_owned).collect();
    assert_eq!(listed, commands());
}

#[test]
fn the_reader_of_papers_finds_calls_and_their_commands() {
    let paper = "Use `holdfast put a | b`, or holdfast off.\n```\n$ holdfast --json --store x get --range 1-2 Y - # why\ncargo run --release -- quickstart\n```\n";
    let found: Vec<_> = shown(paper).iter().map(|words| command_of(words).expect("a command").to_owned()).collect();
    assert_eq!(found, ["put", "get", "quickstart"]);
}

#[test]
fn the_readme_gives_the_two_commands_to_start_with_and_ci_runs_its_tests() {
    let readme = text("README.md");
    for command in ["cargo run --release -- quickstart", "cargo test --workspace"] {
        assert!(readme.contains(command), "{command}");
    }
    assert!(text(".ci/run").contains("cargo test --workspace"));
}
