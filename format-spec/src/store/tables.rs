//! The state that the tables give, before the log's commits.
//!
//! It takes each page from whichever copy is good, and names the other.

use super::Catalog;
use crate::bytes::{Bytes, read_vec};
use crate::commit::Edit;
use crate::error::{Error, Place, Result};
use crate::files::{Files, table_names};
use crate::log::chain::stop_if_newer;
use crate::manifest::{Manifest, TableFile};
use crate::problem::{ProblemKind, Problems};
use crate::superblock::Superblock;
use crate::table::{Header, PAGE, Pages, check_page, rows};

/// Both copies of a table.
struct Copies<'f> {
    table: &'f TableFile,
    uuid: crate::Id16,
    names: Vec<String>,
    files: Vec<Option<Box<dyn Bytes + 'f>>>,
}

impl Copies<'_> {
    fn of_copy(&self, copy: usize, number: u32) -> Result<Vec<u8>> {
        let offset = u64::from(number) * PAGE;
        let missing = Error::Short(Place { structure: "table", field: "page", offset });
        let bytes = self.files.get(copy).and_then(Option::as_ref).ok_or_else(|| missing.clone())?;
        if offset + PAGE > bytes.len() {
            return Err(missing);
        }
        let page = read_vec(&**bytes, offset, PAGE)?;
        check_page(&page, &self.uuid, self.table.id, number)?;
        Ok(page)
    }

    /// Names every bad page of every copy. False if a page has no good copy.
    fn check(&self, problems: &mut Problems) -> bool {
        for (name, bytes) in self.names.iter().zip(&self.files) {
            match bytes {
                None => problems.add(ProblemKind::Missing, name, (0, 0), "a table that the manifest names"),
                Some(bytes) if bytes.len() > u64::from(self.table.pages) * PAGE => {
                    let place = (u64::from(self.table.pages) * PAGE, 0);
                    problems.add(ProblemKind::Table, name, place, "longer than the manifest says");
                }
                Some(_) => {}
            }
        }
        let mut whole = true;
        for number in 0..self.table.pages {
            let bad: Vec<(usize, Error)> =
                (0..self.files.len()).filter_map(|copy| Some((copy, self.of_copy(copy, number).err()?))).collect();
            let lost = bad.len() == self.files.len();
            whole &= !lost;
            for (copy, error) in bad {
                let (Some(name), Some(Some(_))) = (self.names.get(copy), self.files.get(copy)) else { continue };
                problems.add(ProblemKind::Table, name, (u64::from(number) * PAGE, PAGE), error.to_string());
            }
        }
        whole
    }
}

impl Pages for Copies<'_> {
    fn page(&self, number: u32) -> Result<Vec<u8>> {
        self.of_copy(0, number).or_else(|error| if self.files.len() > 1 { self.of_copy(1, number) } else { Err(error) })
    }
}

/// Reads all tables of a manifest into a catalog.
pub(super) fn read(
    files: &dyn Files,
    superblock: &Superblock,
    manifest: &Manifest,
    problems: &mut Problems,
) -> Result<Catalog> {
    let mut catalog = Catalog::default();
    for table in &manifest.tables {
        let names: Vec<String> = table_names(table.id).into_iter().take(if table.mirrored { 2 } else { 1 }).collect();
        let mut opened = Vec::new();
        for name in &names {
            opened.push(files.open(name)?);
        }
        let copies = Copies { table, uuid: superblock.uuid, names, files: opened };
        if !copies.check(problems) {
            continue;
        }
        let read = content(table, superblock, &copies);
        let wrong = read.as_ref().err().map(ToString::to_string);
        let Some(edits) = stop_if_newer(read)? else {
            let what = wrong.unwrap_or_default();
            let [name, _] = table_names(table.id);
            problems.add(ProblemKind::Table, &name, (0, 0), what);
            continue;
        };
        for edit in &edits {
            catalog.apply(edit);
        }
    }
    Ok(catalog)
}

fn content(table: &TableFile, superblock: &Superblock, copies: &Copies<'_>) -> Result<Vec<Edit>> {
    let header = Header::parse(&copies.page(0)?, table.id)?;
    let place = |field| Place { structure: "table", field, offset: 0 };
    let own = (header.uuid, header.pages, header.first_lsn, header.last_lsn);
    if own != (superblock.uuid, table.pages, table.first_lsn, table.last_lsn) {
        return Err(Error::Mismatch(place("header")));
    }
    let rows = rows(&header, copies)?;
    let bounds = (rows.first().map(|(key, _)| *key), rows.last().map(|(key, _)| *key));
    if bounds != (Some(table.first), Some(table.last)) {
        return Err(Error::Mismatch(place("bounds")));
    }
    Ok(rows.into_iter().map(|(key, entry)| entry.map_or(Edit::Delete(key), Edit::Put)).collect())
}
