//! A stream that a put reads: in pieces, perhaps failing midway, perhaps with something else going on meanwhile.

use std::io;

/// What happens once a stream has come to a place.
type During<'a> = (usize, Box<dyn FnMut() + 'a>);

/// A stream of known bytes.
pub struct Source<'a> {
    bytes: &'a [u8],
    at: usize,
    piece: usize,
    fails_at: Option<usize>,
    during: Vec<During<'a>>,
}

impl<'a> Source<'a> {
    /// A stream that gives at most `piece` bytes a read.
    pub fn new(bytes: &'a [u8], piece: usize) -> Self {
        Self { bytes, at: 0, piece: piece.max(1), fails_at: None, during: Vec::new() }
    }

    /// ... and fails when it has given so many.
    #[must_use]
    pub fn failing_at(mut self, at: Option<usize>) -> Self {
        self.fails_at = at;
        self
    }

    /// ... and lets something happen when it has given so many. Places rise.
    #[must_use]
    pub fn with(mut self, at: usize, act: impl FnMut() + 'a) -> Self {
        self.during.push((at, Box::new(act)));
        self
    }
}

impl io::Read for Source<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if let Some(first) = self.during.first_mut()
            && first.0 <= self.at
        {
            (first.1)();
            drop(self.during.remove(0));
        }
        if self.fails_at.is_some_and(|at| at <= self.at) {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let mut end = self.bytes.len().min(self.at + self.piece.min(out.len()));
        let stops = self.fails_at.iter().chain(self.during.first().map(|(at, _)| at));
        for stop in stops.filter(|stop| **stop > self.at) {
            end = end.min(*stop);
        }
        let given = &self.bytes[self.at..end];
        out[..given.len()].copy_from_slice(given);
        self.at = end;
        Ok(given.len())
    }
}
