//! An artifact's record as `stat` and `list` print it.

use std::fmt;

use holdfast::{ArtifactInfo, ClaimedInfo};
use serde::Serialize;

use crate::values::time_text;

/// The stable JSON names of a record.
#[derive(Serialize)]
pub(crate) struct Record {
    pub(crate) id: String,
    tenant: String,
    account: String,
    owner: Owner,
    origin: &'static str,
    pub(crate) name: String,
    pub(crate) media_type: String,
    detected_type: Option<String>,
    pub(crate) size: u64,
    pub(crate) sha256: String,
    logical_size: Option<u64>,
    truncated: bool,
    supersedes: Option<String>,
    pub(crate) created_at: String,
    pub(crate) expires_at: Option<String>,
    pub(crate) state: &'static str,
    pub(crate) version: u64,
}

#[derive(Serialize)]
struct Owner {
    kind: &'static str,
    id: String,
}

/// What a claim or fork brought: a record, or what became of it since.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Brought {
    Here(Box<Record>),
    Gone { id: String, gone: &'static str },
}

impl From<ClaimedInfo> for Brought {
    fn from(claimed: ClaimedInfo) -> Self {
        match claimed {
            ClaimedInfo::Here(info) => Self::Here(Box::new(Record::from(*info))),
            ClaimedInfo::Gone(id, gone) => Self::Gone { id: id.to_string(), gone },
        }
    }
}

impl fmt::Display for Brought {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Here(record) => write!(f, "{}  {:>12}  {}", record.id, record.size, record.name),
            Self::Gone { id, gone } => write!(f, "{id}  {gone}"),
        }
    }
}

impl From<ArtifactInfo> for Record {
    fn from(info: ArtifactInfo) -> Self {
        Self {
            id: info.id.to_string(),
            tenant: info.tenant,
            account: info.account,
            owner: Owner { kind: info.owner_kind.as_str(), id: info.owner_id },
            origin: info.origin.as_str(),
            name: info.name,
            media_type: info.media_type,
            detected_type: info.detected_type,
            size: info.size,
            sha256: info.sha256.to_string(),
            logical_size: info.logical_size,
            truncated: info.truncated,
            supersedes: info.supersedes.map(|id| id.to_string()),
            created_at: time_text(info.created_at),
            expires_at: info.expires_at.map(time_text),
            state: info.state.as_str(),
            version: info.version,
        }
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "id             {}", self.id)?;
        writeln!(f, "name           {}", self.name)?;
        writeln!(f, "size           {}", self.size)?;
        if let Some(whole) = self.logical_size.filter(|_| self.truncated) {
            writeln!(f, "truncated      the whole has {whole} bytes")?;
        }
        if let Some(before) = &self.supersedes {
            writeln!(f, "supersedes     {before}")?;
        }
        writeln!(f, "sha256         {}", self.sha256)?;
        writeln!(f, "media type     {}", self.media_type)?;
        writeln!(f, "detected type  {}", self.detected_type.as_deref().unwrap_or("-"))?;
        writeln!(f, "owner          {} {}", self.owner.kind, self.owner.id)?;
        writeln!(f, "account        {} of tenant {}", self.account, self.tenant)?;
        writeln!(f, "origin         {}", self.origin)?;
        writeln!(f, "created        {}", self.created_at)?;
        writeln!(f, "expires        {}", self.expires_at.as_deref().unwrap_or("never"))?;
        write!(f, "state          {}, version {}", self.state, self.version)
    }
}
