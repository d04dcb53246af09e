//! A small run of the fault campaign: the calls of the operations that write.

use holdfast_tests::{
    campaign::Outcome,
    faults::{self, Arguments, script::Script},
};

fn spoil(script: Script) {
    assert_eq!(faults::run(&Arguments { only: Some(script), ..Arguments::default() }), Outcome::Held);
}

#[test]
fn a_call_that_fails_while_a_put_goes_on_in_the_next_segment_loses_nothing() {
    spoil(Script::PutRolls);
}

#[test]
fn a_call_that_fails_while_a_store_is_made_leaves_none_or_a_whole_one() {
    spoil(Script::Init);
}

#[test]
fn a_call_that_fails_while_a_store_is_read_is_an_error_and_no_answer() {
    spoil(Script::Get);
}
