//! Frames of a segment one behind the other, and the next valid header behind damage.

use crate::{
    disk::{self, File, Name},
    error::{Error, Result},
    format::frame::{FrameHeader, FrameSalt, HEADER_LEN, MAGIC},
    limits::FRAME_ALIGN,
};

const WINDOW: usize = 256 << 10;

/// Reads headers through a window of the file: a frame longer than the window costs one more read, payloads are skipped.
pub struct Scanner<'a> {
    file: &'a dyn File,
    name: &'a Name,
    salt: FrameSalt,
    window: Vec<u8>,
    start: u64,
    filled: usize,
}

impl<'a> Scanner<'a> {
    /// Scans a file.
    pub fn new(file: &'a dyn File, name: &'a Name, salt: FrameSalt) -> Self {
        Self { file, name, salt, window: Vec::new(), start: 0, filled: 0 }
    }

    /// The valid header at an offset, with its bytes; `None` if there is none, also behind the end of the file.
    pub fn header_at(&mut self, offset: u64) -> Result<Option<(FrameHeader, [u8; HEADER_LEN])>> {
        let salt = self.salt;
        let Some(bytes) = self.bytes_at(offset)? else { return Ok(None) };
        Ok(FrameHeader::decode(&bytes, &salt, offset).ok().map(|header| (header, bytes)))
    }

    /// The first offset from `from` on, in steps of 64 and below `end`, at which a valid header stands.
    pub fn next_valid(&mut self, from: u64, end: u64) -> Result<Option<u64>> {
        let mut offset = from.next_multiple_of(FRAME_ALIGN);
        while offset < end {
            match self.bytes_at(offset)? {
                None => return Ok(None),
                Some(bytes) if bytes[..4] == MAGIC && FrameHeader::decode(&bytes, &self.salt, offset).is_ok() => {
                    return Ok(Some(offset));
                }
                Some(_) => offset += FRAME_ALIGN,
            }
        }
        Ok(None)
    }

    fn bytes_at(&mut self, offset: u64) -> Result<Option<[u8; HEADER_LEN]>> {
        let end = offset.saturating_add(HEADER_LEN as u64);
        if offset < self.start || end > self.start + self.filled as u64 {
            self.start = offset;
            if self.window.is_empty() {
                // A short file needs no more than itself.
                let len = disk::retry(|| self.file.len()).map_err(|e| Error::io(e, self.name, "read a length"))?;
                self.window.resize(usize::try_from(len).unwrap_or(WINDOW).clamp(HEADER_LEN, WINDOW), 0);
            }
            self.filled = disk::read_full(self.file, &mut self.window, offset)
                .map_err(|e| Error::io(e, self.name, "read frame headers"))?;
        }
        let at = usize::try_from(offset - self.start).expect("within the window");
        Ok(self.window[..self.filled].get(at..at + HEADER_LEN).map(|b| b.try_into().expect("64 bytes")))
    }
}
