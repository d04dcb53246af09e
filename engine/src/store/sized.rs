//! Requests whose edits are as long as what they find.

use super::Store;
use crate::{
    catalog::State,
    commit::{Request, Stage},
    error::Result,
    format::commit::Edit,
    ownership::claim::Sized,
};

/// Edits, and what the caller hears.
pub(super) type Decided<T> = Result<(Vec<Edit>, T)>;

impl Store {
    /// Runs a request whose edits are as long as what it finds. Their length is counted first; what comes in meanwhile fits into some
    /// room more, and if it does not all is counted again with more room.
    pub(super) fn sized<T: Send + 'static>(
        &self,
        len: impl Fn(&dyn State) -> Result<usize>,
        decide: impl Fn(&mut Stage<'_>, usize) -> Decided<Sized<T>> + Send + Clone + 'static,
    ) -> Result<T> {
        self.sized_as(|request| request, len, decide)
    }

    /// The same for a request of a kind.
    pub(super) fn sized_as<T: Send + 'static>(
        &self,
        kind: impl Fn(Request<Sized<T>>) -> Request<Sized<T>>,
        len: impl Fn(&dyn State) -> Result<usize>,
        decide: impl Fn(&mut Stage<'_>, usize) -> Decided<Sized<T>> + Send + Clone + 'static,
    ) -> Result<T> {
        let mut more = 64 << 10;
        loop {
            let room = len(&self.published.read())?.saturating_add(more);
            let decide = decide.clone();
            match self.writing()?.commit.run(kind(Request::new(room, move |stage| decide(stage, room))))? {
                Sized::Done(done) => return Ok(done),
                Sized::Outgrown => more *= 4,
            }
        }
    }
}
