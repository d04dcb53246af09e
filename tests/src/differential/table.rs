//! Tables: no bytes make the engine panic, and what the independent parser accepts the engine reads as the same rows.

use std::sync::Arc;

use holdfast::{
    disk::{self, Disk, OpenOptions, sim::SimDisk},
    format::{
        keyspace::Keyspace,
        manifest::ManifestTable,
        table::{PAGE_LEN, PAGES_MAX, Page, TableSalt},
    },
    ids::{FileId, Lsn, StoreUuid},
    table::{self, Cursor, Ground, Table},
};
use holdfast_format_spec::{generate::records, table as spec};

/// The table of every input.
const ID: FileId = FileId(7);
/// Pages of an input at most.
const PAGES: usize = 24;

/// Rows by keyspace, in order.
type Rows = Vec<(Keyspace, table::Entry)>;

/// Reads one input. The first byte says whether checksums are made right first, so that more than checksums is tried.
pub fn run(data: &[u8]) {
    let Some((mode, bytes)) = data.split_first() else { return };
    let mut bytes = bytes[..bytes.len().min(PAGES * PAGE_LEN)].to_vec();
    let whole = bytes.len().next_multiple_of(PAGE_LEN).max(2 * PAGE_LEN);
    bytes.resize(whole, 0);
    let uuid: [u8; 16] = bytes[16..32].try_into().expect("16 bytes");
    if mode & 1 == 1 {
        let salt = TableSalt::new(StoreUuid(uuid), ID);
        for (number, page) in (0..).zip(bytes.chunks_exact_mut(PAGE_LEN)) {
            let page: &mut Page = page.try_into().expect("a page");
            salt.close(page, number);
        }
    }
    let ours = engine(&bytes, uuid);
    if let Ok((_, rows)) = spec::parse(&bytes, &uuid, ID.0) {
        let theirs: Vec<_> =
            rows.iter().map(|(key, entry)| (records::key(key), entry.as_ref().map(records::value))).collect();
        let ours = ours.expect("the engine reads what the parser accepts");
        assert!(ours.iter().map(|(_, entry)| entry).eq(&theirs), "the two readers see other rows");
    }
}

/// What the engine reads, row by row and key by key.
fn engine(bytes: &[u8], uuid: [u8; 16]) -> Option<Rows> {
    let sim = SimDisk::new(1);
    let [name, _] = table::names(ID);
    let file = sim.open(&name, OpenOptions::CREATE).expect("a new file");
    disk::write_all(&*file, bytes, 0).expect("there is room");
    let lsn = |at: usize| Lsn(u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes")));
    let pages = u32::try_from(bytes.len() / PAGE_LEN).unwrap_or(PAGES_MAX);
    let meta = ManifestTable {
        id: ID,
        pages,
        mirrored: false,
        first_lsn: lsn(40),
        last_lsn: lsn(48),
        first: (Keyspace::Tenant, vec![0; 16]),
        last: (Keyspace::Claim, vec![0xff; 20]),
    };
    let ground = Ground::new(Arc::new(sim), StoreUuid(uuid), 1 << 20);
    let table = Arc::new(Table::new(Arc::new(ground), meta));
    let mut rows = Rows::new();
    for keyspace in Keyspace::ALL {
        let mut cursor = Cursor::new(Arc::clone(&table), keyspace, &[]).ok()?;
        while let Some((key, value)) = cursor.next_entry().ok()? {
            let found = table.get(keyspace, &key);
            rows.push((keyspace, (key, value)));
            // Hostile pages may repeat themselves; a table has an end all the same.
            assert!(rows.len() <= PAGES * PAGE_LEN, "a table without an end");
            drop(found);
        }
    }
    Some(rows)
}
