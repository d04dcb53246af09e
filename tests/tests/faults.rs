//! A small run of the fault campaign: the calls of the operations that write.

use holdfast_tests::{
    campaign::Outcome,
    faults::{self, Arguments, script::Script},
};

#[test]
fn a_call_that_fails_while_a_put_or_an_open_runs_loses_nothing() {
    let arguments = Arguments { only: Some(Script::PutRolls), ..Arguments::default() };
    assert_eq!(faults::run(&arguments), Outcome::Held);
}
