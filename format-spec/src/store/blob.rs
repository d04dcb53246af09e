//! Reads blobs and the chunks and pages that they are made of, and verifies ids on the way: sections 11 and 13 of `FORMAT.md`.

use super::StoreImage;
use crate::Id32;
use crate::derive::hex;
use crate::error::Error;
use crate::files::segment_name;
use crate::frame::{self, Frame, Kind};
use crate::keyspace::{Artifact, Chunk, PageEntry};
use crate::log::chain::{peek, rules};
use crate::recipe::Page;
use sha2::{Digest, Sha256};

/// Why a blob, a chunk or a page cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BlobError {
    /// The manifest has no key for the tenant.
    #[error("tenant {0} has no key")]
    Tenant(u32),
    /// The chunk keyspace has no such entry, or one of another tenant or kind.
    #[error("no fitting entry for {}", hex(.0))]
    Entry(Id32),
    /// Its frame is damaged, or another frame than the entry says.
    #[error("{file}: {error}")]
    Frame {
        /// The segment's file.
        file: String,
        /// What is wrong.
        error: Error,
    },
    /// The decoded bytes are not those that the id names.
    #[error("{file}: the frame at {offset} holds other bytes than its id names")]
    Identity {
        /// The segment's file.
        file: String,
        /// Where the frame stands.
        offset: u64,
    },
    /// A length or level in the recipe differs from what stands below it.
    #[error("the recipe at {} contradicts what it names", hex(.0))]
    Recipe(Id32),
    /// The whole bytes have another SHA-256 or size.
    #[error("another SHA-256 or size than the record says")]
    Content,
}

impl StoreImage<'_> {
    /// The bytes of an artifact, every id and the SHA-256 verified.
    pub fn blob(&self, artifact: &Artifact) -> Result<Vec<u8>, BlobError> {
        let mut bytes = Vec::new();
        self.recipe(artifact.tenant, &artifact.blob_root, artifact.size, &mut |_, chunk| {
            bytes.extend_from_slice(chunk);
        })?;
        let sha256: Id32 = Sha256::digest(&bytes).into();
        if sha256 == artifact.sha256 && bytes.len() as u64 == artifact.size {
            Ok(bytes)
        } else {
            Err(BlobError::Content)
        }
    }

    /// Visits the chunks below a root in order: their ids and bytes.
    pub fn recipe(
        &self,
        tenant: u32,
        root: &Id32,
        size: u64,
        visit: &mut dyn FnMut(&PageEntry, &[u8]),
    ) -> Result<(), BlobError> {
        if size == 0 || *root == [0; 32] {
            return if size == 0 && *root == [0; 32] { Ok(()) } else { Err(BlobError::Recipe(*root)) };
        }
        // Entries that are still to be visited, the next one last, with the level that each must have; the root may have any.
        let mut stack = vec![(PageEntry { id: *root, length: size }, None)];
        while let Some((entry, level)) = stack.pop() {
            let wrong = || BlobError::Recipe(entry.id);
            let chunk = self.catalog.chunks.get(&entry.id).ok_or(BlobError::Entry(entry.id))?;
            let content = self.data(tenant, &entry.id, chunk)?;
            match (chunk.kind, level) {
                (Kind::Page, None | Some(Some(_))) => {
                    let page = Page::parse(&content, chunk.offset + frame::HEADER).map_err(|_| wrong())?;
                    let fits =
                        level.flatten().is_none_or(|level: u8| level == page.level) && page.total == entry.length;
                    if !fits {
                        return Err(wrong());
                    }
                    // Below level 0 stand chunks, which have none.
                    let below = page.level.checked_sub(1);
                    stack.extend(page.entries.iter().rev().map(|entry| (*entry, Some(below))));
                }
                (Kind::Chunk, None | Some(None)) if content.len() as u64 == entry.length => visit(&entry, &content),
                _ => return Err(wrong()),
            }
        }
        Ok(())
    }

    /// The decoded bytes of a chunk or page, its id verified.
    pub(super) fn data(&self, tenant: u32, id: &Id32, chunk: &Chunk) -> Result<Vec<u8>, BlobError> {
        let keys = self.tenant_keys.get(&tenant).ok_or(BlobError::Tenant(tenant))?;
        if chunk.tenant != tenant {
            return Err(BlobError::Entry(*id));
        }
        let file = segment_name(chunk.segment);
        let frame = match self.frame(chunk) {
            Ok(frame) => frame.ok_or(BlobError::Entry(*id))?,
            Err(error) => return Err(BlobError::Frame { file, error }),
        };
        let content = frame.decode().map_err(|error| BlobError::Frame { file: file.clone(), error })?;
        let found = if chunk.kind == Kind::Page { keys.page_id(&content) } else { keys.chunk_id(&content) };
        if found == *id { Ok(content) } else { Err(BlobError::Identity { file, offset: chunk.offset }) }
    }

    /// The frame that an entry names; none if its segment is not there, or has no header.
    fn frame(&self, chunk: &Chunk) -> Result<Option<Frame>, Error> {
        let Some(bytes) = self.open_segment(chunk.segment)? else { return Ok(None) };
        // While a header is damaged, the log or the keyspace still has the epoch.
        let walked = self.log.segments.iter().find(|segment| segment.id == chunk.segment);
        let rules = match (walked, peek(self.files, chunk.segment)?) {
            (Some(walked), _) => rules(&self.superblock, walked.epoch, crate::segment::Lane::Log),
            (None, Some(header)) => rules(&self.superblock, header.epoch, header.lane),
            (None, None) => return Ok(None),
        };
        frame::read(&*bytes, chunk.offset, bytes.len(), &rules).map(Some).map_err(|invalid| invalid.error)
    }
}
