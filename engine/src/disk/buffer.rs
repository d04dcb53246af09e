//! Memory that direct I/O accepts: bytes at an address that is a multiple of a page.
//!
//! The buffer knows nothing of files; it never grows, so that its bytes never move while a stream fills it.

#![expect(
    unsafe_code,
    reason = "safe Rust has no way to ask for bytes of an alignment that is known only to the allocator"
)]

use std::{
    alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error},
    fmt, io,
    ptr::{NonNull, null_mut},
};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// Address, and capacity, of every buffer are multiples of this.
pub(super) const ALIGN: usize = 4096;

/// Length and alignment of a large page.
const LARGE_PAGE: usize = 2 << 20;

/// Bytes that are copied at a time. The C library leaves longer copies to an instruction that is fast only where both addresses are of
/// one alignment.
const COPY: usize = 4096;

/// A byte buffer of fixed capacity, aligned to 4,096.
pub struct AlignedBuffer {
    /// Start of `capacity` bytes, all of them initialised from the allocation on.
    start: NonNull<u8>,
    len: usize,
    capacity: usize,
    /// The bytes are a map of their own and not the allocator's.
    is_map: bool,
}

// SAFETY: the buffer owns its bytes like a `Vec<u8>` does; no other handle to them exists.
unsafe impl Send for AlignedBuffer {}
// SAFETY: a shared reference only reads.
unsafe impl Sync for AlignedBuffer {}

impl AlignedBuffer {
    /// An empty buffer that holds `capacity` bytes, rounded up to a multiple of 4,096 and at least one of them.
    ///
    /// # Panics
    /// Aborts, as `Vec` does, if the allocator has no memory; see [`try_with_capacity`](Self::try_with_capacity).
    pub fn with_capacity(capacity: usize) -> Self {
        match Self::layout(capacity) {
            Some(layout) => Self::allocate(layout).unwrap_or_else(|| handle_alloc_error(layout)),
            None => panic!("a buffer of {capacity} bytes is longer than memory can be"),
        }
    }

    /// The same, or [`io::ErrorKind::OutOfMemory`].
    pub fn try_with_capacity(capacity: usize) -> io::Result<Self> {
        Self::layout(capacity).and_then(Self::allocate).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }

    /// An empty buffer for long direct writes: on large pages, if the system has some to give. A device is told of each page of a write
    /// that does not follow the one before it in memory, and small pages hardly ever do; virtual disks then take half the time again.
    ///
    /// # Panics
    /// As [`with_capacity`](Self::with_capacity).
    pub fn on_large_pages(capacity: usize) -> Self {
        Self::map(capacity).unwrap_or_else(|| Self::with_capacity(capacity))
    }

    /// A buffer of `len` zeros, on large pages if the system has some to give: one fault for 2 MiB.
    ///
    /// # Panics
    /// As [`with_capacity`](Self::with_capacity).
    pub fn zeroed_on_large_pages(len: usize) -> Self {
        let mut buffer = Self::on_large_pages(len);
        // Zeros from the allocation on.
        buffer.len = len;
        buffer
    }

    /// The same, or [`io::ErrorKind::OutOfMemory`].
    pub fn try_zeroed_on_large_pages(len: usize) -> io::Result<Self> {
        let mut buffer = Self::map(len).map_or_else(|| Self::try_with_capacity(len), Ok)?;
        buffer.len = len;
        Ok(buffer)
    }

    /// Whole large pages. `None` if the capacity is no multiple of them, or there is no memory.
    fn map(capacity: usize) -> Option<Self> {
        if capacity == 0 || !capacity.is_multiple_of(LARGE_PAGE) {
            return None;
        }
        let whole = capacity.checked_add(LARGE_PAGE)?;
        // SAFETY: a new private map, at an address of the system's choice, is nobody else's memory.
        let base = unsafe { mmap_anonymous(null_mut(), whole, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE) };
        let base = NonNull::new(base.ok()?.cast::<u8>())?;
        let before = base.align_offset(LARGE_PAGE).min(LARGE_PAGE);
        // SAFETY: `before` is at most `LARGE_PAGE`, so that `capacity` bytes behind it are within the map. What lies outside of them is
        // of whole pages, and was never given out. The advice concerns the rest alone; nothing rests on it.
        let start = unsafe {
            let start = base.add(before);
            if before > 0 {
                munmap(base.as_ptr().cast(), before).ok()?;
            }
            if before < LARGE_PAGE {
                munmap(start.add(capacity).as_ptr().cast(), LARGE_PAGE - before).ok()?;
            }
            let _ = madvise(start.as_ptr().cast(), capacity, Advice::LinuxHugepage);
            start
        };
        Some(Self { start, len: 0, capacity, is_map: true })
    }

    /// A buffer of `len` zeros.
    ///
    /// # Panics
    /// As [`with_capacity`](Self::with_capacity).
    pub fn zeroed(len: usize) -> Self {
        let mut buffer = Self::with_capacity(len);
        // Zeros from the allocation on.
        buffer.len = len;
        buffer
    }

    fn layout(capacity: usize) -> Option<Layout> {
        let rounded = capacity.max(1).checked_next_multiple_of(ALIGN)?;
        Layout::from_size_align(rounded, ALIGN).ok()
    }

    fn allocate(layout: Layout) -> Option<Self> {
        // SAFETY: `layout` gives at least one page, so its size is not zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Self { start, len: 0, capacity: layout.size(), is_map: false })
    }

    /// Bytes in use.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True if no byte is in use.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes that fit in all.
    pub const fn capacity(&self) -> usize {
        self.capacity
    }

    /// Bytes that still fit.
    pub const fn room(&self) -> usize {
        self.capacity - self.len
    }

    /// Appends what fits of `bytes` and says how many that were.
    #[must_use = "the rest of the bytes did not fit"]
    pub fn extend_from_slice(&mut self, bytes: &[u8]) -> usize {
        let taken = bytes.len().min(self.room());
        let end = self.len + taken;
        let free = &mut self.whole_mut()[end - taken..end];
        for (free, bytes) in free.chunks_mut(COPY).zip(bytes[..taken].chunks(COPY)) {
            free.copy_from_slice(bytes);
        }
        self.len = end;
        taken
    }

    /// Cuts the buffer, or extends it with zeros.
    ///
    /// # Panics
    /// If `len` is above the capacity.
    pub fn resize(&mut self, len: usize) {
        assert!(len <= self.capacity, "{len} bytes in a buffer of {}", self.capacity);
        if len > self.len {
            // Bytes behind the length may be left over from before the last clear.
            let end = self.len;
            self.whole_mut()[end..len].fill(0);
        }
        self.len = len;
    }

    /// Forgets all bytes.
    pub const fn clear(&mut self) {
        self.len = 0;
    }

    /// The bytes in use.
    pub const fn as_slice(&self) -> &[u8] {
        // SAFETY: `start` points to `capacity` initialised bytes that this buffer owns, and `len <= capacity`. Without a capacity it
        // points nowhere, which is where no bytes may be.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// The bytes in use, to be changed.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        let len = self.len;
        &mut self.whole_mut()[..len]
    }

    fn whole_mut(&mut self) -> &mut [u8] {
        // SAFETY: `start` points to `capacity` initialised bytes, and `&mut self` is the only way to them.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.capacity) }
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        if self.capacity == 0 {
            return;
        }
        if self.is_map {
            // SAFETY: `capacity` bytes from `start` on are what `map` kept of its map, and nobody else has them. It cannot fail for a
            // whole map; if it did the memory would stay taken.
            let _ = unsafe { munmap(self.start.as_ptr().cast(), self.capacity) };
            return;
        }
        let layout = Self::layout(self.capacity).expect("the layout was good when the bytes were allocated");
        // SAFETY: the bytes came from `alloc_zeroed` with this layout: capacity is a multiple of the alignment, so that
        // rounding it again changes nothing.
        unsafe { dealloc(self.start.as_ptr(), layout) }
    }
}

impl Default for AlignedBuffer {
    /// A buffer that holds nothing and has no memory.
    fn default() -> Self {
        Self { start: NonNull::dangling(), len: 0, capacity: 0, is_map: false }
    }
}

impl AsRef<[u8]> for AlignedBuffer {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl fmt::Debug for AlignedBuffer {
    /// Shows sizes, never bytes: they may be somebody's.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AlignedBuffer({} of {})", self.len, self.capacity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_aligned_and_rounded_up() {
        for wanted in [0, 1, 4095, 4096, 4097, 1 << 20] {
            let buffer = AlignedBuffer::with_capacity(wanted);
            assert_eq!(buffer.as_slice().as_ptr().addr() % ALIGN, 0);
            assert!(buffer.capacity() >= wanted.max(1) && buffer.capacity().is_multiple_of(ALIGN));
            assert!(buffer.is_empty());
        }
    }

    #[test]
    fn whole_large_pages_are_zeros_at_their_alignment_and_anything_else_is_a_common_buffer() {
        for pages in 1..4 {
            let mut buffer = AlignedBuffer::on_large_pages(pages * LARGE_PAGE);
            assert_eq!((buffer.as_slice().as_ptr().addr() % LARGE_PAGE, buffer.capacity()), (0, pages * LARGE_PAGE));
            assert_eq!(buffer.extend_from_slice(&vec![1; 5000]), 5000);
            buffer.resize(buffer.capacity());
            assert_eq!(buffer.as_slice().iter().map(|byte| usize::from(*byte)).sum::<usize>(), 5000);
        }
        for capacity in [0, 1, LARGE_PAGE - 1, LARGE_PAGE + 1] {
            let buffer = AlignedBuffer::on_large_pages(capacity);
            assert!(!buffer.is_map && buffer.capacity() >= capacity.max(1));
        }
    }

    #[test]
    fn a_buffer_without_memory_holds_nothing() {
        let mut buffer = AlignedBuffer::default();
        assert_eq!((buffer.as_slice().len(), buffer.room(), buffer.extend_from_slice(&[1])), (0, 0, 0));
        buffer.resize(0);
        assert!(buffer.as_mut_slice().is_empty());
    }

    #[test]
    fn what_does_not_fit_is_not_taken() {
        let mut buffer = AlignedBuffer::with_capacity(4096);
        assert_eq!(buffer.extend_from_slice(&[1; 4000]), 4000);
        assert_eq!(buffer.extend_from_slice(&[2; 200]), 96);
        assert_eq!(buffer.extend_from_slice(&[3]), 0);
        assert_eq!((buffer.len(), buffer.room()), (4096, 0));
        assert_eq!(&buffer.as_slice()[3999..4001], &[1, 2]);
    }

    #[test]
    fn growing_shows_zeros_and_not_what_was_there_before() {
        let mut buffer = AlignedBuffer::with_capacity(16);
        buffer.resize(16);
        buffer.as_mut_slice().fill(7);
        buffer.resize(4);
        buffer.resize(8);
        assert_eq!(buffer.as_slice(), &[7, 7, 7, 7, 0, 0, 0, 0]);
        buffer.clear();
        buffer.resize(4096);
        assert!(buffer.as_slice().iter().all(|b| *b == 0));
    }

    #[test]
    fn a_capacity_that_no_memory_has_is_an_error() {
        let error = AlignedBuffer::try_with_capacity(usize::MAX - 5000).expect_err("more than memory");
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
    }

    #[test]
    fn debug_shows_no_bytes() {
        let mut buffer = AlignedBuffer::with_capacity(1);
        assert_eq!(buffer.extend_from_slice(b"secret"), 6);
        assert_eq!(format!("{buffer:?}"), "AlignedBuffer(6 of 4096)");
    }
}
