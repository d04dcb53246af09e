//! Claims, their replays and their release.

use super::*;

fn ids(claiming: &Claiming) -> Vec<u8> {
    claiming.claim.claimed.iter().map(|claimed| claimed.artifact.0[0]).collect()
}

fn skipped(claiming: &Claiming) -> Vec<(u8, SkipReason)> {
    claiming.claim.skipped.iter().map(|(id, reason)| (id.0[0], *reason)).collect()
}

/// A conversation, a run, and five puts: export, upload, output of the model, output of a tool, derived.
fn with_puts() -> (Rules, RunToken) {
    let mut rules = Rules::new();
    rules.open(1, 1).expect("opens");
    let (_, token) = rules.begin(&new_run(1)).expect("begins");
    let origins = [Origin::SandboxExport, Origin::Upload, Origin::ModelOutput, Origin::ToolOutput, Origin::Derived];
    for (id, origin) in (1..).zip(origins) {
        let new = NewArtifact { origin, ..new(id, Into::Run(run_ref(1), token)) };
        rules.put(&new, id).expect("puts");
    }
    (rules, token)
}

#[test]
fn a_claim_takes_exports_and_model_outputs_in_the_order_of_their_puts_and_clears_their_end() {
    let (mut rules, token) = with_puts();
    let claiming = rules.claim(1, &token, 1, 1).expect("claims");
    assert_eq!((ids(&claiming), skipped(&claiming), claiming.replayed), (vec![1, 3], vec![], false));
    let to = conversation(1).scope.scope.0;
    assert_eq!(rules.listed(1, OwnerKind::Conversation, to), [1, 3].map(|n| ArtifactId([n; 16])));
    assert_eq!(rules.listed(1, OwnerKind::Run, run_ref(1).scope.0), [2, 4, 5].map(|n| ArtifactId([n; 16])));
    for id in [1, 3] {
        let record = rules.catalog.artifact(&account(1), ArtifactId([id; 16])).expect("reads").expect("there");
        assert_eq!((record.expires_at, record.version, record.place.attach_lsn), (None, 2, claiming.claim.lsn));
        assert_eq!(record.born.run, Some(run_ref(1).scope), "where it comes from stays");
    }
    assert_eq!(rules.catalog.count(Keyspace::Due), 3);
    rules.now = Time(NOW.0 + 100 * TTL);
    let record = rules.catalog.artifact(&account(1), ArtifactId([1; 16])).expect("reads").expect("there");
    assert_eq!(rules.life(&record), Life::Readable, "it lives as long as the conversation");
}

#[test]
fn the_same_reply_gets_the_same_list_and_another_one_comes_too_late() {
    let (mut rules, token) = with_puts();
    let first = rules.claim(1, &token, 1, 1).expect("claims");
    rules.put(&new(9, Into::Run(run_ref(1), token)), 9).expect("puts");
    let again = rules.claim(1, &token, 1, 1).expect("answered");
    assert_eq!((again.claim.clone(), again.replayed), (first.claim, true));
    assert_eq!(kind(rules.claim(1, &token, 1, 2)), Kind::AlreadyClaimed);
    rules.open(2, 1).expect("opens");
    assert_eq!(kind(rules.claim(1, &token, 2, 1)), Kind::AlreadyClaimed, "the same reply elsewhere");
    rules.finish(1, &token, RunState::Succeeded, false).expect("finishes");
    rules.now = Time(NOW.0 + 10 * TTL);
    assert!(rules.claim(1, &token, 1, 1).expect("answered after the end too").replayed);
    rules.verb(1, Verb::Delete).expect("deletes");
    assert_eq!(kind(rules.claim(1, &token, 1, 1)), Kind::ConvGone);
}

#[test]
fn of_equal_name_and_content_the_first_is_taken() {
    let (mut rules, token) = with_puts();
    let name = new(1, Into::Account).name;
    let twin = NewArtifact { name: name.clone(), origin: Origin::ModelOutput, ..new(6, Into::Run(run_ref(1), token)) };
    rules.put(&twin, 1).expect("another origin is another artifact");
    let other = NewArtifact { name, ..new(7, Into::Run(run_ref(1), token)) };
    rules.put(&other, 7).expect("other content");
    let claiming = rules.claim(1, &token, 1, 1).expect("claims");
    assert_eq!((ids(&claiming), skipped(&claiming)), (vec![1, 3, 7], vec![(6, SkipReason::Duplicate)]));
    let left = rules.catalog.artifact(&account(1), ArtifactId([6; 16])).expect("reads").expect("there");
    assert_eq!((left.owner.kind, left.expires_at), (OwnerKind::Run, Some(Time(NOW.0 + TTL))));
}

#[test]
fn what_has_expired_is_skipped() {
    let (mut rules, token) = with_puts();
    rules
        .call(|state, lsn, _| {
            let artifact = state.artifact(&account(1), ArtifactId([1; 16]))?.expect("there");
            let mut edits = Vec::new();
            let place = crate::format::keyspace::ListPlace { attach_lsn: lsn, position: 0 };
            artifact::move_to(&artifact, artifact.owner, place, Some(Time(NOW.0 + 1)), &mut edits);
            Ok((edits, ()))
        })
        .expect("a shorter life");
    rules.now = Time(NOW.0 + 1);
    let claiming = rules.claim(1, &token, 1, 1).expect("claims");
    assert_eq!((ids(&claiming), skipped(&claiming)), (vec![3], vec![(1, SkipReason::Expired)]));
}

/// Each precondition broken by itself; nothing moves.
#[test]
fn each_broken_precondition_of_a_claim_gives_its_error_and_moves_nothing() {
    type Break = fn(&mut Rules, &mut RunToken, &mut u8);
    let cases: [(&str, Break, Kind); 10] = [
        (
            "an old token",
            |rules, _, _| drop(rules.lease(&NewRun { token: TokenBits([9; 16]), ..new_run(1) })),
            Kind::StaleToken,
        ),
        ("a lost lease", |rules, _, _| rules.now = Time(NOW.0 + LEASE), Kind::LeaseLost),
        ("a finished run", |rules, token, _| drop(rules.finish(1, token, RunState::Failed, false)), Kind::RunClosed),
        ("no such conversation", |_, _, to| *to = 9, Kind::NotFound),
        (
            "another account's",
            |rules, _, to| {
                rules.open(2, 2).expect("opens");
                *to = 2;
            },
            Kind::NotFound,
        ),
        ("a deleted one", |rules, _, _| drop(rules.verb(1, Verb::Delete)), Kind::ConvGone),
        ("a reset since the run began", |rules, _, _| drop(rules.verb(1, Verb::Reset)), Kind::Fenced),
        (
            "a fenced account",
            |rules, _, _| {
                rules.fence(ScopeKind::Account, account(1).account, |lsn| Fence { void_all: lsn, ..Fence::default() });
            },
            Kind::Fenced,
        ),
        (
            "a fenced run",
            |rules, _, _| {
                rules.fence(ScopeKind::Run, run_ref(1).scope, |lsn| Fence { void_all: lsn, ..Fence::default() });
            },
            Kind::Fenced,
        ),
        (
            "a fenced tag",
            |rules, _, _| {
                let tagged = ScopeHash([66; 16]);
                rules
                    .call(|state, lsn, _| {
                        let run = state.run(&run_ref(1))?.expect("there");
                        run::tag(state, lsn, &run_ref(1), &run, &[tagged])
                    })
                    .expect("tags");
                rules.fence(ScopeKind::Tag, tagged, |lsn| Fence { void_derived: lsn, ..Fence::default() });
            },
            Kind::Fenced,
        ),
    ];
    for (what, break_it, expected) in cases {
        let (mut rules, mut token) = with_puts();
        let mut to = 1;
        break_it(&mut rules, &mut token, &mut to);
        assert_eq!(kind(rules.claim(1, &token, to, 1)), expected, "{what}");
        assert_eq!(rules.listed(1, OwnerKind::Run, run_ref(1).scope.0).len(), 5, "{what}");
        assert_eq!(rules.catalog.count(Keyspace::Claim), 0, "{what}");
    }
    let (mut rules, token) = with_puts();
    rules.verb(1, Verb::Archive).expect("archives");
    assert!(rules.claim(1, &token, 1, 1).is_ok(), "an archived conversation takes claims");
}

#[test]
fn a_parent_claims_nothing_of_its_child() {
    let (mut rules, token) = with_puts();
    let (_, child) = rules.begin(&NewRun { parent: Some(run_ref(1).scope), ..new_run(2) }).expect("begins");
    rules.put(&new(9, Into::Run(run_ref(2), child)), 9).expect("puts");
    assert_eq!(ids(&rules.claim(1, &token, 1, 1).expect("claims")), [1, 3]);
    assert_eq!(ids(&rules.claim(2, &child, 1, 1).expect("claims")), [9]);
}

#[test]
fn a_failed_run_takes_its_claim_back_with_the_ends_that_its_files_had() {
    let (mut rules, token) = with_puts();
    rules.claim(1, &token, 1, 1).expect("claims");
    rules.finish(1, &token, RunState::Failed, true).expect("finishes");
    assert_eq!(rules.listed(1, OwnerKind::Conversation, conversation(1).scope.scope.0), []);
    for id in [1, 3] {
        let record = rules.catalog.artifact(&account(1), ArtifactId([id; 16])).expect("reads").expect("there");
        assert_eq!((record.owner.kind, record.expires_at), (OwnerKind::Run, Some(Time(NOW.0 + TTL))));
        assert_eq!(rules.life(&record), Life::Readable);
    }
    assert_eq!(rules.catalog.count(Keyspace::Due), 5);
    rules.finish(1, &token, RunState::Failed, true).expect("a second time is the same");
    assert_eq!(kind(rules.claim(1, &token, 1, 1)), Kind::RunClosed, "the claim was taken back");
}

#[test]
fn nothing_that_its_conversation_lost_comes_back() {
    for verb in [Verb::Delete, Verb::Reset] {
        let (mut rules, token) = with_puts();
        let claiming = rules.claim(1, &token, 1, 1).expect("claims");
        rules.verb(1, verb).expect("done");
        rules.finish(1, &token, RunState::Failed, true).expect("finishes");
        for claimed in &claiming.claim.claimed {
            let record = rules.catalog.artifact(&account(1), claimed.artifact).expect("reads").expect("there");
            assert_eq!((record.owner.kind, rules.life(&record)), (OwnerKind::Conversation, Life::Deleted), "{verb:?}");
        }
    }
}

#[test]
fn a_claim_that_outgrew_its_room_is_asked_again_and_one_of_more_than_10_000_is_refused() {
    let (mut rules, token) = with_puts();
    let claim = new_claim(1, &token, 1, 1);
    let len = claim::claim_len(&rules.catalog, &run_ref(1), account(1).account).expect("counts");
    let (edits, _) = claim::claim(&rules.catalog, rules.lsn.plus(1), NOW, &claim, len).expect("claims");
    assert!(!edits.is_empty(), "what was counted is enough");
    let (edits, outcome) = claim::claim(&rules.catalog, rules.lsn.plus(1), NOW, &claim, 2000).expect("decided");
    assert!(edits.is_empty() && matches!(outcome, Sized::Outgrown));

    let template = rules.catalog.artifact(&account(1), ArtifactId([1; 16])).expect("reads").expect("there");
    for n in 0..u32::try_from(CLAIM_MAX).expect("small") {
        let mut id = [0xee; 16];
        id[..4].copy_from_slice(&n.to_le_bytes());
        let place = crate::format::keyspace::ListPlace { attach_lsn: Lsn(9), position: n };
        let artifact = Artifact { id: ArtifactId(id), name: n.to_string(), place, ..template.clone() };
        for edit in [
            Edit::put(Keyspace::Artifact, account(1).artifact_key(artifact.id), artifact.encode()),
            Edit::put(Keyspace::ByOwner, account(1).owner_key(artifact.owner, place), id),
        ] {
            rules.catalog.apply(&edit).expect("applies");
        }
    }
    let refused = claim::claim(&rules.catalog, rules.lsn.plus(1), NOW, &claim, usize::MAX);
    assert_eq!(refused.expect_err("two too many").kind(), Kind::TooMany);
}
