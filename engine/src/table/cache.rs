//! Pages whose checksum was good when they were read, a bounded number of them.

use crate::{
    format::table::{PAGE_LEN, Page},
    ids::FileId,
    sync::{Arc, Mutex},
};

/// Pages that compete for one place.
const WAYS: usize = 8;

/// The cache: 8 pages a set, the least recently used of which goes. O(1).
pub(super) struct Cache {
    sets: Vec<Mutex<Set>>,
}

#[derive(Default)]
struct Set {
    tick: u64,
    ways: [Option<Way>; WAYS],
}

struct Way {
    table: FileId,
    number: u32,
    used: u64,
    page: Arc<Page>,
}

impl Cache {
    /// A cache of about so many bytes.
    pub(super) fn new(bytes: u64) -> Self {
        let sets = usize::try_from(bytes).unwrap_or(usize::MAX) / (WAYS * PAGE_LEN);
        Self { sets: (0..sets.max(1)).map(|_| Mutex::default()).collect() }
    }

    fn set(&self, table: FileId, number: u32) -> &Mutex<Set> {
        // Neighbouring pages, and the first pages of all tables, must not meet in one set.
        let mixed = (table.0.wrapping_mul(0x9e37_79b9_7f4a_7c15)).rotate_left(31) ^ u64::from(number);
        let index = (u128::from(mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15)) * self.sets.len() as u128) >> 64;
        &self.sets[usize::try_from(index).expect("an index")]
    }

    pub(super) fn get(&self, table: FileId, number: u32) -> Option<Arc<Page>> {
        let mut set = self.set(table, number).lock();
        set.tick += 1;
        let tick = set.tick;
        let way = set.ways.iter_mut().flatten().find(|way| (way.table, way.number) == (table, number))?;
        way.used = tick;
        Some(Arc::clone(&way.page))
    }

    pub(super) fn put(&self, table: FileId, number: u32, page: &Arc<Page>) {
        let mut set = self.set(table, number).lock();
        set.tick += 1;
        let way = Way { table, number, used: set.tick, page: Arc::clone(page) };
        let oldest = set.ways.iter_mut().min_by_key(|way| way.as_ref().map_or(0, |way| way.used));
        *oldest.expect("a set has ways") = Some(way);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_stays_and_memory_is_bounded() {
        let cache = Cache::new(16 * PAGE_LEN as u64);
        for number in 0..1000 {
            cache.put(FileId(1), number, &Arc::new([0; PAGE_LEN]));
            cache.put(FileId(2), 7, &Arc::new([7; PAGE_LEN]));
            assert!(cache.get(FileId(2), 7).is_some_and(|page| page[0] == 7));
        }
        let kept = (0..1000).filter(|number| cache.get(FileId(1), *number).is_some()).count();
        assert!((8..=16).contains(&kept), "{kept}");
    }
}
