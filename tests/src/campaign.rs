//! What every campaign has in common: its outcome, its stopwatch, panics that count as violations, and the file of totals. It knows
//! nothing of what a campaign does.

use std::{
    cell::RefCell,
    io::Write as _,
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::Duration,
};

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

/// The release binary of the target directory in which this campaign was built.
pub fn release_binary() -> PathBuf {
    let here = std::env::current_exe().unwrap_or_default();
    here.ancestors().nth(2).unwrap_or(Path::new("target")).join("release/holdfast")
}

/// How the command lines that repeat a failure begin.
pub const COMMAND: &str = "cargo run --profile campaign -p holdfast-tests --bin campaign --";

/// Measures a campaign; nothing that is checked depends on it.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(std::time::Instant);

impl Stopwatch {
    /// Starts.
    #[expect(clippy::disallowed_methods, reason = "a campaign's own time, which no store sees")]
    pub fn start() -> Self {
        Self(std::time::Instant::now())
    }

    /// Time since the start.
    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

thread_local! {
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Keeps panics of this process quiet, so that [`guarded`] can say what they were.
pub fn keep_panics_quiet() {
    panic::set_hook(Box::new(|info| {
        PANIC.with(|text| *text.borrow_mut() = Some(info.to_string().replace('\n', " ")));
    }));
}

/// Runs a check; a panic in it is a violation like any other.
pub fn guarded<T>(check: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    panic::catch_unwind(AssertUnwindSafe(check)).unwrap_or_else(|_| {
        let text = PANIC.with(RefCell::take);
        Err(text.unwrap_or_else(|| "a panic".to_owned()))
    })
}

/// Reads `90m`, `20s` or `2h`.
pub fn parse_budget(text: &str) -> Result<Duration, String> {
    let unit = text.chars().last().filter(char::is_ascii_alphabetic);
    let seconds = match unit {
        Some('s') | None => 1,
        Some('m') => 60,
        Some('h') => 3600,
        Some(other) => return Err(format!("no unit of time: {other}")),
    };
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.parse().map_err(|_| format!("not a number: {digits}"))?;
    Ok(Duration::from_secs(number * seconds))
}

/// Adds a line to the file of totals: the commit, and what the campaign says of itself.
pub fn add_to_totals(line: &str) {
    let git = |args: &[&str]| {
        let out = Command::new("git").args(args).output();
        out.ok().map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned()).unwrap_or_default()
    };
    // The file of totals itself changes with each line.
    let changed =
        git(&["status", "--porcelain", "--untracked-files=no", "--", ":/", ":(top,exclude)docs/campaigns.txt"]);
    let dirty = if changed.is_empty() { "" } else { "-dirty" };
    let commit = format!("{}{dirty}", git(&["describe", "--always", "--abbrev=12"]));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/campaigns.txt");
    #[expect(clippy::disallowed_methods, reason = "a file of the repository, not of a store")]
    let file = std::fs::OpenOptions::new().create(true).append(true).open(&path);
    match file.and_then(|mut file| writeln!(file, "{commit} {line}")) {
        Ok(()) => {}
        Err(error) => println!("{}: {error}", path.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_has_a_unit() {
        let seconds = |text| parse_budget(text).map(|budget| budget.as_secs());
        assert_eq!(seconds("90m"), Ok(5400));
        assert_eq!(seconds("20"), Ok(20));
        assert!(seconds("5d").is_err() && seconds("m").is_err());
    }
}
