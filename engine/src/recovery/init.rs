//! Making a store.

use std::collections::BTreeSet;

use crate::{
    canary::{self, Canary},
    clock::Clock,
    digest::{ScopeKind, StoreKeys, chain_next, chain_root},
    disk::{self, Disk, LockMode, OpenOptions},
    entropy::{self, Entropy},
    error::{Error, Kind, Result},
    format::{
        commit::{Commit, Edit},
        frame::{FrameDraft, FrameKind, FrameSalt},
        keyspace::{Keyspace, tenant_key},
        manifest::{Lane, Manifest, ManifestSegment, SegmentState, Sums, Tenant},
        segment_header::{self, SegmentHeader},
        superblock::{Options, ReplayPosition, Superblock},
        value::TenantValue,
    },
    ids::{Epoch, FileId, Location, Lsn, StoreUuid, TenantNumber, Time},
    limits::{CEILING_STEP, FRAMES_START},
    log::append::write_header,
    manifest,
    segment::{self, scanner::Scanner, writer},
    superblock::{self, Root, SuperblockRead},
};

/// Name of the tenant that every store begins with.
pub const DEFAULT_TENANT: &str = "default";
/// Its number.
pub const DEFAULT_TENANT_NUMBER: TenantNumber = TenantNumber(1);

/// What a directory without a superblock is.
enum Found {
    /// Nothing of ours, or what an init left that did not finish.
    Unfinished,
    /// A store without its root.
    Store(String),
    /// Something else.
    Foreign,
}

/// The superblock, or `None` where an init has not finished it: a file in which no two copies agree, beside nothing but what init
/// makes, was never the root of a store.
pub fn read_superblock(disk: &dyn Disk) -> Result<Option<SuperblockRead>> {
    match superblock::read(disk) {
        Err(e) if e.kind() == Kind::Corrupt && matches!(look(disk)?, Found::Unfinished) => Ok(None),
        result => result,
    }
}

/// Refuses a directory that has no superblock, and writes nothing. Damage of one that is there is told by the open, under the lock.
pub fn check_is_store(disk: &dyn Disk) -> Result<()> {
    match superblock::read(disk) {
        Ok(None) => {
            // It may be about to have one: then whoever makes it is named.
            let _lock = super::lock(disk, LockMode::Shared, "")?;
            Err(no_superblock(disk))
        }
        Err(e) if e.kind() != Kind::Corrupt => Err(e),
        _ => Ok(()),
    }
}

/// Error of an open that finds no superblock.
pub fn no_superblock(disk: &dyn Disk) -> Error {
    match look(disk) {
        Ok(Found::Store(name)) => rootless(&name),
        Ok(_) => Error::new(Kind::InvalidArgument, "there is no store here: make one with init"),
        Err(error) => error,
    }
}

fn look(disk: &dyn Disk) -> Result<Found> {
    let mut listing = disk::retry(|| disk.list()).map_err(|e| Error::io(e, ".", "list the directory"))?;
    listing.names.sort_unstable();
    let first: BTreeSet<_> =
        manifest::names(1).into_iter().chain([segment::name(FileId(1)), superblock::name()]).collect();
    // Whatever else lies there, one file of a store says that there was one.
    let mut foreign = !listing.strange.is_empty();
    for name in listing.names.iter().filter(|name| !first.contains(name) && name.as_str() != "LOCK") {
        let ours = segment::parse_name(name, "segment-").is_some()
            || segment::parse_name(name, "reserve-").is_some()
            || manifest::parse_name(name).is_some()
            || crate::table::parse_name(name).is_some();
        if ours {
            return Ok(Found::Store(name.to_string()));
        }
        foreign = true;
    }
    let segment = segment::name(FileId(1));
    if listing.names.contains(&segment) && commits_of_first_segment(disk)? > 1 {
        return Ok(Found::Store(segment.to_string()));
    }
    Ok(if foreign { Found::Foreign } else { Found::Unfinished })
}

/// Valid commit frames in segment 1, whose header gives the store's uuid; counts no further than two.
fn commits_of_first_segment(disk: &dyn Disk) -> Result<u64> {
    let id = FileId(1);
    let name = segment::name(id);
    let file = segment::open(disk, id, OpenOptions::READ)?;
    let mut bytes = [0; segment_header::LEN];
    for copy in 0..segment_header::COPIES {
        let offset = u64::from(copy) * segment_header::LEN as u64;
        disk::read_full(&*file, &mut bytes, offset).map_err(|e| Error::io(e, &name, "read a segment header"))?;
        let uuid = segment_header::uuid_of(&bytes);
        let Ok(header) = SegmentHeader::decode(&bytes, uuid, id, copy) else { continue };
        let len = disk::retry(|| file.len()).map_err(|e| Error::io(e, &name, "read a length"))?;
        let mut scanner = Scanner::new(&*file, &name, FrameSalt::new(uuid, header.epoch));
        let (mut at, mut commits) = (FRAMES_START, 0);
        while let Some(next) = scanner.next_valid(at, len)? {
            let (frame, _) = scanner.header_at(next)?.expect("a valid header was found here");
            commits += u64::from(frame.kind == FrameKind::Commit);
            if commits > 1 {
                break;
            }
            at = next + frame.frame_len();
        }
        return Ok(commits);
    }
    Ok(0)
}

fn rootless(name: &str) -> Error {
    let message = format!("the superblock is missing, or all zero, and {name} is of a store");
    Error::corrupt(superblock::name(), 0, message)
}

/// Refuses a directory in which no store can be made: one that has a store, or something else. Writes nothing.
pub fn check_place(disk: &dyn Disk) -> Result<()> {
    match read_superblock(disk)? {
        None => {}
        Some(_) => return Err(Error::new(Kind::InvalidArgument, "there is a store here already")),
    }
    match look(disk)? {
        Found::Unfinished => Ok(()),
        Found::Store(name) => Err(rootless(&name)),
        Found::Foreign => Err(Error::new(Kind::InvalidArgument, "the directory is not empty")),
    }
}

/// Makes a store in an empty directory, or over an init that did not finish. The superblock comes last: without it there is no
/// store.
pub fn init(disk: &dyn Disk, clock: &dyn Clock, entropy: &dyn Entropy, options: Options) -> Result<StoreUuid> {
    options.check().map_err(|what| Error::new(Kind::InvalidArgument, what))?;
    check_place(disk)?;
    clear(disk)?;
    let now = clock.wall();
    let uuid = StoreUuid(entropy::random(entropy)?);
    let secret = entropy::random(entropy)?;
    let epoch = Epoch(entropy::random(entropy)?);
    first_segment(disk, uuid, epoch, &secret, options, now)?;
    let manifest = Manifest {
        uuid,
        generation: 1,
        tenants: vec![Tenant { number: DEFAULT_TENANT_NUMBER, key: entropy::random(entropy)? }],
        segments: vec![ManifestSegment { id: FileId(1), epoch, lane: Lane::Log, state: SegmentState::Active, end: 0 }],
        sums: Sums::default(),
        tables: Vec::new(),
    };
    let replay =
        ReplayPosition { segment: FileId(1), epoch, offset: FRAMES_START, lsn: Lsn::FIRST, chain: chain_root(uuid) };
    let mut superblock = Superblock {
        sequence: 1,
        uuid,
        created_at: now,
        options,
        secret,
        incarnation: 1,
        manifest: (1, 0, [0; 32]),
        replay,
        log_head: (FileId(1), epoch),
        clean: None,
        ceiling_file: FileId(CEILING_STEP),
        ceiling_generation: 2,
        ceiling_tenant: 2,
        prepared: Vec::new(),
        reserves: Vec::new(),
        ledger_places: Vec::new(),
    };
    let bytes = manifest.encode();
    superblock.manifest = (1, bytes.len() as u64, crate::digest::file_digest(&bytes));
    if canary::sings(Canary::SuperblockFirst) {
        Root::create(disk, &superblock)?;
        manifest::write(disk, &manifest)?;
        writer::sync_dir(disk)?;
        return Ok(uuid);
    }
    manifest::write(disk, &manifest)?;
    writer::sync_dir(disk)?;
    Root::create(disk, &superblock)?;
    Ok(uuid)
}

/// Removes what an unfinished init left.
fn clear(disk: &dyn Disk) -> Result<()> {
    let listing = disk::retry(|| disk.list()).map_err(|e| Error::io(e, ".", "list the directory"))?;
    for name in listing.names.iter().filter(|name| name.as_str() != "LOCK") {
        writer::destroy(disk, name)?;
    }
    writer::sync_dir(disk)
}

/// Segment 1 with the commit that makes the default tenant.
fn first_segment(
    disk: &dyn Disk,
    uuid: StoreUuid,
    epoch: Epoch,
    secret: &[u8; 32],
    options: Options,
    now: Time,
) -> Result<()> {
    let id = FileId(1);
    let name = segment::name(id);
    let chain = chain_root(uuid);
    let file = writer::prepare(disk, id, options.log_segment_first)?;
    let header = SegmentHeader {
        uuid,
        id,
        epoch,
        lane: Lane::Log,
        capacity: options.log_segment_first,
        first_lsn: Lsn::FIRST,
        predecessor: None,
        chain,
    };
    write_header(&*file, &header)?;
    let tenant = StoreKeys::new(secret).scope(TenantNumber(0), ScopeKind::Tenant, DEFAULT_TENANT);
    let value = TenantValue { number: DEFAULT_TENANT_NUMBER, created_at: now };
    let commit = Commit {
        synced_upto: Location { segment: id, offset: FRAMES_START },
        hw: now,
        requests: vec![vec![Edit::put(Keyspace::Tenant, tenant_key(tenant), value.encode())]],
    };
    let salt = FrameSalt::new(uuid, epoch);
    let payload = commit.encode();
    let mut bytes = Vec::new();
    let first = FrameDraft::raw(FrameKind::Commit, chain.0, Lsn::FIRST.0, &payload);
    let header = first.append_to(&mut bytes, &salt, FRAMES_START);
    writer::write(&*file, &name, &bytes, FRAMES_START)?;
    writer::sync(&*file, &name)?;
    let chain = chain_next(chain, &header, &payload);
    let offset = FRAMES_START + bytes.len() as u64;
    let mut mark = Vec::new();
    FrameDraft::raw(FrameKind::Mark, chain.0, Lsn::FIRST.plus(1).0, &[]).append_to(&mut mark, &salt, offset);
    writer::write(&*file, &name, &mark, offset)?;
    writer::sync(&*file, &name)
}
