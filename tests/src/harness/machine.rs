//! A machine: a simulated disk, a clock that stands until somebody moves it, and randomness that a seed decides.

use std::sync::Arc;

use holdfast::{
    CheckpointTuning, Result, Tuning,
    chunker::ChunkParams,
    clock::ManualClock,
    codec::Compression,
    disk::{Disk, sim::SimDisk},
    entropy::SeededEntropy,
    format::superblock::Options,
    ids::Time,
    store::{InitOptions, OpenMode, OpenOptions, Store, World},
};

/// Where every clock starts: some day in 2023.
pub const START: Time = Time(1_700_000_000_000);

/// Options so small that rotation, progress commits and seals occur in every run of a few dozen operations.
pub const OPTIONS: Options = Options {
    chunks: ChunkParams { min: 64, avg: 1024, max: 4096, single_max: 512 },
    compression: Compression { level: 1, probe: 4096 },
    log_segment_first: 16 << 10,
    log_segment_max: 64 << 10,
    bulk_segment: 64 << 10,
};

/// Streams above 4 KiB go through the bulk lane and commit their progress every 16 KiB.
pub const TUNING: Tuning = Tuning { small_stream_max: 4 << 10, progress_bytes: 16 << 10 };

/// A checkpoint every few puts, of tables of a few pages.
pub const CHECKPOINTS: CheckpointTuning =
    CheckpointTuning { memtable_bytes: 4 << 10, log_bytes: 24 << 10, table_pages: 4 };

/// A machine that is up.
#[derive(Clone)]
pub struct Machine {
    /// Its disk.
    pub sim: SimDisk,
    /// Its clock.
    pub clock: Arc<ManualClock>,
    /// What the store sees of it.
    pub world: World,
    /// When its store makes checkpoints.
    pub checkpoints: CheckpointTuning,
}

impl Machine {
    /// A machine with this disk. Equal seeds give equal ids and epochs.
    pub fn new(sim: SimDisk, now: Time, seed: u64) -> Self {
        let disk = Arc::new(sim.clone());
        Self::behind(sim, disk, now, seed)
    }

    /// A machine whose store sees `disk`, which stands in front of the simulated one.
    pub fn behind(sim: SimDisk, disk: Arc<dyn Disk>, now: Time, seed: u64) -> Self {
        let clock = Arc::new(ManualClock::new(now));
        let entropy = Arc::new(SeededEntropy::new(seed));
        let world = World { disk, clock: Arc::<ManualClock>::clone(&clock), entropy };
        Self { sim, clock, world, checkpoints: CHECKPOINTS }
    }

    /// The same, whose store makes no checkpoints by itself.
    #[must_use]
    pub fn without_checkpoints(mut self) -> Self {
        self.checkpoints = CheckpointTuning::default();
        self
    }

    /// Makes a store.
    pub fn init(&self) -> Result<()> {
        Store::init(&self.world, &InitOptions { options: OPTIONS }).map(drop)
    }

    /// Opens the store for writing.
    pub fn open(&self) -> Result<Store> {
        self.open_for(OpenMode::Write)
    }

    /// Opens the store.
    pub fn open_for(&self, mode: OpenMode) -> Result<Store> {
        // Without memory for pipelines every stream runs on the thread that called: a run is a function of its seed.
        let options = OpenOptions {
            tuning: TUNING,
            checkpoints: self.checkpoints,
            ingest_memory: 0,
            ..OpenOptions::new(mode, "campaign")
        };
        Store::open(self.world.clone(), &options)
    }
}
