//! The header of a segment (FORMAT.md section 5), written twice.

use super::{
    Bad, Decoded, VERSION,
    fields::{Fixed, layout, put},
    is_file_id, is_frame_offset,
    manifest::Lane,
};
use crate::{
    checksum::crc,
    ids::{ChainHash, Epoch, FileId, Lsn, StoreUuid},
    limits::{BLOCK_LEN, FRAMES_START},
};

/// Length of one copy.
pub const LEN: usize = BLOCK_LEN;
/// Copies, at 0 and behind it.
pub const COPIES: u32 = 2;
const MAGIC: &[u8; 8] = b"HFSEGMNT";

layout! { 4096:
    MAGIC 8, VERSION 4, COPY 4, UUID 16, ID 8, EPOCH 16, LANE 1, RESERVED_1 7, CAPACITY 8, FIRST_LSN 8,
    PREDECESSOR 8, PREDECESSOR_EPOCH 16, PREDECESSOR_END 8, CHAIN 32, RESERVED_2 3948, CRC 4,
}

/// The log segment before this one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Predecessor {
    /// Its id.
    pub id: FileId,
    /// Its epoch.
    pub epoch: Epoch,
    /// Where its frames end; synced before this header is written.
    pub end: u64,
}

/// Header of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentHeader {
    /// The store.
    pub uuid: StoreUuid,
    /// Its id, also in its name.
    pub id: FileId,
    /// Its salt.
    pub epoch: Epoch,
    /// Its lane.
    pub lane: Lane,
    /// Length of the file when made (log), or meant (bulk).
    pub capacity: u64,
    /// Log: the next LSN at the predecessor's end.
    pub first_lsn: Lsn,
    /// Log: the segment before, if any.
    pub predecessor: Option<Predecessor>,
    /// Log: chain hash at the predecessor's end.
    pub chain: ChainHash,
}

impl SegmentHeader {
    /// Both copies, as they stand at the front of the file.
    pub fn encode(&self) -> Vec<u8> {
        (0..COPIES).flat_map(|copy| self.encode_copy(copy)).collect()
    }

    fn encode_copy(&self, copy: u32) -> [u8; LEN] {
        let mut out = [0; LEN];
        let o = &mut out;
        put(o, at::MAGIC, MAGIC);
        put(o, at::VERSION, &VERSION.to_le_bytes());
        put(o, at::COPY, &copy.to_le_bytes());
        put(o, at::UUID, &self.uuid.0);
        put(o, at::ID, &self.id.0.to_le_bytes());
        put(o, at::EPOCH, &self.epoch.0);
        put(o, at::LANE, &[self.lane as u8]);
        put(o, at::CAPACITY, &self.capacity.to_le_bytes());
        put(o, at::FIRST_LSN, &self.first_lsn.0.to_le_bytes());
        if let Some(predecessor) = &self.predecessor {
            put(o, at::PREDECESSOR, &predecessor.id.0.to_le_bytes());
            put(o, at::PREDECESSOR_EPOCH, &predecessor.epoch.0);
            put(o, at::PREDECESSOR_END, &predecessor.end.to_le_bytes());
        }
        put(o, at::CHAIN, &self.chain.0);
        let checksum = crc(&salt(self.uuid, self.id, copy), out.get(..at::CRC).expect("a checksum at its end"));
        put(&mut out, at::CRC, &checksum.to_le_bytes());
        out
    }

    /// Reads the copy at place `copy` of the file that is named after `id`.
    pub fn decode(bytes: &[u8; LEN], uuid: StoreUuid, id: FileId, copy: u32) -> Decoded<Self> {
        let f = Fixed(bytes);
        if &f.bytes::<8>(at::MAGIC) != MAGIC {
            return Err(Bad::damaged("segment header magic"));
        }
        if f.u32(at::CRC) != crc(&salt(uuid, id, copy), f.slice(0, at::CRC)) {
            return Err(Bad::damaged("segment header checksum"));
        }
        if f.u32(at::VERSION) != VERSION {
            return Err(Bad::newer("segment header version"));
        }
        if f.u32(at::COPY) != copy || f.bytes(at::UUID) != uuid.0 || f.u64(at::ID) != id.0 {
            return Err(Bad::damaged("segment header of another place, store or segment"));
        }
        f.reserved(at::RESERVED_1, 7, "segment header reserved bytes")?;
        f.reserved(at::RESERVED_2, 3948, "segment header reserved bytes")?;
        let header = Self {
            uuid,
            id,
            epoch: Epoch(f.bytes(at::EPOCH)),
            lane: Lane::from_number(f.u8(at::LANE)).ok_or(Bad::damaged("segment lane"))?,
            capacity: f.u64(at::CAPACITY),
            first_lsn: Lsn(f.u64(at::FIRST_LSN)),
            predecessor: decode_predecessor(&f)?,
            chain: ChainHash(f.bytes(at::CHAIN)),
        };
        // The first segment of a store has none before it, and every other one has.
        let is_first = id == FileId(1);
        let holds = header.capacity >= FRAMES_START
            && is_file_id(id)
            && match header.lane {
                Lane::Log => {
                    let before_holds = header.predecessor.map_or(is_first, |before| !is_first && before.id != id);
                    header.first_lsn != Lsn::NONE && before_holds
                }
                Lane::Bulk => header.first_lsn == Lsn::NONE && header.predecessor.is_none() && header.chain.is_zero(),
            };
        if holds { Ok(header) } else { Err(Bad::damaged("segment header fields")) }
    }
}

/// The store that a copy says it is of, unchecked: for whoever has no superblock to ask.
pub fn uuid_of(bytes: &[u8; LEN]) -> StoreUuid {
    StoreUuid(Fixed(bytes).bytes(at::UUID))
}

fn decode_predecessor(f: &Fixed<'_>) -> Decoded<Option<Predecessor>> {
    let bad = Bad::damaged("segment predecessor");
    let predecessor = Predecessor {
        id: FileId(f.u64(at::PREDECESSOR)),
        epoch: Epoch(f.bytes(at::PREDECESSOR_EPOCH)),
        end: f.u64(at::PREDECESSOR_END),
    };
    if predecessor.id.0 == 0 {
        return if predecessor.epoch.is_zero() && predecessor.end == 0 { Ok(None) } else { Err(bad) };
    }
    let holds = is_file_id(predecessor.id) && is_frame_offset(predecessor.end);
    if holds { Ok(Some(predecessor)) } else { Err(bad) }
}

fn salt(uuid: StoreUuid, id: FileId, copy: u32) -> [u8; 28] {
    let mut salt = [0; 28];
    put(&mut salt, 0, &uuid.0);
    put(&mut salt, 16, &id.0.to_le_bytes());
    put(&mut salt, 24, &copy.to_le_bytes());
    salt
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> SegmentHeader {
        SegmentHeader {
            uuid: StoreUuid([1; 16]),
            id: FileId(5),
            epoch: Epoch([2; 16]),
            lane: Lane::Log,
            capacity: 1 << 20,
            first_lsn: Lsn::FIRST.plus(9),
            predecessor: Some(Predecessor { id: FileId(1), epoch: Epoch([3; 16]), end: 8192 + 640 }),
            chain: ChainHash([4; 32]),
        }
    }

    fn copy(header: &SegmentHeader, copy: usize) -> [u8; LEN] {
        header.encode()[copy * LEN..(copy + 1) * LEN].try_into().expect("a copy")
    }

    #[test]
    fn both_copies_come_back() {
        let bulk = SegmentHeader {
            lane: Lane::Bulk,
            first_lsn: Lsn::NONE,
            predecessor: None,
            chain: ChainHash::ZERO,
            ..sample()
        };
        for header in [sample(), bulk] {
            for place in 0..2 {
                let bytes = copy(&header, place as usize);
                assert_eq!(SegmentHeader::decode(&bytes, header.uuid, header.id, place), Ok(header));
            }
        }
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let good = copy(&sample(), 0);
        for bit in 0..LEN * 8 {
            let mut bad = good;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(SegmentHeader::decode(&bad, StoreUuid([1; 16]), FileId(5), 0).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_segment_under_another_name_is_refused() {
        let bytes = copy(&sample(), 0);
        assert!(SegmentHeader::decode(&bytes, StoreUuid([1; 16]), FileId(6), 0).is_err());
        assert!(SegmentHeader::decode(&bytes, StoreUuid([9; 16]), FileId(5), 0).is_err());
        assert!(SegmentHeader::decode(&bytes, StoreUuid([1; 16]), FileId(5), 1).is_err());
    }
}
