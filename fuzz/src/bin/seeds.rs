//! Writes the seed corpus: the structures of generated stores, and the vectors of the format where they are.
//!
//! `cargo run --manifest-path fuzz/Cargo.toml --bin seeds`

use std::{fs, io, path::Path};

use holdfast_format_spec::{
    derive::digest,
    frame::{Kind, Rules},
    generate,
    limits::{CHUNK, FRAMES_START},
    log::scan::{Found, scan},
    segment::Header,
};
use holdfast_fuzz::structure::{Structure, frame};

/// Stores whose structures become seeds.
const STORES: u64 = 24;
/// Seeds of a target at most: more only slow the fuzzer's start.
const PER_TARGET: usize = 400;

fn main() -> io::Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut seeds = Seeds::default();
    for seed in 0..STORES {
        seeds.store(seed);
    }
    seeds.vectors(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../format-spec/vectors"))?;
    seeds.write(&corpus)
}

#[derive(Default)]
struct Seeds(std::collections::BTreeMap<&'static str, Vec<Vec<u8>>>);

impl Seeds {
    fn add(&mut self, structure: Structure, mode: u8, bytes: &[u8]) {
        let input = [&[mode], bytes].concat();
        let index = Structure::ALL.iter().position(|s| *s == structure).expect("all are listed");
        let index = u8::try_from(index).expect("a dozen");
        self.push("differential", [&[index][..], &input].concat());
        self.push(structure.target(), input);
    }

    fn push(&mut self, target: &'static str, input: Vec<u8>) {
        let inputs = self.0.entry(target).or_default();
        let most = if target == "differential" { 12 * PER_TARGET } else { PER_TARGET };
        if inputs.len() < most && !inputs.contains(&input) {
            inputs.push(input);
        }
    }

    fn store(&mut self, seed: u64) {
        let store = generate::store(seed);
        for (name, bytes) in &store.files {
            self.file(name, bytes);
        }
        for step in 0..8_u8 {
            let input = (0..40).map(|n| digest(&[step, n])[0]).collect::<Vec<u8>>();
            let store = u8::try_from(seed).expect("few stores");
            self.push("open_store", [&[store, step << 5 | 3][..], &input].concat());
        }
    }

    fn file(&mut self, name: &str, bytes: &[u8]) {
        if name == "superblock" {
            let copies = (0_u8..).zip(bytes.chunks(4096));
            copies.for_each(|(copy, bytes)| self.add(Structure::Superblock, copy << 1 | 1, trim(bytes)));
        } else if name.starts_with("manifest") {
            self.add(Structure::Manifest, 1, bytes);
        } else if let Some(id) = name.strip_prefix("segment-").and_then(|id| id.parse().ok()) {
            self.segment(id, bytes);
        }
    }

    fn segment(&mut self, id: u64, bytes: &[u8]) {
        let Ok(headers) = Header::read(&bytes, id) else { return };
        self.add(Structure::SegmentHeader, 1, trim(&bytes[..4092]));
        let Header { uuid, epoch, lane, .. } = headers.header;
        let rules = Rules { uuid, epoch, lane, chunk_max: CHUNK };
        let mut visit = |found: Found<'_>| {
            if let Found::Frame(found) = found {
                self.frame(found);
            }
            Ok(())
        };
        scan(&bytes, FRAMES_START, bytes.len() as u64, &rules, &mut visit).expect("bytes in memory can be read");
    }

    fn frame(&mut self, found: &holdfast_format_spec::frame::Frame) {
        let mut whole = [&found.head[..], &found.payload].concat();
        use holdfast_fuzz::structure::{EPOCH, OFFSET, UUID};
        frame(&UUID, &EPOCH, OFFSET, &mut whole);
        self.add(Structure::Frame, 1, &whole);
        let payload = &found.payload;
        match found.header.kind {
            Kind::Commit => {
                self.add(Structure::Commit, 0, payload);
                self.edits(payload);
            }
            Kind::Seal => self.add(Structure::Seal, 0, payload),
            Kind::Footer => self.add(Structure::Footer, 0, payload),
            Kind::Page => self.add(Structure::Page, 0, payload),
            Kind::Chunk if found.header.codec as u8 == 1 => {
                let raw = found.header.raw.to_le_bytes();
                self.add(Structure::Zstd, 0, &[&raw[..3], payload].concat());
            }
            _ => {}
        }
    }

    fn edits(&mut self, payload: &[u8]) {
        let Ok(commit) = holdfast::format::commit::Commit::decode(payload) else { return };
        for edit in commit.requests.iter().flatten() {
            let Some(value) = &edit.value else { continue };
            match edit.keyspace as u8 {
                9 => self.add(Structure::Artifact, 0, value),
                5 => self.add(Structure::Upload, 0, value),
                keyspace => {
                    let known = [1, 2, 10, 11, 12, 16, 17, 20, 21];
                    let choice = known.iter().position(|k| *k == keyspace).unwrap_or(0);
                    let mode = u8::try_from(choice).expect("nine") << 1;
                    self.push(Structure::Value.target(), [&[mode], &value[..]].concat());
                    let index = Structure::ALL.iter().position(|s| *s == Structure::Value).expect("listed");
                    let index = u8::try_from(index).expect("a dozen");
                    self.push("differential", [&[index, mode][..], &edit.key, value].concat());
                }
            }
        }
    }

    /// Files of vectors by the names that a store gives them.
    fn vectors(&mut self, directory: &Path) -> io::Result<()> {
        let Ok(entries) = fs::read_dir(directory) else { return Ok(()) };
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                self.vectors(&path)?;
            } else if let Some(name) = path.file_name().and_then(|name| name.to_str()) {
                self.file(name, &fs::read(&path)?);
            }
        }
        Ok(())
    }

    fn write(&self, corpus: &Path) -> io::Result<()> {
        for (target, inputs) in &self.0 {
            let directory = corpus.join(target);
            fs::create_dir_all(&directory)?;
            for input in inputs {
                let name: String = digest(input)[..10].iter().map(|byte| format!("{byte:02x}")).collect();
                fs::write(directory.join(name), input)?;
            }
            println!("{target}: {} seeds", inputs.len());
        }
        Ok(())
    }
}

/// Without the zeros at the end, which a target adds again.
fn trim(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
    &bytes[..end]
}
