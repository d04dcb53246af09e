//! Measuring: `bench large`, `bench small` and `bench catalog`. What they share: rows, and the best of many rounds.

pub(crate) mod catalog;
pub(crate) mod large;
pub(crate) mod place;
pub(crate) mod small;

use holdfast_benches::figure;
use serde::Serialize;

use crate::{exit_code::Outcome, session::Session};

/// A figure and its yardstick.
#[derive(Serialize, Clone, Debug)]
pub(crate) struct Row {
    #[serde(rename = "row")]
    name: String,
    value: f64,
    unit: &'static str,
    yardstick: Option<f64>,
    ratio: Option<f64>,
    /// What the yardstick is.
    #[serde(skip)]
    against: &'static str,
}

impl Row {
    /// Against a yardstick of the same unit.
    pub(crate) fn against(
        name: impl Into<String>,
        value: f64,
        unit: &'static str,
        yardstick: f64,
        against: &'static str,
    ) -> Self {
        // What was never measured has no ratio; JSON has no infinity either.
        let ratio = (yardstick > 0.0).then(|| value / yardstick);
        Self { name: name.into(), value, unit, yardstick: Some(yardstick), ratio, against }
    }

    /// A figure that stands alone.
    pub(crate) fn alone(name: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self { name: name.into(), value, unit, yardstick: None, ratio: None, against: "" }
    }

    fn text(&self) -> String {
        let value = format!("{:<18} {:>11} {:<7}", self.name, decimals(self.value), self.unit);
        match (self.yardstick, self.ratio) {
            (Some(yardstick), Some(ratio)) => {
                format!("{value} {:>11} {:<7} {ratio:>8.3}  {}", decimals(yardstick), self.unit, self.against)
            }
            _ => value.trim_end().to_owned(),
        }
    }
}

/// Prints the rows that were asked for.
pub(crate) fn print(rows: &[Row], wanted: &[String], session: &Session) -> Outcome {
    rows.iter().filter(|row| wanted.contains(&row.name)).try_for_each(|row| session.output.line(row, row.text()))
}

/// What stands above the rows.
pub(crate) fn head(rounds: u32, session: &Session) -> Outcome {
    session.output.say(format_args!(
        "each the best of {rounds}, measured alternately with its yardstick\n{:<18} {:>19} {:>19} {:>8}  against",
        "row", "value", "yardstick", "ratio"
    ))
}

fn decimals(value: f64) -> String {
    if value >= 1_000.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

/// Bytes a second as GiB/s.
pub(crate) fn gib(rate: f64) -> f64 {
    rate / holdfast_benches::GIB
}

/// Bytes as MiB.
pub(crate) fn mib(bytes: u64) -> f64 {
    figure(bytes) / holdfast_benches::MIB
}

/// The highest rate of all rounds.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Best(f64);

impl Best {
    pub(crate) fn add(&mut self, rate: f64) {
        self.0 = self.0.max(rate);
    }

    pub(crate) const fn rate(self) -> f64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_five_names_of_its_json_and_no_ratio_to_nothing() {
        let json = serde_json::to_value(Row::against("put", 3.0, "GiB/s", 4.0, "SHA-256")).expect("a plain struct");
        let expected =
            serde_json::json!({"row": "put", "value": 3.0, "unit": "GiB/s", "yardstick": 4.0, "ratio": 0.75});
        assert_eq!(json, expected);
        assert!(Row::against("put", 3.0, "GiB/s", 0.0, "SHA-256").ratio.is_none());
        assert!(Row::alone("memory_peak", 3.0, "MiB").yardstick.is_none());
    }
}
