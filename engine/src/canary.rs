//! Seeded bugs: each breaks one rule that the crash campaign must notice. They exist only in builds with the feature `canaries`; one is
//! chosen at run time.

/// A seeded bug.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Canary {
    /// A commit is answered without waiting for its sync.
    AckBeforeSync = 1,
    /// New files are used before their name is durable.
    NoDirectorySync = 2,
    /// Frame checksums leave offset and epoch out.
    UnsaltedChecksums = 3,
    /// An invalid frame at the end of the log is stepped over.
    BadFrameSkipped = 4,
    /// Ids start again below the ceiling.
    FileIdReused = 5,
    /// A new store's superblock is written before its manifest is durable.
    SuperblockFirst = 6,
    /// A put takes a chunk that no commit has inserted for stored.
    DedupUncommitted = 7,
    /// Writes go on after a failed sync.
    PoisonIgnored = 8,
    /// Recovery publishes what it adopts without writing it again.
    TailNotRewritten = 9,
    /// Recovery appends to a torn segment.
    AppendBehindTorn = 10,
    /// Bulk segments are not synced before the commit that names them.
    BulkNotSynced = 11,
    /// A prepared segment of an earlier process is used without zeroing it again.
    PreparedNotZeroed = 12,
    /// A table is not synced before the manifest that names it.
    TableNotSynced = 13,
    /// The mirror of a table is not synced before the manifest that names it.
    MirrorNotSynced = 14,
    /// The superblock names a manifest whose files are not durable.
    SuperblockEarly = 15,
    /// Files of an earlier checkpoint go before the superblock of the next one is written.
    DestroyedEarly = 16,
    /// Replay begins behind commits that no table has.
    ReplayTooNew = 17,
    /// A sync of a table that failed is made again, and believed.
    TableSyncRetried = 18,
    /// The files of log segments are used again before the superblock names a manifest without them.
    LogReleasedEarly = 19,
    /// Log segments are released whose chunks are live.
    LiveLogReleased = 20,
    /// The file of a log segment that was released is used again without zeroing it.
    RecycledNotZeroed = 21,
    /// What was deleted is readable all the same.
    DeletedReadable = 22,
    /// An artifact that gets another end is due at the old one too.
    OldEndStays = 23,
    /// A link is held against fences as if its writer had begun with it.
    LinkBornAnew = 24,
    /// A fork counts one reference for all its copies of a blob.
    ForkCountsOnce = 25,
}

impl Canary {
    /// Every seeded bug.
    pub const ALL: [Self; 25] = [
        Self::AckBeforeSync,
        Self::NoDirectorySync,
        Self::UnsaltedChecksums,
        Self::BadFrameSkipped,
        Self::FileIdReused,
        Self::SuperblockFirst,
        Self::DedupUncommitted,
        Self::PoisonIgnored,
        Self::TailNotRewritten,
        Self::AppendBehindTorn,
        Self::BulkNotSynced,
        Self::PreparedNotZeroed,
        Self::TableNotSynced,
        Self::MirrorNotSynced,
        Self::SuperblockEarly,
        Self::DestroyedEarly,
        Self::ReplayTooNew,
        Self::TableSyncRetried,
        Self::LogReleasedEarly,
        Self::LiveLogReleased,
        Self::RecycledNotZeroed,
        Self::DeletedReadable,
        Self::OldEndStays,
        Self::LinkBornAnew,
        Self::ForkCountsOnce,
    ];
}

#[cfg(feature = "canaries")]
mod chosen {
    use crate::sync::{AtomicU8, Ordering};

    static CHOSEN: AtomicU8 = AtomicU8::new(0);

    /// Turns one bug on, or all off.
    pub fn choose(canary: Option<super::Canary>) {
        CHOSEN.store(canary.map_or(0, |c| c as u8), Ordering::SeqCst);
    }

    pub(crate) fn sings(canary: super::Canary) -> bool {
        CHOSEN.load(Ordering::Relaxed) == canary as u8
    }
}

#[cfg(feature = "canaries")]
pub use chosen::choose;
#[cfg(feature = "canaries")]
pub(crate) use chosen::sings;

/// True while this bug is chosen; never in a build without the feature.
#[cfg(not(feature = "canaries"))]
pub(crate) const fn sings(_: Canary) -> bool {
    false
}
