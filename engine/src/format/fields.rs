//! Reading and writing of fields: at chained offsets of fixed structures, and in sequence for those that vary.

use super::{Bad, Decoded};

/// Makes a module `at` of offsets, each chained from the field before, and asserts where the last one ends.
macro_rules! layout {
    ($end:literal: $($name:ident $size:literal),* $(,)?) => {
        mod at {
            $crate::format::fields::layout!(@ 0; $($name $size),*);
        }
        const _: () = assert!(at::LEN == $end);
    };
    (@ $at:expr; $name:ident $size:literal $(, $rest:ident $rest_size:literal)*) => {
        #[allow(dead_code, reason = "reserved fields have a place and no reader")]
        pub(super) const $name: usize = $at;
        $crate::format::fields::layout!(@ $name + $size; $($rest $rest_size),*);
    };
    (@ $at:expr;) => {
        pub(super) const LEN: usize = $at;
    };
}
pub(crate) use layout;

/// A fixed structure. Offsets come from `layout!`, so a field outside of it is a bug and not bad input.
pub struct Fixed<'a>(pub &'a [u8]);

impl<'a> Fixed<'a> {
    /// N bytes at an offset.
    pub fn bytes<const N: usize>(&self, at: usize) -> [u8; N] {
        self.slice(at, N).try_into().expect("N bytes were taken")
    }

    /// A range.
    pub fn slice(&self, at: usize, len: usize) -> &'a [u8] {
        self.0.get(at..at + len).expect("a field lies within its structure")
    }

    /// A number.
    pub fn u8(&self, at: usize) -> u8 {
        u8::from_le_bytes(self.bytes(at))
    }

    /// A number.
    pub fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.bytes(at))
    }

    /// A number.
    pub fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.bytes(at))
    }

    /// A number.
    pub fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.bytes(at))
    }

    /// Refuses reserved bytes that are not zero.
    pub fn reserved(&self, at: usize, len: usize, what: &'static str) -> Decoded<()> {
        if is_zero(self.slice(at, len)) { Ok(()) } else { Err(Bad::damaged(what)) }
    }
}

/// True if every byte is zero. Compares with zeros, which is many bytes a step, where a loop would look at each.
pub fn is_zero(bytes: &[u8]) -> bool {
    const ZEROS: [u8; 4096] = [0; 4096];
    bytes.chunks(ZEROS.len()).all(|part| ZEROS.get(..part.len()) == Some(part))
}

/// Writes a field of a fixed structure.
pub fn put(structure: &mut [u8], at: usize, bytes: &[u8]) {
    structure.get_mut(at..at + bytes.len()).expect("a field lies within its structure").copy_from_slice(bytes);
}

/// Reads in sequence and never past the end.
pub struct Cursor<'a> {
    rest: &'a [u8],
    what: &'static str,
}

impl<'a> Cursor<'a> {
    /// Starts at the front; `what` names the structure in errors.
    pub const fn new(bytes: &'a [u8], what: &'static str) -> Self {
        Self { rest: bytes, what }
    }

    /// The next `len` bytes.
    pub fn take(&mut self, len: usize) -> Decoded<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(Bad::damaged(self.what))?;
        self.rest = rest;
        Ok(taken)
    }

    /// The next N bytes.
    pub fn bytes<const N: usize>(&mut self) -> Decoded<[u8; N]> {
        Ok(self.take(N)?.try_into().expect("N bytes were taken"))
    }

    /// A number.
    pub fn u8(&mut self) -> Decoded<u8> {
        self.bytes().map(u8::from_le_bytes)
    }

    /// A number.
    pub fn u16(&mut self) -> Decoded<u16> {
        self.bytes().map(u16::from_le_bytes)
    }

    /// A number.
    pub fn u32(&mut self) -> Decoded<u32> {
        self.bytes().map(u32::from_le_bytes)
    }

    /// A number.
    pub fn u64(&mut self) -> Decoded<u64> {
        self.bytes().map(u64::from_le_bytes)
    }

    /// Refuses reserved bytes that are not zero.
    pub fn reserved(&mut self, len: usize) -> Decoded<()> {
        if is_zero(self.take(len)?) { Ok(()) } else { Err(Bad::damaged(self.what)) }
    }

    /// Text of a given length.
    pub fn text(&mut self, len: usize) -> Decoded<String> {
        let bytes = self.take(len)?;
        std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| Bad::damaged(self.what))
    }

    /// How much is left.
    pub const fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Refuses bytes behind the end.
    pub const fn end(&self) -> Decoded<()> {
        if self.rest.is_empty() { Ok(()) } else { Err(Bad::damaged(self.what)) }
    }
}
