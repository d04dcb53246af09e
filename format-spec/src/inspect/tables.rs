//! Prints a table.

use super::{Record, lsn};
use crate::bytes::{Bytes, read_vec};
use crate::error::Result;
use crate::keyspace::keyspace_name;
use crate::table::{Header, PAGE, Section, Shape, check_page, kind_name, page_head};

/// The header and the sections; with `pages`, a record a page. Damaged pages are named in any case.
pub(super) fn print(id: u64, bytes: &dyn Bytes, pages: bool, out: &mut dyn FnMut(Record)) -> Result<()> {
    let first = read_vec(bytes, 0, bytes.len().min(PAGE))?;
    // The page says of which store it is, and its checksum whether to believe it.
    let uuid = first.get(16..32).and_then(|uuid| uuid.try_into().ok()).unwrap_or_default();
    let header = check_page(&first, &uuid, id, 0).and_then(|()| Header::parse(&first, id));
    match &header {
        Err(error) => out(Record::damage(0, "table header", error)),
        Ok(header) => {
            out(Record::new(0, "table header")
                .with("pages", header.pages)
                .hex("store uuid", &header.uuid)
                .with("id", header.id)
                .with("first LSN", lsn(header.first_lsn))
                .with("last LSN", lsn(header.last_lsn))
                .with("sections", header.sections.len()));
            for section in &header.sections {
                out(section_record(section));
            }
            if bytes.len() != u64::from(header.pages) * PAGE {
                out(Record::new(0, "table")
                    .with("damage", "not as long as its header says")
                    .with("length", bytes.len()));
            }
        }
    }
    for number in 1..u32::try_from(bytes.len() / PAGE).unwrap_or(u32::MAX).min(crate::limits::TABLE_PAGES) {
        let offset = u64::from(number) * PAGE;
        let page = read_vec(bytes, offset, PAGE)?;
        match check_page(&page, &uuid, id, number).and_then(|()| page_head(&page, number)) {
            Err(error) => out(Record::damage(offset, "table page", &error).with("number", number)),
            Ok(head) if pages => out(Record::new(offset, kind_name(head.kind).unwrap_or("page"))
                .with("number", number)
                .with("keyspace", keyspace_name(head.keyspace).unwrap_or("unknown"))
                .with("count", head.count)
                .with("extra", head.extra)
                .with("deletions", head.deleted.count_ones())),
            Ok(_) => {}
        }
    }
    Ok(())
}

fn section_record(section: &Section) -> Record {
    let offset = u64::from(section.first_page) * PAGE;
    Record::new(offset, "section")
        .with("keyspace", keyspace_name(section.keyspace).unwrap_or("unknown"))
        .with("shape", if section.shape == Shape::Buckets { "buckets" } else { "tree" })
        .with("height", section.height)
        .with("entries", section.entries)
        .with("first page", section.first_page)
        .with("data pages", section.data_pages)
        .with("extra pages", section.extra_pages)
        .with("filter pages", section.filter_pages)
        .with("fingerprints", section.filter.map_or(0, |filter| filter.fingerprints))
}
