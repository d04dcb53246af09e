//! What proves that a position of the newest log segment was synced (FORMAT.md section 10).
//!
//! Only what was written *after* a sync returned, and says so, is a witness. A valid frame by itself is none: writes of one group
//! reach the disk in any order.

use crate::{
    disk::{File, Name},
    error::Result,
    format::{
        commit::Commit,
        frame::{FrameKind, FrameSalt},
        manifest::Lane,
        seal::Seal,
    },
    ids::FileId,
    limits::{FRAME_ALIGN, FRAMES_START},
    segment::{reader, scanner::Scanner},
};

/// Result of a scan.
pub struct Witness {
    /// Everything below was synced.
    pub synced: u64,
    /// A valid seal, wherever it stands.
    pub seal: Option<Seal>,
}

/// Looks at every frame of a segment, also behind damage. Reads the headers of the whole file and the payloads of commits: O(length).
pub fn highest(file: &dyn File, name: &Name, salt: FrameSalt, id: FileId, len: u64) -> Result<Witness> {
    let mut witness = Witness { synced: FRAMES_START, seal: None };
    let mut scanner = Scanner::new(file, name, salt);
    let mut at = FRAMES_START;
    while let Some(offset) = next(&mut scanner, at, len)? {
        let (header, _) = scanner.header_at(offset)?.expect("a valid header was found here");
        at = offset + header.frame_len();
        match header.kind {
            FrameKind::Mark if header.payload_is_good(&[], &salt, offset) => {
                witness.synced = witness.synced.max(offset);
            }
            FrameKind::Commit | FrameKind::Seal => {
                let Some(frame) = reader::read_frame(file, name, &salt, offset)? else { continue };
                if header.kind == FrameKind::Seal {
                    let Ok(seal) = Seal::decode(frame.payload(), Lane::Log, offset) else { continue };
                    witness.synced = witness.synced.max(seal.synced_upto);
                    witness.seal = Some(seal);
                } else if let Ok(commit) = Commit::decode(frame.payload())
                    && commit.synced_upto.segment == id
                {
                    // A commit cannot vouch for itself.
                    witness.synced = witness.synced.max(commit.synced_upto.offset.min(offset));
                }
            }
            _ => {}
        }
    }
    Ok(witness)
}

fn next(scanner: &mut Scanner<'_>, at: u64, len: u64) -> Result<Option<u64>> {
    if scanner.header_at(at)?.is_some() { Ok(Some(at)) } else { scanner.next_valid(at + FRAME_ALIGN, len) }
}
