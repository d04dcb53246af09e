//! What is done for each of several: ids that were given, entries of a list.

use holdfast::{Error, ids::ArtifactId};

use crate::{
    exit_code::{Failure, Outcome},
    session::Session,
};

/// Shows what came of each id. One that failed is told of and the others go on; the first failure is the exit code.
pub(crate) fn each_id<T>(
    session: &Session,
    results: impl Iterator<Item = (ArtifactId, Result<T, Error>)>,
    show: impl Fn(T) -> Outcome,
) -> Outcome {
    let mut first_failure = None;
    for (id, result) in results {
        match result {
            Ok(done) => show(done)?,
            Err(error) => {
                session.output.error(&error, Some(&id.to_string()));
                first_failure.get_or_insert(error.kind().exit_code());
            }
        }
    }
    first_failure.map_or(Ok(()), |code| Err(Failure::Told(code)))
}

/// Shows a list page by page, behind `after`, and at most `limit` of it. `page` also gives where the next one begins, if there may be one.
pub(crate) fn each_listed<T, C>(
    limit: Option<u64>,
    mut after: Option<C>,
    page: impl Fn(Option<&C>) -> Result<(Vec<T>, Option<C>), Error>,
    show: impl Fn(T) -> Outcome,
) -> Outcome {
    let mut left = limit.unwrap_or(u64::MAX);
    loop {
        let (entries, next) = page(after.as_ref())?;
        for entry in entries {
            if left == 0 {
                return Ok(());
            }
            left -= 1;
            show(entry)?;
        }
        if left == 0 || next.is_none() {
            return Ok(());
        }
        after = next;
    }
}
