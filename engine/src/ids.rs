//! The words of the store as types: ids, digests, LSNs and places. They know nothing of disks, keys or rules.

use std::fmt;

/// Defines a byte-string id: fixed length, ordered by its bytes, shown as base32 (16 bytes) or hex (32 bytes).
macro_rules! bytes_id {
    ($(#[$doc:meta])* $name:ident, $len:literal, $encoding:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub [u8; $len]);

        impl $name {
            /// The id of zeros, which stands for "none".
            pub const ZERO: Self = Self([0; $len]);

            /// The bytes.
            pub const fn as_bytes(&self) -> &[u8; $len] {
                &self.0
            }

            /// True for the id of zeros.
            pub fn is_zero(&self) -> bool {
                self.0 == [0; $len]
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&$encoding(&self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({self})", stringify!($name))
            }
        }
    };
}

bytes_id!(/// Names a store for life.
    StoreUuid, 16, hex);
bytes_id!(/// A segment's random salt, new each time a file becomes a segment.
    Epoch, 16, hex);
bytes_id!(/// An artifact's random id.
    ArtifactId, 16, base32);
bytes_id!(/// An upload's random id.
    UploadId, 16, base32);
bytes_id!(/// The keyed hash that stands for an id which a caller gave.
    ScopeHash, 16, hex);
bytes_id!(/// A run's random id.
    RunId, 16, base32);
bytes_id!(/// The keyed hash of an op id.
    OpHash, 16, hex);
bytes_id!(/// The keyed hash of what two puts have in common that are one: origin, name, type, content.
    IdentityHash, 16, hex);
bytes_id!(/// The keyed BLAKE3 of a chunk or of a recipe page.
    ChunkId, 32, hex);
bytes_id!(/// The keyed BLAKE3 of a blob's SHA-256 and size: the blob's key in the catalog.
    BlobKey, 32, hex);
bytes_id!(/// The hash over all commits so far.
    ChainHash, 32, hex);
bytes_id!(/// What a blob is called outside.
    Sha256, 32, hex);

/// Text of a 16-byte id: RFC 4648 base32, lower case, without padding; 26 characters.
fn base32(bytes: &[u8]) -> String {
    data_encoding::BASE32_NOPAD.encode(bytes).to_ascii_lowercase()
}

fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}

/// Reads the text of a 16-byte id. `None` for a wrong length, upper case, or spare bits that are not zero: one id has one text.
fn parse_base32(text: &str) -> Option<[u8; 16]> {
    if text.len() != 26 || text.bytes().any(|b| b.is_ascii_uppercase()) {
        return None;
    }
    data_encoding::BASE32_NOPAD.decode(text.to_ascii_uppercase().as_bytes()).ok()?.try_into().ok()
}

impl ArtifactId {
    /// Reads an id as [`Display`](fmt::Display) writes it.
    pub fn parse(text: &str) -> Option<Self> {
        parse_base32(text).map(Self)
    }
}

impl RunId {
    /// Reads an id as [`Display`](fmt::Display) writes it.
    pub fn parse(text: &str) -> Option<Self> {
        parse_base32(text).map(Self)
    }
}

impl UploadId {
    /// Reads an id as [`Display`](fmt::Display) writes it.
    pub fn parse(text: &str) -> Option<Self> {
        parse_base32(text).map(Self)
    }
}

/// The random part of a run token. It is a fence and not a credential, and is not printed all the same.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TokenBits(pub [u8; 16]);

impl fmt::Debug for TokenBits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenBits(..)")
    }
}

impl Sha256 {
    /// Reads 64 hexadecimal digits of either case.
    pub fn parse(text: &str) -> Option<Self> {
        data_encoding::HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok()?.try_into().ok().map(Self)
    }
}

/// Number of a segment or reserve file; one counter, none used twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct FileId(pub u64);

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Number of a tenant, 1 or more.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct TenantNumber(pub u32);

/// Position in the store's history: incarnation in the high 16 bits, sequence in the low 48. Zero means none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Lsn(pub u64);

impl Lsn {
    /// No LSN.
    pub const NONE: Self = Self(0);
    /// The first LSN of a new store.
    pub const FIRST: Self = Self((1 << 48) | 1);

    /// The life of the store that it belongs to.
    pub const fn incarnation(self) -> u16 {
        (self.0 >> 48) as u16
    }

    /// The LSN `count` further on. The sequence has 48 bits; a store that made a million commits a second would need nine years.
    #[must_use]
    pub const fn plus(self, count: u64) -> Self {
        Self(self.0 + count)
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0 >> 48, self.0 & ((1 << 48) - 1))
    }
}

/// Milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Time(pub u64);

/// Where a frame stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Location {
    /// The segment.
    pub segment: FileId,
    /// Offset of the frame in its file.
    pub offset: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_artifact_id_has_one_text() {
        let id = ArtifactId([0xa5; 16]);
        let text = id.to_string();
        assert_eq!(text.len(), 26);
        assert_eq!(ArtifactId::parse(&text), Some(id));
        assert_eq!(ArtifactId::parse(&text.to_ascii_uppercase()), None);
        // The last character carries 3 bits of the id; its two spare bits must be zero.
        let last = text.chars().last().expect("26 characters");
        let spare = char::from(u8::try_from(u32::from(last) + 1).expect("ascii"));
        assert_eq!(ArtifactId::parse(&format!("{}{spare}", &text[..25])), None);
        assert_eq!(ArtifactId::parse("short"), None);
    }
}
