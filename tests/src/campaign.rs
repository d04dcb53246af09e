//! What every campaign has in common: its outcome, and the line with which it closes. It knows nothing of what a campaign does.

use std::process::ExitCode;

/// Outcome of a campaign.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Everything held, and everything that must be covered was.
    Held,
    /// Something did not; the campaign has printed what, and the command that repeats it.
    Broke,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Held => Self::SUCCESS,
            Outcome::Broke => Self::FAILURE,
        }
    }
}
