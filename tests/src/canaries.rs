//! Seeded bugs: a campaign that does not notice them proves nothing. Each must break something within 80,000 images of the gate's
//! first seed.
//!
//! [`Canary::UnsaltedChecksums`] is noticed by the independent parser alone: segments are zeroed before use, so that no crash shows the
//! engine a frame of a former life. Salt is the second line behind that.

use holdfast::canary::{self, Canary};

use crate::{
    campaign::{Outcome, Stopwatch, keep_panics_quiet},
    coverage::Coverage,
    crash::{self, explore::Counts},
    faults,
};

/// Turns on one seeded bug after the other and waits for the crash campaign to notice.
#[derive(clap::Args, Clone, Debug)]
pub struct Arguments {
    /// Give up on a bug after so many images.
    #[arg(long, default_value_t = 80_000)]
    pub images: u64,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    pub from: u64,
    /// Only this one, by its number.
    #[arg(long)]
    pub only: Option<u8>,
}

/// Runs the campaign.
pub fn run(arguments: &Arguments) -> Outcome {
    keep_panics_quiet();
    let mut outcome = Outcome::Held;
    for bug in Canary::ALL.into_iter().filter(|bug| arguments.only.is_none_or(|only| only == *bug as u8)) {
        let watch = Stopwatch::start();
        canary::choose(Some(bug));
        // A failed sync is no crash.
        let (images, caught) = if matches!(bug, Canary::PoisonIgnored | Canary::TableSyncRetried) {
            faults::until_violation()
        } else {
            until_violation(arguments)
        };
        canary::choose(None);
        let seconds = watch.elapsed().as_secs();
        // A bug that shows without a crash needs no campaign, so that it proves nothing about one.
        let what = caught.filter(|_| images > 0).unwrap_or_else(|| {
            outcome = Outcome::Broke;
            "NOT CAUGHT by a crash".to_owned()
        });
        println!("{:>2} {bug:<20?} {images:>7} images {seconds:>4} s  {what}", bug as u8);
    }
    outcome
}

/// Runs the crash campaign until something breaks: images, and what broke.
fn until_violation(arguments: &Arguments) -> (u64, Option<String>) {
    let (counts, coverage) = (Counts::default(), Coverage::default());
    // One thread, so that the number of images is the same each time.
    let crash = crash::Arguments { from: arguments.from, threads: 1, ..crash::Arguments::default() };
    let end = crash::search(&crash, &counts, &coverage, &|counts| counts.sum() >= arguments.images);
    let what = end.violation.map(|violation| {
        let text: String = violation.what.chars().take(110).collect();
        format!("{}: {text}", violation.path)
    });
    (counts.sum(), what)
}
