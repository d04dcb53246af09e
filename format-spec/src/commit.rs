//! The payload of a commit frame: section 7.1 of `FORMAT.md`.
//!
//! It does not know the chain, the log or the state that the edits change.

use crate::error::{Error, Result};
use crate::fields::Fields;
use crate::keyspace::{Entry, Key};
use crate::limits;
use std::collections::BTreeSet;

const NAME: &str = "commit";

/// A position up to which the log was known to be synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncedUpto {
    /// A log segment.
    pub segment: u64,
    /// Offset in it.
    pub offset: u64,
}

/// What one edit does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// The key has this value from here on.
    Put(Entry),
    /// The key is gone from here on.
    Delete(Key),
}

impl Edit {
    /// The key that it changes.
    pub fn key(&self) -> Key {
        match self {
            Self::Put(entry) => entry.key(),
            Self::Delete(key) => *key,
        }
    }
}

/// A commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// What was known to be synced when it was written.
    pub synced_upto: SyncedUpto,
    /// The engine's own time.
    pub hw: u64,
    /// The edits of each request.
    pub requests: Vec<Vec<Edit>>,
}

impl Commit {
    /// Reads the payload that stands at `base` of its file, of a frame with this context.
    pub fn parse(payload: &[u8], context: u64, base: u64) -> Result<Self> {
        let mut f = Fields::new(NAME, payload, base);
        let head = Head::parse(&mut f)?;
        f.check(limits::lsn_after(context, head.request_count).is_some(), Error::Bound)?;
        let mut counts = Vec::new();
        let mut left = head.edit_count;
        for _ in 0..head.request_count {
            let count = f.u32("edits of a request")?;
            f.check(count <= limits::REQUESTS, Error::Bound)?;
            left = left.checked_sub(count).ok_or(Error::Mismatch(f.place()))?;
            counts.push(count);
        }
        f.check(left == 0, Error::Mismatch)?;
        let mut requests = Vec::new();
        for count in counts {
            requests.push(request(&mut f, count)?);
        }
        f.end()?;
        Ok(Self { synced_upto: head.synced_upto, hw: head.hw, requests })
    }

    /// All edits, in order.
    pub fn edits(&self) -> impl Iterator<Item = &Edit> {
        self.requests.iter().flatten()
    }
}

/// The fields in front of the edits.
pub(crate) struct Head {
    pub(crate) request_count: u32,
    pub(crate) synced_upto: SyncedUpto,
    pub(crate) hw: u64,
    pub(crate) edit_count: u32,
}

impl Head {
    pub(crate) fn parse(f: &mut Fields<'_>) -> Result<Self> {
        let version = f.u16("version")?;
        f.check(version <= 1, Error::Newer)?;
        f.check(version == 1, Error::Value)?;
        f.reserved(2)?;
        let request_count = f.u32("request count")?;
        f.check((1..=limits::REQUESTS).contains(&request_count), Error::Bound)?;
        let segment = f.u64("synced_upto segment")?;
        f.check(limits::is_file_id(segment), Error::Bound)?;
        let offset = f.u64("synced_upto offset")?;
        f.check(offset.is_multiple_of(limits::FRAME_ALIGN), Error::Value)?;
        let synced_upto = SyncedUpto { segment, offset };
        let hw = f.u64("hw")?;
        let edit_count = f.u32("edit count")?;
        f.check(edit_count <= limits::EDITS, Error::Bound)?;
        f.reserved(4)?;
        Ok(Self { request_count, synced_upto, hw, edit_count })
    }

    /// The head of the payload at `base`, whatever the edits behind it are.
    pub(crate) fn of(payload: &[u8], base: u64) -> Result<Self> {
        Self::parse(&mut Fields::new(NAME, payload, base))
    }
}

fn request(f: &mut Fields<'_>, count: u32) -> Result<Vec<Edit>> {
    let mut keys = BTreeSet::new();
    let mut edits = Vec::new();
    for _ in 0..count {
        let start = f.next();
        let edit = edit(f)?;
        if !keys.insert(edit.key()) {
            return Err(Error::Order(crate::Place { structure: NAME, field: "key", offset: start }));
        }
        edits.push(edit);
    }
    Ok(edits)
}

fn edit(f: &mut Fields<'_>) -> Result<Edit> {
    let tag = f.u8("tag")?;
    f.check(tag == 1 || tag == 2, Error::Newer)?;
    let version = f.u8("edit version")?;
    f.check(version == 1, Error::Newer)?;
    f.reserved(2)?;
    let length = f.u32("body length")?;
    f.check((4..=limits::EDIT_BODY).contains(&length), Error::Bound)?;
    let base = f.next();
    let size = usize::try_from(length).map_err(|_| Error::Bound(f.place()))?;
    let mut body = Fields::new(NAME, f.take("body", size)?, base);
    let keyspace = body.u8("keyspace")?;
    body.check(crate::keyspace::keyspace_name(keyspace).is_some(), Error::Newer)?;
    body.reserved(1)?;
    let key_length = body.u16("key length")?;
    body.check(key_length <= limits::EDIT_KEY, Error::Bound)?;
    let key_base = body.next();
    let key = Key::parse(keyspace, body.take("key", usize::from(key_length))?, key_base)?;
    if tag == 2 {
        body.end()?;
        return Ok(Edit::Delete(key));
    }
    let value_base = body.next();
    let value = body.take("value", body.left())?;
    Ok(Edit::Put(key.value(value, value_base)?))
}
