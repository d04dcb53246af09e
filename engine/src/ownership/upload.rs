//! Uploads: what holds the chunks of a long stream until its artifact does.

use super::references::{self, Changes, NewFrames};
use crate::{
    catalog::State,
    error::{Error, Kind, Result},
    format::{
        commit::{EDIT_OVERHEAD, Edit},
        keyspace::{Keyspace, upload_key},
        upload::Upload,
    },
    ids::UploadId,
};

/// The record of an upload that goes on or ends; GONE if something ended it before.
pub fn live(state: &dyn State, id: UploadId) -> Result<Upload> {
    state.upload(id)?.ok_or_else(|| Error::new(Kind::Gone, "the upload was ended before it was complete"))
}

/// Begins an upload, or takes it further. References are the caller's: the right edge of the new record is held in the same commit.
pub fn progress(state: &dyn State, id: UploadId, record: &Upload, first: bool) -> Result<Edit> {
    if first {
        if state.upload(id)?.is_some() {
            return Err(Error::new(Kind::Io, "the source of randomness gave an id twice"));
        }
    } else {
        let before = live(state, id)?;
        debug_assert!(before.offset <= record.offset && before.account == record.account);
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
        edits.push(progress(&catalog, ID, &upload, true).expect("new"));
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
        assert_eq!(progress(&catalog, ID, &record(1, &[]), false).expect_err("ended").kind(), Kind::Gone);
    }
}
