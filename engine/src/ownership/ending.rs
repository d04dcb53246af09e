//! The ends of single artifacts: deleted by whoever has them, or given another time.
//!
//! A deleted artifact keeps its record, its place in lists and its references: bytes are given back elsewhere.

use super::artifact::{self, Named};
use crate::{
    canary::{self, Canary},
    catalog::State,
    error::{Error, Kind, Result},
    format::{
        artifact::Artifact,
        commit::{EDIT_OVERHEAD, Edit},
        keyspace::OwnerKind,
    },
    ids::Time,
};

/// Length of the edits of another end besides that of the record: the old entry in `due`, the new one.
pub const DUE_LEN_MAX: usize = 2 * (EDIT_OVERHEAD + 45);

/// Another end as it is asked for.
#[derive(Clone, Copy, Debug)]
pub struct NewEnd {
    /// The artifact.
    pub named: Named,
    /// When it is to end.
    pub expires_at: Option<Time>,
    /// The version that it must have.
    pub if_version: Option<u64>,
}

/// Deletes an artifact. Doing so to one that is deleted already is done.
pub fn delete(state: &dyn State, named: &Named) -> Result<(Vec<Edit>, Artifact)> {
    let record = named.find(state)?;
    if record.deleted {
        return Ok((Vec::new(), record));
    }
    let next = deleted(&record);
    Ok((vec![artifact::record_of(&next)], next))
}

/// The record of an artifact that is deleted. The flag is set also where time or a fence ended it before: neither a clock that goes
/// back nor a lost fence shows again what somebody deleted.
pub(super) fn deleted(record: &Artifact) -> Artifact {
    Artifact { deleted: true, version: record.version.saturating_add(1), ..record.clone() }
}

/// Gives an artifact another end. What ended already ended for good.
pub fn set_expiry(state: &dyn State, now: Time, new: &NewEnd) -> Result<(Vec<Edit>, Artifact)> {
    let record = new.named.find(state)?;
    if record.owner.kind == OwnerKind::Conversation {
        let what = "what a conversation owns lives as long as it does: it takes no expiry of its own";
        return Err(Error::new(Kind::NotExpirable, what).of_artifact(record.id));
    }
    artifact::check_readable(artifact::life(state, new.named.tenant, &record, now)?, record.id)?;
    artifact::check_expiry(new.expires_at, now)?;
    if new.expires_at.is_none() && record.owner.kind != OwnerKind::Account {
        return Err(Error::new(Kind::InvalidArgument, "what waits to be claimed always has an end"));
    }
    if new.if_version.is_some_and(|version| version != record.version) {
        let what = format!("the artifact has version {}: look at it again", record.version);
        return Err(Error::new(Kind::VersionConflict, what).of_artifact(record.id));
    }
    let next = Artifact { expires_at: new.expires_at, version: record.version.saturating_add(1), ..record.clone() };
    let mut edits = vec![artifact::record_of(&next)];
    let before = if canary::sings(Canary::OldEndStays) { None } else { record.expires_at };
    artifact::move_due(&next, before, &mut edits);
    Ok((edits, next))
}
