//! The campaign of damage at rest: a closed store, every bit of it inverted, every file cut, lost and swapped, every sector zeroed,
//! exchanged and stale, and after each what must hold of a damaged store.

pub mod damage;
mod hit;
pub mod judge;
pub mod map;
pub mod plan;
pub mod reference;

use std::{
    sync::{
        Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use crate::{
    campaign::{COMMAND, Outcome, Stopwatch, add_to_totals, guarded, keep_panics_quiet, parse_budget},
    random::Random,
};
use damage::Damage;
use judge::{Judge, Seen};
use map::Map;
#[cfg(test)]
use map::What;
use plan::{Extent, plan};
use reference::Reference;

/// Damages a store at rest in every way, and checks what it says and gives.
#[derive(clap::Args, Clone, Debug)]
pub struct Arguments {
    /// Invert one in so many bits of payload and zeros. Those of structures are all inverted, and the store is read; one of each byte
    /// stands for its neighbours when it is verified, parsed and written to
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..))]
    pub fraction: u64,
    /// Invert every bit, cut at every length, and look at each with everything
    #[arg(long)]
    pub full: bool,
    /// Seed of the store, and of which bits are inverted.
    #[arg(long, default_value_t = 0)]
    pub from: u64,
    /// Do one in so many of the damages.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub every: u64,
    /// Stop after so much time: 90s, 90m. The damages are then taken in an order that the seed gives, so that each kind is among them.
    #[arg(long, value_parser = parse_budget)]
    pub budget: Option<Duration>,
    /// Threads.
    #[arg(long, default_value_t = 2)]
    pub threads: usize,
    /// Stop at so many violations.
    #[arg(long, default_value_t = 10)]
    pub violations: usize,
    /// Do one damage again: `SEED/DAMAGE`, as a failure prints it.
    #[arg(long)]
    pub replay: Option<String>,
    /// Add a line to docs/campaigns.txt.
    #[arg(long)]
    pub totals: bool,
}

impl Default for Arguments {
    fn default() -> Self {
        Self {
            fraction: 16,
            full: false,
            from: 0,
            every: 1,
            budget: None,
            threads: 2,
            violations: 10,
            replay: None,
            totals: false,
        }
    }
}

/// Runs the campaign.
pub fn run(arguments: &Arguments) -> Outcome {
    keep_panics_quiet();
    let result = match &arguments.replay {
        Some(text) => replay(text),
        None => campaign(arguments),
    };
    result.unwrap_or_else(|error| {
        println!("at-rest: {error}");
        Outcome::Broke
    })
}

/// A store, another one, and what stands where in the first.
struct Ground {
    reference: Reference,
    other: Reference,
    map: Map,
}

impl Ground {
    fn of(seed: u64) -> Result<Self, String> {
        let reference = Reference::of(seed)?;
        let map = Map::of(&reference.image)?;
        Ok(Self { other: Reference::of(!seed)?, reference, map })
    }

    /// `None`: the damage changes nothing.
    fn judge(&self, damage: &Damage, looks_at_all: bool) -> Option<Result<Seen, String>> {
        let image = damage.apply(&self.reference, &self.other.image)?;
        let judge = Judge { reference: &self.reference, map: &self.map, looks_at_all };
        Some(guarded(|| judge.judge(damage, &image)))
    }
}

fn replay(text: &str) -> Result<Outcome, String> {
    let parsed = text.split_once('/').and_then(|(seed, damage)| Some((seed.parse().ok()?, Damage::parse(damage)?)));
    let (seed, damage) = parsed.ok_or_else(|| format!("not a damage: {text}"))?;
    let ground = Ground::of(seed)?;
    if let Damage::Flip(name, bit) = &damage {
        println!("at-rest: in {:?}", ground.map.at(name, bit / 8));
    }
    match ground.judge(&damage, true) {
        None => println!("at-rest: {damage} changes nothing"),
        Some(Ok(what)) => println!("at-rest: {damage} holds: {what:?}"),
        Some(Err(what)) => {
            println!("at-rest: VIOLATION {seed}/{damage}: {what}");
            return Ok(Outcome::Broke);
        }
    }
    Ok(Outcome::Held)
}

/// What a campaign has seen so far.
#[derive(Default)]
struct Counts {
    flips: AtomicU64,
    others: AtomicU64,
    corrupt: AtomicU64,
    missing: AtomicU64,
    closed: AtomicU64,
    read_only: AtomicU64,
    healed: AtomicU64,
}

impl Counts {
    fn add(&self, damage: &Damage, seen: Seen) {
        let one = |counter: &AtomicU64, by: u64| {
            counter.fetch_add(by, Ordering::Relaxed);
        };
        one(if matches!(damage, Damage::Flip(..)) { &self.flips } else { &self.others }, 1);
        one(&self.corrupt, seen.corrupt);
        one(&self.missing, seen.missing);
        one(&self.closed, u64::from(seen.closed));
        one(&self.read_only, u64::from(seen.read_only));
        one(&self.healed, seen.healed);
    }
}

fn campaign(arguments: &Arguments) -> Result<Outcome, String> {
    let watch = Stopwatch::start();
    let ground = Ground::of(arguments.from)?;
    let extent = if arguments.full { Extent::FULL } else { Extent::part(arguments.fraction) };
    let every = usize::try_from(arguments.every).map_err(|_| "--every is too large")?;
    let mut damages: Vec<Damage> = plan(&ground.reference, &ground.map, extent).into_iter().step_by(every).collect();
    if arguments.budget.is_some() {
        let mut order = Random::new(arguments.from);
        damages.sort_by_cached_key(|_| order.next_u64());
    }
    let (counts, next, found) = (Counts::default(), AtomicUsize::new(0), Mutex::new(Vec::new()));
    let is_enough = || {
        let is_late = arguments.budget.is_some_and(|budget| watch.elapsed() >= budget);
        is_late || found.lock().map_or(true, |found| found.len() >= arguments.violations)
    };
    std::thread::scope(|scope| {
        for _ in 0..arguments.threads.max(1) {
            scope.spawn(|| {
                while let Some(damage) = damages.get(next.fetch_add(1, Ordering::Relaxed)).filter(|_| !is_enough()) {
                    match ground.judge(damage, arguments.full) {
                        None => {}
                        Some(Ok(seen)) => counts.add(damage, seen),
                        Some(Err(what)) => {
                            println!("at-rest: VIOLATION {}/{damage}: {what}", arguments.from);
                            println!("repeat: {COMMAND} at-rest --replay {}/{damage}", arguments.from);
                            let _ = found.lock().map(|mut found| found.push(()));
                        }
                    }
                }
            });
        }
    });
    let violations = found.into_inner().map_or(0, |found| found.len());
    let bytes: u64 = ground.reference.image.names().filter_map(|name| ground.reference.image.len(name)).sum();
    let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let line = format!(
        "at-rest: store {} of {} KiB, {} planned, {} flips ({}), {} other damages: {} reads CORRUPT, {} records lost and named, {} healed, \
         {} opens read-only, {} refused, {violations} violations (wrong bytes, panics, silence), {} s",
        arguments.from,
        bytes >> 10,
        damages.len(),
        of(&counts.flips),
        if extent.fraction == 1 { "every bit".to_owned() } else { format!("payload and zeros 1/{}", extent.fraction) },
        of(&counts.others),
        of(&counts.corrupt),
        of(&counts.missing),
        of(&counts.healed),
        of(&counts.read_only),
        of(&counts.closed),
        watch.elapsed().as_secs()
    );
    println!("{line}");
    if arguments.totals {
        add_to_totals(&line);
    }
    Ok(if violations == 0 { Outcome::Held } else { Outcome::Broke })
}

#[cfg(test)]
mod tests {
    use holdfast_format_spec::frame::Kind;

    use super::*;

    #[test]
    fn the_reference_store_has_every_structure_and_every_byte_of_it_is_known() {
        let ground = Ground::of(3).expect("a store");
        let mut seen = Vec::new();
        for (name, regions) in &ground.map.regions {
            let mut at = 0;
            for region in regions {
                assert_eq!(region.range.start, at, "{name}");
                at = region.range.end;
                seen.push(region.what);
            }
            assert_eq!(Some(at), ground.reference.image.len(name), "{name}");
        }
        let kinds = [Kind::Chunk, Kind::Page, Kind::Commit, Kind::Mark, Kind::Seal, Kind::Footer, Kind::Padding];
        for kind in kinds {
            assert!(seen.contains(&What::Frame(kind)), "{kind:?}");
        }
        for what in [What::Superblock, What::Header, What::Manifest, What::Table, What::Zeros, What::Spare] {
            assert!(seen.contains(&what), "{what:?}");
        }
    }

    #[test]
    fn a_lie_about_what_was_put_is_noticed() {
        let mut ground = Ground::of(3).expect("a store");
        let damage = Damage::Lost(holdfast::disk::Name::new("reserve-1025").expect("flat"));
        assert!(ground.judge(&damage, true).expect("changes").is_ok());
        ground.reference.stored[4].bytes = vec![0; ground.reference.stored[4].bytes.len()].into();
        assert!(ground.judge(&damage, true).expect("changes").is_err_and(|what| what.contains("WRONG BYTES")));
    }
}
