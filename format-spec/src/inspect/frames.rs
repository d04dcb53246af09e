//! The frames of a segment as records, or their sum.

use super::{Record, lsn};
use crate::bytes::{Bytes, first_nonzero};
use crate::commit::{Commit, Edit};
use crate::error::Result;
use crate::frame::{self, Codec, Frame, Header, Kind, Rules};
use crate::keyspace::keyspace_name;
use crate::limits;
use crate::log::scan::{Found, Gap, scan};
use crate::recipe::Page;
use crate::seal::{Seal, footer};
use std::collections::BTreeMap;

/// Counts of what was found.
#[derive(Default)]
struct Sum {
    frames: BTreeMap<Kind, (u64, u64)>,
    invalid: u64,
    end: u64,
}

pub(super) fn print(bytes: &dyn Bytes, rules: &Rules, each: bool, out: &mut dyn FnMut(Record)) -> Result<()> {
    let mut sum = Sum { end: limits::FRAMES_START.min(bytes.len()), ..Sum::default() };
    scan(bytes, limits::FRAMES_START, bytes.len(), rules, &mut |found| {
        match found {
            Found::Frame(frame) => {
                let (count, length) = sum.frames.entry(frame.header.kind).or_default();
                *count += 1;
                *length += frame.header.frame_len();
                sum.end = frame.end();
                if each {
                    out(record(frame, rules));
                }
            }
            Found::Gap(gap) => {
                let zeros = first_nonzero(bytes, gap.from, gap.to)?.is_none();
                sum.invalid += u64::from(!zeros);
                if each {
                    out(gap_record(&gap, zeros));
                }
            }
        }
        Ok(())
    })?;
    let mut record = Record::new(limits::FRAMES_START, "frames");
    for (kind, (count, length)) in &sum.frames {
        record = record.with(kind.name(), format!("{count} in {length} bytes"));
    }
    record = record.with("invalid places", sum.invalid).with("end of the last valid frame", sum.end);
    out(match first_nonzero(bytes, sum.end, bytes.len())? {
        None => record.with("behind it", format!("{} zeros", bytes.len() - sum.end)),
        Some(at) => record.with("behind it", format!("a byte at {at} is not zero")),
    });
    Ok(())
}

fn head(offset: u64, header: &Header) -> Record {
    let record = Record::new(offset, header.kind.name())
        .with("length", header.frame_len())
        .with("stored", header.stored)
        .with("header checksum", "ok");
    let record = match header.codec {
        Codec::Raw => record.with("codec", "raw"),
        Codec::Zstd => record.with("codec", "zstd").with("raw", header.raw),
    };
    match header.kind {
        Kind::Chunk | Kind::Page => record.hex("id", &header.id).with("tenant", header.context),
        Kind::Commit => record.hex("chain", &header.id),
        Kind::Mark | Kind::Seal if header.context != 0 => {
            record.hex("chain", &header.id).with("next LSN", lsn(header.context))
        }
        Kind::Footer => record.with("place", header.context),
        _ => record,
    }
}

fn gap_record(gap: &Gap, zeros: bool) -> Record {
    if zeros {
        return Record::new(gap.from, "zeros").with("end", gap.to);
    }
    let record = match &gap.header {
        Some(header) => head(gap.from, header).with("payload checksum", "wrong"),
        None => Record::new(gap.from, "invalid"),
    };
    record.with("damage", &gap.error).with("next valid header", gap.to)
}

fn record(frame: &Frame, rules: &Rules) -> Record {
    let header = &frame.header;
    let base = frame.offset + frame::HEADER;
    let record = head(frame.offset, header).with("payload checksum", "ok");
    match header.kind {
        Kind::Commit => match Commit::parse(&frame.payload, header.context, base) {
            Ok(commit) => commit_record(record, &commit, header.context),
            Err(error) => record.with("first LSN", lsn(header.context)).with("damage", error),
        },
        Kind::Page => match Page::parse(&frame.payload, base) {
            Ok(page) => record.with("level", page.level).with("count", page.entries.len()).with("total", page.total),
            Err(error) => record.with("damage", error),
        },
        Kind::Seal => match Seal::parse(&frame.payload, rules.lane, base) {
            Ok(seal) => seal_record(record, &seal),
            Err(error) => record.with("damage", error),
        },
        Kind::Footer => match footer(&frame.payload, base) {
            Ok(entries) => record.with("entries", entries.len()),
            Err(error) => record.with("damage", error),
        },
        Kind::Chunk if header.codec == Codec::Zstd => match frame.decode() {
            Ok(_) => record,
            Err(error) => record.with("damage", error),
        },
        _ => record,
    }
}

fn commit_record(record: Record, commit: &Commit, first: u64) -> Record {
    let count = commit.requests.len() as u64;
    let mut edits: BTreeMap<u8, (u64, u64)> = BTreeMap::new();
    for edit in commit.edits() {
        let (puts, deletes) = edits.entry(edit.key().keyspace()).or_default();
        *(if matches!(edit, Edit::Put(_)) { puts } else { deletes }) += 1;
    }
    let mut record = record
        .with("first LSN", lsn(first))
        .with("last LSN", lsn(first + count - 1))
        .with("requests", count)
        .with("synced_upto segment", commit.synced_upto.segment)
        .with("synced_upto offset", commit.synced_upto.offset)
        .with("hw", commit.hw);
    for (keyspace, (puts, deletes)) in edits {
        let name = keyspace_name(keyspace).unwrap_or("unknown");
        record = record.with(format!("edits of {name}"), format!("{puts} put, {deletes} deleted"));
    }
    record
}

fn seal_record(record: Record, seal: &Seal) -> Record {
    let record = record
        .with("end", seal.end)
        .with("footer offset", seal.footer_offset)
        .with("synced_upto", seal.synced_upto)
        .with("frame count", seal.frame_count)
        .with("byte count", seal.byte_count);
    match &seal.successor {
        Some((id, epoch)) => {
            record.with("first LSN", lsn(seal.first_lsn)).with("successor id", id).hex("successor epoch", epoch)
        }
        None => record,
    }
}
