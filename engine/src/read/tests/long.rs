//! Long reads: ahead of their caller and inline, with damage, and with callers that stop or are slow.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;
use crate::{
    codec::{Compression, Compressor},
    disk::{
        self, OpenOptions,
        fault::{Class, Fault, FaultDisk, Plan},
    },
    limits::READ_AHEAD,
    sync::thread,
};

/// None, and enough for anything.
const MEMORY: [u64; 2] = [0, 64 << 20];
const EIO: i32 = 5;

/// A blob of some 20 MiB: three pages, chunks of many lengths, some compressed, some again, some far from their neighbours.
struct Long {
    disk: FaultDisk,
    reader: Reader,
    root: PageEntry,
    /// Where each chunk lies, and its bytes.
    chunks: Vec<(Location, Vec<u8>)>,
    budget: Arc<Budget>,
}

impl Long {
    fn new(memory: u64) -> Self {
        let disk = FaultDisk::new(Arc::new(SimDisk::new(1)));
        let mut bed = Bed::on(Arc::new(disk.clone()));
        let mut chunks: Vec<(PageEntry, Vec<u8>)> = Vec::new();
        for n in 0..120 {
            let chunk = match n % 7 {
                3 => chunks[n - 1].clone(),
                6 => chunks[n - 5].clone(),
                5 => {
                    let text = vec![b'a' + u8::try_from(n % 26).expect("a letter"); 100_000 + n];
                    (bed.compressed(&text), text)
                }
                _ => {
                    let noise = noise(n);
                    (bed.chunk(&noise), noise)
                }
            };
            chunks.push(chunk);
        }
        let entries: Vec<PageEntry> = chunks.iter().map(|(entry, _)| *entry).collect();
        let pages: Vec<PageEntry> = entries.chunks(40).map(|entries| bed.page(0, entries)).collect();
        let root = bed.page(1, &pages);
        let place = |entry: PageEntry| bed.catalog.chunk(entry.id).expect("reads").expect("there").location;
        let chunks = chunks.into_iter().map(|(entry, bytes)| (place(entry), bytes)).collect();
        let budget = Budget::new(memory);
        Self { disk, reader: bed.reader(&budget), root, chunks, budget }
    }

    fn bytes(&self) -> Vec<u8> {
        self.chunks.iter().flat_map(|(_, bytes)| bytes.clone()).collect()
    }

    fn read(&self, range: Option<Range<u64>>) -> (Result<()>, Vec<u8>) {
        let mut sink = Vec::new();
        let read = self.reader.write_to(&artifact(self.root), range, &mut sink);
        assert_eq!(self.budget.left(), MEMORY[usize::from(self.budget.left() > 0)], "a read gives back what it took");
        (read, sink)
    }

    /// Turns a bit of a chunk's frame over.
    fn damage(&self, chunk: usize, at: u64) {
        let offset = self.chunks[chunk].0.offset + at;
        let file = self.disk.open(&segment::name(FileId(1)), OpenOptions::WRITE).expect("there");
        let mut byte = [0];
        disk::read_exact(&*file, &mut byte, offset).expect("reads");
        disk::write_all(&*file, &[byte[0] ^ 4], offset).expect("writes");
    }

    /// Bytes before a chunk.
    fn before(&self, chunk: usize) -> usize {
        self.chunks[..chunk].iter().map(|(_, bytes)| bytes.len()).sum()
    }
}

fn noise(n: usize) -> Vec<u8> {
    let mut bytes = vec![0; 1000 + n * 77_777 % 400_000];
    blake3::Hasher::new().update(&[u8::try_from(n).expect("few")]).finalize_xof().fill(&mut bytes);
    bytes
}

impl Bed {
    fn compressed(&mut self, raw: &[u8]) -> PageEntry {
        let id = self.keys.chunk(raw);
        let mut compressor = Compressor::new(Compression::DEFAULT).expect("zstd");
        let payload = compressor.compress(raw).expect("pays");
        let raw_len = u32::try_from(raw.len()).expect("short");
        let draft = FrameDraft {
            codec: Codec::Zstd,
            raw: raw_len,
            ..FrameDraft::raw(FrameKind::Chunk, id.0, u64::from(TENANT.0), payload)
        };
        let location = self.writer.append(&draft).expect("appends");
        let stored = u32::try_from(payload.len()).expect("short");
        self.know(id, location, FrameKind::Chunk, Codec::Zstd, (stored, raw_len));
        PageEntry { id, len: raw.len() as u64 }
    }
}

#[test]
fn a_long_read_gives_the_bytes_and_any_range_of_them() {
    for memory in MEMORY {
        let long = Long::new(memory);
        let bytes = long.bytes();
        assert!(bytes.len() as u64 > WHOLE_READ_MAX && READ_AHEAD < WHOLE_READ_MAX);
        let (read, all) = long.read(None);
        read.expect("reads");
        assert!(all == bytes);
        let len = bytes.len() as u64;
        for range in [0..len - 1, 1..len, 5_000_000..9_000_000, len - 1..len, 7..8, 3..3, 100..SHORT + 101] {
            let (read, part) = long.read(Some(range.clone()));
            read.expect("reads");
            let wanted = usize::try_from(range.start).expect("short")..usize::try_from(range.end).expect("short");
            assert!(part == bytes[wanted], "{range:?}");
        }
    }
}

#[test]
fn frames_that_stand_one_behind_the_other_are_read_at_once_and_ahead_as_inline() {
    let reads = MEMORY.map(|memory| {
        let long = Long::new(memory);
        long.disk.set_tracing(true);
        long.read(None).0.expect("reads");
        let calls = long.disk.trace().into_iter().filter(|call| call.method == "read_at");
        let mut reads: Vec<(u64, u64)> = calls.map(|call| (call.offset, call.len)).collect();
        assert!(reads.len() < 60, "{} reads of {} chunks", reads.len(), long.chunks.len());
        reads.sort_unstable();
        reads
    });
    assert_eq!(reads[0], reads[1]);
}

#[test]
fn what_stands_before_damage_is_given_and_the_error_names_the_frame() {
    for memory in MEMORY {
        // A header, a payload, the fill, a compressed payload.
        for (chunk, at) in [(45, 8), (45, 500), (60, 100), (0, 64)] {
            let long = Long::new(memory);
            long.damage(chunk, at);
            let (read, bytes) = long.read(None);
            let error = read.expect_err("damaged");
            assert_eq!(error.kind(), Kind::Corrupt);
            let place = error.place();
            assert_eq!((place.offset, place.artifact), (Some(long.chunks[chunk].0.offset), Some(ID)));
            assert_eq!(place.file.as_deref(), Some("segment-1"));
            // The chunk may stand in the blob before.
            let first = long.chunks.iter().position(|(place, _)| *place == long.chunks[chunk].0).expect("there");
            assert!(bytes == long.bytes()[..long.before(first)], "chunk {chunk} at {at}, memory {memory}");
        }
    }
}

#[test]
fn a_run_that_cannot_be_read_is_read_frame_by_frame() {
    for memory in MEMORY {
        let mut mended = 0;
        for call in 0..9 {
            let long = Long::new(memory);
            long.disk.arm(Plan::new(call, Fault::Errno(EIO)).class(Class::Read));
            let (read, bytes) = long.read(None);
            assert_eq!(long.disk.hits(), 1);
            match read {
                Ok(()) => {
                    assert!(bytes == long.bytes());
                    mended += 1;
                }
                // A page, or a frame that is a run by itself. Which call reads what is the threads' choice.
                Err(error) => {
                    assert_eq!(error.kind(), Kind::Io);
                    assert!(bytes == long.bytes()[..bytes.len()]);
                }
            }
        }
        assert!(mended >= 3, "{mended} runs, memory {memory}");
    }
}

#[test]
fn a_medium_that_fails_for_good_is_an_error_behind_what_was_read() {
    for memory in MEMORY {
        let long = Long::new(memory);
        long.disk.arm(Plan::new(6, Fault::Errno(EIO)).class(Class::Read).sticky());
        let (read, bytes) = long.read(None);
        assert_eq!(read.expect_err("fails").kind(), Kind::Io);
        assert!(bytes.len() < long.bytes().len() && bytes == long.bytes()[..bytes.len()]);
    }
}

#[test]
fn a_caller_that_stops_gets_its_own_error_and_nobody_waits() {
    for memory in MEMORY {
        let long = Long::new(memory);
        for stop in [0, 1, 30] {
            let mut pieces = 0;
            let read = long.reader.read(&artifact(long.root), None, &mut |_| {
                if pieces == stop {
                    return Err(Error::new(Kind::Gone, "enough"));
                }
                pieces += 1;
                Ok(())
            });
            assert_eq!(read.expect_err("stopped").kind(), Kind::Gone);
            assert_eq!(long.budget.left(), memory);
        }
    }
}

#[test]
fn pieces_may_be_kept_for_ever() {
    let long = Long::new(MEMORY[1]);
    let mut pieces = Vec::new();
    let read = long.reader.read(&artifact(long.root), None, &mut |piece| {
        pieces.push(piece.bytes);
        Ok(())
    });
    read.expect("reads");
    assert_eq!(pieces.len(), long.chunks.len());
    assert!(pieces.concat() == long.bytes());
}

#[test]
fn a_slow_caller_has_no_more_ahead_than_was_granted() {
    let long = Long::new(MEMORY[1]);
    long.disk.set_tracing(true);
    let mut given = 0;
    let read = long.reader.read(&artifact(long.root), None, &mut |piece| {
        for _ in 0..20 {
            thread::yield_now();
        }
        let calls = long.disk.trace();
        let read: u64 = calls.iter().filter(|call| call.method == "read_at").map(|call| call.len).sum();
        // What compresses well counts as it is decoded, and was read in fewer bytes.
        assert!(read <= given + READ_AHEAD + 4 * READ_RUN as u64, "{read} bytes read and {given} taken");
        given += piece.bytes.len() as u64;
        Ok(())
    });
    read.expect("reads");
}

#[test]
fn the_panic_of_a_worker_is_its_callers() {
    let long = Long::new(MEMORY[1]);
    long.disk.set_hook(|| panic!("seeded"));
    long.disk.arm(Plan::new(9, Fault::Hook).class(Class::Read));
    let read =
        catch_unwind(AssertUnwindSafe(|| long.reader.write_to(&artifact(long.root), None, &mut std::io::sink())));
    assert!(read.is_err());
    assert_eq!(long.budget.left(), MEMORY[1]);
    long.disk.disarm();
    long.read(None).0.expect("the reader is as good as before");
}

#[test]
fn a_short_artifact_is_verified_whole_also_where_it_cannot_be_held() {
    for memory in [0, READ_AHEAD] {
        let mut bed = Bed::new();
        let chunks: Vec<PageEntry> = (1..60).map(|n| bed.chunk(&noise(n))).collect();
        let last = PageEntry { id: ChunkId([8; 32]), len: 1 };
        let pages = [bed.page(0, &chunks), bed.page(0, &[chunks[0], last])];
        let root = bed.page(1, &pages);
        assert!((READ_RUN as u64 * 5..WHOLE_READ_MAX).contains(&root.len));
        let mut sink = Vec::new();
        let read = bed.reader(&Budget::new(memory)).write_to(&artifact(root), None, &mut sink);
        assert_eq!(read.expect_err("a chunk is missing").kind(), Kind::Corrupt);
        assert!(sink.is_empty());
    }
}
