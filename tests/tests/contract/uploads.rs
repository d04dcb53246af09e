//! Uploads: bytes that come in parts, over restarts, and what they become until a conversation takes it.

use std::ops::ControlFlow;

use holdfast::{
    ClaimedInfo, CommitUpload, Kind, PutReply, Result, Scope, SentReply, Store, UploadInfo, UploadScope, VerifyOptions,
    disk::sim::{Budget, Crashes, Image, Mode, SimDisk},
    format::artifact::Origin,
    ids::{ArtifactId, UploadId},
    ownership::conversation::Verb,
};
use holdfast_tests::{
    harness::{Machine, machine::START},
    oracle::independent,
    random::Random,
};

use crate::bench::*;

const COMMIT: CommitUpload<'_> =
    CommitUpload { name: "file", origin: Origin::Upload, media_type: None, order: None, expect_sha256: None };

const fn of(upload: UploadId) -> UploadScope<'static> {
    UploadScope { tenant: TENANT, account: "ann", upload }
}

fn began(bench: &Bench, declared: Option<u64>) -> UploadId {
    bench.store().begin_upload(&account("ann"), declared).expect("begins").upload
}

fn append(bench: &Bench, upload: UploadId, offset: u64, bytes: &[u8]) -> Result<UploadInfo> {
    bench.store().append_upload(&of(upload), offset, &mut &*bytes)
}

fn commit(bench: &Bench, upload: UploadId) -> Result<PutReply> {
    bench.store().commit_upload(&of(upload), &COMMIT)
}

/// An upload of these bytes that was committed.
fn sent(bench: &Bench, bytes: &[u8]) -> (UploadId, ArtifactId) {
    let upload = began(bench, None);
    append(bench, upload, 0, bytes).expect("appends");
    (upload, commit(bench, upload).expect("commits").id)
}

fn claim(bench: &Bench, conversation: &str, message: &str, ids: &[ArtifactId]) -> Result<SentReply> {
    bench.store().claim_uploads(&named(conversation), message, ids)
}

fn ids(reply: &SentReply) -> Vec<ArtifactId> {
    let id = |info: &ClaimedInfo| match info {
        ClaimedInfo::Here(info) => info.id,
        ClaimedInfo::Gone(id, _) => *id,
    };
    reply.artifacts.iter().map(id).collect()
}

fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Random::of(seed, &[]).fill(&mut bytes);
    bytes
}

#[test]
fn c8_parts_of_any_length_are_stored_as_if_they_had_come_at_once() {
    let mut bench = Bench::new();
    let mut random = Random::of(5, &[]);
    for (seed, len) in [0, 1, 4096, 65_536, 65_537, 200_000, 1_300_000, 3_000_000].into_iter().enumerate() {
        let bytes = noise(seed as u64, len);
        let upload = began(&bench, Some(len as u64));
        let mut at = 0;
        while at < len {
            let most = *random.pick(&[1, 300, 70_000, 900_000, 2_000_000]);
            let part = &bytes[at..len.min(at + most)];
            let info = append(&bench, upload, at as u64, part).expect("appends");
            at += part.len();
            assert_eq!(info.offset, at as u64);
            if random.one_in(3) {
                bench.restart();
                assert_eq!(bench.store().upload(&of(upload)).expect("goes on").offset, at as u64);
            }
        }
        let reply = commit(&bench, upload).expect("commits");
        let scope = Scope::Upload(of(upload));
        assert_eq!(bench.read(scope, reply.id).expect("reads"), bytes, "{len}");
        let before = bench.store().stats().expect("counts");
        let whole = bench.put(&into_account("file"), &bytes).expect("puts");
        let after = bench.store().stats().expect("counts");
        assert_eq!(whole.sha256, reply.sha256);
        assert_eq!((after.chunks, after.blobs), (before.chunks, before.blobs), "cut in the same way: {len}");
        assert_eq!(after.live_bytes, before.live_bytes, "{len}");
    }
    bench.verify();
}

#[test]
fn c8_an_append_goes_on_where_the_upload_stands_and_nowhere_else() {
    let bench = Bench::new();
    let upload = began(&bench, Some(10));
    assert_eq!(append(&bench, upload, 0, b"01234").expect("appends").offset, 5);
    for offset in [0, 4, 6, u64::MAX] {
        assert_eq!(kind(append(&bench, upload, offset, b"5")), Kind::OffsetConflict);
    }
    assert_eq!(kind(append(&bench, upload, 5, b"567890")), Kind::TooLarge);
    assert_eq!(kind(commit(&bench, upload)), Kind::NotReady);
    assert_eq!(append(&bench, upload, 5, b"").expect("nothing is allowed").offset, 5);
    assert_eq!(append(&bench, upload, 5, b"56789").expect("appends").offset, 10);
    let wrong = CommitUpload { expect_sha256: Some(holdfast::ids::Sha256([1; 32])), ..COMMIT };
    assert_eq!(kind(bench.store().commit_upload(&of(upload), &wrong)), Kind::DigestMismatch);
    let named = CommitUpload { name: "a/b", ..COMMIT };
    assert_eq!(kind(bench.store().commit_upload(&of(upload), &named)), Kind::BadName);
    let id = commit(&bench, upload).expect("commits").id;
    assert_eq!(bench.read(Scope::Upload(of(upload)), id).expect("reads"), b"0123456789");
    assert_eq!(kind(append(&bench, upload, 10, b"x")), Kind::NotFound);
    assert_eq!(kind(bench.store().upload(&of(upload))), Kind::NotFound);
    bench.verify();
}

#[test]
fn c19_the_store_says_name_size_digest_and_type_of_what_an_upload_became() {
    let bench = Bench::new();
    let upload = began(&bench, None);
    append(&bench, upload, 0, b"\x89PNG\r\n").expect("appends");
    append(&bench, upload, 6, b"\x1a\n\0\0\0\rIHDR and more").expect("appends");
    let asked = CommitUpload { name: "pictu\u{308}re.png", media_type: Some("text/plain"), ..COMMIT };
    let reply = bench.store().commit_upload(&of(upload), &asked).expect("commits");
    let info = bench.stat(Scope::Upload(of(upload)), reply.id);
    assert_eq!((info.name.as_str(), info.size), ("pict\u{fc}re.png", 25));
    assert_eq!((info.media_type.as_str(), info.detected_type.as_deref()), ("text/plain", Some("image/png")));
    assert_eq!((info.state.as_str(), info.owner_kind.as_str()), ("pending", "upload"));
    assert_eq!(info.owner_id, upload.to_string());
    assert_eq!(info.expires_at.map(|end| end.0), Some(bench.now().0 + DAY));
}

#[test]
fn a16_a_claim_of_uploads_takes_all_or_none_and_once() {
    let mut bench = Bench::new();
    bench.open("c");
    bench.open("d");
    let (upload, first) = sent(&bench, b"first");
    let (_, second) = sent(&bench, b"second");
    let published = bench.put(&into_conversation("c", "p"), b"p").expect("puts").id;
    let own = bench.put(&into_account("own"), b"own").expect("puts").id;
    for unknown in [ArtifactId([7; 16]), own] {
        assert_eq!(kind(claim(&bench, "c", "m", &[first, unknown])), Kind::NotFound);
    }
    assert_eq!(kind(claim(&bench, "c", "m", &[first, published])), Kind::AlreadyClaimed);
    assert_eq!(bench.list(conversation("c")), [published], "none of it");

    let reply = claim(&bench, "c", "m", &[second, first, second]).expect("claims");
    assert_eq!((ids(&reply), reply.replayed), (vec![second, first], false));
    assert_eq!(bench.list(conversation("c")), [published, second, first], "in the order that was asked for");
    assert_eq!(bench.stat(conversation("c"), first).expires_at, None, "it lives as long as the conversation");
    assert_eq!(kind(bench.read(Scope::Upload(of(upload)), first)), Kind::NotFound);
    bench.restart();
    let again = claim(&bench, "c", "m", &[second, first]).expect("answers");
    assert_eq!((ids(&again), again.replayed), (vec![second, first], true));
    assert_eq!(kind(claim(&bench, "c", "m", &[first])), Kind::AlreadyClaimed, "another call");
    for (to, message) in [("c", "other"), ("d", "m")] {
        assert_eq!(kind(claim(&bench, to, message, &[first])), Kind::AlreadyClaimed);
    }
    bench.later(40 * DAY);
    assert_eq!(bench.read(conversation("c"), first).expect("reads"), b"first");
    bench.verb("c", Verb::Delete).expect("deletes");
    assert_eq!(kind(bench.read(conversation("c"), first)), Kind::Gone);
    bench.verify();
}

#[test]
fn a16_uploads_of_another_account_and_closed_conversations_are_refused() {
    let bench = Bench::new();
    bench.open("c");
    let (_, id) = sent(&bench, b"mine");
    bench.store().open_conversation(&account("bob"), "bobs").expect("opens");
    let bobs = holdfast::ConversationScope { account: None, ..named("bobs") };
    let asked = |id| bench.store().claim_uploads(&bobs, "m", &[id]);
    assert_eq!(told(asked(id)).0, told(asked(ArtifactId([9; 16]))).0, "as unknown as a random one");
    bench.verb("c", Verb::Archive).expect("archives");
    assert_eq!(kind(claim(&bench, "c", "m", &[id])), Kind::ConvArchived);
    bench.verb("c", Verb::Delete).expect("deletes");
    assert_eq!(kind(claim(&bench, "c", "m", &[id])), Kind::ConvGone);
    let upload = began(&bench, None);
    let as_bob = UploadScope { account: "bob", ..of(upload) };
    assert_eq!(kind(bench.store().append_upload(&as_bob, 0, &mut &b"x"[..])), Kind::NotFound);
    assert_eq!(kind(bench.store().upload(&as_bob)), Kind::NotFound);
    bench.store().abort_upload(&as_bob).expect("as one that has ended");
    assert_eq!(append(&bench, upload, 0, b"x").expect("it is there").offset, 1);
    bench.verify();
}

#[test]
fn c17_and_s45_what_was_never_finished_or_never_sent_ends_after_a_day() {
    let mut bench = Bench::new();
    bench.open("c");
    let idle = began(&bench, None);
    append(&bench, idle, 0, b"half").expect("appends");
    bench.later(DAY - 1);
    append(&bench, idle, 4, b" of it").expect("a millisecond before");
    let (upload, unsent) = sent(&bench, b"unsent");
    let all = bench.store().list_uploads(&account("ann"), None, 10).expect("lists");
    assert_eq!(all.iter().map(|info| (info.upload, info.offset)).collect::<Vec<_>>(), [(idle, 10)]);
    bench.later(DAY);
    assert_eq!(kind(append(&bench, idle, 10, b"x")), Kind::Gone);
    assert_eq!(kind(commit(&bench, idle)), Kind::Gone);
    assert_eq!(kind(bench.read(Scope::Upload(of(upload)), unsent)), Kind::Gone);
    assert_eq!(bench.stat(Scope::Upload(of(upload)), unsent).state.as_str(), "expired");
    assert_eq!(kind(claim(&bench, "c", "m", &[unsent])), Kind::Gone);
    assert_eq!(kind(commit(&bench, upload)), Kind::Gone, "a retry hears that it is no more");
    assert_eq!(bench.store().list_uploads(&account("ann"), None, 10).expect("lists"), []);
    bench.restart();
    assert_eq!(bench.store().report().aborted_uploads, 1, "an open lets go of what it held");
    assert_eq!(kind(append(&bench, idle, 10, b"x")), Kind::NotFound);
    bench.verify();
}

#[test]
fn s46_and_s47_commits_of_one_upload_give_one_id() {
    for _ in 0..50 {
        let bench = Bench::new();
        let upload = began(&bench, None);
        let bytes = noise(1, 300_000);
        append(&bench, upload, 0, &bytes).expect("appends");
        let replies: Vec<PutReply> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..2).map(|_| scope.spawn(|| commit(&bench, upload).expect("commits"))).collect();
            threads.into_iter().map(|thread| thread.join().expect("ends")).collect()
        });
        assert_eq!(replies[0].id, replies[1].id);
        assert_eq!(replies.iter().filter(|reply| reply.replayed).count(), 1);
        assert_eq!(bench.read(Scope::Upload(of(upload)), replies[0].id).expect("reads"), bytes);
        bench.verify();
    }
}

#[test]
fn c8_an_aborted_upload_holds_nothing() {
    let bench = Bench::new();
    let before = bench.store().stats().expect("counts").live_bytes;
    let upload = began(&bench, None);
    append(&bench, upload, 0, &noise(3, 20_000)).expect("appends");
    assert!(bench.store().stats().expect("counts").live_bytes > before);
    for _ in 0..2 {
        bench.store().abort_upload(&of(upload)).expect("aborts");
    }
    assert_eq!(bench.store().stats().expect("counts").live_bytes, before);
    assert_eq!(kind(append(&bench, upload, 20_000, b"x")), Kind::NotFound);
    assert_eq!(kind(commit(&bench, upload)), Kind::NotFound);
    bench.verify();
}

/// What was acknowledged, from which operation of the disk on.
#[derive(Default)]
struct Acknowledged(Vec<(usize, u64)>);

impl Acknowledged {
    const BEGUN: u64 = 0;
    const COMMITTED: u64 = u64::MAX - 1;
    const CLAIMED: u64 = u64::MAX;

    fn mark(&mut self, machine: &Machine, stage: u64) {
        self.0.push((machine.sim.op_count(), stage));
    }

    /// Bytes that the upload must have, or what it must have become. Nothing: it may be unknown.
    fn at(&self, op_index: usize) -> Option<u64> {
        self.0.iter().rev().find(|(from, _)| *from <= op_index).map(|(_, stage)| *stage)
    }
}

#[test]
fn c8_a_crash_leaves_an_upload_with_all_that_was_acknowledged_and_it_goes_on() {
    let machine = Machine::new(SimDisk::new(1), START, 7);
    machine.init().expect("makes");
    let store = machine.open().expect("opens");
    store.open_conversation(&account("ann"), "c").expect("opens");
    let bytes = noise(9, 9_000);
    let mut done = Acknowledged::default();
    let begun = machine.sim.op_count();
    let upload = store.begin_upload(&account("ann"), None).expect("begins").upload;
    done.mark(&machine, Acknowledged::BEGUN);
    let mut at = 0;
    for part in [5, 2_700, 40, 4_100, 2_155] {
        store.append_upload(&of(upload), at as u64, &mut &bytes[at..at + part]).expect("appends");
        at += part;
        done.mark(&machine, at as u64);
    }
    assert_eq!(at, bytes.len());
    let id = store.commit_upload(&of(upload), &COMMIT).expect("commits").id;
    done.mark(&machine, Acknowledged::COMMITTED);
    store.claim_uploads(&named("c"), "m", &[id]).expect("claims");
    done.mark(&machine, Acknowledged::CLAIMED);
    let log = machine.sim.log();
    let budget = Budget { modes: Mode::ALL.to_vec(), per_mode: 6, byte_cut_max: 256 };
    let mut images = 0;
    let _ = Crashes::new(&log, 1, budget).for_each_image(begun..log.ops().len(), &mut |image, point| {
        go_on(image, upload, &bytes, done.at(point.op_index)).unwrap_or_else(|wrong| panic!("{point}: {wrong}"));
        images += 1;
        ControlFlow::Continue(())
    });
    assert!(images > 500, "{images} images");
}

/// Finishes, and claims, what a crash has left of the upload.
fn go_on(image: &Image, upload: UploadId, bytes: &[u8], acknowledged: Option<u64>) -> std::result::Result<(), String> {
    let machine = Machine::new(SimDisk::from_image(image, 3), START, 8);
    let store = machine.open().expect("opens");
    let is = |what: &str, error: holdfast::Error| format!("{what}: {} {error}", error.kind().as_str());
    let scope = of(upload);
    match store.upload(&scope) {
        Ok(info) => {
            if acknowledged.is_some_and(|least| info.offset < least) || info.offset > bytes.len() as u64 {
                return Err(format!("{} bytes are there, {acknowledged:?} were acknowledged", info.offset));
            }
            let at = usize::try_from(info.offset).expect("short");
            store.append_upload(&scope, info.offset, &mut &bytes[at..]).map_err(|error| is("append", error))?;
        }
        Err(error) if error.kind() != Kind::NotFound => return Err(is("look", error)),
        Err(_) => {}
    }
    let reply = match store.commit_upload(&scope, &COMMIT) {
        Err(error) if error.kind() == Kind::NotFound && acknowledged.is_none() => return Ok(()),
        reply => reply.map_err(|error| is("commit", error))?,
    };
    let claimed = store.claim_uploads(&named("c"), "m", &[reply.id]).map_err(|error| is("claim", error))?;
    if claimed.replayed != (acknowledged == Some(Acknowledged::CLAIMED)) && !claimed.replayed {
        return Err("an acknowledged claim was made again".to_owned());
    }
    let mut back = Vec::new();
    store.get(conversation("c"), reply.id, &holdfast::Get::WHOLE, &mut back).map_err(|error| is("read", error))?;
    if back != bytes {
        return Err(format!("{} other bytes", back.len()));
    }
    store.close().map_err(|error| is("close", error))?;
    let options = VerifyOptions { deep: true, refs: true, memory: 0 };
    let report = Store::verify(&machine.world, &options, &mut |_, _| {}).map_err(|error| is("verify", error))?;
    independent::read_clean(&machine.sim.image())?;
    if report.problems.is_empty() { Ok(()) } else { Err(format!("{:?}", report.problems)) }
}

#[test]
fn c8_of_two_appends_at_once_one_is_taken_and_a_commit_shuts_the_other_out() {
    let bench = Bench::new();
    let upload = began(&bench, None);
    let inner = || drop(append(&bench, upload, 0, b"the other's").expect("appends"));
    let mut source = During::new(b"one's own bytes", inner);
    assert_eq!(kind(bench.store().append_upload(&of(upload), 0, &mut source)), Kind::OffsetConflict);
    let mut source = During::new(b" and more", || drop(commit(&bench, upload).expect("commits")));
    assert_eq!(kind(bench.store().append_upload(&of(upload), 11, &mut source)), Kind::NotFound);
    let id = commit(&bench, upload).expect("as before").id;
    assert_eq!(bench.read(Scope::Upload(of(upload)), id).expect("reads"), b"the other's");
    bench.verify();
}

#[test]
fn the_file_of_an_append_that_was_refused_stays_once_a_later_commit_names_it() {
    let bench = Bench::new();
    let upload = began(&bench, None);
    let mut source = During::new(b"bytes", || bench.store().abort_upload(&of(upload)).expect("aborts"));
    assert_eq!(kind(bench.store().append_upload(&of(upload), 0, &mut source)), Kind::NotFound);
    let other = began(&bench, None);
    append(&bench, other, 0, b"").expect("appends nothing");
    bench.verify();
}

#[test]
fn a_claim_that_says_gone_says_so_for_good() {
    let bench = Bench::new();
    bench.open("c");
    let (upload, id) = sent(&bench, b"a");
    bench.later(DAY);
    assert_eq!(kind(claim(&bench, "c", "m", &[id])), Kind::Gone);
    bench.machine.clock.set(START);
    assert_eq!(kind(bench.read(Scope::Upload(of(upload)), id)), Kind::Gone);
    bench.verify();
}
