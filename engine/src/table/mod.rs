//! One table file and its mirror: building, writing, reading. It knows nothing of other tables, of the log, or of what entries mean.

use crate::{
    disk::{self, Disk, Name, OpenOptions, SyncKind},
    error::{Error, Result},
    format::{keyspace::Keyspace, manifest::ManifestTable},
    ids::FileId,
};

pub mod builder;
mod cache;
mod cursor;
mod reader;
#[cfg(test)]
mod tests;

pub use builder::{Builder, Built};
pub use cursor::Cursor;
pub use reader::{Ground, Repairs, Table};

/// A key with its value; `None` for a deletion.
pub type Entry = (Vec<u8>, Option<Vec<u8>>);

/// A place in the order of entries: keyspace, then key.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Bound {
    /// The keyspace.
    pub keyspace: Keyspace,
    /// The key.
    pub key: Vec<u8>,
}

/// Names of a table and of its mirror.
pub fn names(id: FileId) -> [Name; 2] {
    ["a", "b"].map(|copy| Name::new(&format!("table-{id}.{copy}")).expect("a flat name"))
}

/// Id of a table's name.
pub fn parse_name(name: &Name) -> Option<FileId> {
    let rest = name.as_str().strip_prefix("table-")?;
    let digits = rest.strip_suffix(".a").or_else(|| rest.strip_suffix(".b"))?;
    let id = digits.parse::<u64>().ok()?;
    (id >= 1 && id.to_string() == digits).then_some(FileId(id))
}

/// Writes a table and its mirror and syncs both; the caller syncs the directory, and destroys what a failure leaves: its id is burnt.
pub fn write(disk: &dyn Disk, id: FileId, built: &Built) -> Result<ManifestTable> {
    for (copy, name) in names(id).iter().enumerate() {
        write_copy(disk, name, &built.bytes, copy == 1)?;
    }
    Ok(built.manifest(id))
}

fn write_copy(disk: &dyn Disk, name: &Name, bytes: &[u8], mirror: bool) -> Result<()> {
    use crate::canary::{Canary, sings};
    let io = |e| Error::io(e, name, "write a table");
    let file = disk::retry(|| disk.open(name, OpenOptions::CREATE)).map_err(io)?;
    disk::write_all(&*file, bytes, 0).map_err(io)?;
    if sings(Canary::TableNotSynced) || (mirror && sings(Canary::MirrorNotSynced)) {
        return Ok(());
    }
    let mut synced = disk::retry(|| file.sync(SyncKind::All));
    if sings(Canary::TableSyncRetried) && synced.is_err() {
        synced = file.sync(SyncKind::All);
    }
    synced.map_err(io)
}
