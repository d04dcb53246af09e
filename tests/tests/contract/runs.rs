//! Runs: putting, leasing, claiming, finishing.

use holdfast::{
    BeginRun, ClaimedInfo, Kind, Put, RunScope, Tag,
    format::{artifact::Origin, claim::SkipReason, run::RunState},
    ids::{ArtifactId, RunId, Time},
    ownership::conversation::Verb,
};

use crate::bench::*;

#[test]
fn a6_a_claim_is_all_or_nothing_under_a_live_lease() {
    let bench = Bench::new();
    bench.open("c");
    let leased = bench.begin();
    let id = bench.export(&leased.token, "a");
    bench.later(10 * 60 * 1000);
    assert_eq!(kind(bench.claim(&leased.token, "c", "r")), Kind::LeaseLost);
    assert_eq!((bench.list(conversation("c")), bench.list(run(leased.run.run))), (vec![], vec![id]));
    let again = bench.lease_again(leased.run.run).expect("leases");
    assert_eq!(kind(bench.claim(&leased.token, "c", "r")), Kind::StaleToken);
    assert_eq!(ids(&bench.claim(&again.token, "c", "r").expect("claims")), [id]);
    bench.verify();
}

#[test]
fn a7_a_claim_lists_every_put_that_was_committed_before_it() {
    let bench = Bench::new();
    bench.open("c");
    let leased = bench.begin();
    let mut put: Vec<_> = (0..40).map(|n| bench.export(&leased.token, &format!("f{n}"))).collect();
    let bytes = long(1);
    put.push(bench.put(&into_run(&leased.token, "long"), &bytes).expect("puts").id);
    assert_eq!(ids(&bench.claim(&leased.token, "c", "r").expect("claims")), put);
    assert_eq!(bench.read(conversation("c"), put[40]).expect("reads"), bytes);
    bench.verify();
}

#[test]
fn a8_and_a12_only_exports_and_model_outputs_go_along() {
    let bench = Bench::new();
    bench.open("c");
    let leased = bench.begin();
    let put = |origin: Origin| {
        let asked = Put { origin, ..into_run(&leased.token, origin.as_str()) };
        bench.put(&asked, origin.as_str().as_bytes()).expect("puts").id
    };
    let all = Origin::ALL.map(put);
    let claimed = ids(&bench.claim(&leased.token, "c", "r").expect("claims"));
    assert_eq!(claimed, [all[1], all[2]]);
    assert_eq!(bench.list(run(leased.run.run)), [all[0], all[3], all[4]]);
    bench.verify();
}

#[test]
fn a9_the_order_is_that_of_the_puts_on_every_replay_and_after_a_restart() {
    let mut bench = Bench::new();
    bench.open("c");
    let leased = bench.begin();
    let put: Vec<_> = ["z", "a", "m"].map(|name| bench.export(&leased.token, name)).to_vec();
    assert_eq!(ids(&bench.claim(&leased.token, "c", "r").expect("claims")), put);
    bench.restart();
    let again = bench.claim(&leased.token, "c", "r").expect("answers");
    assert_eq!((ids(&again), again.replayed), (put.clone(), true));
    assert_eq!(bench.list(conversation("c")), put);
    bench.verify();
}

#[test]
fn a10_of_one_name_and_content_the_first_goes_and_the_others_stay_with_their_end() {
    let bench = Bench::new();
    bench.open("c");
    let leased = bench.begin();
    let first = bench.put(&into_run(&leased.token, "a"), b"x").expect("puts").id;
    let twin = Put { origin: Origin::ModelOutput, ..into_run(&leased.token, "a") };
    let second = bench.put(&twin, b"x").expect("puts").id;
    let reply = bench.claim(&leased.token, "c", "r").expect("claims");
    assert_eq!((ids(&reply), reply.skipped), (vec![first], vec![(second, SkipReason::Duplicate)]));
    let left = bench.stat(run(leased.run.run), second);
    assert_eq!((left.state.as_str(), left.expires_at), ("pending", Some(Time(bench.now().0 + 30 * DAY))));
    bench.verify();
}

#[test]
fn a11_and_s11_the_same_reply_gets_the_same_ids_and_another_one_is_too_late() {
    let bench = Bench::new();
    bench.open("c");
    let leased = bench.begin();
    let id = bench.export(&leased.token, "a");
    let first = bench.claim(&leased.token, "c", "r").expect("claims");
    assert!(!first.replayed);
    bench.export(&leased.token, "b");
    let again = bench.claim(&leased.token, "c", "r").expect("answers");
    assert_eq!((ids(&again), again.replayed), (vec![id], true));
    assert_eq!(kind(bench.claim(&leased.token, "c", "r2")), Kind::AlreadyClaimed);
    assert_eq!(bench.list(conversation("c")), [id]);
    bench.verify();
}

#[test]
fn a13_claim_clears_expiry() {
    let bench = Bench::new();
    bench.open("c");
    let leased = bench.begin();
    let id = bench.export(&leased.token, "a");
    assert_eq!(bench.stat(run(leased.run.run), id).expires_at, Some(Time(bench.now().0 + 30 * DAY)));
    bench.claim(&leased.token, "c", "r").expect("claims");
    let info = bench.stat(conversation("c"), id);
    assert_eq!((info.expires_at, info.state.as_str(), info.owner_id.as_str()), (None, "owned", "c"));
    bench.later(10_000 * DAY);
    assert_eq!(bench.read(conversation("c"), id).expect("it lives as long as the conversation"), b"a");
    bench.verify();
}

#[test]
fn a14_and_s15_a_claim_into_another_accounts_conversation_tells_nothing_of_it() {
    let bench = Bench::new();
    bench.store().open_conversation(&account("bob"), "bobs").expect("opens");
    bench.store().open_conversation(&account("bob"), "gone").expect("opens");
    bench.verb("gone", Verb::Delete).expect("deletes");
    let leased = bench.begin();
    let id = bench.export(&leased.token, "a");
    let random = told(bench.claim(&leased.token, "nowhere", "r"));
    assert_eq!(random.0, Kind::NotFound);
    for theirs in ["bobs", "gone"] {
        assert_eq!(told(bench.claim(&leased.token, theirs, "r")), random);
    }
    assert_eq!(bench.list(run(leased.run.run)), [id]);
    bench.verify();
}

#[test]
fn a15_a_claim_behind_a_fence_moves_nothing() {
    let bench = Bench::new();
    bench.open("c");
    let leased = bench.begin();
    let id = bench.export(&leased.token, "a");
    bench.verb("c", Verb::Reset).expect("resets");
    assert_eq!(kind(bench.claim(&leased.token, "c", "r")), Kind::Fenced);
    assert_eq!((bench.list(conversation("c")), bench.list(run(leased.run.run))), (vec![], vec![id]));
    bench.verify();
}

#[test]
fn a19_and_s16_a_failed_run_keeps_its_files_for_30_days_and_claims_no_more() {
    for outcome in [RunState::Failed, RunState::Cancelled] {
        let bench = Bench::new();
        bench.open("c");
        let leased = bench.begin();
        let id = bench.export(&leased.token, "a");
        bench.finish(&leased.token, outcome, false).expect("finishes");
        assert_eq!(kind(bench.claim(&leased.token, "c", "r")), Kind::RunClosed);
        bench.later(30 * DAY - 1);
        assert_eq!(bench.read(run(leased.run.run), id).expect("kept"), b"a");
        bench.later(1);
        assert_eq!(kind(bench.read(run(leased.run.run), id)), Kind::Gone);
        assert_eq!(bench.stat(run(leased.run.run), id).state.as_str(), "expired");
        bench.verify();
    }
}

#[test]
fn a24_a_claim_asks_where_a_file_came_from_and_not_who_wrote_it() {
    let bench = Bench::new();
    bench.open("c");
    let leased = bench.begin();
    let plain = bench.export(&leased.token, "a");
    let with_all =
        Put { op_id: Some("op"), order: Some(3), media_type: Some("text/x-odd"), ..into_run(&leased.token, "b") };
    let full = bench.put(&with_all, b"b").expect("puts").id;
    assert_eq!(ids(&bench.claim(&leased.token, "c", "r").expect("claims")), [plain, full]);
}

#[test]
fn a25_and_a32_the_same_put_into_a_run_is_one_artifact() {
    let bench = Bench::new();
    let leased = bench.begin();
    let first = bench.put(&into_run(&leased.token, "a"), b"x").expect("puts");
    let again = bench.put(&into_run(&leased.token, "a"), b"x").expect("answers");
    assert_eq!((again.id, first.replayed, again.replayed), (first.id, false, true));
    let by_op = Put { op_id: Some("op"), ..into_run(&leased.token, "b") };
    let made = bench.put(&by_op, b"y").expect("puts");
    let retry = bench.put(&Put { name: "other", ..by_op }, b"z").expect("answers");
    assert_eq!((retry.id, retry.replayed), (made.id, true));
    for other in [
        Put { origin: Origin::ModelOutput, ..into_run(&leased.token, "a") },
        Put { media_type: Some("text/other"), ..into_run(&leased.token, "a") },
        into_run(&leased.token, "c"),
    ] {
        assert!(!bench.put(&other, b"x").expect("puts").replayed);
    }
    let elsewhere = bench.begin();
    assert!(!bench.put(&into_run(&elsewhere.token, "a"), b"x").expect("puts").replayed);
    bench.verify();
}

#[test]
fn a31_and_s44_a_parent_claims_nothing_of_its_child() {
    let bench = Bench::new();
    bench.open("c");
    let parent = bench.begin();
    let begin = BeginRun { parent: Some(parent.run.run), ..BeginRun::of(account("ann")) };
    let child = bench.store().begin_run(&begin).expect("begins");
    assert_eq!(child.run.parent, Some(parent.run.run));
    let own = bench.export(&parent.token, "own");
    let of_child = bench.export(&child.token, "of the child");
    assert_eq!(ids(&bench.claim(&parent.token, "c", "r").expect("claims")), [own]);
    assert_eq!(ids(&bench.claim(&child.token, "c", "r2").expect("claims")), [of_child]);
    bench.verify();
}

#[test]
fn a34_after_the_finish_nothing_is_claimed() {
    let bench = Bench::new();
    bench.open("c");
    let leased = bench.begin();
    bench.export(&leased.token, "a");
    bench.finish(&leased.token, RunState::Succeeded, false).expect("finishes");
    assert_eq!(kind(bench.claim(&leased.token, "c", "r")), Kind::RunClosed);
    assert_eq!(kind(bench.put(&into_run(&leased.token, "b"), b"b")), Kind::RunClosed);
    assert_eq!(kind(bench.finish(&leased.token, RunState::Failed, false)), Kind::AlreadyFinished);
    bench.finish(&leased.token, RunState::Succeeded, false).expect("the same again");
}

#[test]
fn a37_and_s56_a_paused_run_goes_on_with_the_next_lease_and_its_files_stay() {
    let bench = Bench::new();
    bench.open("c");
    let leased = bench.begin();
    let before = bench.export(&leased.token, "before");
    let paused = bench.store().pause_run(TENANT, &leased.token).expect("pauses");
    assert_eq!((paused.lease_until, paused.state), (None, RunState::Active));
    bench.later(3 * DAY);
    let again = bench.lease_again(leased.run.run).expect("leases");
    assert_eq!(again.run.generation, 2);
    let after = bench.export(&again.token, "after");
    assert_eq!(ids(&bench.claim(&again.token, "c", "r").expect("claims")), [before, after]);
    bench.verify();
}

#[test]
fn a38_after_a_crash_between_two_databases_the_claim_is_replayed_or_taken_back() {
    let mut bench = Bench::new();
    bench.open("c");
    let leased = bench.begin_for("c");
    let id = bench.export(&leased.token, "a");
    bench.claim(&leased.token, "c", "r").expect("claims");
    bench.restart();
    let runs = bench.store().list_runs(&account("ann"), None, 10).expect("lists");
    assert_eq!((runs[0].run, runs[0].conversation.as_deref()), (leased.run.run, Some("c")));
    let conversations = bench.store().list_conversations(&account("ann"), None, 10).expect("lists");
    assert_eq!(conversations[0].changed_lsn, runs[0].changed_lsn, "both say that the claim was the last change");
    assert!(bench.claim(&leased.token, "c", "r").expect("answers").replayed);
    bench.finish(&leased.token, RunState::Failed, true).expect("takes it back");
    assert_eq!((bench.list(conversation("c")), bench.list(run(leased.run.run))), (vec![], vec![id]));
    assert_eq!(bench.stat(run(leased.run.run), id).expires_at, Some(Time(bench.now().0 + 30 * DAY)));
    bench.verify();
}

#[test]
fn a_claim_shows_what_has_gone_since() {
    let bench = Bench::new();
    bench.open("c");
    let leased = bench.begin();
    let id = bench.export(&leased.token, "a");
    bench.claim(&leased.token, "c", "r").expect("claims");
    bench.verb("c", Verb::Reset).expect("resets");
    let again = bench.claim(&leased.token, "c", "r").expect("answers");
    assert_eq!(again.artifacts, [ClaimedInfo::Gone(id, "deleted")]);
}

#[test]
fn a_run_begun_twice_by_one_request_is_one_also_after_a_restart() {
    let mut bench = Bench::new();
    let begin = BeginRun { request_id: Some("job-1"), ..BeginRun::of(account("ann")) };
    let first = bench.store().begin_run(&begin).expect("begins");
    bench.restart();
    let again = bench.store().begin_run(&begin).expect("answers");
    assert_eq!((again.run.run, again.token), (first.run.run, first.token));
    let other = BeginRun { request_id: Some("job-1"), ..BeginRun::of(account("bob")) };
    assert_ne!(bench.store().begin_run(&other).expect("begins").run.run, first.run.run);
}

#[test]
fn tags_are_kept_as_hashes_alone() {
    let bench = Bench::new();
    let tag = Tag { kind: "email", key: "somebody.unusual@example.org" };
    let begin = BeginRun { tags: &[tag], ..BeginRun::of(account("ann")) };
    let leased = bench.store().begin_run(&begin).expect("begins");
    assert!(!bench.store().tag_run(TENANT, &leased.token, &[tag]).expect("tags"));
    let scope = RunScope { tenant: TENANT, account: None, run: leased.run.run };
    assert!(!bench.store().tag_any_run(&scope, &[Tag { kind: "person", key: "P" }]).expect("tags"));
    assert_eq!(bench.store().run(&scope).expect("there").tags, 2);
    let image = bench.machine.sim.image();
    for name in image.names() {
        let bytes = image.read(name).expect("there");
        let found = bytes.windows(8).any(|window| window == b"unusual@");
        assert!(!found, "{name} holds the text of a tag");
    }
}

#[test]
fn what_is_wrong_with_an_argument_is_said_and_changes_nothing() {
    let bench = Bench::new();
    bench.open("c");
    let leased = bench.begin();
    let begin = BeginRun::of(account("ann"));
    let refused = |begin: &BeginRun<'_>| kind(bench.store().begin_run(begin));
    assert_eq!(refused(&BeginRun { ttl: 0, ..begin }), Kind::InvalidArgument);
    assert_eq!(refused(&BeginRun { lease: u64::MAX, ..begin }), Kind::InvalidArgument);
    assert_eq!(refused(&BeginRun { conversation: Some("nowhere"), ..begin }), Kind::NotFound);
    assert_eq!(refused(&BeginRun { conversation: Some("a b"), ..begin }), Kind::InvalidArgument);
    assert_eq!(refused(&BeginRun { parent: Some(RunId([0; 16])), ..begin }), Kind::NotFound);
    assert_eq!(refused(&BeginRun { again: Some(RunId([0; 16])), ..begin }), Kind::NotFound);
    assert_eq!(refused(&BeginRun { request_id: Some(""), ..begin }), Kind::InvalidArgument);
    assert_eq!(refused(&BeginRun { tags: &[Tag { kind: "", key: "x" }], ..begin }), Kind::InvalidArgument);
    assert_eq!(refused(&BeginRun { tags: &[Tag { kind: "email", key: "a\nb" }], ..begin }), Kind::InvalidArgument);
    assert_eq!(kind(bench.claim(&leased.token, "c", "a reply")), Kind::InvalidArgument);
    assert_eq!(kind(bench.store().renew_run(TENANT, &leased.token, 0)), Kind::InvalidArgument);
    assert_eq!(kind(bench.store().renew_run("nobody", &leased.token, 1)), Kind::NotFound);
    let ending = Put { expires_at: Some(Time(u64::MAX)), ..into_run(&leased.token, "a") };
    assert_eq!(kind(bench.put(&ending, b"a")), Kind::NotExpirable);
    assert_eq!(bench.store().list_runs(&account("ann"), None, 10).expect("lists").len(), 1);
    assert_eq!(kind(bench.read(run(leased.run.run), ArtifactId([9; 16]))), Kind::NotFound);
}

#[test]
fn s07_a_finish_shuts_out_a_put_that_streams() {
    let bench = Bench::new();
    let leased = bench.begin();
    let bytes = long(2);
    let mut stream = During::new(&bytes, || bench.finish(&leased.token, RunState::Succeeded, false).expect("finishes"));
    assert_eq!(kind(bench.store().put(&into_run(&leased.token, "a"), &mut stream)), Kind::RunClosed);
    assert_eq!(bench.list(run(leased.run.run)), []);
    assert_eq!(bench.store().stats().expect("counts").chunks, 0, "what was staged is released");
    bench.verify();
}

#[test]
fn s06_a_new_lease_shuts_out_the_old_ones_stream() {
    let bench = Bench::new();
    let leased = bench.begin();
    let bytes = long(2);
    let mut stream = During::new(&bytes, || drop(bench.lease_again(leased.run.run).expect("leases")));
    assert_eq!(kind(bench.store().put(&into_run(&leased.token, "a"), &mut stream)), Kind::StaleToken);
    assert_eq!(bench.store().stats().expect("counts").chunks, 0, "what was staged is released");
    bench.verify();
}

#[test]
fn s14_a_lease_that_ends_a_millisecond_before_the_claim_is_lost() {
    for (early, expected) in [(1, None), (0, Some(Kind::LeaseLost))] {
        let bench = Bench::new();
        bench.open("c");
        let leased = bench.begin();
        bench.export(&leased.token, "a");
        bench.later(10 * 60 * 1000 - early);
        assert_eq!(bench.claim(&leased.token, "c", "r").err().map(|error| error.kind()), expected);
    }
}

#[test]
fn s17_what_ended_a_millisecond_before_the_claim_is_left() {
    for (early, taken) in [(1, 2), (0, 1)] {
        let bench = Bench::new();
        bench.open("c");
        let leased = bench.begin();
        let ending = bench.export(&leased.token, "a");
        let other = bench.export(&leased.token, "b");
        let end = Some(Time(bench.now().0 + 1000));
        bench.store().set_expiry(run(leased.run.run), ending, end, Some(1)).expect("sets");
        bench.later(1000 - early);
        let reply = bench.claim(&leased.token, "c", "r").expect("claims");
        assert_eq!(ids(&reply), [ending, other][2 - taken..]);
        let left = if taken == 2 { vec![] } else { vec![(ending, SkipReason::Expired)] };
        assert_eq!(reply.skipped, left);
        bench.later(1000);
        assert_eq!(bench.list(conversation("c")).len(), taken, "what was claimed has no end any more");
        bench.verify();
    }
}

#[test]
fn s57_a_put_that_streams_longer_than_the_lease_gets_in() {
    let bench = Bench::new();
    bench.open("c");
    let leased = bench.begin();
    let bytes = long(4);
    let mut stream = During::new(&bytes, || {
        bench.later(9 * 60 * 1000);
        bench.store().renew_run(TENANT, &leased.token, 10 * 60 * 1000).expect("renews");
        bench.later(9 * 60 * 1000);
    });
    let id = bench.store().put(&into_run(&leased.token, "a"), &mut stream).expect("puts").id;
    assert_eq!(ids(&bench.claim(&leased.token, "c", "r").expect("claims")), [id]);
    bench.verify();
}

#[test]
fn s58_what_was_deleted_meanwhile_does_not_come_back_with_a_released_claim() {
    for verb in [Verb::Delete, Verb::Reset] {
        let bench = Bench::new();
        bench.open("c");
        let leased = bench.begin();
        let id = bench.export(&leased.token, "a");
        bench.claim(&leased.token, "c", "r").expect("claims");
        bench.verb("c", verb).expect("done");
        bench.finish(&leased.token, RunState::Failed, true).expect("finishes");
        assert_eq!(bench.list(run(leased.run.run)), []);
        assert_eq!(kind(bench.read(conversation("c"), id)), Kind::Gone);
        bench.verify();
    }
}
