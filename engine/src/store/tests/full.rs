//! A disk that is full, a process without descriptors, and what may still be written once something failed.

use super::*;
use crate::{
    disk::fault::{Class, Fault, FaultDisk, Plan},
    format::{keyspace::upload_key, upload::Upload},
    ids::UploadId,
};

const ENOSPC: i32 = 28;

/// Commits of the shortest kind until there is no room for another.
fn fill(store: &Store, privileged: bool) {
    let commits = &store.writing.as_ref().expect("open for writing").commit;
    for _ in 0..10_000 {
        let shortest = Request::new(0, |_| Ok((Vec::new(), ()))).forced();
        if commits.run(if privileged { shortest.privileged() } else { shortest }).is_err() {
            return;
        }
    }
    panic!("the disk fills");
}

fn expiring(end: u64) -> Put<'static> {
    Put { expires_at: Some(Time(end)), ..put("ends") }
}

#[test]
fn a_log_of_many_segments_opens_with_few_descriptors() {
    let disk = new_store();
    let store = open(&disk).expect("opens");
    for number in 0..3_000 {
        commit(&store, number).expect("commits");
    }
    assert!(store.segments.all().len() > 20, "{}", store.segments.all().len());
    drop(store);
    disk.set_handles_max(16);
    assert_eq!(numbers(&read_only(&disk).expect("opens")).len(), 3_000);
    assert_eq!(numbers(&open(&disk).expect("opens")).len(), 3_000);
    verify_clean(&disk);
}
