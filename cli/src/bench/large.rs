//! `bench large`: long streams in, again, changed, and out.

use std::{
    io::{self, Read as _},
    process::Command,
    thread,
};

use holdfast::{Error, Get, Kind, PutReply, Store};
use holdfast_benches::{
    Noise, Stopwatch, figure, process,
    yardstick::{self, Digests, Write},
};

use super::{
    Best, Row, gib, head, mib,
    place::{Place, SCOPE, plain, put},
    print,
};
use crate::{
    exit_code::{Failure, Outcome},
    progress::Progress,
    session::Session,
};

/// Every row, in the order in which they are printed.
pub(crate) const ROWS: [&str; 10] = [
    "put",
    "put_written",
    "put_allocated",
    "put_again",
    "put_again_written",
    "get_cold",
    "get_hot",
    "insert_front",
    "put_four",
    "memory_peak",
];

/// Length of a stream unless one is given.
pub(crate) const SIZE: u64 = 512 << 20;
/// Shorter streams are not long ones.
pub(crate) const SIZE_MIN: u64 = 1 << 20;
/// What is put in front of a stream that was put before.
const INSERTED: u64 = 1 << 20;
/// The stream whose memory is measured begins anew after this, so that it can be longer than the disk.
const REPEATED: u64 = 1 << 30;
const STREAMS: u64 = 4;
const SHA256: &str = "SHA-256 in memory, one core";

/// What to measure.
pub(crate) struct Plan {
    pub(crate) size: u64,
    pub(crate) rounds: u32,
    pub(crate) rows: Vec<String>,
}

impl Plan {
    fn wants(&self, rows: &[&str]) -> bool {
        rows.iter().any(|row| self.rows.iter().any(|wanted| wanted == row))
    }

    fn wants_one_stream(&self) -> bool {
        self.rows.iter().any(|row| !["put_four", "memory_peak"].contains(&row.as_str()))
    }

    /// What stands on the disk at once, at most.
    fn room(&self) -> u64 {
        let one = if self.wants_one_stream() { 2 * self.size + self.size / 2 } else { 0 };
        let four = if self.wants(&["put_four"]) { (STREAMS + 1) * self.size + self.size / 2 } else { 0 };
        let memory = if self.wants(&["memory_peak"]) { REPEATED.min(self.size.saturating_mul(4)) } else { 0 };
        one.max(four).max(memory).saturating_add(256 << 20)
    }
}

pub(crate) fn run(plan: &Plan, place: &Place, session: &Session) -> Outcome {
    let (room, free) = (plan.room(), place.free_bytes()?);
    if room > free {
        let message = format!("this takes {room} bytes of disk for a while, and {free} are free: give --size or --dir");
        return Err(Error::new(Kind::NoSpace, message).into());
    }
    if plan.rows == ["memory_peak"] {
        return print(&[memory_peak(plan, place)?], &plan.rows, session);
    }
    head(plan.rounds, session)?;
    let digests = Digests::default();
    if plan.wants_one_stream() {
        let mut bench = OneStream { plan, place, digests: &digests, seen: Seen::default() };
        bench.measure()?;
        print(&bench.seen.rows(plan), &plan.rows, session)?;
    }
    drop(digests);
    if plan.wants(&["put_four"]) {
        print(&[four_streams(plan, place)?], &plan.rows, session)?;
    }
    if plan.wants(&["memory_peak"]) {
        memory_peak_elsewhere(plan, place)?;
    }
    Ok(())
}

/// One stream at a time.
struct OneStream<'a> {
    plan: &'a Plan,
    place: &'a Place,
    digests: &'a Digests,
    seen: Seen,
}

/// What was seen in all rounds.
#[derive(Default)]
struct Seen {
    sha256: Best,
    blake3: Best,
    read: Best,
    put: Best,
    again: Best,
    cold: Best,
    hot: Best,
    put_bytes: u64,
    written: u64,
    allocated: u64,
    again_written: u64,
    inserted: u64,
}

impl Seen {
    fn rows(&self, plan: &Plan) -> Vec<Row> {
        let speed = |row, value: Best, yardstick: Best, against| {
            Row::against(row, gib(value.rate()), "GiB/s", gib(yardstick.rate()), against)
        };
        let bytes = |row, value, against| Row::against(row, mib(value), "MiB", mib(self.put_bytes), against);
        let inserted = mib(INSERTED * u64::from(plan.rounds));
        vec![
            speed("put", self.put, self.sha256, SHA256),
            bytes("put_written", self.written, "bytes put, in all rounds"),
            bytes("put_allocated", self.allocated, "bytes put, in all rounds"),
            speed("put_again", self.again, self.sha256, SHA256),
            bytes("put_again_written", self.again_written, "bytes put again, in all rounds"),
            speed("get_cold", self.cold, self.read, "cold read of a plain file"),
            speed("get_hot", self.hot, self.blake3, "BLAKE3 in memory, one core"),
            Row::against("insert_front", mib(self.inserted), "MiB", inserted, "bytes inserted, in all rounds"),
        ]
    }
}

impl OneStream<'_> {
    fn measure(&mut self) -> Outcome {
        let plain_file = plain("plain");
        let wants_cold = self.plan.wants(&["get_cold"]);
        if wants_cold {
            let failed = self.place.failed("write a file");
            yardstick::write_sequential(&self.place.disk, &plain_file, self.plan.size, Write::Direct)
                .map_err(failed)?;
        }
        let mut progress = Progress::steps("bench large, one stream, round", u64::from(self.plan.rounds));
        for round in 0..self.plan.rounds {
            progress.set(u64::from(round));
            self.round(u64::from(round))?;
        }
        if wants_cold {
            self.place.remove_file(&plain_file)?;
        }
        Ok(())
    }

    fn round(&mut self, seed: u64) -> Outcome {
        let size = self.plan.size;
        let store = self.place.make_store("store")?;
        self.seen.sha256.add(self.digests.sha256(size));

        let (written, allocated) = (self.written()?, store.stats()?.disk_bytes);
        let (reply, rate) = timed_put(&store, "stream", Noise::new(seed, size), size)?;
        self.seen.put.add(rate);
        self.seen.put_bytes += size;
        self.seen.written += self.written()? - written;
        self.seen.allocated += store.stats()?.disk_bytes.saturating_sub(allocated);

        if self.plan.wants(&["put_again", "put_again_written"]) {
            self.seen.sha256.add(self.digests.sha256(size));
            let written = self.written()?;
            let (again, rate) = timed_put(&store, "again", Noise::new(seed, size), size)?;
            self.seen.again.add(rate);
            self.seen.again_written += self.written()? - written;
            same(&reply, &again)?;
        }
        let store = if self.plan.wants(&["get_cold"]) { self.cold(store, &reply)? } else { store };
        if self.plan.wants(&["get_hot"]) {
            self.seen.blake3.add(self.digests.blake3(size));
            // The first brings the bytes into the page cache.
            timed_get(&store, &reply)?;
            self.seen.hot.add(timed_get(&store, &reply)?);
        }
        if self.plan.wants(&["insert_front"]) {
            let before = store.stats()?.live_bytes;
            let mut changed = Noise::new(!seed, INSERTED).chain(Noise::new(seed, size));
            store.put(&put("changed", size + INSERTED), &mut changed)?;
            self.seen.inserted += store.stats()?.live_bytes - before;
        }
        store.close()?;
        Ok(self.place.remove_store("store")?)
    }

    fn cold(&mut self, store: Store, reply: &PutReply) -> Outcome<Store> {
        let read = yardstick::read_cold(&self.place.disk, &plain("plain")).map_err(self.place.failed("read a file"))?;
        self.seen.read.add(read);
        let store = self.place.reopen_cold(store, "store")?;
        self.seen.cold.add(timed_get(&store, reply)?);
        Ok(store)
    }

    fn written(&self) -> Result<u64, Error> {
        process::written_bytes(self.place.disk.path()).map_err(self.place.failed("count the bytes written"))
    }
}

fn timed_put(store: &Store, name: &str, mut bytes: Noise, size: u64) -> Result<(PutReply, f64), Error> {
    let watch = Stopwatch::start();
    let reply = store.put(&put(name, size), &mut bytes)?;
    Ok((reply, figure(size) / watch.seconds()))
}

/// Gives the bytes a second.
fn timed_get(store: &Store, reply: &PutReply) -> Result<f64, Error> {
    let watch = Stopwatch::start();
    store.get(SCOPE, reply.id, &Get::WHOLE, &mut io::sink())?;
    Ok(figure(reply.size) / watch.seconds())
}

/// A figure of a store that gives other bytes is worth nothing.
fn same(one: &PutReply, other: &PutReply) -> Outcome {
    if one.sha256 == other.sha256 && one.size == other.size {
        return Ok(());
    }
    Err(Error::new(Kind::Corrupt, "bench: the same bytes got another SHA-256").into())
}

/// Four streams at once against a plain sequential write.
fn four_streams(plan: &Plan, place: &Place) -> Outcome<Row> {
    let (mut four, mut plain_write) = (Best::default(), Best::default());
    let mut progress = Progress::steps("bench large, four streams, round", u64::from(plan.rounds));
    for round in 0..plan.rounds {
        progress.set(u64::from(round));
        for how in [Write::Direct, Write::Buffered] {
            let name = plain("plain");
            place.settle()?;
            let rate = yardstick::write_sequential(&place.disk, &name, plan.size, how);
            plain_write.add(rate.map_err(place.failed("write a file"))?);
            place.remove_file(&name)?;
        }
        let store = place.make_store("store")?;
        let watch = Stopwatch::start();
        put_four(&store, plan.size, u64::from(round))?;
        four.add(figure(STREAMS * plan.size) / watch.seconds());
        store.close()?;
        place.remove_store("store")?;
    }
    let against = "durable write of a plain file";
    Ok(Row::against("put_four", gib(four.rate()), "GiB/s", gib(plain_write.rate()), against))
}

fn put_four(store: &Store, size: u64, round: u64) -> Result<(), Error> {
    thread::scope(|scope| {
        let put_one = |stream| timed_put(store, "stream", Noise::new(round * STREAMS + stream, size), size);
        let streams: Vec<_> = (0..STREAMS).map(|stream| scope.spawn(move || put_one(stream))).collect();
        streams.into_iter().try_for_each(|stream| stream.join().expect("a put does not panic").map(drop))
    })
}

/// The most memory that this process took for a put and a get of a stream of any length.
fn memory_peak(plan: &Plan, place: &Place) -> Outcome<Row> {
    let store = place.make_store("store")?;
    let mut progress = Progress::new("bench large, memory", plan.size.saturating_mul(2));
    let mut source = Noise::repeating(0, plan.size, REPEATED);
    let reply = store.put(&put("stream", plan.size), &mut Watched { inner: &mut source, progress: &mut progress })?;
    store.get(SCOPE, reply.id, &Get::WHOLE, &mut Watched { inner: &mut io::sink(), progress: &mut progress })?;
    let peak = process::memory_peak().map_err(place.failed("read the memory peak"))?;
    store.close()?;
    Ok(Row::alone("memory_peak", mib(peak), "MiB"))
}

/// In a process of its own: what the rows before took would count too. Its line is its own.
fn memory_peak_elsewhere(plan: &Plan, place: &Place) -> Outcome {
    let failed = place.failed("run itself again");
    let mut command = Command::new(std::env::current_exe().map_err(&failed)?);
    let size = plan.size.saturating_mul(4).to_string();
    command.args(["bench", "large", "--rows", "memory_peak", "--size", &size, "--dir"]).arg(place.disk.path());
    if std::env::args_os().any(|word| word == "--json") {
        command.arg("--json");
    }
    let status = command.status().map_err(&failed)?;
    match status.code() {
        Some(0) => Ok(()),
        code => Err(Failure::Told(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))),
    }
}

/// Shows what goes through.
struct Watched<'a, T> {
    inner: &'a mut T,
    progress: &'a mut Progress,
}

impl<T: io::Read> io::Read for Watched<'_, T> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(bytes)?;
        self.progress.add(count);
        Ok(count)
    }
}

impl<T: io::Write> io::Write for Watched<'_, T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.progress.add(count);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
