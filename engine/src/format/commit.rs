//! The payload of a commit frame (FORMAT.md section 7): requests, each with its edits.

use std::collections::BTreeSet;

use super::{Bad, Decoded, fields::Cursor, is_file_id, keyspace::Keyspace};
use crate::{
    ids::{FileId, Location, Time},
    limits::{COMMIT_EDITS_MAX, COMMIT_REQUESTS_MAX, EDIT_BODY_MAX, FRAME_ALIGN, KEY_LEN_MAX},
};

const VERSION: u16 = 1;
const WHAT: &str = "commit payload";
const TAG_PUT: u8 = 1;
const TAG_DELETE: u8 = 2;
const EDIT_VERSION: u8 = 1;
/// Bytes before the counts of the requests.
pub const FIXED_LEN: usize = 40;
/// Bytes of an edit besides key and value.
pub const EDIT_OVERHEAD: usize = 12;

/// One change: the whole resulting value of a key, or its removal. Replaying it twice changes nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edit {
    /// The keyspace.
    pub keyspace: Keyspace,
    /// The key.
    pub key: Vec<u8>,
    /// The value, or `None` to remove it.
    pub value: Option<Vec<u8>>,
}

impl Edit {
    /// Sets a key.
    pub fn put(keyspace: Keyspace, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Self {
        Self { keyspace, key: key.into(), value: Some(value.into()) }
    }

    /// Removes a key.
    pub fn delete(keyspace: Keyspace, key: impl Into<Vec<u8>>) -> Self {
        Self { keyspace, key: key.into(), value: None }
    }

    /// Length in a commit.
    pub fn encoded_len(&self) -> usize {
        EDIT_OVERHEAD + self.key.len() + self.value.as_ref().map_or(0, Vec::len)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let body = self.encoded_len() - 8;
        debug_assert!(self.key.len() <= KEY_LEN_MAX && body <= EDIT_BODY_MAX);
        let tag = if self.value.is_some() { TAG_PUT } else { TAG_DELETE };
        out.extend_from_slice(&[tag, EDIT_VERSION, 0, 0]);
        out.extend_from_slice(&u32::try_from(body).expect("an edit is bounded").to_le_bytes());
        out.extend_from_slice(&[self.keyspace as u8, 0]);
        out.extend_from_slice(&u16::try_from(self.key.len()).expect("a key is bounded").to_le_bytes());
        out.extend_from_slice(&self.key);
        out.extend_from_slice(self.value.as_deref().unwrap_or_default());
    }

    fn decode(c: &mut Cursor<'_>) -> Decoded<Self> {
        let bad = Bad::damaged("edit");
        let (tag, version) = (c.u8()?, c.u8()?);
        if !(TAG_PUT..=TAG_DELETE).contains(&tag) || version != EDIT_VERSION {
            return Err(Bad::newer("edit tag or version"));
        }
        c.reserved(2)?;
        let len = c.u32()? as usize;
        if len > EDIT_BODY_MAX {
            return Err(bad);
        }
        let mut body = Cursor::new(c.take(len)?, "edit");
        let keyspace = Keyspace::from_number(body.u8()?).ok_or(Bad::newer("keyspace"))?;
        body.reserved(1)?;
        let key_len = usize::from(body.u16()?);
        if !(1..=KEY_LEN_MAX).contains(&key_len) {
            return Err(bad);
        }
        let key = body.take(key_len)?.to_vec();
        let value = body.take(body.remaining())?;
        match tag {
            TAG_PUT => Ok(Self::put(keyspace, key, value)),
            _ if value.is_empty() => Ok(Self::delete(keyspace, key)),
            _ => Err(bad),
        }
    }
}

/// A commit frame's payload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Commit {
    /// How far the log was known to be synced when this was written.
    pub synced_upto: Location,
    /// The engine's own time.
    pub hw: Time,
    /// Edits, request by request. A request without edits still has its LSN.
    pub requests: Vec<Vec<Edit>>,
}

impl Commit {
    /// The payload.
    pub fn encode(&self) -> Vec<u8> {
        let count = |len: usize| u32::try_from(len).expect("counts are bounded").to_le_bytes();
        let edits = self.requests.iter().map(Vec::len).sum();
        let mut out = Vec::with_capacity(FIXED_LEN + self.requests.len() * 4 + edits * 64);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&[0; 2]);
        out.extend_from_slice(&count(self.requests.len()));
        out.extend_from_slice(&self.synced_upto.segment.0.to_le_bytes());
        out.extend_from_slice(&self.synced_upto.offset.to_le_bytes());
        out.extend_from_slice(&self.hw.0.to_le_bytes());
        out.extend_from_slice(&count(edits));
        out.extend_from_slice(&[0; 4]);
        for request in &self.requests {
            out.extend_from_slice(&count(request.len()));
        }
        for edit in self.requests.iter().flatten() {
            edit.encode(&mut out);
        }
        out
    }

    /// Reads a payload. Memory is bounded by a multiple of its length.
    pub fn decode(payload: &[u8]) -> Decoded<Self> {
        let bad = Bad::damaged(WHAT);
        let mut c = Cursor::new(payload, WHAT);
        if c.u16()? != VERSION {
            return Err(Bad::newer("commit version"));
        }
        c.reserved(2)?;
        let request_count = c.u32()? as usize;
        let synced_upto = Location { segment: FileId(c.u64()?), offset: c.u64()? };
        let hw = Time(c.u64()?);
        let edit_count = c.u32()? as usize;
        c.reserved(4)?;
        if !(1..=COMMIT_REQUESTS_MAX).contains(&request_count)
            || edit_count > COMMIT_EDITS_MAX
            || !is_file_id(synced_upto.segment)
            || !synced_upto.offset.is_multiple_of(FRAME_ALIGN)
        {
            return Err(bad);
        }
        let mut counts = Cursor::new(c.take(request_count * 4)?, WHAT);
        let counts = (0..request_count).map(|_| counts.u32().map(|n| n as usize)).collect::<Decoded<Vec<_>>>()?;
        if counts.iter().try_fold(0_usize, |sum, n| sum.checked_add(*n)) != Some(edit_count) {
            return Err(bad);
        }
        let requests = counts.into_iter().map(|n| decode_request(&mut c, n)).collect::<Decoded<Vec<_>>>()?;
        c.end()?;
        Ok(Self { synced_upto, hw, requests })
    }
}

fn decode_request(c: &mut Cursor<'_>, count: usize) -> Decoded<Vec<Edit>> {
    let mut edits = Vec::new();
    let mut keys = BTreeSet::new();
    for _ in 0..count {
        let edit = Edit::decode(c)?;
        if !keys.insert((edit.keyspace as u8, edit.key.clone())) {
            return Err(Bad::damaged("a key twice in one request"));
        }
        edits.push(edit);
    }
    Ok(edits)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sample() -> Commit {
        Commit {
            synced_upto: Location { segment: FileId(1), offset: 8192 },
            hw: Time(5),
            requests: vec![
                vec![Edit::put(Keyspace::Blob, [1; 32], [2; 48]), Edit::delete(Keyspace::Zero, [3; 33])],
                vec![],
                vec![Edit::put(Keyspace::Blob, [1; 32], [4; 48])],
            ],
        }
    }

    #[test]
    fn a_commit_comes_back_with_its_empty_request() {
        assert_eq!(Commit::decode(&sample().encode()), Ok(sample()));
    }

    #[test]
    fn a_key_twice_in_one_request_is_refused() {
        let mut commit = sample();
        let again = commit.requests[0][0].clone();
        commit.requests[0].push(again);
        assert!(Commit::decode(&commit.encode()).is_err());
    }

    #[test]
    fn a_cut_payload_is_refused_at_every_length() {
        let good = sample().encode();
        for len in 0..good.len() {
            assert!(Commit::decode(&good[..len]).is_err(), "length {len}");
        }
    }

    #[test]
    fn an_unknown_tag_version_or_keyspace_is_of_a_newer_release() {
        let good = sample().encode();
        let first_edit = FIXED_LEN + 12;
        for (at, value) in [(first_edit, 3), (first_edit + 1, 2), (first_edit + 8, 99), (0, 2)] {
            let mut bytes = good.clone();
            bytes[at] = value;
            assert!(Commit::decode(&bytes).expect_err("unknown").newer, "byte {at}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_decoded_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Commit::decode(&bytes);
        }
    }
}
