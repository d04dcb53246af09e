//! Inputs to begin with: the structures of generated stores, and of the vectors of the format.

use holdfast_format_spec::{
    commit::Commit,
    frame::{Frame, Kind, Rules},
    generate,
    limits::{CHUNK, FRAMES_START},
    log::scan::{Found, scan},
    segment::Header,
};

use super::structure::{EPOCH, KEYSPACES, OFFSET, RIGHT, Structure, UUID, frame};

/// A structure and an input of it, mode byte first.
pub type Seed = (Structure, Vec<u8>);

/// The structures of a generated store.
pub fn of_store(seed: u64) -> Vec<Seed> {
    let mut seeds = Vec::new();
    for (name, bytes) in &generate::store(seed).files {
        of_file(name, bytes, &mut seeds);
    }
    seeds
}

/// The structures of a file, by the name that a store gives it.
pub fn of_file(name: &str, bytes: &[u8], seeds: &mut Vec<Seed>) {
    let mut add = |structure, mode: u8, bytes: &[u8]| seeds.push((structure, [&[mode], bytes].concat()));
    if name == "superblock" {
        let copies = (0_u8..4).zip(bytes.chunks(4096));
        copies.for_each(|(copy, bytes)| add(Structure::Superblock, copy << 1 | RIGHT, trim(bytes)));
    } else if name.starts_with("manifest") {
        add(Structure::Manifest, RIGHT, bytes);
    } else if let Some(id) = name.strip_prefix("segment-").and_then(|id| id.parse().ok())
        && let Ok(Header { uuid, epoch, lane, .. }) = Header::read(&bytes, id).map(|headers| headers.header)
    {
        add(Structure::SegmentHeader, RIGHT, trim(&bytes[..4092]));
        let rules = Rules { uuid, epoch, lane, chunk_max: CHUNK };
        let mut visit = |found: Found<'_>| {
            if let Found::Frame(found) = found {
                of_frame(found, seeds);
            }
            Ok(())
        };
        scan(&bytes, FRAMES_START, bytes.len() as u64, &rules, &mut visit).expect("bytes in memory can be read");
    }
}

fn of_frame(found: &Frame, seeds: &mut Vec<Seed>) {
    let mut whole = [&found.head[..], &found.payload].concat();
    frame(&UUID, &EPOCH, OFFSET, &mut whole);
    let mut add = |structure, mode: u8, bytes: &[u8]| seeds.push((structure, [&[mode], bytes].concat()));
    add(Structure::Frame, RIGHT, &whole);
    let payload = &found.payload;
    match found.header.kind {
        Kind::Commit => {
            add(Structure::Commit, 0, payload);
            of_edits(found, seeds);
        }
        Kind::Seal => add(Structure::Seal, 0, payload),
        Kind::Footer => add(Structure::Footer, 0, payload),
        Kind::Page => add(Structure::Page, 0, payload),
        Kind::Chunk if found.header.codec == holdfast_format_spec::frame::Codec::Zstd => {
            let raw = found.header.raw.to_le_bytes();
            add(Structure::Zstd, 0, &[&raw[..3], payload].concat());
        }
        _ => {}
    }
}

fn of_edits(found: &Frame, seeds: &mut Vec<Seed>) {
    let Ok(commit) = Commit::parse(&found.payload, found.header.context, found.offset + 64) else { return };
    for edit in commit.edits() {
        let bytes = generate::records::edit(edit);
        // Tag, version, reserved, length, then keyspace, reserved, length of the key, key, value.
        let (Some(keyspace), Some(key_len)) = (bytes.get(8), bytes.get(10)) else { continue };
        let (key, value) = bytes[12..].split_at(usize::from(*key_len));
        match *keyspace {
            9 => seeds.push((Structure::Artifact, [&[0], value].concat())),
            5 => seeds.push((Structure::Upload, [&[0], value].concat())),
            keyspace => {
                let choice = KEYSPACES.iter().position(|other| *other == keyspace).unwrap_or(0);
                let mode = u8::try_from(choice).expect("a few") << 1;
                seeds.push((Structure::Value, [&[mode], key, value].concat()));
            }
        }
    }
}

/// Without the zeros at the end, which are added again.
fn trim(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |at| at + 1);
    &bytes[..end]
}
