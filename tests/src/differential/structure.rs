//! The structures of the format as hostile inputs: where a checksum stands in each, and how to make it right.
//!
//! Without right checksums no input gets behind the first check.

use holdfast_format_spec::{Id16, frame::Rules, limits, segment::Lane};

/// A structure that has a decoder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Structure {
    /// A copy of the superblock.
    Superblock,
    /// A manifest.
    Manifest,
    /// A copy of a segment's header.
    SegmentHeader,
    /// A frame.
    Frame,
    /// Payload of a commit.
    Commit,
    /// Payload of a seal.
    Seal,
    /// Payload of a footer frame.
    Footer,
    /// Payload of a recipe page.
    Page,
    /// A short value of the catalog, behind its key where the two readers are compared.
    Value,
    /// An artifact record.
    Artifact,
    /// An upload record.
    Upload,
    /// Three bytes of decoded length, and a zstd frame.
    Zstd,
}

impl Structure {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Superblock,
        Self::Manifest,
        Self::SegmentHeader,
        Self::Frame,
        Self::Commit,
        Self::Seal,
        Self::Footer,
        Self::Page,
        Self::Value,
        Self::Artifact,
        Self::Upload,
        Self::Zstd,
    ];

    /// Its place among all.
    pub fn index(self) -> u8 {
        let index = Self::ALL.iter().position(|other| *other == self).expect("all are listed");
        u8::try_from(index).expect("a dozen")
    }

    /// Name of its fuzz target.
    pub const fn target(self) -> &'static str {
        match self {
            Self::Superblock => "superblock",
            Self::Manifest => "manifest",
            Self::SegmentHeader => "segment_header",
            Self::Frame => "frame",
            Self::Commit => "commit",
            Self::Seal => "seal",
            Self::Footer => "footer",
            Self::Page => "page",
            Self::Value => "value",
            Self::Artifact => "artifact",
            Self::Upload => "upload",
            Self::Zstd => "zstd",
        }
    }
}

/// Bit of the mode byte: checksums are made right.
pub const RIGHT: u8 = 1;

/// Uuid and epoch of the frames of a single-frame input.
pub const UUID: Id16 = [0x11; 16];
/// Its epoch.
pub const EPOCH: Id16 = [0x22; 16];
/// Where it stands.
pub const OFFSET: u64 = limits::FRAMES_START;
/// Keyspaces of short values, as the mode byte chooses them.
pub const KEYSPACES: [u8; 15] = [1, 2, 10, 11, 12, 16, 17, 20, 21, 3, 4, 18, 19, 23, 24];
/// Where a seal or footer payload stands.
pub const BASE: u64 = 64 * 1024 + 64;

/// What such frames are checked against.
pub const fn rules() -> Rules {
    Rules { uuid: UUID, epoch: EPOCH, lane: Lane::Log, chunk_max: limits::CHUNK }
}

/// The bytes of a structure from an input, whose first byte says (lowest bit) whether its checksums are made right; the other
/// bits are the caller's.
pub fn prepare(structure: Structure, data: &[u8]) -> Option<(u8, Vec<u8>)> {
    let (mode, bytes) = data.split_first()?;
    let mut bytes = bytes.to_vec();
    match structure {
        Structure::Superblock | Structure::SegmentHeader => bytes.resize(4096, 0),
        Structure::Frame if bytes.len() < 64 => bytes.resize(64, 0),
        _ => {}
    }
    if mode & RIGHT == RIGHT {
        make_right(structure, copy_of(*mode), &mut bytes);
    }
    Some((*mode, bytes))
}

/// The copy that the mode byte names.
pub const fn copy_of(mode: u8) -> u32 {
    (mode >> 1 & 3) as u32
}

fn make_right(structure: Structure, copy: u32, bytes: &mut Vec<u8>) {
    match structure {
        Structure::Superblock => {
            let salt = [&bytes[24..40], &copy.to_le_bytes()].concat();
            block(bytes, &salt);
        }
        Structure::SegmentHeader => {
            let salt = [&bytes[16..40], &(copy & 1).to_le_bytes()].concat();
            block(bytes, &salt);
        }
        Structure::Manifest if bytes.len() >= 100 => {
            let end = bytes.len() - 4;
            let salt = bytes[16..40].to_vec();
            let sum = crc(&[&salt, &bytes[..end]]);
            bytes[end..].copy_from_slice(&sum.to_le_bytes());
        }
        Structure::Frame => frame(&UUID, &EPOCH, OFFSET, bytes),
        _ => {}
    }
}

/// Makes the checksum of a block of 4,096 bytes right.
pub fn block(bytes: &mut [u8], salt: &[u8]) {
    let sum = crc(&[salt, &bytes[..4092]]);
    bytes[4092..4096].copy_from_slice(&sum.to_le_bytes());
}

/// Makes both checksums of the frame at the front of `bytes` right; the payload's only if all of it is there or short enough to add.
pub fn frame(uuid: &[u8], epoch: &[u8], offset: u64, bytes: &mut Vec<u8>) {
    let salt = [uuid, epoch, &offset.to_le_bytes()].concat();
    let stored = u32::from_le_bytes(bytes[8..12].try_into().expect("4 bytes"));
    let len = 64 + u64::from(stored).next_multiple_of(64);
    if len <= 1 << 20 {
        let len = usize::try_from(len).expect("a megabyte");
        if bytes.len() < len {
            bytes.resize(len, 0);
        }
        let sum = crc(&[&salt, &bytes[64..len]]);
        bytes[60..64].copy_from_slice(&sum.to_le_bytes());
    }
    let sum = crc(&[&salt, &bytes[..56]]);
    bytes[56..60].copy_from_slice(&sum.to_le_bytes());
}

/// The format's checksum.
pub fn crc(parts: &[&[u8]]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize()
}
