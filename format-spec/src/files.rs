//! The files of a store and their names: section 2 of `FORMAT.md`.
//!
//! It does not know where the files are.

use crate::bytes::Bytes;
use crate::error::Result;
use crate::limits;
use std::collections::BTreeMap;

/// The files of a store directory.
pub trait Files {
    /// All names, in any order.
    fn names(&self) -> Vec<String>;

    /// Opens a file; none if there is no such file.
    fn open(&self, name: &str) -> Result<Option<Box<dyn Bytes + '_>>>;
}

impl Files for BTreeMap<String, Vec<u8>> {
    fn names(&self) -> Vec<String> {
        self.keys().cloned().collect()
    }

    fn open(&self, name: &str) -> Result<Option<Box<dyn Bytes + '_>>> {
        Ok(self.get(name).map(|bytes| Box::new(bytes.as_slice()) as Box<dyn Bytes + '_>))
    }
}

/// What a name says that a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileName {
    /// The superblock.
    Superblock,
    /// A manifest: its generation, and whether it is copy `b`.
    Manifest(u64, bool),
    /// A segment.
    Segment(u64),
    /// A table: its id, and whether it is copy `b`.
    Table(u64, bool),
    /// A reserve.
    Reserve(u64),
    /// The lock.
    Lock,
}

impl FileName {
    /// Reads a name; none if it is not one of a store.
    pub fn parse(name: &str) -> Option<Self> {
        if let Some(rest) = name.strip_prefix("manifest-") {
            let (generation, copy) = rest.split_once('.')?;
            return match copy {
                "a" => Some(Self::Manifest(decimal(generation)?, false)),
                "b" => Some(Self::Manifest(decimal(generation)?, true)),
                _ => None,
            };
        }
        if let Some(rest) = name.strip_prefix("table-") {
            let (id, copy) = rest.split_once('.')?;
            let id = decimal(id).filter(|id| limits::is_file_id(*id))?;
            return match copy {
                "a" => Some(Self::Table(id, false)),
                "b" => Some(Self::Table(id, true)),
                _ => None,
            };
        }
        if let Some(id) = name.strip_prefix("segment-") {
            return decimal(id).filter(|id| limits::is_file_id(*id)).map(Self::Segment);
        }
        if let Some(id) = name.strip_prefix("reserve-") {
            return decimal(id).filter(|id| limits::is_file_id(*id)).map(Self::Reserve);
        }
        match name {
            "superblock" => Some(Self::Superblock),
            "LOCK" => Some(Self::Lock),
            _ => None,
        }
    }
}

/// A number of at least 1 in decimal, without sign or leading zero.
fn decimal(text: &str) -> Option<u64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    if plain { text.parse().ok() } else { None }
}

/// The name of a segment.
pub fn segment_name(id: u64) -> String {
    format!("segment-{id}")
}

/// The name of a reserve.
pub fn reserve_name(id: u64) -> String {
    format!("reserve-{id}")
}

/// The names of both copies of a table.
pub fn table_names(id: u64) -> [String; 2] {
    [format!("table-{id}.a"), format!("table-{id}.b")]
}

/// The names of both copies of a manifest.
pub fn manifest_names(generation: u64) -> [String; 2] {
    [format!("manifest-{generation}.a"), format!("manifest-{generation}.b")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_names_of_the_table_are_files_of_a_store() {
        assert_eq!(FileName::parse("segment-10"), Some(FileName::Segment(10)));
        assert_eq!(FileName::parse("manifest-7.b"), Some(FileName::Manifest(7, true)));
        assert_eq!(FileName::parse("table-7.b"), Some(FileName::Table(7, true)));
        for name in [
            "segment-01",
            "segment-0",
            "segment-",
            "segment-+1",
            "segment-9223372036854775808",
            "manifest-1.c",
            "table-01.a",
            "table-1",
        ] {
            assert_eq!(FileName::parse(name), None, "{name}");
        }
    }
}
