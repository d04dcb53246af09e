//! Pressure by hand: a crowd of streams, a stream that hardly comes, a disk that hardly takes. What must hold is that the others go
//! on; memory is printed.
//!
//! `cargo run --release -p holdfast-benches --bin pressure [-- crowd|slow-reader|slow-disk]...`

#![forbid(unsafe_code)]

mod slow_disk;
mod slow_reader;

use std::{error::Error, io, process::ExitCode, sync::Arc, thread};

use holdfast::{
    AccountScope, Get, InitOptions, OpenMode, OpenOptions, Put, Store, World, clock::OsClock, disk::Disk,
    disk::os::OsDisk, entropy::OsEntropy, format::artifact::Origin,
};
use holdfast_benches::{MIB, Noise, Stopwatch, figure, process};

use slow_disk::SlowDisk;
use slow_reader::{Others, SlowReader};

type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

const SCOPE: AccountScope<'static> = AccountScope { tenant: "default", account: "bench" };
const MEMORY: u64 = 256 << 20;
const CROWD: u64 = 64;
const STREAM: u64 = 64 << 20;
const SLOW_DISK_RATE: u64 = 10_000_000;
const SLOW_DISK_STREAMS: u64 = 4;
const SLOW_DISK_STREAM: u64 = 24 << 20;

fn main() -> ExitCode {
    let all = ["crowd", "slow-reader", "slow-disk"].map(str::to_owned);
    let asked: Vec<_> = std::env::args().skip(1).collect();
    for name in if asked.is_empty() { all.as_slice() } else { asked.as_slice() } {
        let outcome = match name.as_str() {
            "crowd" => within(name, crowd),
            "slow-reader" => within(name, slow_reader),
            "slow-disk" => within(name, slow_disk),
            other => Err(format!("there is no {other:?}; there are {}", all.join(", ")).into()),
        };
        if let Err(failure) = outcome {
            eprintln!("pressure: {name}: {failure}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Runs in a new directory here, which is removed.
fn within(name: &str, scenario: fn(Arc<OsDisk>) -> Outcome) -> Outcome {
    let path = format!("holdfast-pressure-{name}-{}", std::process::id());
    let disk = Arc::new(OsDisk::create(&path)?);
    let outcome = scenario(disk);
    #[expect(clippy::disallowed_methods, reason = "a directory of this run, which no store is open in any more")]
    std::fs::remove_dir_all(&path)?;
    outcome
}

fn store(disk: Arc<dyn Disk>) -> Result<Store, holdfast::Error> {
    let world = World { disk, clock: Arc::new(OsClock), entropy: Arc::new(OsEntropy) };
    Store::init(&world, &InitOptions::default())?;
    let options = OpenOptions { ingest_memory: MEMORY, ..OpenOptions::new(OpenMode::Write, "pressure") };
    Store::open(world, &options)
}

const fn put(size: u64) -> Put<'static> {
    Put {
        scope: holdfast::Destination::Account(SCOPE),
        name: "stream",
        origin: Origin::Upload,
        media_type: None,
        op_id: None,
        order: None,
        expires_at: None,
        size_hint: Some(size),
        logical_size: None,
        supersedes: None,
    }
}

fn print_memory(when: &str) -> Outcome {
    let (peak, now) = (figure(process::memory_peak()?) / MIB, figure(process::memory_anonymous()?) / MIB);
    println!("  memory {when}: at most {peak:.0} MiB so far, {now:.0} MiB anonymous now");
    Ok(())
}

/// 64 streams of 64 MiB at once in 256 MiB of pipelines.
fn crowd(disk: Arc<OsDisk>) -> Outcome {
    println!("crowd: {CROWD} streams of {} MiB at once, {} MiB for pipelines", STREAM >> 20, MEMORY >> 20);
    let store = store(disk)?;
    print_memory("before")?;
    let watch = Stopwatch::start();
    thread::scope(|scope| -> Outcome {
        let one = |seed| store.put(&put(STREAM), &mut Noise::new(seed, STREAM)).map(drop);
        let streams: Vec<_> = (0..CROWD).map(|seed| scope.spawn(move || one(seed))).collect();
        streams.into_iter().try_for_each(|stream| Ok(stream.join().map_err(|_| "a put panicked")??))
    })?;
    println!("  {:.0} MiB/s durable", figure(CROWD * STREAM) / MIB / watch.seconds());
    print_memory("after")?;
    Ok(store.close()?)
}

/// One stream that gives its next piece only when others have finished one more put: were they held up, nothing would go on.
fn slow_reader(disk: Arc<OsDisk>) -> Outcome {
    println!("slow-reader: a stream of 256 pieces of 64 KiB, each of which comes when another put is done");
    let store = store(disk)?;
    let others = Others::default();
    thread::scope(|scope| -> Outcome {
        let slow = scope.spawn(|| {
            let outcome = store.put(&put(SlowReader::LEN), &mut SlowReader::new(&others));
            others.stop();
            outcome
        });
        let mut seed = 0;
        while !others.is_stopped() {
            seed += 1;
            let len = if seed % 8 == 0 { STREAM / 8 } else { 4096 };
            store.put(&put(len), &mut Noise::new(seed, len))?;
            others.one_done();
        }
        let reply = slow.join().map_err(|_| "the put panicked")??;
        println!("  {seed} puts of others were done before its {} MiB were", reply.size >> 20);
        Ok(())
    })?;
    print_memory("after")?;
    Ok(store.close()?)
}

/// A disk that takes 10 MB a second.
fn slow_disk(disk: Arc<OsDisk>) -> Outcome {
    println!("slow-disk: {SLOW_DISK_STREAMS} streams of {} MiB on a disk of 10 MB/s", SLOW_DISK_STREAM >> 20);
    let slow = SlowDisk::new(disk, SLOW_DISK_RATE);
    let store = store(Arc::new(slow.clone()))?;
    let first = store.put(&put(1 << 20), &mut Noise::new(u64::MAX, 1 << 20))?;
    let others = Others::default();
    let (mut puts, mut gets, mut memory) = (0_u64, 0_u64, 0);
    thread::scope(|scope| -> Outcome {
        let one = |seed| store.put(&put(SLOW_DISK_STREAM), &mut Noise::new(seed, SLOW_DISK_STREAM)).map(drop);
        let streams: Vec<_> = (0..SLOW_DISK_STREAMS)
            .map(|seed| {
                let others = &others;
                scope.spawn(move || {
                    let outcome = one(seed);
                    if others.one_done() == SLOW_DISK_STREAMS {
                        others.stop();
                    }
                    outcome
                })
            })
            .collect();
        while !others.is_stopped() {
            store.put(&put(4096), &mut Noise::new(1000 + puts, 4096))?;
            puts += 1;
            store.get(SCOPE, first.id, &Get::WHOLE, &mut io::sink())?;
            gets += 1;
            memory = memory.max(process::memory_anonymous()?);
        }
        streams.into_iter().try_for_each(|stream| Ok(stream.join().map_err(|_| "a put panicked")??))
    })?;
    println!("  {puts} puts of 4 KiB and {gets} gets of 1 MiB were done meanwhile");
    println!("  {:.1} MB/s taken by the disk; at most {:.0} MiB anonymous", slow.rate() / 1e6, figure(memory) / MIB);
    if puts < SLOW_DISK_STREAMS {
        return Err("the small puts waited for the long ones".into());
    }
    print_memory("after")?;
    Ok(store.close()?)
}
