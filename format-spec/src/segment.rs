//! The header of a segment: section 5 of `FORMAT.md`.
//!
//! It does not know frames, nor the other segments of a store.

use crate::bytes::{Bytes, read_vec};
use crate::error::{Error, Place, Result};
use crate::fields::Fields;
use crate::superblock::check_block;
use crate::{Id16, Id32, limits};

const NAME: &str = "segment header";

/// What a segment is written by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// Commits and small frames.
    Log = 1,
    /// Frames of long blobs.
    Bulk = 2,
}

impl Lane {
    /// Its name, for messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Bulk => "bulk",
        }
    }

    pub(crate) fn parse(f: &mut Fields<'_>, field: &'static str) -> Result<Self> {
        match f.u8(field)? {
            1 => Ok(Self::Log),
            2 => Ok(Self::Bulk),
            _ => Err(Error::Value(f.place())),
        }
    }
}

/// What a log segment says about the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predecessor {
    /// Its id.
    pub id: u64,
    /// Its epoch.
    pub epoch: Id16,
    /// Where its frames end.
    pub end: u64,
}

/// A header. The number of the copy is not part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The store.
    pub uuid: Id16,
    /// The segment.
    pub id: u64,
    /// Random, new each time a file becomes a segment.
    pub epoch: Id16,
    /// Its lane.
    pub lane: Lane,
    /// Log: length of the file when it was made. Bulk: the length that it is meant to reach.
    pub capacity: u64,
    /// Log: the next LSN at its start. Bulk: 0.
    pub first_lsn: u64,
    /// Log: the segment before.
    pub predecessor: Option<Predecessor>,
    /// Log: the chain hash at its start. Bulk: zero.
    pub chain: Id32,
}

/// Both copies of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Headers {
    /// What they say.
    pub header: Header,
    /// What is wrong with copy 0 and with copy 1.
    pub damaged: [Option<Error>; 2],
}

impl Header {
    /// Reads the copy that stands at place `copy` of a segment with this id; `bytes` are its 4,096 bytes.
    pub fn parse(bytes: &[u8], copy: u32, id: u64) -> Result<Self> {
        let base = u64::from(copy) * limits::BLOCK;
        let mut f = Fields::new(NAME, bytes, base);
        let magic = f.take("magic", 8)?;
        f.check(magic == b"HFSEGMNT", Error::Value)?;
        let salt = |uuid: &[u8]| [uuid, &id.to_le_bytes(), &copy.to_le_bytes()].concat();
        check_block(NAME, bytes, base, salt, 16)?;
        let version = f.u32("version")?;
        f.check(version <= 1, Error::Newer)?;
        f.check(version == 1, Error::Value)?;
        let place = f.u32("copy")?;
        f.check(place == copy, Error::Value)?;
        let uuid = f.array("store uuid")?;
        let own = f.u64("id")?;
        f.check(own == id && limits::is_file_id(id), Error::Mismatch)?;
        let epoch = f.array("epoch")?;
        let lane = Lane::parse(&mut f, "lane")?;
        f.reserved(7)?;
        let capacity = f.u64("capacity")?;
        f.check(capacity >= limits::FRAMES_START, Error::Value)?;
        let first_lsn = f.u64("first LSN")?;
        f.check((first_lsn != 0) == (lane == Lane::Log), Error::Value)?;
        let predecessor = predecessor(&mut f, lane, id)?;
        let chain = f.array("chain")?;
        f.check(lane == Lane::Log || chain == [0; 32], Error::Value)?;
        f.reserved(3_948)?;
        f.u32("checksum")?;
        f.end()?;
        Ok(Self { uuid, id, epoch, lane, capacity, first_lsn, predecessor, chain })
    }

    /// Reads both copies. The header holds if one of them does; two that differ are damage.
    pub fn read(bytes: &dyn Bytes, id: u64) -> Result<Headers> {
        let copy = |copy: u32| {
            let offset = u64::from(copy) * limits::BLOCK;
            let length = bytes.len().saturating_sub(offset).min(limits::BLOCK);
            Self::parse(&read_vec(bytes, offset, length)?, copy, id)
        };
        match (copy(0), copy(1)) {
            (Ok(one), Ok(other)) if one == other => Ok(Headers { header: one, damaged: [None, None] }),
            (Ok(_), Ok(_)) => {
                Err(Error::Mismatch(Place { structure: NAME, field: "copy", offset: limits::BLOCK + 12 }))
            }
            (Err(error), _) | (_, Err(error)) if error.is_newer() => Err(error),
            (Ok(header), Err(error)) => Ok(Headers { header, damaged: [None, Some(error)] }),
            (Err(error), Ok(header)) => Ok(Headers { header, damaged: [Some(error), None] }),
            (Err(error), Err(_)) => Err(error),
        }
    }
}

/// A log segment has a predecessor unless its id is 1; a bulk segment has none.
fn predecessor(f: &mut Fields<'_>, lane: Lane, own: u64) -> Result<Option<Predecessor>> {
    let id = f.u64("predecessor id")?;
    let wanted = lane == Lane::Log && own != 1;
    f.check(if wanted { limits::is_file_id(id) && id != own } else { id == 0 }, Error::Value)?;
    let epoch = f.array("predecessor epoch")?;
    f.check(wanted || epoch == [0; 16], Error::Value)?;
    let end = f.u64("predecessor end")?;
    f.check(if wanted { limits::is_frame_offset(end) } else { end == 0 }, Error::Value)?;
    Ok(wanted.then_some(Predecessor { id, epoch, end }))
}
