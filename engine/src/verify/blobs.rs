//! The SHA-256 of blobs, and with it the payloads of their chunks.
//!
//! What is wrong with a blob is not said here: the walk over the segments names what is damaged, the walk over the records whom it hits.

use super::Run;
use crate::{
    digest::Sha256Stream,
    error::{Error, Kind, Result},
    format::{artifact::Artifact, keyspace::Keyspace},
    ids::Sha256,
    read::{Piece, Reader},
    recovery::Problem,
};

impl Run<'_> {
    /// Reads each blob once and keeps its SHA-256. One that is damaged has none.
    pub(super) fn blobs(&mut self) -> Result<()> {
        self.each(Keyspace::Artifact, &mut |run, _, value| {
            let artifact = Artifact::decode(value).map_err(|bad| Error::new(Kind::Corrupt, bad.what))?;
            if artifact.size == 0 || run.sums.contains_key(&artifact.blob_root) {
                return Ok(());
            }
            let reader = run.reader;
            match sum(reader, &artifact, &mut |piece| run.was_read(piece, &artifact)) {
                Ok(sum) => {
                    run.sums.insert(artifact.blob_root, sum);
                    Ok(())
                }
                Err(e) if e.kind() == Kind::Corrupt => Ok(()),
                Err(e) => Err(e),
            }
        })
    }

    /// A blob must have the SHA-256 that its artifact gives.
    pub(super) fn hash(&mut self, artifact: &Artifact) -> Result<()> {
        let sum = match self.sums.get(&artifact.blob_root) {
            Some(sum) => Ok(*sum),
            None => sum(self.reader, artifact, &mut |_| {}),
        };
        match sum {
            Ok(sum) if sum == artifact.sha256 => Ok(()),
            Ok(_) => {
                self.inconsistent("a blob that has another SHA-256 than its artifact", Some(artifact.id));
                Ok(())
            }
            Err(e) if e.kind() == Kind::Corrupt => {
                self.report.problems.push(Problem { artifact: Some(artifact.id), ..Problem::from(&e) });
                Ok(())
            }
            Err(e) => Err(e),
        }
    }

    fn was_read(&mut self, piece: &Piece, artifact: &Artifact) {
        // A header that names another chunk or tenant than it was read as is for the walk over the segments to judge.
        if let Some((location, header)) = piece.frame
            && header.tenant() == artifact.account.tenant
            && header.chunk_id() == piece.id
            && self.read.insert(location, header).is_none()
        {
            self.did(header.frame_len());
        }
    }
}

/// SHA-256 of a blob.
fn sum(reader: &Reader, artifact: &Artifact, see: &mut dyn FnMut(&Piece)) -> Result<Sha256> {
    let mut sum = Sha256Stream::default();
    reader.each(artifact, &mut |piece| {
        sum.update(&piece.bytes);
        see(&piece);
        Ok(())
    })?;
    Ok(sum.finish())
}
