//! Holds the engine to the floors of docs/ARCHITECTURE.md: a module names only modules of lower floors. Rust allows circles inside a
//! crate; this does not.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::{files, is_rust, text};

const FLOORS: &[&[&str]] = &[
    &["ids", "limits", "sync"],
    &["error", "stats", "canary", "budget"],
    &["digest", "checksum", "chunker", "codec", "clock", "entropy", "disk", "health"],
    &["format"],
    &["segment", "superblock", "manifest", "table", "ledger"],
    &["log", "catalog", "pins"],
    &["ownership", "erasure", "retention"],
    &["commit"],
    &["recovery", "ingest", "read", "checkpoint", "reaper", "compaction", "expiry", "round", "backup"],
    &["verify", "scrub", "repair"],
    &["store"],
];

fn floor_of(module: &str) -> Option<usize> {
    FLOORS.iter().position(|floor| floor.contains(&module))
}

/// The module of the engine that a source file belongs to; `None` for the crate's own file.
fn module_of(path: &str) -> Option<&str> {
    let module = path.strip_prefix("engine/src/")?.split('/').next()?.trim_end_matches(".rs");
    (module != "lib").then_some(module)
}

/// What a line says behind `crate::` outside of comments, as names of modules: `crate::a::b`, `crate::{a, b::{c, d}}`.
fn named(source: &str) -> BTreeMap<String, usize> {
    let mut code = String::with_capacity(source.len());
    for line in source.lines() {
        code.push_str(line.split("//").next().unwrap_or_default());
        code.push('\n');
    }
    let mut found = BTreeMap::new();
    for (at, _) in code.match_indices("crate::") {
        // `$crate::` and `other_crate::` are other paths.
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$') {
            continue;
        }
        let line = code[..at].matches('\n').count() + 1;
        for name in first_names(&code[at + "crate::".len()..]) {
            found.entry(name).or_insert(line);
        }
    }
    found
}

/// The first name of a path, or of each path of a group in braces.
fn first_names(rest: &str) -> BTreeSet<String> {
    let word = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let Some(group) = rest.strip_prefix('{') else { return BTreeSet::from([word(rest)]) };
    let mut names = BTreeSet::new();
    let (mut depth, mut fresh) = (0, true);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => fresh = true,
            c if fresh && depth == 0 && !c.is_whitespace() => {
                names.insert(word(&group[at..]));
                fresh = false;
            }
            _ => {}
        }
    }
    names
}

#[test]
fn modules_name_only_modules_of_lower_floors() {
    let mut violations = Vec::new();
    for path in files("engine/src").iter().filter(|path| is_rust(path)) {
        let Some(module) = module_of(path) else { continue };
        let floor =
            floor_of(module).unwrap_or_else(|| panic!("{module} has no floor: give it one here and in the papers"));
        for (name, line) in named(&text(path)) {
            let lower = floor_of(&name).is_some_and(|other| other < floor);
            if name != module && !lower {
                violations.push(format!("{path}:{line}: {module} -> {name}"));
            }
        }
    }
    assert!(violations.is_empty(), "floors broken:\n{}", violations.join("\n"));
}

#[test]
fn the_reader_of_paths_sees_groups_and_passes_over_comments() {
    let source = "use crate::{\n    disk::{self, Disk},\n    ids::FileId, limits,\n};\n// crate::store\nlet x = crate::log::end($crate::y, mycrate::z);";
    let names: Vec<_> = named(source).into_iter().collect();
    let expected = [("disk", 1), ("ids", 1), ("limits", 1), ("log", 6)].map(|(name, line)| (name.to_owned(), line));
    assert_eq!(names, expected);
}

#[test]
fn the_papers_give_every_module_of_the_engine_its_floor() {
    let architecture = text("docs/ARCHITECTURE.md");
    let there: BTreeSet<_> = files("engine/src").iter().filter_map(|path| module_of(path).map(str::to_owned)).collect();
    let missing: Vec<_> = there.iter().filter(|module| !architecture.contains(&format!("`{module}`"))).collect();
    assert!(missing.is_empty(), "docs/ARCHITECTURE.md does not name {missing:?}");
}

#[test]
fn no_other_crate_of_the_workspace_is_reached_from_below() {
    for (package, forbidden) in [
        ("engine", &["holdfast-format-spec", "holdfast-cli", "holdfast-tests", "clap", "tokio"][..]),
        ("format-spec", &["holdfast.", "holdfast =", "holdfast-"]),
    ] {
        let manifest = text(&format!("{package}/Cargo.toml"));
        let (_, dependencies) = manifest.split_once("[dependencies]").unwrap_or(("", ""));
        let own = dependencies.split("[dev-dependencies]").next().unwrap_or_default();
        for name in forbidden {
            assert!(!own.contains(name), "{package} depends on {name}");
        }
    }
}
