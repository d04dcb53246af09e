//! Single artifacts: deleted, given another end, linked, forked, renamed; and what happens to them beside each other.

use holdfast::{
    Fork, Get, Kind, Link, Put, Scope,
    ids::{ArtifactId, Time},
    ownership::conversation::Verb,
};

use crate::bench::*;

/// One artifact of each kind of owner, with its scope.
fn one_of_each(bench: &Bench) -> [(Scope<'static>, ArtifactId); 3] {
    bench.open("c");
    let leased = bench.begin();
    [
        (account("ann").into(), bench.put(&into_account("a"), b"of the account").expect("puts").id),
        (conversation("c"), bench.put(&into_conversation("c", "b"), b"of the conversation").expect("puts").id),
        (run(leased.run.run), bench.export(&leased.token, "of the run")),
    ]
}

#[test]
fn what_is_deleted_is_unreadable_at_once_and_for_good() {
    let mut bench = Bench::new();
    for (scope, id) in one_of_each(&bench) {
        let info = bench.delete(scope, id).expect("deletes");
        assert_eq!((info.state.as_str(), info.version), ("deleted", 2));
        for _ in 0..2 {
            assert_eq!(kind(bench.read(scope, id)), Kind::Gone);
            assert_eq!(bench.stat(scope, id).state.as_str(), "deleted");
            assert_eq!(bench.list(scope), []);
            assert_eq!(bench.delete(scope, id).expect("a second time is done").version, 2);
            bench.restart();
        }
    }
    assert!(bench.store().list_all(&account("ann"), None, 10).expect("lists").is_empty());
    bench.verify();
}

#[test]
fn s05_a_retry_of_what_was_deleted_says_so_and_a_new_op_id_makes_a_new_one() {
    let bench = Bench::new();
    bench.open("c");
    let asked = Put { op_id: Some("op-1"), ..into_conversation("c", "a") };
    let first = bench.put(&asked, b"a").expect("puts");
    bench.delete(conversation("c"), first.id).expect("deletes");
    assert_eq!(kind(bench.put(&asked, b"a")), Kind::Gone);
    let second = bench.put(&Put { op_id: Some("op-2"), ..asked }, b"a").expect("puts");
    assert!(!second.replayed && second.id != first.id);
    bench.verify();
}

#[test]
fn an_artifact_of_elsewhere_is_deleted_moved_and_linked_as_little_as_a_random_one() {
    let bench = Bench::new();
    let [_, (_, id), (of_run, pending)] = one_of_each(&bench);
    bench.open("d");
    let unknown = ArtifactId([7; 16]);
    let random = told(bench.delete(conversation("d"), unknown));
    assert_eq!(random.0, Kind::NotFound);
    assert_eq!(told(bench.delete(conversation("d"), id)), random);
    assert_eq!(told(bench.store().set_expiry(account("ann"), id, None, None)), random);
    assert_eq!(told(bench.link(conversation("d"), id, conversation("c"))), random);
    assert_eq!(told(bench.delete(account("bob"), id)), random);
    assert_eq!(kind(bench.link(of_run, pending, conversation("c"))), Kind::InvalidArgument, "it is claimed");
    assert_eq!(kind(bench.link(conversation("c"), id, of_run)), Kind::InvalidArgument);
    assert_eq!(bench.read(conversation("c"), id).expect("untouched"), b"of the conversation");
}

#[test]
fn another_end_counts_at_its_millisecond() {
    let mut bench = Bench::new();
    let end = Time(bench.now().0 + DAY);
    let id = bench.put(&Put { expires_at: Some(end), ..into_account("a") }, b"a").expect("puts").id;
    let later = Time(end.0 + DAY);
    let info = bench.store().set_expiry(account("ann"), id, Some(later), Some(1)).expect("sets");
    assert_eq!((info.expires_at, info.version), (Some(later), 2));
    bench.restart();
    bench.later(2 * DAY - 1);
    assert_eq!(bench.read(account("ann"), id).expect("it is there"), b"a");
    bench.later(1);
    assert_eq!(kind(bench.read(account("ann"), id)), Kind::Gone);
    bench.verify();
}

#[test]
fn s19_what_has_ended_is_not_revived_also_when_the_clock_goes_back() {
    let mut bench = Bench::new();
    let start = bench.now();
    let end = Time(start.0 + DAY);
    let id = bench.put(&Put { expires_at: Some(end), ..into_account("a") }, b"a").expect("puts").id;
    bench.later(DAY);
    for end in [None, Some(Time(end.0 + DAY))] {
        assert_eq!(kind(bench.store().set_expiry(account("ann"), id, end, Some(1))), Kind::Gone);
    }
    bench.machine.clock.set(start);
    bench.restart();
    assert_eq!(kind(bench.read(account("ann"), id)), Kind::Gone, "somebody was told so");
    bench.verify();
}

#[test]
fn a_retry_that_hears_that_its_artifact_expired_hears_it_also_when_the_clock_goes_back() {
    let mut bench = Bench::new();
    let start = bench.now();
    let put = Put { expires_at: Some(Time(start.0 + DAY)), op_id: Some("op"), ..into_account("a") };
    let id = bench.put(&put, b"a").expect("puts").id;
    assert_eq!(bench.put(&put, b"a").expect("is answered").id, id);
    bench.later(DAY);
    assert_eq!(kind(bench.put(&put, b"a")), Kind::Gone);
    bench.machine.clock.set(start);
    bench.restart();
    assert_eq!(kind(bench.put(&put, b"a")), Kind::Gone, "somebody was told so");
    assert_eq!(kind(bench.read(account("ann"), id)), Kind::Gone);
}

#[test]
fn an_end_is_set_for_the_version_that_was_seen_and_lies_ahead() {
    let bench = Bench::new();
    let [(scope, id), _, (of_run, pending)] = one_of_each(&bench);
    let set = |scope, id, end, version| kind(bench.store().set_expiry(scope, id, end, version));
    let later = Some(Time(bench.now().0 + 1));
    assert_eq!(set(scope, id, later, Some(2)), Kind::VersionConflict);
    assert_eq!(set(scope, id, Some(bench.now()), Some(1)), Kind::InvalidArgument);
    assert_eq!(set(of_run, pending, None, Some(1)), Kind::InvalidArgument, "what waits to be claimed has an end");
    assert_eq!(bench.stat(scope, id).version, 1);
    bench.store().set_expiry(scope, id, later, None).expect("whatever its version is");
}

#[test]
fn c3_a_batch_of_records_says_of_each_whether_it_is_there_and_why_not() {
    let bench = Bench::new();
    bench.open("c");
    let put = |name: &str| bench.put(&into_conversation("c", name), name.as_bytes()).expect("puts").id;
    let (here, deleted, unknown) = (put("a"), put("b"), ArtifactId([7; 16]));
    bench.delete(conversation("c"), deleted).expect("deletes");
    let found = bench.store().batch_stat(conversation("c"), &[here, unknown, deleted]).expect("looks");
    let said: Vec<_> =
        found.iter().map(|found| found.as_ref().map_or_else(|e| e.kind().as_str(), |i| i.state.as_str())).collect();
    assert_eq!(said, ["owned", "NOT_FOUND", "deleted"]);
    assert_eq!(kind(bench.store().batch_stat(conversation("nowhere"), &[here])), Kind::NotFound);
}

#[test]
fn c6_a_rename_is_a_link_and_a_deletion_in_one_commit() {
    let mut bench = Bench::new();
    bench.open("c");
    let id = bench.put(&into_conversation("c", "draft"), b"text").expect("puts").id;
    let bytes = bench.store().stats().expect("counts").unique_bytes;
    let reply = bench.store().rename(conversation("c"), id, "final", Some("op")).expect("renames");
    assert_eq!((reply.artifact.name.as_str(), reply.replayed), ("final", false));
    bench.restart();
    let again = bench.store().rename(conversation("c"), id, "final", Some("op")).expect("answers");
    assert_eq!((again.artifact.id, again.replayed), (reply.artifact.id, true));
    assert_eq!(bench.list(conversation("c")), [reply.artifact.id]);
    assert_eq!(bench.read(conversation("c"), reply.artifact.id).expect("reads"), b"text");
    assert_eq!(kind(bench.read(conversation("c"), id)), Kind::Gone);
    assert_eq!(bench.store().stats().expect("counts").unique_bytes, bytes, "no byte twice");
    assert_eq!(kind(bench.store().rename(conversation("c"), reply.artifact.id, "a/b", None)), Kind::BadName);
    bench.verify();
}

#[test]
fn a_link_shares_the_bytes_and_lives_as_its_own_owner_lets_it() {
    let bench = Bench::new();
    bench.open("c");
    bench.store().open_conversation(&account("bob"), "bobs").expect("opens");
    let bytes = long(9);
    let end = Some(Time(bench.now().0 + DAY));
    let source = bench.put(&Put { expires_at: end, ..into_account("a") }, &bytes).expect("puts").id;
    let unique = bench.store().stats().expect("counts").unique_bytes;
    let in_conversation = bench.link(account("ann"), source, conversation("bobs")).expect("links");
    let in_account = bench.link(account("ann"), source, account("carl")).expect("links");
    assert_eq!(bench.store().stats().expect("counts").unique_bytes, unique);
    assert_eq!(bench.stat(conversation("bobs"), in_conversation).account, "bob");
    assert_eq!(bench.stat(account("carl"), in_account).expires_at, end, "it does not outlive its source");
    bench.later(DAY);
    for (scope, id) in [(account("ann"), source), (account("carl"), in_account)] {
        assert_eq!(kind(bench.read(scope, id)), Kind::Gone);
    }
    assert_eq!(bench.read(conversation("bobs"), in_conversation).expect("as long as the conversation"), bytes);
    assert_eq!(kind(bench.link(account("ann"), source, conversation("c"))), Kind::Gone);
    bench.verify();
}

#[test]
fn a_link_with_an_op_id_is_made_once_over_a_restart() {
    let mut bench = Bench::new();
    bench.open("c");
    let id = bench.put(&into_account("a"), b"a").expect("puts").id;
    let link = Link {
        from: account("ann").into(),
        id,
        to: conversation("c"),
        name: Some("b"),
        detach: false,
        op_id: Some("op"),
    };
    let first = bench.store().link(&link).expect("links");
    bench.restart();
    let again = bench.store().link(&link).expect("answers");
    assert_eq!((again.artifact.id, first.replayed, again.replayed), (first.artifact.id, false, true));
    bench.delete(conversation("c"), first.artifact.id).expect("deletes");
    assert_eq!(kind(bench.store().link(&link)), Kind::Gone);
    bench.verify();
}

type End = fn(&Bench, ArtifactId);

/// The source goes before the link is asked for, or behind it; in each way in which a source goes.
#[test]
fn a_link_beside_the_end_of_its_source_survives_or_is_refused() {
    let ends: [(&str, End); 4] = [
        ("deleted", |bench, id| drop(bench.delete(conversation("c"), id).expect("deletes"))),
        ("renamed", |bench, id| drop(bench.store().rename(conversation("c"), id, "b", None).expect("renames"))),
        ("reset", |bench, _| bench.verb("c", Verb::Reset).expect("resets")),
        ("with its conversation", |bench, _| bench.verb("c", Verb::Delete).expect("deletes")),
    ];
    for (how, end) in ends {
        for link_first in [true, false] {
            let mut bench = Bench::new();
            bench.open("c");
            bench.open("d");
            let id = bench.put(&into_conversation("c", "a"), b"a").expect("puts").id;
            if !link_first {
                end(&bench, id);
            }
            let link = bench.link(conversation("c"), id, conversation("d"));
            if link_first {
                end(&bench, id);
            }
            assert_eq!(kind(bench.read(conversation("c"), id)), Kind::Gone, "{how}");
            match link {
                Ok(link) if link_first => {
                    bench.restart();
                    assert_eq!(bench.read(conversation("d"), link).expect("the copy survives"), b"a", "{how}");
                }
                Err(error) if !link_first => {
                    assert_eq!(error.kind(), Kind::Gone, "{how}");
                    assert_eq!(bench.list(conversation("d")), []);
                }
                other => panic!("{how}, link first: {link_first}: {other:?}"),
            }
            bench.verify();
        }
    }
}

/// A read that runs while its artifact goes.
#[test]
fn a_read_that_began_before_a_deletion_or_an_end_comes_to_its_end_and_no_later_one_begins() {
    struct Ending<'a>(&'a dyn Fn(), usize);
    impl std::io::Write for Ending<'_> {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            if self.1 == 0 {
                (self.0)();
            }
            self.1 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let bytes = long(6);
    let part = Get { range: Some(0..bytes.len() as u64 - 1), expect_sha256: None };
    for deletes in [true, false] {
        for read_first in [true, false] {
            let bench = Bench::new();
            let end = Some(Time(bench.now().0 + DAY));
            let id = bench.put(&Put { expires_at: end, ..into_account("a") }, &bytes).expect("puts").id;
            let go = || {
                if deletes {
                    bench.delete(account("ann"), id).expect("deletes");
                } else {
                    bench.later(DAY);
                }
            };
            if read_first {
                let mut sink = Ending(&go, 0);
                bench.store().get(account("ann"), id, &part, &mut sink).expect("comes to its end");
                assert_eq!(sink.1, bytes.len() - 1);
            } else {
                go();
            }
            assert_eq!(kind(bench.read(account("ann"), id)), Kind::Gone, "deletes: {deletes}");
            bench.verify();
        }
    }
}

#[test]
fn s23_a_fork_of_a_thousand_files_outlives_its_source_and_costs_no_bytes() {
    let mut bench = Bench::new();
    bench.open("c");
    bench.open("d");
    for n in 0..1000 {
        let name = format!("f{n}");
        bench.put(&into_conversation("c", &name), format!("content {}", n % 10).as_bytes()).expect("puts");
    }
    let before = bench.store().stats().expect("counts");
    let forked = bench.fork("c", "d").expect("forks");
    bench.verb("c", Verb::Delete).expect("deletes");
    bench.restart();
    let after = bench.store().stats().expect("counts");
    assert_eq!((after.unique_bytes, after.blobs), (before.unique_bytes, before.blobs));
    assert_eq!((forked.len(), after.artifacts - before.artifacts), (1000, 1000));
    assert_eq!(bench.list(conversation("d")), forked);
    for (n, id) in forked.iter().enumerate().step_by(97) {
        assert_eq!(bench.read(conversation("d"), *id).expect("reads"), format!("content {}", n % 10).as_bytes());
        assert_eq!(bench.stat(conversation("d"), *id).name, format!("f{n}"));
    }
    bench.verify();
}

#[test]
fn a_fork_ends_where_it_is_told_and_a_retry_shows_what_has_gone_since() {
    let bench = Bench::new();
    bench.open("c");
    bench.open("d");
    let put = |name: &str| bench.put(&into_conversation("c", name), name.as_bytes()).expect("puts").id;
    let sources = ["a", "b", "c"].map(put);
    let fork = Fork { from: named("c"), to: named("d"), upto: Some(sources[1]), op_id: Some("op") };
    let first = bench.store().fork(&fork).expect("forks");
    assert_eq!(bench.list(conversation("d")).len(), 2);
    bench.delete(conversation("d"), id_of(&first.artifacts[0])).expect("deletes");
    let again = bench.store().fork(&fork).expect("answers");
    assert!(again.replayed && !first.replayed);
    let ids = |reply: &holdfast::ForkReply| reply.artifacts.iter().map(id_of).collect::<Vec<_>>();
    assert_eq!(ids(&again), ids(&first));
    assert_eq!(again.artifacts[0], holdfast::ClaimedInfo::Gone(id_of(&first.artifacts[0]), "deleted"));
    bench.verify();
}
