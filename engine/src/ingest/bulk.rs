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
        keyspace::{Keyspace, segment_key},
        manifest::SegmentState,
        value::SegmentValue,
    },
    health::Health,
    ids::{Epoch, FileId},
    segment::{
        Segments,
        writer::{self, BulkFile, BulkWriter},
    },
    superblock::Root,
    sync::{Arc, Mutex},
};

/// Streams that write at a time; each has a buffer for its segment. More are refused and not made to wait: a stream whose
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
        // Its next commit names what the stream before synced and could not commit: the file has to hear of that, too.
        let active = writer.as_ref().map(BulkWriter::file).filter(|file| named.contains_key(&file.id)).cloned();
        Ok(Lease { pool: self, writer, named, active, made: Arc::default() })
    }

    /// Removes what streams began and no commit relies on: puts that failed would leave it to the next open. Whether a commit names it is
    /// asked for, too: bytes that somebody owns do not hang on a count.
    pub(super) fn close(&self, is_named: &dyn Fn(FileId) -> bool) {
        for (writer, _) in std::mem::take(&mut self.state.lock().idle) {
            if let Some(writer) = writer.filter(|writer| !is_named(writer.file().id)) {
                writer.file().remove_unused(&*self.disk);
            }
        }
    }

    /// A segment without a frame.
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

    /// Length of the buffers of a pipelined stream.
    pub(super) fn buffer_len(&self) -> usize {
        writer::pipelined_buffer_len(self.root.current().options.bulk_segment)
    }
}

/// The right to write bulk frames. It belongs to the end of a stream that writes; what packs the frames has borrowed the writer.
pub(super) struct Lease<'a> {
    pool: &'a Pool,
    writer: Option<BulkWriter>,
    /// What the next commit has to say of segments. All of it is synced.
    named: Named,
    /// The file that was synced last, as long as it is not sealed.
    active: Option<Arc<BulkFile>>,
    made: Made,
}

/// Files that a stream made and no durable commit has named.
type Made = Arc<Mutex<Vec<Arc<BulkFile>>>>;

/// Makes segments for a stream, ahead of the end of it that writes.
pub(super) struct Maker<'a> {
    pool: &'a Pool,
    made: Made,
}

impl Maker<'_> {
    /// A segment without a frame.
    pub(super) fn create(&self) -> Result<BulkWriter> {
        let writer = self.pool.create()?;
        self.made.lock().push(Arc::clone(writer.file()));
        Ok(writer)
    }
}

impl<'a> Lease<'a> {
    /// Makes more segments.
    pub(super) fn maker(&self) -> Maker<'a> {
        Maker { pool: self.pool, made: Arc::clone(&self.made) }
    }

    /// Hands out the writer. It comes back by [`put_back`](Self::put_back), unless it failed.
    pub(super) const fn writer(&mut self) -> Option<BulkWriter> {
        self.writer.take()
    }

    /// Takes the writer back. All that went out of it must have been written.
    pub(super) fn put_back(&mut self, mut writer: BulkWriter) {
        writer.rest();
        self.writer = Some(writer);
    }

    /// A file is synced up to here.
    pub(super) fn synced(&mut self, file: Arc<BulkFile>, end: u64) {
        self.named.insert(file.id, SegmentValue { epoch: file.epoch, state: SegmentState::Active, end });
        self.active = Some(file);
    }

    /// A file has its footer and seal, and is synced.
    pub(super) fn sealed(&mut self, file: &BulkFile, end: u64) {
        self.named.insert(file.id, SegmentValue { epoch: file.epoch, state: SegmentState::Sealed, end });
        self.active = None;
    }

    /// Leaves a file that failed. What was written to it since the last commit is nothing that a commit may still name.
    pub(super) fn give_up(&mut self, file: &BulkFile, error: Error) -> Error {
        self.named.remove(&file.id);
        self.made.lock().retain(|made| made.id != file.id);
        if error.kind() == Kind::NoSpace && file.give_back(&*self.pool.disk) {
            self.pool.segments.remove(file.id);
        }
        error
    }

    /// The edits that name the segments, for the commit that follows a sync.
    pub(super) fn edits(&self) -> Vec<Edit> {
        let edit =
            |(id, value): (&FileId, &SegmentValue)| Edit::put(Keyspace::Segment, segment_key(*id), value.encode());
        self.named.iter().map(edit).collect()
    }

    /// The edits are durable.
    pub(super) fn committed(&mut self) {
        if let Some(file) = &self.active
            && let Some(value) = self.named.get(&file.id)
        {
            file.committed(value.end);
        }
        self.made.lock().retain(|file| !self.named.contains_key(&file.id));
        self.named.clear();
    }

    /// Gives the disk back whatever no durable commit names, for a stream that found it full: what was on its way behind the place of the
    /// failure may have been written meanwhile, and would leave no room to those that need little.
    pub(super) fn give_back(&mut self) {
        if let Some(writer) = self.writer.take() {
            self.made.lock().push(Arc::clone(writer.file()));
        }
        self.active = None;
        for file in &*self.made.lock() {
            self.named.remove(&file.id);
        }
        self.remove_unused();
    }

    /// Removes what the stream made and nobody goes on with: files that were begun ahead of one that failed. Else each failed put would
    /// leave some until the next open.
    fn remove_unused(&self) {
        let kept = self.writer.as_ref().map(|writer| writer.file().id);
        for file in std::mem::take(&mut *self.made.lock()) {
            let is_unused = Some(file.id) != kept && !self.named.contains_key(&file.id);
            if is_unused && file.give_back(&*self.pool.disk) {
                self.pool.segments.remove(file.id);
            }
        }
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        self.remove_unused();
        let mut state = self.pool.state.lock();
        state.leases -= 1;
        let (writer, named) = (self.writer.take(), std::mem::take(&mut self.named));
        if writer.is_some() || !named.is_empty() {
            state.idle.push((writer, named));
        }
    }
}
