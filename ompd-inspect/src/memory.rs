//! How the C library's allocator asks the kernel for memory.

#![allow(unsafe_code, reason = "mallopt(3), sbrk(2) and madvise(2) have no safe wrapper")]

/// Keeps what is given back, for the next who asks, and asks for much at a time. This program lives as long as one look, or looks again
/// and again: each page that went back to the kernel would be made empty anew. A look at many threads needs many pages, and the kernel
/// makes each one when it is first used. So the pages beyond the need of a small look are large ones.
pub fn keep() {
    #[cfg(target_env = "gnu")]
    {
        const KEPT: libc::c_int = 128 << 20;
        const AT_ONCE: libc::c_int = 1 << 20;
        /// Only addresses, until they are used.
        const AT_FIRST: libc::c_int = 64 << 20;
        /// Larger ones are mapped, so that they grow without a copy.
        const MAPPED: libc::c_int = 4 << 20;
        const SMALL_LOOK: usize = 4 << 20;
        // SAFETY: takes plain numbers, before any other thread exists. Numbers it does not like change nothing. The addresses lie between
        // two ends of the heap, which only grows here; what kind of pages they get does not change what is in them.
        unsafe {
            libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT);
            libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED);
            libc::mallopt(libc::M_TOP_PAD, AT_FIRST);
            let before = libc::sbrk(0).addr();
            // More than is left at the end of the heap, so that it grows. Hidden from the compiler, which would leave it out. It may fail
            // (`ulimit -v`): then the heap is as it was.
            libc::free(std::hint::black_box(libc::malloc(1 << 20)));
            libc::mallopt(libc::M_TOP_PAD, AT_ONCE);
            let after = libc::sbrk(0);
            if let Some(length) = after.addr().checked_sub(before + SMALL_LOOK) {
                libc::madvise(after.byte_sub(length), length, libc::MADV_HUGEPAGE);
            }
        }
    }
}
