//! How a command ends: the exit code, and what each code means in every help text.

use std::{
    fmt::Write as _,
    io::{self, IsTerminal, Write as _},
    process::ExitCode,
};

use holdfast::{Error, Kind};

use crate::output::Output;

/// What a command gives back.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

/// Why a command did not end well.
#[derive(Debug)]
pub(crate) enum Failure {
    /// To be told, with its kind's code.
    Error(Error),
    /// Told already; only the code is left.
    Told(u8),
    /// Whoever read standard output went away. There is nobody to tell.
    Unread,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// Tells what is to be told and gives the exit code.
pub(crate) fn finish(outcome: Outcome, output: &Output) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Error(error)) => {
            output.error(&error, None);
            error.kind().exit_code().into()
        }
        Err(Failure::Told(code)) => code.into(),
        Err(Failure::Unread) => Kind::Io.exit_code().into(),
    }
}

/// Help and version asked for, or arguments that do not fit.
pub(crate) fn finish_usage(usage: &clap::Error) -> ExitCode {
    if !usage.use_stderr() {
        // clap's own exit would call it a success although nobody could read the help.
        let printed = if io::stdout().is_terminal() {
            usage.print()
        } else {
            write!(io::stdout(), "{}", usage.render()).and_then(|()| io::stdout().flush())
        };
        return if printed.is_ok() { ExitCode::SUCCESS } else { Kind::Io.exit_code().into() };
    }
    // The arguments were not understood, so whether JSON was asked for is read off the words themselves.
    if std::env::args_os().any(|word| word == "--json") {
        let text = usage.render().to_string();
        let message = text.strip_prefix("error: ").unwrap_or(&text).trim_end().to_owned();
        Output { json: true }.error(&Error::new(Kind::InvalidArgument, message), None);
    } else {
        // Standard error may be closed; then there is nobody to tell.
        let _ = usage.print();
    }
    Kind::InvalidArgument.exit_code().into()
}

/// The end of a help text: examples, and the exit codes that the command has.
pub(crate) fn help(examples: &[&str], codes: &[u8]) -> String {
    let mut text = String::from(if examples.len() == 1 { "Example:\n" } else { "Examples:\n" });
    for example in examples {
        writeln!(text, "  {example}").expect("a String takes everything");
    }
    text.push_str("\nExit codes:\n");
    for code in codes {
        writeln!(text, "  {code}  {}", meaning(*code)).expect("a String takes everything");
    }
    text.truncate(text.trim_end().len());
    text
}

fn meaning(code: u8) -> &'static str {
    match code {
        0 => "done",
        1 => "a call of the operating system failed, or the outcome is not known",
        2 => "wrong usage, argument, name, type, kind of file, or there is no store",
        3 => "nothing of that id here, or it is gone",
        4 => "refused: something that the call rests on is not so, or not so any more",
        5 => "damage was found",
        6 => "not now: locked, read-only, poisoned, of a newer version, or the file is not ready",
        7 => "no space, or a limit was reached",
        _ => unreachable!("codes are 0 to 7"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_a_kind_has_a_meaning() {
        for kind in Kind::ALL {
            assert!(!meaning(kind.exit_code()).is_empty());
        }
    }
}
