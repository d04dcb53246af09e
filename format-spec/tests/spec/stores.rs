//! Whole generated stores: they read back as they were made, and damage in them is named.

use holdfast_format_spec::frame::{Codec, Kind};
use holdfast_format_spec::generate::{self, Generated, Rng};
use holdfast_format_spec::inspect::inspect_file;
use holdfast_format_spec::segment_name;
use holdfast_format_spec::store::{Problem, ProblemKind, Store};
use holdfast_format_spec::superblock::CopyState;
use std::collections::BTreeMap;

fn seeds() -> std::ops::Range<u64> {
    match std::env::var("HOLDFAST_SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => seed..seed + 1,
        None => 0..200,
    }
}

/// Runs a check on the store of every seed; a failure prints the command that repeats it.
fn every_seed(test: &str, check: impl Fn(u64, &Generated)) {
    for seed in seeds() {
        let command = format!("HOLDFAST_SEED={seed} cargo test -p holdfast-format-spec --test spec {test}");
        let generated = std::panic::catch_unwind(|| generate::store(seed));
        let generated = generated.unwrap_or_else(|_| panic!("generator failed; repeat with: {command}"));
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(seed, &generated)));
        assert!(outcome.is_ok(), "repeat with: {command}");
    }
}

fn lines(problems: &[Problem]) -> String {
    problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_generated_store_reads_without_a_problem_and_every_blob_reads_back() {
    every_seed("a_generated_store_reads", |_, generated| {
        let image = Store::read(&generated.files).expect("a generated store is valid");
        let mut problems = image.problems.clone();
        problems.extend(image.check());
        assert!(problems.is_empty(), "{}", lines(&problems));
        assert!(image.catalog == generated.catalog, "the replayed state is not the one that was written");
        assert_eq!(image.superblock.log_end.is_some(), generated.clean);
        assert_eq!(image.log.end.torn.is_some(), generated.torn);
        assert_eq!(image.catalog.artifacts.len(), generated.contents.len());
        for (key, artifact) in &image.catalog.artifacts {
            let bytes = image.blob(artifact).expect("every blob is whole");
            assert!(generated.contents.get(key) == Some(&bytes), "other bytes than were put");
        }
    });
}

/// What all generated stores together must show, so that the tests on them mean something.
#[derive(Debug, Default)]
struct Features {
    clean: usize,
    torn_end: usize,
    sealed_end: usize,
    lagging_head: usize,
    torn_segments: usize,
    sealed_log: usize,
    sealed_bulk: usize,
    active_bulk: usize,
    zstd_chunks: usize,
    raw_chunks: usize,
    pages: [usize; 2],
    uploads: usize,
    tails: usize,
    empty_blobs: usize,
    shared_blobs: usize,
    zero: usize,
    many_footers: usize,
    older_copies: usize,
    two_tenants: usize,
}

impl Features {
    fn add(&mut self, generated: &Generated) {
        let image = Store::read(&generated.files).expect("a generated store is valid");
        let (log, catalog) = (&image.log, &image.catalog);
        let last = log.segments.last().expect("a log has segments");
        self.clean += usize::from(generated.clean);
        self.torn_end += usize::from(generated.torn);
        self.sealed_end += usize::from(last.sealed);
        self.lagging_head += usize::from(image.superblock.log_head != last.id);
        let before = || log.segments.iter().rev().skip(1);
        self.torn_segments += before().filter(|segment| !segment.sealed).count();
        self.sealed_log += before().filter(|segment| segment.sealed).count();
        self.sealed_bulk += catalog.segments.values().filter(|bulk| bulk.sealed).count();
        self.active_bulk += catalog.segments.values().filter(|bulk| !bulk.sealed).count();
        self.zstd_chunks += catalog.chunks.values().filter(|chunk| chunk.codec == Codec::Zstd).count();
        self.raw_chunks += catalog.chunks.values().filter(|chunk| chunk.codec == Codec::Raw).count();
        for chunk in catalog.chunks.values().filter(|chunk| chunk.kind == Kind::Page) {
            let file = &generated.files[&segment_name(chunk.segment)];
            let level = file[usize::try_from(chunk.offset).expect("a small file") + 64];
            self.pages[usize::from(level)] += 1;
        }
        self.uploads += catalog.uploads.len();
        self.tails += catalog.uploads.values().filter(|upload| upload.tail.is_some()).count();
        self.empty_blobs += catalog.blobs.values().filter(|blob| blob.size == 0).count();
        self.shared_blobs += catalog.blobs.values().filter(|blob| blob.references > 1).count();
        self.zero += catalog.zero.len();
        let magic = b"HFr1\x06";
        let footers = |file: &Vec<u8>| file.chunks(64).filter(|head| head.starts_with(magic)).count();
        self.many_footers += generated.files.values().filter(|file| footers(file) > 1).count();
        self.older_copies += usize::from(image.copies.iter().any(|copy| matches!(copy, CopyState::Older(_))));
        self.two_tenants += usize::from(catalog.tenants.len() > 1);
    }
}

#[test]
fn the_generated_stores_show_every_feature_of_the_format() {
    let mut features = Features::default();
    (0..200).for_each(|seed| features.add(&generate::store(seed)));
    println!("{features:#?}");
    let shown = format!("{features:?}");
    assert!(!shown.contains(": 0,") && !shown.contains("[0") && !shown.contains(" 0]"), "{features:#?}");
}

/// Whether a problem names the place of a byte.
fn names(problem: &Problem, file: &str, at: u64) -> bool {
    problem.file == file && (problem.offset..problem.offset + problem.length.max(1)).contains(&at)
}

#[test]
fn every_flipped_bit_of_a_clean_store_is_named_with_its_place() {
    every_seed("every_flipped_bit", |seed, generated| {
        if !generated.clean {
            return;
        }
        let mut rng = Rng::new(seed ^ 0xf11b);
        let mut files = generated.files.clone();
        let names_of_files: Vec<String> = files.keys().filter(|name| *name != "LOCK").cloned().collect();
        for _ in 0..16 {
            let name = rng.pick(&names_of_files).expect("a store has files").clone();
            let len = files[&name].len() as u64;
            // Half of the flips fall where frames are dense: the rest of a log segment is zeros.
            let at = if rng.chance(1, 2) { rng.below(len) } else { rng.below(len.min(20_000)) };
            let covered = |(file, from, to): &(String, u64, u64)| *file == name && (*from..*to).contains(&at);
            if generated.uncounted.iter().any(covered) {
                continue;
            }
            let bit = 1 << rng.below(8);
            let index = usize::try_from(at).expect("a small file");
            files.get_mut(&name).expect("it was picked among them")[index] ^= bit;
            let problems = Store::check(&files).expect("one bit does not make a store unreadable");
            let named = problems.iter().any(|problem| names(problem, &name, at));
            assert!(named, "bit {bit:#x} of byte {at} of {name} is not named:\n{}", lines(&problems));
            files.get_mut(&name).expect("it was picked among them")[index] ^= bit;
        }
    });
}

#[test]
fn every_missing_file_of_a_clean_store_is_named() {
    every_seed("every_missing_file", |_, generated| {
        if !generated.clean {
            return;
        }
        for name in generated.files.keys().filter(|name| *name != "LOCK" && *name != "superblock") {
            let mut files = generated.files.clone();
            files.remove(name);
            let image = Store::read(&files).expect("one file does not make a store unreadable");
            // A bulk segment that only commits behind a crash named is gone with them.
            let wanted = !Store::read(&generated.files).expect("valid").orphans.contains(name);
            let named =
                image.problems.iter().any(|problem| problem.file == *name && problem.kind == ProblemKind::Missing);
            assert_eq!(named, wanted, "{name}:\n{}", lines(&image.problems));
        }
    });
}

/// Damage of any size and kind, also where it leaves nothing to read.
fn damage(rng: &mut Rng, files: &mut BTreeMap<String, Vec<u8>>) {
    let names: Vec<String> = files.keys().cloned().collect();
    let name = rng.pick(&names).expect("a store has files").clone();
    let other = rng.pick(&names).expect("a store has files").clone();
    let copied = files[&other].clone();
    let file = files.get_mut(&name).expect("it was picked among them");
    let at = usize::try_from(rng.below(file.len() as u64 + 1)).expect("a small file");
    let len = usize::try_from(rng.below((file.len() - at) as u64 + 1)).expect("a small file");
    match rng.below(6) {
        0 => file.truncate(at),
        1 => file[at..at + len].fill(0),
        2 => file[at..at + len].copy_from_slice(&rng.bytes(len)),
        3 => *file = copied,
        4 => file.extend(rng.bytes(100)),
        _ => file.iter_mut().skip(at).step_by(97).for_each(|byte| *byte ^= 0x40),
    }
}

#[test]
fn no_damage_makes_the_reader_or_inspect_panic() {
    every_seed("no_damage", |seed, generated| {
        let mut rng = Rng::new(seed ^ 0xda3a);
        for _ in 0..2 {
            let mut files = generated.files.clone();
            for _ in 0..=rng.below(3) {
                damage(&mut rng, &mut files);
            }
            drop(Store::check(&files));
            for (name, bytes) in &files {
                let printed = inspect_file(name, &bytes.as_slice(), None, true, &mut |_| ());
                assert_eq!(printed, Ok(()), "what can be read can be printed");
            }
        }
    });
}
