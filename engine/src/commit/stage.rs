//! Staged state, as a request sees it while it is decided.

use std::collections::BTreeMap;

use crate::{
    catalog::{State, View},
    error::Result,
    format::{commit::Edit, frame::FrameDraft, keyspace::Keyspace},
    ids::{Location, Lsn, Time},
    log::Group,
};

/// Edits that have an LSN and are not durable yet.
#[derive(Default)]
pub(super) struct Overlay(BTreeMap<(Keyspace, Vec<u8>), Option<Vec<u8>>>);

impl Overlay {
    pub(super) fn stage(&mut self, edits: &[Edit]) {
        for edit in edits {
            self.0.insert((edit.keyspace, edit.key.clone()), edit.value.clone());
        }
    }
}

/// What a decision may look at and add to.
pub struct Stage<'a> {
    published: View<'a>,
    overlay: &'a Overlay,
    frames: &'a mut Group,
    lsn: Lsn,
    now: Time,
}

impl<'a> Stage<'a> {
    pub(super) const fn new(
        published: View<'a>,
        overlay: &'a Overlay,
        frames: &'a mut Group,
        lsn: Lsn,
        now: Time,
    ) -> Self {
        Self { published, overlay, frames, lsn, now }
    }

    /// The request's own LSN.
    pub const fn lsn(&self) -> Lsn {
        self.lsn
    }

    /// The later of engine time and wall clock.
    pub const fn now(&self) -> Time {
        self.now
    }

    /// Puts a chunk or page into the group and says where it will stand.
    pub fn place(&mut self, draft: &FrameDraft<'_>) -> Location {
        self.frames.place(draft)
    }
}

impl State for Stage<'_> {
    fn get(&self, keyspace: Keyspace, key: &[u8]) -> Result<Option<Vec<u8>>> {
        match self.overlay.0.get(&(keyspace, key.to_vec())) {
            Some(staged) => Ok(staged.clone()),
            None => self.published.get(keyspace, key),
        }
    }
}
