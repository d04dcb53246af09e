//! Structures alone: they read back as they were written, and no flipped bit goes unseen.

use crate::common::{self, header};
use holdfast_format_spec::Error;
use holdfast_format_spec::commit::{Commit, Edit, SyncedUpto};
use holdfast_format_spec::cut::Sizes;
use holdfast_format_spec::derive::Secret;
use holdfast_format_spec::derive::TenantKeys;
use holdfast_format_spec::frame::{self, Codec, Kind, Rules};
use holdfast_format_spec::generate::encode::{self, FrameHead};
use holdfast_format_spec::generate::{self, Rng};
use holdfast_format_spec::manifest::Manifest;
use holdfast_format_spec::recipe::{Builder, Page, PageEntry};
use holdfast_format_spec::segment::{Header, Lane};
use holdfast_format_spec::superblock::{self, CopyState, Superblock};

/// Calls `read` with every bit of the bytes flipped in turn.
fn every_bit(bytes: &[u8], mut read: impl FnMut(&[u8], usize)) {
    let mut bytes = bytes.to_vec();
    for at in 0..bytes.len() * 8 {
        bytes[at / 8] ^= 1 << (at % 8);
        read(&bytes, at);
        bytes[at / 8] ^= 1 << (at % 8);
    }
}

fn rules(lane: Lane) -> Rules {
    Rules { uuid: common::UUID, epoch: [1; 16], lane, chunk_max: 4_096 }
}

fn frame(kind: Kind, codec: Codec, raw: u32, context: u64, payload: &[u8]) -> Vec<u8> {
    let id = if matches!(kind, Kind::Footer | Kind::Padding) { [0; 32] } else { [6; 32] };
    encode::frame(&rules(Lane::Log), 8_192, &FrameHead { kind, codec, raw, id, context }, payload)
}

/// Reads a frame that stands at 8,192.
fn read_frame(frame: &[u8]) -> Result<frame::Frame, Error> {
    let mut file = vec![0; 8_192];
    file.extend_from_slice(frame);
    frame::read(&file.as_slice(), 8_192, file.len() as u64, &rules(Lane::Log)).map_err(|invalid| invalid.error)
}

#[test]
fn every_flipped_bit_of_a_superblock_copy_is_rejected() {
    let state = common::superblock();
    let bytes = encode::superblock(&state, 2);
    assert_eq!(Superblock::parse(&bytes, 2).as_ref(), Ok(&state));
    assert!(Superblock::parse(&bytes, 1).is_err(), "a copy counts only at its place");
    every_bit(&bytes, |bytes, at| assert!(Superblock::parse(bytes, 2).is_err(), "bit {at}"));
}

#[test]
fn every_flipped_bit_of_a_manifest_is_rejected() {
    let manifest = common::manifest();
    let bytes = encode::manifest(&manifest);
    assert_eq!(Manifest::parse(&bytes).as_ref(), Ok(&manifest));
    every_bit(&bytes, |bytes, at| assert!(Manifest::parse(bytes).is_err(), "bit {at}"));
}

#[test]
fn every_flipped_bit_of_a_segment_header_is_rejected() {
    let header = header(7, Lane::Bulk);
    let bytes = encode::segment_header(&header, 1);
    assert_eq!(Header::parse(&bytes, 1, 7).as_ref(), Ok(&header));
    assert!(Header::parse(&bytes, 1, 8).is_err(), "a header counts only under its name");
    every_bit(&bytes, |bytes, at| assert!(Header::parse(bytes, 1, 7).is_err(), "bit {at}"));
}

#[test]
fn every_flipped_bit_of_a_frame_of_each_kind_is_rejected() {
    let synced = SyncedUpto { segment: 1, offset: 8_192 };
    let page = Page { level: 0, total: 5, entries: vec![PageEntry { id: [1; 32], length: 5 }] };
    let lsn = common::FIRST_LSN;
    let payloads = [
        (Kind::Chunk, 1, b"chunk".to_vec()),
        (Kind::Page, 1, page.payload()),
        (Kind::Commit, lsn, encode::commit(synced, 7, &[vec![common::op(1)]])),
        (Kind::Mark, lsn, vec![]),
        (Kind::Seal, lsn, vec![1; 80]),
        (Kind::Footer, 0, encode::footer(&[])),
        (Kind::Padding, 0, vec![0; 70]),
    ];
    for (kind, context, payload) in payloads {
        let raw = u32::try_from(payload.len()).expect("a small payload");
        let bytes = frame(kind, Codec::Raw, raw, context, &payload);
        assert_eq!(read_frame(&bytes).expect("it was just written").payload, payload, "{kind:?}");
        every_bit(&bytes, |bytes, at| assert!(read_frame(bytes).is_err(), "{kind:?}, bit {at}"));
    }
}

#[test]
fn a_frame_is_invalid_at_another_place_in_another_segment_and_in_the_other_lane() {
    let bytes = frame(Kind::Mark, Codec::Raw, 0, common::FIRST_LSN, &[]);
    let mut file = vec![0; 8_192 + 64];
    file.extend_from_slice(&bytes);
    let read = |offset, rules: &Rules, file: &[u8]| frame::read(&file, offset, file.len() as u64, rules).is_ok();
    assert!(!read(8_256, &rules(Lane::Log), &file));
    file.copy_within(8_256.., 8_192);
    assert!(read(8_192, &rules(Lane::Log), &file));
    assert!(!read(8_192, &Rules { epoch: [2; 16], ..rules(Lane::Log) }, &file));
    assert!(!read(8_192, &rules(Lane::Bulk), &file));
}

#[test]
fn a_frame_must_end_before_the_limit() {
    let bytes = frame(Kind::Padding, Codec::Raw, 70, 0, &[0; 70]);
    let mut file = vec![0; 8_192];
    file.extend_from_slice(&bytes);
    let end = file.len() as u64;
    assert!(frame::read(&file.as_slice(), 8_192, end - 1, &rules(Lane::Log)).is_err());
    assert!(frame::read(&file.as_slice(), 8_192, end, &rules(Lane::Log)).is_ok());
}

/// A chunk frame with this zstd payload decodes.
fn decodes(payload: &[u8], raw: usize) -> bool {
    let raw = u32::try_from(raw).expect("a small chunk");
    let frame = read_frame(&frame(Kind::Chunk, Codec::Zstd, raw, 1, payload));
    frame.expect("its checksums are right").decode().is_ok()
}

#[test]
fn zstd_must_be_one_frame_of_exactly_the_raw_length_with_a_small_window() {
    let content = vec![7; 3_000];
    let packed = zstd::bulk::compress(&content, 3).expect("it compresses");
    assert!(decodes(&packed, 3_000));
    assert!(!decodes(&packed, 2_999), "decodes to more than raw");
    assert!(!decodes(&packed, 3_001), "decodes to less than raw");
    let twice = [packed.as_slice(), packed.as_slice()].concat();
    assert!(!decodes(&twice, 3_000) && !decodes(&twice, 4_096), "two frames");
    let mut compressor = zstd::bulk::Compressor::new(3).expect("a level of zstd");
    compressor.include_contentsize(false).expect("a flag of zstd");
    let mut bytes = compressor.compress(&content).expect("it compresses");
    // Without the content size the frame is no single segment, so its sixth byte states the window.
    assert_eq!(bytes[4] & 0x20, 0);
    bytes[5] = 10 << 3;
    assert!(decodes(&bytes, 3_000), "a window of 2^20");
    bytes[5] = 10 << 3 | 1;
    assert!(!decodes(&bytes, 3_000), "a window of 2^20 and an eighth");
    let mut skippable = vec![0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4];
    assert!(!decodes(&skippable, 3_000));
    skippable.extend_from_slice(&packed);
    assert!(!decodes(&skippable, 3_000));
}

#[test]
fn the_state_is_the_highest_sequence_at_which_two_copies_agree() {
    let copy = |sequence: u64, copy| encode::superblock(&Superblock { sequence, ..common::superblock() }, copy);
    let file =
        |sequences: [u64; 4]| (0..).zip(sequences).flat_map(|(at, sequence)| copy(sequence, at)).collect::<Vec<u8>>();
    let state = |sequences| superblock::choose(&file(sequences)).map(|choice| choice.superblock.sequence).ok();
    assert_eq!(state([4, 4, 3, 3]), Some(4));
    assert_eq!(state([4, 3, 3, 3]), Some(3));
    assert_eq!(state([4, 5, 3, 3]), Some(3));
    assert_eq!(state([4, 5, 3, 6]), None);
    let mut bytes = file([4, 4, 3, 3]);
    bytes[4_096 + 100] ^= 1;
    let choice = superblock::choose(&bytes).expect("two copies agree");
    assert_eq!(choice.superblock.sequence, 3);
    assert!(matches!(choice.copies.as_slice(), [CopyState::Newer(4), CopyState::Damaged(_), CopyState::Current, _]));
}

#[test]
fn two_pairs_that_differ_at_one_sequence_are_no_state() {
    let one = common::superblock();
    let other = Superblock { created_at: 77, ..one.clone() };
    let file: Vec<u8> =
        (0..4).flat_map(|copy| encode::superblock(if copy < 2 { &other } else { &one }, copy)).collect();
    assert!(matches!(superblock::choose(&file), Err(Error::Mismatch(_))));
}

#[test]
fn one_copy_of_a_newer_version_makes_the_store_one() {
    let mut file: Vec<u8> = (0..4).flat_map(|copy| encode::superblock(&common::superblock(), copy)).collect();
    file[8] = 2;
    assert!(superblock::choose(&file).is_ok(), "with a wrong checksum it is only damage");
    let sum = crc32fast::hash(&[&common::UUID[..], &0u32.to_le_bytes(), &file[..4_092]].concat());
    file[4_092..4_096].copy_from_slice(&sum.to_le_bytes());
    assert!(matches!(superblock::choose(&file), Err(Error::Newer(_))));
}

#[test]
fn edits_of_every_keyspace_read_back() {
    let mut keyspaces = std::collections::BTreeSet::new();
    for seed in 0..40 {
        let generated = generate::store(seed);
        for edit in all_edits(&generated.catalog) {
            keyspaces.insert(edit.key().keyspace());
            let deleted = Edit::Delete(edit.key());
            let synced = SyncedUpto { segment: 1, offset: 8_192 };
            let payload = encode::commit(synced, 7, &[vec![edit.clone()], vec![deleted.clone()]]);
            let read = Commit::parse(&payload, common::FIRST_LSN, 0).expect("it was just written");
            assert_eq!(read.requests, [vec![edit], vec![deleted]]);
        }
    }
    assert_eq!(keyspaces.into_iter().collect::<Vec<u8>>(), [1, 2, 5, 9, 10, 11, 12, 16, 17, 20, 21]);
}

/// The state as puts.
fn all_edits(catalog: &holdfast_format_spec::store::Catalog) -> Vec<Edit> {
    use holdfast_format_spec::keyspace::Key;
    let mut keys: Vec<Key> = Vec::new();
    keys.extend(catalog.tenants.keys().map(|key| Key::Tenant(*key)));
    keys.extend(catalog.accounts.keys().map(|key| Key::Account(*key)));
    keys.extend(catalog.uploads.keys().map(|key| Key::Upload(*key)));
    keys.extend(catalog.artifacts.keys().map(|key| Key::Artifact(*key)));
    keys.extend(catalog.blobs.keys().map(|key| Key::Blob(*key)));
    keys.extend(catalog.chunks.keys().map(|key| Key::Chunk(*key)));
    keys.extend(catalog.by_owner.keys().map(|key| Key::ByOwner(*key)));
    keys.extend(catalog.due.iter().map(|key| Key::Due(*key)));
    keys.extend(catalog.ops.keys().map(|key| Key::Op(*key)));
    keys.extend(catalog.zero.iter().map(|key| Key::Zero(*key)));
    keys.extend(catalog.segments.keys().map(|key| Key::Segment(*key)));
    keys.iter().map(|key| Edit::Put(catalog.get(key).expect("its key was listed"))).collect()
}

#[test]
fn the_order_of_key_bytes_is_the_order_of_keys() {
    for seed in 0..20 {
        let catalog = generate::store(seed).catalog;
        let mut keys: Vec<_> = all_edits(&catalog).iter().map(Edit::key).collect();
        keys.sort_unstable();
        let bytes: Vec<_> = keys.iter().map(|key| (key.keyspace(), generate::records::key(key))).collect();
        assert!(bytes.is_sorted(), "seed {seed}");
    }
}

#[test]
fn random_bytes_behind_a_right_head_never_panic() {
    let mut rng = Rng::new(1);
    for _ in 0..3_000 {
        let mut payload = encode::commit(SyncedUpto { segment: 1, offset: 0 }, 0, &[vec![common::op(1)]]);
        for _ in 0..=rng.below(4) {
            let at = usize::try_from(rng.below(payload.len() as u64)).expect("a small payload");
            [payload[at]] = rng.array();
        }
        payload.truncate(usize::try_from(rng.below(payload.len() as u64 + 1)).expect("a small payload"));
        let _ = Commit::parse(&payload, rng.number(), 0);
        let _ = Page::parse(&payload, 0);
        let _ = holdfast_format_spec::seal::footer(&payload, 0);
        let _ = Manifest::parse(&payload);
    }
}

#[test]
fn a_recipe_of_one_chunk_is_the_chunk_and_of_none_is_zero() {
    let root = |count: u8| {
        let mut recipe = Builder::new(|_: &Page| [0xff; 32]);
        (1..=count).for_each(|chunk| recipe.push(PageEntry { id: [chunk; 32], length: 1 }));
        recipe.finish()
    };
    assert_eq!(root(0), [0; 32]);
    assert_eq!(root(1), [1; 32]);
    assert_eq!(root(2), [0xff; 32]);
}

#[test]
fn a_page_ends_behind_an_id_with_nine_zero_bits_but_not_with_its_first_entry() {
    let keys = TenantKeys::new(&Secret([1; 32]));
    // Little-endian: the ninth bit is the lowest of the second byte.
    let id = |first, second| std::array::from_fn(|at| [first, second].get(at).copied().unwrap_or(7));
    let (plain, ends) = (id(0, 1), id(0, 2));
    let mut pages = Vec::new();
    let mut recipe = Builder::new(|page: &Page| {
        pages.push((page.level, page.entries.len()));
        keys.page_id(&page.payload())
    });
    for id in [ends, plain, ends, ends, plain] {
        recipe.push(PageEntry { id, length: 3 });
    }
    recipe.finish();
    assert_eq!(pages, [(0, 3), (0, 2), (1, 2)]);
}

#[test]
fn cut_points_follow_the_content_and_the_bounds() {
    let sizes = Sizes { min: 64, avg: 1_024, max: 4_096, single_max: 100 };
    assert_eq!(sizes.cut(&[]), Vec::<u64>::new());
    assert_eq!(sizes.cut(&[1; 100]), [100]);
    let same = sizes.cut(&vec![1; 20_000]);
    assert_eq!(same.iter().sum::<u64>(), 20_000);
    assert!(same.iter().all(|length| *length <= 4_096));
    let content = Rng::new(5).bytes(100_000);
    let cuts = |content: &[u8]| {
        let mut at = 0;
        sizes
            .cut(content)
            .iter()
            .map(|length| {
                at += length;
                at
            })
            .collect::<std::collections::BTreeSet<u64>>()
    };
    let whole = cuts(&content);
    let moved: std::collections::BTreeSet<u64> = cuts(&content[1_000..]).iter().map(|at| at + 1_000).collect();
    assert!(whole.intersection(&moved).count() > whole.len() / 2, "most cuts stay where the content is the same");
    // What another version of this code cuts elsewhere, it cuts wrongly.
    assert_eq!(sizes.cut(&content[..8_000]), [1222, 1216, 1307, 1320, 1153, 1081, 701]);
}
