//! The bulk segments that streams write into: each leased by one stream at a time.
//!
//! The pool knows nothing of what the frames are. A segment is named by the commit that relies on it; one whose write failed is never
//! leased again and is sealed by the next open at its last committed end.

use std::collections::BTreeMap;

use crate::{
    disk::Disk,
    entropy::{self, Entropy},
    error::{Error, Kind, Result},
    format::{
        commit::{EDIT_OVERHEAD, Edit},
        frame::FrameDraft,
        keyspace::{Keyspace, segment_key},
        manifest::SegmentState,
        value::SegmentValue,
    },
    health::Health,
    ids::{Epoch, FileId, Location},
    segment::{Segments, writer::BulkWriter},
    superblock::Root,
    sync::{Arc, Mutex},
};

/// Streams that write at a time; each has a buffer of 1 MiB in its segment. More are refused and not made to wait: a stream whose
/// client stalls would hold up the others.
const LEASES_MAX: usize = 64;

/// Length of the edit that names a segment.
pub(super) const SEGMENT_EDIT_LEN: usize = EDIT_OVERHEAD + 8 + 32;

/// What a commit has to say of segments.
type Named = BTreeMap<FileId, SegmentValue>;

/// The pool.
pub(super) struct Pool {
    disk: Arc<dyn Disk>,
    root: Arc<Root>,
    segments: Arc<Segments>,
    entropy: Arc<dyn Entropy>,
    health: Arc<Health>,
    state: Mutex<State>,
}

/// Segments that nobody leases, with what their last stream could not commit about them, and the number of leases.
#[derive(Default)]
struct State {
    idle: Vec<(Option<BulkWriter>, Named)>,
    leases: usize,
}

impl Pool {
    pub(super) fn new(
        disk: Arc<dyn Disk>,
        root: Arc<Root>,
        segments: Arc<Segments>,
        entropy: Arc<dyn Entropy>,
        health: Arc<Health>,
    ) -> Self {
        Self { disk, root, segments, entropy, health, state: Mutex::default() }
    }

    /// A place to write to. No file is made before the first frame.
    pub(super) fn lease(&self) -> Result<Lease<'_>> {
        let mut state = self.state.lock();
        if state.leases == LEASES_MAX {
            return Err(Error::new(Kind::Limit, "too many long streams are being written: try again later"));
        }
        state.leases += 1;
        let (writer, named) = state.idle.pop().unwrap_or_default();
        Ok(Lease { pool: self, writer, named, is_dirty: false })
    }

    fn create(&self) -> Result<BulkWriter> {
        let id = self.root.allocate_file()?;
        let epoch = Epoch(entropy::random(&*self.entropy)?);
        let superblock = self.root.current();
        let capacity = superblock.options.bulk_segment;
        let health = Arc::clone(&self.health);
        let writer = BulkWriter::create(&*self.disk, superblock.uuid, id, epoch, capacity, health)?;
        self.segments.add(id, epoch);
        Ok(writer)
    }
}

/// The right to write bulk frames.
pub(super) struct Lease<'a> {
    pool: &'a Pool,
    writer: Option<BulkWriter>,
    /// What the next commit has to say of segments. All of it is synced.
    named: Named,
    /// Frames were appended since the last flush.
    is_dirty: bool,
}

impl Lease<'_> {
    /// Appends a frame; a full segment is sealed and the next one begun.
    pub(super) fn append(&mut self, draft: &FrameDraft<'_>) -> Result<Location> {
        let has_room = |w: &BulkWriter| w.is_empty() || w.has_room(draft.payload.len() as u64);
        // A writer that fails is not put back.
        let mut writer = match self.writer.take() {
            Some(writer) if has_room(&writer) => writer,
            full => {
                full.map(|writer| self.seal(writer)).transpose()?;
                self.pool.create()?
            }
        };
        match writer.append(draft) {
            Ok(location) => {
                self.writer = Some(writer);
                self.is_dirty = true;
                Ok(location)
            }
            Err(error) => Err(self.give_up(writer, error)),
        }
    }

    fn seal(&mut self, mut writer: BulkWriter) -> Result<()> {
        match writer.seal() {
            Ok(end) => {
                let value = SegmentValue { epoch: writer.epoch, state: SegmentState::Sealed, end };
                self.named.insert(writer.id, value);
                Ok(())
            }
            Err(error) => Err(self.give_up(writer, error)),
        }
    }

    /// Leaves a writer that failed. What it wrote since the last commit is nothing that a commit may still name.
    fn give_up(&mut self, writer: BulkWriter, error: Error) -> Error {
        let id = writer.id;
        self.named.remove(&id);
        if error.kind() == Kind::NoSpace && writer.give_back(&*self.pool.disk) {
            self.pool.segments.remove(id);
        }
        error
    }

    /// Makes every appended frame durable. Only then may a commit name them.
    pub(super) fn flush(&mut self) -> Result<()> {
        if self.is_dirty
            && let Some(mut writer) = self.writer.take()
        {
            let end = match writer.flush() {
                Ok(end) => end,
                Err(error) => return Err(self.give_up(writer, error)),
            };
            self.named.insert(writer.id, SegmentValue { epoch: writer.epoch, state: SegmentState::Active, end });
            self.writer = Some(writer);
        }
        self.is_dirty = false;
        Ok(())
    }

    /// The edits that name the segments, for the commit that follows a flush.
    pub(super) fn edits(&self) -> Vec<Edit> {
        let edit =
            |(id, value): (&FileId, &SegmentValue)| Edit::put(Keyspace::Segment, segment_key(*id), value.encode());
        self.named.iter().map(edit).collect()
    }

    /// The edits are durable.
    pub(super) fn committed(&mut self) {
        if let Some(writer) = &mut self.writer
            && let Some(value) = self.named.get(&writer.id)
        {
            writer.committed(value.end);
        }
        self.named.clear();
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let mut state = self.pool.state.lock();
        state.leases -= 1;
        let (writer, named) = (self.writer.take(), std::mem::take(&mut self.named));
        if writer.is_some() || !named.is_empty() {
            state.idle.push((writer, named));
        }
    }
}
