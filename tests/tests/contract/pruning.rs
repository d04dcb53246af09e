//! Pruning deletes conversations by age or number, as a deletion does.

use holdfast::{
    ConversationInfo, Kind, Retain, format::conversation::ConversationState, ownership::conversation::Verb,
};

use crate::bench::*;

const NAMES: [&str; 4] = ["first", "second", "third", "fourth"];

/// Four conversations, a day apart, with a file each; the second is archived.
fn four() -> Bench {
    let bench = Bench::new();
    for name in NAMES {
        bench.open(name);
        bench.put(&into_conversation(name, "file"), name.as_bytes()).expect("puts");
        bench.later(DAY);
    }
    bench.verb("second", Verb::Archive).expect("archives");
    bench
}

fn prune(bench: &Bench, retain: Retain, dry: bool) -> Vec<String> {
    let steps = bench.store().prune(&account("ann"), retain, dry).expect("begins");
    let steps: Vec<Vec<ConversationInfo>> = steps.collect::<Result<_, _>>().expect("prunes");
    steps.into_iter().flatten().map(|info| info.conversation).collect()
}

fn there(bench: &Bench) -> Vec<String> {
    let listed = bench.store().list_conversations(&account("ann"), None, 1000).expect("lists");
    listed.into_iter().map(|info| info.conversation).collect()
}

/// Everything that a caller can see of the four.
fn seen(bench: &Bench) -> Vec<(ConversationState, Vec<Kind>, usize)> {
    let store = bench.store();
    let of = |name: &&str| {
        let state = store.conversation(&named(name)).expect("known").state;
        let all = store.list_sorted(conversation(name), holdfast::ListOrder::Native).expect("lists");
        let errors = [
            store.open_conversation(&account("ann"), name).err(),
            bench.put(&into_conversation(name, "late"), b"late").err(),
        ];
        (state, errors.into_iter().flatten().map(|error| error.kind()).collect(), all.len())
    };
    NAMES.iter().map(of).collect()
}

#[test]
fn b7_and_c18_what_is_pruned_is_deleted_and_the_rest_stays() {
    let bench = four();
    let file = bench.list(conversation("first"))[0];
    let kept = bench.list(conversation("third"))[0];
    let retain = Retain::OpenedWithin(3 * DAY - 1);
    assert_eq!(prune(&bench, retain, true), ["first", "second"], "to the millisecond, the archived one too");
    assert_eq!(there(&bench), NAMES, "that was dry");
    assert_eq!(prune(&bench, retain, false), ["first", "second"]);
    assert_eq!(there(&bench), ["third", "fourth"]);
    assert_eq!(prune(&bench, retain, false), [""; 0], "nothing is left to do");
    assert_eq!(kind(bench.read(conversation("first"), file)), Kind::Gone);
    assert_eq!(bench.read(conversation("third"), kept).expect("reads"), b"third");
    bench.verify();
}

#[test]
fn s52_pruned_by_number_pruned_by_age_and_deleted_are_the_same() {
    let by_number = four();
    assert_eq!(prune(&by_number, Retain::Newest(2), false), ["first", "second"]);
    let by_age = four();
    assert_eq!(prune(&by_age, Retain::OpenedWithin(3 * DAY - 1), false), ["first", "second"]);
    let one_by_one = four();
    for name in ["first", "second"] {
        one_by_one.verb(name, Verb::Delete).expect("deletes");
    }
    let deleted = seen(&one_by_one);
    assert_eq!(seen(&by_number), deleted);
    assert_eq!(seen(&by_age), deleted);

    let reset = four();
    let file = reset.list(conversation("first"))[0];
    reset.verb("first", Verb::Reset).expect("resets");
    assert_eq!(kind(reset.read(conversation("first"), file)), Kind::Gone, "its file has gone in the same way");
    for bench in [by_number, by_age, one_by_one, reset] {
        bench.verify();
    }
}

#[test]
fn s52_more_than_a_commit_takes_are_pruned_step_by_step_and_nobody_elses() {
    let mut bench = Bench::new();
    let store = bench.store();
    for number in 0..2_345 {
        store.open_conversation(&account("ann"), &format!("c{number}")).expect("opens");
    }
    store.open_conversation(&account("bob"), "his").expect("opens");
    let steps = store.prune(&account("ann"), Retain::Newest(45), false).expect("begins");
    let steps: Vec<usize> = steps.map(|step| step.expect("prunes").len()).collect();
    assert_eq!(steps, [1000, 1000, 300]);
    assert_eq!(prune(&bench, Retain::Newest(1_000_000), false), [""; 0]);
    bench.restart();
    let left = there(&bench);
    assert_eq!((left.len(), left[0].as_str()), (45, "c2300"));
    assert_eq!(bench.store().list_conversations(&account("bob"), None, 10).expect("lists").len(), 1);
    assert_eq!(prune(&bench, Retain::Newest(0), true).len(), 45);
    assert_eq!(prune(&bench, Retain::OpenedWithin(0), false).len(), 45);
    assert_eq!(there(&bench), [""; 0]);
    bench.verify();
}
