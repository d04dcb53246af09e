//! What happens to each chunk of a stream, whatever lane it goes into: its id, deduplication, compression, its place in the recipe.

use std::collections::{BTreeMap, VecDeque};

use super::{Ingest, recipe::RecipeBuilder};
use crate::{
    catalog::State,
    codec::{Codec, Compressor},
    digest::TenantKeys,
    error::{Error, Kind, Result},
    format::{
        frame::{FrameDraft, FrameKind},
        page::PageEntry,
        upload::Upload,
        value::ChunkValue,
    },
    ids::{ChunkId, Location, TenantNumber},
    ownership::references::{self, Changes, NewFrame, NewFrames},
    pins::Pin,
    segment::window::{Ahead, Window},
};

/// Where frames go. The location is final, or nothing yet if the frame is placed by the commit.
pub(super) trait Lane: Ahead {
    fn take(&mut self, draft: &FrameDraft<'_>) -> Result<Location>;
}

/// A piece of a stream, or a page of its recipe, under its id.
struct Piece<'a> {
    id: ChunkId,
    kind: FrameKind,
    raw: &'a [u8],
}

/// Outcome of the search for a piece.
enum Found {
    /// The very bytes stand there.
    Same,
    /// A frame is there and does not give the bytes any more.
    Damaged(Location),
    /// Nothing is there.
    Nothing,
}

/// What a stream gathers between two of its commits.
#[derive(Default)]
pub(super) struct Increment {
    /// Who holds what.
    pub(super) changes: Changes,
    /// Its own frames.
    pub(super) frames: NewFrames,
    /// Everything that is here or was found, with its raw length.
    known: BTreeMap<ChunkId, usize>,
    /// What was found stays, until the commit has referenced it.
    pins: Vec<Pin>,
}

impl Increment {
    /// The tail that an upload held before is held no more.
    pub(super) fn let_go(&mut self, tail: Option<PageEntry>) {
        if let Some(tail) = tail {
            self.changes.release(tail.id);
        }
    }

    /// Length of its edits at most, but for those of entries that earlier commits of the stream held.
    pub(super) fn edits_len_max(&self) -> usize {
        self.known.len() * references::EDITS_LEN_MAX
    }
}

/// A stream that ended, but for its last commit.
pub(super) struct Whole {
    /// Since the last progress commit.
    pub(super) increment: Increment,
    /// Id of the top of its recipe.
    pub(super) root: ChunkId,
    /// Its length.
    pub(super) size: u64,
}

/// A stream on its way in.
pub(super) struct Intake<'a> {
    ingest: &'a Ingest,
    keys: &'a TenantKeys,
    tenant: TenantNumber,
    compressor: Option<Compressor>,
    size: u64,
    recipe: RecipeBuilder,
    /// Since the last commit.
    pub(super) increment: Increment,
    /// What earlier commits of the stream have that are under way: the next one is decided when they are durable.
    under_way: VecDeque<BTreeMap<ChunkId, usize>>,
    /// Commits of the stream that are durable.
    committed: u64,
    /// What was found, as it stands.
    stored: Window,
}

impl<'a> Intake<'a> {
    /// Begins a stream. Without a compressor its chunks stay as they are.
    pub(super) fn new(
        ingest: &'a Ingest,
        keys: &'a TenantKeys,
        tenant: TenantNumber,
        compressor: Option<Compressor>,
    ) -> Self {
        Self {
            ingest,
            keys,
            tenant,
            compressor,
            size: 0,
            recipe: RecipeBuilder::new(keys.clone()),
            increment: Increment::default(),
            under_way: VecDeque::new(),
            committed: 0,
            stored: Window::default(),
        }
    }

    /// Goes on where an upload stands, in front of its tail.
    pub(super) fn resumed(self, record: &Upload) -> Self {
        let tail = record.tail.map_or(0, |tail| tail.len);
        let recipe = RecipeBuilder::resumed(self.keys.clone(), record.right_edge.clone());
        Self { size: record.offset.saturating_sub(tail), recipe, ..self }
    }

    /// Takes the bytes that are there behind the last cut as a chunk of their own, for as long as no more come.
    pub(super) fn take_tail(&mut self, bytes: &[u8], lane: &mut dyn Lane) -> Result<Option<PageEntry>> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let id = self.keys.chunk(bytes);
        self.store(&Piece { id, kind: FrameKind::Chunk, raw: bytes }, lane)?;
        self.increment.changes.hold(id);
        Ok(Some(PageEntry { id, len: bytes.len() as u64 }))
    }

    /// Makes the tail, which the upload holds, the last chunk.
    pub(super) fn close_tail(&mut self, tail: Option<PageEntry>, lane: &mut dyn Lane) -> Result<()> {
        let Some(tail) = tail else { return Ok(()) };
        self.size += tail.len;
        let closed = self.recipe.push(tail);
        self.store_pages(closed, lane)
    }

    /// Takes the next chunk.
    pub(super) fn take(&mut self, chunk: &[u8], lane: &mut dyn Lane) -> Result<()> {
        self.size += chunk.len() as u64;
        let id = self.keys.chunk(chunk);
        self.store(&Piece { id, kind: FrameKind::Chunk, raw: chunk }, lane)?;
        self.increment.changes.hold(id);
        let closed = self.recipe.push(PageEntry { id, len: chunk.len() as u64 });
        self.store_pages(closed, lane)
    }

    /// Ends the stream.
    pub(super) fn finish(&mut self, lane: &mut dyn Lane) -> Result<Whole> {
        let recipe = std::mem::replace(&mut self.recipe, RecipeBuilder::new(self.keys.clone()));
        let (closed, root) = recipe.finish();
        self.store_pages(closed, lane)?;
        Ok(Whole { increment: std::mem::take(&mut self.increment), root, size: self.size })
    }

    /// The record as it holds the stream so far.
    pub(super) fn upload(&self, begun: Upload) -> Upload {
        Upload { offset: self.size, right_edge: self.recipe.right_edge().to_vec(), ..begun }
    }

    /// What the next commit has to say. Until it is durable the stream finds its own chunks all the same.
    pub(super) fn take_increment(&mut self) -> Increment {
        let increment = std::mem::take(&mut self.increment);
        self.under_way.push_back(increment.known.clone());
        increment
    }

    /// So many commits of the stream are durable: what they inserted is found where everybody finds it.
    pub(super) fn see_committed(&mut self, committed: u64) {
        while self.committed < committed && self.under_way.pop_front().is_some() {
            self.committed += 1;
        }
    }

    fn store_pages(&mut self, closed: Vec<super::recipe::ClosedPage>, lane: &mut dyn Lane) -> Result<()> {
        for page in closed {
            self.store(&Piece { id: page.id, kind: FrameKind::Page, raw: &page.payload }, lane)?;
            self.increment.changes.close(page.id, page.entries);
        }
        Ok(())
    }

    /// Finds the piece or gives it a frame.
    fn store(&mut self, piece: &Piece<'_>, lane: &mut dyn Lane) -> Result<()> {
        match self.increment.known.get(&piece.id) {
            Some(len) if *len == piece.raw.len() => return Ok(()),
            Some(_) => return Err(Error::new(Kind::Corrupt, "two contents have one id")),
            None => {}
        }
        // Pinned before it is looked up: what is found stays.
        self.increment.pins.push(self.ingest.ground.pins.pin(piece.id));
        match self.search(piece, lane)? {
            Found::Same => {}
            Found::Nothing if self.take_unlooked(piece.id) => {}
            Found::Nothing => self.write(piece, None, lane)?,
            Found::Damaged(at) => self.write(piece, Some(at), lane)?,
        }
        self.increment.known.insert(piece.id, piece.raw.len());
        Ok(())
    }

    /// A hit counts only when the bytes that stand there were read and compared. If they cannot be read, or are others, the
    /// stream's own take their place.
    fn search(&mut self, piece: &Piece<'_>, ahead: &mut dyn Ahead) -> Result<Found> {
        if self.under_way.iter().any(|known| known.contains_key(&piece.id)) {
            // Written from these very bytes a moment ago.
            return Ok(Found::Same);
        }
        // What is looked up from here on stays where it is until it was compared.
        let _visit = self.ingest.ground.segments.visits().enter();
        let Some(value) = self.ingest.ground.published.read().chunk(piece.id)? else { return Ok(Found::Nothing) };
        match self.stored.read(&self.ingest.ground.segments, &value, ahead) {
            Ok(stored) if stored == piece.raw => Ok(Found::Same),
            Ok(stored) if id_of(self.keys, piece.kind, stored) == piece.id => {
                Err(Error::new(Kind::Corrupt, "two contents have one id"))
            }
            Ok(_) => Ok(Found::Damaged(value.location)),
            Err(e) if matches!(e.kind(), Kind::Corrupt | Kind::Io) => Ok(Found::Damaged(value.location)),
            Err(e) => Err(e),
        }
    }

    fn write(&mut self, piece: &Piece<'_>, replaces: Option<Location>, lane: &mut dyn Lane) -> Result<()> {
        let compressor = self.compressor.as_mut().filter(|_| piece.kind == FrameKind::Chunk);
        let (codec, payload) = match compressor.and_then(|compressor| compressor.compress(piece.raw)) {
            Some(stored) => (Codec::Zstd, stored),
            None => (Codec::Raw, piece.raw),
        };
        let raw = u32::try_from(piece.raw.len()).expect("a chunk is at most 8 MiB");
        let context = u64::from(self.tenant.0);
        let draft = FrameDraft { kind: piece.kind, codec, raw, id: piece.id.0, context, payload };
        let value = ChunkValue {
            location: lane.take(&draft)?,
            stored: u32::try_from(payload.len()).expect("no longer than the raw bytes"),
            raw,
            tenant: self.tenant,
            codec,
            kind: piece.kind,
            references: 0,
        };
        if value.location != Location::default() {
            self.ingest.seen.note(piece.id, &value);
        }
        self.increment.frames.insert(piece.id, NewFrame { value, replaces });
        Ok(())
    }

    /// The seeded bug: takes what some stream wrote, committed or not.
    fn take_unlooked(&mut self, id: ChunkId) -> bool {
        let seen = self.ingest.seen.get(id);
        if let Some(value) = seen {
            self.increment.frames.insert(id, NewFrame { value, replaces: None });
        }
        seen.is_some()
    }
}

fn id_of(keys: &TenantKeys, kind: FrameKind, raw: &[u8]) -> ChunkId {
    if kind == FrameKind::Page { keys.page(raw) } else { keys.chunk(raw) }
}
