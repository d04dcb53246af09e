//! Frames that stand one behind the other, read in one piece and checked one by one.
//!
//! A run that cannot be read, or a frame in it that is not what it should be, is read again alone: so the good frames before a bad place
//! are given out, and an error names the frame.

use bytes::Bytes;

use super::{
    Reader,
    pool::Buffer,
    walk::{Walk, Wanted},
};
use crate::{
    codec::{self, Codec},
    digest::TenantKeys,
    disk,
    error::{Error, Kind, Result},
    format::frame::frame_len,
    ids::{FileId, Location},
    limits::{FRAME_LEN_MAX, READ_RUN},
    segment::registry::SegmentFile,
};

/// A gap between two frames that is read through: a recipe page or the end of a block costs less than another read.
const GAP_MAX: u64 = 64 << 10;
/// Chunks of a run. Long enough for the smallest chunks, and one run does not hold up the ones behind it.
const PIECES_MAX: usize = 256;

/// Frames to be read at once: at least one, and unless it is alone no more than [`READ_RUN`] bytes, as they stand and decoded.
pub(super) struct Run {
    segment: FileId,
    at: u64,
    len: u64,
    raw: u64,
    pieces: Vec<Wanted>,
}

/// What became of a run: bytes in order up to the first error.
#[derive(Default)]
pub(super) struct Outcome {
    /// Verified bytes.
    pub(super) pieces: Vec<Bytes>,
    /// What stands behind them.
    pub(super) error: Option<Error>,
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
        Self { segment, at: offset, len, raw, pieces: vec![first] }
    }

    /// Memory that it takes.
    pub(super) const fn cost(&self) -> u64 {
        self.len + self.raw
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
        if gap.is_none_or(|gap| gap > GAP_MAX) || len.max(raw) > READ_RUN as u64 {
            return Some(wanted);
        }
        (self.len, self.raw) = (len, raw);
        self.pieces.push(wanted);
        None
    }

    /// The raw bytes of a chunk of the run, if its frame and its id are good.
    fn chunk(&self, keys: &TenantKeys, segment: &SegmentFile, bytes: &Bytes, wanted: &Wanted) -> Option<Bytes> {
        let value = &wanted.value;
        let frame =
            bytes.get(index(value.location.offset - self.at)..)?.get(..index(frame_len(u64::from(value.stored))))?;
        let payload = segment.payload(frame, value).ok()?;
        let raw = match value.codec {
            Codec::Raw => bytes.slice_ref(payload),
            Codec::Zstd => Bytes::from(codec::decompress(payload, value.raw as usize)?),
        };
        (wanted.entry.len == raw.len() as u64 && keys.chunk(&raw) == wanted.entry.id).then_some(raw)
    }
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

    fn read_pieces(&self, keys: &TenantKeys, run: &Run, out: &mut Vec<Bytes>) -> Result<()> {
        let segment = self.segments.file(run.segment)?;
        let buffer = match self.fill(run, &segment) {
            Ok(buffer) => buffer.map(Bytes::from_owner),
            // One of the frames may be to blame, and which one is not known.
            Err(e) if run.pieces.len() > 1 && e.kind() == Kind::Io => None,
            Err(e) => return Err(e),
        };
        let mut last: Option<(Location, Bytes)> = None;
        for wanted in &run.pieces {
            let raw = match last {
                Some((location, raw)) if location == wanted.value.location => raw,
                _ => self.piece(keys, run, &segment, buffer.as_ref(), wanted)?,
            };
            let part = index(wanted.part.start)..index(wanted.part.end);
            out.push(raw.slice(part));
            last = Some((wanted.value.location, raw));
        }
        Ok(())
    }

    /// The bytes of a run; those behind the end of the file are not there.
    fn fill(&self, run: &Run, segment: &SegmentFile) -> Result<Option<Buffer>> {
        if run.len > FRAME_LEN_MAX {
            // No frame is so long; read alone it says so.
            return Ok(None);
        }
        let mut buffer = self.pool.take(index(run.len))?;
        let read = disk::read_full(&*segment.file, buffer.as_mut_slice(), run.at)
            .map_err(|e| Error::io(e, &segment.name, "read frames"))?;
        buffer.truncate(read);
        Ok(Some(buffer))
    }

    /// A chunk, from the run's bytes if they are good, else read alone.
    fn piece(
        &self,
        keys: &TenantKeys,
        run: &Run,
        segment: &SegmentFile,
        buffer: Option<&Bytes>,
        wanted: &Wanted,
    ) -> Result<Bytes> {
        let good = buffer.and_then(|buffer| run.chunk(keys, segment, buffer, wanted));
        if let Some(raw) = good {
            return Ok(raw);
        }
        let fetched = match buffer {
            // It was read once; it may have been moved or healed in between.
            Some(_) => self.fetch_once(keys, wanted.entry.id)?,
            None => self.fetch(keys, wanted.entry.id)?,
        };
        wanted.check(&fetched)?;
        Ok(Bytes::from(fetched.raw))
    }
}

/// A length within a frame, which is at most 16 MiB, or within a run of them.
fn index(n: u64) -> usize {
    usize::try_from(n).expect("within a run")
}
