//! A thin global allocator that counts, so that on flex, whose tensors live in it, the ledger is held against a measured
//! peak. libtorch's tensors do not: then nothing is said rather than something small.
#![allow(unsafe_code)]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
};

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static ELSEWHERE: AtomicBool = AtomicBool::new(false);

/// Counts the bytes that are alive and the most that were alive at once. Installed by the executable.
#[derive(Debug, Clone, Copy)]
pub struct Counting;

/// From now on what is counted here says nothing of the training: its tensors live in a library's own memory.
pub fn tensors_live_elsewhere() {
    ELSEWHERE.store(true, Relaxed);
}

/// Bytes alive now, 0 when [`Counting`] is not installed or does not see the tensors.
pub fn live_bytes() -> u64 {
    seen(&LIVE)
}

/// The most bytes alive at once since the start or the last [`reset_peak`]; 0 as for [`live_bytes`].
pub fn peak_bytes() -> u64 {
    seen(&PEAK)
}

fn seen(bytes: &AtomicUsize) -> u64 {
    if ELSEWHERE.load(Relaxed) { 0 } else { bytes.load(Relaxed) as u64 }
}

/// Starts a new peak at what is alive now.
pub fn reset_peak() {
    PEAK.store(LIVE.load(Relaxed), Relaxed);
}

fn grow(bytes: usize) {
    let live = LIVE.fetch_add(bytes, Relaxed) + bytes;
    if live > PEAK.load(Relaxed) {
        PEAK.fetch_max(live, Relaxed);
    }
}

fn shrink(bytes: usize) {
    LIVE.fetch_sub(bytes, Relaxed);
}

// SAFETY: every call is passed on to the system allocator unchanged; counting touches two atomics.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        let pointer = unsafe { System.alloc(layout) };
        if !pointer.is_null() {
            grow(layout.size());
        }
        pointer
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        let pointer = unsafe { System.alloc_zeroed(layout) };
        if !pointer.is_null() {
            grow(layout.size());
        }
        pointer
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) };
        shrink(layout.size());
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        let moved = unsafe { System.realloc(pointer, layout, size) };
        if !moved.is_null() {
            grow(size);
            shrink(layout.size());
        }
        moved
    }
}
