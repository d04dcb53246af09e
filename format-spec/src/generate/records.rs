//! Writes edits, keys and values: the counterpart of [`crate::keyspace`].

use super::encode::{Out, len32};
use crate::commit::Edit;
use crate::keyspace::{Artifact, ArtifactKey, Claim, Conversation, Entry, Key, Run, Upload, ZeroKey};

impl Out {
    /// A number of an ordered key: most significant byte first.
    fn ordered(&mut self, number: u64, len: usize) -> &mut Self {
        let bytes = number.to_le_bytes();
        for byte in bytes.iter().take(len).rev() {
            self.u8(*byte);
        }
        self
    }

    fn artifact_key(&mut self, key: &ArtifactKey) -> &mut Self {
        self.ordered(key.tenant.into(), 4).bytes(&key.account).bytes(&key.artifact)
    }
}

/// An edit, with its head.
pub fn edit(edit: &Edit) -> Vec<u8> {
    let (tag, value) = match edit {
        Edit::Put(entry) => (1, value(entry)),
        Edit::Delete(_) => (2, Vec::new()),
    };
    let key = edit.key();
    let bytes = self::key(&key);
    let mut out = Out::default();
    out.u8(tag).u8(1).u16(0).u32(len32(4 + bytes.len() + value.len()));
    out.u8(key.keyspace()).u8(0).u16(len16(bytes.len())).bytes(&bytes).bytes(&value);
    out.0
}

fn len16(len: usize) -> u16 {
    u16::try_from(len).expect("keys and strings are short")
}

/// The bytes of a key.
pub fn key(key: &Key) -> Vec<u8> {
    let mut out = Out::default();
    match key {
        Key::Tenant(id) | Key::Upload(id) => out.bytes(id),
        Key::Account(key) | Key::Conversation(key) | Key::Run(key) | Key::Claim(key) => {
            out.ordered(key.tenant.into(), 4).bytes(&key.scope)
        }
        Key::Artifact(key) => out.artifact_key(key),
        Key::Blob(id) | Key::Chunk(id) => out.bytes(id),
        Key::ByOwner(key) => {
            out.ordered(key.tenant.into(), 4).bytes(&key.account).u8(key.owner_kind as u8).bytes(&key.owner);
            out.ordered(key.attach_lsn, 8).ordered(key.position.into(), 4)
        }
        Key::Due(key) => out.ordered(key.time, 8).u8(1).artifact_key(&key.artifact),
        Key::Op(key) | Key::Identity(key) => out.ordered(key.begin_lsn, 8).bytes(&key.scope).bytes(&key.op),
        Key::Fence(key) => out.u8(key.kind).bytes(&key.scope),
        Key::OfAccount(key) => {
            out.ordered(key.tenant.into(), 4).bytes(&key.account).u8(key.kind).ordered(key.lsn, 8).bytes(&key.scope)
        }
        Key::Zero(ZeroKey::Chunk(id)) => out.u8(1).bytes(id),
        Key::Zero(ZeroKey::Blob(id)) => out.u8(2).bytes(id),
        Key::Segment(id) => out.ordered(*id, 8),
    };
    out.0
}

/// The bytes of a value.
pub fn value(entry: &Entry) -> Vec<u8> {
    let mut out = Out::default();
    match entry {
        Entry::Tenant(_, v) => {
            out.u32(v.number).u8(1).zeros(3).u64(v.created_at);
        }
        Entry::Account(_, v) => {
            out.u64(v.created_lsn).u64(v.created_at).u16(len16(v.text.len())).bytes(v.text.as_bytes());
        }
        Entry::Conversation(_, v) => conversation(&mut out, v),
        Entry::Run(_, v) => run(&mut out, v),
        Entry::Claim(_, v) => claim(&mut out, v),
        Entry::Upload(_, v) => upload(&mut out, v),
        Entry::Artifact(_, v) => artifact(&mut out, v),
        Entry::Blob(_, v) => {
            out.bytes(&v.root).u64(v.size).u64(v.references);
        }
        Entry::Chunk(_, v) => {
            out.u64(v.segment).u64(v.offset).u32(v.stored).u32(v.raw).u32(v.tenant);
            out.u8(v.codec as u8).u8(v.kind as u8).u16(0).u64(v.references);
        }
        Entry::ByOwner(_, artifact) | Entry::Identity(_, artifact) => {
            out.bytes(artifact);
        }
        Entry::Due(_) | Entry::Zero(_) | Entry::OfAccount(_) => {}
        Entry::Fence(_, v) => {
            out.u64(v.void_all).u64(v.void_derived).u64(v.closed_at).u64(v.reopened_at).u64(v.erased_at);
        }
        Entry::Op(_, v) => {
            out.bytes(&v.artifact).u32(v.code).u32(0).u64(v.lsn).u64(v.time);
        }
        Entry::Segment(_, v) => {
            out.bytes(&v.epoch).u8(2).u8(if v.sealed { 2 } else { 1 }).zeros(6).u64(v.end);
        }
    }
    out.0
}

fn conversation(out: &mut Out, v: &Conversation) {
    out.bytes(&v.account).u8(v.state as u8).u8(u8::from(v.forked_from.is_some())).u16(len16(v.text.len())).u32(0);
    out.u64(v.opened_lsn).u64(v.opened_at).u64(v.changed_lsn).u64(v.reset_lsn);
    out.bytes(&v.forked_from.unwrap_or_default()).bytes(v.text.as_bytes());
}

fn run(out: &mut Out, v: &Run) {
    out.bytes(&v.id).bytes(&v.account).bytes(&v.conversation.unwrap_or_default());
    out.bytes(&v.parent.unwrap_or_default()).u8(v.state as u8);
    out.u8(u8::from(v.conversation.is_some()) | u8::from(v.parent.is_some()) << 1).u16(len16(v.tags.len()));
    out.u32(v.generation).u64(v.begin_lsn).u64(v.begun_at).u64(v.lease_lsn).u64(v.lease_until).u64(v.ttl);
    out.u64(v.ends_at).u64(v.finished_at).u64(v.changed_lsn).bytes(&v.token);
    for tag in &v.tags {
        out.bytes(tag);
    }
}

fn claim(out: &mut Out, v: &Claim) {
    out.bytes(&v.conversation).bytes(&v.reply).u64(v.lsn).u64(v.time).u8(u8::from(v.released)).zeros(3);
    out.u32(len32(v.claimed.len())).u32(len32(v.skipped.len())).u32(0);
    for claimed in &v.claimed {
        out.bytes(&claimed.artifact).u64(claimed.expires_at);
    }
    for skipped in &v.skipped {
        out.bytes(&skipped.artifact).u8(skipped.reason).zeros(7);
    }
}

fn upload(out: &mut Out, v: &Upload) {
    let flags = u32::from(v.resumable) | u32::from(v.tail.is_some()) << 1;
    out.u32(v.tenant).u32(flags).bytes(&v.account).u64(v.begin_lsn).u64(v.created_at).u64(v.offset);
    out.u64(v.declared_size.unwrap_or(u64::MAX)).u64(v.expires_at).u16(len16(v.sha256_state.len()));
    out.u8(u8::try_from(v.right_edge.len()).expect("at most 41 levels")).u8(0).bytes(&v.sha256_state);
    if let Some(tail) = &v.tail {
        out.bytes(&tail.id).u64(tail.length);
    }
    for level in &v.right_edge {
        out.u16(len16(level.len()));
        for entry in level {
            out.bytes(&entry.id).u64(entry.length);
        }
    }
}

fn artifact(out: &mut Out, v: &Artifact) {
    let bits = [
        v.flags.truncated,
        v.flags.tree,
        v.flags.detach,
        v.born_run.is_some(),
        v.born_order.is_some(),
        v.key.is_some(),
        v.logical_size.is_some(),
        v.expires_at.is_some(),
        v.link_of.is_some(),
        v.supersedes.is_some(),
        v.derived_from.is_some(),
        v.flags.deleted,
    ];
    let flags = bits.iter().rev().fold(0, |flags, bit| flags << 1 | u32::from(*bit));
    out.bytes(&v.id).u32(v.tenant).u32(flags).bytes(&v.account).u8(v.owner_kind as u8).u8(v.origin).u16(0);
    out.u32(v.position).bytes(&v.owner).bytes(&v.born_account).bytes(&v.born_run.unwrap_or_default());
    out.u64(v.born_order.unwrap_or(0)).u64(v.born_lsn).u64(v.born_time).u64(v.token_lsn).u64(v.attach_lsn);
    out.u64(v.size).bytes(&v.sha256).bytes(&v.blob_root).u64(v.logical_size.unwrap_or(0));
    out.u64(v.expires_at.unwrap_or(0)).u64(v.version);
    for link in [v.link_of, v.supersedes, v.derived_from] {
        out.bytes(&link.unwrap_or_default());
    }
    let key = v.key.as_deref().unwrap_or("");
    let strings = [v.name.as_str(), key, v.media_type.as_str(), v.detected_type.as_str()];
    for string in strings {
        out.u16(len16(string.len()));
    }
    for string in strings {
        out.bytes(string.as_bytes());
    }
}
