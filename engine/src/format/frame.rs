//! The frame (FORMAT.md section 6): the only envelope in a segment.

use super::{
    Bad, Decoded,
    fields::{Fixed, layout, put},
    page,
};
use crate::{
    canary::{self, Canary},
    checksum::crc,
    codec::Codec,
    ids::{ChunkId, Epoch, StoreUuid, TenantNumber},
    limits::{CHUNK_LEN_MAX, FRAME_ALIGN, FRAME_ALIGN_LEN, FRAME_LEN_MAX},
};

/// Length of a header.
pub const HEADER_LEN: usize = 64;
/// First bytes of every frame.
pub const MAGIC: [u8; 4] = *b"HFr1";

layout! { 64:
    MAGIC 4, KIND 1, CODEC 1, FLAGS 2, STORED 4, RAW 4, ID 32, CONTEXT 8, HEADER_CRC 4, PAYLOAD_CRC 4,
}

/// Kind of a frame. The numbers are format.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum FrameKind {
    /// A chunk.
    Chunk = 1,
    /// A recipe page.
    Page = 2,
    /// A group of requests that become real together.
    Commit = 3,
    /// A witness that all before it is synced.
    Mark = 4,
    /// The end of a sealed segment.
    Seal = 5,
    /// The list of a sealed segment's frames.
    Footer = 6,
    /// Zeros.
    Padding = 7,
}

impl FrameKind {
    /// Reads the number.
    pub const fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Chunk,
            2 => Self::Page,
            3 => Self::Commit,
            4 => Self::Mark,
            5 => Self::Seal,
            6 => Self::Footer,
            7 => Self::Padding,
            _ => return None,
        })
    }
}

/// What a frame is salted with besides its offset: a frame from another store, segment or former life is invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameSalt([u8; 40]);

impl FrameSalt {
    /// The salt of a segment.
    pub fn new(uuid: StoreUuid, epoch: Epoch) -> Self {
        let mut salt = [0; 40];
        put(&mut salt, 0, &uuid.0);
        put(&mut salt, 16, &epoch.0);
        Self(salt)
    }

    fn at(&self, offset: u64) -> [u8; 40] {
        if canary::sings(Canary::UnsaltedChecksums) {
            return [0; 40];
        }
        let mut salt = self.0;
        put(&mut salt, 32, &offset.to_le_bytes());
        salt
    }
}

/// A frame's header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameHeader {
    /// Kind.
    pub kind: FrameKind,
    /// How the payload stands here.
    pub codec: Codec,
    /// Its length here.
    pub stored: u32,
    /// Its length decoded.
    pub raw: u32,
    /// Chunk or page id; chain hash of commit, mark and seal.
    pub id: [u8; 32],
    /// Tenant number, LSN or footer number.
    pub context: u64,
    /// Checksum of payload and fill.
    pub payload_crc: u32,
}

/// Length of a frame with header and fill. O(1).
pub const fn frame_len(stored: u64) -> u64 {
    HEADER_LEN as u64 + stored.next_multiple_of(FRAME_ALIGN)
}

impl FrameHeader {
    /// Length of the frame.
    pub const fn frame_len(&self) -> u64 {
        frame_len(self.stored as u64)
    }

    /// Reads a header that stands at `offset`.
    pub fn decode(bytes: &[u8; HEADER_LEN], salt: &FrameSalt, offset: u64) -> Decoded<Self> {
        let f = Fixed(bytes);
        if f.bytes::<4>(at::MAGIC) != MAGIC {
            return Err(Bad::damaged("frame magic"));
        }
        if f.u32(at::HEADER_CRC) != crc(&salt.at(offset), f.slice(0, at::HEADER_CRC)) {
            return Err(Bad::damaged("frame header checksum"));
        }
        f.reserved(at::FLAGS, 2, "frame flags")?;
        let header = Self {
            kind: FrameKind::from_number(f.u8(at::KIND)).ok_or(Bad::damaged("frame kind"))?,
            codec: Codec::from_number(f.u8(at::CODEC)).ok_or(Bad::damaged("frame codec"))?,
            stored: f.u32(at::STORED),
            raw: f.u32(at::RAW),
            id: f.bytes(at::ID),
            context: f.u64(at::CONTEXT),
            payload_crc: f.u32(at::PAYLOAD_CRC),
        };
        if header.holds() { Ok(header) } else { Err(Bad::damaged("frame fields")) }
    }

    fn holds(&self) -> bool {
        let codec_holds = match self.codec {
            Codec::Raw => self.raw == self.stored,
            Codec::Zstd => self.kind == FrameKind::Chunk && self.raw > self.stored,
        };
        let stored = self.stored as usize;
        let nameless = self.id == [0; 32];
        codec_holds
            && self.frame_len() <= FRAME_LEN_MAX
            && match self.kind {
                FrameKind::Chunk => self.stored >= 1 && self.raw <= CHUNK_LEN_MAX && tenant(self.context).is_some(),
                FrameKind::Page => (page::LEN_MIN..=page::LEN_MAX).contains(&stored) && tenant(self.context).is_some(),
                FrameKind::Commit => stored >= 44 && self.context != 0,
                FrameKind::Mark => stored == 0 && self.context != 0,
                // In the bulk lane it carries neither chain hash nor LSN.
                FrameKind::Seal => stored == super::seal::LEN && (self.context != 0 || nameless),
                FrameKind::Footer => stored >= 8 && nameless,
                FrameKind::Padding => self.context == 0 && nameless,
            }
    }

    /// The tenant of a chunk or page.
    pub fn tenant(&self) -> TenantNumber {
        tenant(self.context).expect("a chunk's context was checked when it was decoded")
    }

    /// The id of a chunk or page.
    pub const fn chunk_id(&self) -> ChunkId {
        ChunkId(self.id)
    }

    /// Where the zeros begin that a checksum alone does not promise: behind the payload, and in a padding frame at its start.
    const fn zeros_from(&self) -> usize {
        match self.kind {
            FrameKind::Padding => 0,
            _ => self.stored as usize,
        }
    }

    /// Checks payload and fill, given together.
    pub fn payload_is_good(&self, payload_and_fill: &[u8], salt: &FrameSalt, offset: u64) -> bool {
        payload_and_fill.len() as u64 + HEADER_LEN as u64 == self.frame_len()
            && crc(&salt.at(offset), payload_and_fill) == self.payload_crc
            && payload_and_fill.get(self.zeros_from()..).is_some_and(|zeros| zeros.iter().all(|b| *b == 0))
    }
}

fn tenant(context: u64) -> Option<TenantNumber> {
    u32::try_from(context).ok().filter(|number| *number != 0).map(TenantNumber)
}

/// A frame that has no place yet.
#[derive(Clone, Debug)]
pub struct FrameDraft<'a> {
    /// Kind.
    pub kind: FrameKind,
    /// How the payload is given.
    pub codec: Codec,
    /// Its length decoded.
    pub raw: u32,
    /// Chunk or page id; chain hash.
    pub id: [u8; 32],
    /// Tenant number, LSN or footer number.
    pub context: u64,
    /// The payload as it will stand.
    pub payload: &'a [u8],
}

impl FrameDraft<'_> {
    /// A frame without a name whose payload stands as it is.
    pub fn raw(kind: FrameKind, id: [u8; 32], context: u64, payload: &[u8]) -> FrameDraft<'_> {
        let raw = u32::try_from(payload.len()).expect("a frame is at most 16 MiB");
        FrameDraft { kind, codec: Codec::Raw, raw, id, context, payload }
    }

    /// Length of the frame.
    pub const fn frame_len(&self) -> u64 {
        frame_len(self.payload.len() as u64)
    }

    /// Appends the frame, which will stand at `offset`, and gives its header bytes. One pass over the payload for the checksum,
    /// one to copy it.
    pub fn append_to(&self, out: &mut Vec<u8>, salt: &FrameSalt, offset: u64) -> [u8; HEADER_LEN] {
        let header = self.header(salt, offset);
        out.extend_from_slice(&header);
        out.extend_from_slice(self.payload);
        out.resize(out.len() + self.fill().len(), 0);
        header
    }

    /// The zeros behind the payload.
    pub const fn fill(&self) -> &'static [u8] {
        const ZEROS: [u8; FRAME_ALIGN_LEN] = [0; FRAME_ALIGN_LEN];
        let len = self.payload.len();
        ZEROS.split_at(len.next_multiple_of(FRAME_ALIGN_LEN) - len).0
    }

    /// The header of the frame at `offset`.
    pub fn header(&self, salt: &FrameSalt, offset: u64) -> [u8; HEADER_LEN] {
        assert!(self.frame_len() <= FRAME_LEN_MAX, "a frame is at most 16 MiB");
        let salt = salt.at(offset);
        let mut payload_crc = crc32fast::Hasher::new();
        for part in [&salt[..], self.payload, self.fill()] {
            payload_crc.update(part);
        }
        let mut out = [0; HEADER_LEN];
        let o = &mut out;
        put(o, at::MAGIC, &MAGIC);
        put(o, at::KIND, &[self.kind as u8, self.codec as u8]);
        put(o, at::STORED, &u32::try_from(self.payload.len()).expect("a frame is at most 16 MiB").to_le_bytes());
        put(o, at::RAW, &self.raw.to_le_bytes());
        put(o, at::ID, &self.id);
        put(o, at::CONTEXT, &self.context.to_le_bytes());
        let checksum = crc(&salt, o.get(..at::HEADER_CRC).expect("before the checksum"));
        put(o, at::HEADER_CRC, &checksum.to_le_bytes());
        put(o, at::PAYLOAD_CRC, &payload_crc.finalize().to_le_bytes());
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn salt() -> FrameSalt {
        FrameSalt::new(StoreUuid([1; 16]), Epoch([2; 16]))
    }

    fn chunk(payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        FrameDraft::raw(FrameKind::Chunk, [3; 32], 1, payload).append_to(&mut out, &salt(), 8192);
        out
    }

    fn decode(bytes: &[u8], offset: u64) -> Decoded<FrameHeader> {
        FrameHeader::decode(bytes[..HEADER_LEN].try_into().expect("64 bytes"), &salt(), offset)
    }

    #[test]
    fn a_frame_comes_back_and_is_aligned() {
        for len in [1, 63, 64, 65, 1000] {
            let payload = vec![7; len];
            let bytes = chunk(&payload);
            assert_eq!(bytes.len() % 64, 0);
            let header = decode(&bytes, 8192).expect("valid");
            assert_eq!(header.stored as usize, len);
            assert_eq!(header.frame_len(), bytes.len() as u64);
            assert!(header.payload_is_good(&bytes[64..], &salt(), 8192));
        }
    }

    #[test]
    fn every_flipped_bit_is_found_in_header_payload_or_fill() {
        let good = chunk(b"some bytes");
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let found = decode(&bad, 8192).map_or(true, |header| !header.payload_is_good(&bad[64..], &salt(), 8192));
            assert!(found, "bit {bit}");
        }
    }

    #[test]
    fn a_frame_is_invalid_at_another_offset_and_in_another_epoch() {
        let bytes = chunk(b"some bytes");
        assert!(decode(&bytes, 8192 + 64).is_err());
        let other = FrameSalt::new(StoreUuid([1; 16]), Epoch([9; 16]));
        assert!(FrameHeader::decode(bytes[..64].try_into().expect("64"), &other, 8192).is_err());
    }

    #[test]
    fn kinds_have_the_numbers_of_the_format() {
        let kinds = [
            (FrameKind::Chunk, 1),
            (FrameKind::Page, 2),
            (FrameKind::Commit, 3),
            (FrameKind::Mark, 4),
            (FrameKind::Seal, 5),
            (FrameKind::Footer, 6),
            (FrameKind::Padding, 7),
        ];
        for (kind, number) in kinds {
            assert_eq!(kind as u8, number);
            assert_eq!(FrameKind::from_number(number), Some(kind));
        }
        assert_eq!(FrameKind::from_number(0), None);
        assert_eq!(FrameKind::from_number(8), None);
    }
}
