//! What a stream's first bytes say that it is, and whether that is worth compressing. A hint for people and for the compressor;
//! nothing rests on it.

use crate::ownership::names;

/// Bytes that are looked at.
const FRONT_LEN: usize = 8 << 10;

/// What is kept when neither the caller nor the bytes say.
const UNKNOWN: &str = "application/octet-stream";

/// Media types of a stream.
pub(super) struct Media {
    /// What the caller says, else what the bytes say.
    pub(super) media_type: String,
    /// What the bytes say; empty if nothing.
    pub(super) detected_type: String,
}

impl Media {
    /// Takes the caller's word where it is well formed.
    pub(super) fn of(claimed: Option<&str>, front: &[u8]) -> Self {
        let front = &front[..front.len().min(FRONT_LEN)];
        let detected_type = infer::get(front).map(|found| found.mime_type().to_owned()).unwrap_or_default();
        let media_type = match claimed.and_then(names::media_type) {
            Some(claimed) => claimed,
            None if detected_type.is_empty() => UNKNOWN.to_owned(),
            None => detected_type.clone(),
        };
        Self { media_type, detected_type }
    }

    /// True if either says that the bytes are compressed already.
    pub(super) fn is_compressed(&self) -> bool {
        [&self.media_type, &self.detected_type].into_iter().any(|media_type| is_compressed(names::essence(media_type)))
    }
}

fn is_compressed(essence: &str) -> bool {
    const COMPRESSED: &[&str] = &[
        "application/gzip",
        "application/vnd.rar",
        "application/x-7z-compressed",
        "application/x-bzip2",
        "application/x-gzip",
        "application/x-lz4",
        "application/x-xz",
        "application/x-zip-compressed",
        "application/zip",
        "application/zstd",
        "image/avif",
        "image/gif",
        "image/heic",
        "image/heif",
        "image/jpeg",
        "image/jxl",
        "image/png",
        "image/webp",
    ];
    let kind = essence.split('/').next().unwrap_or_default();
    matches!(kind, "video" | "audio") || COMPRESSED.contains(&essence)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

    #[test]
    fn the_callers_word_counts_where_it_is_well_formed() {
        let of = |claimed, front| {
            let media = Media::of(claimed, front);
            (media.media_type, media.detected_type)
        };
        assert_eq!(of(Some("Text/Plain"), PNG), ("text/plain".into(), "image/png".into()));
        assert_eq!(of(Some("no type"), PNG), ("image/png".into(), "image/png".into()));
        assert_eq!(of(None, b"what?"), (UNKNOWN.into(), String::new()));
        assert_eq!(of(None, b""), (UNKNOWN.into(), String::new()));
    }

    #[test]
    fn what_is_compressed_already_is_told_by_either_type() {
        assert!(Media::of(None, PNG).is_compressed());
        assert!(Media::of(Some("video/mp4; codecs=avc1"), b"x").is_compressed());
        for claimed in ["text/plain", "application/pdf", "image/svg+xml", "application/json"] {
            assert!(!Media::of(Some(claimed), b"x").is_compressed(), "{claimed}");
        }
    }
}
