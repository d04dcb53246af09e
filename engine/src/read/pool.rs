//! Buffers that reads use again: a fresh one costs a fault a page, which is as much as reading from the page cache.
//!
//! The pool knows nothing of what the bytes are. It never makes anybody wait: where none is free a new one is made.

use crate::{
    disk::AlignedBuffer,
    error::{Error, Kind, Result},
    limits::READ_RUN,
    sync::{Arc, Mutex},
};

/// Idle buffers that are kept: all of one read ahead.
const IDLE_MAX: usize = 4;
/// What is shorter gets memory of its own length: whoever keeps it should not keep a whole buffer.
const SHORT: usize = READ_RUN / 4;

/// The idle buffers.
#[derive(Default)]
pub(super) struct Pool {
    idle: Mutex<Vec<AlignedBuffer>>,
}

/// A buffer in use. It goes back when it is dropped.
pub(super) struct Buffer {
    /// Aligned: the system copies faster to where a page begins.
    bytes: AlignedBuffer,
    /// The bytes that count, within the buffer.
    start: usize,
    end: usize,
    pool: Arc<Pool>,
}

/// Memory that a buffer of `len` bytes takes.
pub(super) fn memory(len: u64) -> u64 {
    if (SHORT as u64..=READ_RUN as u64).contains(&len) { READ_RUN as u64 } else { len }
}

impl Pool {
    /// A buffer of `len` bytes, whatever they are.
    pub(super) fn take(self: &Arc<Self>, len: usize) -> Result<Buffer> {
        let pooled = (SHORT..=READ_RUN).contains(&len);
        let idle = if pooled { self.idle.lock().pop() } else { None };
        let bytes = idle.map_or_else(|| zeros(if pooled { READ_RUN } else { len }), Ok)?;
        Ok(Buffer { bytes, start: 0, end: len, pool: Arc::clone(self) })
    }
}

fn zeros(len: usize) -> Result<AlignedBuffer> {
    AlignedBuffer::try_zeroed_on_large_pages(len).map_err(|_| Error::new(Kind::Limit, "no memory for a read"))
}

impl Buffer {
    /// Forgets what lies before `start` and behind `end`.
    pub(super) fn keep(&mut self, start: usize, end: usize) {
        self.end = self.end.min(end);
        self.start = start.min(self.end);
    }

    /// The bytes, to be filled.
    pub(super) fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.bytes.as_mut_slice()[self.start..self.end]
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes.as_slice()[self.start..self.end]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.bytes.len() == READ_RUN {
            let mut idle = self.pool.idle.lock();
            if idle.len() < IDLE_MAX {
                idle.push(std::mem::take(&mut self.bytes));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_comes_back_and_no_more_are_kept_than_one_read_needs() {
        let pool = Arc::new(Pool::default());
        let address = {
            let mut buffer = pool.take(SHORT).expect("memory");
            buffer.as_mut_slice().fill(7);
            buffer.as_ref().as_ptr()
        };
        let again = pool.take(READ_RUN).expect("memory");
        assert_eq!((again.as_ref().as_ptr(), again.as_ref().len()), (address, READ_RUN));
        let many: Vec<_> = (0..3 * IDLE_MAX).map(|_| pool.take(READ_RUN).expect("memory")).collect();
        drop(many);
        assert_eq!(pool.idle.lock().len(), IDLE_MAX);
    }

    #[test]
    fn what_is_short_or_long_has_its_own_length_and_is_not_kept() {
        let pool = Arc::new(Pool::default());
        for len in [0, 1, SHORT - 1, READ_RUN + 1] {
            let buffer = pool.take(len).expect("memory");
            assert_eq!((buffer.as_ref().len(), buffer.bytes.len()), (len, len));
        }
        assert!(pool.idle.lock().is_empty());
    }
}
