//! Short values of the catalog (FORMAT.md section 12): tenant, account, blob, chunk, op, segment.

use super::{
    Bad, Content, Decoded,
    fields::Cursor,
    frame::FrameKind,
    is_file_id, is_frame_offset,
    manifest::{Lane, SegmentState},
};
use crate::{
    codec::Codec,
    ids::{ChunkId, Epoch, FileId, Location, Lsn, TenantNumber, Time},
    limits::SCOPE_ID_LEN_MAX,
};

/// A tenant's record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TenantValue {
    /// Its number.
    pub number: TenantNumber,
    /// When it was made.
    pub created_at: Time,
}

impl TenantValue {
    /// The value.
    pub fn encode(&self) -> Vec<u8> {
        [&self.number.0.to_le_bytes()[..], &[1, 0, 0, 0], &self.created_at.0.to_le_bytes()].concat()
    }

    /// Reads a value.
    pub fn decode(bytes: &[u8]) -> Decoded<Self> {
        let mut c = Cursor::new(bytes, "tenant value");
        let number = TenantNumber(c.u32()?);
        if c.u8()? != 1 || number.0 == 0 {
            return Err(Bad::damaged("tenant value"));
        }
        c.reserved(3)?;
        let created_at = Time(c.u64()?);
        c.end()?;
        Ok(Self { number, created_at })
    }
}

/// An account's record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AccountValue {
    /// LSN of its first write.
    pub created_lsn: Lsn,
    /// When that was.
    pub created_at: Time,
    /// Its id as the caller gave it, kept here once for lists.
    pub text: String,
}

impl AccountValue {
    /// The value.
    pub fn encode(&self) -> Vec<u8> {
        let len = u16::try_from(self.text.len()).expect("an id is at most 128 bytes");
        let mut out = Vec::with_capacity(18 + self.text.len());
        out.extend_from_slice(&self.created_lsn.0.to_le_bytes());
        out.extend_from_slice(&self.created_at.0.to_le_bytes());
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(self.text.as_bytes());
        out
    }

    /// Reads a value.
    pub fn decode(bytes: &[u8]) -> Decoded<Self> {
        let mut c = Cursor::new(bytes, "account value");
        let (created_lsn, created_at) = (Lsn(c.u64()?), Time(c.u64()?));
        let len = usize::from(c.u16()?);
        if created_lsn == Lsn::NONE || !(1..=SCOPE_ID_LEN_MAX).contains(&len) {
            return Err(Bad::damaged("account value"));
        }
        let text = c.text(len)?;
        c.end()?;
        Ok(Self { created_lsn, created_at, text })
    }
}

/// A blob: where its recipe is and how many artifacts have it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlobValue {
    /// Top page, only chunk, or zero for the empty blob.
    pub root: ChunkId,
    /// Bytes.
    pub size: u64,
    /// Artifacts that have it.
    pub references: u64,
}

impl BlobValue {
    /// The value.
    pub fn encode(&self) -> Vec<u8> {
        [&self.root.0[..], &self.size.to_le_bytes(), &self.references.to_le_bytes()].concat()
    }

    /// Reads a value.
    pub fn decode(bytes: &[u8]) -> Decoded<Self> {
        let mut c = Cursor::new(bytes, "blob value");
        let value = Self { root: ChunkId(c.bytes()?), size: c.u64()?, references: c.u64()? };
        c.end()?;
        if value.root.is_zero() == (value.size == 0) { Ok(value) } else { Err(Bad::damaged("blob value")) }
    }
}

/// Where a chunk or page is and how many direct parents it has, by occurrence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChunkValue {
    /// Its frame.
    pub location: Location,
    /// Length of the payload there.
    pub stored: u32,
    /// Its length decoded.
    pub raw: u32,
    /// Whose it is.
    pub tenant: TenantNumber,
    /// How it stands there.
    pub codec: Codec,
    /// Chunk or page.
    pub kind: FrameKind,
    /// Direct parents by occurrence.
    pub references: u64,
}

impl ChunkValue {
    /// The value.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(40);
        out.extend_from_slice(&self.location.segment.0.to_le_bytes());
        out.extend_from_slice(&self.location.offset.to_le_bytes());
        out.extend_from_slice(&self.stored.to_le_bytes());
        out.extend_from_slice(&self.raw.to_le_bytes());
        out.extend_from_slice(&self.tenant.0.to_le_bytes());
        out.extend_from_slice(&[self.codec as u8, self.kind as u8, 0, 0]);
        out.extend_from_slice(&self.references.to_le_bytes());
        out
    }

    /// Reads a value.
    pub fn decode(bytes: &[u8]) -> Decoded<Self> {
        let bad = Bad::damaged("chunk value");
        let mut c = Cursor::new(bytes, "chunk value");
        let location = Location { segment: FileId(c.u64()?), offset: c.u64()? };
        let (stored, raw, tenant) = (c.u32()?, c.u32()?, TenantNumber(c.u32()?));
        let codec = Codec::from_number(c.u8()?).ok_or(bad)?;
        let kind = FrameKind::from_number(c.u8()?).ok_or(bad)?;
        c.reserved(2)?;
        let references = c.u64()?;
        c.end()?;
        let holds = is_file_id(location.segment)
            && Content { offset: location.offset, stored, raw, tenant, codec, kind }.holds();
        if holds { Ok(Self { location, stored, raw, tenant, codec, kind, references }) } else { Err(bad) }
    }

    /// Bytes that the frame takes.
    pub const fn frame_len(&self) -> u64 {
        super::frame::frame_len(self.stored as u64)
    }
}

/// What an operation made. The numbers are format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum OpMade {
    /// An artifact.
    Artifact = 0,
    /// A run, named by its scope hash.
    Run = 1,
    /// A fork, named by the scope hash of its source, or a claim of uploads, named by that of its conversation.
    Fork = 2,
}

/// Outcome of an operation, for a retry with the same op id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpValue {
    /// The artifact that it made, or the hash of the run or of the fork's source.
    pub id: [u8; 16],
    /// Which of them.
    pub made: OpMade,
    /// LSN of the operation.
    pub lsn: Lsn,
    /// When it was.
    pub at: Time,
}

impl OpValue {
    /// The value.
    pub fn encode(&self) -> Vec<u8> {
        let code = (self.made as u32).to_le_bytes();
        [&self.id[..], &code, &[0; 4], &self.lsn.0.to_le_bytes(), &self.at.0.to_le_bytes()].concat()
    }

    /// Reads a value.
    pub fn decode(bytes: &[u8]) -> Decoded<Self> {
        let mut c = Cursor::new(bytes, "op value");
        let id = c.bytes()?;
        let made = match c.u32()? {
            0 => OpMade::Artifact,
            1 => OpMade::Run,
            2 => OpMade::Fork,
            _ => return Err(Bad::damaged("op value")),
        };
        c.reserved(4)?;
        let value = Self { id, made, lsn: Lsn(c.u64()?), at: Time(c.u64()?) };
        c.end()?;
        Ok(value)
    }
}

/// A bulk segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentValue {
    /// Its salt.
    pub epoch: Epoch,
    /// Active or sealed.
    pub state: SegmentState,
    /// Offset up to which commits rely on it.
    pub end: u64,
}

impl SegmentValue {
    /// The value.
    pub fn encode(&self) -> Vec<u8> {
        [&self.epoch.0[..], &[Lane::Bulk as u8, self.state as u8, 0, 0, 0, 0, 0, 0], &self.end.to_le_bytes()].concat()
    }

    /// Reads a value.
    pub fn decode(bytes: &[u8]) -> Decoded<Self> {
        let bad = Bad::damaged("segment value");
        let mut c = Cursor::new(bytes, "segment value");
        let epoch = Epoch(c.bytes()?);
        if c.u8()? != Lane::Bulk as u8 {
            return Err(bad);
        }
        let state = SegmentState::from_number(c.u8()?).ok_or(bad)?;
        c.reserved(6)?;
        let end = c.u64()?;
        c.end()?;
        if is_frame_offset(end) { Ok(Self { epoch, state, end }) } else { Err(bad) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_and_no_cut_is_accepted() {
        fn check<T: PartialEq + std::fmt::Debug>(value: T, bytes: &[u8], decode: impl Fn(&[u8]) -> Decoded<T>) {
            assert_eq!(decode(bytes), Ok(value));
            for len in 0..bytes.len() {
                assert!(decode(&bytes[..len]).is_err(), "length {len}");
            }
            assert!(decode(&[bytes, &[0]].concat()).is_err(), "one byte more");
        }
        let tenant = TenantValue { number: TenantNumber(1), created_at: Time(2) };
        check(tenant.clone(), &tenant.encode(), TenantValue::decode);
        let account = AccountValue { created_lsn: Lsn(1), created_at: Time(2), text: "a".into() };
        check(account.clone(), &account.encode(), AccountValue::decode);
        let blob = BlobValue { root: ChunkId([1; 32]), size: 2, references: 3 };
        check(blob, &blob.encode(), BlobValue::decode);
        let chunk = ChunkValue {
            location: Location { segment: FileId(1), offset: 8192 },
            stored: 2,
            raw: 3,
            tenant: TenantNumber(1),
            codec: Codec::Zstd,
            kind: FrameKind::Chunk,
            references: 4,
        };
        check(chunk, &chunk.encode(), ChunkValue::decode);
        for (made, code) in [(OpMade::Artifact, 0), (OpMade::Run, 1), (OpMade::Fork, 2)] {
            let op = OpValue { id: [1; 16], made, lsn: Lsn(2), at: Time(3) };
            let bytes = op.encode();
            check(op, &bytes, OpValue::decode);
            assert_eq!((bytes.len(), bytes[16]), (40, code));
            let unknown = [&bytes[..16], &[3], &bytes[17..]].concat();
            assert!(OpValue::decode(&unknown).is_err(), "a code that there is not");
        }
        let segment = SegmentValue { epoch: Epoch([1; 16]), state: SegmentState::Active, end: 8192 };
        check(segment, &segment.encode(), SegmentValue::decode);
    }
}
