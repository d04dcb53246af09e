use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::{
    disk::sim::SimDisk,
    error::Kind,
    format::table::{PAGE_LEN, Shape},
    ids::{Lsn, StoreUuid},
    sync::Arc,
};

const UUID: StoreUuid = StoreUuid([5; 16]);
const ID: FileId = FileId(3);
const LSNS: (Lsn, Lsn) = (Lsn::FIRST, Lsn(Lsn::FIRST.0 + 9));

type Model = BTreeMap<(Keyspace, Vec<u8>), Option<Vec<u8>>>;

fn write_table(disk: &SimDisk, model: &Model) -> ManifestTable {
    let mut builder = Builder::new(UUID, ID, LSNS);
    for ((keyspace, key), value) in model {
        builder.push(*keyspace, key.clone(), value.clone());
    }
    write(disk, ID, &builder.finish().expect("has entries")).expect("writes")
}

fn table_of(disk: &SimDisk, meta: ManifestTable) -> Arc<Table> {
    let ground = Ground::new(Arc::new(disk.clone()), UUID, 64 * PAGE_LEN as u64);
    Arc::new(Table::new(Arc::new(ground), meta))
}

fn all(table: &Arc<Table>, keyspace: Keyspace, from: &[u8]) -> Vec<Entry> {
    let mut cursor = Cursor::new(Arc::clone(table), keyspace, from).expect("begins");
    let mut found = Vec::new();
    while let Some(entry) = cursor.next_entry().expect("goes on") {
        found.push(entry);
    }
    found
}

/// A number that looks like none before, as ids do.
fn noise(n: u64) -> [u8; 32] {
    crate::digest::file_digest(&n.to_le_bytes())
}

fn check(model: &Model) {
    let disk = SimDisk::new(1);
    let table = table_of(&disk, write_table(&disk, model));
    for ((keyspace, key), value) in model {
        assert_eq!(table.get(*keyspace, key).expect("reads").as_ref(), Some(value));
        let mut other = key.clone();
        *other.last_mut().expect("keys have bytes") ^= 0x55;
        let expected = model.get(&(*keyspace, other.clone()));
        assert_eq!(table.get(*keyspace, &other).expect("reads").as_ref(), expected, "a neighbour");
    }
    for keyspace in Keyspace::ALL {
        let of = |from: &[u8]| -> Vec<Entry> {
            let from = (keyspace, from.to_vec());
            let range = model.range(from..).take_while(|((space, _), _)| *space == keyspace);
            range.map(|((_, key), value)| (key.clone(), value.clone())).collect()
        };
        assert_eq!(all(&table, keyspace, &[]), of(&[]));
        for ((_, key), _) in model.iter().filter(|((space, _), _)| *space == keyspace).step_by(37) {
            assert_eq!(all(&table, keyspace, key), of(key));
        }
    }
}

fn big_model(chunks: u64, records: u64) -> Model {
    let mut model = Model::new();
    for n in 0..chunks {
        model.insert((Keyspace::Chunk, noise(n).to_vec()), (n % 7 != 0).then(|| vec![1 + noise(n)[3] / 2; 40]));
    }
    for n in 0..records {
        let len = usize::from(noise(n)[0]) * 4 + if n == 5 { 30_000 } else { 0 };
        model.insert((Keyspace::Artifact, noise(n + 1_000_000)[..20].to_vec()), (n % 9 != 0).then(|| vec![7; len]));
    }
    model
}

#[test]
fn a_table_of_many_pages_gives_back_every_entry_in_order() {
    check(&big_model(9000, 1500));
}

#[test]
fn keys_that_crowd_into_one_bucket_stand_in_overflow_pages() {
    let mut model = Model::new();
    for n in 0..400_u64 {
        // One front for almost all of them.
        let mut key = noise(n);
        if n > 2 {
            key[..8].copy_from_slice(&[9; 8]);
        }
        model.insert((Keyspace::Blob, key.to_vec()), Some(vec![3; 48]));
    }
    check(&model);
    let disk = SimDisk::new(1);
    let table = table_of(&disk, write_table(&disk, &model));
    let section = *table.header().expect("reads").section(Keyspace::Blob).expect("has blobs");
    assert!(section.shape == Shape::Buckets && section.extra > 0, "{section:?}");
}

#[test]
fn uniform_keys_overflow_seldom_and_a_full_table_stays_below_16_mib() {
    let mut builder = Builder::new(UUID, ID, LSNS);
    let mut keys: Vec<[u8; 32]> = (0..120_000).map(noise).collect();
    keys.sort_unstable();
    let mut count = 0;
    for key in keys {
        if builder.is_full() {
            break;
        }
        count += 1;
        builder.push(Keyspace::Chunk, key.to_vec(), Some(vec![1; 40]));
    }
    let built = builder.finish().expect("has entries");
    assert!(count > 90_000 && built.bytes.len() <= 16 << 20, "{count} {}", built.bytes.len());
    let disk = SimDisk::new(1);
    let meta = write(&disk, ID, &built).expect("writes");
    let header = table_of(&disk, meta).header().expect("reads").clone();
    let section = header.section(Keyspace::Chunk).expect("has chunks");
    assert!(u64::from(section.extra) * 100 < u64::from(section.data), "{section:?}");
    assert!(section.filter > 0);
}

#[test]
fn a_bad_page_is_read_from_the_mirror_and_counted_and_two_bad_ones_are_named() {
    let model = big_model(500, 50);
    let disk = SimDisk::new(1);
    let meta = write_table(&disk, &model);
    let [first, mirror] = names(ID);
    let spoil = |name: &Name, page: u64| {
        let file = disk.open(name, OpenOptions::WRITE).expect("is there");
        disk::write_all(&*file, &[0xff; 8], page * PAGE_LEN as u64 + 100).expect("writes");
    };
    for page in 0..u64::from(meta.pages) {
        spoil(&first, page);
    }
    let table = table_of(&disk, meta.clone());
    for ((keyspace, key), value) in &model {
        assert_eq!(table.get(*keyspace, key).expect("from the mirror").as_ref(), Some(value));
    }
    assert!(table.ground_repairs() > 3);
    spoil(&mirror, 0);
    let table = table_of(&disk, meta);
    let error = table.get(Keyspace::Chunk, &noise(1)).expect_err("both are bad");
    assert_eq!((error.kind(), error.place().offset), (Kind::Corrupt, Some(0)));
}

#[test]
fn every_flipped_byte_of_both_copies_is_damage_and_never_another_answer() {
    let model = big_model(60, 20);
    let disk = SimDisk::new(1);
    let meta = write_table(&disk, &model);
    let len = u64::from(meta.pages) * PAGE_LEN as u64;
    for offset in (0..len).step_by(61) {
        let image = SimDisk::from_image(&disk.image(), 1);
        for name in &names(ID) {
            let file = image.open(name, OpenOptions::WRITE).expect("is there");
            let mut byte = [0];
            disk::read_exact(&*file, &mut byte, offset).expect("is there");
            disk::write_all(&*file, &[byte[0] ^ 0x10], offset).expect("writes");
        }
        let table = table_of(&image, meta.clone());
        for ((keyspace, key), value) in &model {
            match table.get(*keyspace, key) {
                Ok(found) => assert_eq!(found.as_ref(), Some(value), "offset {offset}"),
                Err(e) => assert_eq!(e.kind(), Kind::Corrupt, "offset {offset}"),
            }
        }
    }
}

#[test]
fn a_table_has_one_name() {
    assert_eq!(names(ID).each_ref().map(parse_name), [Some(ID), Some(ID)]);
    for name in ["table-03.a", "table-0.a", "table-3", "table-3.c", "segment-3"] {
        assert_eq!(parse_name(&Name::new(name).expect("flat")), None, "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn a_table_is_a_map(
        chunks in prop::collection::vec((any::<[u8; 32]>(), any::<bool>()), 0..300),
        ordered in prop::collection::vec((prop::collection::vec(any::<u8>(), 1..60), prop::option::of(0..6000_usize)), 1..120),
        crowded in any::<bool>(),
    ) {
        let mut model = Model::new();
        for (mut key, there) in chunks {
            if crowded {
                key[..7].copy_from_slice(&[1; 7]);
            }
            model.insert((Keyspace::Chunk, key.to_vec()), there.then(|| vec![1; 40]));
        }
        for (key, value) in ordered {
            model.insert((Keyspace::Due, key), value.map(|len| vec![8; len]));
        }
        check(&model);
    }
}
