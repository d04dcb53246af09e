//! Giving bytes out: a recipe walked from its root, every piece checked against its id before a byte of it leaves.
//!
//! A long read runs ahead of its caller, on two threads and with memory of the store's budget; what gets no memory, and what is short, is
//! read on the caller's thread. It does not know who may read what; the caller has decided that.

use std::{io::Write, ops::Range};

use crate::{
    budget::Budget,
    catalog::{Published, State},
    digest::TenantKeys,
    error::{Error, Kind, Result},
    format::{artifact::Artifact, frame::FrameKind, page::PageEntry, value::ChunkValue},
    ids::{ChunkId, Location, TenantNumber},
    limits::{READ_AHEAD, READ_RUN, WHOLE_READ_MAX},
    ownership::Door,
    segment::{self, Segments},
    sync::Arc,
};

mod ahead;
mod pool;
mod run;
#[cfg(test)]
mod tests;
mod walk;

pub use run::Piece;

/// What is no longer than this is not worth two threads.
const SHORT: u64 = READ_RUN as u64;

/// The way out.
pub struct Reader {
    published: Arc<Published>,
    segments: Arc<Segments>,
    door: Arc<Door>,
    budget: Arc<Budget>,
    pool: Arc<pool::Pool>,
}

/// Takes verified bytes in order.
pub type Take<'a> = &'a mut dyn FnMut(Piece) -> Result<()>;

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
    pub fn new(published: Arc<Published>, segments: Arc<Segments>, door: Arc<Door>, budget: Arc<Budget>) -> Self {
        Self { published, segments, door, budget, pool: Arc::default() }
    }

    /// Writes an artifact's bytes, or a range of them, to the sink, as [`read`](Self::read) gives them.
    pub fn write_to(&self, artifact: &Artifact, range: Option<Range<u64>>, sink: &mut dyn Write) -> Result<()> {
        self.read(artifact, range, &mut |piece| {
            sink.write_all(&piece.bytes).map_err(|e| Error::outside(e, "write to the sink"))
        })
    }

    /// Gives out an artifact's bytes, or a range of them, in pieces of at most a chunk. A short artifact as a whole is checked before
    /// its first byte leaves; of a longer one each chunk before its own.
    ///
    /// Memory: [`READ_AHEAD`] and a page a level, and a short artifact's size; all of it from the budget. What the budget has not is done
    /// without: with a run, and reading twice.
    pub fn read(&self, artifact: &Artifact, range: Option<Range<u64>>, take: Take<'_>) -> Result<()> {
        let size = artifact.size;
        let range = range.unwrap_or(0..size);
        if range.start > range.end || range.end > size {
            return Err(Error::new(Kind::InvalidArgument, "the range does not lie within the artifact"));
        }
        let is_whole = range == (0..size) && size <= WHOLE_READ_MAX;
        let root = PageEntry { id: artifact.blob_root, len: size };
        let keys = self.door.keys(artifact.account.tenant)?;
        let read = if is_whole { self.whole(&keys, root, take) } else { self.part(&keys, root, range, take) };
        read.map_err(|e| e.of_artifact(artifact.id))
    }

    /// Gives out all of an artifact's bytes, each chunk verified before its own.
    pub fn each(&self, artifact: &Artifact, take: Take<'_>) -> Result<()> {
        let root = PageEntry { id: artifact.blob_root, len: artifact.size };
        self.part(&self.door.keys(artifact.account.tenant)?, root, 0..artifact.size, take)
    }

    /// Verified before the first byte leaves.
    fn whole(&self, keys: &TenantKeys, root: PageEntry, take: Take<'_>) -> Result<()> {
        let grant = self.budget.take(root.len);
        if grant.is_none() && root.len > READ_RUN as u64 {
            // It cannot be held, so that it is read once to see that all is good.
            self.part(keys, root, 0..root.len, &mut |_| Ok(()))?;
            return self.part(keys, root, 0..root.len, take);
        }
        let mut pieces = Vec::new();
        self.part(keys, root, 0..root.len, &mut |piece| {
            pieces.push(piece);
            Ok(())
        })?;
        pieces.into_iter().try_for_each(take)
    }

    /// Verified chunk by chunk.
    fn part(&self, keys: &TenantKeys, root: PageEntry, range: Range<u64>, take: Take<'_>) -> Result<()> {
        let is_long = range.end - range.start > SHORT;
        let mut plan = run::Plan::new(walk::Walk::new(self, keys, root, range));
        let mut each = |outcome: run::Outcome| {
            outcome.pieces.into_iter().try_for_each(&mut *take)?;
            outcome.error.map_or(Ok(()), Err)
        };
        // A short read asks for nothing: not even for a moment, in which a long one would find the budget used up.
        match is_long.then(|| self.budget.take(READ_AHEAD)).flatten() {
            Some(_grant) => ahead::read_ahead(self, keys, plan, READ_AHEAD, &mut each),
            None => ahead::read_inline(self, keys, &mut plan, &mut each),
        }
    }

    /// A chunk or page of a tenant, its bytes checked against its id.
    pub fn chunk(&self, tenant: TenantNumber, id: ChunkId) -> Result<(FrameKind, Vec<u8>)> {
        self.fetch(&self.door.keys(tenant)?, id).map(|fetched| (fetched.kind, fetched.raw))
    }

    /// Looked up and read; if that is not what the id stands for, once more: it may have been moved or healed in between.
    fn fetch(&self, keys: &TenantKeys, id: ChunkId) -> Result<Fetched> {
        match self.fetch_once(keys, id) {
            Err(e) if e.kind() == Kind::Corrupt => self.fetch_once(keys, id),
            result => result,
        }
    }

    fn fetch_once(&self, keys: &TenantKeys, id: ChunkId) -> Result<Fetched> {
        // What is looked up from here on stays where it is until it was read.
        let _visit = self.segments.visits().enter();
        let chunk = self.locate(id)?;
        let raw = self.segments.read(&chunk)?;
        let fetched = Fetched { kind: chunk.kind, raw, location: chunk.location };
        let read_id = match fetched.kind {
            FrameKind::Page => keys.page(&fetched.raw),
            _ => keys.chunk(&fetched.raw),
        };
        if read_id == id { Ok(fetched) } else { Err(fetched.corrupt("bytes that are not those of their id")) }
    }

    fn locate(&self, id: ChunkId) -> Result<ChunkValue> {
        let found = self.published.read().chunk(id)?;
        found.ok_or_else(|| Error::new(Kind::Corrupt, "a recipe names a chunk that the catalog has not"))
    }
}
