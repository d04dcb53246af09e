//! Situations that a campaign must have met, or it proves nothing about them.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! situations {
    ($($name:ident = $text:literal,)*) => {
        /// A situation.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[expect(missing_docs, reason = "the text beside each says it")]
        pub enum Situation { $($name,)* }

        impl Situation {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// What it is.
            pub const fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

situations! {
    InitUnfinished = "an init that did not finish",
    SuperblockHalf = "superblock half written",
    TornHeader = "torn header of a segment",
    TornCommit = "torn commit",
    TornTail = "torn tail",
    HoleInTail = "hole in the tail",
    SealAlone = "seal without its successor's header",
    HeaderAlone = "successor with a header and no commit",
    HeadLags = "log_head behind the newest segment",
    Adopted = "adopted commits",
    TornBytes = "torn bytes left behind",
    UploadAborted = "aborted uploads",
    FilesDestroyed = "files that nothing named destroyed",
    WithTables = "store with tables",
    CheckpointCut = "tables of a checkpoint or merge that did not come to its end",
    ManifestCut = "manifest that no superblock names",
    LogReleased = "log segments released",
    LogLeaving = "released log segment whose file is still there",
    PreparedReused = "prepared segment of an earlier process used",
    PutUnknownKept = "unanswered put kept",
    PutUnknownDropped = "unanswered put dropped",
    Expired = "expired artifacts",
    ConversationDeleted = "deleted conversations",
    RunClaimed = "claims of runs",
    ArtifactDeleted = "deleted artifacts",
    OtherEnd = "artifacts with another end than they came with",
    Linked = "links",
    Forked = "forks",
    DeedUnknown = "unanswered deletion, claim, end, link or fork",
    Retried = "retry of an unanswered op",
    FullAndTorn = "torn log on a full disk",
    Lied = "prepared segment whose zeros were a lie",
    Nested = "recovery crashed",
    NestedTwice = "recovery of a crashed recovery crashed",
}

/// How often each situation was met.
#[derive(Debug)]
pub struct Coverage([AtomicU64; Situation::ALL.len()]);

impl Default for Coverage {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl Coverage {
    /// Counts a situation, if it is one.
    pub fn met(&self, situation: Situation, really: bool) {
        self.0[situation as usize].fetch_add(u64::from(really), Ordering::Relaxed);
    }

    /// Prints every count. True if each is at least `least`.
    pub fn report(&self, least: u64) -> bool {
        let mut enough = true;
        for situation in Situation::ALL {
            let count = self.0[*situation as usize].load(Ordering::Relaxed);
            let lacks = if count < least { "  TOO FEW" } else { "" };
            println!("  {count:>9}  {}{lacks}", situation.text());
            enough &= count >= least;
        }
        enough
    }
}
