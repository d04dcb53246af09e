//! What `inspect` prints of generated files.

use holdfast_format_spec::generate::{self, Generated};
use holdfast_format_spec::inspect::{Record, inspect_file};
use holdfast_format_spec::store::Store;
use holdfast_format_spec::{FileName, ReadSeek, derive};
use std::io::Cursor;

fn records(generated: &Generated, name: &str, frames: bool) -> Vec<Record> {
    let mut records = Vec::new();
    let file = ReadSeek::new(Cursor::new(&generated.files[name])).expect("bytes in memory are readable");
    inspect_file(name, &file, None, frames, &mut |record| records.push(record)).expect("bytes in memory are readable");
    records
}

fn damaged(record: &Record) -> bool {
    record.fields.iter().any(|(field, _)| field == "damage")
}

#[test]
fn every_file_of_a_clean_store_is_printed_without_damage() {
    for seed in 0..60 {
        let generated = generate::store(seed);
        if !generated.clean {
            continue;
        }
        for name in generated.files.keys() {
            // A torn tail in the middle of the log is no damage of the store, and one file alone does not tell it from damage.
            if generated.uncounted.iter().any(|(file, ..)| file == name) {
                continue;
            }
            let damage: Vec<Record> = records(&generated, name, true).into_iter().filter(damaged).collect();
            assert!(damage.is_empty(), "seed {seed}, {name}: {damage:?}");
        }
    }
}

#[test]
fn frames_are_printed_where_the_store_reader_finds_them() {
    let generated = generate::store(3);
    let image = Store::read(&generated.files).expect("a generated store is valid");
    for name in generated.files.keys() {
        let Some(FileName::Segment(id)) = FileName::parse(name) else { continue };
        let printed: Vec<u64> = (records(&generated, name, true).iter())
            .filter(|record| ["chunk", "page"].contains(&record.kind))
            .map(|record| record.offset)
            .collect();
        let read: Vec<u64> =
            image.frames.keys().filter(|(segment, _)| *segment == id).map(|(_, offset)| *offset).collect();
        assert_eq!(printed, read, "{name}");
    }
}

#[test]
fn without_frames_a_segment_is_its_headers_and_a_sum() {
    let generated = generate::store(3);
    let kinds: Vec<&str> = records(&generated, "segment-1", false).iter().map(|record| record.kind).collect();
    assert_eq!(kinds, ["segment header", "segment header", "frames"]);
}

#[test]
fn a_flipped_byte_is_printed_as_damage_and_the_frames_behind_it_still_are() {
    let intact = |generated: &Generated| !records(generated, "segment-1", true).iter().any(damaged);
    let mut generated = (3..50).map(generate::store).find(intact).expect("most stores end without torn bytes");
    let whole = records(&generated, "segment-1", true);
    let frame = whole.iter().find(|record| record.kind == "commit").expect("segment 1 has a commit").offset;
    let place = usize::try_from(frame).expect("a small file") + 70;
    generated.files.get_mut("segment-1").expect("every store has it")[place] ^= 1;
    let printed = records(&generated, "segment-1", true);
    let damage: Vec<u64> = printed.iter().filter(|record| damaged(record)).map(|record| record.offset).collect();
    assert_eq!(damage, [frame]);
    assert_eq!(printed.len(), whole.len());
}

#[test]
fn no_key_and_no_text_of_a_person_is_printed() {
    for seed in 0..20 {
        let generated = generate::store(seed);
        let image = Store::read(&generated.files).expect("a generated store is valid");
        let mut printed = String::new();
        for name in generated.files.keys() {
            for (field, value) in records(&generated, name, true).into_iter().flat_map(|record| record.fields) {
                printed.extend([field, value, "\n".to_owned()]);
            }
        }
        let keys = image.manifest.tenants.iter().map(|tenant| tenant.key.0).chain([image.superblock.secret.0]);
        for key in keys {
            assert!(!printed.contains(&derive::hex(&key)), "seed {seed}: a key is printed");
        }
        let texts = image.catalog.artifacts.values().map(|artifact| &artifact.name);
        let texts = texts.chain(image.catalog.accounts.values().map(|account| &account.text));
        // Short texts stand in any text by chance.
        for text in texts.filter(|text| text.chars().count() > 6) {
            assert!(!printed.contains(text), "seed {seed}: a text is printed");
        }
    }
}
