//! Many at once: what is decided together is decided once.

use std::{collections::BTreeSet, sync::Barrier, thread};

use holdfast::{Error, Kind, ids::Time, ownership::conversation::Verb};

use crate::bench::*;

const ROUNDS: usize = 30;

#[test]
fn s02_32_equal_puts_at_once_are_one_artifact() {
    let bench = Bench::new();
    let leased = bench.begin();
    let start = Barrier::new(32);
    let replies: Vec<_> = thread::scope(|scope| {
        let put = || {
            start.wait();
            bench.put(&into_run(&leased.token, "a"), b"the same bytes").expect("puts")
        };
        let threads: Vec<_> = (0..32).map(|_| scope.spawn(put)).collect();
        threads.into_iter().map(|thread| thread.join().expect("ends")).collect()
    });
    assert_eq!(replies.iter().map(|reply| reply.id).collect::<BTreeSet<_>>().len(), 1);
    assert_eq!(replies.iter().filter(|reply| !reply.replayed).count(), 1);
    assert_eq!(bench.list(run(leased.run.run)).len(), 1);
    bench.verify();
}

#[test]
fn s10_s59_of_many_claims_at_once_one_reply_wins() {
    for round in 0..ROUNDS {
        let bench = Bench::new();
        bench.open("c");
        let leased = bench.begin();
        let id = bench.export(&leased.token, "a");
        let start = Barrier::new(8);
        let replies: Vec<_> = thread::scope(|scope| {
            let claim = |n: usize| {
                start.wait();
                bench.claim(&leased.token, "c", ["r0", "r1"][n % 2])
            };
            let threads: Vec<_> = (0..8).map(|n| (n, scope.spawn(move || claim(n)))).collect();
            threads.into_iter().map(|(n, thread)| (n % 2, thread.join().expect("ends"))).collect()
        });
        let won: BTreeSet<_> = replies.iter().filter(|(_, reply)| reply.is_ok()).map(|(reply, _)| *reply).collect();
        assert_eq!(won.len(), 1, "round {round}");
        assert_eq!(replies.iter().filter(|(_, reply)| reply.as_ref().is_ok_and(|reply| !reply.replayed)).count(), 1);
        for (_, reply) in replies {
            match reply {
                Ok(reply) => assert_eq!(ids(&reply), [id]),
                Err(error) => assert_eq!(error.kind(), Kind::AlreadyClaimed),
            }
        }
        bench.verify();
    }
}

#[test]
fn s12_a_put_beside_a_claim_is_in_its_list_or_pending_and_never_both_or_neither() {
    let (mut before, mut behind) = (0, 0);
    for round in 0..ROUNDS {
        let bench = Bench::new();
        bench.open("c");
        let leased = bench.begin();
        bench.export(&leased.token, "first");
        let start = Barrier::new(2);
        let (put, claimed) = thread::scope(|scope| {
            let put = scope.spawn(|| {
                start.wait();
                bench.export(&leased.token, "second")
            });
            start.wait();
            let claimed = ids(&bench.claim(&leased.token, "c", "r").expect("claims"));
            (put.join().expect("ends"), claimed)
        });
        let pending = bench.list(run(leased.run.run)).contains(&put);
        assert_ne!(claimed.contains(&put), pending, "round {round}");
        assert_eq!(bench.list(conversation("c")), claimed);
        if pending {
            behind += 1;
        } else {
            before += 1;
        }
        bench.verify();
    }
    assert_eq!(before + behind, ROUNDS);
}

#[test]
fn s13_a_claim_beside_a_deletion_leaves_nothing_readable() {
    for _ in 0..ROUNDS {
        let bench = Bench::new();
        bench.open("c");
        let leased = bench.begin();
        let id = bench.export(&leased.token, "a");
        let start = Barrier::new(2);
        let claim = thread::scope(|scope| {
            let delete = scope.spawn(|| {
                start.wait();
                bench.verb("c", Verb::Delete).expect("deletes");
            });
            start.wait();
            let claim = bench.claim(&leased.token, "c", "r");
            delete.join().expect("ends");
            claim
        });
        assert_eq!(bench.list(conversation("c")), []);
        match claim {
            Ok(_) => assert_eq!(kind(bench.read(conversation("c"), id)), Kind::Gone),
            Err(error) => {
                assert_eq!(error.kind(), Kind::ConvGone);
                assert_eq!(bench.list(run(leased.run.run)), [id], "nothing moved");
            }
        }
        bench.verify();
    }
}

#[test]
fn s18_of_two_other_ends_for_one_version_one_wins() {
    for _ in 0..ROUNDS {
        let bench = Bench::new();
        let id = bench.put(&into_account("a"), b"a").expect("puts").id;
        let start = Barrier::new(2);
        let ends = [1, 2].map(|days| Time(bench.now().0 + days * DAY));
        let replies: Vec<_> = thread::scope(|scope| {
            let set = |end| {
                start.wait();
                bench.store().set_expiry(account("ann"), id, Some(end), Some(1))
            };
            let threads: Vec<_> = ends.map(|end| scope.spawn(move || set(end))).into_iter().collect();
            threads.into_iter().map(|thread| thread.join().expect("ends")).collect()
        });
        let info = bench.stat(account("ann"), id);
        let won = ends.iter().zip(&replies).filter(|(_, reply)| reply.is_ok()).map(|(end, _)| Some(*end));
        assert_eq!((won.collect::<Vec<_>>(), info.version), (vec![info.expires_at], 2));
        let lost: Vec<_> = replies.iter().filter_map(|reply| reply.as_ref().err().map(Error::kind)).collect();
        assert_eq!(lost, [Kind::VersionConflict]);
        bench.verify();
    }
}

#[test]
fn s24_a_fork_beside_the_deletion_of_its_source_is_all_of_it_or_nothing() {
    const FILES: usize = 100;
    for _ in 0..ROUNDS / 3 {
        let bench = Bench::new();
        bench.open("c");
        bench.open("d");
        for n in 0..FILES {
            bench.put(&into_conversation("c", &format!("f{n}")), b"the same").expect("puts");
        }
        let start = Barrier::new(2);
        let forked = thread::scope(|scope| {
            let delete = scope.spawn(|| {
                start.wait();
                bench.verb("c", Verb::Delete).expect("deletes");
            });
            start.wait();
            let forked = bench.fork("c", "d");
            delete.join().expect("ends");
            forked
        });
        let listed = bench.list(conversation("d"));
        match forked {
            Ok(ids) => assert_eq!((ids.len(), ids), (FILES, listed)),
            Err(error) => assert_eq!((error.kind(), listed.len()), (Kind::ConvGone, 0)),
        }
        bench.verify();
    }
}

#[test]
fn s20_no_read_that_begins_after_a_deletion_succeeds() {
    let bench = Bench::new();
    bench.open("c");
    let files: Vec<_> = (0..200)
        .map(|n| {
            let name = format!("f{n}");
            bench.put(&into_conversation("c", &name), name.as_bytes()).expect("puts").id
        })
        .collect();
    let deleted = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|scope| {
        for part in files.chunks(50) {
            let (bench, deleted) = (&bench, &deleted);
            scope.spawn(move || {
                for _ in 0..20 {
                    for id in part {
                        let was_deleted = deleted.load(std::sync::atomic::Ordering::SeqCst);
                        match bench.read(conversation("c"), *id) {
                            Ok(_) => assert!(!was_deleted, "read behind the deletion"),
                            Err(error) => assert_eq!(error.kind(), Kind::Gone),
                        }
                    }
                }
            });
        }
        bench.verb("c", Verb::Delete).expect("deletes");
        deleted.store(true, std::sync::atomic::Ordering::SeqCst);
    });
    assert_eq!(bench.list(conversation("c")), []);
    bench.verify();
}
