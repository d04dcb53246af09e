//! The pieces of a put, each by itself: cutting, digests, frames, compression, commits.

use std::{hint::black_box, path::Path, time::Duration};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use holdfast::{
    AccountScope, InitOptions, OpenMode, OpenOptions, Put, Store, World, checksum,
    chunker::{ChunkParams, cut},
    codec::{self, Compression, Compressor},
    digest::{Sha256Stream, TenantKeys},
    format::{
        artifact::Origin,
        frame::{FrameDraft, FrameHeader, FrameKind, FrameSalt},
    },
    ids::{Epoch, StoreUuid},
};
use holdfast_benches::Noise;

/// Enough to leave the caches of one core, and not so much that a bench takes long.
const BYTES: u64 = 8 << 20;
const CHUNK: usize = 128 << 10;

fn chunker(c: &mut Criterion) {
    let bytes = Noise::new(0, BYTES).to_vec();
    let mut group = c.benchmark_group("chunker");
    group.throughput(Throughput::Bytes(BYTES));
    group.bench_function("cut", |b| {
        b.iter(|| {
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                rest = &rest[cut(&ChunkParams::DEFAULT, black_box(rest))..];
            }
        });
    });
    group.finish();
}

fn digests(c: &mut Criterion) {
    let bytes = Noise::new(0, BYTES).to_vec();
    let keys = TenantKeys::new(&[7; 32]);
    let mut group = c.benchmark_group("digest");
    group.throughput(Throughput::Bytes(BYTES));
    group.bench_function("sha256 of a stream", |b| {
        b.iter(|| {
            let mut digest = Sha256Stream::default();
            digest.update(black_box(&bytes));
            digest.finish()
        });
    });
    group.bench_function("keyed blake3 of chunks of 128 KiB", |b| {
        b.iter(|| {
            bytes.chunks(CHUNK).for_each(|chunk| {
                black_box(keys.chunk(chunk));
            });
        });
    });
    group.bench_function("crc of chunks of 128 KiB", |b| {
        b.iter(|| {
            bytes.chunks(CHUNK).for_each(|chunk| {
                black_box(checksum::crc(&[], chunk));
            });
        });
    });
    group.finish();
}

fn frames(c: &mut Criterion) {
    let salt = FrameSalt::new(StoreUuid([1; 16]), Epoch([2; 16]));
    let payload = Noise::new(0, CHUNK as u64).to_vec();
    let draft = FrameDraft::raw(FrameKind::Chunk, [3; 32], 0, &payload);
    let mut frame = Vec::new();
    draft.append_to(&mut frame, &salt, 4096);
    let mut group = c.benchmark_group("frame");
    group.throughput(Throughput::Bytes(CHUNK as u64));
    group.bench_function("append a chunk of 128 KiB", |b| {
        let mut out = Vec::with_capacity(frame.len());
        b.iter(|| {
            out.clear();
            black_box(&draft).append_to(&mut out, &salt, 4096)
        });
    });
    group.bench_function("check a chunk of 128 KiB", |b| {
        b.iter(|| {
            let (header, rest) = black_box(&frame).split_first_chunk().expect("longer than a header");
            let header = FrameHeader::decode(header, &salt, 4096).expect("a frame");
            assert!(header.payload_is_good(rest, &salt, 4096));
        });
    });
    group.finish();
}

fn compression(c: &mut Criterion) {
    let text: Vec<u8> =
        (0_u64..).flat_map(|n| format!("line {n} of a log that repeats itself\n").into_bytes()).take(CHUNK).collect();
    let noise = Noise::new(0, CHUNK as u64).to_vec();
    let mut compressor = Compressor::new(Compression::DEFAULT).expect("memory for a compressor");
    let stored = compressor.compress(&text).expect("text compresses").to_vec();
    let mut group = c.benchmark_group("codec");
    group.throughput(Throughput::Bytes(CHUNK as u64));
    group.bench_function("compress text", |b| b.iter(|| compressor.compress(black_box(&text)).map(<[u8]>::len)));
    group.bench_function("probe noise", |b| b.iter(|| compressor.compress(black_box(&noise)).map(<[u8]>::len)));
    group.bench_function("decompress text", |b| b.iter(|| codec::decompress(black_box(&stored), CHUNK)));
    group.finish();
}

fn store(directory: &Path) -> Store {
    let world = World::os(directory).expect("a directory");
    Store::init(&world, &InitOptions::default()).expect("made");
    Store::open(world, &OpenOptions::new(OpenMode::Write, "bench")).expect("opens")
}

fn commits(c: &mut Criterion) {
    let directory = tempfile::tempdir_in(".").expect("a temporary directory, on a disk and not in memory");
    let store = store(directory.path());
    let put = Put {
        scope: holdfast::Destination::Account(AccountScope { tenant: "default", account: "bench" }),
        name: "small",
        origin: Origin::Upload,
        media_type: None,
        op_id: None,
        order: None,
        expires_at: None,
        size_hint: Some(4096),
        logical_size: None,
        supersedes: None,
    };
    let noise = Noise::new(0, u64::MAX);
    let (mut bytes, mut at) = (vec![0; 4096], 0);
    c.bench_function("commit/durable put of 4 KiB", |b| {
        b.iter(|| {
            noise.fill(at, &mut bytes);
            at += 4096;
            store.put(&put, &mut &bytes[..]).expect("puts")
        });
    });
    store.close().expect("closes");
}

criterion_group! {
    name = pieces;
    config = Criterion::default().sample_size(20).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    targets = chunker, digests, frames, compression, commits
}
criterion_main!(pieces);
