//! Section 10 of `FORMAT.md`, rule by rule: where the log ends, and what is corruption.

use crate::common::{Writer, clean, header, index, op, store};
use holdfast_format_spec::commit::Edit;
use holdfast_format_spec::frame::{Codec, Kind};
use holdfast_format_spec::generate::encode::FrameHead;
use holdfast_format_spec::keyspace::{BulkSegment, Chunk, Entry, ZeroKey};
use holdfast_format_spec::segment::Lane;
use holdfast_format_spec::store::{Problem, ProblemKind, Store, StoreImage, Unreadable};
use std::collections::BTreeMap;

fn first() -> Writer {
    Writer::new(header(1, Lane::Log))
}

/// The numbers of the operations that were replayed.
fn ops(image: &StoreImage<'_>) -> Vec<u8> {
    image.catalog.ops.keys().map(|key| key.op[0]).collect()
}

fn found(problems: &[Problem]) -> Vec<(ProblemKind, &str, u64)> {
    problems.iter().map(|problem| (problem.kind, problem.file.as_str(), problem.offset)).collect()
}

fn read(files: &BTreeMap<String, Vec<u8>>) -> StoreImage<'_> {
    Store::read(files).expect("superblock and manifest are good")
}

#[test]
fn an_invalid_frame_without_a_witness_is_the_end_of_the_log() {
    let mut log = first();
    log.commit((1, 8_192), vec![op(1)]);
    let second = log.commit((1, 8_192), vec![op(2)]);
    log.commit((1, 8_192), vec![op(3)]);
    log.damage(second);
    let files = store(&[&log], |_| ());
    let image = read(&files);
    assert_eq!(found(&image.problems), []);
    assert_eq!(ops(&image), [1]);
    assert_eq!((image.log.end.offset, image.log.end.torn), (second, Some(second)));
}

#[test]
fn a_later_commit_that_was_written_after_a_sync_makes_it_corruption_and_shows_the_loss() {
    let mut log = first();
    log.commit((1, 8_192), vec![op(1)]);
    let second = log.commit((1, 8_192), vec![op(2)]);
    log.commit((1, log.at), vec![op(3)]);
    log.damage(second);
    let files = store(&[&log], |_| ());
    let image = read(&files);
    let wanted = [(ProblemKind::Frame, "segment-1", second), (ProblemKind::Lost, "segment-1", second)];
    assert_eq!(found(&image.problems), wanted);
    assert_eq!(ops(&image), [1, 3], "the walk goes on behind the damage");
}

#[test]
fn a_later_mark_makes_it_corruption() {
    let mut log = first();
    let only = log.commit((1, 8_192), vec![op(1)]);
    log.mark();
    log.damage(only);
    let files = store(&[&log], |_| ());
    let image = read(&files);
    let wanted = [(ProblemKind::Frame, "segment-1", only), (ProblemKind::Lost, "segment-1", only)];
    assert_eq!(found(&image.problems), wanted);
    assert_eq!(ops(&image), []);
}

#[test]
fn damage_between_commits_loses_none() {
    let mut log = first();
    log.commit((1, 8_192), vec![op(1)]);
    let between = log.plain(Kind::Padding, [0; 32], 0, &[0; 500]);
    log.mark();
    log.damage(between);
    let files = store(&[&log], |_| ());
    assert_eq!(found(&read(&files).problems), [(ProblemKind::Frame, "segment-1", between)]);
}

#[test]
fn damage_across_the_highest_witness_ends_the_log_there() {
    let mut log = first();
    log.commit((1, 8_192), vec![op(1)]);
    let second = log.commit((1, 8_192), vec![op(2)]);
    let witness = log.at;
    log.commit((1, 8_192), vec![op(3)]);
    log.commit((1, witness), vec![op(4)]);
    log.damage(second);
    log.damage(witness);
    let files = store(&[&log], |_| ());
    let image = read(&files);
    let wanted = [(ProblemKind::Frame, "segment-1", second), (ProblemKind::Lost, "segment-1", second)];
    assert_eq!(found(&image.problems), wanted);
    assert_eq!((ops(&image), image.log.end.offset), (vec![1], witness), "the valid commit behind it does not count");
}

#[test]
fn a_seal_is_a_witness_only_up_to_what_it_says_was_synced() {
    let mut log = first();
    let one = log.commit((1, 8_192), vec![op(1)]);
    let two = log.commit((1, 8_192), vec![op(2)]);
    let next = header(2, Lane::Log);
    for (synced_upto, damaged, corrupt) in [(two, one, true), (two, two, false)] {
        let mut log = log.clone();
        log.seal(synced_upto, &next);
        log.damage(damaged);
        let mut files = store(&[&log], |_| ());
        files.insert("segment-2".to_owned(), vec![0; 16_384]);
        let image = read(&files);
        assert_eq!(image.problems.iter().any(|problem| problem.kind == ProblemKind::Frame), corrupt, "{damaged}");
        assert_eq!(image.log.end.torn.is_some(), !corrupt);
    }
}

#[test]
fn the_replay_position_is_a_witness() {
    let mut log = first();
    let one = log.commit((1, 8_192), vec![op(1)]);
    let (offset, chain, lsn) = (log.at, log.chain, log.lsn);
    log.commit((1, 8_192), vec![op(2)]);
    let whole = store(&[&log], |state| {
        (state.replay.offset, state.replay.chain, state.replay.lsn) = (offset, chain, lsn);
    });
    assert_eq!(found(&read(&whole).problems), []);
    assert_eq!(ops(&read(&whole)), [2], "what stands before the replay position is not replayed");
    let mut damaged = whole.clone();
    damaged.get_mut("segment-1").expect("it is there")[index(one) + 70] ^= 1;
    assert_eq!(found(&read(&damaged).problems).first(), Some(&(ProblemKind::Frame, "segment-1", one)));
    assert_eq!(ops(&read(&damaged)), [2]);
}

#[test]
fn a_seal_whose_successor_has_no_header_is_the_end_of_the_log() {
    let mut log = first();
    log.commit((1, 8_192), vec![op(1)]);
    log.seal(8_192, &header(2, Lane::Log));
    let mut files = store(&[&log], |_| ());
    let missing = [(ProblemKind::Missing, "segment-2", 0)];
    assert_eq!(found(&read(&files).problems), missing, "a successor that is not there is corruption");
    let mut torn = vec![0; 16_384];
    torn[..512].copy_from_slice(&log.next(2).file[..512]);
    files.insert("segment-2".to_owned(), torn);
    let image = read(&files);
    assert_eq!(found(&image.problems), []);
    assert_eq!((image.log.end.segment, image.log.end.offset, image.log.end.torn), (1, log.at, None));
}

#[test]
fn the_log_goes_on_in_the_segment_that_the_last_seal_names() {
    let mut log = first();
    log.commit((1, 8_192), vec![op(1)]);
    log.seal(8_192, &header(2, Lane::Log));
    let mut next = log.next(2);
    next.commit((2, 8_192), vec![op(2)]);
    let files = store(&[&log, &next], |state| {
        (state.log_head, state.log_head_epoch) = (1, log.header.epoch);
    });
    let image = read(&files);
    assert_eq!((found(&image.problems), ops(&image)), (vec![], vec![1, 2]));
}

#[test]
fn a_header_that_names_an_end_cuts_the_segment_before_it_there() {
    let mut log = first();
    log.commit((1, 8_192), vec![op(1)]);
    let mut next = log.next(2);
    // Written before the crash and on the disk without a sync; valid, and behind the end.
    log.commit((1, 8_192), vec![op(9)]);
    log.seal(8_192, &header(7, Lane::Log));
    next.commit((2, 8_192), vec![op(2)]);
    let files = store(&[&log, &next], |_| ());
    assert_eq!((found(&read(&files).problems), ops(&read(&files))), (vec![], vec![1, 2]));
    let files = store(&[&log, &next], |state| {
        (state.log_head, state.log_head_epoch) = (1, log.header.epoch);
        state.prepared = vec![2];
    });
    let image = read(&files);
    assert_eq!(ops(&image), [1, 2], "a prepared segment that names this one as predecessor goes before a seal");
    assert_eq!(found(&image.problems), []);
}

#[test]
fn the_end_that_a_header_names_is_a_witness() {
    let mut log = first();
    let one = log.commit((1, 8_192), vec![op(1)]);
    log.seal(8_192, &header(2, Lane::Log));
    let mut next = log.next(2);
    next.commit((2, 8_192), vec![op(2)]);
    log.damage(one);
    let files = store(&[&log, &next], |_| ());
    let wanted = [(ProblemKind::Frame, "segment-1", one), (ProblemKind::Lost, "segment-1", one)];
    assert_eq!((found(&read(&files).problems), ops(&read(&files))), (wanted.to_vec(), vec![2]));
}

#[test]
fn a_missing_segment_is_corruption_and_what_stands_before_and_behind_it_is_replayed() {
    let mut log = first();
    log.commit((1, 8_192), vec![op(1)]);
    log.seal(8_192, &header(2, Lane::Log));
    let mut middle = log.next(2);
    middle.commit((2, 8_192), vec![op(2)]);
    middle.seal(8_192, &header(3, Lane::Log));
    let mut last = middle.next(3);
    last.commit((3, 8_192), vec![op(3)]);
    let mut files = store(&[&log, &middle, &last], |_| ());
    files.remove("segment-2");
    let image = read(&files);
    let kinds: Vec<ProblemKind> = image.problems.iter().map(|problem| problem.kind).collect();
    assert!(kinds.contains(&ProblemKind::Missing) && kinds.contains(&ProblemKind::Lost), "{kinds:?}");
    assert_eq!(ops(&image), [1, 3]);
}

#[test]
fn a_commit_above_the_witness_counts_only_with_its_bulk_frames() {
    let mut bulk = Writer::new(header(5, Lane::Bulk));
    let content = [7; 100];
    let id = [8; 32];
    let head = FrameHead { kind: Kind::Chunk, codec: Codec::Raw, raw: 100, id, context: 1 };
    let offset = bulk.frame(&head, &content);
    let chunk = Chunk {
        segment: 5,
        offset,
        stored: 100,
        raw: 100,
        tenant: 1,
        codec: Codec::Raw,
        kind: Kind::Chunk,
        references: 0,
    };
    let value = BulkSegment { epoch: bulk.header.epoch, sealed: false, end: bulk.at };
    let edits = vec![
        Edit::Put(Entry::Chunk(id, chunk)),
        Edit::Put(Entry::Zero(ZeroKey::Chunk(id))),
        Edit::Put(Entry::Segment(5, value)),
    ];
    let mut log = first();
    log.commit((1, 8_192), vec![op(1)]);
    let second = log.commit((1, 8_192), edits);
    let whole = store(&[&log, &bulk], |_| ());
    assert_eq!(read(&whole).catalog.chunks.len(), 1);
    bulk.damage(offset);
    let files = store(&[&log, &bulk], |_| ());
    let image = read(&files);
    assert_eq!((image.catalog.chunks.len(), image.log.end.offset), (0, second));
    assert_eq!(found(&image.problems), []);
    // The place was named by a commit that was synced: what a later one says of the chunk does not hang on its frame.
    let mut later = log.clone();
    later.mark();
    let again = Chunk { references: 1, ..chunk };
    let third = later.commit((1, 8_192), vec![Edit::Put(Entry::Chunk(id, again))]);
    let files = store(&[&later, &bulk], |_| ());
    assert!(read(&files).log.end.offset > third);
    // Once a witness says that the commit was synced, the damage is in the bulk segment.
    log.mark();
    let files = store(&[&log, &bulk], |_| ());
    assert_eq!(found(&read(&files).problems), [(ProblemKind::Frame, "segment-5", offset)]);
}

#[test]
fn a_commit_that_does_not_carry_the_chain_hash_is_named_without_any_damage() {
    let mut log = first();
    log.commit((1, 8_192), vec![op(1)]);
    log.chain = [1; 32];
    let second = log.commit((1, 8_192), vec![op(2)]);
    let files = store(&[&log], |_| ());
    assert_eq!(found(&read(&files).problems), [(ProblemKind::Chain, "segment-1", second)]);
}

#[test]
fn a_commit_that_leaves_out_an_lsn_is_named() {
    let mut log = first();
    log.commit((1, 8_192), vec![op(1)]);
    log.lsn += 1;
    let second = log.commit((1, 8_192), vec![op(2)]);
    let files = store(&[&log], |_| ());
    assert_eq!(found(&read(&files).problems), [(ProblemKind::Chain, "segment-1", second)]);
}

#[test]
fn a_clean_store_ends_where_log_end_says() {
    let mut log = first();
    log.commit((1, 8_192), vec![op(1)]);
    let end = Some(clean(&log));
    let behind = log.commit((1, 8_192), vec![op(2)]);
    let files = store(&[&log], |state| state.log_end = end);
    let image = read(&files);
    assert_eq!(found(&image.problems), [(ProblemKind::NotZero, "segment-1", behind)]);
    assert_eq!(ops(&image), [1]);
}

#[test]
fn an_unknown_keyspace_makes_the_store_one_of_a_newer_version() {
    let mut log = first();
    let mut payload = holdfast_format_spec::generate::encode::commit(
        holdfast_format_spec::commit::SyncedUpto { segment: 1, offset: 8_192 },
        7,
        &[vec![op(1)]],
    );
    assert_eq!(payload[52], 17, "the keyspace of the only edit");
    payload[52] = 22;
    log.plain(Kind::Commit, log.chain, log.lsn, &payload);
    let files = store(&[&log], |_| ());
    assert!(matches!(Store::read(&files), Err(Unreadable::Newer(_))));
}

#[test]
fn a_directory_without_a_state_is_an_unfinished_init_only_with_nothing_beyond_it() {
    let mut log = first();
    log.commit((1, 8_192), vec![op(1)]);
    log.mark();
    let whole = store(&[&log], |_| ());
    let mut files = whole.clone();
    files.remove("superblock");
    let unfinished = Some(Unreadable::Unfinished);
    assert_eq!(Store::read(&files).err(), unfinished);
    files.insert("superblock".to_owned(), whole["superblock"][..4_096].to_vec());
    assert_eq!(Store::read(&files).err(), unfinished, "one copy");
    for (name, bytes) in [("segment-2", vec![]), ("reserve-3", vec![]), ("manifest-2.a", vec![])] {
        let mut more = files.clone();
        more.insert(name.to_owned(), bytes);
        assert!(matches!(Store::read(&more), Err(Unreadable::Superblock(_))), "{name}");
    }
    log.commit((1, 8_192), vec![op(2)]);
    files.insert("segment-1".to_owned(), log.file);
    assert!(matches!(Store::read(&files), Err(Unreadable::Superblock(_))), "a second commit");
}
