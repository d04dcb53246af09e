//! The real binary on a real directory, killed with SIGKILL while it puts: after so many acknowledgements, or after so many bytes were fed
//! through a pipe. What was acknowledged must be there, whole; what was not must be there whole or not at all.
//!
//! Where a kill lands between two system calls is the machine's choice; which files, sizes and kill points a seed stands for is not.

#![expect(clippy::disallowed_methods, reason = "a campaign against real files and processes")]

mod content;
mod rig;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Mutex,
    thread,
};

use crate::{
    campaign::{COMMAND, Outcome, Stopwatch, add_to_totals, release_binary},
    random::Random,
};

use rig::Rig;

/// Kills the binary during puts, again and again, and looks at what is left.
#[derive(clap::Args, Clone, Debug)]
pub struct Arguments {
    /// Kills in all.
    #[arg(long, default_value_t = 500)]
    pub count: u64,
    /// The first seed; each put that is to be killed has one.
    #[arg(long, default_value_t = 0)]
    pub from: u64,
    /// Stores that are worked on at a time.
    #[arg(long, default_value_t = 2)]
    pub threads: u64,
    /// The binary; `cargo build --release -p holdfast-cli` makes the default.
    #[arg(long)]
    pub binary: Option<PathBuf>,
    /// Where the stores are made; a temporary directory of the target directory if not given.
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// Adds a line to docs/campaigns.txt.
    #[arg(long)]
    pub totals: bool,
}

/// What was seen.
#[derive(Default, Clone, Copy, Debug)]
struct Counts {
    kills: u64,
    ended: u64,
    acked: u64,
    kept: u64,
    dropped: u64,
    progress: u64,
    stores: u64,
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.kills += other.kills;
        self.ended += other.ended;
        self.acked += other.acked;
        self.kept += other.kept;
        self.dropped += other.dropped;
        self.progress += other.progress;
        self.stores += other.stores;
    }
}

/// A store is made anew when it has grown to this.
const STORE_MAX: u64 = 96 << 20;
/// Puts between two deep verifications.
const DEEP_EVERY: u64 = 10;

/// Runs the campaign.
pub fn run(arguments: &Arguments) -> Outcome {
    let binary = arguments.binary.clone().unwrap_or_else(release_binary);
    if !binary.exists() {
        println!("kills: no binary at {}: cargo build --release -p holdfast-cli", binary.display());
        return Outcome::Broke;
    }
    let dir = arguments.dir.clone().unwrap_or_else(|| binary.with_file_name("kills"));
    let watch = Stopwatch::start();
    let total = Mutex::new((Counts::default(), Vec::new()));
    thread::scope(|scope| {
        for lane in 0..arguments.threads {
            let (total, binary, dir) = (&total, &binary, dir.join(lane.to_string()));
            scope.spawn(move || {
                let mut counts = Counts::default();
                let result = one_lane(arguments, lane, binary, &dir, &mut counts);
                let mut total = total.lock().expect("no lane panics with the lock");
                total.0.add(counts);
                total.1.extend(result.err());
            });
        }
    });
    let (counts, violations) = total.into_inner().expect("the lanes are done");
    for violation in &violations {
        println!("{violation}");
    }
    let Counts { kills, ended, acked, kept, dropped, progress, stores } = counts;
    let line = format!(
        "kills: {kills} kills and {ended} puts that were done before, seeds {}..{}, {acked} puts acknowledged, {} lost or damaged, unacknowledged {kept} kept whole and {dropped} gone \
         without a trace, {progress} killed behind a progress commit, {stores} stores, {} s",
        arguments.from,
        arguments.from + kills + ended,
        violations.len(),
        watch.elapsed().as_secs()
    );
    println!("{line}");
    if arguments.totals {
        add_to_totals(&line);
    }
    if violations.is_empty() && kills >= arguments.count {
        let _ = fs::remove_dir_all(&dir);
        Outcome::Held
    } else {
        Outcome::Broke
    }
}

/// Every `threads`-th seed, on stores of its own, until its share of kills is done.
fn one_lane(arguments: &Arguments, lane: u64, binary: &Path, dir: &Path, counts: &mut Counts) -> Result<(), String> {
    let mut rig: Option<Rig> = None;
    let share = arguments.count.div_ceil(arguments.threads);
    let mut seed = arguments.from + lane;
    while counts.kills < share {
        let found = (|| {
            let rig = match &mut rig {
                Some(rig) if rig.store_len()? < STORE_MAX => rig,
                other => {
                    counts.stores += 1;
                    other.insert(Rig::new(binary, dir)?)
                }
            };
            let mut random = Random::new(seed);
            rig.kill_one(&mut random, counts)?;
            rig.check(counts, (counts.kills + counts.ended).is_multiple_of(DEEP_EVERY))?;
            rig.put_one(&mut random, counts)
        })();
        found.map_err(|what: String| {
            format!(
                "VIOLATION at seed {seed}: {what}\n  the store is in {}\n  again: {COMMAND} kills --from {} --count {} --threads {}",
                dir.display(),
                arguments.from,
                arguments.count,
                arguments.threads
            )
        })?;
        seed += arguments.threads;
    }
    Ok(())
}
