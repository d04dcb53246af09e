//! Tables: every page of both copies, and that what their trees and buckets hold is what their headers say.

use super::Run;
use crate::{
    disk,
    error::{Error, Kind, Result},
    format::{
        keyspace::Keyspace,
        table::{PAGE_LEN, Section},
    },
    sync::Arc,
    table::{self, Cursor, Table},
};

impl Run<'_> {
    /// Reads every page of every copy, past the cache. A page that is bad in one copy is damage that reading stands; in both, what it
    /// held is lost, and named.
    pub(super) fn tables(&mut self) -> Result<()> {
        let tables = self.catalog.read().tables();
        for table in tables.all() {
            for (copy, name) in table::names(table.meta.id).iter().enumerate().take(table.copies()) {
                self.length(table, name)?;
                for number in 0..table.meta.pages {
                    match table.copy_of_page(number, copy) {
                        Ok(_) => {}
                        Err(e) if e.place().offset.is_none() && e.kind() == Kind::Corrupt => break,
                        Err(e) if e.kind() == Kind::Corrupt => {
                            self.problem(name, u64::from(number) * PAGE_LEN as u64, e.message().to_owned());
                        }
                        Err(e) => return Err(e),
                    }
                }
            }
            match self.content_of_table(table) {
                Err(e) if e.kind() == Kind::Corrupt => self.report.problems.push((&e).into()),
                result => result?,
            }
        }
        Ok(())
    }

    /// A file that is missing was named by the open.
    fn length(&mut self, table: &Table, name: &disk::Name) -> Result<()> {
        let file = match disk::retry(|| self.disk.open(name, disk::OpenOptions::READ)) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(Error::io(e, name, "open a table")),
        };
        let len = disk::retry(|| file.len()).map_err(|e| Error::io(e, name, "read a length"))?;
        let wanted = u64::from(table.meta.pages) * PAGE_LEN as u64;
        if len != wanted {
            self.problem(name, len.min(wanted), "table length");
        }
        Ok(())
    }

    fn content_of_table(&mut self, table: &Arc<Table>) -> Result<()> {
        let header = table.header()?.clone();
        for section in &header.sections {
            self.section(table, section)?;
        }
        Ok(())
    }

    fn section(&mut self, table: &Arc<Table>, section: &Section) -> Result<()> {
        let keyspace: Keyspace = section.keyspace;
        let [name, _] = table::names(table.meta.id);
        let offset = u64::from(section.first) * PAGE_LEN as u64;
        let mut cursor = Cursor::new(Arc::clone(table), keyspace, &[])?;
        let filter = if section.filter > 0 { Some(table.read_filter(section)?) } else { None };
        let (mut count, mut last): (u32, Option<Vec<u8>>) = (0, None);
        while let Some((key, _)) = cursor.next_entry()? {
            let hidden = filter.as_ref().is_some_and(|f| !f.may_have(crate::format::table::filter_key(keyspace, &key)));
            if last.as_ref().is_some_and(|last| *last >= key) || !table.covers(keyspace, &key) || hidden {
                self.problem(&name, offset, "a key of a table out of its order, its range or its filter");
            }
            count = count.saturating_add(1);
            last = Some(key);
        }
        if count != section.entries {
            self.problem(&name, offset, "a section of a table with another number of entries than its header says");
        }
        Ok(())
    }
}
