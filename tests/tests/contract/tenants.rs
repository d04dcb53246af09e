//! Tenants: what is of one is unknown to every other.

use std::ops::ControlFlow;

use holdfast::{
    AccountScope, ConversationScope, Destination, Get, Kind, Put, Scope, Store, VerifyOptions,
    disk::sim::{Budget, Crashes, Image, Mode, SimDisk},
    ids::{ArtifactId, TenantNumber},
};
use holdfast_tests::{
    coverage::Coverage,
    harness::{Machine, machine::START},
    oracle::independent,
};

use crate::bench::{Bench, TENANT, account, conversation, into, into_account, kind, named, told};

const OTHER: &str = "acme";

fn of_other() -> AccountScope<'static> {
    AccountScope { tenant: OTHER, account: "ann" }
}

fn into_other(name: &str) -> Put<'_> {
    into(Destination::Account(of_other()), name)
}

#[test]
fn a5_and_c25_nothing_of_one_tenant_is_known_in_another() {
    let bench = Bench::new();
    let bytes = [7; 3000];
    bench.open("talk");
    let ours = bench.put(&into_account("a"), &bytes).expect("puts").id;
    bench.put(&into(Destination::Conversation(named("talk")), "a"), &bytes).expect("puts");
    let chunks = bench.store().stats().expect("counts").chunks;

    assert_eq!(kind(bench.put(&into_other("a"), &bytes)), Kind::NotFound, "no tenant comes into being by being named");
    bench.store().create_tenant(OTHER).expect("makes");
    let theirs = bench.put(&into_other("a"), &bytes).expect("puts").id;
    assert_eq!(bench.store().stats().expect("counts").chunks, 2 * chunks, "equal bytes are stored once in each");

    let random = ArtifactId([9; 16]);
    for (scope, id) in [(account("ann"), theirs), (of_other(), ours)] {
        assert_eq!(told(bench.read(scope, id)), told(bench.read(scope, random)));
        assert_eq!(told(bench.delete(scope, id)), told(bench.delete(scope, random)));
    }
    assert_eq!((bench.list(account("ann")), bench.list(of_other())), (vec![ours], vec![theirs]));
    let talk = ConversationScope { tenant: OTHER, ..named("talk") };
    assert_eq!(kind(bench.store().conversation(&talk)), Kind::NotFound);
    assert_eq!(kind(bench.link(account("ann"), ours, of_other())), Kind::InvalidArgument);
    assert_eq!(kind(bench.link(account("ann"), theirs, conversation("talk"))), Kind::NotFound);

    let token = bench.begin().token;
    let run = Destination::Run { tenant: OTHER, token };
    assert_eq!(kind(bench.put(&into(run, "a"), &bytes)), Kind::StaleToken, "as a forged one");
    assert_eq!(kind(bench.store().claim_run(OTHER, &token, "talk", "reply")), Kind::StaleToken);
    bench.verify();
}

#[test]
fn a_probe_finds_the_chunks_of_its_tenant_in_memory_and_in_tables() {
    let mut bench = Bench::new();
    bench.store().create_tenant(OTHER).expect("makes");
    bench.put(&into_account("a"), b"bytes of ours").expect("puts");
    for in_tables in [false, true] {
        if in_tables {
            bench.store().checkpoint().expect("writes");
            bench.restart();
        }
        let has = |tenant: &str, bytes: &[u8]| {
            let probe = bench.store().probe(tenant).expect("there is such a tenant");
            probe.has(probe.id(bytes)).expect("looks")
        };
        assert!(has(TENANT, b"bytes of ours") && !has(TENANT, b"bytes of nobody"), "{in_tables}");
        assert!(!has(OTHER, b"bytes of ours"), "{in_tables}");
    }
    assert_eq!(bench.store().probe("nobody").err().map(|error| error.kind()), Some(Kind::NotFound));
}

#[test]
fn a_tenant_is_made_once_and_keeps_its_number_and_its_files() {
    let mut bench = Bench::new();
    let made = bench.store().create_tenant(OTHER).expect("makes");
    assert_eq!((made.number, made.created_at, made.existed), (TenantNumber(2), bench.now(), false));
    let id = bench.put(&into_other("a"), b"bytes of theirs").expect("puts").id;
    bench.later(5);
    bench.restart();
    let there = bench.store().create_tenant(OTHER).expect("finds");
    assert_eq!((there.number, there.created_at, there.existed), (made.number, made.created_at, true));
    assert_eq!(bench.store().tenant(OTHER).expect("finds"), there);
    assert_eq!(bench.store().tenant(TENANT).expect("finds").number, TenantNumber(1));
    bench.store().checkpoint().expect("writes");
    assert_eq!(bench.store().create_tenant("third").expect("makes").number, TenantNumber(3));
    bench.restart();
    assert_eq!(bench.read(of_other(), id).expect("reads"), b"bytes of theirs");
    for name in ["", "a b", &"x".repeat(129), "a/b", "ä"] {
        assert_eq!(kind(bench.store().create_tenant(name)), Kind::InvalidArgument, "{name:?}");
    }
    bench.verify();
}

#[test]
fn a_crash_while_a_tenant_is_made_leaves_all_of_it_or_nothing() {
    let machine = Machine::new(SimDisk::new(1), START, 7);
    machine.init().expect("makes");
    let store = machine.open().expect("opens");
    let begun = machine.sim.op_count();
    store.create_tenant(OTHER).expect("makes");
    let acknowledged = machine.sim.op_count();
    let put = store.put(&into_other("a"), &mut &b"bytes of theirs"[..]).expect("puts");
    let log = machine.sim.log();
    let (mut with, mut without) = (0, 0);
    let budget = Budget { modes: Mode::ALL.to_vec(), per_mode: 40, byte_cut_max: 256 };
    let _ = Crashes::new(&log, 1, budget).for_each_image(begun..log.ops().len(), &mut |image, point| {
        let there = after_a_crash(image, put.id);
        assert!(there || point.op_index < acknowledged, "{point}: acknowledged, and lost");
        *(if there { &mut with } else { &mut without }) += 1;
        ControlFlow::Continue(())
    });
    assert!(with > 100 && without > 100, "{with} images with it and {without} without");
}

/// True if the tenant is there. In any case it can be made, used, and nothing is wrong with the store.
fn after_a_crash(image: &Image, put: ArtifactId) -> bool {
    independent::read(image, &Coverage::default()).expect("the other parser reads it");
    let machine = Machine::new(SimDisk::from_image(image, 3), START, 8);
    let store = machine.open().expect("opens");
    assert!(store.report().problems.is_empty(), "{:?}", store.report());
    let found = store.tenant(OTHER);
    assert!(found.as_ref().is_ok_and(|info| info.number == TenantNumber(2)) || kind_of(&found) == Some(Kind::NotFound));
    let made = store.create_tenant(OTHER).expect("makes or finds");
    assert_eq!(made.existed, found.is_ok());
    let mut bytes = Vec::new();
    match store.get(Scope::Account(of_other()), put, &Get::WHOLE, &mut bytes) {
        Ok(_) => assert_eq!(bytes, b"bytes of theirs"),
        Err(error) => assert_eq!(error.kind(), Kind::NotFound),
    }
    store.put(&into_other("b"), &mut &b"more"[..]).expect("puts");
    store.close().expect("closes");
    let report = Store::verify(&machine.world, &VerifyOptions { deep: true, refs: true, memory: 0 }, &mut |_, _| {});
    assert!(report.expect("verifies").problems.is_empty());
    independent::read_clean(&machine.sim.image()).expect("the other parser agrees");
    found.is_ok()
}

fn kind_of<T>(result: &holdfast::Result<T>) -> Option<Kind> {
    result.as_ref().err().map(holdfast::Error::kind)
}
