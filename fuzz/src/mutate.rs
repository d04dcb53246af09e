//! Damage to a generated store, as a fuzz input says: bytes are changed inside structures, files are cut, swapped and lost, and half of
//! the time the checksums of what was touched are made right again, also the chain hash over all commits, as an attacker would.

use std::collections::BTreeMap;

use holdfast::disk::{Name, sim::Image};

use holdfast_format_spec::{
    derive,
    frame::{Kind, Rules},
    generate,
    limits::{BLOCK, CHUNK, FRAMES_START},
    log::scan::{Found, scan},
    segment::{Header, Lane},
    segment_name,
};

use holdfast_tests::{
    at_rest::reference::Reference,
    differential::structure::{block, crc, frame},
    harness::{Stored, workload::ACCOUNTS},
};

/// Files by name.
pub type Files = BTreeMap<String, Vec<u8>>;

/// What a structure is, so that its checksum can be made right.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Piece {
    Superblock(u32),
    Manifest,
    Header(u32),
    Frame(Kind),
}

/// A structure and its place.
#[derive(Clone, Debug)]
struct Place {
    file: String,
    start: usize,
    len: usize,
    piece: Piece,
}

/// An artifact of a store: account, id, bytes.
pub type Put = (String, [u8; 16], Vec<u8>);

/// A store with the places of its structures; those of the log in its order.
pub struct Base {
    /// Its files.
    pub files: Files,
    /// Artifacts of the tenant `default` that can be asked for.
    pub puts: Vec<Put>,
    places: Vec<Place>,
    log: Vec<(u64, [u8; 16])>,
    uuid: [u8; 16],
}

impl Base {
    /// A store that the format's generator makes: every record type, and every way to end.
    pub fn generated(seed: u64) -> Self {
        let generated = generate::store(seed);
        let accounts = &generated.catalog.accounts;
        let puts = generated.contents.iter().filter_map(|(key, bytes)| {
            let account = accounts.iter().find(|(a, _)| (a.tenant, a.scope) == (key.tenant, key.account));
            (key.tenant == 1).then_some((account?.1.text.clone(), key.artifact, bytes.clone()))
        });
        let puts = puts.collect();
        Self::new(generated.files, puts)
    }

    /// A store that the engine makes.
    pub fn engines(seed: u64) -> Self {
        let reference = Reference::of(seed).expect("a store is made");
        let name = |image: &Image, name: &Name| image.read(name).expect("it is listed");
        let files = reference.image.names().map(|n| (n.to_string(), name(&reference.image, n))).collect();
        let put = |s: &Stored| (ACCOUNTS[s.account].to_owned(), s.id.0, s.bytes.to_vec());
        Self::new(files, reference.stored.iter().map(put).collect())
    }

    fn new(files: Files, puts: Vec<Put>) -> Self {
        let image = holdfast_format_spec::store::Store::read(&files).expect("the store is valid");
        let uuid = image.superblock.uuid;
        let log: Vec<_> = image.log.segments.iter().map(|segment| (segment.id, segment.epoch)).collect();
        drop(image);
        let names: Vec<String> = files.keys().cloned().collect();
        let mut base = Self { places: Vec::new(), log, uuid, files, puts };
        for name in names {
            base.add(&name);
        }
        base
    }

    fn add(&mut self, name: &str) {
        let bytes = self.files[name].clone();
        let bytes = bytes.as_slice();
        let mut push = |start: u64, len: u64, piece| {
            let place = Place { file: name.to_owned(), start: small(start), len: small(len), piece };
            self.places.push(place);
        };
        if name == "superblock" {
            (0..4).for_each(|copy| push(u64::from(copy) * BLOCK, BLOCK, Piece::Superblock(copy)));
        } else if name.starts_with("manifest") {
            push(0, bytes.len() as u64, Piece::Manifest);
        } else if let Some(id) = name.strip_prefix("segment-").and_then(|id| id.parse().ok())
            && let Ok(headers) = Header::read(&bytes, id)
        {
            (0..2).for_each(|copy| push(u64::from(copy) * BLOCK, BLOCK, Piece::Header(copy)));
            let Header { uuid, epoch, lane, .. } = headers.header;
            let rules = Rules { uuid, epoch, lane, chunk_max: CHUNK };
            let scanned = scan(&bytes, FRAMES_START, bytes.len() as u64, &rules, &mut |found| {
                if let Found::Frame(frame) = found {
                    push(frame.offset, frame.header.frame_len(), Piece::Frame(frame.header.kind));
                }
                Ok(())
            });
            scanned.expect("bytes in memory can be read");
        }
    }

    /// The store with the damage that an input describes, and whether commits were made to say something else: then nothing tells
    /// what an artifact should hold.
    pub fn damaged(&self, data: &[u8]) -> (Files, bool) {
        let mut files = self.files.clone();
        let mut input = Input(data);
        let flags = input.u8();
        let mut fixed = Vec::new();
        for _ in 0..1 + flags % 16 {
            if input.0.is_empty() {
                break;
            }
            self.step(&mut files, &mut input, &mut fixed);
        }
        let is_commit = |at: &usize| self.places[*at].piece == Piece::Frame(Kind::Commit);
        let is_forged = flags & 0xc0 != 0 && (flags & 0x80 != 0 || fixed.iter().any(is_commit));
        if flags & 0x80 != 0 {
            fixed.iter().for_each(|at| self.fix(&mut files, &self.places[*at]));
            self.chain(&mut files);
        } else if flags & 0x40 != 0 {
            fixed.iter().for_each(|at| self.fix(&mut files, &self.places[*at]));
        }
        (files, is_forged)
    }

    fn step(&self, files: &mut Files, input: &mut Input<'_>, fixed: &mut Vec<usize>) {
        let op = input.u8();
        let at = usize::from(input.u16()) % self.places.len();
        let place = &self.places[at];
        let offset = usize::from(input.u16()) % place.len;
        match op % 16 {
            0 => cut(files, &place.file, place.start + offset),
            1 => drop(files.remove(&place.file)),
            2 => {
                let other = &self.places[usize::from(input.u16()) % self.places.len()].file;
                let (one, two) = (files.remove(&place.file), files.remove(other));
                files.extend(one.map(|bytes| (other.clone(), bytes)));
                files.extend(two.map(|bytes| (place.file.clone(), bytes)));
            }
            3 => {
                let copy = files.get(&place.file).cloned();
                files.extend(copy.map(|bytes| (format!("segment-{}", input.u16()), bytes)));
            }
            4 => {
                let other = &self.places[usize::from(input.u16()) % self.places.len()];
                let moved = files.get(&other.file).and_then(|f| f.get(other.start..other.start + other.len));
                let moved = moved.map(<[u8]>::to_vec).unwrap_or_default();
                write(files, place, 0, &moved);
            }
            5 => write(files, place, offset & !511, &[if op & 16 == 0 { 0 } else { 0xff }; 512]),
            6 => {
                if let Some(file) = files.get_mut(&place.file) {
                    let more = usize::from(input.u16());
                    file.resize(file.len() + more, input.u8());
                }
            }
            7..=11 => {
                let bytes = input.take(1 + usize::from(op >> 4));
                write(files, place, offset, &bytes);
                fixed.push(at);
            }
            _ => {
                // Small fields stand at the front of every structure: most counts, lengths and offsets.
                let bytes = input.take(1 + usize::from(op >> 5));
                write(files, place, offset % 128, &bytes);
                fixed.push(at);
            }
        }
    }

    /// Makes the checksum of a structure right, and what names it by digest.
    fn fix(&self, files: &mut Files, place: &Place) {
        let Some(file) = files.get_mut(&place.file) else { return };
        let Some(bytes) = file.get_mut(place.start..place.start + place.len) else { return };
        match place.piece {
            Piece::Superblock(copy) => {
                let salt = [&bytes[24..40], &copy.to_le_bytes()].concat();
                block(bytes, &salt);
            }
            Piece::Header(copy) => {
                let salt = [&bytes[16..40], &copy.to_le_bytes()].concat();
                block(bytes, &salt);
            }
            Piece::Manifest => {
                let end = bytes.len() - 4;
                let sum = crc(&[&bytes[16..40].to_vec(), &bytes[..end]]);
                bytes[end..].copy_from_slice(&sum.to_le_bytes());
                let digest = derive::digest(bytes);
                self.superblocks(files, |copy| copy[152..184].copy_from_slice(&digest));
            }
            Piece::Frame(_) => self.fix_frame(files, place),
        }
    }

    fn fix_frame(&self, files: &mut Files, place: &Place) {
        let Some(file) = files.get_mut(&place.file) else { return };
        if file.len() < place.start + place.len {
            return;
        }
        let epoch: [u8; 16] = file[40..56].try_into().expect("16 bytes");
        let mut bytes = file[place.start..place.start + place.len].to_vec();
        frame(&self.uuid, &epoch, place.start as u64, &mut bytes);
        let end = (place.start + bytes.len()).min(file.len());
        file[place.start..end].copy_from_slice(&bytes[..end - place.start]);
    }

    fn superblocks(&self, files: &mut Files, change: impl Fn(&mut [u8])) {
        let Some(file) = files.get_mut("superblock") else { return };
        for (copy, bytes) in (0_u32..).zip(file.chunks_exact_mut(4096)) {
            change(bytes);
            let salt = [&bytes[24..40], &copy.to_le_bytes()].concat();
            block(bytes, &salt);
        }
    }

    /// Makes the chain hash right in all that carries it, from the root on.
    fn chain(&self, files: &mut Files) {
        let mut chain = derive::root_chain(&self.uuid);
        for (id, _) in &self.log {
            let name = segment_name(*id);
            for place in self.places.iter().filter(|place| place.file == name) {
                let Some(file) = files.get_mut(&name).filter(|file| file.len() >= place.start + place.len) else {
                    continue;
                };
                let bytes = &mut file[place.start..place.start + place.len];
                match place.piece {
                    Piece::Header(_) if bytes[56] == Lane::Log as u8 => bytes[112..144].copy_from_slice(&chain),
                    Piece::Frame(Kind::Commit | Kind::Mark | Kind::Seal) => bytes[16..48].copy_from_slice(&chain),
                    _ => continue,
                }
                self.fix(files, place);
                if place.piece == Piece::Frame(Kind::Commit) {
                    let bytes = &files[&name][place.start..place.start + place.len];
                    let stored = u32::from_le_bytes(bytes[8..12].try_into().expect("4 bytes"));
                    let payload = bytes.get(64..64 + stored as usize).unwrap_or_default();
                    chain = derive::next_chain(&chain, bytes[..64].try_into().expect("64 bytes"), payload);
                }
            }
        }
        self.superblocks(files, |copy| {
            if copy[280] == 1 {
                copy[304..336].copy_from_slice(&chain);
            }
        });
    }
}

fn small(number: u64) -> usize {
    usize::try_from(number).expect("generated stores are small")
}

fn cut(files: &mut Files, name: &str, len: usize) {
    if let Some(file) = files.get_mut(name) {
        file.truncate(len);
    }
}

fn write(files: &mut Files, place: &Place, offset: usize, bytes: &[u8]) {
    let start = place.start + offset;
    let target = files.get_mut(&place.file).and_then(|file| file.get_mut(start..));
    for (to, from) in target.unwrap_or_default().iter_mut().zip(bytes) {
        *to = *from;
    }
}

/// Numbers from the input; zeros behind its end.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn u8(&mut self) -> u8 {
        self.take(1)[0]
    }

    fn u16(&mut self) -> u16 {
        let bytes = self.take(2);
        u16::from_le_bytes([bytes[0], bytes[1]])
    }

    fn take(&mut self, count: usize) -> Vec<u8> {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        let mut taken = taken.to_vec();
        taken.resize(count, 0);
        taken
    }
}
