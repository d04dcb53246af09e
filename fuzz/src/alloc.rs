//! An allocator that ends the process when more than 512 MiB are in use: what a store may make its reader allocate.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicUsize, Ordering},
};

const CAP: usize = 512 << 20;

static LIVE: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator with a cap.
pub struct Capped;

// SAFETY: every call is handed on to the system's allocator with the layout that it came with.
unsafe impl GlobalAlloc for Capped {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size() > CAP {
            // Nothing that allocates may run here.
            std::process::abort();
        }
        // SAFETY: the caller's promises are those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size() > CAP {
            std::process::abort();
        }
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }
}
