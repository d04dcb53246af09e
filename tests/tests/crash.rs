//! Small runs of the crash campaign.

use holdfast_tests::{
    campaign::Outcome,
    crash::{self, Arguments, explore::Profile},
};

fn run(arguments: Arguments) -> Outcome {
    crash::run(&Arguments { coverage: 0, ..arguments })
}

#[test]
fn what_was_acknowledged_is_there_after_every_crash() {
    assert_eq!(run(Arguments { images: 6000, ..Arguments::default() }), Outcome::Held);
}

#[test]
fn a_filesystem_that_keeps_lengths_behind_bytes_changes_nothing() {
    let arguments = Arguments { images: 1500, from: 1_000_001, profile: Profile::Ext4Ordered, ..Arguments::default() };
    assert_eq!(run(arguments), Outcome::Held);
}

#[test]
fn a_crash_that_does_not_exist_is_told() {
    for text in ["nothing", "1:99999999:M0:0"] {
        assert_eq!(run(Arguments { replay: Some(text.to_owned()), ..Arguments::default() }), Outcome::Broke, "{text}");
    }
}
