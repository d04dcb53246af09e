//! A long stream on several threads. The caller's thread reads and cuts, one names (SHA-256, of other streams too), one stores (ids,
//! deduplication, compression, frames), one writes, syncs and commits.
//!
//! They do what [`Ingest::put_long`] does on one thread, by the same code and in the same order of jobs. No stage knows what the others
//! do. The first error stops all of them; a stage that ended never leaves another one waiting, since what it holds goes when it goes.

use std::{ops::Range, panic};

use super::{
    Ingest,
    intake::{Intake, Whole},
    long::Stream,
    naming::{Feed, PATIENCE},
    output::{Job, Jobs, Output},
    packer::Packer,
    source::Cutter,
};
use crate::{
    budget::{Budget, Grant},
    digest::Sha256Stream,
    disk::AlignedBuffer,
    error::{Error, Kind, Result},
    format::upload::Upload,
    segment::writer::BulkFile,
    sync::{Arc, AtomicBool, AtomicU64, Condvar, Mutex, Ordering, mpsc, thread},
};

/// What is handed from stage to stage at a time, if chunks are not longer than usual.
const BLOCK_LEN: usize = 2 << 20;
/// Blocks that a stream has at any time, and blocks that it has while its grant for more lasts.
const BLOCKS_FEW: usize = 3;
const BLOCKS_MAX: usize = 8;
const _: () = assert!(PATIENCE <= BLOCKS_FEW);
/// Buffers on their way to the disk.
const WRITES_MAX: usize = 3;
/// Buffers of one write. The others are filled meanwhile.
const RUN_MAX: usize = 2;
/// Jobs on their way; most of them are the writes.
const JOBS_MAX: usize = WRITES_MAX + 4;
/// Compressor, comparison and bookkeeping.
const BESIDE: usize = 2 << 20;

/// What a pipelined stream takes from the budget. It takes more for blocks under way, and gives that back when its source is slow.
pub(super) struct Memory {
    budget: Arc<Budget>,
    block_len: usize,
    buffer_len: usize,
    _base: Grant,
}

impl Memory {
    /// Nothing, if the budget is used up.
    pub(super) fn take(ingest: &Ingest) -> Option<Self> {
        let budget = Arc::clone(&ingest.ground.budget);
        let chunk_max = ingest.ground.root.current().options.chunks.max as usize;
        let (block_len, buffer_len) = (BLOCK_LEN.max(2 * chunk_max), ingest.pool.buffer_len());
        // One block more is with the cutter.
        let base = (BLOCKS_FEW + 1) * block_len + WRITES_MAX * buffer_len + BESIDE;
        let base = budget.take(base as u64)?;
        Some(Self { budget, block_len, buffer_len, _base: base })
    }
}

/// Bytes of a stream, cut.
pub(super) struct Block {
    bytes: AlignedBuffer,
    chunks: Vec<Range<usize>>,
    grant: Option<Grant>,
    home: Arc<Blocks>,
}

impl Block {
    /// From the first chunk to the last.
    fn bytes(&self) -> &[u8] {
        match (self.chunks.first(), self.chunks.last()) {
            (Some(first), Some(last)) => &self.bytes.as_slice()[first.start..last.end],
            _ => &[],
        }
    }
}

/// A block as it is named.
pub(super) struct Unnamed(Arc<Block>);

impl AsRef<[u8]> for Unnamed {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.home.give(Spare { bytes: std::mem::take(&mut self.bytes), grant: self.grant.take() });
    }
}

/// A block's memory.
struct Spare {
    bytes: AlignedBuffer,
    grant: Option<Grant>,
}

/// The blocks of a stream.
struct Blocks {
    budget: Arc<Budget>,
    block_len: usize,
    state: Mutex<Rack>,
    returned: Condvar,
}

#[derive(Default)]
struct Rack {
    spares: Vec<Spare>,
    made: usize,
}

impl Blocks {
    /// Memory for a block. Waits for one of the stream's own when it has as many as it may.
    fn take(&self) -> Spare {
        let mut rack = self.state.lock();
        let grant = loop {
            if let Some(spare) = rack.spares.pop() {
                return spare;
            }
            if rack.made < BLOCKS_FEW {
                break None;
            }
            if rack.made < BLOCKS_MAX
                && let Some(grant) = self.budget.take(self.block_len as u64)
            {
                break Some(grant);
            }
            self.returned.wait(&mut rack);
        };
        rack.made += 1;
        drop(rack);
        Spare { bytes: AlignedBuffer::zeroed_on_large_pages(self.block_len), grant }
    }

    /// Keeps it, unless there is a spare one already: then the source is slower than the stages are, and others may have the memory.
    fn give(&self, spare: Spare) {
        let mut rack = self.state.lock();
        if spare.grant.is_some() && !rack.spares.is_empty() {
            rack.made -= 1;
            return;
        }
        rack.spares.push(spare);
        self.returned.notify_one();
    }
}

/// What ends a stream early.
#[derive(Default)]
struct Stop {
    is_set: AtomicBool,
    first: Mutex<Option<Error>>,
}

impl Stop {
    /// The first error counts.
    fn set(&self, error: Error) {
        self.first.lock().get_or_insert(error);
        self.is_set.store(true, Ordering::Release);
    }

    fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }
}

/// Jobs for the thread that writes.
struct Sender {
    jobs: mpsc::SyncSender<Job>,
    /// Buffers that were written.
    empty: mpsc::Receiver<AlignedBuffer>,
    made: usize,
    buffer_len: usize,
    committed: Arc<AtomicU64>,
}

/// That stage ended in a panic, which whoever joins it passes on.
fn is_gone<T>(_: T) -> Error {
    Error::new(Kind::OutcomeUnknown, "the thread that writes is gone")
}

impl Jobs for Sender {
    fn ask(&mut self, job: Job) -> Result<()> {
        self.jobs.send(job).map_err(is_gone)
    }

    fn write(&mut self, file: &Arc<BulkFile>, buffer: &mut AlignedBuffer, at: u64) -> Result<()> {
        let empty = match self.empty.try_recv() {
            Ok(empty) => Some(empty),
            Err(_) if self.made < WRITES_MAX => {
                self.made += 1;
                None
            }
            Err(_) => Some(self.empty.recv().map_err(is_gone)?),
        };
        // A writer begins with a buffer of its own, which is shorter.
        let empty = empty.filter(|empty| empty.capacity() >= self.buffer_len);
        let empty = empty.unwrap_or_else(|| AlignedBuffer::on_large_pages(self.buffer_len));
        let full = std::mem::replace(buffer, empty);
        self.ask(Job::Write(Arc::clone(file), full, at))
    }

    fn is_apart(&self) -> bool {
        true
    }

    fn committed(&self) -> u64 {
        self.committed.load(Ordering::Acquire)
    }
}

/// Takes a stream in.
pub(super) fn take_all<'a>(
    ingest: &'a Ingest,
    memory: &Memory,
    intake: Intake<'a>,
    output: &mut Output<'a>,
    begun: Upload,
    cutter: &mut Cutter<'_>,
) -> Result<(Whole, Sha256Stream)> {
    let (stop, has_ended) = (Stop::default(), AtomicBool::new(false));
    let (to_writer, jobs) = mpsc::sync_channel(JOBS_MAX);
    let (give_empty, empty) = mpsc::channel();
    let (to_namer, named) = ingest.naming.begin();
    let (to_storer, stored) = mpsc::sync_channel(BLOCKS_MAX);
    let (maker, writer, committed) = (output.lease.maker(), output.lease.writer(), output.counter());
    let sender = Sender { jobs: to_writer, empty, made: 0, buffer_len: memory.buffer_len, committed };
    let stream = Stream::new(ingest, intake, Packer::new(maker, writer, sender), begun);
    let (whole, sha256) = thread::scope(|scope| {
        let (stop, has_ended) = (&stop, &has_ended);
        let writing = start(scope, "ingest-write", move || write(output, &jobs, &give_empty, stop))?;
        let naming = start(scope, "ingest-sha256", move || named.run())?;
        let storing = start(scope, "ingest-store", move || store(stream, &stored, stop, has_ended))?;
        feed(memory, cutter, &Feeds { to_namer, to_storer }, stop, has_ended);
        let (sha256, whole) = (join(naming), join(storing));
        join(writing);
        Ok((whole, sha256))
    })?;
    match (stop.first.into_inner(), whole) {
        (None, Some(whole)) => Ok((whole, sha256)),
        (Some(error), _) => Err(error),
        (None, None) => Err(Error::new(Kind::OutcomeUnknown, "a stream ended without an end")),
    }
}

fn start<'scope, T: Send + 'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    name: &str,
    stage: impl FnOnce() -> T + Send + 'scope,
) -> Result<thread::ScopedJoinHandle<'scope, T>> {
    let started = thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, stage);
    started.map_err(|_| Error::new(Kind::Limit, "the system has no thread for a long stream: try again later"))
}

/// What the stage came to; its panic goes on here.
fn join<T>(stage: thread::ScopedJoinHandle<'_, T>) -> T {
    stage.join().unwrap_or_else(|panic| panic::resume_unwind(panic))
}

/// The stages that take blocks.
struct Feeds<'a> {
    to_namer: Feed<'a, Unnamed>,
    to_storer: mpsc::SyncSender<Arc<Block>>,
}

/// Reads and cuts until the source ends or a stage does.
fn feed(memory: &Memory, cutter: &mut Cutter<'_>, feeds: &Feeds<'_>, stop: &Stop, has_ended: &AtomicBool) {
    let (budget, block_len) = (Arc::clone(&memory.budget), memory.block_len);
    let home = Arc::new(Blocks { budget, block_len, state: Mutex::default(), returned: Condvar::new() });
    loop {
        match cutter.fill_block(block_len) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => return stop.set(error),
        }
        if stop.is_set() {
            return;
        }
        let Spare { bytes, grant } = home.take();
        let (bytes, chunks) = cutter.cut_block(bytes);
        let block = Arc::new(Block { bytes, chunks, grant, home: Arc::clone(&home) });
        feeds.to_namer.take(Unnamed(Arc::clone(&block)));
        if feeds.to_storer.send(block).is_err() {
            return;
        }
    }
    // Not set when the source panics: then the other stages see their feed end all the same.
    has_ended.store(true, Ordering::Release);
}

/// `None`: something stopped the stream.
fn store<J: Jobs>(
    mut stream: Stream<'_, J>,
    blocks: &mpsc::Receiver<Arc<Block>>,
    stop: &Stop,
    has_ended: &AtomicBool,
) -> Option<Whole> {
    for block in blocks {
        for chunk in &block.chunks {
            if stop.is_set() {
                return None;
            }
            stream.take(&block.bytes.as_slice()[chunk.clone()]).map_err(|error| stop.set(error)).ok()?;
        }
    }
    if stop.is_set() || !has_ended.load(Ordering::Acquire) {
        return None;
    }
    stream.finish().map_err(|error| stop.set(error)).ok()
}

/// Does the jobs to the last one, also when something stopped the stream: a writer that is put back must have no hole.
fn write(output: &mut Output<'_>, jobs: &mpsc::Receiver<Job>, give_empty: &mpsc::Sender<AlignedBuffer>, stop: &Stop) {
    let mut next = None;
    while let Some(job) = next.take().or_else(|| jobs.recv().ok()) {
        let done = match job {
            Job::Write(file, bytes, at) => {
                let run;
                (run, next) = run_of(&file, bytes, at, jobs);
                let written = output.write_run(&file, &run, at);
                for mut buffer in run {
                    buffer.clear();
                    // Nobody takes it any more once the stream is packed.
                    let _ = give_empty.send(buffer);
                }
                written
            }
            job => output.run(job),
        };
        if let Err(error) = done {
            stop.set(error);
        }
    }
}

/// A buffer, with those that wait behind it and go on where it ends: where writes are slower than the other stages, fewer and longer ones
/// are faster. Gives the job behind them too, if it was taken.
fn run_of(
    file: &Arc<BulkFile>,
    first: AlignedBuffer,
    at: u64,
    jobs: &mpsc::Receiver<Job>,
) -> (Vec<AlignedBuffer>, Option<Job>) {
    let mut end = at + first.len() as u64;
    let mut run = vec![first];
    while run.len() < RUN_MAX {
        match jobs.try_recv() {
            Ok(Job::Write(other, bytes, at)) if Arc::ptr_eq(&other, file) && at == end => {
                end += bytes.len() as u64;
                run.push(bytes);
            }
            Ok(other) => return (run, Some(other)),
            Err(_) => break,
        }
    }
    (run, None)
}
