//! Derived ids and keys: section 13 of `FORMAT.md`, the chain of section 7.2, and the text of ids.

use crate::{Id16, Id32};
use data_encoding::{BASE32_NOPAD, HEXLOWER};
use std::fmt;

/// A key that must not be printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub Id32);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// What a scope hash is the hash of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the table")]
pub enum Scope {
    Tenant = 1,
    Account = 2,
    Tag = 3,
    Conversation = 4,
    Run = 5,
    Digest = 6,
}

/// The keys that the store secret gives.
#[derive(Clone, Debug)]
pub struct StoreKeys {
    scope: Secret,
    op: Secret,
}

impl StoreKeys {
    /// Derives them.
    pub fn new(secret: &Secret) -> Self {
        Self {
            scope: Secret(blake3::derive_key("holdfast scope v1", &secret.0)),
            op: Secret(blake3::derive_key("holdfast op v1", &secret.0)),
        }
    }

    /// The scope hash of an id of a tenant; the tenant itself has tenant number 0.
    pub fn scope_hash(&self, tenant: u32, kind: Scope, id: &[u8]) -> Id16 {
        keyed16(&self.scope, &[&tenant.to_le_bytes(), &[kind as u8], id])
    }

    /// The hash of an operation's id within a scope.
    pub fn op_hash(&self, tenant: u32, scope: &Id16, op: &[u8]) -> Id16 {
        keyed16(&self.op, &[&tenant.to_le_bytes(), scope, op])
    }
}

/// The keys that a tenant's key gives.
#[derive(Clone, Debug)]
pub struct TenantKeys {
    chunk: Secret,
    page: Secret,
    blob: Secret,
}

impl TenantKeys {
    /// Derives them.
    pub fn new(key: &Secret) -> Self {
        Self {
            chunk: Secret(blake3::derive_key("holdfast chunk v1", &key.0)),
            page: Secret(blake3::derive_key("holdfast page v1", &key.0)),
            blob: Secret(blake3::derive_key("holdfast blob v1", &key.0)),
        }
    }

    /// The id of a chunk with these bytes.
    pub fn chunk_id(&self, bytes: &[u8]) -> Id32 {
        *blake3::keyed_hash(&self.chunk.0, bytes).as_bytes()
    }

    /// The id of a recipe page with this payload.
    pub fn page_id(&self, payload: &[u8]) -> Id32 {
        *blake3::keyed_hash(&self.page.0, payload).as_bytes()
    }

    /// The key of a blob.
    pub fn blob_key(&self, sha256: &Id32, size: u64) -> Id32 {
        keyed(&self.blob, &[sha256, &size.to_le_bytes()])
    }
}

/// The check value of a tenant's key in the manifest.
pub fn tenant_check(key: &Secret) -> Id16 {
    first16(&blake3::derive_key("holdfast tenant check v1", &key.0))
}

/// The chain hash of a store without a commit.
pub fn root_chain(uuid: &Id16) -> Id32 {
    blake3::derive_key("holdfast chain root v1", uuid)
}

/// The chain hash behind a commit frame: from the one before it, its header and its payload.
pub fn next_chain(before: &Id32, header: &[u8; 64], payload: &[u8]) -> Id32 {
    let mut hasher = blake3::Hasher::new_derive_key("holdfast chain v1");
    hasher.update(before).update(header).update(payload);
    *hasher.finalize().as_bytes()
}

/// The digest of a manifest.
pub fn digest(bytes: &[u8]) -> Id32 {
    *blake3::hash(bytes).as_bytes()
}

fn keyed(key: &Secret, parts: &[&[u8]]) -> Id32 {
    let mut hasher = blake3::Hasher::new_keyed(&key.0);
    for part in parts {
        hasher.update(part);
    }
    *hasher.finalize().as_bytes()
}

fn keyed16(key: &Secret, parts: &[&[u8]]) -> Id16 {
    first16(&keyed(key, parts))
}

fn first16(hash: &Id32) -> Id16 {
    *hash.first_chunk().expect("32 bytes have a first 16")
}

/// The text of an id of 16 bytes.
pub fn id_text(id: &Id16) -> String {
    BASE32_NOPAD.encode(id).to_ascii_lowercase()
}

/// The id that a text is of, if it is one.
pub fn id_from_text(text: &str) -> Option<Id16> {
    if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return None;
    }
    BASE32_NOPAD.decode(text.to_ascii_uppercase().as_bytes()).ok()?.try_into().ok()
}

/// Hexadecimal, for ids in messages and records.
pub fn hex(bytes: &[u8]) -> String {
    HEXLOWER.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_an_id_reads_back_and_spare_bits_are_refused() {
        let id = [0xa5; 16];
        let text = id_text(&id);
        assert_eq!(text.len(), 26);
        assert_eq!(id_from_text(&text), Some(id));
        assert_eq!(id_from_text(&text.to_ascii_uppercase()), None);
        assert_eq!(id_from_text("aaaaaaaaaaaaaaaaaaaaaaaaab"), None, "the last character's low bits are not zero");
        assert_eq!(id_from_text("aaaaaaaaaaaaaaaaaaaaaaaaa"), None, "25 characters");
    }

    #[test]
    fn a_secret_is_not_printed() {
        assert_eq!(format!("{:?}", Secret([7; 32])), "Secret(..)");
    }
}
