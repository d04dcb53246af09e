//! Artifacts of an account: putting them, and answering a put that was asked for before.

use crate::{
    catalog::State,
    error::{Error, Kind, Result},
    format::{
        artifact::{Artifact, Born, Origin},
        commit::{EDIT_OVERHEAD, Edit},
        keyspace::{AccountRef, Keyspace, ListPlace, Owner, OwnerKind, blob_key, op_key, zero_blob_key},
        value::{AccountValue, BlobValue, OpValue},
    },
    ids::{ArtifactId, BlobKey, ChunkId, Lsn, OpHash, Sha256, Time},
    limits::{ACCOUNT_OP_KEPT_MS, MEDIA_TYPE_LEN_MAX, NAME_LEN_MAX, SCOPE_ID_LEN_MAX},
};

/// Length of the edits of a put at most: artifact, list, due, account, op, blob and its entry in `zero`.
pub const PUT_LEN_MAX: usize = 7 * EDIT_OVERHEAD
    + (36 + 288 + NAME_LEN_MAX + 2 * MEDIA_TYPE_LEN_MAX)
    + (20 + 17 + 12 + 16)
    + (8 + 1 + 36)
    + (20 + 18 + SCOPE_ID_LEN_MAX)
    + (40 + 40)
    + (32 + 48)
    + 33;

/// An artifact as it is asked for, checked and with its ids hashed, before its content is known.
#[derive(Clone, Debug)]
pub struct NewArtifact {
    /// Random.
    pub id: ArtifactId,
    /// Owner.
    pub account: AccountRef,
    /// The account's id as the caller gave it.
    pub account_text: String,
    /// Name, normalised.
    pub name: String,
    /// Origin.
    pub origin: Origin,
    /// The caller's own order.
    pub order: Option<u64>,
    /// What it is kept as.
    pub media_type: String,
    /// What its first bytes say; empty if nothing.
    pub detected_type: String,
    /// When it ends.
    pub expires_at: Option<Time>,
    /// Names the call, so that a retry is answered and not done again.
    pub op: Option<OpHash>,
    /// The published LSN when the stream began.
    pub token_lsn: Lsn,
}

/// What a stream was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Content {
    /// Its key in the catalog.
    pub key: BlobKey,
    /// Digest.
    pub sha256: Sha256,
    /// Length.
    pub size: u64,
    /// Root of the recipe.
    pub root: ChunkId,
}

/// True while it may be read; `now` is the later of engine time and wall clock.
pub fn is_readable(artifact: &Artifact, now: Time) -> bool {
    artifact.expires_at.is_none_or(|end| now < end)
}

/// An artifact that would end before it begins is a mistake of the caller.
pub fn check_expiry(expires_at: Option<Time>, now: Time) -> Result<()> {
    match expires_at {
        Some(end) if end <= now => Err(Error::new(Kind::InvalidArgument, "the expiry is not in the future")),
        _ => Ok(()),
    }
}

/// The artifact that an earlier call with this op id made; GONE if it is no more. An outcome that is older than it is kept for
/// counts as absent, whether something removed it or not.
pub fn replay(state: &dyn State, account: &AccountRef, op: Option<OpHash>, now: Time) -> Result<Option<Artifact>> {
    let Some(op) = op else { return Ok(None) };
    let Some(outcome) = state.op(&op_key(Lsn::NONE, account.account, op))? else { return Ok(None) };
    if now.0.saturating_sub(outcome.at.0) >= ACCOUNT_OP_KEPT_MS {
        return Ok(None);
    }
    match state.artifact(account, outcome.artifact)? {
        Some(artifact) if is_readable(&artifact, now) => Ok(Some(artifact)),
        _ => Err(Error::new(Kind::Gone, "what this op id made is no more").of_artifact(outcome.artifact)),
    }
}

/// Puts an artifact into its account, and its blob one reference up. The blob's root is held by the same commit if the blob is new.
pub fn put(
    state: &dyn State,
    lsn: Lsn,
    now: Time,
    new: &NewArtifact,
    content: &Content,
) -> Result<(Vec<Edit>, Artifact)> {
    check_expiry(new.expires_at, now)?;
    if state.artifact(&new.account, new.id)?.is_some() {
        return Err(Error::new(Kind::Io, "the source of randomness gave an id twice"));
    }
    let artifact = record(lsn, now, new, content);
    let account = &new.account;
    let mut edits = blob_edits(state, content)?;
    edits.push(Edit::put(Keyspace::Artifact, account.artifact_key(new.id), artifact.encode()));
    edits.push(Edit::put(Keyspace::ByOwner, account.owner_key(artifact.owner, artifact.place), new.id.0));
    if let Some(end) = new.expires_at {
        edits.push(Edit::put(Keyspace::Due, account.due_key(end, new.id), []));
    }
    if state.account(account)?.is_none() {
        let value = AccountValue { created_lsn: lsn, created_at: now, text: new.account_text.clone() };
        edits.push(Edit::put(Keyspace::Account, account.key(), value.encode()));
    }
    if let Some(op) = new.op {
        let outcome = OpValue { artifact: new.id, lsn, at: now };
        edits.push(Edit::put(Keyspace::Op, op_key(Lsn::NONE, account.account, op), outcome.encode()));
    }
    Ok((edits, artifact))
}

fn record(lsn: Lsn, now: Time, new: &NewArtifact, content: &Content) -> Artifact {
    Artifact {
        id: new.id,
        account: new.account,
        owner: Owner { kind: OwnerKind::Account, id: new.account.account.0 },
        born: Born { account: new.account.account, run: None, origin: new.origin, order: new.order, lsn, time: now },
        token_lsn: new.token_lsn,
        place: ListPlace { attach_lsn: lsn, position: 0 },
        name: new.name.clone(),
        key: None,
        media_type: new.media_type.clone(),
        detected_type: new.detected_type.clone(),
        size: content.size,
        sha256: content.sha256,
        blob_root: content.root,
        logical_size: None,
        truncated: false,
        tree: false,
        expires_at: new.expires_at,
        version: 1,
        link_of: None,
        detach: false,
        supersedes: None,
        derived_from: None,
    }
}

/// One artifact more has the blob.
fn blob_edits(state: &dyn State, content: &Content) -> Result<Vec<Edit>> {
    let Content { key, size, root, .. } = *content;
    let old = state.blob(key)?;
    if old.is_some_and(|old| old.root != root || old.size != size) {
        return Err(Error::new(Kind::Corrupt, "a blob has another recipe than its content gives"));
    }
    let references = old.map_or(0, |old| old.references);
    let more = references.checked_add(1).ok_or_else(|| Error::new(Kind::Corrupt, "references of a blob"))?;
    let value = BlobValue { root, size, references: more };
    let mut edits = vec![Edit::put(Keyspace::Blob, blob_key(key), value.encode())];
    if old.is_some() && references == 0 {
        edits.push(Edit::delete(Keyspace::Zero, zero_blob_key(key)));
    }
    Ok(edits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        catalog::Catalog,
        ids::{ScopeHash, TenantNumber},
    };

    const NOW: Time = Time(1_000_000_000_000);
    const OP: Option<OpHash> = Some(OpHash([6; 16]));

    fn account() -> AccountRef {
        AccountRef { tenant: TenantNumber(1), account: ScopeHash([2; 16]) }
    }

    fn new(id: u8) -> NewArtifact {
        NewArtifact {
            id: ArtifactId([id; 16]),
            account: account(),
            account_text: "a".repeat(SCOPE_ID_LEN_MAX),
            name: "n".repeat(NAME_LEN_MAX),
            origin: Origin::Upload,
            order: Some(3),
            media_type: "m".repeat(MEDIA_TYPE_LEN_MAX),
            detected_type: "d".repeat(MEDIA_TYPE_LEN_MAX),
            expires_at: Some(Time(NOW.0 + 10)),
            op: OP,
            token_lsn: Lsn::FIRST,
        }
    }

    fn content() -> Content {
        Content { key: BlobKey([4; 32]), sha256: Sha256([5; 32]), size: 6, root: ChunkId([7; 32]) }
    }

    fn apply(catalog: &mut Catalog, lsn: u64, new: &NewArtifact) -> Artifact {
        let (edits, artifact) = put(catalog, Lsn::FIRST.plus(lsn), NOW, new, &content()).expect("puts");
        assert!(edits.iter().map(Edit::encoded_len).sum::<usize>() <= PUT_LEN_MAX);
        for edit in &edits {
            catalog.apply(edit).expect("applies");
        }
        artifact
    }

    #[test]
    fn a_put_makes_the_record_its_place_in_the_list_its_end_and_its_account() {
        let mut catalog = Catalog::default();
        let artifact = apply(&mut catalog, 1, &new(1));
        assert_eq!(catalog.artifact(&account(), artifact.id).expect("reads"), Some(artifact.clone()));
        let listed = catalog.scan(Keyspace::ByOwner, &account().owner_prefix(artifact.owner), None, 9).expect("lists");
        assert_eq!(listed, [(account().owner_key(artifact.owner, artifact.place), artifact.id.0.to_vec())]);
        assert_eq!(catalog.count(Keyspace::Due), 1);
        assert_eq!(catalog.account(&account()).expect("reads").expect("made").created_lsn, Lsn::FIRST.plus(1));

        apply(&mut catalog, 2, &new(2));
        assert_eq!(catalog.account(&account()).expect("reads").expect("kept").created_lsn, Lsn::FIRST.plus(1));
        assert_eq!(catalog.blob(content().key).expect("reads").expect("there").references, 2);
    }

    #[test]
    fn a_blob_that_nobody_had_any_more_is_taken_up_again() {
        let mut catalog = Catalog::default();
        let value = BlobValue { root: content().root, size: 6, references: 0 };
        for edit in [
            Edit::put(Keyspace::Blob, blob_key(content().key), value.encode()),
            Edit::put(Keyspace::Zero, zero_blob_key(content().key), []),
        ] {
            catalog.apply(&edit).expect("applies");
        }
        apply(&mut catalog, 1, &new(1));
        assert_eq!(catalog.blob(content().key).expect("reads").expect("there").references, 1);
        assert_eq!(catalog.count(Keyspace::Zero), 0);
    }

    #[test]
    fn a_retry_is_answered_for_seven_days_and_while_its_artifact_is_readable() {
        let mut catalog = Catalog::default();
        let kept = NewArtifact { expires_at: None, ..new(1) };
        let artifact = apply(&mut catalog, 1, &kept);
        let at = |later: u64| replay(&catalog, &account(), OP, Time(NOW.0 + later));
        assert_eq!(at(ACCOUNT_OP_KEPT_MS - 1).expect("kept"), Some(artifact));
        assert_eq!(at(ACCOUNT_OP_KEPT_MS).expect("forgotten"), None);
        assert_eq!(replay(&catalog, &account(), None, NOW).expect("no op id"), None);

        let mut catalog = Catalog::default();
        let ending = apply(&mut catalog, 1, &new(1));
        let at = |later: u64| replay(&catalog, &account(), OP, Time(NOW.0 + later));
        assert!(at(9).expect("readable").is_some());
        assert_eq!(at(10).expect_err("expired").kind(), Kind::Gone);
        catalog.apply(&Edit::delete(Keyspace::Artifact, account().artifact_key(ending.id))).expect("applies");
        let gone = replay(&catalog, &account(), OP, NOW).expect_err("removed");
        assert_eq!((gone.kind(), gone.place().artifact), (Kind::Gone, Some(ending.id)));
    }

    #[test]
    fn an_end_that_is_not_in_the_future_is_refused() {
        let ended = NewArtifact { expires_at: Some(NOW), ..new(1) };
        let error = put(&Catalog::default(), Lsn::FIRST, NOW, &ended, &content()).expect_err("ended");
        assert_eq!(error.kind(), Kind::InvalidArgument);
        assert!(check_expiry(Some(Time(u64::MAX)), NOW).is_ok());
    }

    #[test]
    fn an_id_is_never_given_twice() {
        let mut catalog = Catalog::default();
        apply(&mut catalog, 1, &new(1));
        assert!(put(&catalog, Lsn::FIRST.plus(2), NOW, &new(1), &content()).is_err());
    }
}
