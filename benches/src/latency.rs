//! Latencies of many calls, and their percentiles.

use std::time::Duration;

/// Every latency, in nanoseconds.
#[derive(Clone, Default, Debug)]
pub struct Latencies(Vec<u64>);

impl Latencies {
    /// One more.
    pub fn add(&mut self, latency: Duration) {
        self.0.push(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Takes those of another thread.
    pub fn merge(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// The latency that so many per cent of the calls stay at or below, in microseconds; zero if there was no call.
    pub fn percentile(&mut self, percent: usize) -> f64 {
        self.0.sort_unstable();
        let rank = (self.0.len() * percent).div_ceil(100);
        let nanoseconds = self.0.get(rank.saturating_sub(1)).copied().unwrap_or(0);
        crate::figure(nanoseconds) / 1_000.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::float_cmp, reason = "whole microseconds are exact")]
    fn a_percentile_is_a_latency_that_was_seen() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.percentile(50), 0.0);
        for microseconds in (1..=200).rev() {
            latencies.add(Duration::from_micros(microseconds));
        }
        assert_eq!(latencies.count(), 200);
        assert_eq!([0, 50, 99, 100].map(|p| latencies.percentile(p)), [1.0, 100.0, 198.0, 200.0]);
    }
}
