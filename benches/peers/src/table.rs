//! The best figures so far, and how they are printed.

use std::io::Write as _;

use serde::Serialize;

use crate::{Result, peers::Kind};

/// Columns, in the order in which they are printed, and their unit.
pub(crate) const COLUMNS: [(&str, &str); 10] = [
    ("put", "GB/s"),
    ("again", "GB/s"),
    ("cold", "GB/s"),
    ("hot", "GB/s"),
    ("disk/logical", "x"),
    ("16k_1", "puts/s"),
    ("16k_16", "puts/s"),
    ("4k_1", "puts/s"),
    ("4k_8", "puts/s"),
    ("4k_64", "puts/s"),
];

#[derive(Serialize)]
struct Figure<'a> {
    peer: &'a str,
    version: &'a str,
    durable: &'a str,
    row: &'a str,
    value: f64,
    unit: &'a str,
}

/// A line for each peer.
pub(crate) struct Figures {
    peers: Vec<Kind>,
    values: Vec<[Option<f64>; COLUMNS.len()]>,
}

impl Figures {
    pub(crate) fn new(peers: &[Kind]) -> Self {
        Self { peers: peers.to_vec(), values: vec![[None; COLUMNS.len()]; peers.len()] }
    }

    /// One more measurement; the highest stays, and of space the last.
    pub(crate) fn add(&mut self, peer: &Kind, column: &str, value: f64) {
        let line = self.peers.iter().position(|other| other.name == peer.name).expect("a peer of this run");
        let column = COLUMNS.iter().position(|(name, _)| *name == column).expect("a column of the table");
        let place = &mut self.values[line][column];
        let is_rate = COLUMNS[column].1 != "x";
        *place = Some(if is_rate { place.unwrap_or(0.0).max(value) } else { value });
    }

    pub(crate) fn print_json(&self) -> Result {
        let mut out = std::io::stdout().lock();
        for (peer, values) in self.peers.iter().zip(&self.values) {
            for ((row, unit), value) in COLUMNS.iter().zip(values) {
                let Some(value) = *value else { continue };
                let (version, durable) = (peer.version, peer.durable);
                let figure = Figure { peer: peer.name, version, durable, row, value, unit };
                writeln!(out, "{}", serde_json::to_string(&figure)?)?;
            }
        }
        Ok(())
    }

    pub(crate) fn print_table(&self) -> Result {
        let mut out = std::io::stdout().lock();
        let head: Vec<_> = COLUMNS.iter().map(|(name, unit)| format!("{name} {unit}")).collect();
        writeln!(out, "| peer | {} | durable |", head.join(" | "))?;
        writeln!(out, "|---|{}---|", "---|".repeat(COLUMNS.len()))?;
        for (peer, values) in self.peers.iter().zip(&self.values) {
            let cells: Vec<_> = COLUMNS.iter().zip(values).map(|((_, unit), value)| cell(*value, unit)).collect();
            writeln!(out, "| {} {} | {} | {} |", peer.name, peer.version, cells.join(" | "), peer.durable)?;
        }
        Ok(())
    }
}

fn cell(value: Option<f64>, unit: &str) -> String {
    match value {
        None => String::new(),
        Some(value) if unit == "puts/s" => format!("{value:.0}"),
        Some(value) => format!("{value:.2}"),
    }
}
