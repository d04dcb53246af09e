//! The upload record: section 12.1.

use super::values::tenant_number;
use crate::error::{Error, Result};
use crate::fields::Fields;
use crate::limits;
use crate::{Id16, Id32};
use std::fmt;

/// A chunk or page of a recipe, and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the table")]
pub struct PageEntry {
    pub id: Id32,
    pub length: u64,
}

impl PageEntry {
    pub(crate) fn parse(f: &mut Fields<'_>) -> Result<Self> {
        let id = f.array("entry id")?;
        let length = f.u64("entry length")?;
        f.check(length > 0, Error::Value)?;
        Ok(Self { id, length })
    }
}

/// An upload that is not finished.
#[derive(Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the table")]
pub struct Upload {
    pub tenant: u32,
    pub resumable: bool,
    pub account: Id16,
    pub begin_lsn: u64,
    pub created_at: u64,
    pub offset: u64,
    pub declared_size: Option<u64>,
    pub expires_at: u64,
    /// The state of SHA-256; opaque.
    pub sha256_state: Vec<u8>,
    /// The bytes since the last cut.
    pub tail: Option<PageEntry>,
    /// What each level of the recipe holds that is not in a page yet.
    pub right_edge: Vec<Vec<PageEntry>>,
}

impl fmt::Debug for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The state of SHA-256 gives away bytes of the upload.
        f.debug_struct("Upload")
            .field("tenant", &self.tenant)
            .field("offset", &self.offset)
            .field("levels", &self.right_edge.len())
            .finish_non_exhaustive()
    }
}

impl Upload {
    pub(super) fn parse(f: &mut Fields<'_>) -> Result<Self> {
        let tenant = tenant_number(f)?;
        let flags = f.u32("flags")?;
        f.check(flags & !3 == 0, Error::Reserved)?;
        let resumable = flags & 1 != 0;
        let account = f.array("account")?;
        let begin_lsn = f.u64("begin LSN")?;
        let created_at = f.u64("created_at")?;
        let offset = f.u64("offset")?;
        let declared = f.u64("declared size")?;
        let expires_at = f.u64("expires_at")?;
        let state_len = f.u16("length of the SHA-256 state")?;
        f.check(state_len <= 256 && resumable == (state_len > 0), Error::Bound)?;
        let levels = f.u8("level count")?;
        f.check(levels <= limits::PAGE_LEVEL + 1, Error::Bound)?;
        f.reserved(1)?;
        let sha256_state = f.take("SHA-256 state", usize::from(state_len))?.to_vec();
        let tail = if flags & 2 != 0 { Some(PageEntry::parse(f)?) } else { None };
        let mut right_edge = Vec::new();
        for _ in 0..levels {
            let count = f.u16("right edge count")?;
            f.check(count < limits::PAGE_ENTRIES, Error::Bound)?;
            right_edge.push((0..count).map(|_| PageEntry::parse(f)).collect::<Result<_>>()?);
        }
        let declared_size = (declared != u64::MAX).then_some(declared);
        Ok(Self {
            tenant,
            resumable,
            account,
            begin_lsn,
            created_at,
            offset,
            declared_size,
            expires_at,
            sha256_state,
            tail,
            right_edge,
        })
    }

    /// The entries that hold a reference each.
    pub fn entries(&self) -> impl Iterator<Item = &PageEntry> {
        self.right_edge.iter().flatten().chain(&self.tail)
    }
}
