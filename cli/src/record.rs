//! An artifact's record as `stat` and `list` print it.

use std::fmt;

use holdfast::ArtifactInfo;
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
    media_type: String,
    detected_type: Option<String>,
    pub(crate) size: u64,
    sha256: String,
    pub(crate) created_at: String,
    expires_at: Option<String>,
    state: &'static str,
    version: u64,
}

#[derive(Serialize)]
struct Owner {
    kind: &'static str,
    id: String,
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
