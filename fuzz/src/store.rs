//! Damaged and crafted stores, opened, read, verified and written to. Whatever their bytes are: no panic, bounded memory, and no bytes
//! but those that an artifact's SHA-256 names.

use std::sync::{Arc, OnceLock};

use holdfast::{
    clock::ManualClock,
    disk::{
        Name,
        sim::{Image, SimDisk},
    },
    entropy::SeededEntropy,
    ids::{ArtifactId, Time},
    AccountScope, Get, OpenMode, OpenOptions, Store, World,
};
use sha2::{Digest, Sha256};

use crate::mutate::{Base, Files};

/// Generated stores that inputs start from.
const BASES: usize = 64;

fn base(number: usize) -> &'static Base {
    static ALL: [OnceLock<Base>; BASES] = [const { OnceLock::new() }; BASES];
    ALL[number].get_or_init(|| Base::new(number as u64))
}

/// Runs one input: its first byte chooses the store.
pub fn run(data: &[u8]) {
    let Some((choice, data)) = data.split_first() else { return };
    let base = base(usize::from(*choice) % BASES);
    let files = base.damaged(data);
    let disk = disk(&files);
    if let Some(store) = open(&disk, OpenMode::Read) {
        read_all(base, &store);
    }
    let written = open(&disk, OpenMode::Write).is_some_and(|store| {
        read_all(base, &store);
        store.close().is_ok()
    });
    if written {
        let store = open(&disk, OpenMode::Read).expect("what was opened for writing and closed opens again");
        read_all(base, &store);
    }
}

fn disk(files: &Files) -> SimDisk {
    let mut image = Image::new();
    for (name, bytes) in files {
        image.insert(&Name::new(name).expect("a flat name"), bytes);
    }
    SimDisk::from_image(&image, 0)
}

fn open(disk: &SimDisk, mode: OpenMode) -> Option<Store> {
    let world = World {
        disk: Arc::new(disk.clone()),
        clock: Arc::new(ManualClock::new(Time(1_700_000_000_000))),
        entropy: Arc::new(SeededEntropy::new(1)),
    };
    Store::open(world, &OpenOptions::new(mode, "fuzz")).ok()
}

/// Reads what the records name, and what was there before the damage.
fn read_all(base: &Base, store: &Store) {
    let catalog = &base.generated.catalog;
    for (key, account) in &catalog.accounts {
        let tenant = tenant_name(key.tenant);
        let scope = AccountScope { tenant: &tenant, account: &account.text };
        let mut ids: Vec<ArtifactId> = Vec::new();
        let mut after = None;
        while let Ok(page) = store.list(&scope, after, 100) {
            ids.extend(page.artifacts.iter().map(|info| info.id));
            after = page.next;
            if after.is_none() || ids.len() > 1000 {
                break;
            }
        }
        let of_account = base.generated.contents.keys().filter(|k| (k.tenant, k.account) == (key.tenant, key.scope));
        ids.extend(of_account.map(|k| ArtifactId(k.artifact)));
        for id in ids {
            read(base, store, &scope, id);
        }
    }
    let _ = store.stats();
}

fn read(base: &Base, store: &Store, scope: &AccountScope<'_>, id: ArtifactId) {
    let mut bytes = Vec::new();
    let Ok(info) = store.get(scope, id, &Get::default(), &mut bytes) else { return };
    assert!(info.size == bytes.len() as u64, "another length than the record says");
    assert!(Sha256::digest(&bytes)[..] == info.sha256.0, "other bytes than the SHA-256 names");
    let put = base.generated.contents.iter().find(|(key, _)| key.artifact == id.0);
    if let Some((key, put)) = put
        && base.generated.catalog.artifacts[key].sha256 == info.sha256.0
    {
        assert!(&bytes == put, "other bytes than were put");
    }
}

fn tenant_name(number: u32) -> String {
    if number == 1 { "default".to_owned() } else { format!("tenant {}", number - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_store_opens_and_reads_back_as_it_was_made() {
        for seed in 0..200 {
            eprintln!("seed {seed}");
            let base = Base::new(seed);
            for mode in [OpenMode::Read, OpenMode::Write] {
                let store = open(&disk(&base.generated.files), mode).unwrap_or_else(|| panic!("seed {seed} does not open"));
                let report = store.report();
                assert!(report.problems.is_empty() && report.read_only.is_none(), "seed {seed}: {report:?}");
                let mut read = 0;
                for (key, account) in &base.generated.catalog.accounts {
                    let tenant = tenant_name(key.tenant);
                    let scope = AccountScope { tenant: &tenant, account: &account.text };
                    for (of, put) in &base.generated.contents {
                        if (of.tenant, of.account) != (key.tenant, key.scope) {
                            continue;
                        }
                        let mut bytes = Vec::new();
                        match store.get(&scope, ArtifactId(of.artifact), &Get::default(), &mut bytes) {
                            Ok(_) => assert!(&bytes == put, "seed {seed}: other bytes"),
                            Err(e) if e.kind() == holdfast::Kind::Gone => {}
                            Err(e) => panic!("seed {seed}: {e}"),
                        }
                        read += 1;
                    }
                }
                assert_eq!(store.stats().expect("counts").artifacts, base.generated.catalog.artifacts.len() as u64);
                let _ = read;
            }
        }
    }
}
