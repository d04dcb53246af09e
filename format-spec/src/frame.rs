//! Frames: section 6 of `FORMAT.md`.
//!
//! It knows headers, checksums and codecs. It does not know what the payload of a commit, seal, footer or page means.

use crate::bytes::{Bytes, read_vec};
use crate::error::{Error, Place, Result};
use crate::fields::{Fields, crc};
use crate::segment::Lane;
use crate::{Id16, Id32, limits};
use zstd::zstd_safe;

const NAME: &str = "frame";
/// Length of a frame header.
pub const HEADER: u64 = 64;
const WINDOW_MAX: u64 = 1 << 20;

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are those of the table")]
pub enum Kind {
    Chunk = 1,
    Page = 2,
    Commit = 3,
    Mark = 4,
    Seal = 5,
    Footer = 6,
    Padding = 7,
}

impl Kind {
    /// Its name, for messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Chunk => "chunk",
            Self::Page => "page",
            Self::Commit => "commit",
            Self::Mark => "mark",
            Self::Seal => "seal",
            Self::Footer => "footer",
            Self::Padding => "padding",
        }
    }

    /// Whether the frame carries stored data: a chunk or a page.
    pub fn is_data(self) -> bool {
        matches!(self, Self::Chunk | Self::Page)
    }
}

/// How a payload is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Codec {
    /// As it is.
    Raw = 0,
    /// One zstd frame.
    Zstd = 1,
}

/// What the frames of a segment are checked against.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The store.
    pub uuid: Id16,
    /// The epoch of the segment.
    pub epoch: Id16,
    /// Its lane.
    pub lane: Lane,
    /// Raw length of a chunk at most, from the superblock; [`limits::CHUNK`] where it is not known.
    pub chunk_max: u32,
}

impl Rules {
    fn crc(&self, offset: u64, bytes: &[u8]) -> u32 {
        crc(&[&self.uuid, &self.epoch, &offset.to_le_bytes()], bytes)
    }
}

/// A frame header that holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the table")]
pub struct Header {
    pub kind: Kind,
    pub codec: Codec,
    pub stored: u32,
    pub raw: u32,
    pub id: Id32,
    pub context: u64,
    pub payload_checksum: u32,
}

impl Header {
    /// Reads the header that stands at `offset` of a segment.
    pub fn parse(bytes: &[u8; 64], offset: u64, rules: &Rules) -> Result<Self> {
        let mut f = Fields::new(NAME, bytes, offset);
        let magic = f.take("magic", 4)?;
        f.check(magic == b"HFr1", Error::Value)?;
        let (body, _) = bytes.split_at(56);
        let (_, sum) = bytes.split_at(56);
        if !sum.starts_with(&rules.crc(offset, body).to_le_bytes()) {
            return Err(Error::Checksum(Place { structure: NAME, field: "header checksum", offset: offset + 56 }));
        }
        let kind = kind(&mut f, rules.lane)?;
        let codec = match f.u8("codec")? {
            0 => Codec::Raw,
            1 if kind == Kind::Chunk => Codec::Zstd,
            _ => return Err(Error::Value(f.place())),
        };
        let flags = f.u16("flags")?;
        f.check(flags == 0, Error::Reserved)?;
        let stored = f.u32("stored")?;
        f.check(stored_bounds(kind, rules.chunk_max).contains(&stored), Error::Bound)?;
        f.check(frame_len(stored) <= limits::FRAME, Error::Bound)?;
        let raw = f.u32("raw")?;
        f.check(raw_holds(codec, stored, raw, rules.chunk_max), Error::Value)?;
        let id = f.array("id")?;
        f.check(id_holds(kind, rules.lane, &id), Error::Value)?;
        let context = f.u64("context")?;
        f.check(context_holds(kind, rules.lane, context), Error::Value)?;
        f.u32("header checksum")?;
        let payload_checksum = f.u32("payload checksum")?;
        Ok(Self { kind, codec, stored, raw, id, context, payload_checksum })
    }

    /// Length of the whole frame.
    pub fn frame_len(&self) -> u64 {
        frame_len(self.stored)
    }
}

fn frame_len(stored: u32) -> u64 {
    HEADER + u64::from(stored).next_multiple_of(limits::FRAME_ALIGN)
}

/// A commit, or a mark, has no meaning in a bulk segment.
fn kind(f: &mut Fields<'_>, lane: Lane) -> Result<Kind> {
    match f.u8("kind")? {
        1 => Ok(Kind::Chunk),
        2 => Ok(Kind::Page),
        3 if lane == Lane::Log => Ok(Kind::Commit),
        4 if lane == Lane::Log => Ok(Kind::Mark),
        5 => Ok(Kind::Seal),
        6 => Ok(Kind::Footer),
        7 => Ok(Kind::Padding),
        _ => Err(Error::Value(f.place())),
    }
}

fn stored_bounds(kind: Kind, chunk_max: u32) -> std::ops::RangeInclusive<u32> {
    match kind {
        Kind::Chunk => 1..=chunk_max,
        Kind::Page => 56..=40_976,
        Kind::Commit => 44..=u32::MAX,
        Kind::Mark => 0..=0,
        Kind::Seal => 80..=80,
        Kind::Footer => 8..=u32::MAX,
        Kind::Padding => 0..=u32::MAX,
    }
}

fn raw_holds(codec: Codec, stored: u32, raw: u32, chunk_max: u32) -> bool {
    match codec {
        Codec::Raw => raw == stored,
        Codec::Zstd => raw > stored && raw <= chunk_max,
    }
}

fn id_holds(kind: Kind, lane: Lane, id: &Id32) -> bool {
    let zero = matches!(kind, Kind::Footer | Kind::Padding) || (kind == Kind::Seal && lane == Lane::Bulk);
    !zero || *id == [0; 32]
}

fn context_holds(kind: Kind, lane: Lane, context: u64) -> bool {
    match kind {
        Kind::Chunk | Kind::Page => (1..=u64::from(u32::MAX)).contains(&context),
        Kind::Commit | Kind::Mark => context != 0,
        Kind::Seal => (context != 0) == (lane == Lane::Log),
        Kind::Footer => true,
        Kind::Padding => context == 0,
    }
}

/// A valid frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Where it stands.
    pub offset: u64,
    /// Its header.
    pub header: Header,
    /// The header's bytes, which the chain hash covers.
    pub head: [u8; 64],
    /// Its payload, as it is stored.
    pub payload: Vec<u8>,
}

/// Why there is no valid frame at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// What is wrong.
    pub error: Error,
    /// The header, if that holds.
    pub header: Option<Header>,
}

/// Reads the header at `offset`; the frame must end at or before `limit`.
pub fn read_header(bytes: &dyn Bytes, offset: u64, limit: u64, rules: &Rules) -> Result<(Header, [u8; 64])> {
    let place = Place { structure: NAME, field: "magic", offset };
    let fits = |len: u64| offset.checked_add(len).is_some_and(|end| end <= limit && end <= bytes.len());
    if !fits(HEADER) {
        return Err(Error::Short(place));
    }
    let mut head = [0; 64];
    bytes.read(offset, &mut head)?;
    let header = Header::parse(&head, offset, rules)?;
    if !fits(header.frame_len()) {
        return Err(Error::Short(Place { field: "payload", offset: offset + HEADER, ..place }));
    }
    Ok((header, head))
}

/// Reads the frame at `offset`; it must end at or before `limit`.
pub fn read(bytes: &dyn Bytes, offset: u64, limit: u64, rules: &Rules) -> std::result::Result<Frame, Invalid> {
    let (header, head) = read_header(bytes, offset, limit, rules).map_err(|error| Invalid { error, header: None })?;
    let payload = payload(bytes, offset, &header, rules);
    let payload = payload.map_err(|error| Invalid { error, header: Some(header) })?;
    Ok(Frame { offset, header, head, payload })
}

fn payload(bytes: &dyn Bytes, offset: u64, header: &Header, rules: &Rules) -> Result<Vec<u8>> {
    let at = |field, offset| Place { structure: NAME, field, offset };
    let mut payload = read_vec(bytes, offset + HEADER, header.frame_len() - HEADER)?;
    if rules.crc(offset, &payload) != header.payload_checksum {
        return Err(Error::Checksum(at("payload checksum", offset + 60)));
    }
    let fill_at = offset + HEADER + u64::from(header.stored);
    let fill = payload.split_off(usize::try_from(header.stored).expect("a frame was just read into memory"));
    if fill.iter().any(|byte| *byte != 0) {
        return Err(Error::Reserved(at("fill", fill_at)));
    }
    if header.kind == Kind::Padding && payload.iter().any(|byte| *byte != 0) {
        return Err(Error::Value(at("payload", offset + HEADER)));
    }
    Ok(payload)
}

impl Frame {
    /// Where the next frame stands.
    pub fn end(&self) -> u64 {
        self.offset + self.header.frame_len()
    }

    /// The decoded payload.
    pub fn decode(&self) -> Result<Vec<u8>> {
        match self.header.codec {
            Codec::Raw => Ok(self.payload.clone()),
            Codec::Zstd => decode_zstd(&self.payload, self.header.raw).ok_or(Error::Codec(Place {
                structure: NAME,
                field: "payload",
                offset: self.offset + HEADER,
            })),
        }
    }
}

/// Decodes one zstd frame of exactly `raw` bytes that needs no larger window than the format allows.
fn decode_zstd(payload: &[u8], raw: u32) -> Option<Vec<u8>> {
    let one = zstd_safe::find_frame_compressed_size(payload).is_ok_and(|size| size == payload.len());
    if !one || window(payload)? > WINDOW_MAX {
        return None;
    }
    let raw = usize::try_from(raw).ok()?;
    let decoded = zstd::bulk::decompress(payload, raw).ok()?;
    (decoded.len() == raw).then_some(decoded)
}

/// The window that a zstd frame needs, from its frame header (RFC 8878, section 3.1.1.1).
fn window(payload: &[u8]) -> Option<u64> {
    let mut f = Fields::new("zstd", payload, 0);
    let magic = f.u32("magic").ok()?;
    let descriptor = f.u8("descriptor").ok()?;
    if magic != 0xfd2f_b528 {
        return None;
    }
    let single_segment = descriptor & 0x20 != 0;
    if !single_segment {
        let window = f.u8("window").ok()?;
        let base = 1u64 << (10 + (window >> 3));
        return Some(base + base / 8 * u64::from(window & 7));
    }
    f.take("dictionary", [0, 1, 2, 4].into_iter().nth(usize::from(descriptor & 3))?).ok()?;
    match descriptor >> 6 {
        0 => f.u8("content size").ok().map(u64::from),
        1 => f.u16("content size").ok().map(|size| u64::from(size) + 256),
        2 => f.u32("content size").ok().map(u64::from),
        _ => f.u64("content size").ok(),
    }
}
