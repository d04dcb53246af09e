//! One decoder of the engine over hostile bytes: it must not panic, and what it accepts has one encoding, the bytes that it was
//! given.

use holdfast::{
    codec,
    format::{
        artifact::Artifact,
        commit::Commit,
        frame::{FrameHeader, FrameSalt},
        keyspace::{Keyspace, ListPlace, segment_of_key},
        manifest::{Lane, Manifest},
        page::Page,
        seal::{Seal, decode_footer, encode_footers},
        segment_header::{SegmentHeader, uuid_of},
        superblock::Superblock,
        upload::Upload,
        value::{AccountValue, BlobValue, ChunkValue, OpValue, SegmentValue, TenantValue},
    },
    ids::{Epoch, FileId, StoreUuid},
};

use holdfast_tests::differential::structure::{BASE, EPOCH, OFFSET, Structure, UUID, copy_of, prepare};

/// Decoded output of a zstd input at most.
const RAW_MAX: usize = 8 << 20;

/// Runs one input.
pub fn run(structure: Structure, data: &[u8]) {
    let Some((mode, bytes)) = prepare(structure, data) else { return };
    match structure {
        Structure::Superblock => superblock(&bytes, copy_of(mode)),
        Structure::Manifest => manifest(&bytes),
        Structure::SegmentHeader => segment_header(&bytes, copy_of(mode) & 1),
        Structure::Frame => frame(&bytes),
        Structure::Commit => same(Commit::decode(&bytes).map(|c| c.encode()), &bytes),
        Structure::Seal => same(Seal::decode(&bytes, lane_of(mode), BASE - 64).map(|s| s.encode().to_vec()), &bytes),
        Structure::Footer => footer(&bytes),
        Structure::Page => same(Page::decode(&bytes).map(|p| p.encode()), &bytes),
        Structure::Value => value(mode, &bytes),
        Structure::Artifact => same(Artifact::decode(&bytes).map(|a| a.encode()), &bytes),
        Structure::Upload => same(Upload::decode(&bytes).map(|u| u.encode()), &bytes),
        Structure::Zstd => zstd(&bytes),
    }
}

/// A seal is read for the lane of its segment.
fn lane_of(mode: u8) -> Lane {
    if copy_of(mode) & 1 == 0 { Lane::Log } else { Lane::Bulk }
}

/// What was accepted encodes to what it came from.
fn same<E>(encoded: Result<Vec<u8>, E>, bytes: &[u8]) {
    if let Ok(encoded) = encoded {
        assert!(encoded == bytes, "a second encoding was accepted");
    }
}

fn superblock(bytes: &[u8], copy: u32) {
    let block = bytes.first_chunk().expect("prepared with 4,096 bytes");
    same(Superblock::decode(block, copy).map(|s| s.encode(copy).to_vec()), bytes);
}

fn manifest(bytes: &[u8]) {
    let uuid = bytes.get(16..32).map_or(UUID, |b| b.try_into().expect("16 bytes"));
    let generation = bytes.get(32..40).map_or(0, |b| u64::from_le_bytes(b.try_into().expect("8 bytes")));
    same(Manifest::decode(bytes, StoreUuid(uuid), generation).map(|m| m.encode()), bytes);
}

fn segment_header(bytes: &[u8], copy: u32) {
    let block = bytes.first_chunk().expect("prepared with 4,096 bytes");
    let id = FileId(u64::from_le_bytes(bytes[32..40].try_into().expect("8 bytes")));
    let decoded = SegmentHeader::decode(block, uuid_of(block), id, copy);
    let of_copy = |both: Vec<u8>| both[copy as usize * 4096..][..4096].to_vec();
    same(decoded.map(|h| of_copy(h.encode())), bytes);
}

fn frame(bytes: &[u8]) {
    let (head, body) = bytes.split_first_chunk::<64>().expect("prepared with 64 bytes");
    let salt = FrameSalt::new(StoreUuid(UUID), Epoch(EPOCH));
    let Ok(header) = FrameHeader::decode(head, &salt, OFFSET) else { return };
    let len = usize::try_from(header.frame_len() - 64).expect("a frame is at most 16 MiB");
    if let Some(body) = body.get(..len)
        && header.payload_is_good(body, &salt, OFFSET)
        && header.codec == codec::Codec::Zstd
    {
        let raw = codec::decompress(&body[..header.stored as usize], header.raw as usize);
        assert!(raw.is_none_or(|raw| raw.len() == header.raw as usize));
    }
}

fn footer(bytes: &[u8]) {
    let Ok(entries) = decode_footer(bytes) else { return };
    if entries.is_sorted() {
        assert!(encode_footers(&entries).concat() == bytes, "a second encoding was accepted");
    }
}

fn value(mode: u8, bytes: &[u8]) {
    match mode >> 1 & 7 {
        0 => same(TenantValue::decode(bytes).map(|v| v.encode()), bytes),
        1 => same(AccountValue::decode(bytes).map(|v| v.encode()), bytes),
        2 => same(BlobValue::decode(bytes).map(|v| v.encode()), bytes),
        3 => same(ChunkValue::decode(bytes).map(|v| v.encode()), bytes),
        4 => same(OpValue::decode(bytes).map(|v| v.encode()), bytes),
        5 => same(SegmentValue::decode(bytes).map(|v| v.encode()), bytes),
        6 => drop((ListPlace::from_owner_key(bytes), segment_of_key(bytes))),
        _ => drop(bytes.first().copied().and_then(Keyspace::from_number)),
    }
}

/// The first three bytes are the raw length that the frame's header would give.
fn zstd(bytes: &[u8]) {
    let Some((raw, stored)) = bytes.split_first_chunk::<3>() else { return };
    let raw = (usize::from(raw[0]) | usize::from(raw[1]) << 8 | usize::from(raw[2]) << 16).min(RAW_MAX);
    let decoded = codec::decompress(stored, raw);
    assert!(decoded.is_none_or(|decoded| decoded.len() == raw));
}
