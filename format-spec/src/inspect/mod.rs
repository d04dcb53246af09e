//! Prints a file field by field, for a person or a program to read.
//!
//! It reads one file alone, in constant memory, and goes on behind damage. It prints lengths, numbers and hashes: no payload, no name, no
//! text of an account, no key. It does not know the other files, so it does not judge what they would have to say.

mod frames;
mod tables;

use crate::Id16;
use crate::bytes::{Bytes, first_nonzero, read_vec};
use crate::derive::hex;
use crate::error::{Error, Result};
use crate::files::FileName;
use crate::frame::Rules;
use crate::limits;
use crate::manifest::Manifest;
use crate::segment::Header;
use crate::superblock::{self, CopyState, Superblock};

/// One thing in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Where it stands.
    pub offset: u64,
    /// What it is.
    pub kind: &'static str,
    /// Its fields, in order.
    pub fields: Vec<(String, String)>,
}

impl Record {
    fn new(offset: u64, kind: &'static str) -> Self {
        Self { offset, kind, fields: Vec::new() }
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "values are numbers and literals: a reference at each call would be noise"
    )]
    fn with(mut self, field: impl Into<String>, value: impl ToString) -> Self {
        self.fields.push((field.into(), value.to_string()));
        self
    }

    fn hex(self, field: &str, bytes: &[u8]) -> Self {
        self.with(field, hex(bytes))
    }

    fn damage(offset: u64, kind: &'static str, error: &Error) -> Self {
        Self::new(offset, kind).with("damage", error)
    }
}

/// What is known of a store when the header of one of its segments is damaged.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// The store.
    pub uuid: Id16,
    /// The epoch of the segment.
    pub epoch: Id16,
    /// Its lane.
    pub lane: crate::segment::Lane,
}

/// Prints a file. Its name says what it is; if it does not, its first bytes do. With `frames`, each frame of a segment is a record.
///
/// Fails only where the file cannot be read.
pub fn inspect_file(
    name: &str,
    bytes: &dyn Bytes,
    context: Option<Context>,
    frames: bool,
    out: &mut dyn FnMut(Record),
) -> Result<()> {
    match kind_of(name, bytes)? {
        Some(FileName::Superblock) => superblock(bytes, out),
        Some(FileName::Manifest(..)) => manifest(bytes, out),
        Some(FileName::Segment(id)) => segment(id, bytes, context, frames, out),
        Some(FileName::Table(id, _)) => tables::print(id, bytes, frames, out),
        Some(FileName::Reserve(_)) => zeros(bytes, "reserve", out),
        Some(FileName::Lock) => {
            out(Record::new(0, "lock").with("length", bytes.len()));
            Ok(())
        }
        None => {
            out(Record::new(0, "unknown").with("length", bytes.len()));
            Ok(())
        }
    }
}

fn kind_of(name: &str, bytes: &dyn Bytes) -> Result<Option<FileName>> {
    if let Some(kind) = FileName::parse(name) {
        return Ok(Some(kind));
    }
    let head = read_vec(bytes, 0, bytes.len().min(40))?;
    let id = head.get(32..40).and_then(|id| id.try_into().ok()).map(u64::from_le_bytes);
    Ok(match head.first_chunk::<8>() {
        Some(b"HOLDFAST") => Some(FileName::Superblock),
        Some(b"HFMANIFT") => Some(FileName::Manifest(1, false)),
        Some(b"HFTABLEF") => id.map(|id| FileName::Table(id, false)),
        Some(b"HFSEGMNT") => id.map(FileName::Segment),
        _ => None,
    })
}

fn zeros(bytes: &dyn Bytes, kind: &'static str, out: &mut dyn FnMut(Record)) -> Result<()> {
    let record = Record::new(0, kind).with("length", bytes.len());
    out(match first_nonzero(bytes, 0, bytes.len())? {
        None => record.with("content", "zeros"),
        Some(at) => record.with("damage", format!("a byte at {at} is not zero")),
    });
    Ok(())
}

fn superblock(bytes: &dyn Bytes, out: &mut dyn FnMut(Record)) -> Result<()> {
    let file = read_vec(bytes, 0, bytes.len().min(superblock::LEN))?;
    let choice = superblock::choose(&file);
    for (copy, offset) in (0..superblock::COPIES).zip((0u64..).step_by(4_096)) {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = file.get(start..).unwrap_or_default();
        match Superblock::parse(rest.get(..4_096).unwrap_or(rest), copy) {
            Err(error) => out(Record::damage(offset, "superblock copy", &error).with("copy", copy)),
            Ok(state) => {
                let copies = choice.as_ref().map(|choice| choice.copies.as_slice()).unwrap_or_default();
                let standing = match copies.get(copy as usize) {
                    Some(CopyState::Current) => "current",
                    Some(CopyState::Older(_)) => "older",
                    Some(CopyState::Newer(_)) => "newer, alone",
                    _ => "no two copies agree with it",
                };
                out(superblock_copy(&state, offset).with("copy", copy).with("standing", standing));
            }
        }
    }
    match choice {
        Ok(choice) => {
            out(Record::new(0, "superblock").with("state", "valid").with("sequence", choice.superblock.sequence));
        }
        Err(error) => out(Record::damage(0, "superblock", &error)),
    }
    if bytes.len() != superblock::LEN {
        out(Record::new(0, "superblock").with("damage", "not 16,384 bytes").with("length", bytes.len()));
    }
    Ok(())
}

fn superblock_copy(s: &Superblock, offset: u64) -> Record {
    let record = Record::new(offset, "superblock copy")
        .with("sequence", s.sequence)
        .hex("store uuid", &s.uuid)
        .with("created_at", s.created_at)
        .with("chunk_min", s.chunk_min)
        .with("chunk_avg", s.chunk_avg)
        .with("chunk_max", s.chunk_max)
        .with("chunk_single_max", s.chunk_single_max)
        .with("compression", if s.zstd { "zstd" } else { "none" })
        .with("compression level", s.compression_level)
        .with("log segment size, first", s.log_first)
        .with("log segment size, largest", s.log_largest)
        .with("bulk segment size", s.bulk)
        .with("incarnation", s.incarnation)
        .with("manifest generation", s.manifest_generation)
        .with("manifest length", s.manifest_length)
        .hex("manifest digest", &s.manifest_digest)
        .with("replay segment", s.replay.segment)
        .hex("replay epoch", &s.replay.epoch)
        .with("replay offset", s.replay.offset)
        .with("replay LSN", lsn(s.replay.lsn))
        .hex("replay chain", &s.replay.chain)
        .with("log_head segment", s.log_head)
        .hex("log_head epoch", &s.log_head_epoch)
        .with("clean", u8::from(s.log_end.is_some()));
    let record = match &s.log_end {
        Some(end) => {
            record.with("log_end offset", end.offset).with("log_end LSN", lsn(end.lsn)).hex("log_end chain", &end.chain)
        }
        None => record,
    };
    record
        .with("ceiling of file ids", s.ceiling_files)
        .with("ceiling of generations", s.ceiling_generations)
        .with("ceiling of tenant numbers", s.ceiling_tenants)
        .with("prepared ids", list(&s.prepared))
        .with("reserve ids", list(&s.reserve))
        .with("ledger places", s.ledger_places.len())
}

fn manifest(bytes: &dyn Bytes, out: &mut dyn FnMut(Record)) -> Result<()> {
    // The largest manifest that the bounds allow has 82 MB; a longer file is no manifest, and is not read.
    let most = 168
        + 56 * u64::from(limits::TENANTS)
        + 40 * u64::from(limits::SEGMENTS)
        + (32 + 2 * (4 + u64::from(limits::EDIT_KEY))) * u64::from(limits::TABLES);
    if bytes.len() > most {
        out(Record::new(0, "manifest").with("damage", "longer than a manifest can be").with("length", bytes.len()));
        return Ok(());
    }
    let file = read_vec(bytes, 0, bytes.len())?;
    let manifest = match Manifest::parse(&file) {
        Ok(manifest) => manifest,
        Err(error) => {
            out(Record::damage(0, "manifest", &error).with("length", bytes.len()));
            return Ok(());
        }
    };
    out(Record::new(0, "manifest")
        .hex("store uuid", &manifest.uuid)
        .with("generation", manifest.generation)
        .with("tenants", manifest.tenants.len())
        .with("segments", manifest.segments.len())
        .with("tables", manifest.tables.len())
        .hex("digest", &crate::derive::digest(&file)));
    let mut at = 96;
    for tenant in &manifest.tenants {
        out(Record::new(at, "tenant").with("number", tenant.number));
        at += 56;
    }
    for segment in &manifest.segments {
        let record = Record::new(at, "segment").with("id", segment.id).hex("epoch", &segment.epoch);
        let record = record.with("lane", segment.lane.name());
        out(match segment.sealed_end {
            Some(end) => record.with("state", "sealed").with("end", end),
            None => record.with("state", "active"),
        });
        at += 40;
    }
    if let Some(sums) = &manifest.sums {
        out(Record::new(at, "sums")
            .with("hw", sums.hw)
            .with("artifacts", sums.artifacts)
            .with("artifact bytes", sums.artifact_bytes)
            .with("blobs", sums.blobs)
            .with("chunks", sums.chunks)
            .with("chunk bytes", sums.chunk_bytes)
            .with("frame bytes", sums.frame_bytes)
            .with("log frame bytes", sums.log_frame_bytes));
        at += 64;
    }
    for table in &manifest.tables {
        out(Record::new(at, "table")
            .with("id", table.id)
            .with("pages", table.pages)
            .with("mirrored", u8::from(table.mirrored))
            .with("first LSN", lsn(table.first_lsn))
            .with("last LSN", lsn(table.last_lsn))
            .with("first keyspace", table.first.keyspace())
            .with("last keyspace", table.last.keyspace()));
        at += 40 + table.first.length() + table.last.length();
    }
    Ok(())
}

fn segment(
    id: u64,
    bytes: &dyn Bytes,
    context: Option<Context>,
    frames: bool,
    out: &mut dyn FnMut(Record),
) -> Result<()> {
    if first_nonzero(bytes, 0, bytes.len().min(limits::FRAMES_START))?.is_none() && context.is_none() {
        return zeros(bytes, "prepared segment", out);
    }
    let mut found = None;
    for copy in 0..2 {
        let offset = u64::from(copy) * limits::BLOCK;
        let length = bytes.len().saturating_sub(offset).min(limits::BLOCK);
        match Header::parse(&read_vec(bytes, offset.min(bytes.len()), length)?, copy, id) {
            Err(error) => out(Record::damage(offset, "segment header", &error).with("copy", copy)),
            Ok(header) => {
                out(segment_header(&header, offset).with("copy", copy));
                if found.is_some_and(|found| found != header) {
                    out(Record::new(offset, "segment header").with("damage", "the copies differ"));
                }
                found = found.or(Some(header));
            }
        }
    }
    let known = found.map(|header| (header.uuid, header.epoch, header.lane));
    let Some((uuid, epoch, lane)) = known.or(context.map(|context| (context.uuid, context.epoch, context.lane))) else {
        out(Record::new(limits::FRAMES_START, "frames").with("damage", "not readable without the header's epoch"));
        return Ok(());
    };
    frames::print(bytes, &Rules { uuid, epoch, lane, chunk_max: limits::CHUNK }, frames, out)
}

fn segment_header(header: &Header, offset: u64) -> Record {
    let record = Record::new(offset, "segment header")
        .hex("store uuid", &header.uuid)
        .with("id", header.id)
        .hex("epoch", &header.epoch)
        .with("lane", header.lane.name())
        .with("capacity", header.capacity);
    if header.lane == crate::segment::Lane::Bulk {
        return record;
    }
    let record = record.with("first LSN", lsn(header.first_lsn)).hex("chain", &header.chain);
    match &header.predecessor {
        Some(before) => record
            .with("predecessor id", before.id)
            .hex("predecessor epoch", &before.epoch)
            .with("predecessor end", before.end),
        None => record,
    }
}

/// An LSN as incarnation and sequence.
fn lsn(lsn: u64) -> String {
    format!("{}:{}", lsn >> 48, lsn & limits::SEQUENCE)
}

fn list(ids: &[u64]) -> String {
    ids.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
}
