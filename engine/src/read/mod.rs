//! Giving bytes out: a recipe walked from its root, every piece checked against its id before a byte of it leaves.
//!
//! It does not know who may read what; the caller has decided that.

use std::{io::Write, ops::Range};

use crate::{
    catalog::{Published, State},
    digest::TenantKeys,
    error::{Error, Kind, Result},
    format::{artifact::Artifact, frame::FrameKind, page::PageEntry},
    ids::{ChunkId, Location, TenantNumber},
    limits::WHOLE_READ_MAX,
    ownership::Door,
    segment::{self, Segments},
    sync::Arc,
};

#[cfg(test)]
mod tests;
mod walk;

/// The way out.
pub struct Reader {
    published: Arc<Published>,
    segments: Arc<Segments>,
    door: Arc<Door>,
}

/// A chunk or page that was read, whose bytes are those of its id.
struct Fetched {
    kind: FrameKind,
    raw: Vec<u8>,
    location: Location,
}

impl Fetched {
    /// Damage that the id does not show: what a page says of its place in the recipe.
    fn corrupt(&self, what: &'static str) -> Error {
        Error::corrupt(segment::name(self.location.segment), self.location.offset, what)
    }
}

impl Reader {
    /// Reads what is published.
    pub const fn new(published: Arc<Published>, segments: Arc<Segments>, door: Arc<Door>) -> Self {
        Self { published, segments, door }
    }

    /// Writes an artifact's bytes, or a range of them, to the sink. A short artifact as a whole is checked before its first byte
    /// leaves; of a longer one each chunk before its own. Memory: a chunk, and a page a level.
    pub fn read(&self, artifact: &Artifact, range: Option<Range<u64>>, sink: &mut dyn Write) -> Result<()> {
        let size = artifact.size;
        let range = range.unwrap_or(0..size);
        if range.start > range.end || range.end > size {
            return Err(Error::new(Kind::InvalidArgument, "the range does not lie within the artifact"));
        }
        let is_whole = range == (0..size) && size <= WHOLE_READ_MAX;
        let mut write = |bytes: &[u8]| sink.write_all(bytes).map_err(|e| Error::outside(e, "write to the sink"));
        let root = PageEntry { id: artifact.blob_root, len: size };
        let keys = self.door.keys(artifact.account.tenant)?;
        if is_whole {
            let mut bytes = Vec::new();
            let no_memory = |_| Error::new(Kind::Limit, "no memory for the artifact");
            bytes.try_reserve_exact(usize::try_from(size).expect("at most 16 MiB")).map_err(no_memory)?;
            let walked = self.walk(keys, root, &range, &mut |piece| {
                bytes.extend_from_slice(piece);
                Ok(())
            });
            walked.map_err(|e| e.of_artifact(artifact.id))?;
            write(&bytes)
        } else {
            self.walk(keys, root, &range, &mut write).map_err(|e| e.of_artifact(artifact.id))
        }
    }

    /// A chunk or page of a tenant, its bytes checked against its id.
    pub fn chunk(&self, tenant: TenantNumber, id: ChunkId) -> Result<(FrameKind, Vec<u8>)> {
        self.fetch(self.door.keys(tenant)?, id).map(|fetched| (fetched.kind, fetched.raw))
    }

    /// Looked up and read; if that is not what the id stands for, once more: it may have been moved or healed in between.
    fn fetch(&self, keys: &TenantKeys, id: ChunkId) -> Result<Fetched> {
        match self.fetch_once(keys, id) {
            Err(e) if e.kind() == Kind::Corrupt => self.fetch_once(keys, id),
            result => result,
        }
    }

    fn fetch_once(&self, keys: &TenantKeys, id: ChunkId) -> Result<Fetched> {
        let found = self.published.read().chunk(id)?;
        let chunk =
            found.ok_or_else(|| Error::new(Kind::Corrupt, "a recipe names a chunk that the catalog has not"))?;
        let raw = self.segments.read(&chunk)?;
        let fetched = Fetched { kind: chunk.kind, raw, location: chunk.location };
        let read_id = match fetched.kind {
            FrameKind::Page => keys.page(&fetched.raw),
            _ => keys.chunk(&fetched.raw),
        };
        if read_id == id { Ok(fetched) } else { Err(fetched.corrupt("bytes that are not those of their id")) }
    }
}
