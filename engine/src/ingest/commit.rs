//! The requests of a stream: what is decided under the commit lock, against staged state.

use super::{bulk::SEGMENT_EDIT_LEN, intake::Increment, small::Drafts};
use crate::{
    catalog::State,
    commit::{Request, Stage},
    error::Result,
    format::{
        artifact::Artifact,
        commit::{EDIT_OVERHEAD, Edit},
        upload::Upload,
        value::ChunkValue,
    },
    ids::UploadId,
    ownership::{
        artifact::{self, Content, NewArtifact},
        references::{self, Changes, NewFrames},
        upload,
    },
};

/// An upload record as the stream last committed it.
#[derive(Clone, Copy)]
pub(super) struct Progress {
    pub(super) id: UploadId,
    /// Entries that it holds.
    pub(super) held: usize,
    /// Bytes that it has.
    pub(super) offset: u64,
}

impl Progress {
    pub(super) fn of(id: UploadId, record: &Upload) -> Self {
        Self { id, held: record.held().count(), offset: record.offset }
    }

    /// Length of the edits that release what it holds and remove it, at most.
    const fn release_len_max(self) -> usize {
        self.held * references::EDITS_LEN_MAX + upload::END_LEN
    }
}

/// A put's answer.
pub(super) struct Outcome {
    pub(super) artifact: Artifact,
    pub(super) replayed: bool,
}

/// The last commit of a stream.
pub(super) struct Final {
    pub(super) new: NewArtifact,
    pub(super) content: Content,
    pub(super) changes: Changes,
    pub(super) frames: NewFrames,
    /// Frames that are placed by the commit.
    pub(super) drafts: Drafts,
    /// The upload record, if the stream made one.
    pub(super) upload: Option<UploadId>,
    /// Edits that name bulk segments.
    pub(super) segments: Vec<Edit>,
}

impl Final {
    pub(super) fn decide(mut self, stage: &mut Stage<'_>) -> Result<(Vec<Edit>, Outcome)> {
        let now = stage.now();
        let (more, outcome) = match artifact::put(stage, stage.lsn(), now, &self.new, &self.content)? {
            artifact::Outcome::Replayed(edits, artifact) => (edits, Outcome { artifact, replayed: true }),
            artifact::Outcome::New(edits, artifact) => (edits, Outcome { artifact, replayed: false }),
        };
        let mut edits = self.segments;
        if outcome.replayed || stage.blob(self.content.key)?.is_some() {
            // Nothing of the stream is needed but what heals: the blob that is there has the same recipe.
            self.changes = Changes::default();
            // Of two commits of one upload the first has ended it.
            let upload = self.upload.map(|id| stage.upload(id)).transpose()?.flatten();
            if let Some(upload) = upload {
                upload::release(&upload, &mut self.changes);
            }
        } else if let Some(id) = self.upload {
            // What its right edge held is in the pages now, and the root, which is left of it, goes to the blob.
            upload::live(stage, id)?;
        }
        edits.extend(self.upload.map(upload::end));
        let settled = references::settle(stage, &self.changes, &self.frames)?;
        let (frames, drafts) = (&self.frames, &self.drafts);
        edits.extend(references::edits(&settled, |id| {
            let value = frames[&id].value;
            drafts.place(id, stage).map_or(value, |location| ChunkValue { location, ..value })
        }));
        edits.extend(more);
        Ok((edits, outcome))
    }
}

/// The request of a last commit.
pub(super) fn finish(last: Final, known_len_max: usize, before: Option<Progress>) -> Request<Outcome> {
    let released = before.map_or(0, Progress::release_len_max);
    let len = artifact::PUT_LEN_MAX + known_len_max + released + last.segments.len() * SEGMENT_EDIT_LEN;
    let (frames, frame_bytes) = last.drafts.bounds();
    Request::new(len, |stage| last.decide(stage)).with_frames(frames, frame_bytes)
}

/// The request of a progress commit. `record` is the upload as it is to stand; `named` is given for one that a caller began.
pub(super) fn progress(
    id: UploadId,
    record: &Upload,
    increment: &mut Increment,
    segments: Vec<Edit>,
    before: Option<Progress>,
    named: Option<upload::Named>,
) -> Request<()> {
    let held = before.map_or(0, Progress::release_len_max);
    let len = EDIT_OVERHEAD + 16 + record.encode().len() + increment.edits_len_max() + held;
    let len = len + segments.len() * SEGMENT_EDIT_LEN;
    let (changes, frames) = (std::mem::take(&mut increment.changes), std::mem::take(&mut increment.frames));
    let (record, offset) = (record.clone(), before.map(|before| before.offset));
    Request::new(len, move |stage| {
        let mut edits = vec![match (named, offset) {
            (Some(named), Some(offset)) => upload::advance(stage, stage.now(), &named, offset, &record)?,
            _ => upload::progress(stage, id, &record, offset)?,
        }];
        let settled = references::settle(stage, &changes, &frames)?;
        edits.extend(references::edits(&settled, |id| frames[&id].value));
        edits.extend(segments);
        Ok((edits, ()))
    })
}

/// The request that gives up what a stream committed before it failed. It gives space back, so it may use the reserve.
pub(super) fn abort(progress: Progress) -> Request<()> {
    Request::new(progress.release_len_max(), move |stage| Ok((upload::abort(stage, progress.id)?, ()))).privileged()
}
