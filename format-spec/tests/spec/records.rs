//! Records that contradict each other, or the bytes they name, are named.

use crate::common::{self, Writer, header, op, store as store_of};
use holdfast_format_spec::commit::Edit;
use holdfast_format_spec::cut::Sizes;
use holdfast_format_spec::derive::TenantKeys;
use holdfast_format_spec::frame::{Codec, Kind};
use holdfast_format_spec::generate::encode::{self, FrameHead};
use holdfast_format_spec::generate::{self, Generated, Rng};
use holdfast_format_spec::keyspace::{Artifact, ArtifactKey, Blob, Chunk, DueKey, Entry, OwnerKey, ZeroKey};
use holdfast_format_spec::recipe::{Page, PageEntry};
use holdfast_format_spec::seal::Seal;
use holdfast_format_spec::segment::Lane;
use holdfast_format_spec::store::{ProblemKind, Store, StoreImage};
use sha2::{Digest, Sha256};

/// A generated store that has every kind of record.
fn rich() -> Generated {
    (0..200)
        .map(generate::store)
        .find(|generated| {
            let catalog = &generated.catalog;
            let expiring = catalog.artifacts.values().any(|artifact| artifact.expires_at.is_some());
            let blobs = catalog.blobs.values().any(|blob| blob.size > 5_000 && blob.references > 0);
            let accounts = !catalog.accounts.is_empty() && !catalog.ops.is_empty();
            let page = catalog.chunks.values().any(|chunk| chunk.kind == Kind::Page);
            expiring && blobs && accounts && page && !catalog.uploads.is_empty() && !catalog.zero.is_empty()
        })
        .expect("one of 200 stores has all of it")
}

/// Changes the state of a rich store, and says which kinds of problems the check names.
fn kinds(change: impl FnOnce(&mut StoreImage<'_>)) -> Vec<ProblemKind> {
    let generated = rich();
    let mut image = Store::read(&generated.files).expect("a generated store is valid");
    assert_eq!(image.check(), []);
    change(&mut image);
    let mut kinds: Vec<ProblemKind> = image.check().iter().map(|problem| problem.kind).collect();
    kinds.dedup();
    kinds
}

#[test]
fn a_wrong_reference_count_is_named() {
    let more = kinds(|image| {
        let chunk = image.catalog.chunks.values_mut().find(|chunk| chunk.references > 0);
        chunk.expect("a referenced chunk").references += 1;
    });
    assert_eq!(more, [ProblemKind::References]);
    let blob = kinds(|image| {
        let blob = image.catalog.blobs.values_mut().find(|blob| blob.references > 0);
        blob.expect("a referenced blob").references += 1;
    });
    assert_eq!(blob, [ProblemKind::References]);
}

#[test]
fn zero_holds_exactly_what_has_no_references() {
    let missing = kinds(|image| assert!(image.catalog.zero.pop_first().is_some()));
    assert_eq!(missing, [ProblemKind::Index]);
    let left_over = kinds(|image| assert!(image.catalog.zero.insert(ZeroKey::Blob([9; 32]))));
    assert_eq!(left_over, [ProblemKind::Index]);
}

#[test]
fn the_indexes_by_owner_and_by_time_hold_exactly_the_artifacts() {
    assert_eq!(kinds(|image| assert!(image.catalog.by_owner.pop_first().is_some())), [ProblemKind::Index]);
    assert_eq!(kinds(|image| assert!(image.catalog.due.pop_first().is_some())), [ProblemKind::Index]);
    let changed = kinds(|image| {
        let artifact = image.catalog.artifacts.values_mut().find(|artifact| artifact.expires_at.is_some());
        artifact.expect("one expires").expires_at = Some(1);
    });
    assert_eq!(changed, [ProblemKind::Index]);
}

#[test]
fn a_link_that_comes_from_elsewhere_than_its_source_is_named() {
    let with_link = |change: fn(&mut Artifact)| {
        kinds(|image| {
            let catalog = &mut image.catalog;
            let (key, source) = catalog.artifacts.first_key_value().expect("a rich store has artifacts");
            let key = ArtifactKey { artifact: [7; 16], ..*key };
            let mut link = Artifact { id: [7; 16], link_of: Some(source.id), position: u32::MAX, ..source.clone() };
            let blob = catalog.blobs.values_mut().find(|blob| (blob.root, blob.size) == (link.blob_root, link.size));
            blob.expect("it has its blob").references += 1;
            let Artifact { owner_kind, owner, attach_lsn, position, .. } = link;
            let ArtifactKey { tenant, account, .. } = key;
            catalog
                .by_owner
                .insert(OwnerKey { tenant, account, owner_kind, owner, attach_lsn, position }, key.artifact);
            catalog.due.extend(link.expires_at.map(|time| DueKey { time, artifact: key }));
            change(&mut link);
            catalog.artifacts.insert(key, link);
        })
    };
    assert_eq!(with_link(|_| ()), []);
    assert_eq!(with_link(|link| link.token_lsn += 1), [ProblemKind::Record]);
    assert_eq!(with_link(|link| link.born_run = Some([1; 16])), [ProblemKind::Record]);
    assert_eq!(with_link(|link| link.born_time += 1), [ProblemKind::Record]);
}

#[test]
fn a_blob_that_is_gone_or_of_another_size_is_named() {
    let gone = kinds(|image| image.catalog.blobs.retain(|_, blob| blob.references == 0));
    assert!(gone.contains(&ProblemKind::Record) && gone.contains(&ProblemKind::References), "{gone:?}");
    let size = kinds(|image| {
        let blob = image.catalog.blobs.values_mut().find(|blob| blob.references > 0 && blob.size > 0);
        blob.expect("a referenced blob").size += 1;
    });
    assert!(size.contains(&ProblemKind::Record) && size.contains(&ProblemKind::Recipe), "{size:?}");
}

#[test]
fn a_chunk_entry_that_names_another_frame_is_named() {
    let moved = kinds(|image| {
        let chunk = image.catalog.chunks.values_mut().find(|chunk| chunk.kind == Kind::Chunk);
        chunk.expect("a chunk").offset += 64;
    });
    assert!(moved.contains(&ProblemKind::Chunk), "{moved:?}");
    let gone = kinds(|image| {
        let id = *image.catalog.chunks.iter().find(|(_, chunk)| chunk.references > 0).expect("a referenced chunk").0;
        image.catalog.chunks.remove(&id);
    });
    assert!(gone.contains(&ProblemKind::References), "{gone:?}");
}

#[test]
fn an_upload_whose_offset_its_entries_do_not_give_is_named() {
    let offset = kinds(|image| image.catalog.uploads.values_mut().for_each(|upload| upload.offset += 1));
    assert_eq!(offset, [ProblemKind::Record]);
}

#[test]
fn names_that_do_not_give_their_keys_are_named() {
    let account = kinds(|image| image.catalog.accounts.values_mut().for_each(|account| account.text.push('x')));
    assert_eq!(account, [ProblemKind::Record]);
    let op = kinds(|image| image.catalog.ops.values_mut().for_each(|op| op.lsn += 1 << 40));
    assert_eq!(op, [ProblemKind::Record]);
    let tenant = kinds(|image| image.catalog.tenants.values_mut().for_each(|tenant| tenant.number += 7));
    assert_eq!(tenant, [ProblemKind::Record]);
}

#[test]
fn a_blob_is_refused_where_the_artifact_has_another_digest() {
    let generated = rich();
    let image = Store::read(&generated.files).expect("a generated store is valid");
    let mut artifact =
        image.catalog.artifacts.values().find(|artifact| artifact.size > 0).expect("one has bytes").clone();
    assert!(image.blob(&artifact).is_ok());
    artifact.sha256[0] ^= 1;
    assert!(image.blob(&artifact).is_err());
}

/// A store of one blob without references, made of these chunks, its recipe one page of them all.
fn blob_of(chunks: &[&[u8]]) -> Vec<ProblemKind> {
    let keys = TenantKeys::new(&common::manifest().tenants[0].key);
    let mut log = Writer::new(header(1, Lane::Log));
    let mut edits = Vec::new();
    let mut store = |kind, id, payload: &[u8], references| {
        let length = u32::try_from(payload.len()).expect("a small chunk");
        let offset = log.plain(kind, id, 1, payload);
        let (segment, codec) = (1, Codec::Raw);
        let chunk = Chunk { segment, offset, stored: length, raw: length, tenant: 1, codec, kind, references };
        edits.push(Edit::Put(Entry::Chunk(id, chunk)));
    };
    let mut entries = Vec::new();
    for chunk in chunks {
        let id = keys.chunk_id(chunk);
        store(Kind::Chunk, id, chunk, 1);
        entries.push(PageEntry { id, length: chunk.len() as u64 });
    }
    let content = chunks.concat();
    let size = content.len() as u64;
    let page = Page { level: 0, total: size, entries }.payload();
    let root = keys.page_id(&page);
    store(Kind::Page, root, &page, 1);
    let key = keys.blob_key(&Sha256::digest(&content).into(), size);
    edits.push(Edit::Put(Entry::Blob(key, Blob { root, size, references: 0 })));
    edits.push(Edit::Put(Entry::Zero(ZeroKey::Blob(key))));
    log.commit((1, 8_192), edits);
    let files = store_of(&[&log], |_| ());
    Store::check(&files).expect("readable").iter().map(|problem| problem.kind).collect()
}

#[test]
fn a_blob_that_is_cut_otherwise_than_the_rules_say_is_named() {
    let content = Rng::new(8).bytes(2_000);
    let lengths = Sizes::of(&common::superblock()).cut(&content);
    let first = common::index(lengths[0]);
    assert_eq!(lengths.len(), 2, "the seed is one that gives two chunks");
    assert_eq!(blob_of(&[&content[..first], &content[first..]]), []);
    let moved = first - 1;
    assert_eq!(blob_of(&[&content[..moved], &content[moved..]]), [ProblemKind::Recipe]);
}

#[test]
fn a_recipe_of_another_shape_than_the_rules_give_is_named() {
    // One chunk is its own root; here it stands in a page.
    let content = Rng::new(8).bytes(300);
    assert_eq!(blob_of(&[&content]), [ProblemKind::Recipe]);
}

/// A log whose first segment has one chunk, a footer made by `footer` and a seal changed by `change`.
fn sealed(footer: impl FnOnce(&mut Vec<u8>), change: impl FnOnce(&mut Seal)) -> Vec<ProblemKind> {
    let mut log = Writer::new(header(1, Lane::Log));
    log.commit((1, 8_192), vec![op(1)]);
    let head = FrameHead { kind: Kind::Chunk, codec: Codec::Raw, raw: 3, id: [5; 32], context: 1 };
    let offset = log.frame(&head, b"abc");
    let entry = holdfast_format_spec::seal::FooterEntry {
        id: [5; 32],
        offset,
        stored: 3,
        raw: 3,
        tenant: 1,
        kind: Kind::Chunk,
        codec: Codec::Raw,
    };
    let mut payload = encode::footer(&[entry]);
    footer(&mut payload);
    let footer_offset = log.plain(Kind::Footer, [0; 32], 0, &payload);
    let next = header(2, Lane::Log);
    let mut seal = Seal {
        end: log.at + 192,
        footer_offset,
        synced_upto: 8_192,
        first_lsn: common::FIRST_LSN,
        next_lsn: log.lsn,
        frame_count: 1,
        byte_count: 128,
        successor: Some((2, next.epoch)),
    };
    change(&mut seal);
    log.plain(Kind::Seal, log.chain, log.lsn, &encode::seal(&seal));
    let next = log.next(2);
    let files = store_of(&[&log, &next], |_| ());
    let mut kinds: Vec<ProblemKind> =
        Store::read(&files).expect("readable").problems.iter().map(|problem| problem.kind).collect();
    kinds.dedup();
    kinds
}

#[test]
fn a_seal_or_footer_that_is_not_that_of_the_frames_is_named() {
    assert_eq!(sealed(|_| (), |_| ()), []);
    let wrong = [ProblemKind::Seal];
    assert_eq!(sealed(|_| (), |seal| seal.frame_count += 1), wrong);
    assert_eq!(sealed(|_| (), |seal| seal.byte_count += 64), wrong);
    assert_eq!(sealed(|_| (), |seal| seal.footer_offset += 64), wrong);
    assert_eq!(sealed(|_| (), |seal| seal.first_lsn -= 1), wrong);
    assert_eq!(sealed(|_| (), |seal| seal.next_lsn += 1), wrong);
    assert_eq!(sealed(|footer| footer[8] = 4, |_| ()), wrong, "another id");
    assert_eq!(sealed(|footer| *footer = encode::footer(&[]), |_| ()), wrong, "an entry less");
}
