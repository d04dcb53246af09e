//! What an open store shows, held against what was promised.

use std::{io, sync::Arc};

use holdfast::{
    AccountScope, Error, Kind, Scope,
    format::conversation::ConversationState,
    ids::ArtifactId,
    store::{ArtifactInfo, ArtifactState, Get, Store},
};

use crate::harness::{
    Promise, Stored,
    deeds::{At, Deed, Home, Owned, conversation, home_of, named},
    promise::Life,
    workload::ACCOUNTS,
};

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
pub fn check<'a>(store: &Store, promise: &'a Promise, depth: Depth) -> Result<Seen, String> {
    let count = present(store, promise)?;
    let order = &promise.order[..count];
    let owned = Owned::of(order);
    let mut expired = Vec::new();
    let mut listed: [Vec<ArtifactInfo>; ACCOUNTS.len()] = Default::default();
    let brought = |(place, stored): (usize, &'a Arc<Stored>)| stored.brought().map(move |one| (place, one));
    let artifacts: Vec<(usize, &Arc<Stored>)> = order.iter().enumerate().flat_map(brought).collect();
    for &(place, stored) in &artifacts {
        let at = owned.at(stored.id);
        let scope = home_of(stored, at.home);
        let info = store.stat(scope, stored.id).map_err(|e| format!("stat {} where it belongs: {e}", stored.name))?;
        same_record(stored, at, &info)?;
        let state = match (promise.life(stored.id, &at), info.state) {
            (_, state) if at.deleted => {
                if state != ArtifactState::Deleted {
                    return Err(format!("{} is {} and was deleted", stored.name, state.as_str()));
                }
                state
            }
            (Life::Readable, ArtifactState::Expired) => {
                return Err(format!("{} has expired before its end", stored.name));
            }
            (Life::Gone, ArtifactState::Owned) => {
                return Err(format!("{} is readable behind its end", stored.name));
            }
            (_, state) => state,
        };
        let read = depth == Depth::Every || place + NEWEST >= count || (place + count).is_multiple_of(OTHERS);
        match (state, at.home) {
            (ArtifactState::Owned, Home::Account | Home::Conversation(_)) | (ArtifactState::Pending, Home::Run(_)) => {
                if read {
                    same_bytes_in(store, scope, stored)?;
                }
            }
            (ArtifactState::Expired, Home::Account) => {
                gone(store, scope, stored)?;
                expired.push(stored.id);
            }
            (ArtifactState::Deleted, _) if at.deleted => gone(store, scope, stored)?,
            (state, home) => return Err(format!("{} is {} in {home:?}", stored.name, state.as_str())),
        }
        if (state, at.home) == (ArtifactState::Owned, Home::Account) {
            listed[stored.account].push(info);
        }
    }
    for (account, wanted) in ACCOUNTS.iter().zip(&listed) {
        same_list(store, account, wanted)?;
    }
    for (scope, wanted) in owned.lists() {
        let found = store.list(scope, None, 1000).map_err(|e| format!("list of {scope:?}: {e}"))?;
        let found: Vec<_> = found.artifacts.iter().map(|info| info.id).collect();
        if found != *wanted {
            return Err(format!("list of {scope:?}: {found:?}; but there are: {wanted:?}"));
        }
    }
    let stats = store.stats().map_err(|e| format!("stats: {e}"))?;
    let bytes = artifacts.iter().map(|(_, stored)| stored.bytes.len() as u64).sum();
    let artifacts = artifacts.len() as u64;
    if (stats.artifacts, stats.logical_bytes) != (artifacts, bytes) {
        return Err(format!("{artifacts} artifacts of {bytes} bytes are there, and stats says {stats:?}"));
    }
    Ok(Seen { count, expired })
}

/// How many of the order are there: they must be the first of it.
fn present(store: &Store, promise: &Promise) -> Result<usize, String> {
    let mut count = 0;
    let mut owned = Owned::default();
    for (place, stored) in promise.order.iter().enumerate() {
        owned.follow(stored);
        match is_there(store, promise, stored, &owned)? {
            true if count == place => count += 1,
            true => return Err(format!("{} is there, and what was committed before it is not", stored.name)),
            false if place >= promise.least => {}
            false => return Err(format!("{} was acknowledged and is lost", stored.name)),
        }
    }
    Ok(count)
}

/// Whether a deed was done; `owned` is what it and all before it come to.
fn is_there(store: &Store, promise: &Promise, stored: &Stored, owned: &Owned) -> Result<bool, String> {
    match &stored.deed {
        Deed::Put(home) | Deed::Link(home, ..) => Ok(version(store, promise, stored, *home)?.is_some()),
        Deed::Claim(_, to, ids) => Ok(version_in(store, conversation(*to), ids[0])?.is_some()),
        Deed::Fork(to, copies) => Ok(version_in(store, conversation(*to), copies[0].id)?.is_some()),
        // A record keeps count of its changes.
        Deed::Drop(id) | Deed::End(id, _) => {
            let changed = promise.order.iter().flat_map(Stored::brought).find(|one| one.id == *id);
            let changed = changed.expect("what is changed came before");
            let (Deed::Put(home) | Deed::Link(home, ..)) = &changed.deed else { return Ok(false) };
            Ok(version(store, promise, changed, *home)?.is_some_and(|version| version >= owned.at(*id).version))
        }
        Deed::Delete(n) => match store.conversation(&named(*n)) {
            Ok(info) => Ok(info.state == ConversationState::Deleted),
            Err(error) if error.kind() == Kind::NotFound => Ok(false),
            Err(error) => Err(format!("{}: {error}", stored.name)),
        },
    }
}

/// Version of an artifact's record, if there is one. It may have been claimed since it came, or not: both are looked at.
fn version(store: &Store, promise: &Promise, stored: &Stored, home: Home) -> Result<Option<u64>, String> {
    let claimed = promise.order.iter().find_map(|later| match &later.deed {
        Deed::Claim(_, to, ids) if ids.contains(&stored.id) => Some(conversation(*to)),
        _ => None,
    });
    let claimed = claimed.map_or(Ok(None), |scope| version_in(store, scope, stored.id))?;
    if claimed.is_some() { Ok(claimed) } else { version_in(store, home_of(stored, home), stored.id) }
}

fn version_in(store: &Store, scope: Scope<'static>, id: ArtifactId) -> Result<Option<u64>, String> {
    match store.stat(scope, id) {
        Ok(info) => Ok(Some(info.version)),
        Err(error) if error.kind() == Kind::NotFound => Ok(None),
        Err(error) => Err(format!("stat {id}: {error}")),
    }
}

fn same_record(stored: &Stored, at: At, info: &ArtifactInfo) -> Result<(), String> {
    let same = info.id == stored.id
        && info.name == stored.name
        && info.size == stored.bytes.len() as u64
        && info.sha256 == stored.sha256
        && info.expires_at == at.expires_at
        && info.version == at.version
        && info.account == ACCOUNTS[stored.account];
    if same { Ok(()) } else { Err(format!("another record than that of {}: {info:?}", stored.name)) }
}

/// Reads an artifact whole and compares.
pub fn same_bytes(store: &Store, stored: &Stored) -> Result<(), String> {
    same_bytes_in(store, Scope::Account(scope(stored)), stored)
}

fn same_bytes_in(store: &Store, scope: Scope<'_>, stored: &Stored) -> Result<(), String> {
    let mut sink = Comparing { expected: &stored.bytes, at: 0 };
    match store.get(scope, stored.id, &Get::expecting(stored.sha256), &mut sink) {
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

/// Reads an artifact that is gone.
fn gone(store: &Store, scope: Scope<'_>, stored: &Stored) -> Result<(), String> {
    let mut sink = Comparing { expected: &[], at: 0 };
    match store.get(scope, stored.id, &Get::WHOLE, &mut sink) {
        Err(error) if error.kind() == Kind::Gone => Ok(()),
        Err(error) => Err(format!("get of {}, which is gone: {error}", stored.name)),
        Ok(_) => Err(format!("{} is gone and was read", stored.name)),
    }
}

fn same_list(store: &Store, account: &str, wanted: &[ArtifactInfo]) -> Result<(), String> {
    let scope = AccountScope { tenant: "default", account };
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let page = store.list(scope, after, 17).map_err(|e| format!("list: {e}"))?;
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
