//! Holdfast: a content-addressed, log-structured blob store in which ownership, retention and erasure are primitives of the engine.
//!
//! `docs/ARCHITECTURE.md` gives the floors; `format-spec/FORMAT.md` the bytes.

pub mod budget;
pub mod canary;
pub mod catalog;
pub mod checkpoint;
pub mod checksum;
pub mod chunker;
pub mod clock;
pub mod codec;
pub mod commit;
pub mod digest;
pub mod disk;
pub mod entropy;
mod error;
pub mod format;
pub mod health;
pub mod ids;
pub mod ingest;
pub mod limits;
pub mod log;
pub mod manifest;
pub mod ownership;
pub mod pins;
pub mod read;
pub mod recovery;
pub mod repair;
pub mod segment;
pub mod store;
pub mod superblock;
mod sync;
pub mod table;
pub mod verify;

pub use checkpoint::{Checkpointed, Tuning as CheckpointTuning};
pub use error::{Error, Kind, Place, Result};
pub use ingest::{Put, PutReply, Tuning, resumed::CommitUpload};
pub use ownership::{AccountScope, ConversationScope, Destination, RunScope, RunToken, Scope, UploadScope};
pub use recovery::{OpenReport, Problem};
pub use repair::{Mended, Repair};
pub use store::{
    ArtifactInfo, ArtifactState, BeginRun, ClaimReply, ClaimedInfo, ConversationInfo, Cursor, Fork, ForkReply, Get,
    InitOptions, Leased, Link, LinkReply, ListOrder, ListPage, OpenMode, OpenOptions, Probe, Prune, Retain, RunInfo,
    SentReply, Stats, Store, Tag, TenantInfo, UploadInfo, World,
};
pub use verify::{VerifyOptions, VerifyReport};
