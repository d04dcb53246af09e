//! Random access to the bytes of a file.
//!
//! It does not know what the bytes mean, nor where a file comes from.

use crate::error::{Error, Place, Result};
use std::cell::RefCell;
use std::io::{self, Read, Seek, SeekFrom};

/// A file that does not change while it is read.
pub trait Bytes {
    /// Its length.
    fn len(&self) -> u64;

    /// Fills `buf` from `offset` on, or fails.
    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()>;

    /// Whether it has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn io_error(offset: u64, kind: io::ErrorKind) -> Error {
    Error::Io(Place { structure: "file", field: "bytes", offset }, kind)
}

impl Bytes for &[u8] {
    fn len(&self) -> u64 {
        <[u8]>::len(self) as u64
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let start = usize::try_from(offset).map_err(|_| io_error(offset, io::ErrorKind::UnexpectedEof))?;
        let found = start.checked_add(buf.len()).and_then(|end| self.get(start..end));
        buf.copy_from_slice(found.ok_or_else(|| io_error(offset, io::ErrorKind::UnexpectedEof))?);
        Ok(())
    }
}

/// [`Bytes`] of something that reads and seeks, for example a file.
#[derive(Debug)]
pub struct ReadSeek<F> {
    file: RefCell<F>,
    len: u64,
}

impl<F: Read + Seek> ReadSeek<F> {
    /// Takes the length by seeking to the end.
    pub fn new(mut file: F) -> Result<Self> {
        let len = file.seek(SeekFrom::End(0)).map_err(|error| io_error(0, error.kind()))?;
        Ok(Self { file: RefCell::new(file), len })
    }
}

impl<F: Read + Seek> Bytes for ReadSeek<F> {
    fn len(&self) -> u64 {
        self.len
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let mut file = self.file.borrow_mut();
        file.seek(SeekFrom::Start(offset))
            .and_then(|_| file.read_exact(buf))
            .map_err(|error| io_error(offset, error.kind()))
    }
}

/// Reads `len` bytes at `offset`. Nothing is allocated before it is known that they are there.
pub fn read_vec(bytes: &dyn Bytes, offset: u64, len: u64) -> Result<Vec<u8>> {
    let there = offset.checked_add(len).is_some_and(|end| end <= bytes.len());
    let size = usize::try_from(len).ok().filter(|_| there);
    let mut buf = vec![0; size.ok_or_else(|| io_error(offset, io::ErrorKind::UnexpectedEof))?];
    bytes.read(offset, &mut buf)?;
    Ok(buf)
}

/// The offset of the first byte in `from..to` that is not zero.
pub fn first_nonzero(bytes: &dyn Bytes, from: u64, to: u64) -> Result<Option<u64>> {
    let mut buf = vec![0; 64 * 1024];
    let mut at = from;
    while at < to {
        let size = usize::try_from(to - at).unwrap_or(usize::MAX).min(buf.len());
        let (part, _) = buf.split_at_mut(size);
        bytes.read(at, part)?;
        if let Some(index) = part.iter().position(|byte| *byte != 0) {
            return Ok(Some(at + index as u64));
        }
        at += size as u64;
    }
    Ok(None)
}
