//! What is said on standard error: only what keeps this library from its work.

const PREFIX: &str = "libgomp_ompt: ";

/// Writes a line on standard error.
pub fn say(text: &str) {
    let line = format!("{PREFIX}{text}\n");
    // SAFETY: the bytes of a string. Nothing can be done about an error.
    unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
}

/// Ends the process, which cannot continue.
pub fn die(text: &str) -> ! {
    say(text);
    // SAFETY: it ends the process.
    unsafe { libc::abort() }
}
