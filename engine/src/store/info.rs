//! Records as they are reported.

use std::fmt;

use crate::{
    format::{
        artifact::{Artifact, Origin},
        keyspace::{ListPlace, OwnerKind},
    },
    ids::{ArtifactId, Lsn, Sha256, Time},
    ownership::artifact::Life,
};

/// State of an artifact, computed and not stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArtifactState {
    /// Readable, and waiting to be claimed.
    Pending,
    /// Readable, of its owner.
    Owned,
    /// Its time is over.
    Expired,
    /// It was deleted, or its conversation deleted or reset.
    Deleted,
    /// It was erased.
    Erased,
}

impl ArtifactState {
    /// Its stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Owned => "owned",
            Self::Expired => "expired",
            Self::Deleted => "deleted",
            Self::Erased => "erased",
        }
    }
}

/// An artifact as it is reported.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArtifactInfo {
    /// Its id.
    pub id: ArtifactId,
    /// Tenant, as the caller named it.
    pub tenant: String,
    /// Account, as the caller named it.
    pub account: String,
    /// What owns it.
    pub owner_kind: OwnerKind,
    /// The owner, as the caller named it.
    pub owner_id: String,
    /// Where the bytes came from.
    pub origin: Origin,
    /// File name.
    pub name: String,
    /// What the client says it is, or what its bytes say.
    pub media_type: String,
    /// What its bytes say.
    pub detected_type: Option<String>,
    /// Bytes.
    pub size: u64,
    /// Their SHA-256.
    pub sha256: Sha256,
    /// Length of what it is a part of, if the caller said so.
    pub logical_size: Option<u64>,
    /// True if it is less than that.
    pub truncated: bool,
    /// What it is a later version of.
    pub supersedes: Option<ArtifactId>,
    /// The caller's own order.
    pub order: Option<u64>,
    /// When it was put.
    pub created_at: Time,
    /// When it ends.
    pub expires_at: Option<Time>,
    /// Its state now.
    pub state: ArtifactState,
    /// Rises with each change of owner or expiry.
    pub version: u64,
}

/// Ids as callers gave them.
pub(super) struct Shown {
    pub(super) tenant: String,
    pub(super) account: String,
    pub(super) owner: String,
}

impl ArtifactInfo {
    pub(super) fn new(shown: Shown, artifact: Artifact, life: Life) -> Self {
        let pending = matches!(artifact.owner.kind, OwnerKind::Run | OwnerKind::Upload);
        let state = match life {
            Life::Readable if pending => ArtifactState::Pending,
            Life::Readable => ArtifactState::Owned,
            Life::Expired => ArtifactState::Expired,
            Life::Deleted => ArtifactState::Deleted,
            Life::Erased => ArtifactState::Erased,
        };
        Self {
            id: artifact.id,
            tenant: shown.tenant,
            account: shown.account,
            owner_kind: artifact.owner.kind,
            owner_id: shown.owner,
            origin: artifact.born.origin,
            name: artifact.name,
            media_type: artifact.media_type,
            detected_type: Some(artifact.detected_type).filter(|t| !t.is_empty()),
            size: artifact.size,
            sha256: artifact.sha256,
            logical_size: artifact.logical_size,
            truncated: artifact.truncated,
            supersedes: artifact.supersedes,
            order: artifact.born.order,
            created_at: artifact.born.time,
            expires_at: artifact.expires_at,
            state,
            version: artifact.version,
        }
    }

    /// What became of it.
    pub(super) const fn life(&self) -> Life {
        match self.state {
            ArtifactState::Pending | ArtifactState::Owned => Life::Readable,
            ArtifactState::Expired => Life::Expired,
            ArtifactState::Deleted => Life::Deleted,
            ArtifactState::Erased => Life::Erased,
        }
    }
}

/// Place in a list, to go on from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cursor(pub(super) ListPlace);

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.0.attach_lsn.0, self.0.position)
    }
}

impl Cursor {
    /// Reads a cursor as [`Display`](fmt::Display) writes it.
    pub fn parse(text: &str) -> Option<Self> {
        let (lsn, position) = text.split_once('-')?;
        Some(Self(ListPlace { attach_lsn: Lsn(lsn.parse().ok()?), position: position.parse().ok()? }))
    }
}

/// Order of a list that is not that in which its artifacts came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ListOrder {
    /// The caller's own. What was put without one comes last; what is equal, in the order in which it came.
    Native,
    /// By name, byte by byte; what is equal, in the order in which it came.
    Name,
}

/// A page of a list.
#[derive(Clone, Default, Debug)]
pub struct ListPage {
    /// The artifacts.
    pub artifacts: Vec<ArtifactInfo>,
    /// Where the next page begins, if there may be one.
    pub next: Option<Cursor>,
}
