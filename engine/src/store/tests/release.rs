//! Log segments that nothing needs any more: which go, which stay, and when.

use std::collections::BTreeSet;

use super::{
    checkpoints::{TINY, nothing_is_left_over, open_tiny},
    *,
};
use crate::{
    checkpoint::Tuning,
    disk::{self, sim::Op},
    format::artifact::Origin,
    ids::ArtifactId,
    superblock,
};

fn scope() -> AccountScope<'static> {
    AccountScope { tenant: "default", account: "somebody" }
}

pub(super) fn put(store: &Store, name: &str, bytes: &[u8]) -> ArtifactId {
    let put = Put {
        scope: Destination::Account(scope()),
        name,
        origin: Origin::Upload,
        media_type: None,
        op_id: None,
        order: None,
        expires_at: None,
        size_hint: None,
        logical_size: None,
        supersedes: None,
    };
    store.put(&put, &mut &*bytes).expect("puts").id
}

fn segments(disk: &SimDisk) -> BTreeSet<FileId> {
    let names = disk.list().expect("lists").names;
    names.iter().filter_map(|name| segment::parse_name(name, "segment-")).collect()
}

fn log_len(disk: &SimDisk) -> u64 {
    let len = |id: FileId| disk.open(&segment::name(id), disk::OpenOptions::READ).and_then(|file| file.len());
    segments(disk).into_iter().map(|id| len(id).expect("is there")).sum()
}

#[test]
fn the_log_of_many_small_puts_and_checkpoints_is_bounded() {
    let disk = new_store();
    let store = open_tiny(&disk);
    let bytes = vec![7; 300];
    let first = put(&store, "first", &bytes);
    let (mut most, mut seen) = (0, BTreeSet::new());
    for round in 0..2000 {
        put(&store, &format!("file-{round}"), &bytes);
        most = most.max(log_len(&disk));
        seen.extend(segments(&disk));
    }
    let written = 2000 * 700;
    assert!(most < 6 * u64::from(32_u32 << 10) && most < written / 5, "{most} bytes of log");
    assert!(seen.len() as u64 > written / (32 << 10), "{} segments came and went", seen.len());
    store.close().expect("closes");
    verify_clean(&disk);
    let store = open_tiny(&disk);
    nothing_is_left_over(&disk, &store);
    let mut out = Vec::new();
    store.get(scope(), first, &Get::default(), &mut out).expect("the chunk's segment stayed");
    assert_eq!(out, bytes);
    assert_eq!(store.stats().expect("counts").artifacts, 2001);
}

/// A store with a log of several segments, of which only the first has a chunk.
fn with_one_live_segment() -> (SimDisk, Store, FileId) {
    let disk = new_store();
    let store = open(&disk).expect("opens");
    put(&store, "live", &[1; 300]);
    let live = *store.segments.all().iter().map(|(id, _)| id).max().expect("a segment");
    for number in 0..300 {
        commit(&store, number).expect("commits");
    }
    (disk, store, live)
}

#[test]
fn a_segment_with_a_live_chunk_stays_and_the_answer_says_what_went() {
    let (disk, store, live) = with_one_live_segment();
    let before = store.segments.all().len();
    assert!(before > 3, "{before} segments");
    let len = log_len(&disk);
    let done = store.checkpoint().expect("makes one");
    let left: Vec<FileId> = store.segments.all().iter().map(|(id, _)| *id).collect();
    assert!(left.contains(&live) && left.len() == 2, "{left:?}: the one with the chunk, and the newest");
    assert!(done.log_bytes_released >= len - log_len(&disk) && done.log_bytes_released > 0, "{done:?}");
    assert_eq!(store.checkpoint().expect("has nothing to do").log_bytes_released, 0);
    assert_eq!(store.stats().expect("counts").dead_bytes, 0);
    store.close().expect("closes");
    verify_clean(&disk);
    assert_eq!(numbers(&open(&disk).expect("opens")).len(), 301, "with the account of the put");
}

#[test]
fn a_segment_whose_chunks_moved_goes() {
    let (disk, store, live) = with_one_live_segment();
    store.checkpoint().expect("makes one");
    // Its only chunk is damaged, and the next put of its bytes writes them again.
    let file = disk.open(&segment::name(live), disk::OpenOptions::WRITE).expect("is there");
    let chunk = store.published.read().scan(Keyspace::Chunk, &[], None, 1).expect("reads").remove(0).1;
    let at = crate::format::value::ChunkValue::decode(&chunk).expect("decodes").location;
    assert_eq!(at.segment, live);
    disk::write_all(&*file, &[0xff; 8], at.offset + 100).expect("writes");
    let again = put(&store, "again", &[1; 300]);
    let done = store.checkpoint().expect("makes one");
    assert!(done.log_bytes_released > 0, "{done:?}");
    assert!(store.segments.epoch(live).is_none(), "nothing is live in it any more");
    assert_eq!(store.stats().expect("counts").dead_bytes, 0);
    let mut out = Vec::new();
    store.get(scope(), again, &Get::default(), &mut out).expect("reads");
    store.close().expect("closes");
    verify_clean(&disk);
}

#[test]
fn a_file_is_not_touched_while_somebody_may_read_at_a_place_in_it() {
    let (disk, store, _) = with_one_live_segment();
    let there = segments(&disk);
    let visit = store.segments.visits().enter();
    let done = store.checkpoint().expect("makes one");
    assert_eq!(done.log_bytes_released, 0);
    assert!(there.is_subset(&segments(&disk)), "they stay while somebody reads");
    let generation = superblock::read(&disk).expect("reads").expect("a superblock").superblock.manifest.0;
    assert_eq!(generation, done.generation, "and no manifest names them any more");
    drop(visit);
    commit(&store, 999).expect("commits");
    let done = store.checkpoint().expect("makes one");
    assert!(done.log_bytes_released > 0, "{done:?}");
    assert!(!there.is_subset(&segments(&disk)));
    store.close().expect("closes");
    verify_clean(&disk);
}

#[test]
fn the_file_of_a_released_segment_is_the_next_prepared_one_under_a_fresh_id() {
    let (disk, store, _) = with_one_live_segment();
    let inodes = disk.op_count();
    let before = segments(&disk);
    store.checkpoint().expect("makes one");
    let renamed: Vec<(Name, Name)> = disk.log().ops()[inodes..]
        .iter()
        .filter_map(|op| match op {
            Op::Rename { from, to, .. } => Some((from.clone(), to.clone())),
            _ => None,
        })
        .collect();
    assert!((1..=2).contains(&renamed.len()), "{renamed:?}: two are kept ready at most");
    let (from, to) = (&renamed[0].0, &renamed[0].1);
    let id = |name: &Name| segment::parse_name(name, "segment-").expect("a segment");
    assert!(before.contains(&id(from)) && before.iter().all(|used| *used < id(to)), "{renamed:?}");
    commit(&store, 1000).expect("commits, and the superblock names it");
    let root = superblock::read(&disk).expect("reads").expect("a superblock").superblock;
    assert!(root.prepared.contains(&id(to)), "{root:?}");
    for number in 1001..1400 {
        commit(&store, number).expect("commits");
    }
    assert!(store.segments.epoch(id(to)).is_some(), "the log went on in it");
    store.close().expect("closes");
    verify_clean(&disk);
}

#[test]
fn a_store_whose_log_is_lost_but_for_released_segments_is_read_from_its_tables() {
    let disk = new_store();
    let store = open(&disk).expect("opens");
    for number in 0..200 {
        commit(&store, number).expect("commits");
    }
    store.checkpoint().expect("makes one");
    let newest = store.writing.as_ref().expect("open for writing").commit.with_log(|log| log.tail().id);
    assert_eq!(store.segments.all().len(), 1, "all others were released");
    store.close().expect("closes");
    disk.unlink(&segment::name(newest)).expect("is there");
    let store = open(&disk).expect("opens all the same");
    assert!(store.report().read_only.is_some() && !store.report().lost.is_empty(), "{:?}", store.report());
    assert_eq!(numbers(&store).len(), 200);
}

#[test]
fn a_store_that_makes_its_checkpoints_by_itself_releases_what_an_earlier_process_left() {
    let (disk, store, live) = with_one_live_segment();
    store.close().expect("closes");
    let tuning = Tuning { memtable_bytes: 1 << 10, ..TINY };
    let options = OpenOptions { checkpoints: tuning, ..OpenOptions::new(OpenMode::Write, "test") };
    let store = Store::open(world(&disk), &options).expect("opens");
    for number in 0..20 {
        commit(&store, number).expect("commits");
    }
    let left: Vec<FileId> = store.segments.all().iter().map(|(id, _)| *id).collect();
    assert!(left.contains(&live) && left.len() <= 3, "{left:?}");
}

#[test]
fn a_step_towards_a_segment_that_comes_late_leaves_no_file_behind() {
    let disk = new_store();
    let store = open(&disk).expect("opens");
    let door = &store.writing.as_ref().expect("open for writing").commit;
    let mut late = None;
    for number in 0..1000 {
        commit(&store, number).expect("commits");
        let ready = door.with_log(|log| !log.spare().prepared_ids().is_empty());
        if ready && late.is_some() {
            break;
        }
        late = door.with_log(|log| log.readiness()).filter(|_| !ready);
    }
    let before = segments(&disk).len();
    late.expect("the log entered what was ready, and then nothing was").advance(&store.health).expect("has room");
    assert_eq!(segments(&disk).len(), before + 1, "it began one more than is needed");
    store.close().expect("closes");
    let report = Store::verify(&world(&disk), &VerifyOptions::default(), &mut |_, _| {}).expect("verifies");
    assert!(report.problems.is_empty() && report.unnamed_files.is_empty(), "{report:?}");
}
