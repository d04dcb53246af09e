//! The crash campaign: every state that a crash could leave, opened and asked what it holds.

pub mod explore;

use std::{
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use crate::{
    campaign::{COMMAND, Outcome, Stopwatch, add_to_totals, keep_panics_quiet, parse_budget},
    coverage::Coverage,
};
use explore::{Counts, Explorer, Path, Profile, Violation};

/// Opens the store from every state that a crash could leave, and checks what it holds.
#[derive(clap::Args, Clone, Debug)]
pub struct Arguments {
    /// Stop after so many distinct images.
    #[arg(long, default_value_t = 200_000)]
    pub images: u64,
    /// Stop after so much time, however many images there were: 90s, 90m, 2h.
    #[arg(long, value_parser = parse_budget)]
    pub budget: Option<Duration>,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    pub from: u64,
    /// Threads, each with a seed of its own.
    #[arg(long, default_value_t = 2)]
    pub threads: usize,
    /// What the filesystem may do.
    #[arg(long, value_enum, default_value_t = Profile::Posix)]
    pub profile: Profile,
    /// Images of one mode after one operation at most.
    #[arg(long)]
    pub per_mode: Option<u64>,
    /// Each situation must be met so often.
    #[arg(long, default_value_t = 100)]
    pub coverage: u64,
    /// Look at one crash again: `SEED:op:mode:variant`, as a failure prints it.
    #[arg(long)]
    pub replay: Option<String>,
    /// Add a line to docs/campaigns.txt.
    #[arg(long)]
    pub totals: bool,
}

impl Default for Arguments {
    fn default() -> Self {
        Self {
            images: 200_000,
            budget: None,
            from: 0,
            threads: 2,
            profile: Profile::Posix,
            per_mode: None,
            coverage: 100,
            replay: None,
            totals: false,
        }
    }
}

/// Runs the campaign.
pub fn run(arguments: &Arguments) -> Outcome {
    keep_panics_quiet();
    match &arguments.replay {
        Some(text) => replay(arguments, text),
        None => campaign(arguments),
    }
}

fn replay(arguments: &Arguments, text: &str) -> Outcome {
    let Some(path) = Path::parse(text) else {
        println!("not a crash: {text}");
        return Outcome::Broke;
    };
    let (counts, coverage) = (Counts::default(), Coverage::default());
    match explorer(arguments, &counts, &coverage, &|| false).replay(&path) {
        Ok(()) => {
            println!("crash: {path} holds");
            Outcome::Held
        }
        Err(violation) => {
            show(arguments, &violation);
            Outcome::Broke
        }
    }
}

fn campaign(arguments: &Arguments) -> Outcome {
    let watch = Stopwatch::start();
    let (counts, coverage) = (Counts::default(), Coverage::default());
    let end = search(arguments, &counts, &coverage, &|counts| {
        let time_is_up = arguments.budget.is_some_and(|budget| watch.elapsed() >= budget);
        time_is_up || (arguments.budget.is_none() && counts.sum() >= arguments.images)
    });
    if let Some(violation) = &end.violation {
        show(arguments, violation);
    }
    println!("situations:");
    let covered = coverage.report(arguments.coverage);
    let line = format!(
        "crash: {} distinct images (d2 {}, d3 {}), seeds {}..{}, {} violations, {} s",
        counts.sum(),
        counts.of(2),
        counts.of(3),
        arguments.from,
        end.seeds_to,
        u64::from(end.violation.is_some()),
        watch.elapsed().as_secs()
    );
    println!("{line}");
    if arguments.totals {
        add_to_totals(&line);
    }
    if end.violation.is_none() && covered { Outcome::Held } else { Outcome::Broke }
}

/// What a search came to.
#[derive(Debug)]
pub struct End {
    /// Seeds below this were begun.
    pub seeds_to: u64,
    /// The first violation, by seed.
    pub violation: Option<Box<Violation>>,
}

/// Goes through the seeds until enough was seen or something broke.
pub fn search(
    arguments: &Arguments,
    counts: &Counts,
    coverage: &Coverage,
    enough: &(dyn Fn(&Counts) -> bool + Sync),
) -> End {
    let next = AtomicU64::new(arguments.from);
    let found: Mutex<Option<Box<Violation>>> = Mutex::new(None);
    let is_found = || found.lock().is_ok_and(|found| found.is_some());
    let stop = || enough(counts) || is_found();
    std::thread::scope(|scope| {
        for _ in 0..arguments.threads.max(1) {
            scope.spawn(|| {
                let explorer = explorer(arguments, counts, coverage, &stop);
                while !stop() {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if let Err(violation) = explorer.explore(seed)
                        && let Ok(mut found) = found.lock()
                        && found.as_ref().is_none_or(|first| violation.path.seed < first.path.seed)
                    {
                        *found = Some(violation);
                    }
                }
            });
        }
    });
    End { seeds_to: next.into_inner(), violation: found.into_inner().unwrap_or(None) }
}

fn explorer<'a>(
    arguments: &Arguments,
    counts: &'a Counts,
    coverage: &'a Coverage,
    stop: &'a (dyn Fn() -> bool + Sync),
) -> Explorer<'a> {
    Explorer { profile: arguments.profile, counts, coverage, per_mode: arguments.per_mode, stop }
}

fn show(arguments: &Arguments, violation: &Violation) {
    println!("crash: VIOLATION {}: {}", violation.path, violation.what);
    let profile = if arguments.profile == Profile::Ext4Ordered { " --profile ext4-ordered" } else { "" };
    let per_mode = arguments.per_mode.map(|per_mode| format!(" --per-mode {per_mode}")).unwrap_or_default();
    println!("repeat: {COMMAND} crash --replay {}{profile}{per_mode}", violation.path);
}
