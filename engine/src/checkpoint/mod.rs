//! Checkpoints: the memtable becomes tables, and replay begins behind what they hold.
//!
//! Order, each step synced before the next begins: tables and mirrors -> directory -> manifest, both copies -> directory -> superblock,
//! two and two -> what only the manifest before named is destroyed, log segments in which nothing is live among it. Until the superblock
//! names the new manifest the old one counts with all that it names; a step that fails burns its ids, and nothing is destroyed before a
//! later checkpoint has succeeded.
//!
//! It does not know what entries mean.

use crate::{
    canary::{self, Canary},
    catalog::{Memtable, Published, Tables, Usage},
    commit::Commit,
    disk::Disk,
    error::{Error, Kind, Result},
    format::{
        keyspace::Keyspace,
        manifest::{Manifest, ManifestTable, Sums, Tenant},
        superblock::ReplayPosition,
    },
    health::Health,
    ids::{FileId, Lsn, StoreUuid},
    limits::{CHECKPOINT_LOG_BYTES, MANIFEST_SEGMENTS_MAX, MANIFEST_TABLES_MAX, MEMTABLE_BYTES, TENANTS_MAX},
    log::append::Point,
    manifest,
    segment::{Segments, writer},
    superblock::Root,
    sync::{Arc, AtomicU64, Mutex, Ordering},
    table::{self, Builder, Entry, Table},
};

mod keeper;
mod merge;
mod release;

pub use keeper::Keeper;

use merge::Job;
use release::{Dead, Release};

/// When a checkpoint is due. The defaults are the store's limits; tests make them small.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tuning {
    /// The memtable holds so many bytes. Memory is twice that while one is written.
    pub memtable_bytes: u64,
    /// The log has grown by so many bytes.
    pub log_bytes: u64,
    /// A table is closed behind so many pages, at most as many as a table may have.
    pub table_pages: usize,
}

impl Default for Tuning {
    fn default() -> Self {
        Self { memtable_bytes: MEMTABLE_BYTES, log_bytes: CHECKPOINT_LOG_BYTES, table_pages: usize::MAX }
    }
}

/// What checkpoints stand on.
pub struct Ground {
    /// Files.
    pub disk: Arc<dyn Disk>,
    /// The superblock.
    pub root: Arc<Root>,
    /// Published state.
    pub published: Arc<Published>,
    /// Known segments.
    pub segments: Arc<Segments>,
    /// The latch.
    pub health: Arc<Health>,
}

/// What a checkpoint came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Checkpointed {
    /// The manifest that counts now.
    pub generation: u64,
    /// Tables that it names.
    pub tables: u64,
    /// Bytes of log segments that were given back.
    pub log_bytes_released: u64,
}

/// Makes checkpoints, one at a time. Commits go on meanwhile.
pub struct Checkpointer {
    ground: Ground,
    tuning: Tuning,
    state: Mutex<State>,
    /// How many checkpoints were tried.
    tries: AtomicU64,
}

struct State {
    /// The one that the superblock names.
    manifest: Manifest,
    /// What is to be written; kept where writing it failed.
    frozen: Option<Frozen>,
    /// Tables that no manifest names any more, and that a reader may have entered.
    obsolete: Vec<Arc<Table>>,
    /// Log segments.
    release: Release,
    /// A merge that is under way.
    merge: Option<Job>,
    /// Bytes of the memtable from which on the next step of it is due.
    merge_at: u64,
    /// Why the last one failed, and how much there must be before it is tried again.
    failed: Option<(Error, Load)>,
}

/// A memtable out of the way of further edits, with the position behind its last one.
struct Frozen {
    memtable: Arc<Memtable>,
    point: Point,
    sums: Sums,
    /// Log segments that the manifest leaves out.
    dead: Dead,
}

/// What calls for a checkpoint.
#[derive(Clone, Copy, Default, Debug)]
struct Load {
    memtable: u64,
    log: u64,
}

/// Files that a checkpoint has begun.
#[derive(Default)]
struct Made {
    tables: Vec<FileId>,
    generation: Option<u64>,
}

impl Checkpointer {
    /// Goes on from the manifest that the superblock names.
    pub fn new(ground: Ground, manifest: Manifest, tuning: Tuning) -> Self {
        let (release, obsolete) = (Release::default(), Vec::new());
        let state = State { manifest, frozen: None, obsolete, release, merge: None, merge_at: 0, failed: None };
        Self { ground, tuning, state: Mutex::new(state), tries: AtomicU64::new(0) }
    }

    /// Makes a checkpoint of everything that is published now.
    pub fn run(&self, commit: &Commit) -> Result<Checkpointed> {
        let mut state = self.state.lock();
        if state.frozen.is_some() {
            // What failed before comes first: it is older.
            self.step(&mut state, commit, usize::MAX)?;
        }
        self.step(&mut state, commit, usize::MAX)
    }

    /// Leaves no file behind that no manifest names: a merge that is under way ends here, and there are no readers any more.
    pub fn close(&self) {
        let mut state = self.state.lock();
        if !self.ground.health.is_writable() {
            return;
        }
        if let Some(job) = state.merge.take() {
            self.take_back(&Made { tables: job.ids(), generation: None });
        }
        self.destroy_obsolete(&mut state);
        state.release.free(&self.ground, None);
    }

    fn load(&self, commit: &Commit) -> Load {
        Load { memtable: self.ground.published.memtable_bytes(), log: commit.log_bytes() }
    }

    /// One checkpoint, and what its failure asks for. No more than `looks` log segments are looked at.
    fn step(&self, state: &mut State, commit: &Commit, looks: usize) -> Result<Checkpointed> {
        let done = self.checkpoint(state, commit, looks);
        self.tries.fetch_add(1, Ordering::AcqRel);
        state.failed = done.as_ref().err().map(|error| {
            let load = self.load(commit);
            let Tuning { memtable_bytes, log_bytes, .. } = self.tuning;
            let later = Load { memtable: load.memtable + memtable_bytes / 4, log: load.log + log_bytes / 4 };
            (error.again(), later)
        });
        done
    }

    fn checkpoint(&self, state: &mut State, commit: &Commit, looks: usize) -> Result<Checkpointed> {
        self.ground.health.check()?;
        let frozen = if let Some(frozen) = state.frozen.take() {
            frozen
        } else {
            // Looked at before the position is taken: what is dead now is dead there.
            let older = commit.with_log(|log| log.older().to_vec());
            let dead = state.release.look(&self.ground, state.manifest.uuid, &older, looks);
            self.freeze(commit, dead)?
        };
        let root = self.ground.root.current();
        let tables = self.ground.published.read().tables();
        tables.mend();
        if frozen.memtable.is_empty() && frozen.point.replay == root.replay && frozen.dead.ids.is_empty()
            || tables.is_empty() && frozen.memtable.is_empty()
        {
            self.ground.published.install((*tables).clone(), true);
            let freed = state.release.free(&self.ground, Some(commit));
            return Ok(Self::done(state, freed));
        }
        if canary::sings(Canary::LogReleasedEarly) {
            state.release.leave(&self.ground, &frozen.dead);
            state.release.free(&self.ground, Some(commit));
        }
        let mut made = Made::default();
        match self.write(&frozen, &tables, &state.manifest, &mut made) {
            Ok((manifest, tables)) => {
                let before = std::mem::replace(&mut state.manifest, manifest);
                self.ground.published.install(tables, true);
                state.merge_at = 0;
                self.destroy(state, before.generation);
                commit.with_log(|log| log.forget(&frozen.dead.ids, frozen.dead.content_bytes));
                state.release.leave(&self.ground, &frozen.dead);
                let freed = state.release.free(&self.ground, Some(commit));
                Ok(Self::done(state, freed))
            }
            Err(error) => {
                state.frozen = Some(frozen);
                Err(self.failed(error, &made))
            }
        }
    }

    fn done(state: &State, log_bytes_released: u64) -> Checkpointed {
        let tables = state.manifest.tables.len() as u64;
        Checkpointed { generation: state.manifest.generation, tables, log_bytes_released }
    }

    /// Takes position, sums and memtable at one point of the log.
    fn freeze(&self, commit: &Commit, dead: Dead) -> Result<Frozen> {
        commit.with_log(|log| {
            let point = log.point()?;
            let (memtable, usage) = self.ground.published.freeze();
            commit.count_log_bytes(0, true);
            let Usage { artifacts, logical_bytes, blobs, chunks, unique_bytes, live_bytes } = usage;
            let (hw, log_bytes) = (commit.hw(), point.content_before.saturating_sub(dead.content_bytes));
            let sums = Sums { hw, artifacts, logical_bytes, blobs, chunks, unique_bytes, live_bytes, log_bytes };
            Ok(Frozen { memtable, point, sums, dead })
        })
    }

    /// From the frozen memtable to the superblock.
    fn write(
        &self,
        frozen: &Frozen,
        tables: &Tables,
        before: &Manifest,
        made: &mut Made,
    ) -> Result<(Manifest, Tables)> {
        let root = &self.ground.root;
        let first = before.tables.last().map_or(Lsn::FIRST, |table| table.last_lsn.plus(1));
        let lsns = (first, Lsn(frozen.point.replay.lsn.0 - 1));
        // Without older tables a deletion has nothing to hide.
        let keeps = |(_, (_, value)): &(Keyspace, Entry)| !tables.is_empty() || value.is_some();
        let metas = self.write_tables(before.uuid, lsns, &mut frozen.memtable.entries().filter(keeps).map(Ok), made)?;
        let tables = tables.with_run(&metas);
        let manifest = Manifest {
            uuid: before.uuid,
            generation: root.allocate_generation()?,
            tenants: before.tenants.clone(),
            segments: release::without(&frozen.point.segments, &frozen.dead),
            sums: frozen.sums,
            tables: tables.metas(),
        };
        if manifest.tables.len() > MANIFEST_TABLES_MAX as usize
            || manifest.segments.len() > MANIFEST_SEGMENTS_MAX as usize
        {
            return Err(Error::new(Kind::Limit, "the store has more files than a manifest can name"));
        }
        self.name(&manifest, before.generation, frozen.point.replay, made)?;
        Ok((manifest, tables))
    }

    /// Writes a manifest and lets the superblock name it.
    fn name(&self, manifest: &Manifest, before: u64, replay: ReplayPosition, made: &mut Made) -> Result<()> {
        let Ground { disk, root, .. } = &self.ground;
        made.generation = Some(manifest.generation);
        if canary::sings(Canary::DestroyedEarly) {
            self.destroy_manifest(before);
        }
        if canary::sings(Canary::SuperblockEarly) {
            let bytes = manifest.encode();
            let digest = crate::digest::file_digest(&bytes);
            root.update(|s| (s.manifest, s.replay) = ((manifest.generation, bytes.len() as u64, digest), replay))?;
            manifest::write(&**disk, manifest)?;
            return writer::sync_dir(&**disk);
        }
        let named = manifest::write(&**disk, manifest)?;
        writer::sync_dir(&**disk)?;
        root.update(|s| (s.manifest, s.replay) = (named, replay))
    }

    /// Names a manifest with one tenant more, of a number that was never used. The tenant's record may follow.
    pub fn add_tenant(&self, key: [u8; 32]) -> Result<Tenant> {
        let mut state = self.state.lock();
        self.ground.health.check()?;
        if state.manifest.tenants.len() >= TENANTS_MAX as usize {
            return Err(Error::new(Kind::Limit, "the store has as many tenants as a manifest can name"));
        }
        let root = &self.ground.root;
        let tenant = Tenant { number: root.allocate_tenant()?, key };
        let mut manifest = Manifest { generation: root.allocate_generation()?, ..state.manifest.clone() };
        manifest.tenants.push(tenant.clone());
        let mut made = Made::default();
        match self.name(&manifest, state.manifest.generation, root.current().replay, &mut made) {
            Ok(()) => {
                let before = std::mem::replace(&mut state.manifest, manifest);
                self.destroy_manifest(before.generation);
                Ok(tenant)
            }
            Err(error) => Err(self.failed(error, &made)),
        }
    }

    /// What a caller hears of a step that failed; its files go, where anything may be written at all.
    fn failed(&self, error: Error, made: &Made) -> Error {
        let error = self.ground.health.notice(error);
        if self.ground.health.is_writable() {
            self.take_back(made);
        }
        error
    }

    /// One step of a merge, if one is worth it: a table is written, or the manifest names the merged run in the place of the others.
    fn merge_step(&self, state: &mut State) -> Result<()> {
        let tables = self.ground.published.read().tables();
        let mut job = match state.merge.take() {
            Some(job) => job,
            None => match merge::worth_merging(tables.runs()) {
                Some(count) => Job::new(&tables, count)?,
                None => return Ok(()),
            },
        };
        let mut made = Made::default();
        match self.merge_on(state, &mut job, &tables, &mut made) {
            Ok(true) => state.merge = Some(job),
            Ok(false) => {
                state.obsolete.extend(job.into_runs().iter().flat_map(|run| run.tables().to_vec()));
                drop(tables);
                self.destroy_obsolete(state);
            }
            Err(error) => {
                made.tables.extend(job.ids());
                return Err(self.failed(error, &made));
            }
        }
        Ok(())
    }

    /// True while there is more to merge.
    fn merge_on(&self, state: &mut State, job: &mut Job, tables: &Tables, made: &mut Made) -> Result<bool> {
        self.ground.health.check()?;
        let Ground { disk, root, published, .. } = &self.ground;
        let id = root.allocate_file()?;
        made.tables.push(id);
        let mut builder = Builder::new(state.manifest.uuid, id, job.lsns).closing_behind(self.tuning.table_pages);
        let more = job.fill(&mut builder)?;
        if let Some(built) = builder.finish() {
            job.written.push(table::write(&**disk, id, &built)?);
        }
        if more {
            return Ok(true);
        }
        writer::sync_dir(&**disk)?;
        let tables = job.replace(tables);
        let generation = root.allocate_generation()?;
        let manifest = Manifest { generation, tables: tables.metas(), ..state.manifest.clone() };
        self.name(&manifest, state.manifest.generation, root.current().replay, made)?;
        let before = std::mem::replace(&mut state.manifest, manifest);
        published.install(tables, false);
        self.destroy_manifest(before.generation);
        Ok(false)
    }

    /// Writes entries that come in order as the tables of one run, and makes their names durable. Memory: one table.
    fn write_tables(
        &self,
        uuid: StoreUuid,
        lsns: (Lsn, Lsn),
        entries: &mut dyn Iterator<Item = Result<(Keyspace, Entry)>>,
        made: &mut Made,
    ) -> Result<Vec<ManifestTable>> {
        let disk = &*self.ground.disk;
        let mut metas = Vec::new();
        let mut open: Option<(FileId, Builder)> = None;
        for entry in entries {
            let (keyspace, (key, value)) = entry?;
            if let Some((id, builder)) = open.take_if(|(_, builder)| builder.is_full())
                && let Some(built) = builder.finish()
            {
                metas.push(table::write(disk, id, &built)?);
            }
            if open.is_none() {
                let id = self.ground.root.allocate_file()?;
                made.tables.push(id);
                open = Some((id, Builder::new(uuid, id, lsns).closing_behind(self.tuning.table_pages)));
            }
            let (_, builder) = open.as_mut().expect("made above");
            builder.push(keyspace, key, value);
        }
        if let Some((id, builder)) = open
            && let Some(built) = builder.finish()
        {
            metas.push(table::write(disk, id, &built)?);
        }
        if !metas.is_empty() {
            writer::sync_dir(disk)?;
        }
        Ok(metas)
    }

    /// Destroys what a failed checkpoint left; what stays is destroyed by the next open. None of it is ever written or synced again: a
    /// sync that succeeds behind one that failed says nothing of the bytes before.
    fn take_back(&self, made: &Made) {
        let disk = &*self.ground.disk;
        let names = made.tables.iter().flat_map(|id| table::names(*id));
        for name in names.chain(made.generation.into_iter().flat_map(manifest::names)) {
            let _ = writer::destroy(disk, &name);
        }
    }

    /// Destroys what only the manifest before named. A table goes when nobody has entered it any more; what stays for now is tried
    /// again, and in the end by the next open.
    fn destroy(&self, state: &mut State, generation: u64) {
        self.destroy_manifest(generation);
        self.destroy_obsolete(state);
    }

    fn destroy_obsolete(&self, state: &mut State) {
        let disk = &*self.ground.disk;
        for table in state.obsolete.extract_if(.., |table| Arc::strong_count(table) == 1) {
            table.close();
            for name in table::names(table.meta.id).iter().take(table.copies()) {
                let _ = writer::destroy(disk, name);
            }
        }
        let _ = writer::sync_dir(disk);
    }

    fn destroy_manifest(&self, generation: u64) {
        for name in manifest::names(generation) {
            let _ = writer::destroy(&*self.ground.disk, &name);
        }
    }
}
