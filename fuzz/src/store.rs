//! Damaged and crafted stores, opened, read, verified and written to. Whatever their bytes are: no panic, bounded memory, and no bytes
//! but those that an artifact's SHA-256 names.

use std::sync::OnceLock;

use holdfast::{
    AccountScope, Destination, Get, OpenMode, OpenOptions, Put, Store, VerifyOptions, World,
    disk::{
        Name,
        sim::{Image, SimDisk},
    },
    format::artifact::Origin,
    ids::ArtifactId,
};
use holdfast_tests::harness::{
    Machine,
    machine::{START, TUNING},
};
use sha2::{Digest, Sha256};

use crate::mutate::{Base, Files};

/// Stores that inputs start from: of each kind so many.
const BASES: usize = 32;

fn base(number: usize) -> &'static Base {
    static ALL: [OnceLock<Base>; 2 * BASES] = [const { OnceLock::new() }; 2 * BASES];
    ALL[number].get_or_init(|| {
        let seed = (number / 2) as u64;
        if number % 2 == 0 { Base::generated(seed) } else { Base::engines(seed) }
    })
}

/// Runs one input: its first byte chooses the store.
pub fn run(data: &[u8]) {
    let Some((choice, data)) = data.split_first() else { return };
    let base = base(usize::from(*choice) % (2 * BASES));
    let (files, is_forged) = base.damaged(data);
    let disk = disk(&files);
    if let Some(store) = open(&disk, OpenMode::Read) {
        read_all(base, is_forged, &store);
    }
    let options = VerifyOptions { deep: true, refs: true, memory: 0 };
    let _ = Store::verify(&world(&disk), &options, &mut |_, _| {});
    let written = open(&disk, OpenMode::Write).is_some_and(|store| {
        read_all(base, is_forged, &store);
        write(&store);
        store.close().is_ok()
    });
    if written {
        let store = open(&disk, OpenMode::Read).expect("what was opened for writing and closed opens again");
        read_all(base, is_forged, &store);
    }
}

fn disk(files: &Files) -> SimDisk {
    let mut image = Image::new();
    for (name, bytes) in files {
        image.insert(&Name::new(name).expect("a flat name"), bytes);
    }
    let disk = SimDisk::from_image(&image, 0);
    // A store that claims segments of a terabyte is refused the room, not given it.
    disk.set_capacity(64 << 20);
    disk
}

fn world(disk: &SimDisk) -> World {
    Machine::new(disk.clone(), START, 1).world
}

fn open(disk: &SimDisk, mode: OpenMode) -> Option<Store> {
    Store::open(world(disk), &OpenOptions { tuning: TUNING, ingest_memory: 0, ..OpenOptions::new(mode, "fuzz") }).ok()
}

/// What was acknowledged must be there.
fn write(store: &Store) {
    for len in [900_usize, 9000] {
        let bytes: Vec<u8> = (0..len).map(|n| u8::try_from(n % 251).expect("below 251")).collect();
        let put = Put {
            scope: Destination::Account(AccountScope { tenant: "default", account: "fuzz" }),
            name: "new",
            origin: Origin::Upload,
            media_type: None,
            op_id: None,
            order: None,
            expires_at: None,
            size_hint: None,
            logical_size: None,
            supersedes: None,
        };
        let Ok(reply) = store.put(&put, &mut &*bytes) else { continue };
        let mut read = Vec::new();
        store.get(AccountScope { tenant: "default", account: "fuzz" }, reply.id, &Get::WHOLE, &mut read).expect("what was acknowledged can be read");
        assert!(read == bytes, "other bytes than were acknowledged");
    }
}

/// Reads what the lists name, and what was there before the damage.
fn read_all(base: &Base, is_forged: bool, store: &Store) {
    let mut accounts: Vec<&str> = base.puts.iter().map(|(account, ..)| account.as_str()).collect();
    accounts.sort_unstable();
    accounts.dedup();
    for account in accounts {
        let scope = AccountScope { tenant: "default", account };
        let mut ids: Vec<ArtifactId> = Vec::new();
        let mut after = None;
        while let Ok(page) = store.list(scope, after, 100) {
            ids.extend(page.artifacts.iter().map(|info| info.id));
            after = page.next;
            if after.is_none() || ids.len() > 1000 {
                break;
            }
        }
        ids.extend(base.puts.iter().filter(|(of, ..)| of == account).map(|(_, id, _)| ArtifactId(*id)));
        for id in ids {
            read(base, is_forged, store, &scope, id);
        }
    }
    let _ = store.stats();
}

fn read(base: &Base, is_forged: bool, store: &Store, scope: &AccountScope<'_>, id: ArtifactId) {
    let mut bytes = Vec::new();
    let Ok(info) = store.get(scope, id, &Get::WHOLE, &mut bytes) else { return };
    assert!(info.size == bytes.len() as u64, "another length than the record says");
    if is_forged {
        return;
    }
    assert!(Sha256::digest(&bytes)[..] == info.sha256.0, "other bytes than the SHA-256 names");
    let put = base.puts.iter().find(|(_, known, _)| *known == id.0);
    assert!(put.is_none_or(|(.., put)| *put == bytes), "other bytes than were put");
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast::Kind;

    #[test]
    fn a_store_without_damage_opens_and_reads_back_as_it_was_made() {
        let mut read = 0;
        for (seed, base) in (0..60).map(|seed| (seed, Base::generated(seed))).chain([(0, Base::engines(0))]) {
            for mode in [OpenMode::Read, OpenMode::Write] {
                let store = open(&disk(&base.files), mode).unwrap_or_else(|| panic!("seed {seed} does not open"));
                let report = store.report();
                assert!(report.read_only.is_none(), "seed {seed}: {report:?}");
                for (account, id, put) in &base.puts {
                    let mut bytes = Vec::new();
                    match store.get(
                        &AccountScope { tenant: "default", account },
                        ArtifactId(*id),
                        &Get::WHOLE,
                        &mut bytes,
                    ) {
                        Ok(_) => assert!(&bytes == put, "seed {seed}: other bytes"),
                        Err(e) if matches!(e.kind(), Kind::Gone | Kind::InvalidArgument) => continue,
                        Err(e) => panic!("seed {seed}: {e}"),
                    }
                    read += 1;
                }
            }
        }
        assert!(read > 20, "{read} artifacts were read");
    }

    #[test]
    fn some_inputs_without_a_fuzzer() {
        let mut random = holdfast_tests::random::Random::new(1);
        for number in 0..300 {
            let mut input = vec![0; 4 + random.index(60)];
            random.fill(&mut input);
            let result = std::panic::catch_unwind(|| run(&input));
            assert!(result.is_ok(), "input {number}: {input:?}");
        }
    }
}
