//! Short streams: their frames go into the log with their commit, one write and one sync for all.

use std::collections::BTreeMap;

use super::{
    Begun, Ingest,
    commit::{self, Final, Outcome},
    intake::{Intake, Lane, Whole},
    source::Cutter,
};
use crate::{
    codec::Codec,
    commit::Stage,
    digest::Sha256Stream,
    error::Result,
    format::frame::{FrameDraft, FrameKind},
    ids::{ChunkId, Location},
    segment::window::Ahead,
};

/// A frame that has no place yet.
struct Draft {
    kind: FrameKind,
    codec: Codec,
    raw: u32,
    context: u64,
    payload: Vec<u8>,
}

impl Draft {
    fn frame(&self, id: ChunkId) -> FrameDraft<'_> {
        let Self { kind, codec, raw, context, ref payload } = *self;
        FrameDraft { kind, codec, raw, id: id.0, context, payload }
    }
}

/// Frames in memory. They are placed under the commit lock, and only those that are still needed then.
#[derive(Default)]
pub(super) struct Drafts(BTreeMap<ChunkId, Draft>);

impl Drafts {
    /// How many there are and how long they are together.
    pub(super) fn bounds(&self) -> (u64, u64) {
        let len = self.0.iter().map(|(id, draft)| draft.frame(*id).frame_len()).sum();
        (self.0.len() as u64, len)
    }

    /// Places a frame, if it is one of these.
    pub(super) fn place(&self, id: ChunkId, stage: &mut Stage<'_>) -> Option<Location> {
        self.0.get(&id).map(|draft| stage.place(&draft.frame(id)))
    }
}

impl Ahead for Drafts {}

impl Lane for Drafts {
    fn take(&mut self, draft: &FrameDraft<'_>) -> Result<Location> {
        let FrameDraft { kind, codec, raw, id, context, payload } = *draft;
        self.0.insert(ChunkId(id), Draft { kind, codec, raw, context, payload: payload.to_vec() });
        Ok(Location::default())
    }
}

impl Ingest {
    /// Puts a stream that is in memory as a whole.
    pub(super) fn put_small(&self, begun: Begun, mut intake: Intake<'_>, cutter: &mut Cutter<'_>) -> Result<Outcome> {
        let (mut drafts, mut sha256) = (Drafts::default(), Sha256Stream::default());
        while let Some(chunk) = cutter.next()? {
            sha256.update(chunk);
            intake.take(chunk, &mut drafts)?;
        }
        let Whole { mut increment, root, size } = intake.finish(&mut drafts)?;
        let content = self.content(&begun, sha256, root, size)?;
        let last = Final {
            new: begun.with(&content, &self.ground.door),
            content,
            changes: std::mem::take(&mut increment.changes),
            frames: std::mem::take(&mut increment.frames),
            drafts,
            upload: None,
            segments: Vec::new(),
        };
        self.ground.commit.run(commit::finish(last, increment.edits_len_max(), None))
    }
}
