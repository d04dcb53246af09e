//! The closing bytes of a segment: footer frames and seal.

use crate::{
    format::{
        frame::{FrameDraft, FrameKind, FrameSalt, frame_len},
        seal::{FooterEntry, LEN, Seal, encode_footers},
    },
    ids::{ChainHash, Epoch, FileId, Lsn},
};

/// What a seal says besides what the frames say.
pub struct Closing {
    /// Where the frames end and the footer begins.
    pub at: u64,
    /// How far the segment is known to be synced.
    pub synced_upto: u64,
    /// Log: first LSN, next LSN, chain hash. Bulk: none.
    pub log: Option<(Lsn, Lsn, ChainHash)>,
    /// Log: the next segment.
    pub successor: Option<(FileId, Epoch)>,
}

/// Bytes of footer and seal, to be written at `closing.at`. Sorts the entries: O(n log n).
pub fn closing_bytes(entries: &mut [FooterEntry], salt: &FrameSalt, closing: &Closing) -> Vec<u8> {
    entries.sort_unstable();
    let mut out = Vec::new();
    let here = |out: &Vec<u8>| closing.at + out.len() as u64;
    for (number, footer) in encode_footers(entries).iter().enumerate() {
        let offset = here(&out);
        FrameDraft::raw(FrameKind::Footer, [0; 32], number as u64, footer).append_to(&mut out, salt, offset);
    }
    let offset = here(&out);
    let (first_lsn, next_lsn, chain) = closing.log.unwrap_or_default();
    let seal = Seal {
        end: offset + frame_len(LEN as u64),
        footer: closing.at,
        synced_upto: closing.synced_upto,
        first_lsn,
        next_lsn,
        frames: entries.len() as u64,
        bytes: entries.iter().map(|e| frame_len(u64::from(e.stored))).sum(),
        successor: closing.successor,
    };
    FrameDraft::raw(FrameKind::Seal, chain.0, next_lsn.0, &seal.encode()).append_to(&mut out, salt, offset);
    out
}
