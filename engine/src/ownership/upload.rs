//! Uploads: what holds the chunks of a long stream until its artifact does. A plain one is a put's own and ends with it; one that a
//! caller began goes on over pauses and restarts.

use super::{
    account, fences,
    references::{self, Changes, NewFrames},
};
use crate::{
    catalog::State,
    digest::{ScopeKind, Sha256Stream},
    error::{Error, Kind, Result},
    format::{
        commit::{EDIT_OVERHEAD, Edit},
        keyspace::{AccountRef, Keyspace, upload_key},
        upload::Upload,
    },
    ids::{Lsn, ScopeHash, Time, UploadId},
    limits::UPLOAD_IDLE_MS,
};

/// Length of the edits that begin an upload at most: record, account.
pub const BEGIN_LEN_MAX: usize = EDIT_OVERHEAD + 16 + 68 + 256 + account::RECORD_LEN_MAX;

/// An upload that a caller began and asks for.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// Its tenant's name.
    pub tenant: ScopeHash,
    /// The account that it must be of.
    pub account: AccountRef,
    /// Its id.
    pub id: UploadId,
}

impl Named {
    /// Its record. One of another account, and a put under way, is as unknown as one that there is not.
    pub fn find(&self, state: &dyn State) -> Result<Upload> {
        let found = state.upload(self.id)?;
        let found = found.filter(|found| found.account == self.account && found.sha_state.is_some());
        found
            .ok_or_else(|| Error::new(Kind::NotFound, "no such upload here: it was committed or aborted, or never was"))
    }

    /// The same, if somebody may go on with it.
    pub fn live(&self, state: &dyn State, now: Time) -> Result<Upload> {
        let found = self.find(state)?;
        if found.expires_at.is_some_and(|end| now >= end) {
            return Err(Error::new(Kind::Gone, "nothing was added to the upload for too long"));
        }
        fences::check(state, found.begin_lsn, true, self.scopes())?;
        Ok(found)
    }

    /// The same, if it has so many bytes.
    pub fn at(&self, state: &dyn State, now: Time, offset: u64) -> Result<Upload> {
        let found = self.live(state, now)?;
        if found.offset != offset {
            return Err(Error::new(Kind::OffsetConflict, format!("the upload goes on at offset {}", found.offset)));
        }
        Ok(found)
    }

    const fn scopes(&self) -> [fences::Fenced; 2] {
        [(ScopeKind::Tenant, self.tenant), (ScopeKind::Account, self.account.account)]
    }
}

/// Begins an upload without a byte.
pub fn begin(
    state: &dyn State,
    lsn: Lsn,
    now: Time,
    named: &Named,
    owner: &account::Named,
    declared: Option<u64>,
) -> Result<(Vec<Edit>, Upload)> {
    fences::check_open(state, named.scopes())?;
    let record = Upload {
        account: named.account,
        begin_lsn: lsn,
        created_at: now,
        offset: 0,
        declared,
        expires_at: Some(idle_end(now)),
        sha_state: Some(Sha256Stream::default().saved()),
        tail: None,
        right_edge: Vec::new(),
    };
    let mut edits = vec![progress(state, named.id, &record, None)?];
    edits.extend(account::first_write(state, lsn, now, owner)?);
    Ok((edits, record))
}

/// Takes an upload further than `offset`, and puts off its end. References are the caller's, as in [`progress`].
pub fn advance(state: &dyn State, now: Time, named: &Named, offset: u64, record: &Upload) -> Result<Edit> {
    named.at(state, now, offset)?;
    progress(state, named.id, &Upload { expires_at: Some(idle_end(now)), ..record.clone() }, Some(offset))
}

const fn idle_end(now: Time) -> Time {
    Time(now.0.saturating_add(UPLOAD_IDLE_MS))
}

/// The record of an upload that goes on or ends; GONE if something ended it before.
pub fn live(state: &dyn State, id: UploadId) -> Result<Upload> {
    state.upload(id)?.ok_or_else(|| Error::new(Kind::Gone, "the upload was ended before it was complete"))
}

/// Begins an upload, or takes it further than the offset that it has. References are the caller's: the right edge of the new record is
/// held in the same commit.
pub fn progress(state: &dyn State, id: UploadId, record: &Upload, before: Option<u64>) -> Result<Edit> {
    match before {
        None if state.upload(id)?.is_some() => {
            return Err(Error::new(Kind::Io, "the source of randomness gave an id twice"));
        }
        None => {}
        Some(offset) => {
            let before = live(state, id)?;
            debug_assert!(offset <= record.offset && before.offset == offset && before.account == record.account);
        }
    }
    Ok(Edit::put(Keyspace::Upload, upload_key(id), record.encode()))
}

/// Lets go of everything that an upload holds.
pub fn release(upload: &Upload, changes: &mut Changes) {
    for entry in upload.held() {
        changes.release(entry.id);
    }
}

/// Removes the record. Its root goes to a blob, or what it holds was released.
pub fn end(id: UploadId) -> Edit {
    Edit::delete(Keyspace::Upload, upload_key(id))
}

/// Ends an upload without a result. No edits if it ended before.
pub fn abort(state: &dyn State, id: UploadId) -> Result<Vec<Edit>> {
    let Some(upload) = state.upload(id)? else { return Ok(Vec::new()) };
    let mut changes = Changes::default();
    release(&upload, &mut changes);
    let settled = references::settle(state, &changes, &NewFrames::new())?;
    let mut edits = references::edits(&settled, |_| unreachable!("without new frames none is taken"));
    edits.push(end(id));
    Ok(edits)
}

/// Length of the edits of an abort at most.
pub fn abort_len_max(upload: &Upload) -> usize {
    upload.held().count() * references::EDITS_LEN_MAX + END_LEN
}

/// Length of the edit that removes a record.
pub const END_LEN: usize = EDIT_OVERHEAD + 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        catalog::Catalog,
        codec::Codec,
        format::{frame::FrameKind, keyspace::AccountRef, page::PageEntry, value::ChunkValue},
        ids::{ChunkId, FileId, Location, Lsn, ScopeHash, TenantNumber, Time},
        ownership::references::NewFrame,
    };

    const ID: UploadId = UploadId([7; 16]);

    fn record(offset: u64, chunks: &[u8]) -> Upload {
        let entry = |n: &u8| PageEntry { id: ChunkId([*n; 32]), len: 1 };
        Upload {
            account: AccountRef { tenant: TenantNumber(1), account: ScopeHash([2; 16]) },
            begin_lsn: Lsn::FIRST,
            created_at: Time(3),
            offset,
            declared: None,
            expires_at: None,
            sha_state: None,
            tail: None,
            right_edge: vec![chunks.iter().map(entry).collect()],
        }
    }

    fn frame() -> NewFrame {
        let value = ChunkValue {
            location: Location { segment: FileId(2), offset: 8192 },
            stored: 1,
            raw: 1,
            tenant: TenantNumber(1),
            codec: Codec::Raw,
            kind: FrameKind::Chunk,
            references: 0,
        };
        NewFrame { value, replaces: None }
    }

    fn apply(catalog: &mut Catalog, edits: &[Edit]) {
        for edit in edits {
            catalog.apply(edit).expect("applies");
        }
    }

    #[test]
    fn an_aborted_upload_releases_each_entry_as_often_as_it_holds_it() {
        let mut catalog = Catalog::default();
        let upload = record(3, &[1, 2, 1]);
        let frames: NewFrames = [1, 2].map(|n| (ChunkId([n; 32]), frame())).into();
        let mut changes = Changes::default();
        upload.held().for_each(|entry| changes.hold(entry.id));
        let settled = references::settle(&catalog, &changes, &frames).expect("settles");
        let mut edits = references::edits(&settled, |id| frames[&id].value);
        edits.push(progress(&catalog, ID, &upload, None).expect("new"));
        apply(&mut catalog, &edits);
        assert_eq!(catalog.chunk(ChunkId([1; 32])).expect("reads").expect("there").references, 2);

        let edits = abort(&catalog, ID).expect("aborts");
        assert!(edits.iter().map(Edit::encoded_len).sum::<usize>() <= abort_len_max(&upload));
        apply(&mut catalog, &edits);
        assert_eq!(catalog.usage().chunks, 0);
        assert_eq!(catalog.count(Keyspace::Zero), 2);
        assert_eq!(catalog.count(Keyspace::Upload), 0);
        assert_eq!(abort(&catalog, ID).expect("ended before"), []);
    }

    #[test]
    fn an_upload_that_was_ended_does_not_come_back() {
        let catalog = Catalog::default();
        assert_eq!(progress(&catalog, ID, &record(1, &[]), Some(0)).expect_err("ended").kind(), Kind::Gone);
    }
}
