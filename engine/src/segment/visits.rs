//! Who is reading at a place that was looked up. A file is used again, or goes, only when all have left who may have looked up a place in
//! it.
//!
//! A visit lasts from a look-up to the end of its read; no client is waited for. It knows neither files nor places.

use std::collections::BTreeMap;

use crate::sync::Mutex;

/// The visits of an open store. A turn ends when no look-up that begins behind it can find what an earlier one could.
#[derive(Default)]
pub struct Visits(Mutex<State>);

#[derive(Default)]
struct State {
    turn: u64,
    /// Visits that are under way, by the turn in which they began.
    inside: BTreeMap<u64, u64>,
}

/// A visit; it ends when this is dropped.
pub struct Visit<'a> {
    visits: &'a Visits,
    turn: u64,
}

impl Visits {
    /// Begins a visit. What is looked up afterwards stays where it is until the visit ends.
    pub fn enter(&self) -> Visit<'_> {
        let mut state = self.0.lock();
        let turn = state.turn;
        *state.inside.entry(turn).or_insert(0) += 1;
        Visit { visits: self, turn }
    }

    /// Ends the turn, and gives its number.
    pub fn next_turn(&self) -> u64 {
        let mut state = self.0.lock();
        state.turn += 1;
        state.turn - 1
    }

    /// True when every visit has ended that began in this turn or before.
    pub fn have_left(&self, turn: u64) -> bool {
        self.0.lock().inside.range(..=turn).next().is_none()
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        let mut state = self.visits.0.lock();
        if let Some(count) = state.inside.get_mut(&self.turn) {
            *count -= 1;
            if *count == 0 {
                state.inside.remove(&self.turn);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_over_when_all_who_entered_before_its_end_have_left() {
        let visits = Visits::default();
        let (first, second) = (visits.enter(), visits.enter());
        let turn = visits.next_turn();
        let later = visits.enter();
        assert!(!visits.have_left(turn));
        drop(first);
        assert!(!visits.have_left(turn), "one is still there");
        drop(second);
        assert!(visits.have_left(turn), "who came later is not waited for");
        let next = visits.next_turn();
        assert!(!visits.have_left(next));
        drop(later);
        assert!(visits.have_left(next));
        assert!(visits.0.lock().inside.is_empty(), "what is over takes no memory");
    }
}
