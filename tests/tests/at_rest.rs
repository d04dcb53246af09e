//! A part of the campaign of damage at rest: a few thousand damages of all kinds.

use holdfast_tests::{
    at_rest::{Arguments, run},
    campaign::Outcome,
};

#[test]
fn a_damaged_store_gives_no_wrong_bytes_names_the_damage_and_destroys_nothing() {
    let arguments = Arguments { every: 97, from: 5, violations: 1, ..Arguments::default() };
    assert_eq!(run(&arguments), Outcome::Held);
}
