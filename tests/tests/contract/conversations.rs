//! Conversations: what they own lives as long as they do.

use holdfast::{
    ConversationScope, Destination, Kind, Put,
    format::conversation::ConversationState,
    ids::{ArtifactId, Time},
    ownership::conversation::Verb,
};

use crate::bench::*;

#[test]
fn a17_deleting_the_conversation_deletes_its_files_at_once_and_for_good() {
    let mut bench = Bench::new();
    bench.open("c");
    let id = bench.put(&into_conversation("c", "a"), b"a").expect("puts").id;
    bench.verb("c", Verb::Delete).expect("deletes");
    bench.verb("c", Verb::Delete).expect("a second time is done");
    for _ in 0..2 {
        assert_eq!(kind(bench.read(conversation("c"), id)), Kind::Gone);
        assert_eq!(bench.stat(conversation("c"), id).state.as_str(), "deleted");
        assert_eq!(bench.list(conversation("c")), []);
        assert_eq!(kind(bench.store().open_conversation(&account("ann"), "c")), Kind::ConvGone);
        bench.restart();
    }
    bench.verify();
}

#[test]
fn a30_what_a_run_made_is_in_the_conversation_for_whoever_asks() {
    let bench = Bench::new();
    bench.open("c");
    let leased = bench.begin();
    let id = bench.export(&leased.token, "a");
    bench.claim(&leased.token, "c", "r").expect("claims");
    assert_eq!(bench.list(conversation("c")), [id]);
    assert_eq!(bench.read(conversation("c"), id).expect("reads"), b"a");
    bench.verify();
}

#[test]
fn b7_a_reset_takes_what_is_there_and_leaves_the_conversation() {
    let bench = Bench::new();
    bench.open("c");
    let old = bench.put(&into_conversation("c", "old"), b"old").expect("puts").id;
    bench.verb("c", Verb::Reset).expect("resets");
    assert_eq!(kind(bench.read(conversation("c"), old)), Kind::Gone);
    let new = bench.put(&into_conversation("c", "new"), b"new").expect("puts").id;
    assert_eq!(bench.list(conversation("c")), [new]);
    let same = bench.put(&into_conversation("c", "old"), b"old").expect("puts");
    assert!(!same.replayed && same.id != old, "what is gone is not found again");
    bench.verify();
}

#[test]
fn b8_and_c20_an_id_is_read_in_its_own_conversation_alone() {
    let bench = Bench::new();
    bench.open("c");
    bench.open("d");
    let id = bench.put(&into_conversation("c", "a"), b"a").expect("puts").id;
    let random = told(bench.read(conversation("d"), ArtifactId([7; 16])));
    assert_eq!(random.0, Kind::NotFound);
    assert_eq!(told(bench.read(conversation("d"), id)), random);
    assert_eq!(told(bench.read(account("ann"), id)), random);
    assert_eq!(told(bench.read(account("bob"), id)), random);
    let as_bob = ConversationScope { account: Some("bob"), ..named("c") };
    assert_eq!(kind(bench.read(holdfast::Scope::Conversation(as_bob), id)), Kind::NotFound);
    assert!(bench.read(conversation("c"), id).is_ok());
}

#[test]
fn b13_the_callers_order_is_kept_beside_that_of_the_commits() {
    let bench = Bench::new();
    bench.open("c");
    for (name, order) in [("first", 9), ("second", 3)] {
        bench.put(&Put { order: Some(order), ..into_conversation("c", name) }, name.as_bytes()).expect("puts");
    }
    let listed = bench.store().list(conversation("c"), None, 10).expect("lists").artifacts;
    assert_eq!(listed.iter().map(|info| info.name.as_str()).collect::<Vec<_>>(), ["first", "second"]);
}

#[test]
fn b16_a_publication_with_an_op_id_is_done_once() {
    let mut bench = Bench::new();
    bench.open("c");
    let asked = Put { op_id: Some("event-1"), ..into_conversation("c", "a") };
    let first = bench.put(&asked, b"a").expect("puts");
    bench.restart();
    let again = bench.put(&asked, b"something else").expect("answers");
    assert_eq!((again.id, again.replayed, again.size), (first.id, true, 1));
    bench.verify();
}

#[test]
fn b19_what_a_conversation_owns_takes_no_end_of_its_own() {
    let bench = Bench::new();
    bench.open("c");
    let ending = Put { expires_at: Some(Time(bench.now().0 + DAY)), ..into_conversation("c", "a") };
    assert_eq!(kind(bench.put(&ending, b"a")), Kind::NotExpirable);
    let id = bench.put(&into_conversation("c", "a"), b"a").expect("puts").id;
    let end = Some(Time(bench.now().0 + DAY));
    assert_eq!(kind(bench.store().set_expiry(conversation("c"), id, end, None)), Kind::NotExpirable);
    bench.later(40_000 * DAY);
    assert_eq!(bench.stat(conversation("c"), id).expires_at, None);
    assert_eq!(bench.read(conversation("c"), id).expect("reads"), b"a");
}

#[test]
fn b24_a_publication_goes_into_an_open_conversation_of_its_account() {
    let bench = Bench::new();
    bench.open("c");
    let id = bench.put(&into_conversation("c", "a"), b"a").expect("puts").id;
    let info = bench.stat(conversation("c"), id);
    assert_eq!((info.owner_kind.as_str(), info.owner_id.as_str(), info.account.as_str()), ("conversation", "c", "ann"));
    let as_bob = Destination::Conversation(ConversationScope { account: Some("bob"), ..named("c") });
    assert_eq!(kind(bench.put(&into(as_bob, "a"), b"a")), Kind::NotFound);
    assert_eq!(kind(bench.put(&into_conversation("nowhere", "a"), b"a")), Kind::NotFound, "nothing is assumed new");
    bench.verb("c", Verb::Delete).expect("deletes");
    assert_eq!(kind(bench.put(&into_conversation("c", "b"), b"b")), Kind::ConvGone);
}

#[test]
fn c9_an_archived_conversation_still_gives_what_it_has() {
    let bench = Bench::new();
    bench.open("c");
    let id = bench.put(&into_conversation("c", "a"), b"a").expect("puts").id;
    bench.verb("c", Verb::Archive).expect("archives");
    assert_eq!(bench.read(conversation("c"), id).expect("reads"), b"a");
    assert_eq!(bench.list(conversation("c")), [id]);
}

#[test]
fn c18_unclaimed_files_of_its_runs_go_with_a_conversation() {
    let bench = Bench::new();
    bench.open("c");
    let leased = bench.begin_for("c");
    let id = bench.export(&leased.token, "a");
    bench.verb("c", Verb::Archive).expect("archiving keeps");
    assert!(bench.read(run(leased.run.run), id).is_ok());
    bench.verb("c", Verb::Delete).expect("deletes");
    assert_eq!(kind(bench.read(run(leased.run.run), id)), Kind::Gone);
    assert_eq!(kind(bench.put(&into_run(&leased.token, "b"), b"b")), Kind::Fenced);
    bench.verify();
}

#[test]
fn s21_a_deleted_conversation_takes_nothing_more() {
    let bench = Bench::new();
    bench.open("c");
    let leased = bench.begin();
    bench.export(&leased.token, "a");
    bench.verb("c", Verb::Delete).expect("deletes");
    bench.verb("c", Verb::Delete).expect("deletes");
    assert_eq!(kind(bench.put(&into_conversation("c", "a"), b"a")), Kind::ConvGone);
    assert_eq!(kind(bench.claim(&leased.token, "c", "r")), Kind::ConvGone);
}

#[test]
fn s48_archiving_lets_a_run_under_way_claim_and_nothing_new_in() {
    let bench = Bench::new();
    bench.open("c");
    let leased = bench.begin_for("c");
    let id = bench.export(&leased.token, "a");
    bench.verb("c", Verb::Archive).expect("archives");
    assert_eq!(ids(&bench.claim(&leased.token, "c", "r").expect("claims")), [id]);
    assert_eq!(kind(bench.put(&into_conversation("c", "b"), b"b")), Kind::ConvArchived);
    bench.verb("c", Verb::Unarchive).expect("opens");
    assert!(bench.put(&into_conversation("c", "b"), b"b").is_ok());
    bench.verify();
}

#[test]
fn s49_a_reset_shuts_out_runs_that_began_before_it_and_no_others() {
    let bench = Bench::new();
    bench.open("c");
    let old = bench.begin();
    bench.export(&old.token, "a");
    bench.verb("c", Verb::Reset).expect("resets");
    let new = bench.begin();
    let id = bench.export(&new.token, "b");
    assert_eq!(kind(bench.claim(&old.token, "c", "r")), Kind::Fenced);
    let again = bench.lease_again(old.run.run).expect("leases");
    assert_eq!(kind(bench.claim(&again.token, "c", "r")), Kind::Fenced, "a new lease jumps no fence");
    assert_eq!(ids(&bench.claim(&new.token, "c", "r").expect("claims")), [id]);
    bench.verify();
}

#[test]
fn s55_a_reset_or_deletion_during_the_copy_shuts_it_out_whatever_its_length() {
    for (verb, expected) in
        [(Verb::Reset, Kind::Fenced), (Verb::Delete, Kind::ConvGone), (Verb::Archive, Kind::ConvArchived)]
    {
        for bytes in [long(5), b"a short stream".to_vec()] {
            let bench = Bench::new();
            bench.open("c");
            let mut stream = During::new(&bytes, || bench.verb("c", verb).expect("done"));
            assert_eq!(kind(bench.store().put(&into_conversation("c", "a"), &mut stream)), expected, "{verb:?}");
            assert_eq!(bench.list(conversation("c")), []);
            assert_eq!(bench.store().stats().expect("counts").chunks, 0, "what was staged is released");
            bench.verify();
        }
    }
}

#[test]
fn a_read_that_began_before_a_deletion_comes_to_its_end() {
    struct Deleting<'a>(&'a Bench, usize);
    impl std::io::Write for Deleting<'_> {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            if self.1 == 0 {
                self.0.verb("c", Verb::Delete).expect("deletes");
            }
            self.1 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let bench = Bench::new();
    bench.open("c");
    let bytes = long(6);
    let id = bench.put(&into_conversation("c", "a"), &bytes).expect("puts").id;
    let mut sink = Deleting(&bench, 0);
    let half = holdfast::Get { range: Some(0..bytes.len() as u64 - 1), expect_sha256: None };
    bench.store().get(conversation("c"), id, &half, &mut sink).expect("comes to its end");
    assert_eq!(sink.1, bytes.len() - 1);
    assert_eq!(kind(bench.read(conversation("c"), id)), Kind::Gone);
}

#[test]
fn conversations_are_listed_page_by_page_without_the_deleted_ones() {
    let bench = Bench::new();
    let names: Vec<String> = (0..7).map(|n| format!("c{n}")).collect();
    for name in &names {
        bench.open(name);
    }
    bench.store().open_conversation(&account("bob"), "bobs").expect("opens");
    bench.verb("c3", Verb::Delete).expect("deletes");
    bench.verb("c4", Verb::Archive).expect("archives");
    let mut found = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let page = bench.store().list_conversations(&account("ann"), after.as_deref(), 2).expect("lists");
        let Some(last) = page.last() else { break };
        after = Some(last.conversation.clone());
        found.extend(page.into_iter().map(|info| (info.conversation, info.state)));
    }
    let wanted: Vec<_> = names
        .into_iter()
        .filter(|name| name != "c3")
        .map(|name| {
            let state = if name == "c4" { ConversationState::Archived } else { ConversationState::Open };
            (name, state)
        })
        .collect();
    assert_eq!(found, wanted);
    let behind = bench.store().list_conversations(&account("ann"), Some("c3"), 1).expect("a deleted one has its place");
    assert_eq!(behind[0].conversation, "c4");
}
