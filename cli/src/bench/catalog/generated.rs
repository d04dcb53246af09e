//! Tables of generated chunk entries: written, merged and looked up through the code of a store, without one. A catalog of a hundred
//! million chunks takes minutes so, and no blobs.

use std::sync::Arc;

use holdfast::{
    Error, Kind,
    catalog::{Merge, Tables},
    disk::{self, Disk, OpenOptions},
    format::{
        keyspace::Keyspace,
        manifest::{Lane, Manifest, ManifestSegment, ManifestTable, SegmentState, Sums, Tenant},
        table::PAGE_LEN,
    },
    ids::{Epoch, FileId, Lsn, StoreUuid, TenantNumber},
    limits::TABLE_CACHE_BYTES,
    manifest,
    table::{self, Builder, Ground},
};
use holdfast_benches::{
    Stopwatch, figure,
    yardstick::{self, Write},
};

use super::{
    Plan,
    keys::{Key, Keys},
};
use crate::{
    bench::{
        Best, Row, gib,
        place::{Place, plain},
        print,
    },
    exit_code::Outcome,
    progress::Progress,
    session::Session,
};

/// Every row but those of look-ups, in the order in which they are printed.
pub(super) const ROWS: [&str; 5] = ["build", "build_entries", "entry_bytes", "merge", "merge_entries"];

/// Bytes of disk a chunk, with its mirror.
pub(super) const ROOM: u64 = 240;
/// Runs that the keys are spread over: a look-up may ask each.
const RUNS: u64 = 4;
/// Entries that are merged at most: their speed does not depend on how many follow.
const MERGED: u64 = 10_000_000;
const UUID: StoreUuid = StoreUuid([7; 16]);
/// A plain file to compare with.
const PLAIN: u64 = 256 << 20;
const AGAINST: &str = "durable write of a plain file";

/// Writes the tables, merges some of them, and has them looked up in.
pub(super) fn run(plan: &Plan, place: &Place, session: &Session) -> Outcome {
    let directory = place.make_directory("tables")?;
    let disk: Arc<dyn Disk> = Arc::new(place.open_directory("tables")?);
    let mut plain_write = Best::default();
    durable_write(place, &mut plain_write)?;
    let mut written = Written::new(Arc::clone(&disk));
    build(plan, &mut written)?;
    durable_write(place, &mut plain_write)?;
    let pages: u64 = written.metas.iter().map(|table| u64::from(table.pages)).sum();
    let entry_bytes = figure(pages * PAGE_LEN as u64) / figure(plan.chunks);
    let rows = [
        speed("build", &written, plain_write),
        Row::alone("build_entries", written.entries_a_second(), "1/s"),
        Row::alone("entry_bytes", entry_bytes, "B"),
    ];
    print(&rows, &plan.rows, session)?;
    let metas = std::mem::take(&mut written.metas);
    name(&*disk, &metas)?;
    if plan.wants(&["merge", "merge_entries"]) {
        let merged = merge(plan, &disk, &metas)?;
        let rows =
            [speed("merge", &merged, plain_write), Row::alone("merge_entries", merged.entries_a_second(), "1/s")];
        print(&rows, &plan.rows, session)?;
    }
    place.settle()?;
    plan.look_elsewhere(&directory, place)
}

fn speed(row: &str, written: &Written, plain_write: Best) -> Row {
    let rate = figure(written.bytes) / written.seconds.max(1e-9);
    Row::against(row, gib(rate), "GiB/s", gib(plain_write.rate()), AGAINST)
}

fn durable_write(place: &Place, best: &mut Best) -> Outcome {
    for how in [Write::Direct, Write::Buffered] {
        let name = plain("plain");
        best.add(yardstick::write_sequential(&place.disk, &name, PLAIN, how).map_err(place.failed("write a file"))?);
        place.remove_file(&name)?;
    }
    Ok(())
}

/// Tables that are being written.
struct Written {
    disk: Arc<dyn Disk>,
    open: Option<(FileId, Builder)>,
    next: u64,
    lsns: (Lsn, Lsn),
    metas: Vec<ManifestTable>,
    /// Written, mirrors too.
    bytes: u64,
    entries: u64,
    /// Time of building and writing, without that of making keys.
    seconds: f64,
}

impl Written {
    const fn new(disk: Arc<dyn Disk>) -> Self {
        let lsns = (Lsn::FIRST, Lsn::FIRST);
        Self { disk, open: None, next: 1, lsns, metas: Vec::new(), bytes: 0, entries: 0, seconds: 0.0 }
    }

    fn entries_a_second(&self) -> f64 {
        figure(self.entries) / self.seconds.max(1e-9)
    }

    fn push(&mut self, key: Vec<u8>, value: Option<Vec<u8>>) -> Result<(), Error> {
        if self.open.as_ref().is_some_and(|(_, builder)| builder.is_full()) {
            self.end_table()?;
        }
        let (uuid, id, lsns) = (UUID, FileId(self.next), self.lsns);
        let (_, builder) = self.open.get_or_insert_with(|| (id, Builder::new(uuid, id, lsns)));
        builder.push(Keyspace::Chunk, key, value);
        self.entries += 1;
        Ok(())
    }

    /// Writes what is open, both copies, and syncs.
    fn end_table(&mut self) -> Result<(), Error> {
        let Some((id, builder)) = self.open.take() else { return Ok(()) };
        self.next += 1;
        if let Some(built) = builder.finish() {
            self.bytes += 2 * built.bytes().len() as u64;
            self.metas.push(table::write(&*self.disk, id, &built)?);
        }
        Ok(())
    }
}

/// Writes all runs, each over all keys, a table at a time.
fn build(plan: &Plan, written: &mut Written) -> Outcome {
    let keys = Keys::new(plan.chunks);
    let mut progress = Progress::steps("bench catalog, tables, entry", plan.chunks);
    for run in 0..RUNS {
        written.lsns = (Lsn::FIRST.plus(run), Lsn::FIRST.plus(run));
        let mut sorted = keys.sorted(RUNS, run);
        loop {
            let part: Vec<Key> = sorted.by_ref().take(10_000).collect();
            if part.is_empty() {
                break;
            }
            let watch = Stopwatch::start();
            for key in part {
                written.push(key.to_vec(), Some(vec![1; 40]))?;
            }
            written.seconds += watch.seconds();
            progress.set(written.entries);
        }
        let watch = Stopwatch::start();
        written.end_table()?;
        written.seconds += watch.seconds();
    }
    Ok(())
}

/// Merges the runs as a store does, and destroys the tables that it comes to as soon as they are written.
fn merge(plan: &Plan, disk: &Arc<dyn Disk>, metas: &[ManifestTable]) -> Outcome<Written> {
    let tables = over(disk, metas);
    let most = plan.chunks.min(MERGED);
    let mut progress = Progress::steps("bench catalog, merge, entry", most);
    let mut written = Written::new(Arc::clone(disk));
    written.next = metas.len() as u64 + 1;
    let watch = Stopwatch::start();
    let cursors = tables.runs().iter().map(|run| run.cursor(Keyspace::Chunk, &[])).collect::<Result<_, _>>()?;
    let mut merge = Merge::new(Vec::new(), cursors)?;
    while written.entries < most
        && let Some((key, value)) = merge.next_entry()?
    {
        written.push(key, value)?;
        if !written.metas.is_empty() {
            progress.set(written.entries);
            destroy(&mut written)?;
        }
    }
    written.end_table()?;
    destroy(&mut written)?;
    written.seconds = watch.seconds();
    Ok(written)
}

fn destroy(written: &mut Written) -> Result<(), Error> {
    for name in written.metas.drain(..).flat_map(|table| table::names(table.id)) {
        written.disk.unlink(&name).map_err(|error| Error::io(error, &name, "remove a table"))?;
    }
    Ok(())
}

fn over(disk: &Arc<dyn Disk>, metas: &[ManifestTable]) -> Tables {
    Tables::new(Arc::new(Ground::new(Arc::clone(disk), UUID, TABLE_CACHE_BYTES)), metas)
}

/// A manifest for whoever opens the tables.
fn name(disk: &dyn Disk, metas: &[ManifestTable]) -> Outcome {
    // A manifest has a tenant and a segment; nobody looks for these.
    let (tenants, sums) = (vec![Tenant { number: TenantNumber(1), key: [7; 32] }], Sums::default());
    let (id, epoch, lane, state) = (FileId(1), Epoch([7; 16]), Lane::Log, SegmentState::Active);
    let segments = vec![ManifestSegment { id, epoch, lane, state, end: 0 }];
    let named = Manifest { uuid: UUID, generation: 1, tenants, segments, sums, tables: metas.to_vec() };
    manifest::write(disk, &named)?;
    Ok(())
}

/// The tables that the manifest names.
pub(super) fn open(disk: &Arc<dyn Disk>) -> Result<Tables, Error> {
    let [name, _] = manifest::names(1);
    let failed = |error| Error::io(error, &name, "read a manifest");
    let file = disk.open(&name, OpenOptions::READ).map_err(failed)?;
    let mut bytes = vec![0; usize::try_from(file.len().map_err(failed)?).expect("a manifest is bounded")];
    disk::read_exact(&*file, &mut bytes, 0).map_err(failed)?;
    let manifest = Manifest::decode(&bytes, UUID, 1).map_err(|bad| Error::new(Kind::Corrupt, bad.what))?;
    Ok(over(disk, &manifest.tables))
}
