//! The rules against a catalog in memory: each call is decided and applied, as a commit does it.

use super::{
    artifact::{self, Content, Into, Life, NewArtifact, Outcome, PUT_LEN_MAX},
    claim::{self, Claiming, NewClaim, Sized},
    conversation::{self, Named, Verb},
    ending::{self, NewEnd},
    fences,
    link::{self, Forked, Linked, NewFork, NewLink},
    run::{self, Finish, NewRun},
    token::{self, RunToken},
};
use crate::{
    catalog::{Catalog, State},
    digest::{RandomIds, ScopeKind, TenantKeys},
    error::{Error, Kind, Result},
    format::{
        artifact::{Artifact, Origin},
        claim::SkipReason,
        commit::Edit,
        conversation::{Conversation, ConversationState},
        fence::Fence,
        keyspace::{AccountRef, Keyspace, OwnerKind, ScopeRef},
        run::{Run, RunState},
        value::BlobValue,
    },
    ids::{ArtifactId, ChunkId, IdentityHash, Lsn, OpHash, RunId, ScopeHash, Sha256, TenantNumber, Time, TokenBits},
    limits::{
        ACCOUNT_OP_KEPT_MS, CLAIM_MAX, MEDIA_TYPE_LEN_MAX, NAME_LEN_MAX, RUN_OP_KEPT_MS, RUN_TAGS_MAX, SCOPE_ID_LEN_MAX,
    },
};

mod changes;
mod claims;
mod conversations;
mod puts;
mod runs;

const NOW: Time = Time(1_000_000_000_000);
const TENANT: TenantNumber = TenantNumber(1);
const TENANT_NAME: ScopeHash = ScopeHash([90; 16]);
const TTL: u64 = 1_000_000;
const LEASE: u64 = 1_000;
const ROOM: usize = 1 << 20;

fn account(n: u8) -> AccountRef {
    AccountRef { tenant: TENANT, account: ScopeHash([n; 16]) }
}

fn named(n: u8) -> super::account::Named {
    super::account::Named { account: account(n), text: "a".repeat(SCOPE_ID_LEN_MAX) }
}

fn conversation(n: u8) -> Named {
    let scope = ScopeRef { tenant: TENANT, scope: ScopeHash([100 + n; 16]) };
    Named { tenant: TENANT_NAME, scope, account: None }
}

fn keys() -> TenantKeys {
    TenantKeys::new(&[3; 32])
}

fn content(n: u8) -> Content {
    let sha256 = Sha256([n; 32]);
    Content { key: keys().blob(sha256, 6), sha256, size: 6, root: ChunkId([n; 32]) }
}

/// A store of records alone, and a clock.
struct Rules {
    catalog: Catalog,
    lsn: Lsn,
    now: Time,
}

impl Rules {
    fn new() -> Self {
        Self { catalog: Catalog::default(), lsn: Lsn::FIRST, now: NOW }
    }

    /// Decides and, if it is allowed, applies.
    fn call<T>(&mut self, decide: impl FnOnce(&Catalog, Lsn, Time) -> Result<(Vec<Edit>, T)>) -> Result<T> {
        self.lsn = self.lsn.plus(1);
        let (edits, answer) = decide(&self.catalog, self.lsn, self.now)?;
        for edit in &edits {
            self.catalog.apply(edit).expect("applies");
        }
        Ok(answer)
    }

    fn open(&mut self, n: u8, owner: u8) -> Result<Conversation> {
        let asked = Named { account: Some(account(owner).account), ..conversation(n) };
        self.call(|state, lsn, now| conversation::open(state, lsn, now, &asked, &named(owner), "c"))
    }

    fn verb(&mut self, n: u8, verb: Verb) -> Result<Conversation> {
        self.call(|state, lsn, _| {
            let (edits, record) = conversation::change(state, lsn, &conversation(n), verb)?;
            assert!(edits.iter().map(Edit::encoded_len).sum::<usize>() <= conversation::EDITS_LEN_MAX);
            Ok((edits, record))
        })
    }

    fn put(&mut self, new: &NewArtifact, bytes: u8) -> Result<(Artifact, bool)> {
        self.call(|state, lsn, now| match artifact::put(state, lsn, now, new, &content(bytes))? {
            Outcome::Replayed(edits, artifact) => Ok((edits, (artifact, true))),
            Outcome::New(edits, artifact) => {
                assert!(edits.iter().map(Edit::encoded_len).sum::<usize>() <= PUT_LEN_MAX);
                Ok((edits, (artifact, false)))
            }
        })
    }

    fn begin(&mut self, new: &NewRun) -> Result<(Run, RunToken)> {
        let run = self.call(|state, lsn, now| {
            let (edits, run) = run::begin(state, lsn, now, new)?;
            assert!(edits.iter().map(Edit::encoded_len).sum::<usize>() <= run::EDITS_LEN_MAX);
            Ok((edits, run))
        })?;
        let token = RunToken::of(&run);
        Ok((run, token))
    }

    fn lease(&mut self, new: &NewRun) -> Result<(Run, RunToken)> {
        let run = self.call(|state, lsn, now| run::lease(state, lsn, now, new))?;
        let token = RunToken::of(&run);
        Ok((run, token))
    }

    fn finish(&mut self, n: u8, token: &RunToken, outcome: RunState, release_claim: bool) -> Result<Run> {
        let finish = Finish { outcome, release_claim };
        self.call(|state, lsn, now| run::finish(state, lsn, now, TENANT_NAME, &run_ref(n), token, finish))
    }

    fn claim(&mut self, n: u8, token: &RunToken, to: u8, reply: u8) -> Result<Claiming> {
        let new = new_claim(n, token, to, reply);
        self.call(|state, lsn, now| match claim::claim(state, lsn, now, &new, ROOM)? {
            (edits, Sized::Done(claiming)) => Ok((edits, claiming)),
            (_, Sized::Outgrown) => panic!("a megabyte is enough"),
        })
    }

    fn fence(&mut self, kind: ScopeKind, scope: ScopeHash, fence: impl FnOnce(Lsn) -> Fence) {
        self.call(|state, lsn, _| Ok((vec![fences::raise(state, (kind, scope), fence(lsn))?], ()))).expect("raised");
    }

    fn delete(&mut self, artifact: &Artifact) -> Result<Artifact> {
        let named = named_as(artifact);
        self.call(|state, _, _| {
            let (edits, record) = ending::delete(state, &named)?;
            assert!(edits.iter().map(Edit::encoded_len).sum::<usize>() <= artifact::record_len(&record));
            Ok((edits, record))
        })
    }

    fn set_expiry(&mut self, new: &NewEnd) -> Result<Artifact> {
        self.call(|state, _, now| {
            let (edits, record) = ending::set_expiry(state, now, new)?;
            assert!(
                edits.iter().map(Edit::encoded_len).sum::<usize>()
                    <= artifact::record_len(&record) + ending::DUE_LEN_MAX
            );
            Ok((edits, record))
        })
    }

    fn link(&mut self, new: &NewLink) -> Result<Linked> {
        self.call(|state, lsn, now| {
            let (edits, linked) = link::link(state, lsn, now, new)?;
            let records = if linked.replayed { 0 } else { artifact::record_len(&new.source.find(state)?) };
            assert!(edits.iter().map(Edit::encoded_len).sum::<usize>() <= link::FIXED_LEN_MAX + 2 * records);
            Ok((edits, linked))
        })
    }

    fn fork(&mut self, new: &NewFork) -> Result<Forked> {
        self.call(|state, lsn, now| {
            let room = link::fork_len(state, now, new)?;
            match link::fork(state, lsn, now, new, room)? {
                (edits, Sized::Done(forked)) => Ok((edits, forked)),
                (_, Sized::Outgrown) => panic!("what was counted a moment ago is enough"),
            }
        })
    }

    fn references(&self, bytes: u8) -> u64 {
        self.catalog.blob(content(bytes).key).expect("reads").expect("there").references
    }

    fn life(&self, artifact: &Artifact) -> Life {
        let record = self.catalog.artifact(&artifact.account, artifact.id).expect("decodes").expect("it has a record");
        artifact::life(&self.catalog, TENANT_NAME, &record, self.now).expect("decided")
    }

    fn record(&self, artifact: &Artifact) -> Artifact {
        self.catalog.artifact(&artifact.account, artifact.id).expect("decodes").expect("it has a record")
    }

    /// Artifacts of an owner, as its list has them. Each one's own record says the same.
    fn listed(&self, owner: u8, kind: OwnerKind, id: [u8; 16]) -> Vec<ArtifactId> {
        let owner_of = crate::format::keyspace::Owner { kind, id };
        let prefix = account(owner).owner_prefix(owner_of);
        let entries = self.catalog.scan(Keyspace::ByOwner, &prefix, None, 100_000).expect("lists");
        entries
            .into_iter()
            .map(|(key, id)| {
                let record = artifact::listed(&self.catalog, &account(owner), &id).expect("a listed one has a record");
                assert_eq!(record.account.owner_key(record.owner, record.place), key);
                record.id
            })
            .collect()
    }
}

fn run_ref(n: u8) -> ScopeRef {
    ScopeRef { tenant: TENANT, scope: ScopeHash([200 + n; 16]) }
}

fn new_run(n: u8) -> NewRun {
    NewRun {
        id: RunId([n; 16]),
        scope: run_ref(n),
        token: TokenBits([n; 16]),
        tenant: TENANT_NAME,
        owner: named(1),
        conversation: None,
        parent: None,
        tags: Vec::new(),
        ttl: TTL,
        lease: LEASE,
        request: None,
    }
}

fn new_claim(n: u8, token: &RunToken, to: u8, reply: u8) -> NewClaim {
    NewClaim {
        tenant: TENANT_NAME,
        run: run_ref(n),
        token: *token,
        conversation: conversation(to).scope.scope,
        reply: OpHash([reply; 16]),
    }
}

fn new(id: u8, into: Into) -> NewArtifact {
    NewArtifact {
        id: ArtifactId([id; 16]),
        tenant: TENANT_NAME,
        owner: named(1),
        into,
        name: format!("{id}{}", "n".repeat(NAME_LEN_MAX - 3)),
        origin: Origin::SandboxExport,
        order: Some(3),
        media_type: "m".repeat(MEDIA_TYPE_LEN_MAX),
        detected_type: "d".repeat(MEDIA_TYPE_LEN_MAX),
        expires_at: None,
        logical_size: None,
        supersedes: None,
        op: None,
        identity: None,
        began: Lsn::FIRST,
    }
}

fn named_as(artifact: &Artifact) -> artifact::Named {
    let Artifact { id, account, owner, .. } = *artifact;
    artifact::Named { tenant: TENANT_NAME, account, owner, id }
}

fn kind<T: std::fmt::Debug>(result: Result<T>) -> Kind {
    result.expect_err("refused").kind()
}

fn kind_of(error: &Error) -> Kind {
    error.kind()
}
