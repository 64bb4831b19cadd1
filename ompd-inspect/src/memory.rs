//! How the C library's allocator asks the kernel for memory.

#![allow(unsafe_code, reason = "mallopt(3) has no safe wrapper")]

/// Keeps what is given back, for the next who asks, and asks for more at a time. This program lives as long as one look, or looks again
/// and again: each page that went back to the kernel would be made empty anew.
pub fn keep() {
    #[cfg(target_env = "gnu")]
    {
        const KEPT: libc::c_int = 64 << 20;
        const AT_ONCE: libc::c_int = 1 << 20;
        /// Larger ones are mapped, so that they grow without a copy.
        const MAPPED: libc::c_int = 4 << 20;
        // SAFETY: takes plain numbers, before any other thread exists. Numbers it does not like change nothing.
        unsafe {
            libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT);
            libc::mallopt(libc::M_TOP_PAD, AT_ONCE);
            libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED);
        }
    }
}
