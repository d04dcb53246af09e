//! What is wrong with bytes, and where.
//!
//! An error names a structure, a field and an offset. It never carries bytes that it found: they may be a person's.

use std::fmt;
use std::io;

/// A field of a structure, and where it begins in the bytes that were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The structure, in the words of `FORMAT.md`.
    pub structure: &'static str,
    /// Its field.
    pub field: &'static str,
    /// Offset of the field: in its file where the structure was read from one, else from the start of the structure.
    pub offset: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}, at {}", self.structure, self.field, self.offset)
    }
}

/// Why bytes are not what the format says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes end before the field does.
    #[error("{0}: the bytes end before it does")]
    Short(Place),
    /// Bytes stand behind the last field.
    #[error("{0}: bytes are left over")]
    Trailing(Place),
    /// The field has a value that the format does not list.
    #[error("{0}: not a value of this field")]
    Value(Place),
    /// A reserved field is not zero.
    #[error("{0}: reserved, and not zero")]
    Reserved(Place),
    /// A length or count is past its bound.
    #[error("{0}: past its bound")]
    Bound(Place),
    /// The field contradicts another field, or what it describes.
    #[error("{0}: contradicts what it describes")]
    Mismatch(Place),
    /// Entries are out of order, or one stands twice.
    #[error("{0}: out of order, or there twice")]
    Order(Place),
    /// Damage: a wrong checksum.
    #[error("{0}: wrong checksum")]
    Checksum(Place),
    /// The bytes are not those that the identity names.
    #[error("{0}: other bytes than the id names")]
    Identity(Place),
    /// Not a zstd frame that the format allows.
    #[error("{0}: not a zstd frame of this format")]
    Codec(Place),
    /// A newer version wrote it. It is left untouched.
    #[error("{0}: written by a newer version")]
    Newer(Place),
    /// The bytes could not be read.
    #[error("{0}: not readable: {1}")]
    Io(Place, io::ErrorKind),
}

impl Error {
    /// Where it is.
    pub fn place(&self) -> Place {
        match self {
            Self::Short(place)
            | Self::Trailing(place)
            | Self::Value(place)
            | Self::Reserved(place)
            | Self::Bound(place)
            | Self::Mismatch(place)
            | Self::Order(place)
            | Self::Checksum(place)
            | Self::Identity(place)
            | Self::Codec(place)
            | Self::Newer(place)
            | Self::Io(place, _) => *place,
        }
    }

    /// Whether a newer version wrote what was read.
    pub fn is_newer(&self) -> bool {
        matches!(self, Self::Newer(_))
    }
}

/// The result of reading.
pub type Result<T> = std::result::Result<T, Error>;
