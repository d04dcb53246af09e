//! Stored frames one after another, for whoever compares them with what a stream brings: read ahead, into memory that is used again.
//!
//! A window knows neither why a chunk is wanted nor whether its bytes are those of its id.

use std::ops::Range;

use super::{SegmentFile, Segments};
use crate::{
    codec::{self, Codec},
    disk::{self, AlignedBuffer, File},
    error::{Error, Result},
    format::{
        frame::{FrameHeader, HEADER_LEN},
        value::ChunkValue,
    },
    ids::{FileId, Location},
    limits::{BLOCK, BLOCK_LEN, FRAME_LEN_MAX},
    sync::{Arc, mpsc},
};

/// Bytes that are read at a time: a stream that was stored before lies there in its order.
const AHEAD: usize = 1 << 20;
/// Room before them for the frame that begins in one read and ends in the next.
const HEAD: usize = 1 << 20;

/// The next bytes of a segment, to be read by whoever has nothing else to do.
pub struct Fetch {
    file: Arc<dyn File>,
    /// A multiple of 4,096.
    at: u64,
    bytes: AlignedBuffer,
    reply: mpsc::Sender<Fetched>,
}

/// What came of it.
struct Fetched {
    bytes: AlignedBuffer,
    len: usize,
}

impl Fetch {
    /// Reads. What cannot be read now is read again, and reported, when it is needed.
    pub fn run(mut self) {
        let bytes = &mut self.bytes.as_mut_slice()[HEAD..HEAD + AHEAD];
        let len = disk::read_full(&*self.file, bytes, self.at).unwrap_or(0);
        // The stream may have ended meanwhile.
        let _ = self.reply.send(Fetched { bytes: self.bytes, len });
    }
}

/// Takes a fetch to where it is run. By default there is no such place, and each frame is read when it is asked for.
pub trait Ahead {
    /// True if a fetch is run by another thread.
    fn is_apart(&self) -> bool {
        false
    }

    /// Has it run, or drops it.
    fn fetch(&mut self, _: Fetch) {}
}

/// A fetch under way.
struct Pending {
    at: u64,
    reply: mpsc::Receiver<Fetched>,
}

/// Bytes of a segment as they stood when they were read.
#[derive(Default)]
pub struct Window {
    file: Option<(FileId, Arc<SegmentFile>)>,
    /// The same, for reads past the page cache, if it is read ahead.
    direct: Option<Arc<dyn File>>,
    bytes: AlignedBuffer,
    /// The bytes that were read, within the buffer, and where they begin in the file.
    read: Range<usize>,
    start: u64,
    pending: Option<Pending>,
    /// Memory for the next fetch.
    other: AlignedBuffer,
    decoded: Vec<u8>,
}

impl Window {
    /// The decoded bytes of a chunk or page, checked as [`Segments::read`] checks them; their digest is the caller's to check.
    pub fn read(&mut self, segments: &Segments, chunk: &ChunkValue, ahead: &mut dyn Ahead) -> Result<&[u8]> {
        let Location { segment, offset } = chunk.location;
        if self.file.as_ref().is_none_or(|(id, _)| *id != segment) {
            self.file = Some((segment, segments.file(segment)?));
            // Past the page cache: what is compared once is not wanted there, and the copy out of it costs more than the comparison.
            self.direct = if ahead.is_apart() { Some(segments.direct(segment)?.into()) } else { None };
            self.read = 0..0;
            self.pending = None;
        }
        let len = usize::try_from(chunk.frame_len().min(FRAME_LEN_MAX)).expect("a frame is at most 16 MiB");
        // What was read before may have been written since.
        let mut found = self.find(offset, len);
        if found.is_none()
            && let Some(file) = self.direct.clone()
        {
            self.advance(&file, offset, ahead);
            found = self.find(offset, len);
        }
        let start = if let Some(start) = found.filter(|start| self.check(chunk, *start, len).is_ok()) {
            start
        } else {
            let start = self.load(offset, len)?;
            self.check(chunk, start, len)?;
            start
        };
        let payload = start + HEADER_LEN..start + HEADER_LEN + chunk.stored as usize;
        match chunk.codec {
            Codec::Raw => Ok(&self.bytes.as_slice()[payload]),
            Codec::Zstd => {
                let decoded = codec::decompress(&self.bytes.as_slice()[payload], chunk.raw as usize);
                self.decoded = decoded.ok_or_else(|| self.corrupt(offset, "a payload that does not decode"))?;
                Ok(&self.decoded)
            }
        }
    }

    /// Where a range of the file stands in the window.
    fn find(&self, offset: u64, len: usize) -> Option<usize> {
        let start = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        (start.checked_add(len)? <= self.read.len()).then_some(self.read.start + start)
    }

    /// Goes on to what was fetched, if a frame at `offset` goes on there, and has the bytes behind it fetched.
    fn advance(&mut self, file: &Arc<dyn File>, offset: u64, ahead: &mut dyn Ahead) {
        let end = self.start + self.read.len() as u64;
        let rest = match end.checked_sub(offset).and_then(|rest| usize::try_from(rest).ok()) {
            Some(rest) if !self.read.is_empty() && rest <= self.read.len().min(HEAD) => rest,
            _ => {
                self.pending = None;
                return;
            }
        };
        let fetched = self.pending.take().filter(|pending| pending.at == end).and_then(|p| p.reply.recv().ok());
        let mut next = end;
        if let Some(Fetched { mut bytes, len }) = fetched {
            let begun = &self.bytes.as_slice()[self.read.end - rest..self.read.end];
            bytes.as_mut_slice()[HEAD - rest..HEAD].copy_from_slice(begun);
            self.other = std::mem::replace(&mut self.bytes, bytes);
            (self.read, self.start) = (HEAD - rest..HEAD + len, offset);
            next = end + len as u64;
            if len < AHEAD {
                return;
            }
        } else {
            // The first read behind the last one; it is loaded by whoever asked, from `offset` on.
            next = next.max(offset / BLOCK * BLOCK + AHEAD as u64);
        }
        let mut bytes = std::mem::take(&mut self.other);
        make_room(&mut bytes, HEAD + AHEAD);
        let (reply, pending) = mpsc::channel();
        ahead.fetch(Fetch { file: Arc::clone(file), at: next, bytes, reply });
        self.pending = Some(Pending { at: next, reply: pending });
    }

    /// Moves the window to a frame, and to what is likely to be wanted next if that is wanted at all. Gives the frame's place in it.
    fn load(&mut self, offset: u64, len: usize) -> Result<usize> {
        let (_, segment) = self.file.as_ref().expect("a file was chosen");
        let (file, head, before, wanted) = match &self.direct {
            None => (&*segment.file, 0, 0, len),
            Some(direct) => {
                let before = usize::try_from(offset % BLOCK).expect("less than a block");
                (&**direct, HEAD, before, (before + len).max(AHEAD).next_multiple_of(BLOCK_LEN))
            }
        };
        make_room(&mut self.bytes, head + wanted);
        (self.start, self.read) = (offset - before as u64, 0..0);
        let read = disk::read_full(file, &mut self.bytes.as_mut_slice()[head..head + wanted], self.start);
        let len = read.map_err(|e| Error::io(e, &segment.name, "read a frame"))?;
        self.read = head..head + len;
        Ok(head + before)
    }

    /// Checks the frame that stands at `start` in the window.
    fn check(&self, chunk: &ChunkValue, start: usize, len: usize) -> Result<()> {
        let offset = chunk.location.offset;
        let (_, segment) = self.file.as_ref().expect("a file was chosen");
        let frame = self.bytes.as_slice()[..self.read.end].get(start..start + len);
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

/// Makes a buffer at least this long.
fn make_room(buffer: &mut AlignedBuffer, len: usize) {
    if buffer.len() < len {
        *buffer = AlignedBuffer::zeroed_on_large_pages(len.next_power_of_two().max(BLOCK_LEN));
    }
}
