//! Frames that stand one behind the other, read in one piece and checked one by one.
//!
//! A run that cannot be read, or a frame in it that is not what it should be, is read again alone: so the good frames before a bad place
//! are given out, and an error names the frame.

use bytes::Bytes;

use super::{
    Reader,
    pool::{self, Buffer},
    walk::{Walk, Wanted},
};
use crate::{
    codec::{self, Codec},
    digest::TenantKeys,
    disk,
    error::{Error, Kind, Result},
    format::frame::{FrameHeader, frame_len},
    ids::{ChunkId, FileId, Location},
    limits::{BLOCK, BLOCK_LEN, FRAME_LEN_MAX, READ_RUN},
    segment::registry::SegmentFile,
};

/// A gap between two frames that is read through: a recipe page or the end of a block costs less than another read.
const GAP_MAX: u64 = 64 << 10;
/// Chunks of a run. Long enough for the smallest chunks, and one run does not hold up the ones behind it.
const PIECES_MAX: usize = 256;

/// A run with the rest of its first and last block fits into a buffer.
const RUN_LEN_MAX: u64 = READ_RUN as u64 - 2 * BLOCK;
/// Shorter runs are read through the page cache.
const LONG: u64 = 512 << 10;

/// Frames to be read at once: at least one, and unless it is alone no more than [`READ_RUN`] bytes, as they stand and decoded.
pub(super) struct Run {
    segment: FileId,
    at: u64,
    len: u64,
    raw: u64,
    /// Bytes of `raw` that stand compressed, and take memory of their own.
    unpacked: u64,
    pieces: Vec<Wanted>,
}

/// What became of a run: bytes in order up to the first error.
#[derive(Default)]
pub(super) struct Outcome {
    /// Verified bytes.
    pub(super) pieces: Vec<Piece>,
    /// What stands behind them.
    pub(super) error: Option<Error>,
}

/// A chunk, or the part of it that was asked for.
pub struct Piece {
    /// Its id.
    pub id: ChunkId,
    /// Its bytes, which are those of its id.
    pub bytes: Bytes,
    /// Place and header of its frame; not given where a frame was read alone, behind damage or an error.
    pub frame: Option<(Location, FrameHeader)>,
}

impl Outcome {
    pub(super) const fn failed(error: Error) -> Self {
        Self { pieces: Vec::new(), error: Some(error) }
    }
}

impl Run {
    fn new(first: Wanted) -> Self {
        let Location { segment, offset } = first.value.location;
        let (len, raw) = (frame_len(u64::from(first.value.stored)), u64::from(first.value.raw));
        Self { segment, at: offset, len, raw, unpacked: unpacked(&first), pieces: vec![first] }
    }

    /// Memory that it takes.
    pub(super) fn cost(&self) -> u64 {
        pool::memory(self.len) + self.unpacked
    }

    /// Takes one more chunk if it fits.
    fn push(&mut self, wanted: Wanted) -> Option<Wanted> {
        let Location { segment, offset } = wanted.value.location;
        if segment != self.segment || self.pieces.len() == PIECES_MAX {
            return Some(wanted);
        }
        if self.pieces.last().is_some_and(|last| last.value.location == wanted.value.location) {
            // The same chunk again, as in a file of zeros: its bytes are there already.
            self.pieces.push(wanted);
            return None;
        }
        let end = offset.checked_add(frame_len(u64::from(wanted.value.stored)));
        let gap = self.at.checked_add(self.len).and_then(|here| offset.checked_sub(here));
        let len = end.map_or(u64::MAX, |end| end.saturating_sub(self.at));
        let raw = self.raw + u64::from(wanted.value.raw);
        if gap.is_none_or(|gap| gap > GAP_MAX) || len.max(raw) > RUN_LEN_MAX {
            return Some(wanted);
        }
        (self.len, self.raw) = (len, raw);
        self.unpacked += unpacked(&wanted);
        self.pieces.push(wanted);
        None
    }

    /// The raw bytes of a chunk of the run, if its frame and its id are good.
    fn chunk(
        &self,
        keys: &TenantKeys,
        segment: &SegmentFile,
        bytes: &Bytes,
        wanted: &Wanted,
    ) -> Option<(FrameHeader, Bytes)> {
        let value = &wanted.value;
        let frame =
            bytes.get(index(value.location.offset - self.at)..)?.get(..index(frame_len(u64::from(value.stored))))?;
        let (header, payload) = segment.frame(frame, value).ok()?;
        let raw = match value.codec {
            Codec::Raw => bytes.slice_ref(payload),
            Codec::Zstd => Bytes::from(codec::decompress(payload, value.raw as usize)?),
        };
        (wanted.entry.len == raw.len() as u64 && keys.chunk(&raw) == wanted.entry.id).then_some((header, raw))
    }
}

fn unpacked(wanted: &Wanted) -> u64 {
    if wanted.value.codec == Codec::Raw { 0 } else { u64::from(wanted.value.raw) }
}

/// Cuts a walk into runs.
pub(super) struct Plan<'a> {
    walk: Walk<'a>,
    waiting: Option<Result<Wanted>>,
}

impl<'a> Plan<'a> {
    /// Of a walk that has not begun.
    pub(super) const fn new(walk: Walk<'a>) -> Self {
        Self { walk, waiting: None }
    }

    /// The next run. An error of the walk comes behind the run before it, and ends the plan.
    pub(super) fn next(&mut self) -> Result<Option<Run>> {
        let first = match self.waiting.take() {
            Some(waiting) => Some(waiting?),
            None => self.walk.next()?,
        };
        let Some(first) = first else { return Ok(None) };
        let mut run = Run::new(first);
        loop {
            match self.walk.next() {
                Ok(None) => return Ok(Some(run)),
                Ok(Some(wanted)) => match run.push(wanted) {
                    None => {}
                    Some(too_much) => {
                        self.waiting = Some(Ok(too_much));
                        return Ok(Some(run));
                    }
                },
                Err(error) => {
                    self.waiting = Some(Err(error));
                    return Ok(Some(run));
                }
            }
        }
    }
}

impl Reader {
    /// Reads a run and checks each of its chunks.
    pub(super) fn read_run(&self, keys: &TenantKeys, run: &Run) -> Outcome {
        let mut outcome = Outcome::default();
        outcome.error = self.read_pieces(keys, run, &mut outcome.pieces).err();
        outcome
    }

    fn read_pieces(&self, keys: &TenantKeys, run: &Run, out: &mut Vec<Piece>) -> Result<()> {
        // Its places were looked up a while ago: where they are not right any more, each chunk is looked up again and read alone.
        let segment = match self.segments.file(run.segment) {
            Err(e) if e.kind() == Kind::Corrupt => None,
            segment => Some(segment?),
        };
        let buffer = match segment.as_ref().map_or(Ok(None), |segment| self.fill(run, segment)) {
            Ok(buffer) => buffer.map(Bytes::from_owner),
            // One of the frames may be to blame, and which one is not known.
            Err(e) if run.pieces.len() > 1 && e.kind() == Kind::Io => None,
            Err(e) => return Err(e),
        };
        let read = segment.as_deref().zip(buffer.as_ref());
        let mut last: Option<(Location, Chunk)> = None;
        for wanted in &run.pieces {
            let location = wanted.value.location;
            let (header, raw) = match last {
                Some((place, chunk)) if place == location => chunk,
                _ => self.chunk_of(keys, run, read, wanted)?,
            };
            let bytes = raw.slice(index(wanted.part.start)..index(wanted.part.end));
            out.push(Piece { id: wanted.entry.id, bytes, frame: header.map(|header| (location, header)) });
            last = Some((location, (header, raw)));
        }
        Ok(())
    }

    /// The bytes of a run; those behind the end of the file are not there.
    fn fill(&self, run: &Run, segment: &SegmentFile) -> Result<Option<Buffer>> {
        if run.len > FRAME_LEN_MAX {
            // No frame is so long; read alone it says so.
            return Ok(None);
        }
        // Whole blocks, as a direct read wants them.
        let from = run.at / BLOCK * BLOCK;
        let before = index(run.at - from);
        let mut buffer = self.pool.take((before + index(run.len)).next_multiple_of(BLOCK_LEN))?;
        // What is read for the first time is read past the page cache: to bring it there costs more than to check it.
        let is_first = run.len >= LONG && !segment.is_read_again(run.at);
        let direct = if is_first { self.segments.past_cache(run.segment, segment) } else { None };
        let read = disk::read_full(direct.unwrap_or(&*segment.file), buffer.as_mut_slice(), from)
            .map_err(|e| Error::io(e, &segment.name, "read frames"))?;
        buffer.keep(before, read.min(before + index(run.len)));
        Ok(Some(buffer))
    }

    /// A chunk, from the run's bytes if they are good, else read alone.
    fn chunk_of(
        &self,
        keys: &TenantKeys,
        run: &Run,
        read: Option<(&SegmentFile, &Bytes)>,
        wanted: &Wanted,
    ) -> Result<Chunk> {
        if let Some((header, raw)) = read.and_then(|(segment, buffer)| run.chunk(keys, segment, buffer, wanted)) {
            return Ok((Some(header), raw));
        }
        let fetched = match read {
            // It was read once; it may have been moved or healed in between.
            Some(_) => self.fetch_once(keys, wanted.entry.id)?,
            None => self.fetch(keys, wanted.entry.id)?,
        };
        wanted.check(&fetched)?;
        Ok((None, Bytes::from(fetched.raw)))
    }
}

/// Raw bytes of a chunk, with the header of its frame.
type Chunk = (Option<FrameHeader>, Bytes);

/// A length within a frame, which is at most 16 MiB, or within a run of them.
fn index(n: u64) -> usize {
    usize::try_from(n).expect("within a run")
}
