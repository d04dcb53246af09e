//! The vectors of tables.

use super::{Cases, OFFSET};
use crate::common::{FIRST_LSN, UUID};
use crate::describe::Shape;
use holdfast_format_spec::frame::{Codec, Kind};
use holdfast_format_spec::generate::{Rng, tables};
use holdfast_format_spec::keyspace::{self, Entry, Key, ZeroKey};
use holdfast_format_spec::table::Row;

pub(super) fn tables(cases: &mut Cases) {
    let head = tables::TableHead { uuid: UUID, id: 7, first_lsn: FIRST_LSN, last_lsn: FIRST_LSN + 8 };
    let shape = || Shape::Table { uuid: UUID, id: 7 };
    let mut rng = Rng::new(11);
    let chunk = |rng: &mut Rng, crowded: bool| {
        let mut id: [u8; 32] = rng.array();
        if crowded {
            id[..7].copy_from_slice(&[9; 7]);
        }
        let chunk = keyspace::Chunk {
            segment: 3,
            offset: OFFSET,
            stored: 10,
            raw: 10,
            tenant: 1,
            codec: Codec::Raw,
            kind: Kind::Chunk,
            references: 1,
        };
        (Key::Chunk(id), (id[31] > 20).then_some(Entry::Chunk(id, chunk)))
    };
    let zero = |n: u8| (Key::Zero(ZeroKey::Chunk([n; 32])), (n > 2).then_some(Entry::Zero(ZeroKey::Chunk([n; 32]))));
    let mut rows: Vec<Row> = (0..5).map(|_| chunk(&mut rng, false)).chain((1..5).map(zero)).collect();
    rows.sort_by_key(|(key, _)| *key);
    let good = tables::pages(&head, &rows);
    let name = "table";
    cases.add(true, name, "A bucket and a leaf, with deletions.", shape(), tables::close(&head, good));
    let crowd: Vec<Row> = (0..70).map(|n| chunk(&mut rng, n > 0)).collect();
    let crowd = tables::close(&head, tables::pages(&head, &crowd));
    cases.add(true, "table-overflow", "More entries of one bucket than fit.", shape(), crowd);
    let many: Vec<Row> = (0..230).map(|n| zero(n + 1)).collect();
    let many = tables::close(&head, tables::pages(&head, &many));
    cases.add(true, "table-branch", "Leaves below a branch.", shape(), many);
    let (bucket, leaf) = (tables::pages(&head, &rows[..5]), tables::pages(&head, &rows[5..]));
    let mut wrong = |name: &str, about: &str, page: usize, at: usize, bytes: &[u8]| {
        let base = if name == "table-leaf-tag" { &leaf } else { &bucket };
        let mut pages = base.clone();
        pages[page][at..at + bytes.len()].copy_from_slice(bytes);
        cases.add(false, name, about, shape(), tables::close(&head, pages));
    };
    wrong("table-version", "Version 2.", 0, 8, &[2]);
    wrong("table-id", "The id of another table.", 0, 32, &[8]);
    wrong("table-sections", "33 sections.", 0, 56, &[33]);
    wrong("table-keyspace", "A keyspace of a newer version.", 0, 96, &[200]);
    wrong("table-shape", "Chunks in a tree.", 0, 97, &[2]);
    wrong("table-first-page", "A section that begins in the header.", 0, 96 + 8, &[0]);
    wrong("table-entries", "One entry more than there is.", 0, 96 + 4, &[6]);
    wrong("table-low", "A first key below which keys stand.", 0, 96 + 24, &[0xff; 8]);
    wrong("table-kind", "A leaf where a bucket should stand.", 1, 0, &[4]);
    wrong("table-bucket-order", "A key that stands in front of a lower one.", 1, 16, &[0xff; 4]);
    wrong("table-deleted", "A deletion of an entry that is not there.", 1, 15, &[0x80]);
    wrong("table-leaf-tag", "Tag 3.", 1, 16, &[3]);
    let mut spoiled = tables::close(&head, bucket);
    spoiled[5_000] ^= 1;
    cases.add(false, "table-checksum", "A changed bit.", shape(), spoiled);
}
