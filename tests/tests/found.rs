//! What the campaigns found once, each by itself.

use std::ops::ControlFlow;

use holdfast::disk::sim::{Budget, Crashes, Mode, Op};
use holdfast_tests::{
    coverage::Coverage,
    faults::script::{Bench, Script, Stage},
    oracle::{self, After, Checks, Used},
};

/// A footer frame that a crash left without its seal was taken for the log, and a second footer followed in the same segment.
#[test]
fn a_log_that_was_sealed_in_part_ends_before_its_footer() {
    const FOOTER: &[u8] = b"HFr1\x06";
    let bench = Bench::of(Script::PutRolls).expect("a store whose log is nearly full");
    let stage = Stage::new(&bench, 1);
    let store = stage.machine.open().expect("opens");
    let (store, answer) = stage.act(Script::PutRolls, &bench, Some(store));
    answer.expect("puts");
    drop(store);
    let log = stage.machine.sim.log();
    let seals = log.ops().iter().rposition(|op| matches!(op, Op::Write { bytes, .. } if bytes.starts_with(FOOTER)));
    let at = seals.expect("the put sealed a segment");
    let mut images = 0;
    // At every byte: the footer must be there to its end, and nothing of the seal.
    let budget = Budget { modes: vec![Mode::Cut], byte_cut_max: 1 << 12, ..Budget::default() };
    let _ = Crashes::new(&log, 1, budget).for_each_image(at..at + 1, &mut |image, point| {
        images += 1;
        let checks = Checks { after: After::Fill, ..Checks::ALL };
        let recovered = oracle::recover(image, &bench.promise, &Used::new(), images, checks, &Coverage::default());
        if let Err(what) = recovered {
            panic!("{point}: {what}");
        }
        ControlFlow::Continue(())
    });
    assert!(images > 100, "{images}");
}
