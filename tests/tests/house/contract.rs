//! The contract against the tests: each row that it says is shown has a test of its name, and no test names a row that it lacks.

use std::collections::BTreeSet;

use crate::tree::{files, is_rust, text};

/// `a13`, `s02`: a letter of a list and a number.
fn is_id(word: &str) -> bool {
    let mut chars = word.chars();
    chars.next().is_some_and(|c| "abcs".contains(c)) && word.len() > 1 && chars.all(|c| c.is_ascii_digit())
}

/// Ids at the front of a test's name: `a8_and_a12_only_...`.
fn ids_of(name: &str) -> Vec<String> {
    let words = name.split('_').take_while(|word| is_id(word) || *word == "and");
    words.filter(|word| *word != "and").map(str::to_uppercase).collect()
}

/// Names of the tests in a source.
fn tests_of(source: &str) -> Vec<String> {
    let mut lines = source.lines();
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        if line.trim() == "#[test]"
            && let Some(next) = lines.next()
            && let Some(rest) = next.trim().strip_prefix("fn ")
        {
            found.push(rest.split('(').next().unwrap_or_default().to_owned());
        }
    }
    found
}

#[test]
fn the_contract_and_the_tests_name_the_same_rows() {
    let sources = ["tests/tests/contract", "cli/tests/cli"].map(files).concat();
    let names: Vec<_> = sources.iter().filter(|path| is_rust(path)).flat_map(|path| tests_of(&text(path))).collect();
    let tested: BTreeSet<_> = names.iter().flat_map(|name| ids_of(name)).collect();
    let contract = text("tests/CONTRACT.md");
    let first = |line: &str| Some(line.strip_prefix("| ")?.split(" |").next()?.to_owned());
    let rows: Vec<_> = contract.lines().filter_map(first).filter(|id| is_id(&id.to_lowercase())).collect();
    let shown: BTreeSet<_> = rows.iter().cloned().collect();
    assert_eq!(rows.len(), shown.len(), "a row stands twice");
    assert_eq!(shown, tested, "left: the rows of the contract; right: those that tests name");
}

#[test]
fn the_reader_of_names_finds_their_ids() {
    assert_eq!(ids_of("a8_and_a12_only_exports"), ["A8", "A12"]);
    assert_eq!(ids_of("s01_s04_the_same"), ["S01", "S04"]);
    assert_eq!(ids_of("a_claim_shows"), Vec::<String>::new());
    assert_eq!(tests_of("#[test]\nfn a1_x() {}\nfn b2_helper() {}\n"), ["a1_x"]);
}
