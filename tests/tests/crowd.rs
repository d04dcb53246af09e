//! A small run of the campaign of many threads.

use holdfast_tests::{
    campaign::Outcome,
    crowd::{self, Arguments},
};

#[test]
fn requests_of_one_commit_are_there_together_or_not_at_all() {
    assert_eq!(crowd::run(&Arguments { rounds: 3, from: 100, totals: false }), Outcome::Held);
}
