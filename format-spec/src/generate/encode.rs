//! Writes structures as `FORMAT.md` says, the counterpart of the parsers.
//!
//! It does not check what it is given: a caller that wants an invalid structure can have it.

use super::records;
use crate::Id32;
use crate::commit::{Edit, SyncedUpto};
use crate::derive::tenant_check;
use crate::fields::crc;
use crate::frame::{Codec, Kind, Rules};
use crate::manifest::Manifest;
use crate::seal::{FooterEntry, Seal};
use crate::segment::{Header, Lane};
use crate::superblock::Superblock;

/// Bytes that grow field by field.
#[derive(Debug, Default)]
pub(super) struct Out(pub(super) Vec<u8>);

impl Out {
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(super) fn u8(&mut self, number: u8) -> &mut Self {
        self.bytes(&[number])
    }

    pub(super) fn u16(&mut self, number: u16) -> &mut Self {
        self.bytes(&number.to_le_bytes())
    }

    pub(super) fn u32(&mut self, number: u32) -> &mut Self {
        self.bytes(&number.to_le_bytes())
    }

    pub(super) fn u64(&mut self, number: u64) -> &mut Self {
        self.bytes(&number.to_le_bytes())
    }

    pub(super) fn zeros(&mut self, count: usize) -> &mut Self {
        self.0.resize(self.0.len() + count, 0);
        self
    }

    /// Zeros up to a length.
    pub(super) fn fill(&mut self, len: usize) -> &mut Self {
        self.0.resize(len, 0);
        self
    }
}

/// A length that is known to fit its field.
pub(super) fn len32(len: usize) -> u32 {
    u32::try_from(len).expect("generated structures are small")
}

/// Ends a block of 4,096 bytes with its checksum.
fn block(mut out: Out, salt: &[&[u8]]) -> Vec<u8> {
    out.fill(4_092);
    let sum = crc(salt, &out.0);
    out.u32(sum);
    out.0
}

/// One copy of a superblock.
pub fn superblock(s: &Superblock, copy: u32) -> Vec<u8> {
    let mut out = Out::default();
    out.bytes(b"HOLDFAST").u32(1).u32(copy).u64(s.sequence).bytes(&s.uuid).u64(s.created_at);
    out.u32(s.chunk_min).u32(s.chunk_avg).u32(s.chunk_max).u32(s.chunk_single_max);
    out.u8(1).u8(u8::from(s.zstd)).u8(s.compression_level).u8(0).u32(4_096);
    out.u64(s.log_first).u64(s.log_largest).u64(s.bulk).bytes(&s.secret.0).u16(s.incarnation).zeros(6);
    out.u64(s.manifest_generation).u64(s.manifest_length).bytes(&s.manifest_digest);
    let replay = &s.replay;
    out.u64(replay.segment).bytes(&replay.epoch).u64(replay.offset).u64(replay.lsn).bytes(&replay.chain);
    out.u64(s.log_head).bytes(&s.log_head_epoch).u8(u8::from(s.log_end.is_some())).zeros(7);
    match &s.log_end {
        Some(end) => out.u64(end.offset).u64(end.lsn).bytes(&end.chain),
        None => out.zeros(48),
    };
    out.u64(s.ceiling_files).u64(s.ceiling_generations).u32(s.ceiling_tenants).u32(0);
    out.u32(len32(s.prepared.len())).u32(len32(s.reserve.len()));
    for slot in 0..2 {
        out.u64(s.prepared.get(slot).copied().unwrap_or(0));
    }
    for slot in 0..4 {
        out.u64(s.reserve.get(slot).copied().unwrap_or(0));
    }
    out.u32(len32(s.ledger_places.len())).u32(0);
    for place in &s.ledger_places {
        let end = out.0.len() + 256;
        out.u16(u16::try_from(place.len()).expect("a place is short")).bytes(place).fill(end);
    }
    block(out, &[&s.uuid, &copy.to_le_bytes()])
}

/// A whole manifest.
pub fn manifest(m: &Manifest) -> Vec<u8> {
    let mut out = Out::default();
    out.bytes(b"HFMANIFT").u32(1).u32(0).bytes(&m.uuid).u64(m.generation);
    out.u32(len32(m.tenants.len())).u32(len32(m.segments.len()));
    out.u32(len32(m.tables.len())).u32(0).u64(0).zeros(32);
    for tenant in &m.tenants {
        out.u32(tenant.number).u32(0).bytes(&tenant.key.0).bytes(&tenant_check(&tenant.key));
    }
    for segment in &m.segments {
        let state = if segment.sealed_end.is_some() { 2 } else { 1 };
        out.u64(segment.id).bytes(&segment.epoch).u8(segment.lane as u8).u8(state).zeros(6);
        out.u64(segment.sealed_end.unwrap_or(0));
    }
    if let Some(s) = &m.sums {
        out.u64(s.hw).u64(s.artifacts).u64(s.artifact_bytes).u64(s.blobs).u64(s.chunks).u64(s.chunk_bytes);
        out.u64(s.frame_bytes).u64(s.log_frame_bytes);
    }
    for table in &m.tables {
        out.u64(table.id).u32(table.pages).u32(u32::from(table.mirrored)).u64(table.first_lsn).u64(table.last_lsn);
        for bound in [&table.first, &table.last] {
            let key = records::key(bound);
            out.u8(bound.keyspace()).u8(0).u16(u16::try_from(key.len()).expect("a key is short")).bytes(&key);
        }
    }
    out.u32(0);
    let sum = crc(&[&m.uuid, &m.generation.to_le_bytes()], &out.0);
    out.u32(sum);
    out.0
}

/// One copy of a segment header.
pub fn segment_header(h: &Header, copy: u32) -> Vec<u8> {
    let mut out = Out::default();
    out.bytes(b"HFSEGMNT").u32(1).u32(copy).bytes(&h.uuid).u64(h.id).bytes(&h.epoch).u8(h.lane as u8).zeros(7);
    out.u64(h.capacity).u64(h.first_lsn);
    match &h.predecessor {
        Some(before) => out.u64(before.id).bytes(&before.epoch).u64(before.end),
        None => out.zeros(32),
    };
    out.bytes(&h.chain);
    block(out, &[&h.uuid, &h.id.to_le_bytes(), &copy.to_le_bytes()])
}

/// What a frame's header says beside lengths and checksums.
#[derive(Clone, Copy, Debug)]
pub struct FrameHead {
    /// Its kind.
    pub kind: Kind,
    /// Its codec.
    pub codec: Codec,
    /// Length of the decoded payload.
    pub raw: u32,
    /// Its id.
    pub id: Id32,
    /// Its context.
    pub context: u64,
}

/// A whole frame, with header and fill, for a place.
pub fn frame(rules: &Rules, offset: u64, head: &FrameHead, payload: &[u8]) -> Vec<u8> {
    let salt: [&[u8]; 3] = [&rules.uuid, &rules.epoch, &offset.to_le_bytes()];
    let mut filled = payload.to_vec();
    filled.resize(payload.len().next_multiple_of(64), 0);
    let mut out = Out::default();
    out.bytes(b"HFr1").u8(head.kind as u8).u8(head.codec as u8).u16(0).u32(len32(payload.len())).u32(head.raw);
    out.bytes(&head.id).u64(head.context);
    let sum = crc(&salt, &out.0);
    out.u32(sum).u32(crc(&salt, &filled)).bytes(&filled);
    out.0
}

/// The payload of a commit.
pub fn commit(synced_upto: SyncedUpto, hw: u64, requests: &[Vec<Edit>]) -> Vec<u8> {
    let edits: usize = requests.iter().map(Vec::len).sum();
    let mut out = Out::default();
    out.u16(1).u16(0).u32(len32(requests.len())).u64(synced_upto.segment).u64(synced_upto.offset).u64(hw);
    out.u32(len32(edits)).u32(0);
    for request in requests {
        out.u32(len32(request.len()));
    }
    for edit in requests.iter().flatten() {
        out.bytes(&records::edit(edit));
    }
    out.0
}

/// The payload of a footer frame.
pub fn footer(entries: &[FooterEntry]) -> Vec<u8> {
    let mut out = Out::default();
    out.u32(len32(entries.len())).u32(0);
    for entry in entries {
        out.bytes(&entry.id).u64(entry.offset).u32(entry.stored).u32(entry.raw).u32(entry.tenant);
        out.u8(entry.kind as u8).u8(entry.codec as u8).u16(0);
    }
    out.0
}

/// The payload of a seal.
pub fn seal(s: &Seal) -> Vec<u8> {
    let mut out = Out::default();
    out.u64(s.end).u64(s.footer_offset).u64(s.synced_upto).u64(s.first_lsn).u64(s.next_lsn);
    out.u64(s.frame_count).u64(s.byte_count);
    let (id, epoch) = s.successor.unwrap_or_default();
    out.u64(id).bytes(&epoch);
    out.0
}

/// What the frames of a segment with this header are written with.
pub fn rules(header: &Header) -> Rules {
    Rules { uuid: header.uuid, epoch: header.epoch, lane: header.lane, chunk_max: crate::limits::CHUNK }
}

/// The id and context of a seal or mark of a lane.
pub(super) fn log_only(lane: Lane, chain: Id32, next_lsn: u64) -> (Id32, u64) {
    if lane == Lane::Log { (chain, next_lsn) } else { ([0; 32], 0) }
}
