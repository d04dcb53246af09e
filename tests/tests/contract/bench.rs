//! A store on a simulated machine whose clock stands, and calls that say only what a test is about.

use std::io::{self, Read};

use holdfast::{
    AccountScope, ArtifactInfo, BeginRun, ClaimReply, ClaimedInfo, ConversationScope, Destination, Error, Fork, Get,
    Kind, Leased, Link, Put, PutReply, Result, RunScope, RunToken, Scope, Store, VerifyOptions,
    disk::sim::SimDisk,
    format::{artifact::Origin, run::RunState},
    ids::{ArtifactId, RunId, Time},
    ownership::{conversation::Verb, run::Finish},
};
use holdfast_tests::harness::{Machine, machine::START};

pub(crate) const TENANT: &str = "default";
pub(crate) const DAY: u64 = 24 * 3600 * 1000;

pub(crate) struct Bench {
    pub(crate) machine: Machine,
    store: Option<Store>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let machine = Machine::new(SimDisk::new(1), START, 7);
        machine.init().expect("a store is made");
        let store = Some(machine.open().expect("opens"));
        Self { machine, store }
    }

    pub(crate) fn store(&self) -> &Store {
        self.store.as_ref().expect("open")
    }

    /// The process ends without a close, and another one opens the store.
    pub(crate) fn restart(&mut self) {
        drop(self.store.take());
        let store = self.machine.open().expect("opens again");
        assert!(store.report().problems.is_empty());
        self.store = Some(store);
    }

    pub(crate) fn later(&self, ms: u64) {
        self.machine.clock.advance(ms);
    }

    pub(crate) fn now(&self) -> Time {
        self.machine.world.clock.wall()
    }

    pub(crate) fn open(&self, conversation: &str) {
        self.store().open_conversation(&account("ann"), conversation).expect("opens");
    }

    pub(crate) fn verb(&self, conversation: &str, verb: Verb) -> Result<()> {
        self.store().change_conversation(&named(conversation), verb).map(drop)
    }

    pub(crate) fn begin(&self) -> Leased {
        self.store().begin_run(&BeginRun::of(account("ann"))).expect("begins")
    }

    pub(crate) fn begin_for(&self, conversation: &str) -> Leased {
        let begin = BeginRun { conversation: Some(conversation), ..BeginRun::of(account("ann")) };
        self.store().begin_run(&begin).expect("begins")
    }

    pub(crate) fn lease_again(&self, run: RunId) -> Result<Leased> {
        self.store().begin_run(&BeginRun { again: Some(run), ..BeginRun::of(account("ann")) })
    }

    pub(crate) fn put(&self, put: &Put<'_>, bytes: &[u8]) -> Result<PutReply> {
        self.store().put(put, &mut &*bytes)
    }

    /// A file of a run, its bytes made of its name.
    pub(crate) fn export(&self, token: &RunToken, name: &str) -> ArtifactId {
        self.put(&into_run(token, name), name.as_bytes()).expect("puts").id
    }

    pub(crate) fn claim(&self, token: &RunToken, conversation: &str, reply: &str) -> Result<ClaimReply> {
        self.store().claim_run(TENANT, token, conversation, reply)
    }

    pub(crate) fn finish(&self, token: &RunToken, outcome: RunState, release_claim: bool) -> Result<()> {
        self.store().finish_run(TENANT, token, Finish { outcome, release_claim }).map(drop)
    }

    pub(crate) fn read<'s>(&self, scope: impl Into<Scope<'s>>, id: ArtifactId) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.store().get(scope, id, &Get::WHOLE, &mut bytes).map(|_| bytes)
    }

    pub(crate) fn delete<'s>(&self, scope: impl Into<Scope<'s>>, id: ArtifactId) -> Result<ArtifactInfo> {
        self.store().delete(scope, id)
    }

    /// A link into a conversation or account, of the same name.
    pub(crate) fn link<'s>(
        &self,
        from: impl Into<Scope<'s>>,
        id: ArtifactId,
        to: impl Into<Scope<'s>>,
    ) -> Result<ArtifactId> {
        let link = Link { from: from.into(), id, to: to.into(), name: None, detach: false, op_id: None };
        self.store().link(&link).map(|reply| reply.artifact.id)
    }

    pub(crate) fn fork(&self, from: &str, to: &str) -> Result<Vec<ArtifactId>> {
        let reply = self.store().fork(&Fork { from: named(from), to: named(to), upto: None, op_id: None })?;
        Ok(reply.artifacts.iter().map(id_of).collect())
    }

    pub(crate) fn stat<'s>(&self, scope: impl Into<Scope<'s>>, id: ArtifactId) -> ArtifactInfo {
        self.store().stat(scope, id).expect("it has a record here")
    }

    pub(crate) fn list<'s>(&self, scope: impl Into<Scope<'s>>) -> Vec<ArtifactId> {
        self.store().list(scope, None, 1000).expect("lists").artifacts.iter().map(|info| info.id).collect()
    }

    /// Nothing is wrong with the store, and every reference is there as often as it is counted.
    pub(crate) fn verify(mut self) {
        self.store.take().expect("open").close().expect("closes");
        let options = VerifyOptions { deep: true, refs: true, ..VerifyOptions::default() };
        let report = Store::verify(&self.machine.world, &options, &mut |_, _| {}).expect("verifies");
        assert!(report.problems.is_empty(), "{:?}", report.problems);
        holdfast_tests::oracle::independent::read_clean(&self.machine.sim.image()).expect("the other parser agrees");
    }
}

pub(crate) fn account(account: &str) -> AccountScope<'_> {
    AccountScope { tenant: TENANT, account }
}

pub(crate) fn named(conversation: &str) -> ConversationScope<'_> {
    ConversationScope { tenant: TENANT, account: None, conversation }
}

pub(crate) fn conversation(conversation: &str) -> Scope<'_> {
    Scope::Conversation(named(conversation))
}

pub(crate) const fn run(run: RunId) -> Scope<'static> {
    Scope::Run(RunScope { tenant: TENANT, account: None, run })
}

pub(crate) fn into<'a>(scope: Destination<'a>, name: &'a str) -> Put<'a> {
    Put {
        scope,
        name,
        origin: Origin::SandboxExport,
        media_type: None,
        op_id: None,
        order: None,
        expires_at: None,
        size_hint: None,
        logical_size: None,
        supersedes: None,
    }
}

pub(crate) fn into_run<'a>(token: &RunToken, name: &'a str) -> Put<'a> {
    into(Destination::Run { tenant: TENANT, token: *token }, name)
}

pub(crate) fn into_conversation<'a>(conversation: &'a str, name: &'a str) -> Put<'a> {
    into(Destination::Conversation(named(conversation)), name)
}

pub(crate) fn into_account(name: &str) -> Put<'_> {
    Put { origin: Origin::Upload, ..into(Destination::Account(account("ann")), name) }
}

pub(crate) fn ids(reply: &ClaimReply) -> Vec<ArtifactId> {
    reply.artifacts.iter().map(id_of).collect()
}

pub(crate) fn id_of(claimed: &ClaimedInfo) -> ArtifactId {
    match claimed {
        ClaimedInfo::Here(info) => info.id,
        ClaimedInfo::Gone(id, _) => *id,
    }
}

#[track_caller]
pub(crate) fn kind<T>(result: Result<T>) -> Kind {
    match result {
        Ok(_) => panic!("it was not refused"),
        Err(error) => error.kind(),
    }
}

/// What an error tells, for those that must not differ.
#[track_caller]
pub(crate) fn told<T>(result: Result<T>) -> (Kind, String) {
    let error: Error = result.err().expect("refused");
    (error.kind(), error.message().to_owned())
}

/// A stream that lets something happen once it has given half of its bytes.
pub(crate) struct During<'a, F: FnMut()> {
    pub(crate) bytes: &'a [u8],
    pub(crate) at: usize,
    pub(crate) act: Option<F>,
}

impl<'a, F: FnMut()> During<'a, F> {
    pub(crate) fn new(bytes: &'a [u8], act: F) -> Self {
        Self { bytes, at: 0, act: Some(act) }
    }
}

impl<F: FnMut()> Read for During<'_, F> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let half = self.bytes.len() / 2;
        let end = if self.act.is_some() { half } else { self.bytes.len() };
        if self.at == half
            && let Some(mut act) = self.act.take()
        {
            act();
            return self.read(out);
        }
        let len = out.len().min(end - self.at);
        out[..len].copy_from_slice(&self.bytes[self.at..self.at + len]);
        self.at += len;
        Ok(len)
    }
}

/// Bytes of a long stream, which commits its progress on the way.
pub(crate) fn long(seed: u8) -> Vec<u8> {
    let mut bytes = vec![0; 60 << 10];
    blake3::Hasher::new().update(&[seed]).finalize_xof().fill(&mut bytes);
    bytes
}
