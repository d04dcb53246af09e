//! The vectors read as the text beside each says.
#![expect(clippy::disallowed_methods, reason = "vectors are files of the source tree, not of a store")]

use crate::cases;
use crate::describe::Shape;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Name, bytes and text of every vector of a folder.
fn folder(name: &str) -> Vec<(String, Vec<u8>, String)> {
    let place = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("vectors").join(name);
    let entries = std::fs::read_dir(&place).expect("the folder is part of the source tree");
    let paths = entries.map(|entry| entry.expect("a folder of the source tree is readable").path());
    paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "bin"))
        .map(|path| {
            let bytes = std::fs::read(&path).expect("a vector is readable");
            let text = std::fs::read_to_string(path.with_extension("txt")).expect("each vector has its text");
            let stem = path.file_stem().expect("it has an extension").to_string_lossy().into_owned();
            (format!("{name}/{stem}"), bytes, text)
        })
        .collect()
}

#[test]
fn every_vector_reads_as_its_text_says() {
    for (name, bytes, text) in folder("valid").into_iter().chain(folder("invalid")) {
        let mut lines = text.splitn(3, '\n');
        let about = lines.next().unwrap_or_default();
        let shape = lines.next().and_then(|line| Shape::parse(line.strip_prefix("parse: ")?));
        let shape = shape.unwrap_or_else(|| panic!("{name}: its text does not say what it is"));
        let described = shape.describe(&bytes);
        assert_eq!(lines.next().unwrap_or_default(), described, "{name}: {about}");
        assert_eq!(described.starts_with("error: "), name.starts_with("invalid/"), "{name}");
    }
}

#[test]
fn every_case_is_a_vector_of_the_same_meaning_and_all_of_them_are_small() {
    let vectors: Vec<_> = folder("valid").into_iter().chain(folder("invalid")).collect();
    let size: usize = vectors.iter().map(|(_, bytes, text)| bytes.len() + text.len()).sum();
    assert!(size < 400 * 1024, "{size} bytes of vectors");
    let texts: BTreeMap<&str, &str> = vectors.iter().map(|(name, _, text)| (name.as_str(), text.as_str())).collect();
    for case in cases::all() {
        let name = format!("{}/{}", if case.valid { "valid" } else { "invalid" }, case.name);
        let text = texts.get(name.as_str());
        let text = text.unwrap_or_else(|| panic!("{name}: run the example make_vectors"));
        assert_eq!(case.text(), *text, "{name}: what is written today means something else");
    }
}
