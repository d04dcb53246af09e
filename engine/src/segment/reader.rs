//! One frame from its place, checked.

use crate::{
    codec::{self, Codec},
    disk::{self, File, Name},
    error::{Error, Result},
    format::frame::{FrameHeader, FrameKind, FrameSalt, HEADER_LEN, frame_len},
    limits::FRAME_LEN_MAX,
};

/// A frame that was read and whose header and payload are good.
pub struct Frame {
    /// Its header.
    pub header: FrameHeader,
    bytes: Vec<u8>,
}

impl Frame {
    /// The payload as it stands.
    pub fn payload(&self) -> &[u8] {
        &self.bytes[HEADER_LEN..][..self.header.stored as usize]
    }

    /// The payload decoded.
    pub fn into_raw(mut self) -> Option<Vec<u8>> {
        match self.header.codec {
            Codec::Raw => {
                self.bytes.truncate(HEADER_LEN + self.header.stored as usize);
                self.bytes.drain(..HEADER_LEN);
                Some(self.bytes)
            }
            Codec::Zstd => codec::decompress(self.payload(), self.header.raw as usize),
        }
    }
}

/// Reads the header at an offset. `Ok(None)`: no valid header stands there.
pub fn read_header(file: &dyn File, name: &Name, salt: &FrameSalt, offset: u64) -> Result<Option<FrameHeader>> {
    let mut bytes = [0; HEADER_LEN];
    let read = disk::read_full(file, &mut bytes, offset).map_err(|e| Error::io(e, name, "read a frame header"))?;
    if read < HEADER_LEN {
        return Ok(None);
    }
    Ok(FrameHeader::decode(&bytes, salt, offset).ok())
}

/// Header and payload of the frame that stands at the start of `bytes`, if its payload has `stored` bytes as the catalog says. Anything
/// else there is damage. `bytes` is what could be read of it, which may be short.
pub fn check_known<'a>(
    bytes: &'a [u8],
    name: &Name,
    salt: &FrameSalt,
    offset: u64,
    stored: u32,
) -> Result<(FrameHeader, &'a [u8])> {
    let corrupt = |what| Error::corrupt(name, offset, what);
    let (header, body) = bytes.split_first_chunk::<HEADER_LEN>().ok_or_else(|| corrupt("frame payload checksum"))?;
    let header = FrameHeader::decode(header, salt, offset).map_err(|bad| corrupt(bad.what))?;
    if header.stored != stored || !header.payload_is_good(body, salt, offset) {
        return Err(corrupt("frame payload checksum"));
    }
    Ok((header, &body[..stored as usize]))
}

/// Reads the frame at an offset in one read, whose payload has `stored` bytes as the catalog says. Anything else there is damage.
pub fn read_known(file: &dyn File, name: &Name, salt: &FrameSalt, offset: u64, stored: u32) -> Result<Frame> {
    let len = frame_len(u64::from(stored));
    if len > FRAME_LEN_MAX {
        return Err(Error::corrupt(name, offset, "a frame longer than a frame may be"));
    }
    let mut bytes = vec![0; usize::try_from(len).expect("a frame is at most 16 MiB")];
    let read = disk::read_full(file, &mut bytes, offset).map_err(|e| Error::io(e, name, "read a frame"))?;
    bytes.truncate(read);
    let (header, _) = check_known(&bytes, name, salt, offset, stored)?;
    Ok(Frame { header, bytes })
}

/// Reads the frame at an offset. `Ok(None)`: no valid frame stands there.
pub fn read_frame(file: &dyn File, name: &Name, salt: &FrameSalt, offset: u64) -> Result<Option<Frame>> {
    let Some(header) = read_header(file, name, salt, offset)? else { return Ok(None) };
    match read_known(file, name, salt, offset, header.stored) {
        Ok(frame) => Ok(Some(frame)),
        Err(e) if e.kind() == crate::error::Kind::Corrupt => Ok(None),
        Err(e) => Err(e),
    }
}

/// True for the kinds that a footer lists.
pub const fn is_content(kind: FrameKind) -> bool {
    matches!(kind, FrameKind::Chunk | FrameKind::Page)
}
