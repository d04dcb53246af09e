//! A disk that takes so many bytes a second and no more. Reads are as fast as they are.

use std::{
    io,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use holdfast::disk::{Disk, File, Listing, Lock, LockMode, Mapped, Name, OpenOptions, SyncKind, os::OsDisk};
use holdfast_benches::{Stopwatch, figure};

/// The disk.
#[derive(Clone)]
pub(crate) struct SlowDisk {
    inner: Arc<OsDisk>,
    throttle: Arc<Throttle>,
}

impl SlowDisk {
    pub(crate) fn new(inner: Arc<OsDisk>, rate: u64) -> Self {
        Self { inner, throttle: Arc::new(Throttle { rate, watch: Stopwatch::start(), taken: Mutex::default() }) }
    }

    /// Bytes a second that it took up to now.
    pub(crate) fn rate(&self) -> f64 {
        let taken = self.throttle.taken.lock().expect("nobody panics with the lock");
        figure(taken.bytes) / self.throttle.watch.seconds().max(taken.until)
    }
}

/// Who wants to write takes the next free time on the disk and waits for its end.
struct Throttle {
    rate: u64,
    watch: Stopwatch,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    bytes: u64,
    /// Second up to which the disk's time is given away.
    until: f64,
}

impl Throttle {
    fn take(&self, bytes: u64) {
        let end = {
            let mut taken = self.taken.lock().expect("nobody panics with the lock");
            taken.bytes += bytes;
            taken.until = taken.until.max(self.watch.seconds()) + figure(bytes) / figure(self.rate);
            taken.until
        };
        let wait = end - self.watch.seconds();
        if wait > 0.0 {
            #[expect(clippy::disallowed_methods, reason = "the disk is slow: that is what it is for")]
            thread::sleep(Duration::from_secs_f64(wait));
        }
    }
}

struct SlowFile {
    inner: Box<dyn File>,
    throttle: Arc<Throttle>,
}

impl Disk for SlowDisk {
    fn open(&self, name: &Name, options: OpenOptions) -> io::Result<Box<dyn File>> {
        Ok(Box::new(SlowFile { inner: self.inner.open(name, options)?, throttle: Arc::clone(&self.throttle) }))
    }

    fn rename(&self, from: &Name, to: &Name) -> io::Result<()> {
        self.inner.rename(from, to)
    }

    fn unlink(&self, name: &Name) -> io::Result<()> {
        self.inner.unlink(name)
    }

    fn list(&self) -> io::Result<Listing> {
        self.inner.list()
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.inner.sync_dir()
    }

    fn lock(&self, mode: LockMode, holder: &str) -> io::Result<Lock> {
        self.inner.lock(mode, holder)
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.inner.free_bytes()
    }
}

impl File for SlowFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.inner.read_at(bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.throttle.take(bytes.len() as u64);
        self.inner.write_at(bytes, offset)
    }

    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn allocated(&self) -> io::Result<u64> {
        self.inner.allocated()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner.set_len(len)
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        self.inner.punch(offset, len)
    }

    fn zero(&self, offset: u64, len: u64) -> io::Result<()> {
        self.throttle.take(len);
        self.inner.zero(offset, len)
    }

    fn allocate(&self, offset: u64, len: u64) -> io::Result<()> {
        self.inner.allocate(offset, len)
    }

    fn sync(&self, kind: SyncKind) -> io::Result<()> {
        self.inner.sync(kind)
    }

    fn map(&self, offset: u64, len: usize) -> io::Result<Mapped> {
        self.inner.map(offset, len)
    }

    fn align(&self) -> u32 {
        self.inner.align()
    }

    fn drop_cache(&self, offset: u64, len: u64) {
        self.inner.drop_cache(offset, len);
    }
}
