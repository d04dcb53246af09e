//! Making and opening stores.

use super::{InitOptions, OpenMode, OpenOptions, Store, World, Writing};
use crate::{
    budget::Budget,
    catalog::Published,
    checkpoint::{self, Checkpointer, Keeper},
    commit::Commit,
    disk::{LockGuard, LockMode},
    error::{Kind, Result},
    health::Health,
    ids::StoreUuid,
    ingest::{Ground, Ingest},
    ownership::Door,
    pins::Pins,
    read::Reader,
    recovery::{self, finish, init},
    sync::{Arc, Mutex},
};

impl Store {
    /// Makes a store in an empty directory: 12 MiB of files with the default options.
    pub fn init(world: &World, options: &InitOptions) -> Result<StoreUuid> {
        // Looked at before it is locked, so that nothing is left in a directory that is refused.
        init::check_place(&*world.disk)?;
        let lock = recovery::lock(&*world.disk, LockMode::Exclusive, "init")?;
        let uuid = init::init(&*world.disk, &*world.clock, &*world.entropy, options.options)?;
        // The first open prepares the next log segment and the reserve.
        let options = OpenOptions::new(OpenMode::Write, "init");
        Self::open_locked(world.clone(), &options, lock)?.close()?;
        Ok(uuid)
    }

    /// Opens a store. After a crash this takes as long as reading the log's headers and commits.
    ///
    /// `LOCKED`: somebody else has it. `CORRUPT`: its root is damaged beyond its copies. Other damage is in
    /// [`report`](Self::report); where commits are lost the store opens, and takes no writes.
    pub fn open(world: World, options: &OpenOptions) -> Result<Self> {
        let mode = match options.mode {
            OpenMode::Write => LockMode::Exclusive,
            OpenMode::Read => LockMode::Shared,
        };
        if options.mode == OpenMode::Write {
            // Looked at before it is locked: a directory that is no store must not get a `LOCK`.
            init::check_is_store(&*world.disk)?;
        }
        let lock = recovery::lock(&*world.disk, mode, &options.holder)?;
        Self::open_locked(world, options, lock)
    }

    fn open_locked(world: World, options: &OpenOptions, lock: Box<dyn LockGuard>) -> Result<Self> {
        let mut rebuilt = recovery::rebuild(&world.disk)?;
        let health = Arc::new(Health::default());
        let taken = match options.mode {
            OpenMode::Write => recovery::adopt::take_over(&world.disk, &world.entropy, &health, &mut rebuilt)?,
            OpenMode::Read => {
                health.make_read_only();
                None
            }
        };
        let log_content = rebuilt.manifest.sums.log_bytes.saturating_add(rebuilt.found.content_bytes);
        let recovery::Rebuilt { superblock, manifest, catalog, segments, hw, found, mut report } = rebuilt;
        report.replayed_bytes = found.replayed_bytes(superblock.replay.offset);
        let published = Arc::new(Published::new(catalog));
        let door = Arc::new(Door::new(&superblock.secret, &manifest.tenants));
        let budget = Budget::new(options.ingest_memory);
        let reader = Reader::new(Arc::clone(&published), Arc::clone(&segments), Arc::clone(&door), Arc::clone(&budget));
        let writing = match taken {
            None => {
                // Where the list of segments is damaged, which the report says, nobody knows what is named.
                match finish::stray(&*world.disk, &superblock, published.read(), &segments) {
                    Err(e) if e.kind() == Kind::Corrupt && !report.problems.is_empty() => {}
                    stray => report.strange_files = stray?.strange,
                }
                None
            }
            Some((log, root)) => {
                let commit =
                    Commit::new(log, Arc::clone(&published), hw, Arc::clone(&health), Arc::clone(&world.clock));
                let commit = Arc::new(commit);
                finish::tidy(&*world.disk, &superblock, &published, &commit, world.clock.wall(), &mut report)?;
                finish::destroy_unnamed(&*world.disk, &root.current(), published.read(), &segments, &mut report)?;
                commit.count_log_bytes(report.replayed_bytes, false);
                let checkpoints = checkpoint::Ground {
                    disk: Arc::clone(&world.disk),
                    root: Arc::clone(&root),
                    published: Arc::clone(&published),
                    segments: Arc::clone(&segments),
                    health: Arc::clone(&health),
                };
                let checkpointer = Arc::new(Checkpointer::new(checkpoints, manifest, options.checkpoints));
                commit.keep_up(Box::new(Keeper(Arc::clone(&checkpointer))));
                // Without room for a prepared segment the store goes on: the next group tries again.
                let _ = commit.with_log(crate::log::Log::settle);
                health.check()?;
                let ground = Ground {
                    disk: Arc::clone(&world.disk),
                    clock: Arc::clone(&world.clock),
                    entropy: Arc::clone(&world.entropy),
                    commit: Arc::clone(&commit),
                    published: Arc::clone(&published),
                    segments: Arc::clone(&segments),
                    pins: Pins::new(),
                    root,
                    health: Arc::clone(&health),
                    door: Arc::clone(&door),
                    budget: Arc::clone(&budget),
                };
                let ingest = Ingest::new(ground, options.tuning);
                Some(Writing { commit, ingest, checkpointer, unnamed_tenant: Mutex::default() })
            }
        };
        Ok(Self {
            world,
            superblock,
            door,
            reader,
            published,
            segments,
            health,
            report,
            opened_hw: hw,
            log_content,
            writing,
            _lock: lock,
        })
    }
}
