//! Every maximum of the store, with the relations between them that the code relies on.

/// Length of one header block, superblock copy and unit of alignment of bulk writes.
pub const BLOCK: u64 = 4096;
/// The same, as a length in memory.
pub const BLOCK_LEN: usize = 4096;
/// Frames stand at multiples of this.
pub const FRAME_ALIGN: u64 = 64;
/// The same, as a length in memory.
pub const FRAME_ALIGN_LEN: usize = 64;
/// A frame with its header and fill.
pub const FRAME_LEN_MAX: u64 = 16 << 20;
/// Where the frames of a segment begin: behind two copies of its header.
pub const FRAMES_START: u64 = 2 * BLOCK;
/// Entries of a recipe page.
pub const PAGE_ENTRIES_MAX: usize = 1024;
/// Level of a recipe page. A page has two entries or more below the top, so 40 levels hold more chunks than a u64 counts bytes.
pub const PAGE_LEVEL_MAX: u8 = 40;
/// Key of an edit.
pub const KEY_LEN_MAX: usize = 256;
/// Body of an edit.
pub const EDIT_BODY_MAX: usize = 4 << 20;
/// Requests of a commit.
pub const COMMIT_REQUESTS_MAX: usize = 65_536;
/// Edits of a commit.
pub const COMMIT_EDITS_MAX: usize = 1 << 20;
/// A group of commits closes at this many bytes of edits.
pub const GROUP_EDIT_BYTES: usize = 4 << 20;
/// ... or at this many bytes of frames.
pub const GROUP_FRAME_BYTES: usize = 16 << 20;
/// Entries of a footer frame.
pub const FOOTER_ENTRIES_MAX: usize = 65_536;
/// Raw length of a chunk, whatever the superblock's options say.
pub const CHUNK_LEN_MAX: u32 = 8 << 20;
/// Tenants of a manifest.
pub const TENANTS_MAX: u32 = 65_536;
/// Segments of a manifest.
pub const MANIFEST_SEGMENTS_MAX: u32 = 1 << 20;
/// Tables of a manifest.
pub const MANIFEST_TABLES_MAX: u32 = 65_536;
/// A memtable is written as tables when it holds this much.
pub const MEMTABLE_BYTES: u64 = 16 << 20;
/// A checkpoint is due when the log has grown by this much.
pub const CHECKPOINT_LOG_BYTES: u64 = 256 << 20;
/// Table pages that are kept in memory.
pub const TABLE_CACHE_BYTES: u64 = 16 << 20;
/// Ids of files stay below this.
pub const FILE_ID_MAX: u64 = i64::MAX.unsigned_abs();
/// Ceilings are raised by this.
pub const CEILING_STEP: u64 = 1024;
/// Prepared log segments.
pub const PREPARED_MAX: usize = 2;
/// Reserve files.
pub const RESERVES_MAX: usize = 4;
/// Ledger places.
pub const LEDGER_PLACES_MAX: usize = 4;
/// Window that a zstd frame may ask for, as a power of two.
pub const ZSTD_WINDOW_LOG_MAX: u32 = 20;
/// An upload that nothing was added to for so many milliseconds has ended.
pub const UPLOAD_IDLE_MS: u64 = 24 * 3600 * 1000;
/// What an upload became ends after so many milliseconds, unless a conversation takes it.
pub const UNSENT_MS: u64 = 24 * 3600 * 1000;
/// Uploads that are claimed in one commit.
pub const CLAIM_UPLOADS_MAX: usize = 1000;
/// Length of a text that is put as such.
pub const TEXT_LEN_MAX: usize = 1 << 20;
/// A stream up to this goes into the log lane with its commit; a longer one is an upload in the bulk lane.
pub const SMALL_STREAM_MAX: usize = 1 << 20;
/// A long stream commits its progress after this many bytes.
pub const PROGRESS_BYTES: u64 = 16 << 20;
/// A whole read up to this is verified before its first byte leaves.
pub const WHOLE_READ_MAX: u64 = 16 << 20;
/// Memory for all streams of a store that are pipelined at a time, in and out; an option of the open.
pub const INGEST_MEMORY: u64 = 256 << 20;
/// Frames that a read takes from the disk at once, unless one alone is longer: a large page.
pub const READ_RUN: usize = 2 << 20;
/// What a long read has ahead of its caller.
pub const READ_AHEAD: u64 = 8 << 20;
/// A write of a bulk segment, by a stream that runs on one thread.
pub const BULK_WRITE: usize = 1 << 20;
/// ... and by one that is pipelined: a large page.
pub const BULK_WRITE_PIPELINED: usize = 2 << 20;
/// Name of an artifact, bytes of UTF-8.
pub const NAME_LEN_MAX: usize = 255;
/// Id that a caller gives, bytes.
pub const SCOPE_ID_LEN_MAX: usize = 128;
/// Key of a tag, bytes.
pub const TAG_KEY_LEN_MAX: usize = 255;
/// Media type, bytes.
pub const MEDIA_TYPE_LEN_MAX: usize = 255;
/// Opaque key of an artifact, bytes.
pub const ARTIFACT_KEY_LEN_MAX: usize = 1024;
/// Records of one page of a list.
pub const LIST_PAGE_MAX: usize = 1000;
/// Records of a list that is sorted otherwise than they came.
pub const LIST_SORTED_MAX: usize = 10_000;
/// How long an account's op outcome answers a retry.
pub const ACCOUNT_OP_KEPT_MS: u64 = 7 * 24 * 3600 * 1000;
/// How long a run's op outcomes answer a retry once it is finished.
pub const RUN_OP_KEPT_MS: u64 = 24 * 3600 * 1000;
/// Tags of a run.
pub const RUN_TAGS_MAX: usize = 256;
/// Artifacts that a claim takes, and those that it leaves.
pub const CLAIM_MAX: usize = 10_000;
/// Artifacts that a fork brings.
pub const FORK_MAX: usize = 10_000;
/// How long a run may last, and how long what it puts is kept, unless it is told otherwise.
pub const RUN_TTL_MS: u64 = 30 * 24 * 3600 * 1000;
/// How long a lease lasts unless it is told otherwise.
pub const LEASE_MS: u64 = 10 * 60 * 1000;
/// No span of time that a caller gives is longer: a hundred years.
pub const SPAN_MS_MAX: u64 = 100 * 366 * 24 * 3600 * 1000;
/// Smallest segment that a store may be made with.
pub const SEGMENT_LEN_MIN: u64 = 16 << 10;
/// Largest segment that a store may be made with.
pub const SEGMENT_LEN_MAX: u64 = 1 << 40;

const _: () = assert!(FRAME_LEN_MAX.is_multiple_of(FRAME_ALIGN) && BLOCK.is_multiple_of(FRAME_ALIGN));
const _: () = assert!(BLOCK_LEN as u64 == BLOCK && FRAME_ALIGN_LEN as u64 == FRAME_ALIGN);
const _: () = assert!((CHUNK_LEN_MAX as u64) < FRAME_LEN_MAX);
const _: () = assert!((FOOTER_ENTRIES_MAX as u64) * 56 + 128 < FRAME_LEN_MAX);
const _: () = assert!(SMALL_STREAM_MAX < GROUP_FRAME_BYTES);
const _: () = assert!(GROUP_EDIT_BYTES as u64 + 1024 < FRAME_LEN_MAX);
