//! The vectors of what stands in the catalog: keys and values of every keyspace.

use std::collections::BTreeMap;

use super::{Cases, SYNCED, patch};
use crate::common;
use holdfast_format_spec::commit::Edit;
use holdfast_format_spec::generate::{self, Rng, encode};
use holdfast_format_spec::keyspace::{Entry, Key};

/// The state of a generated store as one put of each keyspace, and a wrong value of each.
pub(super) fn values(cases: &mut Cases) {
    let entries = one_of_each();
    let edits: Vec<Edit> = entries.iter().cloned().map(Edit::Put).collect();
    let deletes: Vec<Edit> = entries.iter().map(|entry| Edit::Delete(entry.key())).collect();
    let about = "A put of every keyspace in one request, a delete of every keyspace in the next.";
    cases.commit(true, "commit-all-keyspaces", about, &encode::commit(SYNCED, 77, &[edits.clone(), deletes]));
    let mut wrong = |keyspace: u8, name: &str, about: &str, in_value: bool, at: usize, new: &[u8]| {
        let edit = edits.iter().find(|edit| edit.key().keyspace() == keyspace).expect("there is one of each");
        let payload = encode::commit(SYNCED, 77, &[vec![edit.clone()]]);
        let key_len = generate::records::key(&edit.key()).len();
        let start = if in_value { 56 + key_len } else { 56 };
        cases.commit(false, &format!("value-{name}"), about, &patch(&payload, start + at, new));
    };
    wrong(1, "tenant-status", "Status 2.", true, 4, &[2]);
    wrong(1, "tenant-number", "Number 0.", true, 0, &[0; 4]);
    wrong(2, "account-lsn", "Created by LSN 0.", true, 0, &[0; 8]);
    wrong(2, "account-text", "A text of 129 bytes.", true, 16, &[129, 0]);
    wrong(5, "upload-flags", "A reserved flag.", true, 4, &[4]);
    wrong(5, "upload-levels", "42 levels.", true, 66, &[42]);
    wrong(9, "artifact-id", "Another id than the key has.", true, 0, &[0xff; 16]);
    wrong(9, "artifact-owner", "Owner kind 5.", true, 40, &[5]);
    wrong(9, "artifact-origin", "Origin 0.", true, 41, &[0]);
    wrong(9, "artifact-flag-12", "A reserved flag.", true, 21, &[0x10]);
    wrong(9, "artifact-version", "Version 0.", true, 224, &[0; 8]);
    wrong(9, "artifact-name", "A name of 0 bytes.", true, 280, &[0, 0]);
    wrong(10, "blob-root", "Bytes, and the root of none.", true, 0, &[0; 32]);
    wrong(11, "chunk-codec", "Codec 2.", true, 28, &[2]);
    wrong(11, "chunk-kind", "Kind 3.", true, 29, &[3]);
    wrong(11, "chunk-offset", "An offset within the header.", true, 8, &[0; 8]);
    wrong(12, "owner-kind", "Owner kind 0.", false, 20, &[0]);
    wrong(16, "due-kind", "Kind 2.", false, 8, &[2]);
    wrong(17, "op-code-3", "Code 3.", true, 16, &[3]);
    wrong(3, "conversation-state", "State 4.", true, 16, &[4]);
    wrong(3, "conversation-deleted", "Deleted, and with a text.", true, 16, &[3]);
    wrong(3, "conversation-flags", "A reserved flag.", true, 17, &[2]);
    wrong(3, "conversation-lsn", "Opened by no LSN.", true, 24, &[0; 8]);
    wrong(4, "run-state", "State 0.", true, 64, &[0]);
    wrong(4, "run-flags", "A reserved flag.", true, 65, &[4]);
    wrong(4, "run-tags", "257 tags.", true, 66, &[1, 1]);
    wrong(4, "run-tag-order", "The first tag is above the second.", true, 152, &[0xff; 16]);
    wrong(4, "run-generation", "Generation 0.", true, 68, &[0; 4]);
    wrong(4, "run-finished", "Active, and finished at a time.", true, 120, &[1]);
    wrong(19, "fence-kind", "Kind 7.", false, 0, &[7]);
    wrong(19, "fence-none", "No LSN.", true, 0, &[0; 40]);
    wrong(23, "of-account-kind", "Kind 2.", false, 20, &[2]);
    wrong(24, "claim-released", "Released is neither 0 nor 1.", true, 48, &[2]);
    wrong(24, "claim-count", "10,001 artifacts.", true, 52, &[0x11, 0x27]);
    wrong(24, "claim-reason", "Reason 4.", true, 64 + 24 + 16, &[4]);
    wrong(20, "zero-kind", "Kind 3.", false, 0, &[3]);
    wrong(21, "segment-lane", "A log segment.", true, 16, &[1]);
    wrong(21, "segment-id", "Segment 0.", false, 0, &[0; 8]);
}

/// An entry of every keyspace, from generated stores, with a small upload and an artifact that has every field.
fn one_of_each() -> Vec<Entry> {
    let mut found = BTreeMap::new();
    for seed in 0..200 {
        let catalog = generate::store(seed).catalog;
        let mut keys: Vec<Key> = Vec::new();
        keys.extend(catalog.tenants.keys().next().map(|key| Key::Tenant(*key)));
        keys.extend(catalog.accounts.keys().next().map(|key| Key::Account(*key)));
        let small = |upload: &&[u8; 16]| catalog.uploads[*upload].entries().count() < 12;
        keys.extend(catalog.uploads.keys().find(small).map(|key| Key::Upload(*key)));
        keys.extend(catalog.conversations.keys().next().map(|key| Key::Conversation(*key)));
        keys.extend(catalog.runs.keys().next().map(|key| Key::Run(*key)));
        keys.extend(catalog.identities.keys().next().map(|key| Key::Identity(*key)));
        keys.extend(catalog.fences.keys().next().map(|key| Key::Fence(*key)));
        keys.extend(catalog.of_account.first().map(|key| Key::OfAccount(*key)));
        keys.extend(catalog.claims.keys().next().map(|key| Key::Claim(*key)));
        keys.extend(catalog.artifacts.keys().next().map(|key| Key::Artifact(*key)));
        keys.extend(catalog.blobs.iter().find(|(_, blob)| blob.size > 0).map(|(key, _)| Key::Blob(*key)));
        keys.extend(catalog.chunks.keys().next().map(|key| Key::Chunk(*key)));
        keys.extend(catalog.by_owner.keys().next().map(|key| Key::ByOwner(*key)));
        keys.extend(catalog.due.first().map(|key| Key::Due(*key)));
        keys.extend(catalog.ops.keys().next().map(|key| Key::Op(*key)));
        keys.extend(catalog.zero.first().map(|key| Key::Zero(*key)));
        keys.extend(catalog.segments.keys().next().map(|key| Key::Segment(*key)));
        for key in keys {
            found.entry(key.keyspace()).or_insert_with(|| catalog.get(&key).expect("its key was listed"));
        }
    }
    let mut rng = Rng::new(1);
    if let Some(Entry::Artifact(_, artifact)) = found.get_mut(&9) {
        artifact.flags.deleted = false;
        artifact.born_run = Some(rng.array());
        artifact.born_order = Some(3);
        artifact.key = Some("a/key".to_owned());
        artifact.logical_size = Some(9);
        artifact.expires_at = Some(10);
        artifact.link_of = Some(rng.array());
        artifact.supersedes = Some(rng.array());
        artifact.derived_from = Some(rng.array());
        "notes ü.txt".clone_into(&mut artifact.name);
        "text/plain".clone_into(&mut artifact.media_type);
        "text/html".clone_into(&mut artifact.detected_type);
    }
    if let Some(Entry::Account(_, account)) = found.get_mut(&2) {
        "someone@example".clone_into(&mut account.text);
    }
    common::ownership(&mut rng, &mut found);
    assert_eq!(found.len(), 17, "every keyspace that has a format");
    found.into_values().collect()
}
