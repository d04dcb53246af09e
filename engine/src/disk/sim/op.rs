//! What was done to a simulated disk, in order. From it alone every crash image is built; the workload is not run again.

use super::{Image, pages::Content};
use crate::{
    disk::{Name, SyncKind},
    sync::Arc,
};

/// One operation that changed a disk, or that a workload marked. Files go by a number that stays when the name changes.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Op {
    /// A new, empty file.
    Create {
        /// The file.
        ino: u64,
        /// Its name.
        name: Name,
    },
    /// Bytes that a write took.
    Write {
        /// The file.
        ino: u64,
        /// Where.
        offset: u64,
        /// What.
        bytes: Arc<[u8]>,
    },
    /// The file was cut or extended.
    SetLen {
        /// The file.
        ino: u64,
        /// Its length from now on.
        len: u64,
    },
    /// Blocks were given back.
    Punch {
        /// The file.
        ino: u64,
        /// Start, a multiple of [`BLOCK`](crate::disk::BLOCK).
        offset: u64,
        /// Length, too.
        len: u64,
    },
    /// Zeros were written.
    Zero {
        /// The file.
        ino: u64,
        /// Where.
        offset: u64,
        /// How many.
        len: u64,
    },
    /// A file got another name, which another file may have had.
    Rename {
        /// The file.
        ino: u64,
        /// Its name so far.
        from: Name,
        /// Its name from now on.
        to: Name,
    },
    /// A file lost its name.
    Unlink {
        /// The file.
        ino: u64,
        /// The name.
        name: Name,
    },
    /// What was done to the bytes and the length of a file is durable; its name is not.
    Sync {
        /// The file.
        ino: u64,
        /// Of which kind.
        kind: SyncKind,
    },
    /// A sync failed, and with it everything was lost that was not durable: no later sync will make it so.
    SyncLost {
        /// The file.
        ino: u64,
    },
    /// Names are durable; bytes are not.
    SyncDir,
    /// The store was locked. The lock's file is durable at once and has no content, since none of it matters after a crash.
    Lock {
        /// The lock's file.
        ino: u64,
        /// Its name.
        name: Name,
    },
    /// The workload learnt of a success.
    Ack(u64),
}

impl Op {
    /// The file, if the operation touches bytes or length of one.
    pub(super) fn data_ino(&self) -> Option<u64> {
        match self {
            Self::Write { ino, .. } | Self::SetLen { ino, .. } | Self::Punch { ino, .. } | Self::Zero { ino, .. } => {
                Some(*ino)
            }
            _ => None,
        }
    }

    /// The file, if the operation touches a name of one.
    pub(super) fn name_ino(&self) -> Option<u64> {
        match self {
            Self::Create { ino, .. } | Self::Rename { ino, .. } | Self::Unlink { ino, .. } => Some(*ino),
            _ => None,
        }
    }

    /// Gives a file's bytes the effect of the operation.
    pub(super) fn apply_to(&self, content: &mut Content) {
        match self {
            Self::Write { offset, bytes, .. } => content.write(*offset, bytes),
            Self::Zero { offset, len, .. } => content.zero(*offset, *len),
            Self::Punch { offset, len, .. } => content.punch(*offset, *len),
            Self::SetLen { len, .. } => content.set_len(*len),
            _ => unreachable!("touches no bytes"),
        }
    }

    /// File, start and end of a write or zeroing, which a crash can tear.
    pub(super) fn written(&self) -> Option<(u64, u64, u64)> {
        let (ino, offset, len) = match self {
            Self::Write { ino, offset, bytes } => (*ino, *offset, bytes.len() as u64),
            Self::Zero { ino, offset, len } => (*ino, *offset, *len),
            _ => return None,
        };
        (len > 0).then(|| (ino, offset, offset + len))
    }
}

/// The operations since a disk came to be, and what it held then.
#[derive(Clone, Default, Debug)]
pub struct OpLog {
    pub(super) base: Image,
    pub(super) ops: Vec<Op>,
}

impl OpLog {
    /// A log made by hand.
    pub fn new(base: Image, ops: Vec<Op>) -> Self {
        Self { base, ops }
    }

    /// What the medium held before the first operation.
    pub fn base(&self) -> &Image {
        &self.base
    }

    /// The operations.
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// What the workload had been told was done when the operation of this index had been issued, in order.
    pub fn acked_before(&self, op_index: usize) -> impl Iterator<Item = u64> {
        let issued = &self.ops[..self.ops.len().min(op_index.saturating_add(1))];
        issued.iter().filter_map(|op| match op {
            Op::Ack(id) => Some(*id),
            _ => None,
        })
    }

    /// The same run on a disk that lied: it answered this sync and did nothing. `None` if that operation is not a sync.
    #[must_use]
    pub fn with_lie(&self, op_index: usize) -> Option<Self> {
        let Some(Op::Sync { .. } | Op::SyncDir) = self.ops.get(op_index) else { return None };
        let mut lied = self.clone();
        // The numbers of the other operations stay as they are.
        lied.ops[op_index] = Op::Sync { ino: NO_FILE, kind: SyncKind::Data };
        Some(lied)
    }

    /// The indexes of all operations, for a loop over every crash.
    pub fn indexes(&self) -> std::ops::Range<usize> {
        0..self.ops.len()
    }
}

/// A number that no file gets.
const NO_FILE: u64 = 0;
