//! A log written frame by frame, for tests that need to say exactly what stands where.

use holdfast_format_spec::commit::{Edit, SyncedUpto};
use holdfast_format_spec::derive::{Secret, digest, next_chain, root_chain};
use holdfast_format_spec::frame::{Codec, Kind};
use holdfast_format_spec::generate::Rng;
use holdfast_format_spec::generate::encode::{self, FrameHead};
use holdfast_format_spec::keyspace::{Entry, Op, OpKey};
use holdfast_format_spec::manifest::{self, Manifest};
use holdfast_format_spec::seal::Seal;
use holdfast_format_spec::segment::{Header, Lane, Predecessor};
use holdfast_format_spec::superblock::{LogEnd, Position, Superblock};
use holdfast_format_spec::{manifest_names, segment_name};
use std::collections::BTreeMap;

pub(crate) const UUID: [u8; 16] = [9; 16];
pub(crate) const FIRST_LSN: u64 = (1 << 48) | 1;
pub(crate) const CAPACITY: usize = 32_768;

pub(crate) fn index(offset: u64) -> usize {
    usize::try_from(offset).expect("a small file")
}

/// An edit that no other record depends on.
pub(crate) fn op(number: u8) -> Edit {
    let key = OpKey { begin_lsn: 0, scope: [0; 16], op: [number; 16] };
    Edit::Put(Entry::Op(key, Op { artifact: [1; 16], code: 0, lsn: FIRST_LSN, time: 5 }))
}

pub(crate) fn header(id: u64, lane: Lane) -> Header {
    let (first_lsn, chain) = if lane == Lane::Log { (FIRST_LSN, root_chain(&UUID)) } else { (0, [0; 32]) };
    let epoch = [u8::try_from(id).expect("a small id"); 16];
    Header { uuid: UUID, id, epoch, lane, capacity: CAPACITY as u64, first_lsn, predecessor: None, chain }
}

/// A segment that is being written.
#[derive(Clone)]
pub(crate) struct Writer {
    pub(crate) header: Header,
    pub(crate) file: Vec<u8>,
    pub(crate) at: u64,
    pub(crate) chain: [u8; 32],
    pub(crate) lsn: u64,
}

impl Writer {
    pub(crate) fn new(header: Header) -> Self {
        let mut file = vec![0; CAPACITY];
        for copy in 0..2 {
            let bytes = encode::segment_header(&header, copy);
            file[copy as usize * 4_096..][..4_096].copy_from_slice(&bytes);
        }
        Self { file, at: 8_192, chain: header.chain, lsn: header.first_lsn, header }
    }

    pub(crate) fn frame(&mut self, head: &FrameHead, payload: &[u8]) -> u64 {
        let frame = encode::frame(&encode::rules(&self.header), self.at, head, payload);
        let offset = self.at;
        self.file[index(offset)..][..frame.len()].copy_from_slice(&frame);
        self.at += frame.len() as u64;
        if head.kind == Kind::Commit {
            self.chain = next_chain(&self.chain, frame.first_chunk().expect("a header"), payload);
        }
        offset
    }

    pub(crate) fn plain(&mut self, kind: Kind, id: [u8; 32], context: u64, payload: &[u8]) -> u64 {
        let raw = u32::try_from(payload.len()).expect("a small payload");
        self.frame(&FrameHead { kind, codec: Codec::Raw, raw, id, context }, payload)
    }

    pub(crate) fn commit(&mut self, synced_upto: (u64, u64), edits: Vec<Edit>) -> u64 {
        let synced_upto = SyncedUpto { segment: synced_upto.0, offset: synced_upto.1 };
        let payload = encode::commit(synced_upto, 7, &[edits]);
        let offset = self.plain(Kind::Commit, self.chain, self.lsn, &payload);
        self.lsn += 1;
        offset
    }

    pub(crate) fn mark(&mut self) -> u64 {
        self.plain(Kind::Mark, self.chain, self.lsn, &[])
    }

    /// A footer without entries, and the seal.
    pub(crate) fn seal(&mut self, synced_upto: u64, successor: &Header) -> u64 {
        let footer_offset = self.plain(Kind::Footer, [0; 32], 0, &encode::footer(&[]));
        let seal = Seal {
            end: self.at + 192,
            footer_offset,
            synced_upto,
            first_lsn: self.header.first_lsn,
            next_lsn: self.lsn,
            frame_count: 0,
            byte_count: 0,
            successor: Some((successor.id, successor.epoch)),
        };
        self.plain(Kind::Seal, self.chain, self.lsn, &encode::seal(&seal))
    }

    /// The segment that goes on where this one ends.
    pub(crate) fn next(&self, id: u64) -> Self {
        let before = Predecessor { id: self.header.id, epoch: self.header.epoch, end: self.at };
        let new = Header { predecessor: Some(before), chain: self.chain, first_lsn: self.lsn, ..header(id, Lane::Log) };
        Self::new(new)
    }

    /// Damages the frame at an offset.
    pub(crate) fn damage(&mut self, offset: u64) {
        self.file[index(offset) + 20] ^= 0x10;
    }
}

pub(crate) fn superblock() -> Superblock {
    let first = header(1, Lane::Log);
    Superblock {
        sequence: 3,
        uuid: UUID,
        created_at: 1,
        chunk_min: 64,
        chunk_avg: 1_024,
        chunk_max: 4_096,
        chunk_single_max: 512,
        zstd: true,
        compression_level: 3,
        log_first: 16_384,
        log_largest: 65_536,
        bulk: 65_536,
        secret: Secret([3; 32]),
        incarnation: 1,
        manifest_generation: 1,
        manifest_length: 0,
        manifest_digest: [0; 32],
        replay: Position { segment: 1, epoch: first.epoch, offset: 8_192, lsn: FIRST_LSN, chain: first.chain },
        log_head: 1,
        log_head_epoch: first.epoch,
        log_end: None,
        ceiling_files: 100,
        ceiling_generations: 100,
        ceiling_tenants: 100,
        prepared: vec![],
        reserve: vec![],
        ledger_places: vec![],
    }
}

pub(crate) fn manifest() -> Manifest {
    let first = header(1, Lane::Log);
    let segment = manifest::Segment { id: 1, epoch: first.epoch, lane: Lane::Log, sealed_end: None };
    let tenant = manifest::Tenant { number: 1, key: Secret([4; 32]) };
    Manifest {
        uuid: UUID,
        generation: 1,
        tenants: vec![tenant],
        segments: vec![segment],
        sums: None,
        tables: Vec::new(),
    }
}

/// The files of a store with these segments, the last one its `log_head` unless `change` says otherwise.
pub(crate) fn store(segments: &[&Writer], change: impl FnOnce(&mut Superblock)) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let bytes = encode::manifest(&manifest());
    let mut state = superblock();
    state.manifest_length = bytes.len() as u64;
    state.manifest_digest = digest(&bytes);
    for name in manifest_names(1) {
        files.insert(name, bytes.clone());
    }
    for segment in segments {
        files.insert(segment_name(segment.header.id), segment.file.clone());
        if segment.header.lane == Lane::Log {
            (state.log_head, state.log_head_epoch) = (segment.header.id, segment.header.epoch);
        }
    }
    change(&mut state);
    files.insert("superblock".to_owned(), (0..4).flat_map(|copy| encode::superblock(&state, copy)).collect());
    files
}

/// A clean end behind the last frame of a segment.
pub(crate) fn clean(end: &Writer) -> LogEnd {
    LogEnd { offset: end.at, lsn: end.lsn, chain: end.chain }
}

/// Makes the records of ownership have every field.
pub(crate) fn ownership(rng: &mut Rng, found: &mut BTreeMap<u8, Entry>) {
    use holdfast_format_spec::keyspace::{Claimed, ConversationState, RunState, Skipped};
    if let Some(Entry::Conversation(_, conversation)) = found.get_mut(&3) {
        conversation.state = ConversationState::Archived;
        conversation.reset_lsn = conversation.opened_lsn;
        conversation.forked_from = Some(rng.array());
        "thread-1".clone_into(&mut conversation.text);
    }
    if let Some(Entry::Run(_, run)) = found.get_mut(&4) {
        (run.state, run.finished_at, run.generation) = (RunState::Active, 0, 2);
        (run.conversation, run.parent) = (Some(rng.array()), Some(rng.array()));
        run.tags = vec![[1; 16], [2; 16]];
    }
    if let Some(Entry::Claim(_, claim)) = found.get_mut(&24) {
        claim.released = false;
        claim.claimed = vec![Claimed { artifact: rng.array(), expires_at: 11 }];
        claim.skipped = vec![Skipped { artifact: rng.array(), reason: 2 }];
    }
}
