//! A store on a simulated disk, with what it should hold beside it.

use std::{
    collections::BTreeMap,
    io::{self, Read},
    ops::Range,
    sync::Arc,
};

use holdfast::{
    AccountScope, Error, Get, InitOptions, OpenMode, OpenOptions, Put, PutReply, Result, Store, Tuning, World,
    chunker::ChunkParams,
    clock::ManualClock,
    disk::{
        Disk,
        fault::FaultDisk,
        sim::{Image, SimDisk},
    },
    entropy::SeededEntropy,
    format::{artifact::Origin, superblock::Options},
    ids::{ArtifactId, Sha256, Time},
};
use holdfast_format_spec::store::{Store as SpecStore, StoreImage};
use sha2::Digest as _;

pub(crate) const SCOPE: AccountScope<'static> = AccountScope { tenant: "default", account: "someone" };

/// Segments and chunks so small that a few kilobytes roll them.
pub(crate) const OPTIONS: Options = Options {
    chunks: ChunkParams { min: 64, avg: 1024, max: 4096, single_max: 512 },
    log_segment_first: 16 << 10,
    log_segment_max: 64 << 10,
    bulk_segment: 64 << 10,
    ..Options::DEFAULT
};

/// Lanes that part at a few kilobytes.
pub(crate) const LOW: Tuning = Tuning { small_stream_max: 4 << 10, progress_bytes: 16 << 10 };

pub(crate) const NOW: Time = Time(1_700_000_000_000);

/// A put with nothing that need not be.
pub(crate) const fn put(name: &str) -> Put<'_> {
    Put {
        scope: holdfast::Destination::Account(SCOPE),
        name,
        origin: Origin::Upload,
        media_type: None,
        op_id: None,
        order: None,
        expires_at: None,
        size_hint: None,
        logical_size: None,
        supersedes: None,
    }
}

/// The store, its disk, and what was put.
pub(crate) struct Bench {
    pub(crate) sim: SimDisk,
    pub(crate) disk: FaultDisk,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) tuning: Tuning,
    store: Option<Store>,
    opens: u64,
    pub(crate) contents: BTreeMap<ArtifactId, Vec<u8>>,
}

impl Bench {
    pub(crate) fn new(options: Options, tuning: Tuning) -> Self {
        let sim = SimDisk::new(1);
        sim.record(false);
        let disk = FaultDisk::new(Arc::new(sim.clone()));
        let clock = Arc::new(ManualClock::new(NOW));
        let mut bench = Self { sim, disk, clock, tuning, store: None, opens: 0, contents: BTreeMap::new() };
        Store::init(&bench.world(), &InitOptions { options }).expect("a store is made");
        bench.open();
        bench
    }

    /// Each open has randomness of its own.
    fn world(&mut self) -> World {
        self.opens += 1;
        let disk: Arc<dyn Disk> = Arc::new(self.disk.clone());
        World { disk, clock: self.clock.clone(), entropy: Arc::new(SeededEntropy::new(self.opens)) }
    }

    pub(crate) fn open(&mut self) {
        let options = OpenOptions::new(OpenMode::Write, "test");
        // On several threads a stream of a few kilobytes is read as a whole before any of it is committed.
        let ingest_memory = if self.tuning == LOW { 0 } else { options.ingest_memory };
        let options = OpenOptions { tuning: self.tuning, ingest_memory, ..options };
        self.store = Some(Store::open(self.world(), &options).expect("opens"));
    }

    /// Closes or drops the store, and opens it again.
    pub(crate) fn reopen(&mut self, clean: bool) {
        let store = self.store.take().expect("open");
        if clean {
            store.close().expect("closes");
        } else {
            drop(store);
        }
        self.open();
    }

    /// Lets the disk be changed while nobody has it.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut Image)) {
        self.store.take().expect("open").close().expect("closes");
        let mut image = self.sim.image();
        change(&mut image);
        self.sim = SimDisk::from_image(&image, 1);
        self.sim.record(false);
        self.disk = FaultDisk::new(Arc::new(self.sim.clone()));
        self.open();
    }

    pub(crate) fn store(&self) -> &Store {
        self.store.as_ref().expect("open")
    }

    /// Puts and remembers.
    pub(crate) fn put(&mut self, put: &Put<'_>, bytes: &[u8]) -> PutReply {
        let reply = self.store().put(put, &mut &*bytes).expect("puts");
        assert_eq!((reply.size, reply.sha256), (bytes.len() as u64, sha256(bytes)));
        self.contents.insert(reply.id, bytes.to_vec());
        reply
    }

    /// A put whose source fails behind these bytes.
    pub(crate) fn put_failing(&self, bytes: &[u8], error: Error) -> Error {
        self.store().put(&put("failing"), &mut Failing { rest: bytes, error: Some(error) }).expect_err("fails")
    }

    pub(crate) fn get(&self, id: ArtifactId, range: Option<Range<u64>>) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.store().get(SCOPE, id, &Get { range, expect_sha256: None }, &mut bytes).map(|_| bytes)
    }

    /// The files as the second parser takes them.
    pub(crate) fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let image = self.sim.image();
        image.names().map(|name| (name.to_string(), image.read(name).expect("listed"))).collect()
    }

    /// Every artifact gives its bytes, and the second parser, which counts all references again, finds nothing wrong.
    pub(crate) fn check(&self) {
        for (id, bytes) in &self.contents {
            assert!(self.get(*id, None).expect("reads") == *bytes, "other bytes than were put");
        }
        with_image(&self.files(), |image| {
            let problems: Vec<_> = image.problems.iter().cloned().chain(image.check()).map(|p| p.to_string()).collect();
            assert!(problems.is_empty(), "{problems:#?}");
            assert_eq!(image.catalog.artifacts.len(), self.contents.len());
            for (key, artifact) in &image.catalog.artifacts {
                let bytes = image.blob(artifact).expect("every blob is whole");
                assert!(self.contents[&ArtifactId(key.artifact)] == bytes, "other bytes than were put");
            }
        });
    }

    /// Chunks and pages that have references, and uploads.
    pub(crate) fn held(&self) -> (usize, usize) {
        with_image(&self.files(), |image| {
            let held = image.catalog.chunks.values().filter(|chunk| chunk.references > 0).count();
            (held, image.catalog.uploads.len())
        })
    }
}

/// Reads the files with the second parser.
pub(crate) fn with_image<T>(files: &BTreeMap<String, Vec<u8>>, look: impl FnOnce(&StoreImage<'_>) -> T) -> T {
    look(&SpecStore::read(files).expect("the second parser reads the store"))
}

/// Hands out its bytes, and then an error.
struct Failing<'a> {
    rest: &'a [u8],
    error: Option<Error>,
}

impl Read for Failing<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.rest.is_empty() {
            return Err(io::Error::other(self.error.take().expect("asked once more after an error")));
        }
        self.rest.read(bytes)
    }
}

pub(crate) fn sha256(bytes: &[u8]) -> Sha256 {
    Sha256(sha2::Sha256::digest(bytes).into())
}

/// Bytes that nothing can compress, of a seed.
pub(crate) fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut out = vec![0; len];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut out);
    out
}

/// Numbers of a seed.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    pub(crate) fn index(&mut self, bound: usize) -> usize {
        usize::try_from(self.below(bound as u64)).expect("below a usize")
    }
}

/// Runs a check for many seeds; a failure prints the command that repeats it.
pub(crate) fn every_seed(test: &str, count: u64, check: impl Fn(u64)) {
    let chosen = std::env::var("HOLDFAST_SEED").ok().and_then(|seed| seed.parse().ok());
    for seed in chosen.map_or(0..count, |seed: u64| seed..seed + 1) {
        let command = format!("HOLDFAST_SEED={seed} cargo test -p holdfast-tests --test round_trip {test}");
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(seed)));
        assert!(outcome.is_ok(), "repeat with: {command}");
    }
}
