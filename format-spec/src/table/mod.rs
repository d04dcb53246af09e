//! Tables: section 4b of `FORMAT.md`.
//!
//! It reads one table from whichever copy of a page is good, and does not know the other tables.

mod buckets;
mod filter;
mod tree;

use crate::Id16;
use crate::error::{Error, Place, Result};
use crate::fields::{Fields, crc};
use crate::keyspace::{Entry, Key};
use crate::limits;

/// Length of a page.
pub const PAGE: u64 = 4_096;
/// Where what a page holds begins.
const HEAD: usize = 16;
/// Where its checksum stands.
const SUM: usize = 4_092;
const NAME: &str = "table";

/// How a section is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A hash table whose buckets are pages.
    Buckets,
    /// Sorted leaves below branches.
    Tree,
}

/// A section as the header describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the table")]
pub struct Section {
    pub keyspace: u8,
    pub shape: Shape,
    pub height: u8,
    pub entries: u32,
    pub first_page: u32,
    pub data_pages: u32,
    pub extra_pages: u32,
    pub filter_pages: u32,
    pub low: u64,
    pub high: u64,
    pub filter: Option<FilterShape>,
}

/// What the header says of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the table")]
pub struct FilterShape {
    pub seed: u64,
    pub segment_length: u32,
    pub segment_count_length: u32,
    pub fingerprints: u32,
}

/// Page 0.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the table")]
pub struct Header {
    pub pages: u32,
    pub uuid: Id16,
    pub id: u64,
    pub first_lsn: u64,
    pub last_lsn: u64,
    pub sections: Vec<Section>,
}

/// A key with what a table says of it: an entry, or none for a deletion.
pub type Row = (Key, Option<Entry>);

/// The front of a page behind the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the table")]
pub struct PageHead {
    pub kind: u8,
    pub keyspace: u8,
    pub count: u16,
    pub extra: u32,
    pub deleted: u64,
}

/// The name of a kind of page.
pub fn kind_name(kind: u8) -> Option<&'static str> {
    Some(match kind {
        2 => "bucket",
        3 => "overflow",
        4 => "leaf",
        5 => "large",
        6 => "rest",
        7 => "branch",
        8 => "filter",
        _ => return None,
    })
}

/// Fails unless a page is the one of this number of this table.
pub fn check_page(page: &[u8], uuid: &Id16, id: u64, number: u32) -> Result<()> {
    let offset = u64::from(number) * PAGE;
    let place = Place { structure: "table page", field: "checksum", offset: offset + SUM as u64 };
    let (body, sum) = page.split_at_checked(SUM).ok_or(Error::Short(place))?;
    let sum: [u8; 4] = sum.try_into().map_err(|_| Error::Short(place))?;
    let right = crc(&[uuid, &id.to_le_bytes(), &number.to_le_bytes()], body);
    if u32::from_le_bytes(sum) == right { Ok(()) } else { Err(Error::Checksum(place)) }
}

/// Reads the front of a page whose checksum is good.
pub fn page_head(page: &[u8], number: u32) -> Result<PageHead> {
    let mut f = Fields::new("table page", page, u64::from(number) * PAGE);
    let kind = f.u8("kind")?;
    f.check(kind_name(kind).is_some(), Error::Value)?;
    let keyspace = f.u8("keyspace")?;
    Ok(PageHead { kind, keyspace, count: f.u16("count")?, extra: f.u32("extra")?, deleted: f.u64("deleted")? })
}

/// What a page may hold entries in.
fn content(page: &[u8], number: u32) -> Fields<'_> {
    let content = page.get(HEAD..SUM).unwrap_or_default();
    Fields::new("table page", content, u64::from(number) * PAGE + HEAD as u64)
}

impl Header {
    /// Reads page 0, whose checksum is good.
    pub fn parse(page: &[u8], id: u64) -> Result<Self> {
        let mut f = Fields::new(NAME, page.get(..SUM).unwrap_or_default(), 0);
        let magic = f.take("magic", 8)?;
        f.check(magic == b"HFTABLEF", Error::Value)?;
        let version = f.u32("version")?;
        f.check(version <= 1, Error::Newer)?;
        f.check(version == 1, Error::Value)?;
        let pages = f.u32("pages")?;
        f.check((2..=limits::TABLE_PAGES).contains(&pages), Error::Bound)?;
        let uuid = f.array("store uuid")?;
        let own_id = f.u64("id")?;
        f.check(own_id == id, Error::Mismatch)?;
        let first_lsn = f.u64("first LSN")?;
        f.check(first_lsn > 0, Error::Value)?;
        let last_lsn = f.u64("last LSN")?;
        f.check(last_lsn >= first_lsn, Error::Order)?;
        let count = f.u32("section count")?;
        f.check((1..=limits::TABLE_SECTIONS).contains(&count), Error::Bound)?;
        f.reserved(36)?;
        let mut sections: Vec<Section> = Vec::new();
        let mut next_page = 1;
        for _ in 0..count {
            let section = section(&mut f, next_page)?;
            f.check(sections.last().is_none_or(|before| before.keyspace < section.keyspace), Error::Order)?;
            next_page = section.end();
            sections.push(section);
        }
        f.check(next_page == pages, Error::Mismatch)?;
        f.reserved(f.left())?;
        Ok(Self { pages, uuid, id, first_lsn, last_lsn, sections })
    }
}

impl Section {
    fn end(&self) -> u32 {
        self.first_page + self.data_pages + self.extra_pages + self.filter_pages
    }

    fn extra_first(&self) -> u32 {
        self.first_page + self.data_pages
    }
}

fn section(f: &mut Fields<'_>, next_page: u32) -> Result<Section> {
    let keyspace = f.u8("keyspace")?;
    f.check(crate::keyspace::keyspace_name(keyspace).is_some(), Error::Newer)?;
    let uniform = matches!(keyspace, 10 | 11);
    let shape = match f.u8("shape")? {
        1 if uniform => Shape::Buckets,
        2 if !uniform => Shape::Tree,
        _ => return Err(Error::Value(f.place())),
    };
    let height = f.u8("height")?;
    f.check(shape == Shape::Tree || height == 0, Error::Value)?;
    f.reserved(1)?;
    let entries = f.u32("entries")?;
    f.check(entries > 0, Error::Value)?;
    let first_page = f.u32("first page")?;
    f.check(first_page == next_page, Error::Mismatch)?;
    let mut pages = |field, least: u32| {
        let pages = f.u32(field)?;
        f.check((least..limits::TABLE_PAGES).contains(&pages), Error::Bound)?;
        Ok(pages)
    };
    let (data_pages, extra_pages, filter_pages) =
        (pages("data pages", 1)?, pages("extra pages", 0)?, pages("filter pages", 0)?);
    let tree_holds = (height == 0) == (extra_pages == 0) && u32::from(height) <= extra_pages;
    f.check(shape == Shape::Buckets || tree_holds, Error::Mismatch)?;
    let low = f.u64("low")?;
    let high = f.u64("high")?;
    f.check(if shape == Shape::Buckets { low <= high } else { (low, high) == (0, 0) }, Error::Value)?;
    let seed = f.u64("filter seed")?;
    let segment_length = f.u32("filter segment length")?;
    let segment_count_length = f.u32("filter segment count length")?;
    let fingerprints = f.u32("fingerprints")?;
    let filter = FilterShape { seed, segment_length, segment_count_length, fingerprints };
    let filter = if filter_pages == 0 {
        f.check((seed, segment_length, segment_count_length, fingerprints) == (0, 0, 0, 0), Error::Value)?;
        None
    } else {
        let length = u64::from(segment_count_length) + 2 * u64::from(segment_length);
        let holds = segment_length.is_power_of_two()
            && segment_count_length > 0
            && segment_count_length.is_multiple_of(segment_length)
            && length == u64::from(fingerprints)
            && length.div_ceil((SUM - HEAD) as u64) == u64::from(filter_pages);
        f.check(holds, Error::Mismatch)?;
        Some(filter)
    };
    f.reserved(4)?;
    let pages = (first_page, data_pages, extra_pages, filter_pages);
    let (first_page, data_pages, extra_pages, filter_pages) = pages;
    Ok(Section {
        keyspace,
        shape,
        height,
        entries,
        first_page,
        data_pages,
        extra_pages,
        filter_pages,
        low,
        high,
        filter,
    })
}

/// The pages of a table, each good.
pub trait Pages {
    /// One of them.
    fn page(&self, number: u32) -> Result<Vec<u8>>;
}

impl Pages for &[u8] {
    fn page(&self, number: u32) -> Result<Vec<u8>> {
        let place = Place { structure: NAME, field: "page", offset: u64::from(number) * PAGE };
        let start = usize::try_from(place.offset).unwrap_or(usize::MAX);
        let page = self.get(start..).and_then(|rest| rest.get(..4_096));
        page.map(<[u8]>::to_vec).ok_or(Error::Short(place))
    }
}

/// Reads every entry of a table and checks how it is built: order, buckets, branches, filters, counts.
pub fn rows(header: &Header, pages: &dyn Pages) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for section in &header.sections {
        let found = match section.shape {
            Shape::Buckets => buckets::read(section, pages)?,
            Shape::Tree => tree::read(section, pages)?,
        };
        let offset = u64::from(section.first_page) * PAGE;
        let place = |field| Place { structure: "table section", field, offset };
        if !found.is_sorted_by(|a, b| a.0 < b.0) {
            return Err(Error::Order(place("key")));
        }
        if found.len() as u64 != u64::from(section.entries) {
            return Err(Error::Mismatch(place("entries")));
        }
        if let Some(shape) = &section.filter {
            filter::check(section, shape, pages, &found)?;
        }
        for (key, value) in found {
            let key = Key::parse(section.keyspace, &key, offset)?;
            let entry = value.map(|value| key.value(&value, offset)).transpose()?;
            rows.push((key, entry));
        }
    }
    Ok(rows)
}

/// A whole table that is all in memory, for vectors and tests.
pub fn parse(bytes: &[u8], uuid: &Id16, id: u64) -> Result<(Header, Vec<Row>)> {
    let first = bytes.page(0)?;
    check_page(&first, uuid, id, 0)?;
    let header = Header::parse(&first, id)?;
    let place = |field| Place { structure: NAME, field, offset: 0 };
    if header.uuid != *uuid {
        return Err(Error::Mismatch(place("store uuid")));
    }
    for number in 1..header.pages {
        check_page(&bytes.page(number)?, uuid, id, number)?;
    }
    if bytes.len() as u64 != u64::from(header.pages) * PAGE {
        return Err(Error::Trailing(place("pages")));
    }
    let rows = rows(&header, &bytes)?;
    Ok((header, rows))
}

/// A key and a value as they stand in a page; no value for a deletion.
type Raw = (Vec<u8>, Option<Vec<u8>>);

/// Reads the head of a page that must be of this kind.
fn expect(page: &[u8], number: u32, section: &Section, kinds: &[u8]) -> Result<PageHead> {
    let head = page_head(page, number)?;
    let place = Place { structure: "table page", field: "kind", offset: u64::from(number) * PAGE };
    if kinds.contains(&head.kind) && head.keyspace == section.keyspace { Ok(head) } else { Err(Error::Mismatch(place)) }
}

fn head_place(number: u32, field: &'static str) -> Place {
    Place { structure: "table page", field, offset: u64::from(number) * PAGE }
}
