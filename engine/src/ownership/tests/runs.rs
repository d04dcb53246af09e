//! The life of a run.

use super::*;

fn renew(rules: &mut Rules, token: &RunToken, lease: u64) -> Result<Run> {
    rules.call(|state, lsn, now| run::renew(state, lsn, now, &run_ref(1), token, lease))
}

fn pause(rules: &mut Rules, token: &RunToken) -> Result<Run> {
    rules.call(|state, lsn, now| run::pause(state, lsn, now, &run_ref(1), token))
}

fn tag(rules: &mut Rules, tags: &[ScopeHash]) -> Result<bool> {
    rules.call(|state, lsn, _| {
        let run = state.run(&run_ref(1))?.expect("begun");
        run::tag(state, lsn, &run_ref(1), &run, tags)
    })
}

#[test]
fn the_same_request_begins_one_run_and_leases_it_once() {
    let mut rules = Rules::new();
    let asked = NewRun { request: Some(OpHash([1; 16])), ..new_run(1) };
    let (run, token) = rules.begin(&asked).expect("begins");
    let retry = NewRun { id: RunId([9; 16]), scope: run_ref(9), token: TokenBits([9; 16]), ..asked };
    assert_eq!(rules.begin(&retry).expect("answered"), (run, token));
    let again = NewRun { request: Some(OpHash([2; 16])), token: TokenBits([8; 16]), ..new_run(1) };
    let (leased, second) = rules.lease(&again).expect("leases");
    assert_eq!(leased.generation, 2);
    let retry = NewRun { token: TokenBits([7; 16]), ..again };
    assert_eq!(rules.lease(&retry).expect("answered"), (leased, second));
}

#[test]
fn a_new_lease_makes_the_old_token_stale_and_keeps_the_begin_lsn() {
    let mut rules = Rules::new();
    let (first, old) = rules.begin(&new_run(1)).expect("begins");
    let (second, token) = rules.lease(&NewRun { token: TokenBits([9; 16]), ..new_run(1) }).expect("leases");
    assert_eq!((second.generation, second.begin_lsn), (2, first.begin_lsn));
    assert_eq!(kind(rules.put(&new(1, Into::Run(run_ref(1), old)), 1)), Kind::StaleToken);
    assert_eq!(kind(renew(&mut rules, &old, LEASE)), Kind::StaleToken);
    assert_eq!(kind(rules.finish(1, &old, RunState::Failed, false)), Kind::StaleToken);
    assert!(rules.put(&new(1, Into::Run(run_ref(1), token)), 1).is_ok());
}

#[test]
fn a_token_that_was_changed_in_any_field_is_stale_and_so_is_that_of_another_life() {
    let mut rules = Rules::new();
    let (_, token) = rules.begin(&new_run(1)).expect("begins");
    let forged = [
        RunToken { generation: 2, ..token },
        RunToken { begin_lsn: token.begin_lsn.plus(1), ..token },
        RunToken { incarnation: 2, ..token },
        RunToken { bits: TokenBits([0; 16]), ..token },
    ];
    for forged in forged {
        assert_eq!(kind(token::current(&rules.catalog, &run_ref(1), &forged, rules.lsn)), Kind::StaleToken);
    }
    assert_eq!(kind(token::current(&rules.catalog, &run_ref(2), &token, rules.lsn)), Kind::StaleToken, "no such run");
    assert!(token::current(&rules.catalog, &run_ref(1), &token, rules.lsn).is_ok());
    let restored = Lsn((2 << 48) | 9);
    assert_eq!(kind(token::current(&rules.catalog, &run_ref(1), &token, restored)), Kind::StaleToken);
    rules.lsn = restored;
    let (_, token) = rules.lease(&NewRun { token: TokenBits([9; 16]), ..new_run(1) }).expect("leases");
    assert!(rules.put(&new(1, Into::Run(run_ref(1), token)), 1).is_ok());
}

#[test]
fn a_lease_ends_at_its_millisecond_and_renewing_never_shortens_it() {
    let mut rules = Rules::new();
    let (_, token) = rules.begin(&new_run(1)).expect("begins");
    assert_eq!(renew(&mut rules, &token, 1).expect("renews").lease_until, Some(Time(NOW.0 + LEASE)));
    rules.now = Time(NOW.0 + LEASE - 1);
    let until = renew(&mut rules, &token, LEASE).expect("renews").lease_until;
    assert_eq!(until, Some(Time(NOW.0 + 2 * LEASE - 1)));
    rules.now = Time(NOW.0 + 2 * LEASE - 1);
    assert_eq!(kind(renew(&mut rules, &token, LEASE)), Kind::LeaseLost);
    assert!(rules.put(&new(1, Into::Run(run_ref(1), token)), 1).is_ok(), "a put needs the token, and no live lease");
}

#[test]
fn a_paused_run_is_leased_again_and_keeps_its_files() {
    let mut rules = Rules::new();
    rules.open(1, 1).expect("opens");
    let (_, token) = rules.begin(&new_run(1)).expect("begins");
    let (before, _) = rules.put(&new(1, Into::Run(run_ref(1), token)), 1).expect("puts");
    pause(&mut rules, &token).expect("pauses");
    pause(&mut rules, &token).expect("is paused");
    assert_eq!(kind(rules.claim(1, &token, 1, 1)), Kind::LeaseLost);
    rules.now = Time(NOW.0 + 10 * LEASE);
    let (_, token) = rules.lease(&NewRun { token: TokenBits([9; 16]), ..new_run(1) }).expect("leases");
    let (after, _) = rules.put(&new(2, Into::Run(run_ref(1), token)), 2).expect("puts");
    let claimed = rules.claim(1, &token, 1, 1).expect("claims").claim.claimed;
    assert_eq!(claimed.iter().map(|claimed| claimed.artifact).collect::<Vec<_>>(), [before.id, after.id]);
}

#[test]
fn a_run_whose_time_is_over_is_cancelled() {
    let mut rules = Rules::new();
    rules.open(1, 1).expect("opens");
    let (_, token) = rules.begin(&new_run(1)).expect("begins");
    rules.now = Time(NOW.0 + TTL - 1);
    let (artifact, _) = rules.put(&new(1, Into::Run(run_ref(1), token)), 1).expect("still active");
    rules.now = Time(NOW.0 + TTL);
    assert_eq!(kind(rules.put(&new(2, Into::Run(run_ref(1), token)), 1)), Kind::RunClosed);
    assert_eq!(kind(rules.claim(1, &token, 1, 1)), Kind::RunClosed);
    assert_eq!(kind(rules.lease(&new_run(1))), Kind::RunClosed);
    assert_eq!(kind(rules.finish(1, &token, RunState::Succeeded, false)), Kind::AlreadyFinished);
    assert_eq!(rules.finish(1, &token, RunState::Cancelled, false).expect("is").state, RunState::Cancelled);
    assert_eq!(rules.life(&artifact), Life::Readable, "its own end is a ttl after the put");
}

#[test]
fn each_finish_after_each_finish() {
    use RunState::{Cancelled, Failed, Succeeded};
    for first in [Succeeded, Failed, Cancelled] {
        for second in [Succeeded, Failed, Cancelled] {
            let mut rules = Rules::new();
            let (_, token) = rules.begin(&new_run(1)).expect("begins");
            let (artifact, _) = rules.put(&new(1, Into::Run(run_ref(1), token)), 1).expect("puts");
            let finished = rules.finish(1, &token, first, false).expect("finishes");
            assert_eq!((finished.state, finished.lease_until), (first, None));
            let again = rules.finish(1, &token, second, false).map(|run| run.state).map_err(|error| kind_of(&error));
            assert_eq!(again, if first == second { Ok(first) } else { Err(Kind::AlreadyFinished) });
            assert_eq!(rules.record(&artifact), artifact, "expiries stay as they are");
            assert_eq!(kind(rules.put(&new(2, Into::Run(run_ref(1), token)), 1)), Kind::RunClosed);
        }
    }
    let mut rules = Rules::new();
    let (_, token) = rules.begin(&new_run(1)).expect("begins");
    assert_eq!(kind(rules.finish(1, &token, RunState::Active, false)), Kind::InvalidArgument);
    assert_eq!(kind(rules.finish(1, &token, Succeeded, true)), Kind::InvalidArgument);
}

#[test]
fn tags_are_a_set_and_one_that_was_fenced_since_the_run_began_says_so() {
    let (old, new_tag) = (ScopeHash([1; 16]), ScopeHash([2; 16]));
    let mut rules = Rules::new();
    rules.fence(ScopeKind::Tag, old, |lsn| Fence { void_derived: lsn, ..Fence::default() });
    let (_, token) = rules.begin(&new_run(1)).expect("an erasure before it began is no matter");
    let (artifact, _) = rules.put(&new(1, Into::Run(run_ref(1), token)), 1).expect("puts");
    assert!(!tag(&mut rules, &[old]).expect("tags"));
    assert!(!tag(&mut rules, &[old]).expect("once"));
    assert_eq!(rules.catalog.run(&run_ref(1)).expect("reads").expect("there").tags, [old]);
    rules.fence(ScopeKind::Tag, new_tag, |lsn| Fence { void_derived: lsn, ..Fence::default() });
    assert_eq!(rules.life(&artifact), Life::Readable);
    assert!(tag(&mut rules, &[new_tag]).expect("tags"), "affected");
    assert_eq!(rules.life(&artifact), Life::Deleted);
    assert_eq!(kind(rules.put(&new(2, Into::Run(run_ref(1), token)), 1)), Kind::Fenced);
    let upload = NewArtifact { origin: Origin::Upload, ..new(3, Into::Run(run_ref(1), token)) };
    assert!(rules.put(&upload, 1).is_ok(), "uploads are spared");
}

#[test]
fn a_run_has_at_most_256_tags() {
    let mut rules = Rules::new();
    let tags: Vec<_> = (0..=u16::try_from(RUN_TAGS_MAX).expect("small"))
        .map(|n| {
            let mut hash = [0; 16];
            hash[..2].copy_from_slice(&n.to_le_bytes());
            ScopeHash(hash)
        })
        .collect();
    let mut sorted = tags.clone();
    sorted.sort_unstable();
    assert_eq!(kind(rules.begin(&NewRun { tags: sorted.clone(), ..new_run(1) })), Kind::TooMany);
    rules.begin(&NewRun { tags: sorted[1..].to_vec(), ..new_run(1) }).expect("begins");
    assert_eq!(kind(tag(&mut rules, &sorted[..1])), Kind::TooMany);
    assert!(!tag(&mut rules, &sorted[1..]).expect("all there"));
}

#[test]
fn a_run_of_another_account_or_parent_is_not_found() {
    let mut rules = Rules::new();
    rules.begin(&new_run(1)).expect("begins");
    let other = NewRun { owner: named(2), ..new_run(1) };
    assert_eq!(kind(rules.lease(&other)), Kind::NotFound);
    let child = NewRun { parent: Some(run_ref(1).scope), ..new_run(2) };
    assert_eq!(kind(rules.begin(&NewRun { owner: named(2), ..child.clone() })), Kind::NotFound);
    assert_eq!(kind(rules.begin(&NewRun { parent: Some(run_ref(7).scope), ..child.clone() })), Kind::NotFound);
    rules.open(1, 2).expect("opens");
    let elsewhere = NewRun { conversation: Some(conversation(1).scope.scope), ..new_run(3) };
    assert_eq!(kind(rules.begin(&elsewhere)), Kind::NotFound);
    assert!(rules.begin(&child).is_ok());
}

#[test]
fn spans_are_positive_and_times_never_overflow() {
    let mut rules = Rules::new();
    for (ttl, lease) in [(0, LEASE), (TTL, 0), (u64::MAX, LEASE), (TTL, u64::MAX)] {
        assert_eq!(kind(rules.begin(&NewRun { ttl, lease, ..new_run(1) })), Kind::InvalidArgument);
    }
    rules.now = Time(u64::MAX - 5);
    let (run, token) = rules.begin(&new_run(1)).expect("begins");
    assert_eq!((run.ends_at, run.lease_until), (Time(u64::MAX), Some(Time(u64::MAX))));
    assert_eq!(rules.put(&new(1, Into::Run(run_ref(1), token)), 1).expect("puts").0.expires_at, Some(Time(u64::MAX)));
}
