//! The work that every peer does: a long stream in, again, and out; small puts by one thread and by many.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use holdfast_benches::{Noise, Stopwatch, figure, latency::Latencies, process};
use rustix::fs::{Advice, fadvise};

use crate::{
    Result,
    peers::{Kind, Peer},
    table::Figures,
};

/// Bytes of a put, how many threads put at once, and the column.
const SMALL: [(u64, u64, &str); 5] = [
    (16 << 10, 1, "16k_1"),
    (16 << 10, 16, "16k_16"),
    (4 << 10, 1, "4k_1"),
    (4 << 10, 8, "4k_8"),
    (4 << 10, 64, "4k_64"),
];

/// A directory that is removed at the end, also after an error.
pub(crate) struct Place(PathBuf);

impl Place {
    pub(crate) fn new(within: &Path) -> Result<Self> {
        let path = within.join(format!("holdfast-peers-{}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(Self(path))
    }

    /// A new directory in it.
    fn fresh(&self) -> Result<PathBuf> {
        let path = self.0.join("peer");
        fs::create_dir(&path)?;
        process::settle(&path)?;
        Ok(path)
    }

    fn remove(&self, path: &Path) -> Result {
        fs::remove_dir_all(path)?;
        Ok(process::settle(&self.0)?)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn large(kind: &Kind, place: &Place, round: u64, len: u64, figures: &mut Figures) -> Result {
    let path = place.fresh()?;
    let rate = |watch: Stopwatch| figure(len) / 1e9 / watch.seconds();

    let peer = (kind.open)(&path)?;
    let watch = Stopwatch::start();
    let id = peer.put(Noise::new(round, len), len)?;
    figures.add(kind, "put", rate(watch));
    process::settle(&path)?;

    let watch = Stopwatch::start();
    let again = peer.put(Noise::new(round, len), len)?;
    figures.add(kind, "again", rate(watch));
    peer.close()?;
    process::settle(&path)?;
    figures.add(kind, "disk/logical", figure(allocated(&path)?) / figure(len));

    drop_caches(&path)?;
    let peer = (kind.open)(&path)?;
    let watch = Stopwatch::start();
    expect_all(peer.get(&id)?, len)?;
    figures.add(kind, "cold", rate(watch));
    // One more to bring everything into the page cache, then the one that counts.
    expect_all(peer.get(&again)?, len)?;
    let watch = Stopwatch::start();
    expect_all(peer.get(&id)?, len)?;
    figures.add(kind, "hot", rate(watch));
    peer.close()?;
    place.remove(&path)
}

fn expect_all(read: u64, len: u64) -> Result {
    if read == len { Ok(()) } else { Err(format!("{read} bytes came back of {len}").into()) }
}

pub(crate) fn small(kind: &Kind, place: &Place, round: u64, seconds: u64, figures: &mut Figures) -> Result {
    for (size, threads, column) in SMALL {
        let path = place.fresh()?;
        let peer = (kind.open)(&path)?;
        let crowd = Crowd { peer: &*peer, size, time: Duration::from_secs(seconds) };
        let watch = Stopwatch::start();
        let done = thread::scope(|scope| -> Result<u64> {
            let writer = |number: u64| move || crowd.write(round << 32 | number, watch);
            let writers: Vec<_> = (0..threads).map(|number| scope.spawn(writer(number))).collect();
            let mut done = 0;
            for writer in writers {
                done += writer.join().map_err(|_| "a thread panicked")??.count();
            }
            peer.settle_small()?;
            Ok(done)
        })?;
        figures.add(kind, column, figure(done) / watch.seconds());
        peer.close()?;
        place.remove(&path)?;
    }
    Ok(())
}

#[derive(Clone, Copy)]
struct Crowd<'a> {
    peer: &'a dyn Peer,
    size: u64,
    time: Duration,
}

impl Crowd<'_> {
    fn write(self, seed: u64, watch: Stopwatch) -> Result<Latencies> {
        let noise = Noise::new(seed, u64::MAX);
        let mut bytes = vec![0; usize::try_from(self.size)?];
        let mut latencies = Latencies::default();
        let mut at = 0;
        while watch.elapsed() < self.time {
            noise.fill(at, &mut bytes);
            at += self.size;
            let one = Stopwatch::start();
            self.peer.put_small(&bytes)?;
            latencies.add(one.elapsed());
        }
        Ok(latencies)
    }
}

/// Every file below a directory.
fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() { found.extend(files(&path)?) } else { found.push(path) }
    }
    Ok(found)
}

fn allocated(directory: &Path) -> Result<u64> {
    files(directory)?.iter().map(|path| Ok(fs::metadata(path)?.blocks() * 512)).sum()
}

fn drop_caches(directory: &Path) -> Result {
    for path in files(directory)? {
        fadvise(fs::File::open(path)?, 0, None, Advice::DontNeed)?;
    }
    Ok(())
}
