//! A deep verification of long blobs: what it reads, and that it is a verification.

use super::*;
use crate::{
    disk::{self, OpenOptions as FileOptions, fault::FaultDisk},
    format::artifact::Origin,
    limits::INGEST_MEMORY,
};

const SCOPE: AccountScope<'static> = AccountScope { tenant: "default", account: "someone" };

/// A closed store with two blobs of some MiB that share a part.
fn store() -> SimDisk {
    let disk = SimDisk::new(1);
    Store::init(&world(&disk), &InitOptions { options: Options::DEFAULT }).expect("a store is made");
    let store = open(&disk).expect("opens");
    let mut bytes = vec![0; 6 << 20];
    blake3::Hasher::new().finalize_xof().fill(&mut bytes);
    for len in [6 << 20, 4 << 20] {
        let put = Put {
            scope: Destination::Account(SCOPE),
            name: "long",
            origin: Origin::Upload,
            media_type: None,
            op_id: None,
            order: None,
            expires_at: None,
            size_hint: None,
            logical_size: None,
            supersedes: None,
        };
        store.put(&put, &mut &bytes[..len]).expect("puts");
    }
    store.close().expect("closes");
    disk
}

fn deep(disk: Arc<dyn Disk>, memory: u64) -> VerifyReport {
    let world = World { disk, ..world(&SimDisk::new(2)) };
    Store::verify(&world, &VerifyOptions { deep: true, refs: true, memory }, &mut |_, _| {}).expect("verifies")
}

/// The bulk segment with the most in it.
fn bulk(disk: &SimDisk) -> Name {
    let names = disk.list().expect("lists").names.into_iter().filter(|name| name.as_str().starts_with("segment-"));
    let len = |name: &Name| disk.open(name, FileOptions::READ).and_then(|file| file.len()).expect("there");
    names.max_by_key(len).expect("there is one")
}

#[test]
fn what_a_blob_has_is_read_once_for_each_blob_and_not_for_the_segment_again() {
    let sim = store();
    for memory in [0, INGEST_MEMORY] {
        let traced = FaultDisk::new(Arc::new(sim.clone()));
        traced.set_tracing(true);
        let report = deep(Arc::new(traced.clone()), memory);
        assert!(report.problems.is_empty(), "{:?}", report.problems);
        let bulk = bulk(&sim);
        let trace = traced.trace();
        let calls = trace.iter().filter(|call| call.method == "read_at" && call.name.as_ref() == Some(&bulk));
        let read: u64 = calls.map(|call| call.len).sum();
        assert!((10 << 20..12 << 20).contains(&read), "{read} bytes of blobs of 10 MiB");
        // As many as there are, however they were met.
        assert!((6 << 20..7 << 20).contains(&report.bytes), "{} bytes of frames", report.bytes);
    }
}

#[test]
fn a_bit_that_is_not_as_it_was_is_found_and_said_of_each_artifact() {
    for memory in [0, INGEST_MEMORY] {
        let sim = store();
        let name = bulk(&sim);
        let file = sim.open(&name, FileOptions::WRITE).expect("opens");
        let mut byte = [0];
        disk::read_exact(&*file, &mut byte, 1 << 20).expect("reads");
        disk::write_all(&*file, &[byte[0] ^ 1], 1 << 20).expect("writes");
        let report = deep(Arc::new(sim), memory);
        let of = |artifact: bool| report.problems.iter().filter(|p| p.artifact.is_some() == artifact).count();
        assert_eq!((of(false), of(true)), (1, 2), "{:?}", report.problems);
        let offsets: Vec<_> = report.problems.iter().map(|problem| problem.offset).collect();
        assert!(offsets.iter().all(|offset| *offset == offsets[0] && offset.is_some()), "{:?}", report.problems);
    }
}
