//! Makes a random valid store from a seed, byte for byte the same on every machine.
//!
//! It is written from `FORMAT.md` as the parsers are, and shares only types with them: a mistake in one side shows on the other. It does
//! not know the engine.

pub mod encode;
mod owners;
pub mod records;
mod rng;
mod segments;
pub mod tables;
mod workload;
mod world;

pub use rng::Rng;

use crate::cut::Sizes;
use crate::derive::{Secret, digest, root_chain};
use crate::files::{manifest_names, reserve_name, segment_name};
use crate::keyspace::ArtifactKey;
use crate::limits;
use crate::store::Catalog;
use crate::superblock::{LogEnd, Position, Superblock};
use segments::index;
use std::collections::BTreeMap;
use world::World;

/// A store, and what a reader must find in it.
#[derive(Clone, Debug)]
pub struct Generated {
    /// Its files.
    pub files: BTreeMap<String, Vec<u8>>,
    /// The state that its commits give.
    pub catalog: Catalog,
    /// The bytes of its artifacts.
    pub contents: BTreeMap<ArtifactKey, Vec<u8>>,
    /// Whether it was closed.
    pub clean: bool,
    /// Whether the log ends torn.
    pub torn: bool,
    /// Parts of files that no reader may rely on: file, start, end.
    pub uncounted: Vec<(String, u64, u64)>,
}

/// How a store ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Clean,
    /// A process that was killed between two writes.
    Killed,
    /// A crash that lost what was not synced.
    Torn,
    /// A crash between a seal and its successor's header.
    Sealed,
}

/// The store of a seed.
pub fn store(seed: u64) -> Generated {
    let mut rng = Rng::new(seed);
    let secret = Secret(rng.array());
    let single_max = u32::try_from(64 + rng.below(2_000)).expect("it is small");
    let sizes = Sizes { min: 64 << rng.below(3), avg: 1_024, max: 4_096, single_max };
    let zstd = rng.chance(3, 4);
    let mut world = World::new(rng, &secret, sizes, zstd);
    world.add_tenant("default");
    world.write_manifest();
    let operations = 3 + world.rng.below(40);
    for _ in 0..operations {
        step(&mut world);
    }
    world.commit();
    let ending = match world.rng.below(8) {
        0..=3 => Ending::Clean,
        4 => Ending::Killed,
        5 => Ending::Sealed,
        _ => Ending::Torn,
    };
    Closing { world, secret, sizes, ending }.close()
}

fn step(world: &mut World) {
    match world.rng.below(30) {
        0 => world.mark(),
        6 => world.padding(),
        1 if world.tenants.len() < 3 => {
            let name = format!("tenant {}", world.tenants.len());
            world.add_tenant(&name);
            world.write_manifest();
        }
        2 => world.write_manifest(),
        3 => {
            world.commit();
            world.roll(0);
        }
        4 if world.crash() => world.recover(),
        5 if world.prepared.len() < 2 => {
            let id = world.new_id();
            world.prepared.push(id);
        }
        _ => world.operation(),
    }
    if world.rng.chance(1, 2) {
        world.commit();
    }
}

struct Closing {
    world: World,
    secret: Secret,
    sizes: Sizes,
    ending: Ending,
}

impl Closing {
    fn close(mut self) -> Generated {
        let world = &mut self.world;
        let torn = match self.ending {
            Ending::Torn => {
                world.crash();
                let rest = world.log.open.bytes.get(index(world.log.open.at)..).unwrap_or_default();
                rest.iter().any(|byte| *byte != 0)
            }
            Ending::Clean if world.rng.chance(1, 2) => {
                world.mark();
                false
            }
            _ => false,
        };
        let last = world.log.point();
        let (open, len) = (world.log.open.header, world.log.open.bytes.len() as u64);
        if self.ending == Ending::Sealed {
            let id = world.take_prepared();
            let (name, bytes) = world.log.roll(&mut world.rng, id, 16_384);
            world.files.insert(name, bytes);
            // The header of the successor did not reach the disk, or only one sector of it.
            let mut bytes = vec![0; 16_384];
            if world.rng.chance(1, 2) {
                let sector = world.log.open.bytes.get(..512).unwrap_or_default();
                segments::overwrite(&mut bytes, 0, sector);
            }
            world.files.insert(segment_name(id), bytes);
            world.prepared.insert(0, id);
        } else {
            world.files.insert(segment_name(open.id), world.log.open.bytes.clone());
            if torn {
                world.uncounted.push((segment_name(open.id), last.at, len));
            }
        }
        let log_end = LogEnd { offset: last.at, lsn: last.next_lsn, chain: last.chain };
        self.superblock(log_end, (open.id, open.epoch));
        let clean = self.ending == Ending::Clean;
        let World { files, catalog, contents, uncounted, .. } = self.world;
        Generated { files, catalog, contents, clean, torn, uncounted }
    }

    /// Writes the manifest, the prepared files, the reserves and the superblock.
    fn superblock(&mut self, log_end: LogEnd, newest: (u64, crate::Id16)) {
        let clean = self.ending == Ending::Clean;
        let world = &mut self.world;
        let (log_head, log_head_epoch) = if clean { newest } else { lagging_head(world, newest) };
        world.prepared.truncate(2);
        for id in &world.prepared {
            world.files.entry(segment_name(*id)).or_insert_with(|| vec![0; 16_384]);
        }
        let mut reserve = Vec::new();
        for _ in 0..world.rng.below(3) {
            let id = world.new_id();
            reserve.push(id);
            world.files.insert(reserve_name(id), vec![0; 4_096]);
        }
        let manifest = world.manifest.clone().expect("one was written with the first tenant");
        let bytes = encode::manifest(&manifest);
        for name in manifest_names(manifest.generation) {
            world.files.insert(name, bytes.clone());
        }
        world.files.insert("LOCK".to_owned(), b"4711 holdfast".to_vec());
        let first = world.log.finished.first().map_or(newest.1, |first| first.epoch);
        let replay = Position {
            segment: 1,
            epoch: first,
            offset: limits::FRAMES_START,
            lsn: (1 << 48) | 1,
            chain: root_chain(&world.uuid),
        };
        let state = Superblock {
            sequence: 2 + world.rng.below(100),
            uuid: world.uuid,
            created_at: 1_700_000_000_000,
            chunk_min: self.sizes.min,
            chunk_avg: self.sizes.avg,
            chunk_max: self.sizes.max,
            chunk_single_max: self.sizes.single_max,
            zstd: world.zstd,
            compression_level: u8::from(world.zstd),
            log_first: 16_384,
            log_largest: 65_536,
            bulk: 65_536,
            secret: self.secret.clone(),
            incarnation: 1,
            manifest_generation: manifest.generation,
            manifest_length: bytes.len() as u64,
            manifest_digest: digest(&bytes),
            replay,
            log_head,
            log_head_epoch,
            log_end: clean.then_some(log_end),
            ceiling_files: world.next_id + world.rng.below(64),
            ceiling_generations: manifest.generation + 1 + world.rng.below(8),
            ceiling_tenants: 4,
            prepared: world.prepared.clone(),
            reserve,
            ledger_places: if world.rng.chance(1, 4) { vec![b"/second/place".to_vec()] } else { Vec::new() },
        };
        let copies = self.copies(&state);
        self.world.files.insert("superblock".to_owned(), copies);
    }

    /// Four copies; a killed process may have left two of the state before, and one that did not come to its end.
    fn copies(&mut self, state: &Superblock) -> Vec<u8> {
        let rng = &mut self.world.rng;
        let older = rng.chance(1, 4);
        let newer = self.ending != Ending::Clean && !older && rng.chance(1, 4);
        let mut file = Vec::new();
        for copy in 0..4 {
            let mut state = state.clone();
            if older && copy >= 2 {
                state.sequence -= 1;
                state.log_end = None;
            }
            if newer && copy == 0 {
                state.sequence += 1;
            }
            file.extend(encode::superblock(&state, copy));
        }
        file
    }
}

/// A `log_head` that was not written again since one or two segments; these are still named as prepared.
fn lagging_head(world: &mut World, newest: (u64, crate::Id16)) -> (u64, crate::Id16) {
    let mut order: Vec<(u64, crate::Id16)> = world.log.finished.iter().map(|log| (log.id, log.epoch)).collect();
    if order.last() != Some(&newest) {
        order.push(newest);
    }
    let lag = world.rng.below(3).min(order.len() as u64 - 1);
    for _ in 0..lag {
        let (id, _) = order.pop().expect("the lag is less than there are segments");
        world.prepared.insert(0, id);
    }
    // The superblock has two places. What it does not name is reached through seals alone, so a torn segment needs one of them.
    *order.last().expect("the lag is less than there are segments")
}
