//! `bench small`: durable puts of a few KiB, by one writer and by many.

use std::{thread, time::Duration};

use holdfast::{Error, Store};
use holdfast_benches::{Noise, Stopwatch, figure, latency::Latencies, yardstick::BareLog};

use super::{
    Row, head,
    place::{Place, plain, put},
    print,
};
use crate::{exit_code::Outcome, progress::Progress, session::Session};

/// Sizes of a put in bytes, and how many write at once.
const WORK: [(u64, u64); 5] = [(4 << 10, 1), (4 << 10, 8), (4 << 10, 64), (16 << 10, 1), (16 << 10, 16)];
const AGAINST: &str = "a bare log";

/// What to measure.
pub(crate) struct Plan {
    pub(crate) seconds: u32,
    pub(crate) rounds: u32,
    pub(crate) rows: Vec<String>,
}

/// Every row, in the order in which they are printed.
pub(crate) fn rows() -> Vec<String> {
    WORK.iter().flat_map(|(size, writers)| names(*size, *writers)).collect()
}

fn names(size: u64, writers: u64) -> [String; 3] {
    let name = format!("put_{}k_{writers}", size >> 10);
    [name.clone(), format!("{name}_p50"), format!("{name}_p99")]
}

pub(crate) fn run(plan: &Plan, place: &Place, session: &Session) -> Outcome {
    head(plan.rounds, session)?;
    let work: Vec<_> = WORK
        .into_iter()
        .filter(|(size, writers)| names(*size, *writers).iter().any(|name| plan.rows.contains(name)))
        .collect();
    for (size, writers) in work {
        print(&measure(size, writers, plan, place)?, &plan.rows, session)?;
    }
    Ok(())
}

fn measure(size: u64, writers: u64, plan: &Plan, place: &Place) -> Outcome<[Row; 3]> {
    let bare = |name, direct| BareLog::create(&place.disk, &plain(name), direct).map_err(place.failed("make a log"));
    let (buffered, direct) = (bare("buffered", false)?, bare("direct", true)?);
    let store = place.make_store("store")?;
    place.settle()?;
    let (mut best, mut yardstick) = (Run::default(), Run::default());
    let crowd = Crowd { size, writers, time: Duration::from_secs(plan.seconds.into()) };
    let mut progress =
        Progress::steps(&format!("bench small, {} KiB, {writers} writers, round", size >> 10), plan.rounds.into());
    for round in 0..plan.rounds {
        progress.set(round.into());
        for log in [&buffered, &direct] {
            let append = |bytes: &[u8]| log.append(bytes).map_err(place.failed("append to a log"));
            yardstick.take_better(crowd.run(round.into(), &append)?);
        }
        best.take_better(crowd.run(round.into(), &|bytes| put_one(&store, bytes))?);
    }
    drop(progress);
    store.close()?;
    place.remove_store("store")?;
    place.remove_file(&plain("buffered"))?;
    place.remove_file(&plain("direct"))?;
    let [rate, p50, p99] = names(size, writers);
    let latency = |row, percent, best: &mut Run, yardstick: &mut Run| {
        let (value, yardstick) = (best.latencies.percentile(percent), yardstick.latencies.percentile(percent));
        Row::against(row, value, "us", yardstick, AGAINST)
    };
    Ok([
        Row::against(rate, best.rate, "puts/s", yardstick.rate, AGAINST),
        latency(p50, 50, &mut best, &mut yardstick),
        latency(p99, 99, &mut best, &mut yardstick),
    ])
}

fn put_one(store: &Store, bytes: &[u8]) -> Result<(), Error> {
    store.put(&put("small", bytes.len() as u64), &mut &*bytes).map(drop)
}

/// Outcome of one measurement.
#[derive(Default)]
struct Run {
    rate: f64,
    latencies: Latencies,
}

impl Run {
    fn take_better(&mut self, other: Self) {
        if other.rate > self.rate {
            *self = other;
        }
    }
}

/// Writers that put for a time, each its next bytes as soon as the last ones are durable.
struct Crowd {
    size: u64,
    writers: u64,
    time: Duration,
}

impl Crowd {
    fn run(&self, round: u64, put: &(dyn Fn(&[u8]) -> Result<(), Error> + Sync)) -> Result<Run, Error> {
        let watch = Stopwatch::start();
        let mut latencies = Latencies::default();
        thread::scope(|scope| {
            let writer = |number: u64| move || self.write(round << 32 | number, watch, put);
            let writers: Vec<_> = (0..self.writers).map(|number| scope.spawn(writer(number))).collect();
            writers.into_iter().try_for_each(|writer| {
                latencies.merge(writer.join().expect("a put does not panic")?);
                Ok(())
            })
        })?;
        Ok(Run { rate: figure(latencies.count()) / watch.seconds(), latencies })
    }

    fn write(
        &self,
        seed: u64,
        watch: Stopwatch,
        put: &(dyn Fn(&[u8]) -> Result<(), Error> + Sync),
    ) -> Result<Latencies, Error> {
        let noise = Noise::new(seed, u64::MAX);
        let mut bytes = vec![0; usize::try_from(self.size).expect("a few KiB")];
        let mut latencies = Latencies::default();
        let mut at = 0;
        while watch.elapsed() < self.time {
            noise.fill(at, &mut bytes);
            at += self.size;
            let one = Stopwatch::start();
            put(&bytes)?;
            latencies.add(one.elapsed());
        }
        Ok(latencies)
    }
}
