//! Writing damaged copies again from good ones: superblock, manifest, headers of segments, pages of tables.
//!
//! Only bytes of a copy that does not hold are overwritten, and only while another copy holds, so that a crash on the way leaves no less
//! than before. Nothing is deleted, and nothing is guessed: what has no good copy is left as it is, for `verify` to name.

use std::collections::BTreeMap;

use crate::{
    digest::file_digest,
    disk::{self, Disk, File, LockMode, Name, OpenOptions, SyncKind},
    error::{Error, Kind, Result},
    format::{
        segment_header, superblock as format,
        table::{PAGE_LEN, Page},
    },
    ids::{Epoch, FileId},
    manifest,
    recovery::{self, Rebuilt, init},
    segment, superblock,
    sync::Arc,
    table::{self, Table},
};

/// What is written again in a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Repair {
    /// What it is a copy of.
    pub what: Mended,
    /// The file.
    pub file: String,
    /// How many bytes.
    pub bytes: u64,
}

/// What has copies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Mended {
    /// A copy of the superblock.
    Superblock,
    /// A manifest.
    Manifest,
    /// A copy of a segment's header.
    Header,
    /// Pages of a table or of its mirror.
    Table,
}

impl Mended {
    /// Its name in the output of commands.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Superblock => "rewrite_superblock",
            Self::Manifest => "rewrite_manifest",
            Self::Header => "rewrite_header",
            Self::Table => "rewrite_table",
        }
    }
}

/// Repairs the store on a disk, under an exclusive lock; `dry` changes nothing, and shares it. `LOCKED`: somebody has it open.
/// `CORRUPT`: no copy of its roots holds. O(tables, segments).
pub fn repair(disk: &Arc<dyn Disk>, dry: bool) -> Result<Vec<Repair>> {
    // Looked at before it is locked: a directory that is no store must not get a `LOCK`.
    init::check_is_store(&**disk)?;
    let mode = if dry { LockMode::Shared } else { LockMode::Exclusive };
    let _lock = recovery::lock(&**disk, mode, "repair")?;
    let rebuilt = recovery::rebuild(disk)?;
    let mut run = Run { disk: &**disk, dry, done: BTreeMap::new(), new_names: false };
    run.tables(&rebuilt)?;
    run.headers(&rebuilt)?;
    run.manifest(&rebuilt)?;
    if run.new_names {
        segment::writer::sync_dir(&**disk)?;
    }
    // Where commits are lost it may be the superblock that is wrong: then no copy of it is touched.
    if rebuilt.report.read_only.is_none() {
        run.superblock(&rebuilt)?;
    }
    Ok(run.done.into_iter().map(|((what, file), bytes)| Repair { what, file, bytes }).collect())
}

struct Run<'a> {
    disk: &'a dyn Disk,
    dry: bool,
    /// Bytes by what they are and where.
    done: BTreeMap<(Mended, String), u64>,
    /// Files were made whose names are not durable yet.
    new_names: bool,
}

impl Run<'_> {
    /// Writes parts of a file, cuts it to its length and syncs. A file that is missing is made.
    fn write(&mut self, what: Mended, name: &Name, len: Option<u64>, parts: &[(u64, &[u8])]) -> Result<()> {
        let bytes: u64 = parts.iter().map(|(_, part)| part.len() as u64).sum();
        *self.done.entry((what, name.to_string())).or_insert(0) += bytes;
        if self.dry {
            return Ok(());
        }
        let io = |e| Error::io(e, name, "write a copy again");
        let file = match disk::retry(|| self.disk.open(name, OpenOptions::WRITE)) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                self.new_names = true;
                disk::retry(|| self.disk.open(name, OpenOptions::CREATE)).map_err(io)?
            }
            file => file.map_err(io)?,
        };
        for (offset, part) in parts {
            disk::write_all(&*file, part, *offset).map_err(io)?;
        }
        if let Some(len) = len.filter(|len| file.len().is_ok_and(|is| is != *len)) {
            disk::retry(|| file.set_len(len)).map_err(io)?;
        }
        disk::retry(|| file.sync(SyncKind::All)).map_err(io)
    }

    fn tables(&mut self, rebuilt: &Rebuilt) -> Result<()> {
        for table in rebuilt.catalog.tables().all().filter(|table| table.copies() == 2) {
            self.table(table)?;
        }
        Ok(())
    }

    /// Memory: the pages of a table, which is at most 16 MiB.
    fn table(&mut self, table: &Table) -> Result<()> {
        let names = table::names(table.meta.id);
        let len = u64::from(table.meta.pages) * PAGE_LEN as u64;
        let mut bad: [Vec<(u64, Arc<Page>)>; 2] = [Vec::new(), Vec::new()];
        for number in 0..table.meta.pages {
            let at = u64::from(number) * PAGE_LEN as u64;
            // A sector that cannot be read is as bad as one that reads wrong: written again, a disk finds it another place.
            match [0, 1].map(|copy| table.copy_of_page(number, copy)) {
                [Ok(page), Err(_)] => bad[1].push((at, page)),
                [Err(_), Ok(page)] => bad[0].push((at, page)),
                [Err(error), Err(other)] => {
                    // What is damaged in both `verify` names; what cannot be read at all may be there yet.
                    [error, other].into_iter().find(|e| e.kind() != Kind::Corrupt).map_or(Ok(()), Err)?;
                }
                [Ok(_), Ok(_)] => {}
            }
        }
        for (name, pages) in names.iter().zip(&bad) {
            // Behind its pages a table has nothing.
            let is_too_long = length(self.disk, name)?.is_some_and(|is| is > len);
            if !pages.is_empty() || is_too_long {
                let parts: Vec<(u64, &[u8])> = pages.iter().map(|(at, page)| (*at, &page[..])).collect();
                self.write(Mended::Table, name, Some(len), &parts)?;
            }
        }
        Ok(())
    }

    /// Headers of which one copy holds and is of the epoch that manifest, log or commits give.
    fn headers(&mut self, rebuilt: &Rebuilt) -> Result<()> {
        for (id, epoch) in rebuilt.segments.all() {
            let file = match segment::open(self.disk, id, OpenOptions::READ) {
                Ok(file) => file,
                Err(e) if e.kind() == Kind::Corrupt => continue,
                Err(e) => return Err(e),
            };
            self.header(rebuilt, &*file, (id, epoch))?;
        }
        Ok(())
    }

    fn header(&mut self, rebuilt: &Rebuilt, file: &dyn File, (id, epoch): (FileId, Epoch)) -> Result<()> {
        let read = segment::read_header(file, rebuilt.superblock.uuid, id)?;
        let Some(header) = read.header.filter(|header| header.epoch == epoch) else { return Ok(()) };
        let bytes = header.encode();
        for (offset, bad) in read.damaged {
            let at = usize::try_from(offset).expect("within the headers");
            // Of two that hold and differ nobody knows which is right.
            if bad.what != segment::COPIES_DIFFER {
                let part = &bytes[at..at + segment_header::LEN];
                self.write(Mended::Header, &segment::name(id), None, &[(offset, part)])?;
            }
        }
        Ok(())
    }

    fn manifest(&mut self, rebuilt: &Rebuilt) -> Result<()> {
        let (generation, len, digest) = rebuilt.superblock.manifest;
        let bytes = rebuilt.manifest.encode();
        if bytes.len() as u64 != len || file_digest(&bytes) != digest {
            return Ok(());
        }
        for name in manifest::names(generation) {
            match manifest::read_copy(self.disk, &name, &rebuilt.superblock) {
                Err(e) if e.kind() == Kind::Corrupt => {
                    self.write(Mended::Manifest, &name, Some(len), &[(0, &bytes)])?;
                }
                read => drop(read?),
            }
        }
        Ok(())
    }

    fn superblock(&mut self, rebuilt: &Rebuilt) -> Result<()> {
        let name = superblock::name();
        let Some(read) = superblock::read(self.disk)? else { return Ok(()) };
        let copies: Vec<(u64, Vec<u8>)> = read
            .damaged
            .iter()
            .map(|(offset, _)| {
                let copy = u32::try_from(offset / format::LEN as u64).expect("one of four");
                (*offset, rebuilt.superblock.encode(copy).to_vec())
            })
            .collect();
        let is_as_long = length(self.disk, &name)?.is_some_and(|len| len == format::FILE_LEN);
        if copies.is_empty() && is_as_long {
            return Ok(());
        }
        let parts: Vec<(u64, &[u8])> = copies.iter().map(|(offset, bytes)| (*offset, &bytes[..])).collect();
        self.write(Mended::Superblock, &name, Some(format::FILE_LEN), &parts)
    }
}

fn length(disk: &dyn Disk, name: &Name) -> Result<Option<u64>> {
    let io = |e| Error::io(e, name, "read a length");
    match disk::retry(|| disk.open(name, OpenOptions::READ)) {
        Ok(file) => disk::retry(|| file.len()).map(Some).map_err(io),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(io(e)),
    }
}
