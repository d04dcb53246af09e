//! The files of the repository.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Top of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package stands in the repository").to_owned()
}

/// Every file below a folder of the repository, by its path from the top; in order.
pub(crate) fn files(below: &str) -> Vec<String> {
    let mut found = Vec::new();
    visit(&root(), below, &mut found);
    found.sort();
    found
}

/// Folders that hold no sources: what builds, git and fuzzers leave behind.
const PASSED_OVER: [&str; 5] = ["target", ".git", "corpus", "artifacts", "coverage"];

fn visit(root: &Path, folder: &str, found: &mut Vec<String>) {
    let entries = fs::read_dir(root.join(folder)).unwrap_or_else(|error| panic!("{folder}: {error}"));
    for entry in entries {
        let entry = entry.expect("an entry");
        let name = entry.file_name().into_string().expect("names are ASCII");
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        let kind = entry.file_type().expect("it has a kind");
        if kind.is_dir() && !PASSED_OVER.contains(&name.as_str()) {
            visit(root, &path, found);
        } else if kind.is_file() && name != ".git" {
            found.push(path);
        }
    }
}

/// Text of a file of the repository.
pub(crate) fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// True for sources in Rust.
pub(crate) fn is_rust(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "rs")
}

/// True for what people write and read.
pub(crate) fn is_text(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.rsplit_once('.') {
        Some((_, extension)) => ["rs", "md", "toml", "lock", "sh", "proto", "json", "gitignore"].contains(&extension),
        None => path.starts_with(".ci/"),
    }
}
