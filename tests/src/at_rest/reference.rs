//! The store that is damaged: small, so that every bit of it can be, and with every structure and record type that a put can make.

use std::sync::Arc;

use holdfast::{
    AccountScope, CheckpointTuning, Destination, Put, Store,
    chunker::ChunkParams,
    disk::sim::{Image, SimDisk},
    format::{artifact::Origin, superblock::Options},
    ids::Time,
    store::InitOptions,
};

use crate::{
    harness::{
        Machine, Stored,
        deeds::Deed,
        machine::{OPTIONS, START},
        source::Source,
        workload::ACCOUNTS,
    },
    random::Random,
};

/// Log segments that stay small, so that several fill, and chunks of which a long stream has a handful.
const SMALL: Options = Options {
    chunks: ChunkParams { min: 1024, avg: 4096, max: 8192, single_max: 1024 },
    log_segment_max: 2 * OPTIONS.log_segment_first,
    ..OPTIONS
};
/// Checkpoints are made when a step says so, of tables that are several.
const CHECKPOINTS: CheckpointTuning =
    CheckpointTuning { memtable_bytes: u64::MAX, log_bytes: u64::MAX, table_pages: 12 };
/// Milliseconds between the start and what the clock shows when the store is opened again.
const LATER: u64 = 3_600_000;

/// A store at rest.
pub struct Reference {
    /// Its seed.
    pub seed: u64,
    /// Its files.
    pub image: Image,
    /// Its files at an earlier close.
    pub earlier: Image,
    /// What it holds.
    pub stored: Vec<Stored>,
    /// So many of them it held at the earlier close.
    pub stored_earlier: usize,
}

impl Reference {
    /// The store of a seed.
    pub fn of(seed: u64) -> Result<Self, String> {
        let machine = Machine::new(SimDisk::new(seed), START, Random::of(seed, &[11]).next_u64());
        let machine = Machine { checkpoints: CHECKPOINTS, ..machine };
        Store::init(&machine.world, &InitOptions { options: SMALL }).map_err(|e| format!("init: {e}"))?;
        let mut maker = Maker { random: Random::of(seed, &[12]), machine, stored: Vec::new() };
        maker.session(&[
            Step::Small(0),
            Step::Small(1),
            Step::Small(300),
            Step::Again(2),
            Step::Small(1500),
            Step::Expires(200, LATER / 2),
            Step::Expires(400, LATER * 100),
            Step::Long(12 << 10),
            Step::Fails(24 << 10),
            Step::Op(700),
            Step::Checkpoint,
        ])?;
        maker.session(&[Step::Small(2500), Step::Again(7), Step::Small(60)])?;
        let (earlier, stored_earlier) = (maker.machine.sim.image(), maker.stored.len());
        maker.session(&[
            Step::Small(2000),
            Step::Checkpoint,
            Step::Text(14 << 10),
            Step::Long(7000),
            Step::Again(4),
            Step::Small(500),
        ])?;
        let Maker { machine, stored, .. } = maker;
        Ok(Self { seed, image: machine.sim.image(), earlier, stored, stored_earlier })
    }

    /// A machine with a disk like this one, that is started later.
    pub fn machine(image: &Image) -> Machine {
        Machine::new(SimDisk::from_image(image, 1), Time(START.0 + LATER), 17).without_checkpoints()
    }

    /// Whether an artifact has expired when that machine is started.
    pub fn has_expired(stored: &Stored) -> bool {
        stored.expires_at.is_some_and(|end| end.0 <= START.0 + LATER)
    }
}

/// What happens in a session.
#[derive(Clone, Copy)]
enum Step {
    Small(usize),
    Long(usize),
    Text(usize),
    /// The bytes of an earlier artifact, for another account.
    Again(usize),
    /// It ends after so many milliseconds.
    Expires(usize, u64),
    /// A long stream that fails behind its first progress commit: what it leaves has no references.
    Fails(usize),
    /// With the caller's name for the operation.
    Op(usize),
    /// All that the log has is written as tables.
    Checkpoint,
}

struct Maker {
    machine: Machine,
    random: Random,
    stored: Vec<Stored>,
}

impl Maker {
    /// Opens the store, does the steps, and closes it.
    fn session(&mut self, steps: &[Step]) -> Result<(), String> {
        let store = self.machine.open().map_err(|e| format!("open: {e}"))?;
        for step in steps {
            self.step(&store, *step)?;
        }
        store.close().map_err(|e| format!("close: {e}"))
    }

    fn random_bytes(&mut self, len: usize) -> Arc<[u8]> {
        let mut bytes = vec![0; len];
        self.random.fill(&mut bytes);
        bytes.into()
    }

    /// Numbers in words: it compresses, and no two places of it are alike.
    fn text(&mut self, len: usize) -> Arc<[u8]> {
        let mut text = Vec::new();
        while text.len() < len {
            text.extend_from_slice(format!("the number {} follows; ", self.random.below(1 << 20)).as_bytes());
        }
        text.truncate(len);
        text.into()
    }

    fn step(&mut self, store: &Store, step: Step) -> Result<(), String> {
        let (mut expires_at, mut op_id, mut fails_at) = (None, None, None);
        let bytes: Arc<[u8]> = match step {
            Step::Small(len) | Step::Long(len) => self.random_bytes(len),
            Step::Text(len) => self.text(len),
            Step::Again(place) => Arc::clone(&self.stored[place].bytes),
            Step::Expires(len, after) => {
                expires_at = Some(Time(START.0 + after));
                self.random_bytes(len)
            }
            Step::Fails(len) => {
                fails_at = Some(len - 1);
                self.random_bytes(len)
            }
            Step::Checkpoint => return store.checkpoint().map(drop).map_err(|e| format!("checkpoint: {e}")),
            Step::Op(len) => {
                op_id = Some("op-1");
                self.random_bytes(len)
            }
        };
        let number = self.stored.len();
        let account = number % ACCOUNTS.len();
        let name = format!("file {number}");
        let put = Put {
            scope: Destination::Account(AccountScope { tenant: "default", account: ACCOUNTS[account] }),
            name: &name,
            origin: Origin::ToolOutput,
            media_type: None,
            op_id,
            order: None,
            expires_at,
            size_hint: None,
            logical_size: None,
            supersedes: None,
        };
        let result = store.put(&put, &mut Source::new(&bytes, 4096).failing_at(fails_at));
        match (result, fails_at) {
            (Err(_), Some(_)) => Ok(()),
            (Ok(reply), None) => {
                let (id, sha256) = (reply.id, reply.sha256);
                let op_id = op_id.map(ToOwned::to_owned);
                self.stored.push(Stored { account, id, name, bytes, sha256, expires_at, op_id, deed: Deed::default() });
                Ok(())
            }
            (Ok(_), Some(_)) => Err("a put whose source failed went through".to_owned()),
            (Err(error), None) => Err(format!("put {name}: {error}")),
        }
    }
}
