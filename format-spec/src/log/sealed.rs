//! Compares the seal and the footer of a segment with its frames: section 9 of `FORMAT.md`.

use super::walk::Seen;
use crate::bytes::{Bytes, first_nonzero};
use crate::error::Result;
use crate::frame::{self, Kind, Rules};
use crate::problem::{ProblemKind, Problems};
use crate::seal::{FooterEntry, Seal, footer};
use crate::segment::{Header, Lane};

/// Checks a segment whose frames end in a valid seal. Its seal is returned if its payload holds.
pub(crate) fn check_sealed(
    (name, bytes): (&str, &dyn Bytes),
    rules: &Rules,
    header: Option<&Header>,
    seen: &[Seen],
    problems: &mut Problems,
) -> Result<Option<Seal>> {
    let Some(Seen::Frame { offset, header: last, .. }) = seen.last() else { return Ok(None) };
    let (offset, end) = (*offset, *offset + last.frame_len());
    if let Some(at) = first_nonzero(bytes, end, bytes.len())? {
        problems.add(ProblemKind::NotZero, name, (at, 1), "a byte behind the end of a sealed segment");
    }
    if let Some(header) = header.filter(|header| header.lane == Lane::Log && bytes.len() < header.capacity) {
        let missing = (bytes.len(), header.capacity - bytes.len());
        problems.add(ProblemKind::Segment, name, missing, "a sealed log segment is shorter than its capacity");
    }
    let Ok(seal_frame) = frame::read(bytes, offset, end, rules) else { return Ok(None) };
    let seal = match Seal::parse(&seal_frame.payload, rules.lane, offset + frame::HEADER) {
        Ok(seal) => seal,
        Err(error) => {
            problems.add(ProblemKind::Seal, name, (offset, end - offset), error.to_string());
            return Ok(None);
        }
    };
    let mut wrong = |what: &str| problems.add(ProblemKind::Seal, name, (offset, end - offset), what);
    if header.is_some_and(|header| header.first_lsn != seal.first_lsn) {
        wrong("first LSN: not that of the header");
    }
    if seal.next_lsn != last.context {
        wrong("next LSN: not that of the seal's frame");
    }
    if seal.synced_upto > offset {
        wrong("synced_upto: behind the seal");
    }
    // Where frames are damaged nobody can say whether they were counted; the damage is named already.
    if seen.iter().all(|seen| matches!(seen, Seen::Frame { .. })) {
        compare((name, bytes), rules, &seal, seen, problems);
    }
    Ok(Some(seal))
}

fn compare((name, bytes): (&str, &dyn Bytes), rules: &Rules, seal: &Seal, seen: &[Seen], problems: &mut Problems) {
    let mut frames: Vec<FooterEntry> = seen.iter().filter_map(Seen::data).collect();
    let end = seal.end;
    let bytes_counted: u64 = seen.iter().filter(|seen| seen.data().is_some()).map(Seen::len).sum();
    if frames.len() as u64 != seal.frame_count || bytes_counted != seal.byte_count {
        problems.add(ProblemKind::Seal, name, (end - 192, 192), "frame count or byte count: not that of the frames");
    }
    frames.sort_unstable();
    let mut listed = Vec::new();
    let mut first = None;
    let mut number = 0;
    for frame in seen {
        let Seen::Frame { offset, header, .. } = frame else { continue };
        let place = (*offset, header.frame_len());
        if header.kind != Kind::Footer {
            if first.is_some() && header.kind != Kind::Seal {
                problems.add(ProblemKind::Seal, name, place, "a frame that is no footer behind a footer");
            }
            continue;
        }
        first.get_or_insert(*offset);
        if header.context != number {
            problems.add(ProblemKind::Seal, name, place, "context: not the footer's place among the footers");
        }
        number += 1;
        let Ok(read) = frame::read(bytes, *offset, bytes.len(), rules) else { continue };
        match footer(&read.payload, *offset + frame::HEADER) {
            Ok(entries) => listed.extend(entries),
            Err(error) => problems.add(ProblemKind::Seal, name, place, error.to_string()),
        }
    }
    if first != Some(seal.footer_offset) {
        problems.add(ProblemKind::Seal, name, (end - 192, 192), "footer offset: not that of the first footer frame");
    }
    if listed != frames {
        let place = (seal.footer_offset, end - seal.footer_offset);
        problems.add(
            ProblemKind::Seal,
            name,
            place,
            "the footer lists other frames than the segment has, or not in order",
        );
    }
}
