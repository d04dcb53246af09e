use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::{
    disk::sim::SimDisk,
    format::{
        manifest::ManifestTable,
        value::{OpMade, OpValue},
    },
    ids::{FileId, Lsn, StoreUuid, Time},
    table::{self, Builder, Ground},
};

const UUID: StoreUuid = StoreUuid([5; 16]);

/// What is done to a catalog.
#[derive(Clone, Debug)]
enum Step {
    Put(u8, u8),
    Delete(u8),
    Freeze,
    Flush,
    Merge,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (any::<u8>(), any::<u8>()).prop_map(|(key, value)| Step::Put(key, value)),
        4 => any::<u8>().prop_map(Step::Delete),
        1 => Just(Step::Freeze),
        2 => Just(Step::Flush),
        1 => Just(Step::Merge),
    ];
    prop::collection::vec(step, 1..200)
}

fn key(number: u8) -> Vec<u8> {
    [&[1, number % 3][..], &[number; 38]].concat()
}

fn value(number: u8) -> Vec<u8> {
    OpValue { id: [number; 16], made: OpMade::Artifact, lsn: Lsn::FIRST, at: Time(u64::from(number)) }.encode()
}

/// A catalog beside the map that it must equal.
struct Bed {
    disk: SimDisk,
    published: Published,
    tables: Tables,
    frozen: Option<Arc<Memtable>>,
    model: BTreeMap<Vec<u8>, Vec<u8>>,
    next: u64,
}

impl Bed {
    fn new() -> Self {
        let disk = SimDisk::new(1);
        let ground = Arc::new(Ground::new(Arc::new(disk.clone()), UUID, 1 << 20));
        let tables = Tables::new(ground, &[]);
        let published = Published::new(Catalog::new(tables.clone(), Usage::default()));
        Self { disk, published, tables, frozen: None, model: BTreeMap::new(), next: 1 }
    }

    fn write(&mut self, lsns: (Lsn, Lsn), entries: &mut dyn Iterator<Item = (Keyspace, Entry)>) -> Vec<ManifestTable> {
        let mut metas = Vec::new();
        let mut builder: Option<(FileId, Builder)> = None;
        let mut rest = entries.peekable();
        while let Some((keyspace, (key, value))) = rest.next() {
            let (id, mut building) = builder.take().unwrap_or_else(|| {
                self.next += 1;
                let id = FileId(self.next);
                (id, Builder::new(UUID, id, lsns).closing_behind(3))
            });
            building.push(keyspace, key, value);
            if building.is_full() || rest.peek().is_none() {
                metas.push(table::write(&self.disk, id, &building.finish().expect("has entries")).expect("writes"));
            } else {
                builder = Some((id, building));
            }
        }
        metas
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Put(number, byte) => {
                self.published.apply(vec![Edit::put(Keyspace::Op, key(*number), value(*byte))]).expect("applies");
                self.model.insert(key(*number), value(*byte));
            }
            Step::Delete(number) => {
                self.published.apply(vec![Edit::delete(Keyspace::Op, key(*number))]).expect("applies");
                self.model.remove(&key(*number));
            }
            Step::Freeze if self.frozen.is_none() => {
                let (frozen, _) = self.published.freeze();
                self.frozen = Some(frozen).filter(|frozen| !frozen.is_empty());
            }
            Step::Flush => {
                let Some(frozen) = self.frozen.take() else { return };
                self.next += 1;
                let lsn = Lsn(self.next);
                let metas = self.write((lsn, lsn), &mut frozen.entries());
                self.tables = self.tables.with_run(&metas);
                self.published.install(self.tables.clone(), true);
            }
            Step::Merge if self.tables.runs().len() > 1 => {
                let all = self.tables.runs().len();
                let cursors = self.tables.runs().iter().map(|run| run.cursor(Keyspace::Op, &[]).expect("begins"));
                let mut merge = Merge::new(Vec::new(), cursors.collect()).expect("begins");
                let mut entries = Vec::new();
                while let Some((key, value)) = merge.next_entry().expect("reads") {
                    entries.extend(value.map(|value| (Keyspace::Op, (key, Some(value)))));
                }
                let metas = self.tables.metas();
                let lsns = (metas[0].first_lsn, metas[metas.len() - 1].last_lsn);
                let merged = self.write(lsns, &mut entries.into_iter());
                self.tables = self.tables.with_merged(0, all, &merged);
                self.published.install(self.tables.clone(), false);
            }
            Step::Freeze | Step::Merge => {}
        }
    }

    fn check(&self) {
        let view = self.published.read();
        let all: Vec<_> = self.model.clone().into_iter().collect();
        assert_eq!(view.scan(Keyspace::Op, &[], None, usize::MAX).expect("reads"), all);
        for prefix in [[1, 0], [1, 1], [1, 2]] {
            let of =
                |after: Option<&[u8]>, limit: usize| view.scan(Keyspace::Op, &prefix, after, limit).expect("reads");
            let wanted: Vec<_> = all.iter().filter(|(key, _)| key.starts_with(&prefix)).cloned().collect();
            let (mut pages, mut after) = (Vec::new(), None);
            loop {
                let page = of(after.as_deref(), 3);
                after = page.last().map(|(key, _)| key.clone());
                let done = page.len() < 3;
                pages.extend(page);
                if done {
                    break;
                }
            }
            assert_eq!(pages, wanted);
        }
        for number in 0..=u8::MAX {
            assert_eq!(view.get(Keyspace::Op, &key(number)).expect("reads"), self.model.get(&key(number)).cloned());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn memtables_and_tables_together_are_a_map(steps in steps()) {
        let mut bed = Bed::new();
        for step in &steps {
            bed.step(step);
        }
        bed.check();
    }
}

#[test]
fn a_scan_of_more_than_one_part_of_memory_misses_nothing() {
    let mut bed = Bed::new();
    let long = |n: u16| [&[1, 1][..], &n.to_le_bytes(), &[0; 36]].concat();
    for n in 0..5000_u16 {
        let edit = Edit::put(Keyspace::Op, long(n), value(1));
        bed.published.apply(vec![edit]).expect("applies");
        bed.model.insert(long(n), value(1));
        if n % 1300 == 0 {
            bed.step(&Step::Freeze);
            bed.step(&Step::Flush);
        }
        if n % 1900 == 0 {
            bed.step(&Step::Freeze);
        }
    }
    let all = bed.published.read().scan(Keyspace::Op, &[1], None, usize::MAX).expect("reads");
    assert_eq!(all, bed.model.into_iter().collect::<Vec<_>>());
}
