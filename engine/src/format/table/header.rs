//! Page 0 of a table: what table it is, which LSNs it covers, and its sections.

use super::{
    Bad, Decoded, PAGE_LEN, PAGES_MAX, Page,
    section::{SECTION_LEN, Section},
};
use crate::{
    format::{
        VERSION,
        fields::{Fixed, layout, put},
        keyspace::Keyspace,
    },
    ids::{FileId, Lsn, StoreUuid},
};

/// Sections of a table.
pub const SECTIONS_MAX: usize = 32;
const MAGIC: &[u8; 8] = b"HFTABLEF";
const WHAT: &str = "table header";
const BAD: Bad = Bad::damaged(WHAT);

layout! { 96:
    MAGIC 8, VERSION 4, PAGES 4, UUID 16, ID 8, FIRST_LSN 8, LAST_LSN 8, SECTIONS 4, RESERVED 36,
}

/// Page 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// The store.
    pub uuid: StoreUuid,
    /// The table, also in its name.
    pub id: FileId,
    /// Pages, this one included.
    pub pages: u32,
    /// The LSNs whose edits are in it: from here
    pub first_lsn: Lsn,
    /// to here.
    pub last_lsn: Lsn,
    /// By rising keyspace.
    pub sections: Vec<Section>,
}

impl Header {
    /// The page, but for its checksum.
    pub fn encode(&self) -> Page {
        let mut page = [0; PAGE_LEN];
        put(&mut page, at::MAGIC, MAGIC);
        put(&mut page, at::VERSION, &VERSION.to_le_bytes());
        put(&mut page, at::PAGES, &self.pages.to_le_bytes());
        put(&mut page, at::UUID, &self.uuid.0);
        put(&mut page, at::ID, &self.id.0.to_le_bytes());
        put(&mut page, at::FIRST_LSN, &self.first_lsn.0.to_le_bytes());
        put(&mut page, at::LAST_LSN, &self.last_lsn.0.to_le_bytes());
        put(&mut page, at::SECTIONS, &u32::try_from(self.sections.len()).expect("bounded").to_le_bytes());
        for (index, section) in self.sections.iter().enumerate() {
            put(&mut page, at::LEN + index * SECTION_LEN, &section.encode());
        }
        page
    }

    /// Reads a page whose checksum is good.
    pub fn decode(page: &Page, uuid: StoreUuid, id: FileId) -> Decoded<Self> {
        let f = Fixed(page);
        if &f.bytes::<8>(at::MAGIC) != MAGIC {
            return Err(BAD);
        }
        if f.u32(at::VERSION) != VERSION {
            return Err(Bad::newer("table version"));
        }
        f.reserved(at::RESERVED, 36, WHAT)?;
        let count = f.u32(at::SECTIONS) as usize;
        let (pages, first_lsn, last_lsn) = (f.u32(at::PAGES), Lsn(f.u64(at::FIRST_LSN)), Lsn(f.u64(at::LAST_LSN)));
        let holds = f.bytes::<16>(at::UUID) == uuid.0
            && f.u64(at::ID) == id.0
            && (1..=SECTIONS_MAX).contains(&count)
            && (2..=PAGES_MAX).contains(&pages)
            && Lsn::NONE < first_lsn
            && first_lsn <= last_lsn;
        if !holds {
            return Err(BAD);
        }
        let mut sections: Vec<Section> = Vec::with_capacity(count);
        for index in 0..count {
            let first = sections.last().map_or(1, Section::end);
            let section = Section::decode(f.slice(at::LEN + index * SECTION_LEN, SECTION_LEN), first)?;
            if sections.last().is_some_and(|before| before.keyspace >= section.keyspace) {
                return Err(BAD);
            }
            sections.push(section);
        }
        let behind = at::LEN + count * SECTION_LEN;
        f.reserved(behind, super::SUM - behind, WHAT)?;
        if sections.last().map(Section::end) != Some(pages) {
            return Err(BAD);
        }
        Ok(Self { uuid, id, pages, first_lsn, last_lsn, sections })
    }

    /// The section of a keyspace.
    pub fn section(&self, keyspace: Keyspace) -> Option<&Section> {
        self.sections.iter().find(|section| section.keyspace == keyspace)
    }
}

const _: () = assert!(at::LEN + SECTIONS_MAX * SECTION_LEN < super::SUM);

#[cfg(test)]
mod tests {
    use super::{super::section::Shape, *};

    fn sample() -> Header {
        let section = |keyspace, shape, first, low, high| Section {
            keyspace,
            shape,
            height: 0,
            entries: 5,
            first,
            data: 2,
            extra: 0,
            filter: 0,
            low,
            high,
            seed: 0,
            segment_len: 0,
            segment_count_len: 0,
            fingerprints: 0,
        };
        Header {
            uuid: StoreUuid([1; 16]),
            id: FileId(9),
            pages: 5,
            first_lsn: Lsn::FIRST,
            last_lsn: Lsn::FIRST.plus(3),
            sections: vec![
                section(Keyspace::Artifact, Shape::Tree, 1, 0, 0),
                section(Keyspace::Chunk, Shape::Buckets, 3, 1, 2),
            ],
        }
    }

    #[test]
    fn a_header_comes_back_and_one_of_another_table_does_not() {
        let page = sample().encode();
        assert_eq!(Header::decode(&page, StoreUuid([1; 16]), FileId(9)), Ok(sample()));
        assert!(Header::decode(&page, StoreUuid([1; 16]), FileId(8)).is_err());
        assert!(Header::decode(&page, StoreUuid([2; 16]), FileId(9)).is_err());
    }

    #[test]
    fn sections_that_overlap_or_leave_pages_out_are_refused() {
        for change in [
            |h: &mut Header| h.sections[1].first = 2,
            |h: &mut Header| h.pages = 6,
            |h: &mut Header| h.sections.swap(0, 1),
            |h: &mut Header| h.sections[0].shape = Shape::Buckets,
            |h: &mut Header| h.sections[1].high = 0,
            |h: &mut Header| h.sections[1].data = 0,
            |h: &mut Header| h.sections[1].seed = 1,
            |h: &mut Header| h.sections[0].height = 1,
            |h: &mut Header| h.last_lsn = Lsn::NONE,
        ] {
            let mut header = sample();
            change(&mut header);
            assert!(Header::decode(&header.encode(), StoreUuid([1; 16]), FileId(9)).is_err(), "{header:?}");
        }
    }
}
