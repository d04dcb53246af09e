//! The engine's decoders against the independent parser: both accept or both reject, as damage or as a newer version, and what they
//! accept says the same in every field.

pub mod seeds;
pub mod structure;
pub mod table;

use std::fmt::Debug;

use holdfast::{
    catalog::{Catalog, State},
    codec,
    format::{
        Decoded,
        commit::Commit,
        frame::{FrameHeader, FrameSalt},
        keyspace::Keyspace,
        manifest::{Lane as EngineLane, Manifest},
        page::Page,
        seal::{Seal, decode_footer},
        segment_header::SegmentHeader,
        superblock::Superblock,
    },
    ids::{Epoch, FileId, StoreUuid},
};
use holdfast_format_spec::{
    self as spec,
    frame::{Codec, Rules},
    keyspace::Entry,
    segment::Lane,
};

use structure::{BASE, EPOCH, KEYSPACES, OFFSET, Structure, UUID, copy_of, prepare, rules};

/// Runs one input: its first byte chooses the structure.
pub fn run(data: &[u8]) {
    let Some((choice, data)) = data.split_first() else { return };
    let structure = Structure::ALL[usize::from(*choice) % Structure::ALL.len()];
    one(structure, data);
}

/// Runs one structure.
pub fn one(structure: Structure, data: &[u8]) {
    let Some((mode, bytes)) = prepare(structure, data) else { return };
    match structure {
        Structure::Superblock => superblock(&bytes, copy_of(mode)),
        Structure::Manifest => manifest(&bytes),
        Structure::SegmentHeader => segment_header(&bytes, copy_of(mode) & 1),
        Structure::Frame => frame(&bytes),
        Structure::Commit => commit(&bytes),
        Structure::Seal => seal(&bytes),
        Structure::Footer => footer(&bytes),
        Structure::Page => page(&bytes),
        // An edit is a key with its value, so that what one rule says about both is compared too.
        Structure::Value | Structure::Artifact | Structure::Upload => value(structure, mode, &bytes),
        Structure::Zstd => zstd(&bytes),
    }
}

/// Verdict of a reader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    Accepted,
    Damaged,
    Newer,
}

/// Compares verdicts; gives both values if both accepted.
fn agree<E, S: Debug>(engine: Decoded<E>, spec: spec::Result<S>) -> Option<(E, S)> {
    let said = match &engine {
        Ok(_) => Verdict::Accepted,
        Err(bad) if bad.newer => Verdict::Newer,
        Err(_) => Verdict::Damaged,
    };
    let wanted = match &spec {
        Ok(_) => Verdict::Accepted,
        Err(error) if error.is_newer() => Verdict::Newer,
        Err(_) => Verdict::Damaged,
    };
    let why = (engine.as_ref().err().map(|bad| bad.what), spec.as_ref().err());
    // Where a reader stops first decides what it says of two faults.
    let both_refuse = said != Verdict::Accepted && wanted != Verdict::Accepted;
    assert!(said == wanted || both_refuse, "engine: {said:?}, specification: {wanted:?}, because {why:?}");
    Some((engine.ok()?, spec.ok()?))
}

fn superblock(bytes: &[u8], copy: u32) {
    let block = bytes.first_chunk().expect("prepared with 4,096 bytes");
    let both = agree(Superblock::decode(block, copy), spec::superblock::Superblock::parse(bytes, copy));
    let Some((ours, theirs)) = both else { return };
    let chunks = ours.options.chunks;
    let mapped = spec::superblock::Superblock {
        sequence: ours.sequence,
        uuid: ours.uuid.0,
        created_at: ours.created_at.0,
        chunk_min: chunks.min,
        chunk_avg: chunks.avg,
        chunk_max: chunks.max,
        chunk_single_max: chunks.single_max,
        zstd: ours.options.compression.level > 0,
        compression_level: ours.options.compression.level,
        log_first: ours.options.log_segment_first,
        log_largest: ours.options.log_segment_max,
        bulk: ours.options.bulk_segment,
        secret: spec::derive::Secret(ours.secret),
        incarnation: ours.incarnation,
        manifest_generation: ours.manifest.0,
        manifest_length: ours.manifest.1,
        manifest_digest: ours.manifest.2,
        replay: spec::superblock::Position {
            segment: ours.replay.segment.0,
            epoch: ours.replay.epoch.0,
            offset: ours.replay.offset,
            lsn: ours.replay.lsn.0,
            chain: ours.replay.chain.0,
        },
        log_head: ours.log_head.0.0,
        log_head_epoch: ours.log_head.1.0,
        log_end: ours.clean.map(|end| spec::superblock::LogEnd {
            offset: end.offset,
            lsn: end.lsn.0,
            chain: end.chain.0,
        }),
        ceiling_files: ours.ceiling_file.0,
        ceiling_generations: ours.ceiling_generation,
        ceiling_tenants: ours.ceiling_tenant,
        prepared: ours.prepared.iter().map(|id| id.0).collect(),
        reserve: ours.reserves.iter().map(|id| id.0).collect(),
        ledger_places: ours.ledger_places,
    };
    assert!(mapped == theirs, "superblock: another meaning");
}

fn manifest(bytes: &[u8]) {
    let uuid = bytes.get(16..32).map_or(UUID, |b| b.try_into().expect("16 bytes"));
    let generation = bytes.get(32..40).map_or(0, |b| u64::from_le_bytes(b.try_into().expect("8 bytes")));
    let both = agree(Manifest::decode(bytes, StoreUuid(uuid), generation), spec::manifest::Manifest::parse(bytes));
    let Some((ours, theirs)) = both else { return };
    assert!(ours.uuid.0 == theirs.uuid && ours.generation == theirs.generation);
    assert_eq!(ours.tenants.len(), theirs.tenants.len());
    for (ours, theirs) in ours.tenants.iter().zip(&theirs.tenants) {
        assert!(ours.number.0 == theirs.number && ours.key == theirs.key.0);
    }
    assert_eq!(ours.segments.len(), theirs.segments.len());
    for (ours, theirs) in ours.segments.iter().zip(&theirs.segments) {
        let sealed = ours.state == holdfast::format::manifest::SegmentState::Sealed;
        let mapped = spec::manifest::Segment {
            id: ours.id.0,
            epoch: ours.epoch.0,
            lane: lane(ours.lane),
            sealed_end: sealed.then_some(ours.end),
        };
        assert_eq!(&mapped, theirs);
    }
}

fn lane(lane: holdfast::format::manifest::Lane) -> Lane {
    match lane {
        EngineLane::Log => Lane::Log,
        EngineLane::Bulk => Lane::Bulk,
    }
}

fn segment_header(bytes: &[u8], copy: u32) {
    let block = bytes.first_chunk().expect("prepared with 4,096 bytes");
    let uuid = StoreUuid(bytes[16..32].try_into().expect("16 bytes"));
    let id = u64::from_le_bytes(bytes[32..40].try_into().expect("8 bytes"));
    let ours = SegmentHeader::decode(block, uuid, FileId(id), copy);
    let Some((ours, theirs)) = agree(ours, spec::segment::Header::parse(bytes, copy, id)) else { return };
    let mapped = spec::segment::Header {
        uuid: ours.uuid.0,
        id: ours.id.0,
        epoch: ours.epoch.0,
        lane: lane(ours.lane),
        capacity: ours.capacity,
        first_lsn: ours.first_lsn.0,
        predecessor: ours.predecessor.map(|p| spec::segment::Predecessor { id: p.id.0, epoch: p.epoch.0, end: p.end }),
        chain: ours.chain.0,
    };
    assert_eq!(mapped, theirs);
}

fn frame(bytes: &[u8]) {
    let (head, body) = bytes.split_first_chunk::<64>().expect("prepared with 64 bytes");
    let salt = FrameSalt::new(StoreUuid(UUID), Epoch(EPOCH));
    let ours = FrameHeader::decode(head, &salt, OFFSET);
    // The engine knows the lane of a segment, not of a frame.
    let lanes = [Lane::Log, Lane::Bulk].map(|lane| Rules { lane, ..rules() });
    let parsed = lanes.map(|rules| spec::frame::Header::parse(head, OFFSET, &rules).map(|header| (header, rules)));
    let [in_log, in_bulk] = parsed;
    let Some((ours, (theirs, rules))) = agree(ours, in_log.or(in_bulk)) else { return };
    let fields = (ours.kind as u8, ours.codec as u8, ours.stored, ours.raw, ours.id, ours.context, ours.payload_crc);
    let wanted = (
        theirs.kind as u8,
        theirs.codec as u8,
        theirs.stored,
        theirs.raw,
        theirs.id,
        theirs.context,
        theirs.payload_checksum,
    );
    assert_eq!(fields, wanted);
    assert_eq!(ours.frame_len(), theirs.frame_len());
    let mut file = vec![0; usize::try_from(OFFSET).expect("two blocks")];
    file.extend_from_slice(bytes);
    let read = spec::frame::read(&file.as_slice(), OFFSET, file.len() as u64, &rules);
    let len = usize::try_from(ours.frame_len() - 64).expect("a frame is at most 16 MiB");
    let body = body.get(..len);
    let good = body.is_some_and(|body| ours.payload_is_good(body, &salt, OFFSET));
    assert_eq!(good, read.is_ok(), "the payload of a frame: {:?}", read.err().map(|invalid| invalid.error));
    if let (Ok(frame), Some(body), codec::Codec::Zstd) = (read, body, ours.codec) {
        let raw = codec::decompress(&body[..ours.stored as usize], ours.raw as usize);
        assert!(raw == frame.decode().ok(), "the decoded bytes of a frame");
    }
}

fn commit(bytes: &[u8]) {
    const CONTEXT: u64 = (1 << 48) | 7;
    let ours = Commit::decode(bytes);
    let theirs = spec::commit::Commit::parse(bytes, CONTEXT, BASE);
    // The engine looks at keys and values when it applies an edit.
    let applied = ours.and_then(|commit| {
        let mut catalog = Catalog::default();
        let applied = commit.requests.iter().flatten().try_for_each(|edit| catalog.apply(edit));
        match applied {
            Ok(()) => Ok((commit, catalog)),
            Err(e) if e.kind() == holdfast::Kind::Version => Err(holdfast::format::Bad::newer("an edit's value")),
            Err(_) => Err(holdfast::format::Bad::damaged("an edit's key or value")),
        }
    });
    let Some(((ours, catalog), theirs)) = agree(applied, theirs) else { return };
    assert_eq!(ours.synced_upto.segment.0, theirs.synced_upto.segment);
    assert_eq!(ours.synced_upto.offset, theirs.synced_upto.offset);
    assert_eq!(ours.hw.0, theirs.hw);
    assert!(ours.requests.iter().map(Vec::len).eq(theirs.requests.iter().map(Vec::len)), "edits of requests");
    same_state(&catalog, &theirs);
}

/// Counts what two readings of the same edits leave.
fn same_state(catalog: &Catalog, commit: &spec::commit::Commit) {
    let mut state = spec::store::Catalog::default();
    commit.edits().for_each(|edit| state.apply(edit));
    let counts = [
        (Keyspace::Tenant, state.tenants.len()),
        (Keyspace::Account, state.accounts.len()),
        (Keyspace::Conversation, state.conversations.len()),
        (Keyspace::Run, state.runs.len()),
        (Keyspace::Identity, state.identities.len()),
        (Keyspace::Fence, state.fences.len()),
        (Keyspace::OfAccount, state.of_account.len()),
        (Keyspace::Claim, state.claims.len()),
        (Keyspace::Upload, state.uploads.len()),
        (Keyspace::Artifact, state.artifacts.len()),
        (Keyspace::Blob, state.blobs.len()),
        (Keyspace::Chunk, state.chunks.len()),
        (Keyspace::ByOwner, state.by_owner.len()),
        (Keyspace::Due, state.due.len()),
        (Keyspace::Op, state.ops.len()),
        (Keyspace::Zero, state.zero.len()),
        (Keyspace::Segment, state.segments.len()),
    ];
    for (keyspace, count) in counts {
        let found = catalog.scan(keyspace, &[], None, usize::MAX).expect("in memory");
        assert_eq!(found.len(), count, "{keyspace:?}");
    }
    for (id, theirs) in &state.chunks {
        let ours = catalog.chunk(holdfast::ids::ChunkId(*id)).expect("decodes").expect("counted");
        let fields = (ours.location.segment.0, ours.location.offset, ours.stored, ours.raw, ours.tenant.0);
        assert_eq!(fields, (theirs.segment, theirs.offset, theirs.stored, theirs.raw, theirs.tenant));
        assert_eq!(
            (ours.codec as u8, ours.kind as u8, ours.references),
            (theirs.codec as u8, theirs.kind as u8, theirs.references)
        );
    }
    for (id, theirs) in &state.blobs {
        let ours = catalog.blob(holdfast::ids::BlobKey(*id)).expect("decodes").expect("counted");
        assert_eq!((ours.root.0, ours.size, ours.references), (theirs.root, theirs.size, theirs.references));
    }
    let size = |size: u64, artifact: &spec::keyspace::Artifact| size.saturating_add(artifact.size);
    assert_eq!(catalog.usage().logical_bytes, state.artifacts.values().fold(0, size));
}

fn seal(bytes: &[u8]) {
    let both = agree(Seal::decode(bytes, EngineLane::Log, BASE - 64), spec::seal::Seal::parse(bytes, Lane::Log, BASE));
    let Some((ours, theirs)) = both else { return };
    let mapped = spec::seal::Seal {
        end: ours.end,
        footer_offset: ours.footer,
        synced_upto: ours.synced_upto,
        first_lsn: ours.first_lsn.0,
        next_lsn: ours.next_lsn.0,
        frame_count: ours.frames,
        byte_count: ours.bytes,
        successor: ours.successor.map(|(id, epoch)| (id.0, epoch.0)),
    };
    assert_eq!(mapped, theirs);
}

fn footer(bytes: &[u8]) {
    let Some((ours, theirs)) = agree(decode_footer(bytes), spec::seal::footer(bytes, BASE)) else { return };
    assert_eq!(ours.len(), theirs.len());
    for (ours, theirs) in ours.iter().zip(&theirs) {
        let fields = (ours.id.0, ours.offset, ours.stored, ours.raw, ours.tenant.0, ours.kind as u8);
        assert_eq!(fields, (theirs.id, theirs.offset, theirs.stored, theirs.raw, theirs.tenant, theirs.kind as u8));
        assert_eq!(ours.zstd, theirs.codec == Codec::Zstd);
    }
}

fn page(bytes: &[u8]) {
    let Some((ours, theirs)) = agree(Page::decode(bytes), spec::recipe::Page::parse(bytes, BASE)) else { return };
    assert_eq!((ours.level, ours.total()), (theirs.level, theirs.total));
    let entries = ours.entries.iter().map(|e| spec::keyspace::PageEntry { id: e.id.0, length: e.len });
    assert!(entries.eq(theirs.entries));
}

/// A commit that puts one key.
fn value(structure: Structure, mode: u8, bytes: &[u8]) {
    let keyspace = match structure {
        Structure::Artifact => 9,
        Structure::Upload => 5,
        _ => KEYSPACES[usize::from(mode >> 1) % KEYSPACES.len()],
    };
    let Some(key_len) = Keyspace::from_number(keyspace).map(holdfast::format::keyspace::key_len) else { return };
    let mut key = bytes.get(..key_len).map_or_else(|| vec![0; key_len], <[u8]>::to_vec);
    let mut value = bytes.get(key_len..).unwrap_or_default();
    if structure != Structure::Value {
        // The record repeats its key, which a fuzzer would not guess.
        value = bytes;
        let part = |from: usize, to: usize| bytes.get(from..to).map(<[u8]>::to_vec);
        let tenant = part(16, 20).map(|t| t.into_iter().rev().collect::<Vec<u8>>());
        if let (9, Some(id), Some(tenant), Some(account)) = (keyspace, part(0, 16), tenant, part(24, 40)) {
            key = [tenant, account, id].concat();
        }
    }
    let body_len = u32::try_from(4 + key.len() + value.len()).expect("inputs are short");
    let mut payload = vec![1, 0, 0, 0, 1, 0, 0, 0];
    payload.extend(1_u64.to_le_bytes());
    payload.extend(OFFSET.to_le_bytes());
    payload.extend(0_u64.to_le_bytes());
    payload.extend([1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0]);
    payload.extend(body_len.to_le_bytes());
    payload.extend([keyspace, 0]);
    payload.extend(u16::try_from(key.len()).expect("a key is short").to_le_bytes());
    payload.extend(&key);
    payload.extend(value);
    commit(&payload);
    if let Ok(commit) = spec::commit::Commit::parse(&payload, 1, BASE)
        && let Some(spec::commit::Edit::Put(Entry::Artifact(_, theirs))) = commit.edits().next()
    {
        artifact(value, theirs);
    }
}

fn artifact(bytes: &[u8], theirs: &spec::keyspace::Artifact) {
    let ours = holdfast::format::artifact::Artifact::decode(bytes).expect("both accept");
    assert_eq!((ours.id.0, ours.account.tenant.0, ours.account.account.0), (theirs.id, theirs.tenant, theirs.account));
    assert_eq!((ours.owner.kind as u8, ours.owner.id), (theirs.owner_kind as u8, theirs.owner));
    assert_eq!((ours.size, ours.sha256.0, ours.blob_root.0), (theirs.size, theirs.sha256, theirs.blob_root));
    assert_eq!(
        (ours.born.account.0, ours.born.run.map(|run| run.0), ours.born.order),
        (theirs.born_account, theirs.born_run, theirs.born_order)
    );
    assert_eq!(
        (ours.born.lsn.0, ours.born.time.0, ours.token_lsn.0),
        (theirs.born_lsn, theirs.born_time, theirs.token_lsn)
    );
    assert_eq!((ours.place.attach_lsn.0, ours.place.position), (theirs.attach_lsn, theirs.position));
    assert_eq!((&ours.name, &ours.key), (&theirs.name, &theirs.key));
    assert_eq!((&ours.media_type, &ours.detected_type), (&theirs.media_type, &theirs.detected_type));
    assert_eq!(
        (ours.truncated, ours.tree, ours.detach, ours.deleted),
        (theirs.flags.truncated, theirs.flags.tree, theirs.flags.detach, theirs.flags.deleted)
    );
    assert_eq!(
        (ours.expires_at.map(|t| t.0), ours.logical_size, ours.version),
        (theirs.expires_at, theirs.logical_size, theirs.version)
    );
}

/// A zstd payload as the chunk frame that holds it.
fn zstd(bytes: &[u8]) {
    let Some((raw, stored)) = bytes.split_first_chunk::<3>() else { return };
    let raw = u32::from_le_bytes([raw[0], raw[1], raw[2], 0]).min(spec::limits::CHUNK);
    let ours = codec::decompress(stored, raw as usize);
    let theirs = spec::frame::Frame {
        offset: OFFSET,
        header: spec::frame::Header {
            kind: spec::frame::Kind::Chunk,
            codec: Codec::Zstd,
            stored: u32::try_from(stored.len()).expect("inputs are short"),
            raw,
            id: [0; 32],
            context: 1,
            payload_checksum: 0,
        },
        head: [0; 64],
        payload: stored.to_vec(),
    };
    assert!(ours == theirs.decode().ok(), "one decodes what the other does not, or to other bytes");
}
