//! Compression of chunks, with the bounds that a hostile frame must keep.

use std::cell::RefCell;

use crate::{limits::ZSTD_WINDOW_LOG_MAX, sync::Mutex};

/// How a payload stands on disk. The numbers are format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Codec {
    /// As it is.
    Raw = 0,
    /// One zstd frame.
    Zstd = 1,
}

impl Codec {
    /// Reads the number.
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Raw),
            1 => Some(Self::Zstd),
            _ => None,
        }
    }
}

/// Compression options of a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Compression {
    /// zstd level 1 to 19, or 0 for none.
    pub level: u8,
    /// Bytes at the front of a chunk that decide.
    pub probe: u32,
}

impl Compression {
    /// zstd -1 where the first 4 KiB save an eighth.
    pub const DEFAULT: Self = Self { level: 1, probe: 4096 };
}

/// A compressor with its buffers, for one stream.
pub struct Compressor {
    options: Compression,
    /// Taken only when it is dropped.
    parts: Option<Parts>,
}

/// What is costly to make, and carries nothing from one frame to the next.
struct Parts {
    level: u8,
    zstd: zstd::bulk::Compressor<'static>,
    out: Vec<u8>,
}

/// Parts of compressors that are gone. Making them costs more than compressing a small chunk.
static IDLE: Mutex<Vec<Parts>> = Mutex::new(Vec::new());
/// So many are kept: more than that seldom compress at once.
const IDLE_MAX: usize = 16;
/// Parts whose buffer grew beyond this are not kept.
const IDLE_BUFFER_MAX: usize = 1 << 20;

impl Compressor {
    /// Makes one.
    pub fn new(options: Compression) -> std::io::Result<Self> {
        let level = options.level.max(1);
        let idle = {
            let mut idle = IDLE.lock();
            idle.iter().position(|parts| parts.level == level).map(|at| idle.swap_remove(at))
        };
        if let Some(parts) = idle {
            return Ok(Self { options, parts: Some(parts) });
        }
        let mut zstd = zstd::bulk::Compressor::new(i32::from(level))?;
        zstd.window_log(ZSTD_WINDOW_LOG_MAX)?;
        // The frame header of the store has the length and a checksum already.
        zstd.include_checksum(false)?;
        Ok(Self { options, parts: Some(Parts { level, zstd, out: Vec::new() }) })
    }

    /// The payload compressed, or `None` where that does not pay: the probe must save an eighth, and so must the whole.
    pub fn compress(&mut self, raw: &[u8]) -> Option<&[u8]> {
        if self.options.level == 0 || raw.len() < 64 {
            return None;
        }
        let probe = raw.len().min(self.options.probe as usize);
        let parts = self.parts.as_mut()?;
        let mut stored = parts.run(&raw[..probe])?;
        if !saves_an_eighth(stored, probe) {
            return None;
        }
        if probe < raw.len() {
            stored = parts.run(raw)?;
        }
        saves_an_eighth(stored, raw.len()).then(|| &parts.out[..stored])
    }
}

impl Drop for Compressor {
    fn drop(&mut self) {
        let Some(parts) = self.parts.take().filter(|parts| parts.out.capacity() <= IDLE_BUFFER_MAX) else { return };
        let mut idle = IDLE.lock();
        if idle.len() < IDLE_MAX {
            idle.push(parts);
        }
    }
}

impl Parts {
    /// Compresses into the buffer and gives the length; `None` when the result would not be shorter.
    fn run(&mut self, raw: &[u8]) -> Option<usize> {
        self.out.resize(raw.len(), 0);
        self.zstd.compress_to_buffer(raw, &mut self.out[..]).ok()
    }
}

const fn saves_an_eighth(stored: usize, raw: usize) -> bool {
    stored + raw / 8 <= raw && stored < raw
}

/// Decodes a payload into exactly `raw` bytes. `None` if it is not one frame within the bounds: a longer output, a wider window,
/// trailing bytes. Memory is `raw` bytes.
pub fn decompress(stored: &[u8], raw: usize) -> Option<Vec<u8>> {
    // Decoding in one call never makes a window, so that zstd does not look at its size: the format does.
    if window(stored)? > 1 << ZSTD_WINDOW_LOG_MAX
        || zstd::zstd_safe::find_frame_compressed_size(stored).ok()? != stored.len()
    {
        return None;
    }
    let mut out = Vec::new();
    out.try_reserve_exact(raw).ok()?;
    DECOMPRESSOR.with_borrow_mut(|zstd| {
        if zstd.is_none() {
            *zstd = zstd::bulk::Decompressor::new().ok();
        }
        zstd.as_mut()?.decompress_to_buffer(stored, &mut out).ok()
    })?;
    (out.len() == raw).then_some(out)
}

thread_local! {
    /// Making a decoder costs more than decoding a small chunk; it carries nothing from one frame to the next.
    static DECOMPRESSOR: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Window that a frame needs (RFC 8878 section 3.1.1.1): that of its descriptor, or its whole content in a single-segment frame.
fn window(frame: &[u8]) -> Option<u64> {
    let (magic, rest) = frame.split_first_chunk::<4>()?;
    let (descriptor, rest) = rest.split_first()?;
    if *magic != [0x28, 0xb5, 0x2f, 0xfd] {
        return None;
    }
    if descriptor & 0x20 != 0 {
        return zstd::zstd_safe::get_frame_content_size(frame).ok()?;
    }
    let window = u64::from(*rest.first()?);
    let base = 1_u64 << (10 + (window >> 3));
    Some(base + base / 8 * (window & 7))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compressor() -> Compressor {
        Compressor::new(Compression::DEFAULT).expect("zstd is there")
    }

    #[test]
    fn text_is_compressed_and_comes_back() {
        let text = b"It was the best of times, it was the worst of times. ".repeat(300);
        let mut compressor = compressor();
        let stored = compressor.compress(&text).expect("pays").to_vec();
        assert!(stored.len() * 4 < text.len());
        assert_eq!(decompress(&stored, text.len()).expect("decodes"), text);
    }

    #[test]
    fn random_bytes_stay_as_they_are() {
        let noise: Vec<u8> = blake3::Hasher::new().update(b"n").finalize_xof_bytes(10_000);
        assert!(compressor().compress(&noise).is_none());
    }

    trait Xof {
        fn finalize_xof_bytes(&self, len: usize) -> Vec<u8>;
    }

    impl Xof for blake3::Hasher {
        fn finalize_xof_bytes(&self, len: usize) -> Vec<u8> {
            let mut out = vec![0; len];
            self.finalize_xof().fill(&mut out);
            out
        }
    }

    #[test]
    fn a_frame_that_decodes_to_more_or_less_than_it_says_is_refused() {
        let text = vec![b'a'; 100_000];
        let mut compressor = compressor();
        let stored = compressor.compress(&text).expect("pays").to_vec();
        assert!(decompress(&stored, 99_999).is_none());
        assert!(decompress(&stored, 100_001).is_none());
        let mut trailing = stored.clone();
        trailing.push(0);
        assert!(decompress(&trailing, 100_000).is_none());
        assert!(decompress(&stored[..stored.len() - 1], 100_000).is_none());
    }

    #[test]
    fn a_frame_with_a_wide_window_is_refused() {
        let mut zstd = zstd::bulk::Compressor::new(1).expect("zstd");
        zstd.window_log(24).expect("24");
        zstd.include_contentsize(false).expect("flag");
        let mut noise = vec![0; 4 << 20];
        blake3::Hasher::new().update(b"w").finalize_xof().fill(&mut noise);
        let stored = zstd.compress(&noise).expect("compresses");
        assert!(decompress(&stored, noise.len()).is_none());
    }

    #[test]
    fn codecs_have_the_numbers_of_the_format() {
        assert_eq!((Codec::Raw as u8, Codec::Zstd as u8), (0, 1));
        assert_eq!(Codec::from_number(2), None);
    }
}
