//! Writes the seed corpus: the structures of generated stores, and the vectors of the format.
//!
//! `cargo run --manifest-path fuzz/Cargo.toml --example seeds`

use std::{collections::BTreeMap, fs, io, path::Path};

use holdfast_format_spec::derive::digest;
use holdfast_tests::differential::{
    seeds::{Seed, of_file, of_store},
    structure::Structure,
};

/// Stores whose structures become seeds.
const STORES: u64 = 24;
/// Seeds of a structure at most: more only slow the fuzzer's start.
const EACH: usize = 300;

fn main() -> io::Result<()> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut seeds: Vec<Seed> = (0..STORES).flat_map(of_store).collect();
    let mut targets: BTreeMap<&str, Vec<Vec<u8>>> = BTreeMap::new();
    vectors(&here.join("../format-spec/vectors"), &mut seeds, targets.entry("table").or_default())?;
    for structure in Structure::ALL {
        let inputs = seeds.iter().filter(|(of, _)| *of == structure).map(|(_, input)| input);
        for input in inputs.take(EACH) {
            targets.entry(structure.target()).or_default().push(input.clone());
            targets.entry("differential").or_default().push([&[structure.index()], &input[..]].concat());
        }
    }
    for number in 0..128_u8 {
        let steps = (0..40).map(|step| digest(&[number, step])[0]);
        targets.entry("open_store").or_default().push([number, number << 6 | 3].into_iter().chain(steps).collect());
    }
    for (target, inputs) in &targets {
        let directory = here.join("corpus").join(target);
        fs::create_dir_all(&directory)?;
        for input in inputs {
            let name: String = digest(input)[..10].iter().map(|byte| format!("{byte:02x}")).collect();
            fs::write(directory.join(name), input)?;
        }
        println!("{target}: {} seeds", inputs.len());
    }
    Ok(())
}

/// Each vector says in its text what it is.
fn vectors(directory: &Path, seeds: &mut Vec<Seed>, tables: &mut Vec<Vec<u8>>) -> io::Result<()> {
    for folder in ["valid", "invalid"] {
        for entry in fs::read_dir(directory.join(folder))? {
            let path = entry?.path();
            let Ok(text) = fs::read_to_string(path.with_extension("txt")) else { continue };
            let parse = text.lines().find_map(|line| line.strip_prefix("parse: ")).unwrap_or_default();
            let bytes = fs::read(path.with_extension("bin"))?;
            let mut words = parse.split(' ');
            let mode = |copy: Option<&str>| copy.and_then(|copy| copy.parse::<u8>().ok()).unwrap_or(0) << 1;
            match words.next() {
                Some("superblock-file") => of_file("superblock", &bytes, seeds),
                Some("manifest") => seeds.push((Structure::Manifest, [&[0], &bytes[..]].concat())),
                Some("superblock-copy") => {
                    seeds.push((Structure::Superblock, [&[mode(words.next())], &bytes[..]].concat()));
                }
                Some("segment-header") => {
                    seeds.push((Structure::SegmentHeader, [&[mode(words.next())], &bytes[..]].concat()));
                }
                Some("table") => tables.push([&[1], &bytes[..]].concat()),
                Some("frame") => seeds.push((Structure::Frame, [&[1], &bytes[..]].concat())),
                _ => {}
            }
        }
    }
    Ok(())
}
