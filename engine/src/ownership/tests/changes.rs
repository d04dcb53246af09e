//! Deletions, other ends, links and forks of artifacts that are there.

use super::*;

/// Where the artifacts of a test go, and what it is called.
fn put_into(rules: &mut Rules, n: u8, into: Into) -> Artifact {
    let began = rules.lsn;
    rules.put(&NewArtifact { began, ..new(n, into) }, n).expect("puts").0
}

/// An artifact of each kind of owner: account 1, conversation 1, run 1.
fn one_of_each(rules: &mut Rules) -> [Artifact; 3] {
    rules.open(1, 1).expect("opens");
    let (_, token) = rules.begin(&new_run(1)).expect("begins");
    [
        put_into(rules, 1, Into::Account),
        put_into(rules, 2, Into::Conversation(conversation(1))),
        put_into(rules, 3, Into::Run(run_ref(1), token)),
    ]
}

#[test]
fn what_is_deleted_is_unreadable_and_keeps_its_entries_and_references() {
    let mut rules = Rules::new();
    for artifact in one_of_each(&mut rules) {
        let bytes = artifact.sha256.0[0];
        let (due, listed) = (rules.catalog.count(Keyspace::Due), rules.catalog.count(Keyspace::ByOwner));
        let deleted = rules.delete(&artifact).expect("deletes");
        assert_eq!((rules.life(&artifact), deleted.version), (Life::Deleted, artifact.version + 1));
        assert_eq!(rules.record(&artifact), Artifact { deleted: true, version: 2, ..artifact.clone() });
        assert_eq!(rules.delete(&artifact).expect("is done"), deleted, "a second time changes nothing");
        assert_eq!((rules.catalog.count(Keyspace::Due), rules.catalog.count(Keyspace::ByOwner)), (due, listed));
        assert_eq!(rules.references(bytes), 1);
    }
}

#[test]
fn an_artifact_is_deleted_by_its_owner_alone() {
    let mut rules = Rules::new();
    let [of_account, of_conversation, _] = one_of_each(&mut rules);
    let elsewhere = Artifact { owner: of_account.owner, ..of_conversation.clone() };
    let unknown = Artifact { id: ArtifactId([77; 16]), ..of_account };
    assert_eq!(kind(rules.delete(&elsewhere)), Kind::NotFound);
    assert_eq!(kind(rules.delete(&unknown)), Kind::NotFound);
    assert_eq!(rules.life(&of_conversation), Life::Readable);
}

#[test]
fn what_time_or_a_fence_ended_is_deleted_all_the_same() {
    let mut rules = Rules::new();
    let ending = NewArtifact { expires_at: Some(Time(NOW.0 + 10)), ..new(50, Into::Account) };
    let (artifact, _) = rules.put(&ending, 1).expect("puts");
    rules.now = Time(NOW.0 + 10);
    rules.delete(&artifact).expect("deletes");
    rules.now = NOW;
    assert_eq!(rules.life(&artifact), Life::Deleted, "the clock went back");
    let [_, of_conversation, _] = one_of_each(&mut rules);
    rules.verb(1, Verb::Reset).expect("resets");
    rules.delete(&of_conversation).expect("deletes");
    assert_eq!(rules.life(&of_conversation), Life::Deleted);
}

#[test]
fn a_claim_leaves_what_was_deleted_and_a_released_one_does_not_bring_it_back() {
    let mut rules = Rules::new();
    rules.open(1, 1).expect("opens");
    let (_, token) = rules.begin(&new_run(1)).expect("begins");
    let into = || Into::Run(run_ref(1), token);
    let [first, second, third] = [1, 2, 3].map(|n| put_into(&mut rules, n, into()));
    rules.delete(&first).expect("deletes");
    let claim = rules.claim(1, &token, 1, 1).expect("claims").claim;
    assert_eq!(claim.claimed.iter().map(|claimed| claimed.artifact).collect::<Vec<_>>(), [second.id, third.id]);
    assert_eq!(claim.skipped, []);
    let claimed = rules.record(&second);
    rules.delete(&claimed).expect("deletes");
    rules.finish(1, &token, RunState::Failed, true).expect("takes it back");
    assert_eq!([&second, &third].map(|artifact| rules.life(artifact)), [Life::Deleted, Life::Readable]);
    assert_eq!(rules.record(&third).owner, claim::owner(&run_ref(1)));
}

#[test]
fn another_end_moves_what_is_due() {
    let mut rules = Rules::new();
    let [of_account, _, of_run] = one_of_each(&mut rules);
    let end = |ms| Some(Time(NOW.0 + ms));
    for artifact in [of_account, of_run] {
        let others = rules.catalog.count(Keyspace::Due) - usize::from(artifact.expires_at.is_some());
        for (version, expires_at) in [(2, end(5)), (3, end(9)), (4, end(9))] {
            let new = NewEnd { named: named_as(&artifact), expires_at, if_version: Some(version - 1) };
            let record = rules.set_expiry(&new).expect("sets");
            assert_eq!((record.expires_at, record.version), (expires_at, version));
            assert_eq!(rules.record(&artifact), record);
            let due = record.account.due_key(expires_at.expect("it has one"), record.id);
            assert!(rules.catalog.get(Keyspace::Due, &due).expect("reads").is_some());
            assert_eq!(rules.catalog.count(Keyspace::Due), others + 1, "the old entry is gone");
        }
    }
}

#[test]
fn an_account_may_keep_for_good_what_was_to_end() {
    let mut rules = Rules::new();
    let ending = NewArtifact { expires_at: Some(Time(NOW.0 + 10)), ..new(1, Into::Account) };
    let (artifact, _) = rules.put(&ending, 1).expect("puts");
    rules.set_expiry(&NewEnd { named: named_as(&artifact), expires_at: None, if_version: None }).expect("sets");
    rules.now = Time(NOW.0 + 10);
    assert_eq!((rules.life(&artifact), rules.catalog.count(Keyspace::Due)), (Life::Readable, 0));
}

/// In the order of the checks: what would be refused on several grounds is refused on the first of them.
#[test]
fn another_end_is_refused_in_the_order_of_the_contract() {
    let mut rules = Rules::new();
    let [of_account, of_conversation, of_run] = one_of_each(&mut rules);
    let gone = put_into(&mut rules, 9, Into::Account);
    for artifact in [&of_conversation, &gone] {
        rules.delete(artifact).expect("deletes");
    }
    let (later, past) = (Some(Time(NOW.0 + 1)), Some(NOW));
    let unknown = Artifact { id: ArtifactId([77; 16]), ..of_account.clone() };
    for (artifact, expires_at, if_version, refused) in [
        (&unknown, past, Some(9), Kind::NotFound),
        (&of_conversation, past, Some(9), Kind::NotExpirable),
        (&gone, past, Some(9), Kind::Gone),
        (&of_account, past, Some(9), Kind::InvalidArgument),
        (&of_run, None, Some(9), Kind::InvalidArgument),
        (&of_account, later, Some(2), Kind::VersionConflict),
        (&of_account, later, Some(0), Kind::VersionConflict),
    ] {
        let new = NewEnd { named: named_as(artifact), expires_at, if_version };
        assert_eq!(kind(rules.set_expiry(&new)), refused, "{expires_at:?} {if_version:?}");
    }
    assert_eq!(rules.record(&of_account), of_account);
}

/// A link of an artifact, under an id made of a number.
fn link_of(rules: &Rules, n: u8, source: &Artifact, to: u8, into: Into) -> NewLink {
    NewLink {
        id: ArtifactId([100 + n; 16]),
        source: named_as(source),
        moves: false,
        to: named(to),
        into,
        name: None,
        detach: false,
        op: None,
        began: rules.lsn,
        keys: keys(),
    }
}

#[test]
fn a_link_is_the_source_once_more_of_another_owner() {
    let mut rules = Rules::new();
    let [of_account, of_conversation, _] = one_of_each(&mut rules);
    rules.open(2, 2).expect("opens");
    let cases = [
        (&of_account, 1, Into::Conversation(conversation(1)), conversation(1).scope.scope.0),
        (&of_conversation, 2, Into::Conversation(conversation(2)), conversation(2).scope.scope.0),
        (&of_conversation, 3, Into::Account, account(3).account.0),
    ];
    for (n, (source, to, into, owner)) in (1..).zip(cases) {
        let asked = NewLink { name: Some("o".repeat(NAME_LEN_MAX)), ..link_of(&rules, n, source, to, into) };
        let linked = rules.link(&asked).expect("links");
        let link = linked.artifact;
        assert!(!linked.replayed);
        assert_eq!((link.owner.id, link.account, link.name.as_str()), (owner, account(to), &*"o".repeat(NAME_LEN_MAX)));
        assert_eq!((&link.born, link.token_lsn, link.sha256), (&source.born, source.token_lsn, source.sha256));
        assert_eq!((link.link_of, link.version, link.place.attach_lsn), (Some(source.id), 1, rules.lsn));
        assert_eq!(rules.record(&link), link);
        assert!(rules.listed(to, link.owner.kind, owner).contains(&link.id));
        assert_eq!(rules.record(source), *source, "the source stays what it is");
    }
    assert_eq!((rules.references(1), rules.references(2)), (2, 3));
    assert!(rules.catalog.account(&account(3)).expect("reads").is_some(), "its first write");
}

#[test]
fn a_link_has_no_end_in_a_conversation_and_that_of_its_source_in_an_account() {
    let mut rules = Rules::new();
    rules.open(1, 1).expect("opens");
    let end = Some(Time(NOW.0 + 10));
    let (source, _) = rules.put(&NewArtifact { expires_at: end, ..new(1, Into::Account) }, 1).expect("puts");
    let due = |rules: &Rules| rules.catalog.count(Keyspace::Due);
    let asked = link_of(&rules, 1, &source, 1, Into::Conversation(conversation(1)));
    assert_eq!((rules.link(&asked).expect("links").artifact.expires_at, due(&rules)), (None, 1));
    let asked = link_of(&rules, 2, &source, 1, Into::Account);
    assert_eq!((rules.link(&asked).expect("links").artifact.expires_at, due(&rules)), (end, 2));
}

type Raise = fn(Lsn) -> Fence;

/// Whatever is raised on where the source comes from ends all copies with it; whatever is raised on where the source is, does not.
#[test]
fn a_copy_is_erased_with_its_source_and_not_deleted_with_it() {
    use Life::{Deleted, Erased, Readable};
    let erase = |lsn| Fence { void_all: lsn, erased_at: lsn, ..Fence::default() };
    let derived = |lsn| Fence { void_derived: lsn, erased_at: lsn, ..Fence::default() };
    let delete = |lsn| Fence { void_all: lsn, ..Fence::default() };
    let tag = ScopeHash([55; 16]);
    let of = |n| conversation(n).scope.scope;
    // The fence; then the source, a link into another account, one that is detached, and a link of that.
    let cases: [(ScopeKind, ScopeHash, Raise, [Life; 4]); 8] = [
        (ScopeKind::Tenant, TENANT_NAME, erase, [Erased; 4]),
        (ScopeKind::Run, run_ref(1).scope, erase, [Erased; 4]),
        (ScopeKind::Tag, tag, derived, [Erased; 4]),
        (ScopeKind::Account, account(1).account, erase, [Erased, Erased, Readable, Readable]),
        (ScopeKind::Account, account(2).account, erase, [Readable, Erased, Erased, Erased]),
        (ScopeKind::Conversation, of(1), delete, [Deleted, Readable, Readable, Readable]),
        (ScopeKind::Conversation, of(2), delete, [Readable, Deleted, Deleted, Deleted]),
        (ScopeKind::Tag, ScopeHash([56; 16]), erase, [Readable; 4]),
    ];
    for (fenced, scope, raise, lives) in cases {
        let mut rules = Rules::new();
        rules.open(1, 1).expect("opens");
        rules.open(2, 2).expect("opens");
        let (_, token) = rules.begin(&NewRun { tags: vec![tag], ..new_run(1) }).expect("begins");
        let put = put_into(&mut rules, 1, Into::Run(run_ref(1), token));
        rules.claim(1, &token, 1, 1).expect("claims");
        let source = rules.record(&put);
        let into = || Into::Conversation(conversation(2));
        let asked = link_of(&rules, 1, &source, 2, into());
        let link = rules.link(&asked).expect("links").artifact;
        let asked = NewLink { detach: true, ..link_of(&rules, 2, &source, 2, into()) };
        let detached = rules.link(&asked).expect("links").artifact;
        let asked = link_of(&rules, 3, &detached, 2, into());
        let again = rules.link(&asked).expect("links").artifact;
        rules.fence(fenced, scope, raise);
        assert_eq!([&source, &link, &detached, &again].map(|a| rules.life(a)), lives, "{fenced:?} {scope:?}");
    }
}

#[test]
fn a_link_needs_a_source_that_is_read_and_a_place_that_takes_it() {
    let mut rules = Rules::new();
    let [of_account, of_conversation, _] = one_of_each(&mut rules);
    rules.open(2, 2).expect("opens");
    rules.open(3, 1).expect("opens");
    rules.open(4, 1).expect("opens");
    let gone = put_into(&mut rules, 9, Into::Account);
    rules.delete(&gone).expect("deletes");
    rules.verb(3, Verb::Archive).expect("archives");
    rules.verb(4, Verb::Delete).expect("deletes");
    let before_reset = rules.lsn;
    rules.verb(2, Verb::Reset).expect("resets");
    let into = |n| Into::Conversation(conversation(n));
    let of_bob = Into::Conversation(Named { account: Some(account(2).account), ..conversation(1) });
    let elsewhere = Artifact { owner: of_account.owner, ..of_conversation };
    for (source, to, place, refused) in [
        (&elsewhere, 1, Into::Account, Kind::NotFound),
        (&gone, 1, Into::Account, Kind::Gone),
        (&of_account, 1, into(9), Kind::NotFound),
        (&of_account, 2, of_bob, Kind::NotFound),
        (&of_account, 1, into(4), Kind::ConvGone),
        (&of_account, 1, into(3), Kind::ConvArchived),
    ] {
        let asked = link_of(&rules, 1, source, to, place);
        assert_eq!(kind(rules.link(&asked)), refused);
    }
    let asked = NewLink { began: before_reset, ..link_of(&rules, 1, &of_account, 2, into(2)) };
    assert_eq!(kind(rules.link(&asked)), Kind::Fenced, "it began before the reset");
    let asked = link_of(&rules, 1, &of_account, 2, into(2));
    rules.link(&asked).expect("it began behind the reset");
}

#[test]
fn what_takes_nothing_new_takes_no_copy_of_what_comes_from_it() {
    let tag = ScopeHash([55; 16]);
    let mut rules = Rules::new();
    rules.open(1, 1).expect("opens");
    let (_, token) = rules.begin(&NewRun { tags: vec![tag], ..new_run(1) }).expect("begins");
    let began = rules.lsn;
    let upload = NewArtifact { origin: Origin::Upload, began, ..new(1, Into::Run(run_ref(1), token)) };
    let (upload, _) = rules.put(&upload, 1).expect("puts");
    rules.fence(ScopeKind::Tag, tag, |lsn| Fence { void_derived: lsn, closed_at: lsn, ..Fence::default() });
    assert_eq!(rules.life(&upload), Life::Readable, "the erasure of a third party spares uploads");
    let asked = link_of(&rules, 1, &upload, 1, Into::Conversation(conversation(1)));
    assert_eq!(kind(rules.link(&asked)), Kind::Fenced);
}

#[test]
fn a_link_with_an_op_id_is_made_once_and_a_retry_of_what_is_gone_says_so() {
    let mut rules = Rules::new();
    let [source, ..] = one_of_each(&mut rules);
    let op = Some(OpHash([6; 16]));
    let into = || Into::Conversation(conversation(1));
    let asked = NewLink { op, ..link_of(&rules, 1, &source, 1, into()) };
    let first = rules.link(&asked).expect("links").artifact;
    rules.delete(&source).expect("deletes");
    let retry = NewLink { op, ..link_of(&rules, 2, &source, 1, into()) };
    let again = rules.link(&retry).expect("answers, although the source is gone");
    assert_eq!((&again.artifact, again.replayed), (&first, true));
    let put = NewArtifact { op, began: rules.lsn, ..new(9, into()) };
    assert_eq!(rules.put(&put, 9).expect("an op id names one call of a scope"), (first.clone(), true));
    rules.delete(&first).expect("deletes");
    assert_eq!(kind(rules.link(&retry)), Kind::Gone);
}

#[test]
fn a_rename_is_a_link_and_a_deletion_in_one() {
    let mut rules = Rules::new();
    let [_, source, _] = one_of_each(&mut rules);
    let into = Into::Conversation(conversation(1));
    let asked = NewLink { moves: true, name: Some("better".into()), ..link_of(&rules, 1, &source, 1, into) };
    let link = rules.link(&asked).expect("renames").artifact;
    assert_eq!([&source, &link].map(|artifact| rules.life(artifact)), [Life::Deleted, Life::Readable]);
    assert_eq!((link.name.as_str(), rules.references(2)), ("better", 2));
    assert_eq!(kind(rules.link(&asked)), Kind::Gone, "without an op id a retry finds no source");
}

fn fork_of(rules: &Rules, seed: u8, from: u8, to: u8) -> NewFork {
    NewFork {
        ids: RandomIds::new([seed; 32]),
        source: conversation(from),
        upto: None,
        into: conversation(to),
        op: None,
        began: rules.lsn,
        keys: keys(),
    }
}

#[test]
fn a_fork_brings_a_link_of_each_readable_artifact_in_order() {
    let mut rules = Rules::new();
    rules.open(1, 1).expect("opens");
    rules.open(2, 2).expect("opens");
    let into = || Into::Conversation(conversation(1));
    put_into(&mut rules, 1, into());
    rules.verb(1, Verb::Reset).expect("resets");
    let put = |rules: &mut Rules, n: u8, bytes: u8| {
        let began = rules.lsn;
        rules.put(&NewArtifact { began, ..new(n, into()) }, bytes).expect("puts").0
    };
    let sources = [(2, 7), (3, 8), (4, 7), (5, 7)].map(|(n, bytes)| put(&mut rules, n, bytes));
    rules.delete(&sources[1]).expect("deletes");
    let last = Some(sources[2].id);
    let asked = NewFork { upto: last, ..fork_of(&rules, 1, 1, 2) };
    let forked = rules.fork(&asked).expect("forks");
    let links = &forked.artifacts;
    assert_eq!(links.iter().map(|link| link.link_of).collect::<Vec<_>>(), [Some(sources[0].id), last]);
    assert!(links.iter().all(|link| link.account == account(2) && link.place.attach_lsn == rules.lsn));
    let listed = rules.listed(2, OwnerKind::Conversation, conversation(2).scope.scope.0);
    assert_eq!(listed, links.iter().map(|link| link.id).collect::<Vec<_>>());
    assert_eq!((rules.references(7), rules.references(8)), (5, 1), "one blob for two of them");
    let record = rules.catalog.conversation(&conversation(2).scope).expect("reads").expect("there");
    assert_eq!((record.forked_from, record.changed_lsn), (Some(conversation(1).scope.scope), rules.lsn));
    let asked = fork_of(&rules, 2, 1, 2);
    assert_eq!(rules.fork(&asked).expect("forks").artifacts.len(), 3, "all of it");
}

#[test]
fn a_fork_is_refused_as_a_whole() {
    let mut rules = Rules::new();
    for n in 1..=5 {
        rules.open(n, 1).expect("opens");
    }
    put_into(&mut rules, 1, Into::Conversation(conversation(1)));
    rules.verb(3, Verb::Archive).expect("archives");
    rules.verb(4, Verb::Delete).expect("deletes");
    let began = rules.lsn;
    rules.verb(5, Verb::Reset).expect("resets");
    let unknown = NewFork { upto: Some(ArtifactId([77; 16])), ..fork_of(&rules, 1, 1, 2) };
    let late = NewFork { began, ..fork_of(&rules, 1, 1, 5) };
    let of_bob = Named { account: Some(account(2).account), ..conversation(2) };
    let not_theirs = NewFork { into: of_bob, ..fork_of(&rules, 1, 1, 2) };
    for (asked, refused) in [
        (fork_of(&rules, 1, 1, 1), Kind::InvalidArgument),
        (fork_of(&rules, 1, 9, 2), Kind::NotFound),
        (fork_of(&rules, 1, 1, 9), Kind::NotFound),
        (fork_of(&rules, 1, 4, 2), Kind::ConvGone),
        (fork_of(&rules, 1, 1, 4), Kind::ConvGone),
        (fork_of(&rules, 1, 1, 3), Kind::ConvArchived),
        (unknown, Kind::NotFound),
        (late, Kind::Fenced),
        (not_theirs, Kind::NotFound),
    ] {
        let forked = rules.call(|state, lsn, now| {
            let (edits, _) = link::fork(state, lsn, now, &asked, ROOM)?;
            Ok((edits, ()))
        });
        assert_eq!(kind(forked), refused);
    }
    assert_eq!(rules.references(1), 1);
}

#[test]
fn a_fork_that_outgrows_its_room_changes_nothing() {
    let mut rules = Rules::new();
    rules.open(1, 1).expect("opens");
    rules.open(2, 1).expect("opens");
    put_into(&mut rules, 1, Into::Conversation(conversation(1)));
    let asked = fork_of(&rules, 1, 1, 2);
    let (edits, outcome) = link::fork(&rules.catalog, rules.lsn.plus(1), NOW, &asked, 100).expect("decided");
    assert!(edits.is_empty() && matches!(outcome, Sized::Outgrown));
}

#[test]
fn a_fork_with_an_op_id_is_made_once_and_shows_what_it_brought() {
    let mut rules = Rules::new();
    rules.open(1, 1).expect("opens");
    rules.open(2, 1).expect("opens");
    let sources = [1, 2].map(|n| put_into(&mut rules, n, Into::Conversation(conversation(1))));
    let op = Some(OpHash([6; 16]));
    let asked = NewFork { op, ..fork_of(&rules, 1, 1, 2) };
    let first = rules.fork(&asked).expect("forks").artifacts;
    put_into(&mut rules, 3, Into::Conversation(conversation(2)));
    rules.verb(1, Verb::Delete).expect("deletes");
    let retry = NewFork { op, ..fork_of(&rules, 2, 1, 2) };
    let again = rules.call(|state, lsn, now| match link::fork(state, lsn, now, &retry, ROOM)? {
        (edits, Sized::Done(forked)) => Ok((edits, forked)),
        (_, Sized::Outgrown) => panic!("it has no edits"),
    });
    let again = again.expect("answers");
    assert_eq!((again.artifacts, again.replayed), (first, true));
    let asked = NewLink { op, ..link_of(&rules, 1, &sources[0], 1, Into::Conversation(conversation(2))) };
    assert_eq!(kind(rules.link(&asked)), Kind::InvalidArgument, "an op id names one call of a scope");
}
