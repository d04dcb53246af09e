//! Records: what a put answers, who may name it, and what an id is good for.

use holdfast::{Get, Kind, Put, ids::ArtifactId};

use crate::bench::*;

#[test]
fn a1_every_live_artifact_is_in_the_list_of_its_owner() {
    let bench = Bench::new();
    bench.open("c");
    let leased = bench.begin();
    let own = bench.put(&into_account("own"), b"own").expect("puts").id;
    let published = bench.put(&into_conversation("c", "p"), b"p").expect("puts").id;
    let pending = bench.export(&leased.token, "e");
    assert_eq!(bench.list(account("ann")), [own]);
    assert_eq!(bench.list(conversation("c")), [published]);
    assert_eq!(bench.list(run(leased.run.run)), [pending]);
    let mut all: Vec<_> =
        bench.store().list_all(&account("ann"), None, 10).expect("lists").iter().map(|info| info.id).collect();
    let mut wanted = vec![own, published, pending];
    all.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(all, wanted);
    bench.verify();
}

#[test]
fn a2_and_a26_the_answer_to_a_put_names_id_size_digest_and_type() {
    let bench = Bench::new();
    let leased = bench.begin();
    let reply = bench.put(&into_run(&leased.token, "a.txt"), b"some text\n").expect("puts");
    let info = bench.stat(run(leased.run.run), reply.id);
    assert_eq!((info.size, info.sha256, info.media_type), (10, reply.sha256, reply.media_type));
    assert_ne!(reply.id, ArtifactId([0; 16]));
}

#[test]
fn a3_each_artifact_has_one_owner_and_its_record_says_which() {
    let bench = Bench::new();
    bench.open("c");
    let leased = bench.begin();
    let id = bench.export(&leased.token, "a");
    let info = bench.stat(run(leased.run.run), id);
    assert_eq!((info.owner_kind.as_str(), info.owner_id), ("run", leased.run.run.to_string()));
    assert_eq!(kind(bench.read(conversation("c"), id)), Kind::NotFound);
    bench.claim(&leased.token, "c", "r").expect("claims");
    assert_eq!(kind(bench.read(run(leased.run.run), id)), Kind::NotFound);
    assert_eq!(bench.stat(conversation("c"), id).owner_kind.as_str(), "conversation");
}

#[test]
fn a5_and_s39_an_id_out_of_its_scope_is_as_unknown_as_a_random_one() {
    let bench = Bench::new();
    let leased = bench.begin();
    let other = bench.begin();
    let id = bench.export(&leased.token, "a");
    let random = told(bench.read(run(other.run.run), ArtifactId([3; 16])));
    assert_eq!(told(bench.read(run(other.run.run), id)), random);
    assert_eq!(told(bench.store().stat(run(other.run.run), id)), random);
    assert_eq!(told(bench.store().cursor(run(other.run.run), id).map(drop)), random);
    assert_eq!(told(bench.read(account("ann"), id)), random);
}

#[test]
fn a21_a_name_is_a_bare_file_name() {
    let bench = Bench::new();
    bench.open("c");
    let leased = bench.begin();
    for name in ["", ".", "..", "a/b", "a\0", "a\u{202e}b"] {
        assert_eq!(kind(bench.put(&into_run(&leased.token, name), b"a")), Kind::BadName);
        assert_eq!(kind(bench.put(&into_conversation("c", name), b"a")), Kind::BadName);
    }
    assert_eq!(bench.list(run(leased.run.run)), []);
}

#[test]
fn a27_what_was_acknowledged_is_there_after_the_process_dies() {
    let mut bench = Bench::new();
    bench.open("c");
    let leased = bench.begin();
    let pending = bench.export(&leased.token, "a");
    let published = bench.put(&into_conversation("c", "p"), b"p").expect("puts").id;
    bench.restart();
    assert_eq!(bench.read(run(leased.run.run), pending).expect("reads"), b"a");
    assert_eq!(bench.read(conversation("c"), published).expect("reads"), b"p");
    assert_eq!(ids(&bench.claim(&leased.token, "c", "r").expect("the token still counts")), [pending]);
    bench.verify();
}

#[test]
fn a29_a_range_of_what_a_conversation_has_is_read() {
    let bench = Bench::new();
    bench.open("c");
    let bytes = long(7);
    let id = bench.put(&into_conversation("c", "a"), &bytes).expect("puts").id;
    let mut part = Vec::new();
    let get = Get { range: Some(1000..30_000), expect_sha256: None };
    bench.store().get(conversation("c"), id, &get, &mut part).expect("reads");
    assert_eq!(part, bytes[1000..30_000]);
}

#[test]
fn b18_and_s42_a_read_with_another_digest_gives_no_byte() {
    let bench = Bench::new();
    bench.open("c");
    let id = bench.put(&into_conversation("c", "a"), b"a").expect("puts").id;
    let other = bench.put(&into_conversation("c", "b"), b"b").expect("puts").sha256;
    let mut bytes = Vec::new();
    let read = bench.store().get(conversation("c"), id, &Get::expecting(other), &mut bytes);
    assert_eq!((kind(read), bytes.as_slice()), (Kind::DigestMismatch, &[][..]));
}

#[test]
fn c12_an_id_is_short_and_ascii() {
    let bench = Bench::new();
    let leased = bench.begin();
    let id = bench.export(&leased.token, "a").to_string();
    assert!(id.len() <= 32 && id.is_ascii());
}

#[test]
fn c22_the_bytes_are_those_that_were_put() {
    let bench = Bench::new();
    bench.open("c");
    for size in [0, 1, 511, 513, 4096, 20_000, 60 << 10] {
        let bytes = &long(8)[..size];
        let name = format!("f{size}");
        let reply = bench.put(&into_conversation("c", &name), bytes).expect("puts");
        assert_eq!(bench.read(conversation("c"), reply.id).expect("reads"), bytes);
    }
    bench.verify();
}

#[test]
fn c25_and_s03_a_second_copy_costs_a_record() {
    let bench = Bench::new();
    bench.open("c");
    let leased = bench.begin();
    let bytes = long(9);
    bench.put(&into_run(&leased.token, "a"), &bytes).expect("puts");
    let before = bench.store().stats().expect("counts");
    bench.put(&into_run(&leased.token, "b"), &bytes).expect("puts");
    bench.put(&into_conversation("c", "a"), &bytes).expect("puts");
    let after = bench.store().stats().expect("counts");
    assert_eq!((after.artifacts, after.blobs), (before.artifacts + 2, before.blobs));
    assert_eq!(after.unique_bytes, before.unique_bytes);
    bench.verify();
}

#[test]
fn s01_s04_the_same_put_twice_is_one_and_in_two_runs_two() {
    let bench = Bench::new();
    let (one, two) = (bench.begin(), bench.begin());
    let first = bench.put(&Put { op_id: Some("1"), ..into_run(&one.token, "a") }, b"x").expect("puts");
    let again = bench.put(&Put { op_id: Some("2"), ..into_run(&one.token, "a") }, b"x").expect("answers");
    let other = bench.put(&Put { op_id: Some("1"), ..into_run(&two.token, "a") }, b"x").expect("puts");
    assert_eq!((again.id, again.replayed), (first.id, true));
    assert!(!other.replayed && other.id != first.id);
    assert_eq!(bench.store().stats().expect("counts").blobs, 1);
    bench.verify();
}

#[test]
fn s05_a_retry_of_what_is_gone_says_so_and_a_new_op_id_makes_a_new_one() {
    let bench = Bench::new();
    bench.open("c");
    let asked = Put { op_id: Some("1"), ..into_conversation("c", "a") };
    let first = bench.put(&asked, b"a").expect("puts");
    bench.verb("c", holdfast::ownership::conversation::Verb::Reset).expect("resets");
    assert_eq!(kind(bench.put(&asked, b"a")), Kind::Gone);
    let new = bench.put(&Put { op_id: Some("2"), ..asked }, b"a").expect("puts");
    assert!(!new.replayed && new.id != first.id);
    bench.verify();
}

#[test]
fn a35_a_part_is_told_from_the_whole() {
    let bench = Bench::new();
    let leased = bench.begin();
    let capture = Put { logical_size: Some(5_000), ..into_run(&leased.token, "capture.txt") };
    let part = bench.put(&capture, b"the first lines").expect("puts").id;
    let whole = Put { logical_size: Some(9), ..into_run(&leased.token, "whole.txt") };
    let whole = bench.put(&whole, b"all of it").expect("puts").id;
    let said = |id| {
        let info = bench.stat(run(leased.run.run), id);
        (info.size, info.logical_size, info.truncated)
    };
    assert_eq!(said(part), (15, Some(5_000), true));
    assert_eq!(said(whole), (9, Some(9), false));
    let wrong = Put { logical_size: Some(3), ..into_run(&leased.token, "wrong.txt") };
    assert_eq!(kind(bench.put(&wrong, b"more than three")), Kind::InvalidArgument);
    bench.verify();
}

#[test]
fn a36_a_later_version_is_another_artifact_that_names_the_one_before() {
    let mut bench = Bench::new();
    bench.open("c");
    let first = bench.put(&into_conversation("c", "plan.md"), b"first").expect("puts").id;
    let revised = Put { supersedes: Some(first), ..into_conversation("c", "plan.md") };
    let second = bench.put(&revised, b"second").expect("puts").id;
    bench.restart();
    assert_eq!(bench.stat(conversation("c"), second).supersedes, Some(first));
    assert_eq!(bench.read(conversation("c"), first).expect("it stays what it is"), b"first");
    assert_eq!(bench.list(conversation("c")), [first, second]);
    let bobs = into(holdfast::Destination::Account(account("bob")), "x");
    let bobs = bench.put(&bobs, b"x").expect("puts").id;
    for unknown in [ArtifactId([8; 16]), bobs] {
        let wrong = Put { supersedes: Some(unknown), ..into_conversation("c", "other.md") };
        assert_eq!(kind(bench.put(&wrong, b"third")), Kind::NotFound);
    }
    bench.verify();
}

#[test]
fn c14_and_c28_a_record_gives_name_and_kind_and_only_what_was_put_is_listed() {
    let bench = Bench::new();
    assert_eq!(bench.list(account("ann")), []);
    let typed = Put { media_type: Some("application/pdf"), ..into_account("chart.pdf") };
    let id = bench.put(&typed, b"%PDF-1.7").expect("puts").id;
    let info = bench.stat(account("ann"), id);
    assert_eq!((info.name.as_str(), info.media_type.as_str()), ("chart.pdf", "application/pdf"));
    assert_eq!(bench.list(account("ann")), [id]);
}
