//! The bounds of section 1 of `FORMAT.md`, and the sizes that several structures share.

/// A frame, its header and fill included.
pub const FRAME: u64 = 16_777_216;
/// Entries of a recipe page.
pub const PAGE_ENTRIES: u16 = 1_024;
/// Highest level of a recipe page.
pub const PAGE_LEVEL: u8 = 40;
/// Key of an edit.
pub const EDIT_KEY: u16 = 256;
/// Body of an edit.
pub const EDIT_BODY: u32 = 4_194_304;
/// Requests of a commit, and edits of one request.
pub const REQUESTS: u32 = 65_536;
/// Edits of all requests of a commit together.
pub const EDITS: u32 = 1_048_576;
/// Entries of a footer frame.
pub const FOOTER_ENTRIES: u32 = 65_536;
/// Raw length of a chunk, whatever the superblock says.
pub const CHUNK: u32 = 8_388_608;
/// Tenants of a manifest.
pub const TENANTS: u32 = 65_536;
/// Segments of a manifest.
pub const SEGMENTS: u32 = 1_048_576;
/// Tables of a manifest.
pub const TABLES: u32 = 65_536;
/// Pages of a table.
pub const TABLE_PAGES: u32 = 4_096;
/// Sections of a table.
pub const TABLE_SECTIONS: u32 = 32;
/// Tags of a run.
pub const RUN_TAGS: u16 = 256;
/// Artifacts that a claim takes, and those that it leaves.
pub const CLAIM_ENTRIES: u32 = 10_000;
/// Highest file id.
pub const FILE_ID: u64 = (1 << 63) - 1;
/// The sequence part of an LSN.
pub const SEQUENCE: u64 = (1 << 48) - 1;
/// Size of a superblock copy and of a segment header copy.
pub const BLOCK: u64 = 4_096;
/// Where the frames of a segment begin.
pub const FRAMES_START: u64 = 8_192;
/// Frames stand at multiples of this.
pub const FRAME_ALIGN: u64 = 64;

/// Whether an offset can be the start or the end of a frame.
pub fn is_frame_offset(offset: u64) -> bool {
    offset >= FRAMES_START && offset.is_multiple_of(FRAME_ALIGN)
}

/// Whether a number can be a file id.
pub fn is_file_id(id: u64) -> bool {
    (1..=FILE_ID).contains(&id)
}

/// The LSN behind `count` requests that begin at `first`, if the incarnation has room for them.
pub fn lsn_after(first: u64, count: u32) -> Option<u64> {
    let sequence = (first & SEQUENCE).checked_add(u64::from(count))?;
    (sequence <= SEQUENCE).then_some((first & !SEQUENCE) | sequence)
}
