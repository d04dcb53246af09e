//! A medium on the way through a log: what is durable, and what waits for a sync.

use std::collections::BTreeMap;

use crate::{
    disk::sim::{
        Image, Op,
        pages::{PAGE, Sheet},
    },
    sync::Arc,
};

/// State after some operations of a log.
pub(super) struct Medium<'a> {
    pub(super) durable: Image,
    /// In the order in which they were issued.
    pub(super) pending: Vec<&'a Op>,
    /// What blocks held when they were last given back, by the page of the file that had them: the worst that a block can show
    /// when it is given out again is a valid piece of another file at the same place.
    freed: BTreeMap<u64, Arc<Sheet>>,
}

impl<'a> Medium<'a> {
    pub(super) fn new(durable: Image) -> Self {
        Self { durable, pending: Vec::new(), freed: BTreeMap::new() }
    }

    /// Follows the log by one operation.
    pub(super) fn step(&mut self, op: &'a Op) {
        match op {
            Op::Sync { ino, .. } => self.settle(|op| op.data_ino() == Some(*ino)),
            Op::SyncDir => {
                self.settle(|op| op.name_ino().is_some());
                // No entry waits for its directory any more: what has no name now will never have one.
                self.durable.forget_unnamed();
            }
            Op::SyncLost { ino } => self.pending.retain(|op| op.data_ino() != Some(*ino)),
            Op::Lock { .. } => self.durable.apply(op),
            Op::Ack(_) => {}
            _ => self.pending.push(op),
        }
    }

    /// Makes some of what is pending durable, in order.
    fn settle(&mut self, covers: impl Fn(&Op) -> bool) {
        for op in std::mem::take(&mut self.pending) {
            if covers(op) {
                self.keep_freed(op);
                self.durable.apply(op);
            } else {
                self.pending.push(op);
            }
        }
    }

    /// Remembers what the blocks hold that an operation is about to give back.
    fn keep_freed(&mut self, op: &Op) {
        let (ino, start) = match op {
            Op::Unlink { ino, .. } => (*ino, 0),
            Op::Rename { ino, to, .. } => match self.durable.ino(to) {
                Some(replaced) if replaced != *ino => (replaced, 0),
                _ => return,
            },
            Op::SetLen { ino, len } => (*ino, len.next_multiple_of(PAGE)),
            Op::Punch { ino, offset, .. } => (*ino, *offset),
            _ => return,
        };
        let len = if let Op::Punch { len, .. } = op { *len } else { u64::MAX - start };
        if let Some(content) = self.durable.file(ino) {
            self.freed.extend(content.sheets(start, len).map(|(page, sheet)| (page, Arc::clone(sheet))));
        }
    }

    /// Bytes that a freed block brings to this page of a new file.
    pub(super) fn stale(&self, page: u64) -> Option<Arc<Sheet>> {
        let after = self.freed.range(page..).next();
        after.or_else(|| self.freed.range(..page).next_back()).map(|(_, sheet)| Arc::clone(sheet))
    }

    /// The medium with the pending operations that `keeps` wants, given by their place.
    pub(super) fn with(&self, keeps: impl Fn(usize, &Op) -> bool) -> Image {
        let mut image = self.durable.clone();
        for (index, op) in self.pending.iter().enumerate() {
            if keeps(index, op) {
                image.apply(op);
            }
        }
        image
    }

    /// True unless a write puts zeros where there are only zeros, so that no one can see how much of it is there.
    pub(super) fn shows(&self, index: usize) -> bool {
        let Op::Zero { ino, offset, len } = self.pending[index] else { return true };
        let end = offset + len;
        let overlaps = |op: &&Op| match op.written() {
            Some((other, start, stop)) => {
                other == *ino && start < end && *offset < stop && matches!(op, Op::Write { .. })
            }
            None => false,
        };
        let durable = self.durable.file(*ino).is_some_and(|content| content.sheets(*offset, *len).next().is_some());
        durable || self.pending[..index].iter().any(overlaps)
    }
}
