//! Holds `holdfast bench large` to the bounds of `benches/gate.json`: ratios within one run, counted bytes, memory. Never a time.
//!
//! A machine that does other things too makes a ratio worse now and then, and never better: what fails is measured again, and the
//! best of all runs counts. What misses its bound by a factor of two is not measured again.

#![forbid(unsafe_code)]

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use serde_json::Value;

const BOUNDS: &str = include_str!("../../gate.json");
const RUNS: usize = 4;
const SIZE: &str = "256M";
const ROUNDS: &str = "4";

type Failure = Box<dyn std::error::Error>;

/// What a row must not fall below, or must not exceed.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Bound {
    of: &'static str,
    is_least: bool,
    limit: f64,
}

impl Bound {
    fn read(bound: &Value) -> Option<Self> {
        let names = [("ratio_min", "ratio", true), ("ratio_max", "ratio", false), ("value_max", "value", false)];
        let (name, of, is_least) = names.into_iter().find(|(name, ..)| bound.get(name).is_some())?;
        Some(Self { of, is_least, limit: bound[name].as_f64()? })
    }

    fn holds(self, figure: f64) -> bool {
        if self.is_least { figure >= self.limit } else { figure <= self.limit }
    }

    /// So far off that no neighbour on the machine explains it.
    fn is_hopeless(self, figure: f64) -> bool {
        if self.is_least { figure < self.limit / 2.0 } else { figure > self.limit * 2.0 }
    }

    fn better(self, one: f64, other: f64) -> f64 {
        if self.is_least { one.max(other) } else { one.min(other) }
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("gate: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<bool, Failure> {
    let bounds = bounds(BOUNDS)?;
    let mut best: BTreeMap<String, f64> = BTreeMap::new();
    for _ in 0..RUNS {
        let missed: Vec<_> = bounds.iter().filter(|(row, bound)| !holds(&best, row, **bound)).collect();
        let hopeless = |(row, bound): &(&String, &Bound)| best.get(*row).is_some_and(|f| bound.is_hopeless(*f));
        if missed.is_empty() || missed.iter().any(hopeless) {
            break;
        }
        let rows: Vec<_> = missed.iter().map(|(row, _)| row.as_str()).collect();
        for (row, figure) in measure(&rows, &bounds)? {
            let bound = bounds[&row];
            best.entry(row).and_modify(|old| *old = bound.better(*old, figure)).or_insert(figure);
        }
    }
    for (row, bound) in &bounds {
        let figure = best.get(row).copied().ok_or_else(|| format!("the bench gave no row {row}"))?;
        let verb = if bound.is_least { "at least" } else { "at most" };
        let verdict = if bound.holds(figure) { "held" } else { "BROKEN" };
        println!("{row:<18} {:<5} {figure:>9.4}, {verb} {:<6} {verdict}", bound.of, bound.limit);
    }
    Ok(bounds.iter().all(|(row, bound)| holds(&best, row, *bound)))
}

fn holds(best: &BTreeMap<String, f64>, row: &str, bound: Bound) -> bool {
    best.get(row).is_some_and(|figure| bound.holds(*figure))
}

fn bounds(text: &str) -> Result<BTreeMap<String, Bound>, Failure> {
    let rows: BTreeMap<String, Value> = serde_json::from_str(text)?;
    let read = |(row, bound): (String, Value)| {
        let bound = Bound::read(&bound).ok_or_else(|| format!("{row} has no ratio_min, ratio_max or value_max"))?;
        Ok((row, bound))
    };
    rows.into_iter().map(read).collect()
}

/// One run of the release binary that stands beside this program.
fn measure(rows: &[&str], bounds: &BTreeMap<String, Bound>) -> Result<Vec<(String, f64)>, Failure> {
    let output = Command::new(binary()?)
        .args(["--json", "bench", "large", "--size", SIZE, "--rounds", ROUNDS, "--rows", &rows.join(",")])
        .output()?;
    if !output.status.success() {
        return Err(format!("the bench failed: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    figures(&String::from_utf8(output.stdout)?, bounds)
}

fn figures(lines: &str, bounds: &BTreeMap<String, Bound>) -> Result<Vec<(String, f64)>, Failure> {
    let mut found = Vec::new();
    for line in lines.lines() {
        let object: Value = serde_json::from_str(line)?;
        let row = object["row"].as_str().ok_or("a line without a row")?;
        let Some(bound) = bounds.get(row) else { continue };
        found.push((row.to_owned(), object[bound.of].as_f64().ok_or_else(|| format!("{row} has no {}", bound.of))?));
    }
    Ok(found)
}

fn binary() -> Result<PathBuf, Failure> {
    let binary = std::env::current_exe()?.parent().unwrap_or(Path::new(".")).join("holdfast");
    if binary.exists() {
        return Ok(binary);
    }
    Err(format!("there is no {}: build it with cargo build --release", binary.display()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bound_of_the_file_is_understood() {
        assert!(bounds(BOUNDS).expect("well formed").len() > 3);
        assert!(bounds(r#"{"put": {"ratio": 1.0}}"#).is_err());
    }

    #[test]
    fn the_better_of_two_runs_counts_in_both_directions() {
        let bounds =
            bounds(r#"{"put": {"ratio_min": 0.5}, "memory_peak": {"value_max": 100.0}}"#).expect("well formed");
        let (least, most) = (bounds["put"], bounds["memory_peak"]);
        assert!(least.holds(least.better(0.4, 0.6)) && !least.holds(least.better(0.4, 0.3)));
        assert!(
            least.is_hopeless(0.24) && !least.is_hopeless(0.26) && most.is_hopeless(201.0) && !most.is_hopeless(199.0)
        );
        assert!(most.holds(most.better(110.0, 90.0)) && !most.holds(most.better(110.0, 120.0)));
    }

    #[test]
    fn a_line_gives_the_figure_that_its_bound_is_of() {
        let bounds =
            bounds(r#"{"put": {"ratio_min": 0.5}, "memory_peak": {"value_max": 100.0}}"#).expect("well formed");
        let lines =
            "{\"row\":\"put\",\"value\":1.5,\"ratio\":0.75}\n{\"row\":\"memory_peak\",\"value\":30.0,\"ratio\":null}\n";
        let expected = [("put".to_owned(), 0.75), ("memory_peak".to_owned(), 30.0)];
        assert_eq!(figures(lines, &bounds).expect("well formed"), expected);
        assert!(figures("{\"row\":\"put\",\"value\":1.5,\"ratio\":null}", &bounds).is_err());
    }
}
