//! Reads fields one behind the other out of a byte string, and remembers where each began.
//!
//! It does not know any structure; the structures do not index bytes.

use crate::error::{Error, Place, Result};

pub(crate) struct Fields<'a> {
    rest: &'a [u8],
    structure: &'static str,
    field: &'static str,
    start: u64,
    next: u64,
}

impl<'a> Fields<'a> {
    /// Fields of `bytes`, which begin at `base` of their file.
    pub(crate) fn new(structure: &'static str, bytes: &'a [u8], base: u64) -> Self {
        Self { rest: bytes, structure, field: "start", start: base, next: base }
    }

    /// Where the field that was read last is.
    pub(crate) fn place(&self) -> Place {
        Place { structure: self.structure, field: self.field, offset: self.start }
    }

    /// Offset behind the field that was read last.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Bytes that are left.
    pub(crate) fn left(&self) -> usize {
        self.rest.len()
    }

    pub(crate) fn take(&mut self, field: &'static str, len: usize) -> Result<&'a [u8]> {
        self.field = field;
        self.start = self.next;
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(Error::Short(self.place()))?;
        self.rest = rest;
        self.next += len as u64;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(field, N)?);
        Ok(array)
    }

    pub(crate) fn u8(&mut self, field: &'static str) -> Result<u8> {
        Ok(u8::from_le_bytes(self.array(field)?))
    }

    pub(crate) fn u16(&mut self, field: &'static str) -> Result<u16> {
        Ok(u16::from_le_bytes(self.array(field)?))
    }

    pub(crate) fn u32(&mut self, field: &'static str) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array(field)?))
    }

    pub(crate) fn u64(&mut self, field: &'static str) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array(field)?))
    }

    /// A `u32` of an ordered key: most significant byte first.
    pub(crate) fn ordered_u32(&mut self, field: &'static str) -> Result<u32> {
        Ok(self.take(field, 4)?.iter().fold(0, |number, byte| (number << 8) | u32::from(*byte)))
    }

    /// A `u64` of an ordered key: most significant byte first.
    pub(crate) fn ordered_u64(&mut self, field: &'static str) -> Result<u64> {
        Ok(self.take(field, 8)?.iter().fold(0, |number, byte| (number << 8) | u64::from(*byte)))
    }

    pub(crate) fn reserved(&mut self, len: usize) -> Result<()> {
        let bytes = self.take("reserved", len)?;
        // Without an end in the middle: most of what a header reserves is kilobytes, and so it is looked at many bytes at once.
        self.check(bytes.iter().fold(0, |all, byte| all | byte) == 0, Error::Reserved)
    }

    /// Fails with `error` at the field that was read last, unless `holds`.
    pub(crate) fn check(&self, holds: bool, error: fn(Place) -> Error) -> Result<()> {
        if holds { Ok(()) } else { Err(error(self.place())) }
    }

    /// Fails if bytes are left.
    pub(crate) fn end(&mut self) -> Result<()> {
        if self.rest.is_empty() {
            return Ok(());
        }
        self.field = "end";
        self.start = self.next;
        Err(Error::Trailing(self.place()))
    }
}

/// CRC-32 of `salt` and `bytes`.
pub(crate) fn crc(salt: &[&[u8]], bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for part in salt {
        hasher.update(part);
    }
    hasher.update(bytes);
    hasher.finalize()
}
