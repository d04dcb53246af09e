//! Values of arguments: durations, sizes, ranges, origins, ids; and times as they are shown.

use std::ops::Range;

use holdfast::{
    RunToken,
    format::{artifact::Origin, run::RunState},
    ids::{ArtifactId, RunId, Sha256, Time, UploadId},
};

/// The last millisecond that RFC 3339 can write: the end of the year 9999.
const LAST_MS: u64 = 253_402_207_200_000 - 1;

/// `90s`, `15m`, `12h`, `30d` in milliseconds.
pub(crate) fn duration_ms(text: &str) -> Result<u64, String> {
    let wrong = || "a duration is a number and a unit: 90s, 15m, 12h or 30d".to_owned();
    let unit = text.chars().next_back().ok_or_else(wrong)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return Err(wrong()),
    };
    number(text.strip_suffix(unit).unwrap_or_default())
        .ok_or_else(wrong)?
        .checked_mul(seconds * 1_000)
        .filter(|ms| *ms <= LAST_MS)
        .ok_or_else(|| "that is further away than the year 9999".to_owned())
}

/// When something is to end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    Never,
    /// At a time.
    At(Time),
    /// So many milliseconds from now.
    After(u64),
}

impl End {
    /// The time; `None` behind the year 9999.
    pub(crate) fn at(self, now: Time) -> Option<Option<Time>> {
        match self {
            Self::Never => Some(None),
            Self::At(time) => Some(Some(time)),
            Self::After(ms) => after(now, ms).map(Some),
        }
    }
}

/// `never`, a time as RFC 3339 writes it, or a duration.
pub(crate) fn end(text: &str) -> Result<End, String> {
    if text == "never" {
        return Ok(End::Never);
    }
    if let Ok(ms) = duration_ms(text) {
        return Ok(End::After(ms));
    }
    let wrong = "an end is a time as 2099-01-01T00:00:00Z, a duration as 90s, 15m, 12h or 30d, or `never`";
    let time = text.parse::<jiff::Timestamp>().map_err(|_| wrong.to_owned())?;
    u64::try_from(time.as_millisecond()).map(|ms| End::At(Time(ms))).map_err(|_| wrong.to_owned())
}

/// `N` bytes, or `N` with K, M, G or T (powers of 1,024; `KiB` and so on too).
pub(crate) fn byte_size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text.strip_prefix(digits).unwrap_or_default() {
        "" => 0,
        "K" | "KiB" => 10,
        "M" | "MiB" => 20,
        "G" | "GiB" => 30,
        "T" | "TiB" => 40,
        _ => return Err("a size is a number of bytes, or one with K, M, G or T".to_owned()),
    };
    number(digits)
        .ok_or_else(|| "a size is a number of bytes, or one with K, M, G or T".to_owned())?
        .checked_mul(1 << shift)
        .ok_or_else(|| "that is more than 64 bits hold".to_owned())
}

/// Bytes asked for, both ends included as in HTTP; without an end, to the end of the artifact.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ByteRange {
    first: u64,
    last: Option<u64>,
}

impl ByteRange {
    /// The half-open range in an artifact of that size, cut at its end; `None` if it begins behind it.
    pub(crate) fn within(self, size: u64) -> Option<Range<u64>> {
        let end = self.last.map_or(size, |last| last.saturating_add(1).min(size));
        (self.first < size).then_some(self.first..end)
    }
}

/// `A-B` or `A-`.
pub(crate) fn byte_range(text: &str) -> Result<ByteRange, String> {
    let wrong = || "a range is A-B, both included, or A- for all from A".to_owned();
    let (first, last) = text.split_once('-').ok_or_else(wrong)?;
    let first = number(first).ok_or_else(wrong)?;
    let last = if last.is_empty() { None } else { Some(number(last).ok_or_else(wrong)?) };
    if last.is_some_and(|last| last < first) {
        return Err("the range ends before it begins".to_owned());
    }
    Ok(ByteRange { first, last })
}

/// One of the stable names of origins.
pub(crate) fn origin(text: &str) -> Result<Origin, String> {
    Origin::ALL.into_iter().find(|origin| origin.as_str() == text).ok_or_else(|| {
        let names: Vec<_> = Origin::ALL.iter().map(|origin| origin.as_str()).collect();
        format!("an origin is one of {}", names.join(", "))
    })
}

/// An artifact's id.
pub(crate) fn artifact_id(text: &str) -> Result<ArtifactId, String> {
    ArtifactId::parse(text).ok_or_else(|| "an artifact id is 26 characters of lower-case base32".to_owned())
}

/// A run's id.
pub(crate) fn run_id(text: &str) -> Result<RunId, String> {
    RunId::parse(text).ok_or_else(|| "a run's id is 26 characters of lower-case base32".to_owned())
}

/// An upload's id.
pub(crate) fn upload_id(text: &str) -> Result<UploadId, String> {
    UploadId::parse(text).ok_or_else(|| "an upload's id is 26 characters of lower-case base32".to_owned())
}

/// A run token, or `@FILE` with one in it.
pub(crate) fn run_token(text: &str) -> Result<RunToken, String> {
    let read = text.strip_prefix('@').map(crate::files::first_line).transpose()?;
    let text = read.as_deref().unwrap_or(text);
    // The token itself is not said again: errors end up in logs.
    RunToken::parse(text).ok_or_else(|| "a run token is the 74 characters that `run begin` printed".to_owned())
}

/// How a run ends.
pub(crate) fn outcome(text: &str) -> Result<RunState, String> {
    let ends = [RunState::Succeeded, RunState::Failed, RunState::Cancelled];
    let found = ends.into_iter().find(|state| state.as_str() == text);
    found.ok_or_else(|| "an outcome is succeeded, failed or cancelled".to_owned())
}

/// A tag: kind and key, as `email=a@example.org`.
pub(crate) fn tag(text: &str) -> Result<(String, String), String> {
    let (kind, key) = text.split_once('=').ok_or("a tag is KIND=KEY, as email=a@example.org")?;
    Ok((kind.to_owned(), key.to_owned()))
}

/// A SHA-256.
pub(crate) fn sha256(text: &str) -> Result<Sha256, String> {
    Sha256::parse(text).ok_or_else(|| "a SHA-256 is 64 hexadecimal digits".to_owned())
}

/// RFC 3339, UTC. What lies beyond the year 9999 is shown as its end.
pub(crate) fn time_text(time: Time) -> String {
    let ms = i64::try_from(time.0.min(LAST_MS)).expect("the year 9999 fits in 63 bits");
    let time = jiff::Timestamp::from_millisecond(ms).expect("the year 9999 is the last that jiff knows");
    // Always with milliseconds: lists stay in columns, and text sorts as the times do.
    format!("{time:.3}")
}

/// `now` and a duration further on; `None` behind the year 9999.
pub(crate) fn after(now: Time, ms: u64) -> Option<Time> {
    now.0.checked_add(ms).filter(|end| *end <= LAST_MS).map(Time)
}

/// Decimal digits and nothing else: `str::parse` would take a plus sign.
fn number(digits: &str) -> Option<u64> {
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit_and_an_end() {
        assert_eq!(duration_ms("90s"), Ok(90_000));
        assert_eq!(duration_ms("15m"), Ok(900_000));
        assert_eq!(duration_ms("12h"), Ok(43_200_000));
        assert_eq!(duration_ms("30d"), Ok(2_592_000_000));
        for wrong in ["", "s", "30", "+3d", "-3d", "3.5h", "3w", "3dd", "18446744073709551615d", "30é"] {
            assert!(duration_ms(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_end_is_a_time_a_duration_or_never() {
        assert_eq!(end("never"), Ok(End::Never));
        assert_eq!(end("90s"), Ok(End::After(90_000)));
        assert_eq!(end("1970-01-01T00:00:01Z"), Ok(End::At(Time(1000))));
        assert_eq!(end("2099-01-01T01:00:00+01:00"), end("2099-01-01T00:00:00Z"));
        for wrong in ["", "soon", "2099-01-01", "1969-12-31T23:59:59Z", "3w", "NEVER"] {
            assert!(end(wrong).is_err(), "{wrong}");
        }
        assert_eq!(End::After(u64::MAX).at(Time(1)), None);
        assert_eq!(End::After(5).at(Time(1)), Some(Some(Time(6))));
    }

    #[test]
    fn sizes_are_powers_of_1024() {
        assert_eq!(byte_size("4096"), Ok(4096));
        assert_eq!(byte_size("64MiB"), Ok(64 << 20));
        assert_eq!(byte_size("1G"), Ok(1 << 30));
        for wrong in ["", "M", "1MB", "-1", "1.5M", "99999999999999999999", "18446744073709551615K"] {
            assert!(byte_size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_range_includes_both_ends_and_stops_at_the_end_of_the_artifact() {
        let within = |text, size| byte_range(text).expect("a range").within(size);
        assert_eq!(within("0-0", 10), Some(0..1));
        assert_eq!(within("2-5", 10), Some(2..6));
        assert_eq!(within("2-", 10), Some(2..10));
        assert_eq!(within("2-18446744073709551615", 10), Some(2..10));
        assert_eq!(within("10-12", 10), None);
        assert_eq!(within("0-", 0), None);
        for wrong in ["", "-", "-5", "5", "5-2", "a-b", "1-2-3", "0x1-2"] {
            assert!(byte_range(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_time_is_shown_in_utc_and_never_beyond_its_range() {
        assert_eq!(time_text(Time(0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(time_text(Time(1_700_000_000_123)), "2023-11-14T22:13:20.123Z");
        assert!(time_text(Time(u64::MAX)).starts_with("9999-12-30T"));
        assert_eq!(after(Time(u64::MAX), 1), None);
    }
}
