//! Conversations, and what their fences take.

use super::*;

#[test]
fn a_conversation_belongs_to_whoever_opened_it_and_its_id_is_never_used_again() {
    let mut rules = Rules::new();
    let opened = rules.open(1, 1).expect("opens");
    assert_eq!(rules.open(1, 1).expect("is open"), opened, "a second time is the same");
    assert_eq!(kind(rules.open(1, 2)), Kind::NotFound, "another account");
    rules.verb(1, Verb::Delete).expect("deletes");
    assert_eq!(kind(rules.open(1, 1)), Kind::ConvGone);
    assert_eq!(kind(rules.open(1, 2)), Kind::NotFound, "no more than of a random id");
    assert_eq!(kind(rules.verb(2, Verb::Delete)), Kind::NotFound, "it was never opened");
}

#[test]
fn each_verb_in_each_state() {
    use ConversationState::{Archived, Deleted, Open};
    let gone = Err(Kind::ConvGone);
    for (before, verb, after) in [
        (Open, Verb::Archive, Ok(Archived)),
        (Open, Verb::Unarchive, Ok(Open)),
        (Open, Verb::Reset, Ok(Open)),
        (Open, Verb::Delete, Ok(Deleted)),
        (Archived, Verb::Archive, Ok(Archived)),
        (Archived, Verb::Unarchive, Ok(Open)),
        (Archived, Verb::Reset, Ok(Archived)),
        (Archived, Verb::Delete, Ok(Deleted)),
        (Deleted, Verb::Archive, gone),
        (Deleted, Verb::Unarchive, gone),
        (Deleted, Verb::Reset, gone),
        (Deleted, Verb::Delete, Ok(Deleted)),
    ] {
        let mut rules = Rules::new();
        rules.open(1, 1).expect("opens");
        match before {
            Open => {}
            Archived => drop(rules.verb(1, Verb::Archive).expect("archives")),
            Deleted => drop(rules.verb(1, Verb::Delete).expect("deletes")),
        }
        let result = rules.verb(1, verb).map(|record| record.state).map_err(|error| kind_of(&error));
        assert_eq!(result, after, "{verb:?} of {before:?}");
    }
}

#[test]
fn each_reset_is_a_new_fence_and_a_second_deletion_is_none() {
    let mut rules = Rules::new();
    rules.open(1, 1).expect("opens");
    let fence =
        |rules: &Rules| rules.catalog.fence(ScopeKind::Conversation, conversation(1).scope.scope).expect("reads");
    rules.verb(1, Verb::Reset).expect("resets");
    let first = fence(&rules);
    rules.verb(1, Verb::Reset).expect("resets");
    assert!(fence(&rules).void_all > first.void_all);
    assert!(!fence(&rules).is_closed());
    rules.verb(1, Verb::Delete).expect("deletes");
    let deleted = fence(&rules);
    assert!(deleted.is_closed());
    rules.verb(1, Verb::Delete).expect("is done");
    assert_eq!(fence(&rules), deleted);
}

#[test]
fn a_deleted_conversation_keeps_no_name_and_stands_in_no_list() {
    let mut rules = Rules::new();
    rules.open(1, 1).expect("opens");
    assert_eq!(rules.catalog.count(Keyspace::OfAccount), 1);
    let deleted = rules.verb(1, Verb::Delete).expect("deletes");
    assert_eq!((deleted.text.as_str(), rules.catalog.count(Keyspace::OfAccount)), ("", 0));
}

/// The stream began, then something was done to the conversation, then the stream ended.
#[test]
fn a_put_that_began_before_a_reset_or_a_deletion_never_gets_in() {
    for (verb, late, new_one) in [
        (Verb::Reset, Some(Kind::Fenced), None),
        (Verb::Delete, Some(Kind::ConvGone), Some(Kind::ConvGone)),
        (Verb::Archive, Some(Kind::ConvArchived), Some(Kind::ConvArchived)),
        (Verb::Unarchive, None, None),
    ] {
        let mut rules = Rules::new();
        rules.open(1, 1).expect("opens");
        let began = rules.lsn;
        rules.verb(1, verb).expect("done");
        let into = || Into::Conversation(conversation(1));
        let refused = |result: Result<(Artifact, bool)>| result.err().map(|error| kind_of(&error));
        assert_eq!(refused(rules.put(&NewArtifact { began, ..new(1, into()) }, 1)), late, "{verb:?}, begun before");
        let began = rules.lsn;
        assert_eq!(refused(rules.put(&NewArtifact { began, ..new(2, into()) }, 1)), new_one, "{verb:?}, begun after");
    }
}

#[test]
fn what_a_conversation_owns_is_gone_with_a_reset_and_what_comes_later_is_not() {
    for verb in [Verb::Reset, Verb::Delete] {
        let mut rules = Rules::new();
        rules.open(1, 1).expect("opens");
        rules.open(2, 1).expect("opens");
        let into = |n| Into::Conversation(conversation(n));
        let (first, _) = rules.put(&new(1, into(1)), 1).expect("puts");
        let (other, _) = rules.put(&new(2, into(2)), 1).expect("puts");
        let (own, _) = rules.put(&new(3, Into::Account), 1).expect("puts");
        rules.verb(1, verb).expect("done");
        assert_eq!([&first, &other, &own].map(|a| rules.life(a)), [Life::Deleted, Life::Readable, Life::Readable]);
        assert_eq!(rules.catalog.blob(content(1).key).expect("reads").expect("there").references, 3, "one copy each");
        if verb == Verb::Reset {
            let began = rules.lsn;
            let (later, _) = rules.put(&NewArtifact { began, ..new(4, into(1)) }, 2).expect("usable after");
            assert_eq!([&first, &later].map(|a| rules.life(a)), [Life::Deleted, Life::Readable]);
        }
    }
}

#[test]
fn a_conversation_takes_what_runs_that_work_for_it_have_not_claimed() {
    let mut rules = Rules::new();
    rules.open(1, 1).expect("opens");
    let bound = NewRun { conversation: Some(conversation(1).scope.scope), ..new_run(1) };
    let (_, token) = rules.begin(&bound).expect("begins");
    let (_, free) = rules.begin(&new_run(2)).expect("begins");
    let (pending, _) = rules.put(&new(1, Into::Run(run_ref(1), token)), 1).expect("puts");
    let (other, _) = rules.put(&new(2, Into::Run(run_ref(2), free)), 1).expect("puts");
    rules.verb(1, Verb::Delete).expect("deletes");
    assert_eq!([&pending, &other].map(|a| rules.life(a)), [Life::Deleted, Life::Readable]);
    assert_eq!(kind(rules.put(&new(3, Into::Run(run_ref(1), token)), 1)), Kind::Fenced);
    assert_eq!(kind(rules.begin(&NewRun { conversation: bound.conversation, ..new_run(3) })), Kind::ConvGone);
}

type Raise = fn(Lsn) -> Fence;

#[test]
fn a_fence_of_an_account_a_tag_or_a_run_follows_its_artifacts_into_conversations() {
    let tag = ScopeHash([77; 16]);
    let all = |lsn| Fence { void_all: lsn, ..Fence::default() };
    let derived = |lsn| Fence { void_derived: lsn, ..Fence::default() };
    for (kind, scope, raise, upload, export) in [
        (ScopeKind::Account, account(1).account, all as Raise, Life::Deleted, Life::Deleted),
        (ScopeKind::Tag, tag, derived as Raise, Life::Readable, Life::Deleted),
        (ScopeKind::Tag, ScopeHash([78; 16]), derived as Raise, Life::Readable, Life::Readable),
        (ScopeKind::Run, run_ref(1).scope, all as Raise, Life::Deleted, Life::Deleted),
        (ScopeKind::Tenant, TENANT_NAME, all as Raise, Life::Deleted, Life::Deleted),
        (ScopeKind::Conversation, conversation(1).scope.scope, all as Raise, Life::Readable, Life::Deleted),
    ] {
        let mut rules = Rules::new();
        rules.open(1, 1).expect("opens");
        let (_, token) = rules.begin(&NewRun { tags: vec![tag], ..new_run(1) }).expect("begins");
        let into = || Into::Run(run_ref(1), token);
        let (uploaded, _) = rules.put(&NewArtifact { origin: Origin::Upload, ..new(1, into()) }, 1).expect("puts");
        let (exported, _) = rules.put(&new(2, into()), 1).expect("puts");
        rules.claim(1, &token, 1, 1).expect("claims the export");
        rules.fence(kind, scope, raise);
        assert_eq!([&uploaded, &exported].map(|a| rules.life(a)), [upload, export], "{kind:?}");
    }
}

#[test]
fn an_erasure_says_so() {
    let mut rules = Rules::new();
    let (artifact, _) = rules.put(&new(1, Into::Account), 1).expect("puts");
    rules.fence(ScopeKind::Account, account(1).account, |lsn| Fence {
        void_all: lsn,
        erased_at: lsn,
        ..Fence::default()
    });
    assert_eq!(rules.life(&artifact), Life::Erased);
}

#[test]
fn a_closed_account_opens_no_conversation_and_begins_no_run() {
    let mut rules = Rules::new();
    rules.fence(ScopeKind::Account, account(1).account, |lsn| Fence { closed_at: lsn, ..Fence::default() });
    assert_eq!(kind(rules.open(1, 1)), Kind::Fenced);
    assert_eq!(kind(rules.begin(&new_run(1))), Kind::Fenced);
    assert_eq!(kind(rules.put(&NewArtifact { began: rules.lsn, ..new(1, Into::Account) }, 1)), Kind::Fenced);
    rules.fence(ScopeKind::Account, account(1).account, |lsn| Fence { reopened_at: lsn, ..Fence::default() });
    assert!(rules.open(1, 1).is_ok() && rules.begin(&new_run(1)).is_ok());
}
