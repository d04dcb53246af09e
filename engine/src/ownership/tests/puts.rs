//! Puts into each kind of owner, and their retries.

use super::*;

#[test]
fn a_put_makes_the_record_its_place_in_the_list_its_end_and_its_account() {
    let mut rules = Rules::new();
    let ending = NewArtifact { expires_at: Some(Time(NOW.0 + 10)), op: Some(OpHash([6; 16])), ..new(1, Into::Account) };
    let (artifact, replayed) = rules.put(&ending, 1).expect("puts");
    assert!(!replayed);
    assert_eq!(rules.record(&artifact), artifact);
    assert_eq!(rules.listed(1, OwnerKind::Account, account(1).account.0), [artifact.id]);
    assert_eq!(rules.catalog.count(Keyspace::Due), 1);
    let made = |rules: &Rules| rules.catalog.account(&account(1)).expect("reads").expect("made").created_lsn;
    let first = made(&rules);
    rules.put(&new(2, Into::Account), 1).expect("puts");
    assert_eq!(made(&rules), first, "it is made once");
    assert_eq!(rules.catalog.blob(content(1).key).expect("reads").expect("there").references, 2);
}

#[test]
fn a_blob_that_nobody_had_any_more_is_taken_up_again() {
    let mut rules = Rules::new();
    let value = BlobValue { root: content(1).root, size: 6, references: 0 };
    for edit in [
        Edit::put(Keyspace::Blob, crate::format::keyspace::blob_key(content(1).key), value.encode()),
        Edit::put(Keyspace::Zero, crate::format::keyspace::zero_blob_key(content(1).key), []),
    ] {
        rules.catalog.apply(&edit).expect("applies");
    }
    rules.put(&new(1, Into::Account), 1).expect("puts");
    assert_eq!(rules.catalog.blob(content(1).key).expect("reads").expect("there").references, 1);
    assert_eq!(rules.catalog.count(Keyspace::Zero), 0);
}

#[test]
fn a_retry_into_an_account_is_answered_for_seven_days_and_while_its_artifact_is_readable() {
    let op = Some(OpHash([6; 16]));
    let mut rules = Rules::new();
    let asked = NewArtifact { op, ..new(1, Into::Account) };
    let (first, _) = rules.put(&asked, 1).expect("puts");
    let retry = NewArtifact { id: ArtifactId([9; 16]), ..asked };
    rules.now = Time(NOW.0 + ACCOUNT_OP_KEPT_MS - 1);
    assert_eq!(rules.put(&retry, 1).expect("answered"), (first, true));
    rules.now = Time(NOW.0 + ACCOUNT_OP_KEPT_MS);
    assert!(!rules.put(&retry, 1).expect("a new call").1);

    let mut rules = Rules::new();
    let ending = NewArtifact { op, expires_at: Some(Time(NOW.0 + 10)), ..new(1, Into::Account) };
    let (first, _) = rules.put(&ending, 1).expect("puts");
    rules.now = Time(NOW.0 + 9);
    assert!(rules.put(&ending, 1).expect("answered").1);
    rules.now = Time(NOW.0 + 10);
    let gone = rules.put(&ending, 1).expect_err("expired");
    assert_eq!((kind_of(&gone), gone.place().artifact), (Kind::Gone, Some(first.id)));
}

#[test]
fn an_end_that_is_not_in_the_future_is_refused() {
    let mut rules = Rules::new();
    assert_eq!(
        kind(rules.put(&NewArtifact { expires_at: Some(NOW), ..new(1, Into::Account) }, 1)),
        Kind::InvalidArgument
    );
    assert!(artifact::check_expiry(Some(Time(u64::MAX)), NOW).is_ok());
}

#[test]
fn an_id_is_never_given_twice() {
    let mut rules = Rules::new();
    rules.put(&new(1, Into::Account), 1).expect("puts");
    assert!(rules.put(&new(1, Into::Account), 2).is_err());
}

#[test]
fn a_put_into_a_run_ends_with_its_ttl_and_one_into_a_conversation_with_the_conversation() {
    let mut rules = Rules::new();
    rules.open(1, 1).expect("opens");
    let (run, token) = rules.begin(&new_run(1)).expect("begins");
    rules.now = Time(NOW.0 + 5);
    let (of_run, _) = rules.put(&new(1, Into::Run(run_ref(1), token)), 1).expect("puts");
    assert_eq!((of_run.owner.kind, of_run.expires_at), (OwnerKind::Run, Some(Time(NOW.0 + 5 + TTL))));
    assert_eq!((of_run.born.run, of_run.token_lsn), (Some(run_ref(1).scope), run.begin_lsn));
    let (published, _) = rules.put(&new(2, Into::Conversation(conversation(1))), 1).expect("puts");
    assert_eq!((published.owner.kind, published.expires_at), (OwnerKind::Conversation, None));
    assert_eq!(published.born.run, None);
}

#[test]
fn the_same_put_into_a_run_or_conversation_is_one_artifact_while_it_is_readable() {
    let identity = Some(IdentityHash([5; 16]));
    let mut rules = Rules::new();
    rules.open(1, 1).expect("opens");
    let (_, token) = rules.begin(&new_run(1)).expect("begins");
    for into in [Into::Run(run_ref(1), token), Into::Conversation(conversation(1))] {
        let id = if matches!(into, Into::Run(..)) { 10 } else { 20 };
        let (first, _) = rules.put(&NewArtifact { identity, ..new(id, into.clone()) }, 1).expect("puts");
        let op = Some(OpHash([id; 16]));
        let again = NewArtifact { op, identity, ..new(id + 1, into) };
        assert_eq!(rules.put(&again, 1).expect("answered"), (first.clone(), true));
        assert!(rules.put(&again, 1).expect("its op id answers it now").1);
    }
    rules.verb(1, Verb::Reset).expect("resets");
    let began = rules.lsn;
    let later = NewArtifact { identity, began, ..new(30, Into::Conversation(conversation(1))) };
    assert!(!rules.put(&later, 1).expect("the first one is gone").1);
    let op = Some(OpHash([20; 16]));
    let retry = NewArtifact { op, identity, began, ..new(31, Into::Conversation(conversation(1))) };
    assert_eq!(kind(rules.put(&retry, 1)), Kind::Gone, "its own op id made the one that is gone");
}

#[test]
fn a_run_answers_retries_until_a_day_after_its_end_and_a_conversation_as_long_as_it_is_there() {
    let mut rules = Rules::new();
    rules.open(1, 1).expect("opens");
    let (_, token) = rules.begin(&new_run(1)).expect("begins");
    let op = Some(OpHash([1; 16]));
    let into_run = NewArtifact { op, ..new(1, Into::Run(run_ref(1), token)) };
    let into_conversation = NewArtifact { op, ..new(2, Into::Conversation(conversation(1))) };
    rules.put(&into_run, 1).expect("puts");
    rules.put(&into_conversation, 1).expect("puts");
    rules.finish(1, &token, RunState::Succeeded, false).expect("finishes");
    rules
        .call(|state, lsn, _| {
            // Kept beyond the run's ttl, so that only the outcome's age counts.
            let artifact = state.artifact(&account(1), ArtifactId([1; 16]))?.expect("there");
            let mut edits = Vec::new();
            artifact::move_to(
                &artifact,
                artifact.owner,
                crate::format::keyspace::ListPlace { attach_lsn: lsn, position: 0 },
                None,
                &mut edits,
            );
            Ok((edits, ()))
        })
        .expect("kept");
    rules.now = Time(NOW.0 + RUN_OP_KEPT_MS - 1);
    assert!(rules.put(&into_run, 1).expect("answered").1);
    rules.now = Time(NOW.0 + RUN_OP_KEPT_MS);
    assert_eq!(kind(rules.put(&into_run, 1)), Kind::RunClosed);
    rules.now = Time(NOW.0 + 1000 * RUN_OP_KEPT_MS);
    assert!(rules.put(&into_conversation, 1).expect("answered").1);
}
