//! The vectors: what stands in each, and why. `examples/make_vectors.rs` writes them.

use crate::common::{self, FIRST_LSN, UUID, header};
use crate::describe::Shape;
use holdfast_format_spec::commit::{Edit, SyncedUpto};
use holdfast_format_spec::derive::Secret;
use holdfast_format_spec::frame::{Codec, Kind, Rules};
use holdfast_format_spec::generate::encode::{self, FrameHead};
use holdfast_format_spec::manifest;
use holdfast_format_spec::recipe::{Page, PageEntry};
use holdfast_format_spec::seal::{FooterEntry, Seal};
use holdfast_format_spec::segment::{Header, Lane, Predecessor};
use holdfast_format_spec::superblock::{LogEnd, Superblock};

#[path = "table_cases.rs"]
mod table_cases;
#[path = "value_cases.rs"]
mod value_cases;

/// One vector.
pub(crate) struct Case {
    pub(crate) valid: bool,
    pub(crate) name: String,
    pub(crate) about: String,
    pub(crate) shape: Shape,
    pub(crate) bytes: Vec<u8>,
}

/// Where the frames of the vectors stand.
const OFFSET: u64 = 8_192;
/// Where seals stand: behind a footer of one entry.
const SEAL_OFFSET: u64 = OFFSET + 128;

/// Vectors that grow in number.
#[derive(Default)]
pub(crate) struct Cases(pub(crate) Vec<Case>);

impl Cases {
    fn add(&mut self, valid: bool, name: &str, about: &str, shape: Shape, bytes: Vec<u8>) {
        self.0.push(Case { valid, name: name.to_owned(), about: about.to_owned(), shape, bytes });
    }

    /// A frame of the log at 8,192 with right checksums.
    fn frame(&mut self, valid: bool, name: &str, about: &str, head: &FrameHead, payload: &[u8]) {
        let bytes = encode::frame(&rules(Lane::Log), OFFSET, head, payload);
        self.add(valid, name, about, frame_shape(Lane::Log, OFFSET), bytes);
    }

    /// A commit frame with this payload.
    fn commit(&mut self, valid: bool, name: &str, about: &str, payload: &[u8]) {
        self.frame(valid, name, about, &plain(Kind::Commit, [2; 32], FIRST_LSN, payload), payload);
    }
}

fn rules(lane: Lane) -> Rules {
    Rules { uuid: UUID, epoch: [1; 16], lane, chunk_max: 4_096 }
}

fn frame_shape(lane: Lane, offset: u64) -> Shape {
    Shape::Frame { lane, uuid: UUID, epoch: [1; 16], offset, chunk_max: 4_096 }
}

fn plain(kind: Kind, id: [u8; 32], context: u64, payload: &[u8]) -> FrameHead {
    FrameHead { kind, codec: Codec::Raw, raw: u32::try_from(payload.len()).expect("a small payload"), id, context }
}

/// Changes bytes at a place.
fn patch(bytes: &[u8], at: usize, new: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at..at + new.len()].copy_from_slice(new);
    bytes
}

/// Changes bytes and makes the checksum in the last four right again.
fn patch_sum(bytes: &[u8], at: usize, new: &[u8], salt: &[&[u8]]) -> Vec<u8> {
    let mut bytes = patch(bytes, at, new);
    let body = bytes.len() - 4;
    let sum = crc32fast::hash(&[&salt.concat(), &bytes[..body]].concat());
    bytes[body..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

impl Case {
    /// The text beside its bytes.
    pub(crate) fn text(&self) -> String {
        format!("{}\nparse: {}\n{}", self.about, self.shape.text(), self.shape.describe(&self.bytes))
    }
}

/// All of them.
pub(crate) fn all() -> Vec<Case> {
    let mut cases = Cases::default();
    superblocks(&mut cases);
    manifests(&mut cases);
    table_cases::tables(&mut cases);
    headers(&mut cases);
    frames(&mut cases);
    frame_headers(&mut cases);
    chunks(&mut cases);
    commits(&mut cases);
    value_cases::values(&mut cases);
    pages_and_seals(&mut cases);
    cases.0
}

fn superblocks(cases: &mut Cases) {
    let state = common::superblock();
    let full = Superblock {
        log_end: Some(LogEnd { offset: 8_512, lsn: FIRST_LSN + 3, chain: [8; 32] }),
        prepared: vec![5, 6],
        reserve: vec![7, 8, 9, 10],
        ledger_places: vec![b"/second/place".to_vec(), vec![b'x'; 254]],
        ..state.clone()
    };
    let older = Superblock { sequence: 2, ..state.clone() };
    let file: Vec<u8> =
        (0..4).flat_map(|copy| encode::superblock(if copy == 1 { &older } else { &state }, copy)).collect();
    let about = "A file whose copy 1 is older: three copies agree at sequence 3.";
    cases.add(true, "superblock-file", about, Shape::SuperblockFile, file);
    let shape = Shape::SuperblockCopy(1);
    cases.add(true, "superblock-clean", "Every optional part is there.", shape.clone(), encode::superblock(&full, 1));
    let good = encode::superblock(&state, 1);
    let place = encode::superblock(&state, 2);
    cases.add(false, "superblock-place", "Copy 2 at the place of copy 1.", shape.clone(), place);
    let sum = patch(&good, 4_095, &[!good[4_095]]);
    cases.add(false, "superblock-checksum", "One byte of the checksum is wrong.", shape.clone(), sum);
    let one = 1u32.to_le_bytes();
    let mut wrong = |name: &str, about: &str, at: usize, new: &[u8]| {
        let bytes = patch_sum(&good, at, new, &[&UUID, &one]);
        cases.add(false, name, about, shape.clone(), bytes);
    };
    wrong("superblock-magic", "The magic is another one.", 0, b"HOLDFASD");
    wrong("superblock-version", "Version 2: the store is one of a newer version.", 8, &[2]);
    wrong("superblock-sequence", "Sequence 0.", 16, &[0]);
    wrong("superblock-chunks", "chunk_avg is no power of two.", 52, &[1]);
    wrong("superblock-reserved", "A reserved bit is set.", 4_000, &[0x40]);
    wrong("superblock-clean-2", "clean is neither 0 nor 1.", 280, &[2]);
    wrong("superblock-log-end", "log_end is given, and the store is not clean.", 296, &[1]);
    wrong("superblock-prepared", "Three prepared ids.", 360, &[3]);
    wrong("superblock-ledger-length", "A ledger place of 255 bytes.", 416, &[1, 0, 0, 0, 0, 0, 0, 0, 255, 0]);
}

fn manifests(cases: &mut Cases) {
    let mut full = common::manifest();
    full.generation = 9;
    full.tenants.push(manifest::Tenant { number: 4, key: Secret([6; 32]) });
    let segment = |id, lane, sealed_end| manifest::Segment { id, epoch: [9; 16], lane, sealed_end };
    full.segments.push(segment(2, Lane::Log, Some(12_288)));
    full.segments.push(segment(3, Lane::Bulk, None));
    let good = encode::manifest(&full);
    cases.add(true, "manifest", "Two tenants, segments of both lanes and states.", Shape::Manifest, good.clone());
    let sum = patch(&good, 220, &[!good[220]]);
    cases.add(
        false,
        "manifest-checksum",
        "A byte of an epoch is changed, with the checksum from before.",
        Shape::Manifest,
        sum,
    );
    let mut longer = good.clone();
    longer.push(0);
    cases.add(false, "manifest-longer", "A byte behind the checksum.", Shape::Manifest, longer);
    cases.add(false, "manifest-short", "It ends within its segments.", Shape::Manifest, good[..230].to_vec());
    let generation = 9u64.to_le_bytes();
    let mut wrong = |name: &str, about: &str, at: usize, new: &[u8]| {
        let bytes = patch_sum(&good, at, new, &[&UUID, &generation]);
        cases.add(false, name, about, Shape::Manifest, bytes);
    };
    wrong("manifest-version", "Version 2.", 8, &[2]);
    wrong("manifest-tenants", "65,537 tenants.", 40, &[1, 0, 1, 0]);
    wrong("manifest-tables", "A table and no sums.", 48, &[1]);
    wrong("manifest-tenant-order", "The second tenant has the number of the first.", 152, &[1]);
    wrong("manifest-tenant-check", "The check is not that of the key.", 136, &[1]);
    wrong("manifest-segment-state", "State 3.", 208 + 25, &[3]);
    wrong("manifest-active-end", "An active segment with an end.", 208 + 32, &[0, 0x30]);
}

fn headers(cases: &mut Cases) {
    let predecessor = Some(Predecessor { id: 3, epoch: [3; 16], end: 16_384 });
    let log = Header { predecessor, ..header(4, Lane::Log) };
    let bulk = header(5, Lane::Bulk);
    let of = |id| Shape::SegmentHeader { copy: 1, id };
    let good = encode::segment_header(&log, 1);
    cases.add(true, "segment-log", "A log segment with a predecessor.", of(4), good.clone());
    cases.add(true, "segment-first", "Segment 1.", of(1), encode::segment_header(&header(1, Lane::Log), 1));
    cases.add(true, "segment-bulk", "A bulk segment.", of(5), encode::segment_header(&bulk, 1));
    cases.add(false, "segment-id", "Under the name of another segment.", of(6), good.clone());
    cases.add(false, "segment-copy", "Copy 0 at the place of copy 1.", of(4), encode::segment_header(&log, 0));
    let salt: [&[u8]; 3] = [&UUID, &4u64.to_le_bytes(), &1u32.to_le_bytes()];
    let mut wrong = |name: &str, about: &str, at: usize, new: &[u8]| {
        cases.add(false, name, about, of(4), patch_sum(&good, at, new, &salt));
    };
    wrong("segment-magic", "The magic of a manifest.", 0, b"HFMANIFT");
    wrong("segment-version", "Version 2.", 8, &[2]);
    wrong("segment-lane", "Lane 3.", 56, &[3]);
    wrong("segment-first-lsn", "A log segment with first LSN 0.", 72, &[0; 8]);
    wrong("segment-no-predecessor", "A log segment other than 1 without a predecessor.", 80, &[0; 32]);
    wrong("segment-reserved", "A reserved byte is set.", 4_091, &[1]);
    let salt: [&[u8]; 3] = [&UUID, &5u64.to_le_bytes(), &1u32.to_le_bytes()];
    let chained = patch_sum(&encode::segment_header(&bulk, 1), 112, &[1], &salt);
    cases.add(false, "segment-bulk-chain", "A bulk segment with a chain hash.", of(5), chained);
}

fn frames(cases: &mut Cases) {
    cases.frame(true, "frame-chunk", "A raw chunk.", &plain(Kind::Chunk, [6; 32], 1, b"a chunk"), b"a chunk");
    cases.frame(true, "frame-mark", "A mark.", &plain(Kind::Mark, [2; 32], FIRST_LSN, &[]), &[]);
    cases.frame(
        true,
        "frame-padding",
        "Padding of 100 bytes.",
        &plain(Kind::Padding, [0; 32], 0, &[0; 100]),
        &[0; 100],
    );
    cases.frame(true, "frame-padding-0", "Padding of a header alone.", &plain(Kind::Padding, [0; 32], 0, &[]), &[]);
    let mut wrong = |name: &str, about: &str, head: FrameHead, payload: &[u8]| {
        cases.frame(false, name, about, &head, payload);
    };
    wrong(
        "frame-padding-byte",
        "Padding with a byte that is not zero.",
        plain(Kind::Padding, [0; 32], 0, b"\0x"),
        b"\0x",
    );
    wrong("frame-padding-id", "Padding with an id.", plain(Kind::Padding, [1; 32], 0, &[]), &[]);
    wrong("frame-mark-payload", "A mark with a payload.", plain(Kind::Mark, [2; 32], FIRST_LSN, b"x"), b"x");
    wrong("frame-mark-lsn", "A mark whose next LSN is 0.", plain(Kind::Mark, [2; 32], 0, &[]), &[]);
    wrong("frame-chunk-empty", "A chunk without bytes.", plain(Kind::Chunk, [6; 32], 1, &[]), &[]);
    wrong(
        "frame-chunk-long",
        "A chunk of more than chunk_max.",
        plain(Kind::Chunk, [6; 32], 1, &[1; 4_097]),
        &[1; 4_097],
    );
    wrong("frame-chunk-tenant", "A chunk of tenant 2^32.", plain(Kind::Chunk, [6; 32], 1 << 32, b"x"), b"x");
    wrong("frame-page-short", "A page of 55 bytes.", plain(Kind::Page, [6; 32], 1, &[0; 55]), &[0; 55]);
    wrong("frame-seal-short", "A seal of 79 bytes.", plain(Kind::Seal, [2; 32], FIRST_LSN, &[0; 79]), &[0; 79]);
    let mark = encode::frame(&rules(Lane::Bulk), OFFSET, &plain(Kind::Mark, [2; 32], FIRST_LSN, &[]), &[]);
    cases.add(false, "frame-mark-bulk", "A mark in a bulk segment.", frame_shape(Lane::Bulk, OFFSET), mark);
}

/// A frame whose header was changed, with a right header checksum.
fn frame_headers(cases: &mut Cases) {
    let good = encode::frame(&rules(Lane::Log), OFFSET, &plain(Kind::Chunk, [6; 32], 1, b"a chunk"), b"a chunk");
    let salt: [&[u8]; 3] = [&UUID, &[1; 16], &OFFSET.to_le_bytes()];
    let shape = || frame_shape(Lane::Log, OFFSET);
    let mut wrong = |name: &str, about: &str, at: usize, new: &[u8]| {
        let head = patch_sum(&good[..60], at, new, &salt);
        cases.add(false, name, about, shape(), [&head, &good[60..]].concat());
    };
    wrong("frame-magic", "The magic is another one.", 0, b"HFr2");
    wrong("frame-kind-0", "Kind 0.", 4, &[0]);
    wrong("frame-kind-8", "Kind 8.", 4, &[8]);
    wrong("frame-codec", "Codec 2.", 5, &[2]);
    wrong("frame-flags", "A reserved flag is set.", 6, &[1]);
    wrong("frame-raw", "Codec raw, and raw is not stored.", 12, &[8]);
    wrong("frame-zstd-raw", "Codec zstd, and raw is not greater than stored.", 5, &[1]);
    wrong("frame-beyond", "It is longer than what is there.", 8, &[200, 0, 0, 0, 200]);
    wrong(
        "frame-16-mib",
        "A padding of 16 MiB: with its header it is past the bound.",
        4,
        &[7, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1],
    );
    cases.add(
        false,
        "frame-header-checksum",
        "A header checksum with one wrong bit.",
        shape(),
        patch(&good, 56, &[good[56] ^ 1]),
    );
    cases.add(
        false,
        "frame-payload-checksum",
        "One wrong bit in the payload.",
        shape(),
        patch(&good, 64, &[good[64] ^ 1]),
    );
    // The payload checksum covers the fill, so it is made right for the changed fill.
    let filled = patch(&good, 100, &[1]);
    let sum = crc32fast::hash(&[&salt.concat(), &filled[64..]].concat());
    let filled = patch(&filled, 60, &sum.to_le_bytes());
    cases.add(false, "frame-fill", "A byte of the fill is not zero, with right checksums.", shape(), filled);
}

fn chunks(cases: &mut Cases) {
    let content: Vec<u8> = b"the same again and ".iter().copied().cycle().take(1_000).collect();
    let packed = zstd::bulk::compress(&content, 3).expect("it compresses");
    let head = |raw| FrameHead { kind: Kind::Chunk, codec: Codec::Zstd, raw, id: [6; 32], context: 1 };
    cases.frame(true, "chunk-zstd", "A compressed chunk.", &head(1_000), &packed);
    let mut wrong = |name: &str, about: &str, raw, payload: &[u8]| cases.frame(false, name, about, &head(raw), payload);
    wrong("chunk-zstd-bomb", "It decodes to more than raw.", 999, &packed);
    wrong("chunk-zstd-less", "It decodes to less than raw.", 1_001, &packed);
    wrong("chunk-zstd-cut", "The zstd frame is cut off.", 1_000, &packed[..packed.len() - 1]);
    wrong("chunk-zstd-two", "Two zstd frames.", 2_000, &[packed.as_slice(), &packed].concat());
    wrong("chunk-zstd-none", "No zstd frame.", 1_000, b"something else");
    let mut compressor = zstd::bulk::Compressor::new(3).expect("a level of zstd");
    compressor.include_contentsize(false).expect("a flag of zstd");
    let windowed = compressor.compress(&content).expect("it compresses");
    cases.frame(true, "chunk-zstd-window", "A window of 2^20 bytes.", &head(1_000), &patch(&windowed, 5, &[10 << 3]));
    let large = patch(&windowed, 5, &[10 << 3 | 1]);
    cases.frame(false, "chunk-zstd-window-large", "A window of 2^20 bytes and an eighth.", &head(1_000), &large);
}

const SYNCED: SyncedUpto = SyncedUpto { segment: 1, offset: 8_192 };

fn commits(cases: &mut Cases) {
    let edits = vec![common::op(1), common::op(2)];
    let good = encode::commit(SYNCED, 77, &[edits.clone(), vec![], vec![Edit::Delete(edits[0].key())]]);
    cases.commit(true, "commit", "Three requests: two puts, nothing, a delete.", &good);
    let twice = encode::commit(SYNCED, 77, &[vec![edits[0].clone(), Edit::Delete(edits[0].key())]]);
    cases.commit(false, "commit-duplicate-key", "A key stands twice in one request.", &twice);
    let single = encode::commit(SYNCED, 77, &[vec![common::op(1)]]);
    let mut wrong = |name: &str, about: &str, at: usize, new: &[u8]| {
        cases.commit(false, name, about, &patch(&single, at, new));
    };
    wrong("commit-version", "Version 2: the store is one of a newer version.", 0, &[2]);
    wrong("commit-reserved", "A reserved bit is set.", 3, &[1]);
    wrong("commit-requests-0", "No request.", 4, &[0]);
    wrong("commit-requests", "65,537 requests.", 4, &[1, 0, 1, 0]);
    wrong("commit-edits", "The edits of the requests are less than the edit count.", 32, &[2]);
    wrong("commit-edits-more", "The edits of the requests are more than the edit count.", 40, &[2]);
    wrong("commit-tag", "An unknown tag: the store is one of a newer version.", 44, &[3]);
    wrong("commit-edit-version", "Version 2 of an edit: the store is one of a newer version.", 45, &[2]);
    wrong("commit-body", "A body that is longer than the payload.", 48, &[255]);
    wrong("commit-body-bound", "A body of 4 MiB and a byte.", 48, &[1, 0, 64, 0]);
    wrong("commit-keyspace-22", "A keyspace without a format: the store is one of a newer version.", 52, &[22]);
    wrong("commit-key-length", "A key that is a byte shorter than its keyspace wants.", 54, &[39]);
    wrong("commit-key-bound", "A key of 257 bytes.", 54, &[1, 1]);
    wrong("commit-delete-value", "A delete with a value.", 44, &[2]);
    let longer = [single.as_slice(), &[0]].concat();
    cases.commit(false, "commit-longer", "A byte behind the last edit.", &longer);
    let cut = &single[..single.len() - 1];
    cases.commit(false, "commit-cut", "The last edit is cut off.", cut);
}

fn pages_and_seals(cases: &mut Cases) {
    let entries = vec![PageEntry { id: [1; 32], length: 5 }, PageEntry { id: [2; 32], length: 7 }];
    let page = Page { level: 1, total: 12, entries }.payload();
    let mut frame = |valid, name: &str, about: &str, payload: &[u8]| {
        cases.frame(valid, name, about, &plain(Kind::Page, [6; 32], 1, payload), payload);
    };
    frame(true, "page", "Level 1, two entries.", &page);
    frame(false, "page-level", "Level 41.", &patch(&page, 0, &[41]));
    frame(false, "page-count", "Three entries by its count, two by its length.", &patch(&page, 2, &[3]));
    frame(false, "page-count-1", "One entry by its count, two by its length.", &patch(&page, 2, &[1]));
    frame(false, "page-total", "The total is not the sum of the lengths.", &patch(&page, 8, &[13]));
    frame(false, "page-length", "An entry of length 0.", &patch(&patch(&page, 48, &[0]), 8, &[7]));
    let entry = |id: u8, kind| FooterEntry {
        id: [id; 32],
        offset: 8_256,
        stored: 100,
        raw: 100,
        tenant: 1,
        kind,
        codec: Codec::Raw,
    };
    let footer = encode::footer(&[entry(1, Kind::Chunk), entry(2, Kind::Page)]);
    let mut frame = |valid, name: &str, about: &str, payload: &[u8]| {
        cases.frame(valid, name, about, &plain(Kind::Footer, [0; 32], 0, payload), payload);
    };
    frame(true, "footer", "A chunk and a page.", &footer);
    frame(true, "footer-empty", "No entry.", &encode::footer(&[]));
    frame(false, "footer-order", "The ids fall.", &encode::footer(&[entry(2, Kind::Chunk), entry(1, Kind::Chunk)]));
    frame(false, "footer-count", "Three entries by its count, two by its length.", &patch(&footer, 0, &[3]));
    frame(false, "footer-kind", "An entry of a commit.", &patch(&footer, 60, &[3]));
    let seal = encode::seal(&Seal {
        end: SEAL_OFFSET + 192,
        footer_offset: OFFSET,
        synced_upto: OFFSET,
        first_lsn: FIRST_LSN,
        next_lsn: FIRST_LSN + 4,
        frame_count: 3,
        byte_count: 512,
        successor: Some((2, [7; 16])),
    });
    let mut frame = |valid, name: &str, about: &str, payload: &[u8]| {
        let head = plain(Kind::Seal, [2; 32], FIRST_LSN + 4, payload);
        let bytes = encode::frame(&rules(Lane::Log), SEAL_OFFSET, &head, payload);
        cases.add(valid, name, about, frame_shape(Lane::Log, SEAL_OFFSET), bytes);
    };
    frame(true, "seal", "A seal of the log.", &seal);
    frame(false, "seal-end", "An end that is not behind it.", &patch(&seal, 0, &[0]));
    frame(false, "seal-footer", "A footer that is the seal itself.", &patch(&seal, 8, &SEAL_OFFSET.to_le_bytes()));
    frame(false, "seal-synced", "Synced behind its footer.", &patch(&seal, 16, &SEAL_OFFSET.to_le_bytes()));
    frame(false, "seal-lsn", "A seal of the log without a first LSN.", &patch(&seal, 24, &[0; 8]));
    frame(false, "seal-successor", "A seal of the log without a successor.", &patch(&seal, 56, &[0; 8]));
    let bulk = encode::seal(&Seal {
        end: SEAL_OFFSET + 192,
        footer_offset: OFFSET,
        synced_upto: OFFSET,
        first_lsn: 0,
        next_lsn: 0,
        frame_count: 3,
        byte_count: 512,
        successor: None,
    });
    let bytes = encode::frame(&rules(Lane::Bulk), SEAL_OFFSET, &plain(Kind::Seal, [0; 32], 0, &bulk), &bulk);
    cases.add(true, "seal-bulk", "A seal of a bulk segment.", frame_shape(Lane::Bulk, SEAL_OFFSET), bytes);
}
