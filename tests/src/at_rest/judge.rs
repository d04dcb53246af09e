//! What must hold of a damaged store: no wrong bytes, no panic, everything that was not hit stays readable, the damage is named, and
//! an open for writing destroys nothing.

use std::io;

use holdfast::{
    AccountScope, Error, Kind, Problem, Put, Store, VerifyOptions,
    disk::{Name, sim::Image},
    format::artifact::Origin,
    ids::ArtifactId,
    store::{Get, OpenMode},
};
use holdfast_format_spec::store::{self as independent, Unreadable};

use super::{
    damage::{Damage, Reach},
    hit::Hit,
    map::{Map, Place},
    reference::Reference,
};
use crate::{
    harness::{Stored, workload::ACCOUNTS},
    oracle::{independent::ImageFiles, logical::scope},
};

/// The reference and what is known of it.
pub struct Judge<'a> {
    /// The store.
    pub reference: &'a Reference,
    /// What stands where in it.
    pub map: &'a Map,
    /// Every damaged store is verified, parsed and written to, and not only read where a neighbouring bit stands for this one.
    pub looks_at_all: bool,
}

/// How an artifact can be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reading {
    /// As it was put.
    Whole,
    /// It has expired.
    Expired,
    /// `CORRUPT`.
    Corrupt,
    /// There is no record of it.
    Missing,
}

/// Counts of one case.
#[derive(Clone, Copy, Default, Debug)]
pub struct Seen {
    /// Artifacts that answered `CORRUPT`.
    pub corrupt: u64,
    /// Artifacts whose record was lost with its commit.
    pub missing: u64,
    /// The store could not be opened.
    pub closed: bool,
    /// It opened and takes no writes.
    pub read_only: bool,
    /// Artifacts that a put of their bytes made readable again.
    pub healed: u64,
}

impl Judge<'_> {
    /// Judges one damaged store. An error says what does not hold.
    pub fn judge(&self, damage: &Damage, image: &Image) -> Result<Seen, String> {
        let hit = Hit::of(self.map, image, damage.reach(), damage.differences(&self.reference.image, image));
        let mut seen = Seen::default();
        if hit.loses_page() && hit.reach != Reach::Roots {
            return self.lost_page(&hit, image, seen).map_err(|what| format!("a page without a copy: {what}"));
        }
        let readings = self.read_only(&hit, image, &mut seen).map_err(|what| format!("open for reading: {what}"))?;
        if !self.looks_at_all && self.has_representative(damage) {
            return Ok(seen);
        }
        self.verify(&hit, image, readings.as_deref()).map_err(|what| format!("verify: {what}"))?;
        independent(&hit, image)?;
        self.repair(&hit, image).map_err(|what| format!("repair: {what}"))?;
        self.write(hit.reach, image, readings.as_deref(), &mut seen)
            .map_err(|what| format!("open for writing: {what}"))?;
        Ok(seen)
    }

    /// Whether another bit of the same byte stands for this one: all bits of structures are inverted, and a checksum notices the one
    /// as it does the other.
    fn has_representative(&self, damage: &Damage) -> bool {
        let Damage::Flip(name, bit) = damage else { return false };
        let byte = bit / 8;
        self.map.at(name, byte).is_some_and(|region| region.is_structure(byte))
            && bit % 8 != byte.wrapping_add(self.reference.seed) % 8
    }

    /// Opens for reading and reads everything. `None`: it could not be opened, as it should not.
    fn read_only(&self, hit: &Hit<'_>, image: &Image, seen: &mut Seen) -> Result<Option<Vec<Reading>>, String> {
        let machine = Reference::machine(image);
        let store = match machine.open_for(OpenMode::Read) {
            Ok(store) => store,
            Err(error) => {
                seen.closed = true;
                return self.may_stay_closed(hit, &error).map(|()| None);
            }
        };
        let readings = self.read_all(&store, hit.reach)?;
        let report = store.report();
        seen.read_only = report.read_only.is_some();
        if hit.reach == Reach::Roots {
            let is_named = report.read_only.is_some() || !report.problems.is_empty();
            return self.may_be_earlier(is_named, &readings).map(|()| Some(readings));
        }
        for (stored, reading) in self.reference.stored.iter().zip(&readings) {
            let rests = &self.map.rests[&stored.id.0];
            let is_hit = rests.frames.iter().any(|place| hit.touches(place));
            let is_unrecorded = rests.commits.iter().any(|place| hit.touches(place) || hit.beheads(self.map, &place.0));
            let wanted = if Reference::has_expired(stored) { Reading::Expired } else { Reading::Whole };
            match reading {
                Reading::Missing if is_unrecorded => {
                    seen.missing += 1;
                    if report.read_only.is_none() {
                        return Err(format!("{} is missing, and the store takes writes", stored.name));
                    }
                    let near = |problem: &Problem| is_problem_near(hit, problem);
                    if hit.reach == Reach::One && !report.problems.iter().any(near) {
                        return Err(format!("{} is missing, and the report does not say where", stored.name));
                    }
                }
                Reading::Missing => return Err(format!("{} is missing, whose commit was not hit", stored.name)),
                Reading::Corrupt if is_hit || self.is_lost(hit, rests.frames.iter()) => seen.corrupt += 1,
                Reading::Corrupt => return Err(format!("{} is CORRUPT, whose frames were not hit", stored.name)),
                Reading::Whole if is_hit => return Err(format!("{} reads back from damaged frames", stored.name)),
                reading if *reading == wanted => {}
                reading => return Err(format!("{} is {reading:?} instead of {wanted:?}", stored.name)),
            }
        }
        Ok(Some(readings))
    }

    /// What is taken for the store's state is another one: that is named, or it is the earlier one, or another store's.
    fn may_be_earlier(&self, is_named: bool, readings: &[Reading]) -> Result<(), String> {
        let (before, since) = readings.split_at(self.reference.stored_earlier);
        let is_missing = |reading: &Reading| *reading == Reading::Missing;
        // Frames of the bulk lane are read when they are asked for: damage in them is told then.
        let is_earlier = !before.iter().any(is_missing) && since.iter().all(|r| is_missing(r) || *r == Reading::Whole);
        let is_foreign = readings.iter().all(is_missing);
        let is_now = !readings.iter().any(is_missing);
        if is_named || is_earlier || is_foreign || is_now {
            Ok(())
        } else {
            Err("a part of the artifacts is missing, and nothing is reported".to_owned())
        }
    }

    /// Frames of a log segment that lost both copies of its header cannot be found again.
    fn is_lost<'p>(&self, hit: &Hit<'_>, mut frames: impl Iterator<Item = &'p Place>) -> bool {
        frames.any(|(name, _)| hit.beheads(self.map, name))
    }

    /// A store may refuse to open only when its roots are gone, and says which file.
    fn may_stay_closed(&self, hit: &Hit<'_>, error: &Error) -> Result<(), String> {
        let manifests = hit.regions.keys().filter(|name| name.as_str().starts_with("manifest-")).count();
        let no_log = self.map.log.iter().all(|name| hit.beheads(self.map, name));
        if hit.reach != Reach::Roots && hit.superblocks() >= 2 && manifests < 2 && !no_log {
            return Err(format!("does not open: {error}"));
        }
        match (error.kind(), &error.place().file) {
            (Kind::Corrupt, file @ Some(_)) if hit.is_of(file.as_deref()) => Ok(()),
            _ => Err(format!("{}: {error}", error.kind().as_str())),
        }
    }

    /// A page of a table that has no good copy takes records with it: whoever asks for one is told `CORRUPT`, and never that it is not
    /// there; the page is named, and no file goes.
    fn lost_page(&self, hit: &Hit<'_>, image: &Image, mut seen: Seen) -> Result<Seen, String> {
        let machine = Reference::machine(image);
        let store = machine.open_for(OpenMode::Read).map_err(|e| format!("open for reading: {e}"))?;
        for stored in &self.reference.stored {
            if let Err(error) = store.stat(scope(stored), stored.id)
                && !matches!(error.kind(), Kind::Corrupt | Kind::Gone)
            {
                return Err(format!("{}: stat: {}: {error}", stored.name, error.kind().as_str()));
            }
            let reading = read(&store, stored)?;
            let wanted = if Reference::has_expired(stored) { Reading::Expired } else { Reading::Whole };
            match reading {
                Reading::Corrupt => seen.corrupt += 1,
                reading if reading == wanted => {}
                reading => return Err(format!("{} is {reading:?}", stored.name)),
            }
        }
        drop(store);
        let options = VerifyOptions { deep: true, refs: true, memory: 0 };
        match Store::verify(&machine.world, &options, &mut |_, _| {}) {
            Ok(report) => {
                let is_named = |name: &&Name| report.problems.iter().any(|p| p.file.as_deref() == Some(name.as_str()));
                if !hit.regions.keys().all(|name| is_named(&name)) {
                    return Err(format!("verify: {:?}", report.problems.iter().map(say).collect::<Vec<_>>()));
                }
            }
            Err(error) if is_corrupt_of(hit, &error) => {}
            Err(error) => return Err(format!("verify: {error}")),
        }
        independent(hit, image)?;
        match machine.open() {
            Ok(store) if store.report().destroyed_files.is_empty() => {
                seen.read_only = store.report().read_only.is_some();
                store.close().map_err(|e| format!("close: {e}"))?;
            }
            Ok(store) => return Err(format!("destroyed {:?}", store.report().destroyed_files)),
            Err(error) if error.kind() == Kind::Corrupt => seen.closed = true,
            Err(error) => return Err(format!("open for writing: {error}")),
        }
        self.same_files(image, &machine.sim.image())?;
        Ok(seen)
    }

    fn is_known(&self, id: ArtifactId) -> bool {
        self.map.rests.contains_key(&id.0)
    }

    /// Asks for every artifact, and for the lists. What stands for the tables may be another store's: then lists are CORRUPT, in a store
    /// that takes no writes.
    fn read_all(&self, store: &Store, reach: Reach) -> Result<Vec<Reading>, String> {
        let lists_may_be_lost = reach == Reach::Roots && store.report().read_only.is_some();
        let readings = self.reference.stored.iter().map(|stored| read(store, stored)).collect::<Result<Vec<_>, _>>()?;
        for (number, account) in ACCOUNTS.iter().enumerate() {
            let page = store.list(AccountScope { tenant: "default", account }, None, 1000);
            let listed: Vec<ArtifactId> = match page {
                // What was put since is not among those that are asked for here.
                Ok(page) => page.artifacts.iter().map(|info| info.id).filter(|id| self.is_known(*id)).collect(),
                Err(error) if lists_may_be_lost && error.kind() == Kind::Corrupt => continue,
                Err(error) => return Err(format!("list: {error}")),
            };
            let there = self.reference.stored.iter().zip(&readings).filter(|(stored, reading)| {
                stored.account == number && matches!(reading, Reading::Whole | Reading::Corrupt)
            });
            if !listed.iter().eq(there.map(|(stored, _)| &stored.id)) {
                return Err(format!("list of {account}: not the artifacts that can be asked for"));
            }
        }
        Ok(readings)
    }

    /// A deep verification must name the damage in each file that was hit, and every artifact that cannot be read.
    fn verify(&self, hit: &Hit<'_>, image: &Image, readings: Option<&[Reading]>) -> Result<(), String> {
        let machine = Reference::machine(image);
        let options = VerifyOptions { deep: true, refs: true, memory: 0 };
        let report = match Store::verify(&machine.world, &options, &mut |_, _| {}) {
            Ok(report) => report,
            // There is nothing to verify where there is no store at all.
            Err(error) if readings.is_none() => return self.may_stay_closed(hit, &error),
            Err(error) if hit.reach == Reach::Roots && is_corrupt_of(hit, &error) => return Ok(()),
            Err(error) => return Err(format!("{error}")),
        };
        let Some(readings) = readings else {
            let named = report.problems.iter().any(|problem| hit.is_of(problem.file.as_deref()));
            let said = || report.problems.iter().map(say).collect::<Vec<_>>();
            return if named { Ok(()) } else { Err(format!("names no file that was hit: {:?}", said())) };
        };
        if hit.reach == Reach::Roots {
            return self.may_be_earlier(!report.problems.is_empty(), readings);
        }
        let mut unnamed: Vec<&Name> = Vec::new();
        for name in hit.regions.keys() {
            let names_it = |problem: &&Problem| problem.file.as_deref() == Some(name.as_str());
            let near = |problem: &Problem| names_it(&problem) && is_problem_near(hit, problem);
            if !report.problems.iter().any(near) {
                unnamed.push(name);
            }
        }
        if hit.is_hidden(&unnamed) {
            let said: Vec<String> = report.problems.iter().map(say).collect();
            return Err(format!("{unnamed:?} was hit and is not named near there; said: {said:?}"));
        }
        for (stored, reading) in self.reference.stored.iter().zip(readings) {
            let named = report.problems.iter().any(|problem| problem.artifact == Some(stored.id));
            // Nobody can read what has expired; whether it is damaged is for the report alone.
            let is_hit = self.map.rests[&stored.id.0].frames.iter().any(|place| hit.touches(place));
            let wanted = match reading {
                Reading::Corrupt => true,
                Reading::Expired => is_hit,
                Reading::Whole | Reading::Missing => false,
            };
            if named != wanted {
                let not = if named { "is named, and can be read" } else { "cannot be read, and is not named" };
                return Err(format!("{} {not}", stored.name));
            }
        }
        if hit.differences.is_empty() && !report.problems.is_empty() {
            return Err(format!("nothing was hit, and it says: {}", say(&report.problems[0])));
        }
        Ok(())
    }

    /// Opens for writing, writes, closes, and opens again: nothing may be worse than before, and no file gone.
    fn write(&self, reach: Reach, image: &Image, before: Option<&[Reading]>, seen: &mut Seen) -> Result<(), String> {
        let machine = Reference::machine(image);
        let store = match (machine.open(), before) {
            (Ok(store), Some(_)) => store,
            (Ok(_), None) => return Err("opens, which it does not for reading".to_owned()),
            (Err(error), None) if error.kind() == Kind::Corrupt => return self.same_files(image, &machine.sim.image()),
            (Err(error), _) => return Err(format!("{}: {error}", error.kind().as_str())),
        };
        let before = before.expect("matched");
        let mut after = before.to_vec();
        let is_writable = store.report().read_only.is_none();
        if !is_writable {
            seen.read_only = true;
        }
        for (place, stored) in self.reference.stored.iter().enumerate().filter(|_| is_writable) {
            if before[place] == Reading::Corrupt {
                put_again(&store, stored)?;
                after[place] = Reading::Whole;
                seen.healed += 1;
            }
        }
        if after != before {
            self.compare(&after, &self.read_all(&store, reach)?)?;
        }
        if !store.report().destroyed_files.iter().all(|name| !image_has(&self.reference.image, name)) {
            return Err(format!("destroyed {:?}", store.report().destroyed_files));
        }
        store.close().map_err(|e| format!("close: {e}"))?;
        let left = machine.sim.image();
        self.same_files(image, &left)?;
        let machine = Reference::machine(&left);
        let store = machine.open_for(OpenMode::Read).map_err(|e| format!("and again for reading: {e}"))?;
        self.compare(&after, &self.read_all(&store, reach)?)
    }

    /// A repair takes no file away and makes nothing worse. What has another copy it writes again: then nothing is wrong any more.
    fn repair(&self, hit: &Hit<'_>, image: &Image) -> Result<(), String> {
        let machine = Reference::machine(image);
        let verify = || {
            let options = VerifyOptions { deep: true, refs: true, memory: 0 };
            Store::verify(&machine.world, &options, &mut |_, _| {})
        };
        let before = verify();
        match (Store::repair(&machine.world, false), &before) {
            (Ok(_), _) | (Err(_), Err(_)) => {}
            // What keeps a store from being opened is a problem to verify.
            (Err(error), Ok(before)) if error.kind() == Kind::Corrupt && !before.problems.is_empty() => {}
            (Err(error), Ok(_)) => return Err(format!("{}: {error}", error.kind().as_str())),
        }
        self.same_files(image, &machine.sim.image())?;
        let (Ok(before), Ok(after)) = (before, verify()) else { return Ok(()) };
        if hit.has_copies() && !after.problems.is_empty() {
            return Err(format!("left {:?}", after.problems.iter().map(say).collect::<Vec<_>>()));
        }
        let is_known =
            |new: &&Problem| before.problems.iter().any(|old| (&old.file, old.offset) == (&new.file, new.offset));
        match after.problems.iter().find(|new| !is_known(new)).filter(|_| hit.reach == Reach::One) {
            Some(new) => Err(format!("brought {}", say(new))),
            None => Ok(()),
        }
    }

    fn compare(&self, wanted: &[Reading], found: &[Reading]) -> Result<(), String> {
        for ((stored, wanted), found) in self.reference.stored.iter().zip(wanted).zip(found) {
            // What shares a damaged chunk is healed with it.
            let healed = (*wanted, *found) == (Reading::Corrupt, Reading::Whole);
            if wanted != found && !healed {
                return Err(format!("{} is {found:?}, it was {wanted:?}", stored.name));
            }
        }
        Ok(())
    }

    /// Files of the reference that were there are there still.
    fn same_files(&self, before: &Image, after: &Image) -> Result<(), String> {
        match self.reference.image.names().find(|name| before.len(name).is_some() && after.len(name).is_none()) {
            Some(name) => Err(format!("{name} is gone")),
            None => Ok(()),
        }
    }
}

fn image_has(image: &Image, name: &str) -> bool {
    Name::new(name).is_some_and(|name| image.len(&name).is_some())
}

fn is_problem_near(hit: &Hit<'_>, problem: &Problem) -> bool {
    let Some(file) = &problem.file else { return false };
    let offset = problem.offset.unwrap_or(0);
    hit.is_near(file, offset..offset + 1)
}

fn say(problem: &Problem) -> String {
    let file = problem.file.as_deref().unwrap_or("no file");
    format!("{} ({file} at {:?})", problem.what, problem.offset)
}

fn read(store: &Store, stored: &Stored) -> Result<Reading, String> {
    let mut bytes = Vec::with_capacity(stored.bytes.len());
    let mut sink = Sink { bytes: &mut bytes };
    let is_recorded = match store.stat(scope(stored), stored.id) {
        Ok(_) => true,
        // Its record stood in a page that is lost.
        Err(error) if error.kind() == Kind::Corrupt && is_of_table(&error) => true,
        // Where commits are lost nobody can say that there was none.
        Err(error) => match (error.kind(), store.report().lost.is_empty()) {
            (Kind::NotFound, true) => false,
            (Kind::Corrupt, false) if error.place().file.is_some() => false,
            (kind, _) => return Err(format!("{}: stat: {}: {error}", stored.name, kind.as_str())),
        },
    };
    match store.get(scope(stored), stored.id, &Get::WHOLE, &mut sink) {
        Ok(info) if bytes == *stored.bytes && info.sha256 == stored.sha256 => Ok(Reading::Whole),
        Ok(_) => Err(format!("{}: WRONG BYTES", stored.name)),
        Err(_) if !stored.bytes.starts_with(&bytes) => Err(format!("{}: WRONG BYTES before an error", stored.name)),
        Err(error) => match error.kind() {
            Kind::Corrupt if !is_recorded => Ok(Reading::Missing),
            Kind::Corrupt if error.place().file.is_some() || error.place().artifact.is_some() => Ok(Reading::Corrupt),
            Kind::NotFound => Ok(Reading::Missing),
            Kind::Gone => Ok(Reading::Expired),
            kind => Err(format!("{}: {}: {error}", stored.name, kind.as_str())),
        },
    }
}

fn is_of_table(error: &Error) -> bool {
    error.place().file.as_ref().is_some_and(|file| file.starts_with("table-"))
}

struct Sink<'a> {
    bytes: &'a mut Vec<u8>,
}

impl io::Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// True if an error names a file that was hit.
fn is_corrupt_of(hit: &Hit<'_>, error: &Error) -> bool {
    error.kind() == Kind::Corrupt && hit.is_of(error.place().file.as_deref())
}

/// A put of the same bytes writes again what is damaged, and must be readable itself.
fn put_again(store: &Store, stored: &Stored) -> Result<(), String> {
    let put = Put {
        scope: holdfast::Destination::Account(scope(stored)),
        name: "again",
        origin: Origin::Upload,
        media_type: None,
        op_id: None,
        order: None,
        expires_at: None,
        size_hint: None,
        logical_size: None,
        supersedes: None,
    };
    let reply = store.put(&put, &mut &*stored.bytes).map_err(|e| format!("put {} again: {e}", stored.name))?;
    let again = Stored { id: reply.id, ..stored.clone() };
    match read(store, &again)? {
        Reading::Whole => Ok(()),
        reading => Err(format!("{} was put again, acknowledged, and is {reading:?}", stored.name)),
    }
}

/// The independent parser must name the same damage.
fn independent(hit: &Hit<'_>, image: &Image) -> Result<(), String> {
    let problems = match independent::Store::check(&ImageFiles(image)) {
        Ok(problems) => problems,
        Err(Unreadable::Newer(error)) => return Err(format!("the independent parser: {error}")),
        Err(_) => return Ok(()),
    };
    if hit.reach == Reach::Roots {
        return Ok(());
    }
    let mut unnamed: Vec<&Name> = Vec::new();
    for name in hit.regions.keys() {
        let near = |problem: &independent::Problem| {
            let range = problem.offset..problem.offset + problem.length.max(1);
            problem.file == name.as_str() && hit.is_near(&problem.file, range)
        };
        if !problems.iter().any(near) {
            unnamed.push(name);
        }
    }
    if hit.is_hidden(&unnamed) {
        let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
        return Err(format!("the independent parser: {unnamed:?} was hit and is not named near there; said: {said:?}"));
    }
    Ok(())
}
