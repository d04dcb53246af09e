//! A log without an index: what a durable append costs when nothing else is done. Whoever finds nobody writing writes for all that
//! wait, with one sync.

use std::{
    io, mem,
    sync::{Condvar, Mutex, MutexGuard},
};

use holdfast::disk::{AlignedBuffer, Disk, File, Name, OpenOptions, SyncKind, os::OsDisk, retry, write_all};

/// The log goes round in a file of this length whose blocks are written before, so that no append makes the filesystem allocate.
const RING: u64 = 64 << 20;
/// What is collected while a group is being written; the next one waits for room.
const GROUP: usize = 4 << 20;

/// The log.
pub struct BareLog {
    file: Box<dyn File>,
    state: Mutex<State>,
    done: Condvar,
}

struct State {
    pending: AlignedBuffer,
    spare: Option<AlignedBuffer>,
    staged: u64,
    durable: u64,
    at: u64,
    failed: bool,
}

impl BareLog {
    /// Makes the log's file and writes all of its blocks.
    pub fn create(disk: &OsDisk, name: &Name, direct: bool) -> io::Result<Self> {
        let file = disk.open(name, OpenOptions { direct, ..OpenOptions::CREATE })?;
        let zeros = AlignedBuffer::zeroed(GROUP);
        for at in (0..RING).step_by(GROUP) {
            write_all(&*file, zeros.as_slice(), at)?;
        }
        retry(|| file.sync(SyncKind::All))?;
        let state = State {
            pending: AlignedBuffer::with_capacity(GROUP),
            spare: Some(zeros),
            staged: 0,
            durable: 0,
            at: 0,
            failed: false,
        };
        Ok(Self { file, state: Mutex::new(state), done: Condvar::new() })
    }

    /// Appends whole blocks; they are durable when this returns.
    pub fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.lock();
        while state.pending.room() < bytes.len() {
            state = self.done.wait(state).expect("nobody panics with the lock");
        }
        let taken = state.pending.extend_from_slice(bytes);
        assert_eq!(taken, bytes.len(), "there was room");
        state.staged += 1;
        let mine = state.staged;
        while state.durable < mine {
            if state.failed {
                return Err(io::Error::other("the sync of a group failed"));
            }
            state = match state.spare.take() {
                Some(spare) => self.write_group(state, spare)?,
                None => self.done.wait(state).expect("nobody panics with the lock"),
            };
        }
        Ok(())
    }

    /// Writes what is pending, with the lock open meanwhile.
    fn write_group<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        mut spare: AlignedBuffer,
    ) -> io::Result<MutexGuard<'a, State>> {
        spare.clear();
        let group = mem::replace(&mut state.pending, spare);
        let upto = state.staged;
        if state.at + group.len() as u64 > RING {
            state.at = 0;
        }
        let at = state.at;
        state.at += group.len() as u64;
        drop(state);
        let written =
            write_all(&*self.file, group.as_slice(), at).and_then(|()| retry(|| self.file.sync(SyncKind::Data)));
        let mut state = self.lock();
        state.spare = Some(group);
        match &written {
            Ok(()) => state.durable = upto,
            Err(_) => state.failed = true,
        }
        self.done.notify_all();
        written.map(|()| state)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics with the lock")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn every_append_of_many_writers_is_in_the_file() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let disk = OsDisk::open(directory.path()).expect("a directory");
        let name = Name::new("log").expect("a name");
        let log = BareLog::create(&disk, &name, false).expect("made");
        thread::scope(|scope| {
            for writer in 1..=8_u8 {
                let log = &log;
                scope.spawn(move || (0..20).for_each(|_| log.append(&[writer; 4096]).expect("written")));
            }
        });
        let mut bytes = vec![0; 161 * 4096];
        holdfast::disk::read_exact(&*log.file, &mut bytes, 0).expect("long enough");
        for writer in 0..=8_u8 {
            let count = bytes.chunks(4096).filter(|block| **block == [writer; 4096]).count();
            assert_eq!(count, if writer == 0 { 1 } else { 20 }, "of writer {writer}");
        }
    }
}
