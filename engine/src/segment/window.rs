//! Stored frames one after another, for whoever compares them with what a stream brings: read ahead, into memory that is used again.
//!
//! A window knows neither why a chunk is wanted nor whether its bytes are those of its id.

use super::{SegmentFile, Segments};
use crate::{
    codec::{self, Codec},
    disk,
    error::{Error, Result},
    format::{
        frame::{FrameHeader, HEADER_LEN},
        value::ChunkValue,
    },
    ids::{FileId, Location},
    limits::FRAME_LEN_MAX,
    sync::Arc,
};

/// Bytes that are read at a time: a stream that was stored before lies there in its order.
const AHEAD: usize = 1 << 20;

/// Bytes of a segment as they stood when they were read.
#[derive(Default)]
pub struct Window {
    file: Option<(FileId, Arc<SegmentFile>)>,
    bytes: Vec<u8>,
    /// The bytes that were read: where they begin in the file, and how many there are.
    start: u64,
    len: usize,
    decoded: Vec<u8>,
}

impl Window {
    /// The decoded bytes of a chunk or page, checked as [`Segments::read`] checks them; their digest is the caller's to check.
    pub fn read(&mut self, segments: &Segments, chunk: &ChunkValue) -> Result<&[u8]> {
        let Location { segment, offset } = chunk.location;
        if self.file.as_ref().is_none_or(|(id, _)| *id != segment) {
            self.file = Some((segment, segments.file(segment)?));
            self.len = 0;
        }
        let len = usize::try_from(chunk.frame_len().min(FRAME_LEN_MAX)).expect("a frame is at most 16 MiB");
        // What was read before may have been written since.
        let range = match self.find(offset, len).filter(|start| self.check(chunk, *start, len).is_ok()) {
            Some(start) => start,
            None => {
                self.load(offset, len)?;
                self.check(chunk, 0, len)?;
                0
            }
        };
        let payload = range + HEADER_LEN..range + HEADER_LEN + chunk.stored as usize;
        match chunk.codec {
            Codec::Raw => Ok(&self.bytes[payload]),
            Codec::Zstd => {
                let decoded = codec::decompress(&self.bytes[payload], chunk.raw as usize);
                self.decoded = decoded.ok_or_else(|| self.corrupt(offset, "a payload that does not decode"))?;
                Ok(&self.decoded)
            }
        }
    }

    /// Where a range of the file stands in the window.
    fn find(&self, offset: u64, len: usize) -> Option<usize> {
        let start = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        (start.checked_add(len)? <= self.len).then_some(start)
    }

    /// Moves the window to begin at an offset.
    fn load(&mut self, offset: u64, len: usize) -> Result<()> {
        let (_, segment) = self.file.as_ref().expect("a file was chosen");
        let wanted = len.max(AHEAD);
        if self.bytes.len() < wanted {
            self.bytes.resize(wanted, 0);
        }
        (self.start, self.len) = (offset, 0);
        let read = disk::read_full(&*segment.file, &mut self.bytes[..wanted], offset);
        self.len = read.map_err(|e| Error::io(e, &segment.name, "read a frame"))?;
        Ok(())
    }

    /// Checks the frame that stands at `start` in the window.
    fn check(&self, chunk: &ChunkValue, start: usize, len: usize) -> Result<()> {
        let offset = chunk.location.offset;
        let (_, segment) = self.file.as_ref().expect("a file was chosen");
        let frame = self.bytes[..self.len].get(start..start + len);
        let frame = frame.and_then(|frame| frame.split_first_chunk::<HEADER_LEN>());
        let (header, body) = frame.ok_or_else(|| self.corrupt(offset, "a frame that the file ends in"))?;
        let header =
            FrameHeader::decode(header, &segment.salt, offset).map_err(|bad| self.corrupt(offset, bad.what))?;
        if header.stored != chunk.stored || !header.payload_is_good(body, &segment.salt, offset) {
            return Err(self.corrupt(offset, "frame payload checksum"));
        }
        if (header.kind, header.raw, header.codec) != (chunk.kind, chunk.raw, chunk.codec) {
            return Err(self.corrupt(offset, "another frame than the catalog names"));
        }
        Ok(())
    }

    fn corrupt(&self, offset: u64, what: &'static str) -> Error {
        match &self.file {
            Some((_, segment)) => Error::corrupt(&segment.name, offset, what),
            None => Error::new(crate::error::Kind::Corrupt, what),
        }
    }
}
