//! Lines on standard output, errors on standard error; as text for people or as JSON for scripts.
//!
//! It knows nothing of what the lines mean. A standard output that cannot be written is an error like any other; a standard error
//! that cannot be written is not, since nobody is left to be told.

use std::{
    fmt::Display,
    fs::File,
    io::{self, Write},
    ops::RangeInclusive,
    os::fd::AsFd,
};

use holdfast::{Error, Kind};
use serde::Serialize;

use crate::exit_code::{Failure, Outcome};

/// How to print.
pub(crate) struct Output {
    /// JSON instead of text.
    pub(crate) json: bool,
}

#[derive(Serialize)]
struct ErrorLine<'a> {
    error: ErrorBody<'a>,
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    kind: &'a str,
    message: String,
    file: Option<&'a str>,
    offset: Option<u64>,
}

#[derive(Serialize)]
struct WarningLine<'a> {
    warning: WarningBody<'a>,
}

#[derive(Serialize)]
struct WarningBody<'a> {
    message: &'a str,
}

impl Output {
    /// One object: a line of JSON, or the text. Flushed, since a script may act on each line as it comes.
    pub(crate) fn line(&self, object: &impl Serialize, text: impl Display) -> Outcome {
        let mut out = io::stdout().lock();
        let written = if self.json { writeln!(out, "{}", to_json(object)) } else { writeln!(out, "{text}") };
        written.and_then(|()| out.flush()).map_err(stdout_failure)
    }

    /// A line that only people read.
    pub(crate) fn say(&self, text: impl Display) -> Outcome {
        if self.json {
            return Ok(());
        }
        let mut out = io::stdout().lock();
        writeln!(out, "{text}").and_then(|()| out.flush()).map_err(stdout_failure)
    }

    /// Tells of what is not as it should be and yet fails nothing.
    pub(crate) fn warn(&self, message: &str) {
        let _ = if self.json {
            writeln!(io::stderr(), "{}", to_json(&WarningLine { warning: WarningBody { message } }))
        } else {
            writeln!(io::stderr(), "holdfast: warning: {}", shown(message))
        };
    }

    /// Tells of an error; `about` is the argument that it concerns, if there is one, as it was given: a script finds it by that.
    pub(crate) fn error(&self, error: &Error, about: Option<&str>) {
        let about_text = about.map_or_else(String::new, |about| format!("{about}: "));
        let _ = if self.json {
            let place = error.place();
            let artifact = place.artifact.map_or_else(String::new, |id| format!(" (artifact {id})"));
            let source = std::error::Error::source(error).map_or_else(String::new, |source| format!(": {source}"));
            let body = ErrorBody {
                kind: error.kind().as_str(),
                message: format!("{about_text}{}{artifact}{source}", error.message()),
                file: place.file.as_deref().or(about),
                offset: place.offset,
            };
            writeln!(io::stderr(), "{}", to_json(&ErrorLine { error: body }))
        } else {
            writeln!(io::stderr(), "holdfast: {}: {}", error.kind().as_str(), shown(&format!("{about_text}{error}")))
        };
    }
}

fn to_json(object: &impl Serialize) -> String {
    serde_json::to_string(object).expect("the objects are plain structs with string keys")
}

/// Standard output without the standard library's buffer, which looks for the ends of lines in bytes that have none.
pub(crate) fn standard_output() -> Outcome<File> {
    io::stdout().as_fd().try_clone_to_owned().map(File::from).map_err(stdout_failure)
}

/// What a failed write to standard output means.
pub(crate) fn stdout_failure(error: io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe {
        Failure::Unread
    } else {
        Error::io(error, "standard output", "write").into()
    }
}

/// Text of the caller's, made fit for a terminal: a path may hold line breaks and escape sequences, and characters that turn the
/// text behind them round.
pub(crate) fn shown(text: &str) -> String {
    let hidden = |c: char| c.is_control() || FORMATTING.iter().any(|range| range.contains(&c));
    text.chars().flat_map(|c| if hidden(c) { c.escape_default().collect() } else { vec![c] }).collect()
}

/// Characters that nobody sees, and that change how others are shown: Unicode's categories Cf, Zl and Zp.
const FORMATTING: [RangeInclusive<char>; 13] = [
    '\u{ad}'..='\u{ad}',
    '\u{600}'..='\u{605}',
    '\u{61c}'..='\u{61c}',
    '\u{6dd}'..='\u{6dd}',
    '\u{70f}'..='\u{70f}',
    '\u{180e}'..='\u{180e}',
    '\u{200b}'..='\u{200f}',
    '\u{2028}'..='\u{202e}',
    '\u{2060}'..='\u{206f}',
    '\u{feff}'..='\u{feff}',
    '\u{fff9}'..='\u{fffb}',
    '\u{1d173}'..='\u{1d17a}',
    '\u{e0001}'..='\u{e007f}',
];

/// An argument that does not fit.
pub(crate) fn invalid(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(Kind::InvalidArgument, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_turns_a_terminal_round_is_escaped_and_letters_are_not() {
        assert_eq!(shown("a\u{202e}b\u{200b}\u{2066}\n\u{1b}"), "a\\u{202e}b\\u{200b}\\u{2066}\\n\\u{1b}");
        for text in ["report 1.pdf", "日本語", "e\u{301}", "back\\slash", "\"quoted\""] {
            assert_eq!(shown(text), text);
        }
        let once = shown("a\u{202e}b");
        assert_eq!(shown(&once), once, "twice is as once");
    }
}
