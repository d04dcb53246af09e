//! What an open store shows, held against what was promised.

use std::io;

use holdfast::{
    AccountScope, Error, Kind,
    ids::ArtifactId,
    store::{ArtifactInfo, ArtifactState, Get, Store},
};

use crate::harness::{Promise, Stored, promise::Life, workload::ACCOUNTS};

/// How much is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Depth {
    /// The bytes of every artifact.
    Every,
    /// Those of the newest, and of some older ones.
    Newest,
}

/// What was seen.
#[derive(Clone, Debug)]
pub struct Seen {
    /// So many of the order are there.
    pub count: usize,
    /// Those that the store called expired.
    pub expired: Vec<ArtifactId>,
}

/// Bytes of so many of the newest artifacts are read in any case.
const NEWEST: usize = 4;
/// ... and of one in so many of the others.
const OTHERS: usize = 5;

/// Looks at every artifact, by its id and in the lists.
pub fn check(store: &Store, promise: &Promise, depth: Depth) -> Result<Seen, String> {
    let (count, infos) = present(store, promise)?;
    let mut expired = Vec::new();
    let mut listed: [Vec<ArtifactInfo>; ACCOUNTS.len()] = Default::default();
    for (place, info) in infos.into_iter().enumerate() {
        let stored = &promise.order[place];
        same_record(stored, &info)?;
        let state = match (promise.life(stored), info.state) {
            (Life::Readable, ArtifactState::Expired) => {
                return Err(format!("{} has expired before its end", stored.name));
            }
            (Life::Gone, ArtifactState::Owned) => return Err(format!("{} is readable behind its end", stored.name)),
            (_, state) => state,
        };
        let read = depth == Depth::Every || place + NEWEST >= count || (place + count).is_multiple_of(OTHERS);
        match state {
            ArtifactState::Owned if read => same_bytes(store, stored)?,
            ArtifactState::Owned => {}
            ArtifactState::Expired => {
                gone(store, stored)?;
                expired.push(stored.id);
            }
        }
        if state == ArtifactState::Owned {
            listed[stored.account].push(info);
        }
    }
    for (account, wanted) in ACCOUNTS.iter().zip(&listed) {
        same_list(store, account, wanted)?;
    }
    let stats = store.stats().map_err(|e| format!("stats: {e}"))?;
    let bytes: u64 = promise.order[..count].iter().map(|stored| stored.bytes.len() as u64).sum();
    if (stats.artifacts, stats.logical_bytes) != (count as u64, bytes) {
        return Err(format!("{count} artifacts of {bytes} bytes are there, and stats says {stats:?}"));
    }
    Ok(Seen { count, expired })
}

/// Records of the artifacts that are there, which must be the first of the order.
fn present(store: &Store, promise: &Promise) -> Result<(usize, Vec<ArtifactInfo>), String> {
    let mut infos = Vec::new();
    for (place, stored) in promise.order.iter().enumerate() {
        match store.stat(&scope(stored), stored.id) {
            Ok(info) if infos.len() == place => infos.push(info),
            Ok(_) => return Err(format!("{} is there, and one that was committed before it is not", stored.name)),
            Err(error) if error.kind() == Kind::NotFound && place >= promise.least => {}
            Err(error) if error.kind() == Kind::NotFound => {
                return Err(format!("{} was acknowledged and is lost", stored.name));
            }
            Err(error) => return Err(format!("stat {}: {error}", stored.name)),
        }
    }
    Ok((infos.len(), infos))
}

fn same_record(stored: &Stored, info: &ArtifactInfo) -> Result<(), String> {
    let same = info.id == stored.id
        && info.name == stored.name
        && info.size == stored.bytes.len() as u64
        && info.sha256 == stored.sha256
        && info.expires_at == stored.expires_at
        && info.account == ACCOUNTS[stored.account];
    if same { Ok(()) } else { Err(format!("another record than that of {}: {info:?}", stored.name)) }
}

/// Reads an artifact whole and compares.
pub fn same_bytes(store: &Store, stored: &Stored) -> Result<(), String> {
    let mut sink = Comparing { expected: &stored.bytes, at: 0 };
    match store.get(&scope(stored), stored.id, &Get::expecting(stored.sha256), &mut sink) {
        Ok(_) if sink.at == stored.bytes.len() => Ok(()),
        Ok(_) => Err(format!("get {}: {} bytes instead of {}", stored.name, sink.at, stored.bytes.len())),
        Err(error) if is_difference(&error) => Err(format!("get {}: other bytes from {} on", stored.name, sink.at)),
        Err(error) => Err(format!("get {} ({} bytes): {error}", stored.name, stored.bytes.len())),
    }
}

fn is_difference(error: &Error) -> bool {
    std::error::Error::source(error)
        .and_then(|source| source.downcast_ref::<io::Error>())
        .is_some_and(|source| source.kind() == io::ErrorKind::InvalidData)
}

/// Reads an artifact that has expired.
fn gone(store: &Store, stored: &Stored) -> Result<(), String> {
    let mut sink = Comparing { expected: &[], at: 0 };
    match store.get(&scope(stored), stored.id, &Get::WHOLE, &mut sink) {
        Err(error) if error.kind() == Kind::Gone => Ok(()),
        Err(error) => Err(format!("get of the expired {}: {error}", stored.name)),
        Ok(_) => Err(format!("the expired {} was read", stored.name)),
    }
}

fn same_list(store: &Store, account: &str, wanted: &[ArtifactInfo]) -> Result<(), String> {
    let scope = AccountScope { tenant: "default", account };
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let page = store.list(&scope, after, 17).map_err(|e| format!("list: {e}"))?;
        found.extend(page.artifacts);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    if found == wanted {
        return Ok(());
    }
    let names = |infos: &[ArtifactInfo]| infos.iter().map(|info| info.name.clone()).collect::<Vec<_>>().join(" ");
    Err(format!("list of {account}: {}; but there are: {}", names(&found), names(wanted)))
}

/// Scope of an artifact.
pub fn scope(stored: &Stored) -> AccountScope<'static> {
    AccountScope { tenant: "default", account: ACCOUNTS[stored.account] }
}

/// Takes the bytes that are expected and refuses others.
struct Comparing<'a> {
    expected: &'a [u8],
    at: usize,
}

impl io::Write for Comparing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.expected[self.at..].starts_with(bytes) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.at += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
