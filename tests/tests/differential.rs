//! The decoders of the engine and of the independent parser on the structures of generated stores, and on neighbours of them.

use holdfast::{
    format::{keyspace::AccountRef, seal::Seal, value::AccountValue},
    ids::{Lsn, ScopeHash, TenantNumber, Time},
};
use holdfast_tests::{
    campaign::{guarded, keep_panics_quiet},
    differential::{
        self, one, seeds,
        structure::{BASE, RIGHT, Structure},
    },
    random::Random,
};

/// Generated stores.
const STORES: u64 = 12;
/// Neighbours of a structure.
const NEIGHBOURS: u64 = 24;

#[test]
fn both_readers_accept_refuse_and_understand_the_same() {
    keep_panics_quiet();
    let mut count = 0;
    for store in 0..STORES {
        for (place, (structure, seed)) in (0_u64..).zip(seeds::of_store(store)) {
            for neighbour in 0..NEIGHBOURS {
                let input = changed(&seed, store, place, neighbour);
                let result = guarded(|| {
                    one(structure, &input);
                    Ok(())
                });
                assert_eq!(result, Ok(()), "{structure:?} of store {store}, number {place}, neighbour {neighbour}");
                count += 1;
            }
        }
    }
    assert!(count > 10_000, "{count} inputs");
}

/// A few bytes changed, or the end cut off; the first neighbour is the structure itself.
fn changed(seed: &[u8], store: u64, place: u64, neighbour: u64) -> Vec<u8> {
    let mut random = Random::of(store, &[place, neighbour]);
    let mut input = seed.to_vec();
    if neighbour == 0 || input.len() < 3 {
        return input;
    }
    for _ in 0..neighbour % 4 {
        let byte = u8::try_from(random.below(256)).expect("a byte");
        let at = 1 + random.index(input.len() - 1);
        input[at] = *random.pick(&[0, 1, 255, byte]);
    }
    if neighbour % 8 == 7 {
        input.truncate(1 + random.index(input.len() - 1));
    }
    input[0] |= RIGHT * u8::try_from(neighbour % 2).expect("0 or 1");
    input
}

/// Inputs on which the two readers once differed, as the fuzz target `differential` takes them.
#[test]
fn what_fuzzing_found_stays_found() {
    // A resumable upload record without a state of SHA-256.
    let mut resumable = vec![0; 70];
    resumable[0] = Structure::Upload.index();
    resumable[2] = 1;
    resumable[6] = 1;
    differential::run(&resumable);
    // An account that no LSN created, under a key of an account; the mode says of which keyspace the entry is.
    let account = AccountValue { created_lsn: Lsn::NONE, created_at: Time(6), text: "a".to_owned() };
    let key = AccountRef { tenant: TenantNumber(1), account: ScopeHash([7; 16]) }.key();
    for mode in 0..=u8::MAX {
        one(Structure::Value, &[&[mode][..], &key, &account.encode()].concat());
    }
    // A seal of the log with the LSNs of a bulk one.
    let seal = Seal { end: BASE + 128, footer: 8192, synced_upto: 8192, ..Seal::default() };
    one(Structure::Seal, &[&[0][..], &seal.encode()].concat());
}

/// Bytes of vectors with one byte changed here and there, checksums made right: the readers agree, and nothing panics.
#[test]
#[expect(clippy::disallowed_methods, reason = "vectors are files of the source tree, not of a store")]
fn tables_read_the_same_in_both_readers_and_hostile_ones_do_not_panic() {
    let vectors = concat!(env!("CARGO_MANIFEST_DIR"), "/../format-spec/vectors");
    for name in ["valid/table", "valid/table-overflow", "valid/table-branch"] {
        let good = std::fs::read(format!("{vectors}/{name}.bin")).expect("a vector");
        differential::table::run(&[&[0], &good[..]].concat());
        for offset in (0..good.len()).step_by(7) {
            for change in [1, 0x80, 0xff] {
                let mut bad = [&[1], &good[..]].concat();
                bad[1 + offset] ^= change;
                differential::table::run(&bad);
            }
        }
    }
}
