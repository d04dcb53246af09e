//! Where the long streams of a store are named by SHA-256, two at a time on one core: the rounds of one stream wait for each other, and
//! those of another one fit in between.
//!
//! Each stream has a thread here and brings its blocks. Whichever thread is free hashes, for any of the streams: two that have blocks, in
//! step. While several streams are under way, one that alone has a block waits for another one's, until it has a second one itself: so
//! nobody waits for a client that stalls, and a stream that is the only one goes at its own speed. Nothing here knows what the blocks are.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::LazyLock,
};

use crate::{
    digest::Sha256Stream,
    sync::{Condvar, Mutex, thread},
};

/// Blocks with which a stream waits no longer for company. It always comes to have so many: a pipeline has three of its own.
pub(super) const PATIENCE: usize = 2;

/// Asked once: the system answers out of a dozen files.
static CORES: LazyLock<usize> = LazyLock::new(|| thread::available_parallelism().map_or(1, std::num::NonZero::get));

/// The streams that are named. `B` is a block.
pub(super) struct Naming<B> {
    state: Mutex<State<B>>,
    changed: Condvar,
}

struct State<B> {
    streams: BTreeMap<u64, Stream<B>>,
    next_id: u64,
    /// Threads that may begin to hash.
    places: usize,
}

struct Stream<B> {
    /// Away while somebody hashes it.
    sha256: Option<Sha256Stream>,
    blocks: VecDeque<Rest<B>>,
    has_ended: bool,
    /// The thread that hashed it panicked.
    is_lost: bool,
}

/// A block, of which so many bytes are hashed.
struct Rest<B> {
    block: B,
    taken: usize,
}

impl<B: AsRef<[u8]>> Rest<B> {
    fn bytes(&self) -> &[u8] {
        &self.block.as_ref()[self.taken..]
    }
}

/// A block that is hashed, and its stream.
struct Work<B> {
    id: u64,
    sha256: Sha256Stream,
    rest: Rest<B>,
}

impl<B> Stream<B> {
    fn has_work(&self) -> bool {
        self.sha256.is_some() && !self.blocks.is_empty()
    }

    /// A block may still come, or is being hashed.
    fn is_under_way(&self) -> bool {
        !self.has_ended || self.sha256.is_none() || !self.blocks.is_empty()
    }
}

impl<B> State<B> {
    /// What to hash next: two streams that have blocks, or one that need not wait for another.
    fn pick(&mut self) -> Option<(Work<B>, Option<Work<B>>)> {
        if self.places == 0 {
            return None;
        }
        let mut ready: Vec<_> = self.streams.iter().filter(|(_, stream)| stream.has_work()).collect();
        // Whoever has most waits longest, or has the fastest source.
        ready.sort_by_key(|(_, stream)| std::cmp::Reverse(stream.blocks.len()));
        let first = *ready.first()?.0;
        let second = ready.get(1).map(|(id, _)| **id);
        if second.is_none() {
            let stream = &self.streams[&first];
            let has_company = self.streams.iter().any(|(id, other)| *id != first && other.is_under_way());
            if has_company && !stream.has_ended && stream.blocks.len() < PATIENCE {
                return None;
            }
        }
        let first = self.begin(first)?;
        self.places -= 1;
        Some((first, second.and_then(|id| self.begin(id))))
    }

    fn begin(&mut self, id: u64) -> Option<Work<B>> {
        let stream = self.streams.get_mut(&id)?;
        let rest = stream.blocks.pop_front()?;
        Some(Work { id, sha256: stream.sha256.take()?, rest })
    }
}

impl<B: AsRef<[u8]>> State<B> {
    /// Puts back what was hashed, and what is left of the block. Gives a block that is done.
    fn end(&mut self, work: Work<B>) -> Option<B> {
        // Its thread may have gone: nobody wants the digest then.
        let Some(stream) = self.streams.get_mut(&work.id) else { return Some(work.rest.block) };
        stream.sha256 = Some(work.sha256);
        if work.rest.bytes().is_empty() {
            return Some(work.rest.block);
        }
        stream.blocks.push_front(work.rest);
        None
    }
}

impl<B: AsRef<[u8]>> Naming<B> {
    /// Nobody is named yet.
    pub(super) fn new() -> Self {
        let cores = *CORES;
        // Two at a time a core names more than the other stages of one have to name. Where it takes them one after the other, each
        // stream has its own thread, and is not to wait.
        let places = if Sha256Stream::two_pay() { cores.div_ceil(2) } else { usize::MAX };
        Self { state: Mutex::new(State { streams: BTreeMap::new(), next_id: 0, places }), changed: Condvar::new() }
    }

    /// A stream begins: where its blocks go, and who names it.
    pub(super) fn begin(&self) -> (Feed<'_, B>, Named<'_, B>) {
        let mut state = self.state.lock();
        let id = state.next_id;
        state.next_id += 1;
        let sha256 = Some(Sha256Stream::default());
        state.streams.insert(id, Stream { sha256, blocks: VecDeque::new(), has_ended: false, is_lost: false });
        (Feed { naming: self, id }, Named { naming: self, id })
    }

    /// Hashes, without the lock, and gives the place back.
    fn hash(&self, first: Work<B>, second: Option<Work<B>>) {
        let mut work = [Some(first), second];
        let lost = Lost { naming: self, ids: work.each_ref().map(|work| work.as_ref().map(|work| work.id)) };
        match &mut work {
            [Some(one), Some(two)] => {
                let both = one.rest.bytes().len().min(two.rest.bytes().len());
                let (bytes_one, bytes_two) = (&one.rest.bytes()[..both], &two.rest.bytes()[..both]);
                Sha256Stream::update_two([(&mut one.sha256, bytes_one), (&mut two.sha256, bytes_two)]);
                one.rest.taken += both;
                two.rest.taken += both;
            }
            [Some(one), None] => {
                one.sha256.update(one.rest.bytes());
                one.rest.taken = one.rest.block.as_ref().len();
            }
            [None, _] => {}
        }
        std::mem::forget(lost);
        let mut state = self.state.lock();
        state.places = state.places.saturating_add(1);
        let done = work.map(|work| state.end(work?));
        drop(state);
        self.changed.notify_all();
        // Without the lock: the block's memory goes back to its stream, or to the budget.
        drop(done);
    }
}

/// Gives the owners of what was being hashed a word that it is lost.
struct Lost<'a, B> {
    naming: &'a Naming<B>,
    ids: [Option<u64>; 2],
}

impl<B> Drop for Lost<'_, B> {
    fn drop(&mut self) {
        let mut state = self.naming.state.lock();
        state.places = state.places.saturating_add(1);
        for id in self.ids.into_iter().flatten() {
            if let Some(stream) = state.streams.get_mut(&id) {
                stream.is_lost = true;
            }
        }
        drop(state);
        self.naming.changed.notify_all();
    }
}

/// Takes the blocks of a stream. The stream ends when this is dropped.
pub(super) struct Feed<'a, B> {
    naming: &'a Naming<B>,
    id: u64,
}

impl<B> Feed<'_, B> {
    /// Takes the next block. Never waits.
    pub(super) fn take(&self, block: B) {
        let mut state = self.naming.state.lock();
        if let Some(stream) = state.streams.get_mut(&self.id) {
            stream.blocks.push_back(Rest { block, taken: 0 });
        }
        let has_place = state.places > 0;
        drop(state);
        if has_place {
            self.naming.changed.notify_one();
        }
    }
}

impl<B> Drop for Feed<'_, B> {
    fn drop(&mut self) {
        let mut state = self.naming.state.lock();
        if let Some(stream) = state.streams.get_mut(&self.id) {
            stream.has_ended = true;
        }
        drop(state);
        self.naming.changed.notify_all();
    }
}

/// A stream's right to a thread here.
pub(super) struct Named<'a, B> {
    naming: &'a Naming<B>,
    id: u64,
}

impl<B: AsRef<[u8]>> Named<'_, B> {
    /// Hashes for all until the own stream has ended and is hashed.
    pub(super) fn run(self) -> Sha256Stream {
        let mut state = self.naming.state.lock();
        loop {
            let own = state.streams.get_mut(&self.id).expect("it is there until this is dropped");
            assert!(!own.is_lost, "the thread that hashed a stream panicked");
            if !own.is_under_way() {
                return own.sha256.take().expect("nobody hashes it");
            }
            if let Some((first, second)) = state.pick() {
                drop(state);
                self.naming.hash(first, second);
                state = self.naming.state.lock();
            } else {
                self.naming.changed.wait(&mut state);
            }
        }
    }
}

impl<B> Drop for Named<'_, B> {
    fn drop(&mut self) {
        let stream = self.naming.state.lock().streams.remove(&self.id);
        // Its blocks go without the lock.
        drop(stream);
        self.naming.changed.notify_all();
    }
}

#[cfg(test)]
mod tests;
