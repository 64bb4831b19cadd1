//! How a look may end, and what it must not leave.

use std::fs;

use anyhow::{Context, Result};

/// What `timeout` exits with when it had to end the program.
pub(crate) const ENDED: i32 = 124;
/// What a program exits with after a panic.
pub(crate) const PANICKED: i32 = 101;
/// The exit statuses of a look, by docs/guide/scripts.md.
pub(crate) const DOCUMENTED: [i32; 3] = [0, 1, 2];

/// What a look has left at a process: threads that are stopped or traced. A thread that has ended meanwhile is let go.
///
/// # Errors
/// When the process has ended.
pub(crate) fn left(pid: i32) -> Result<Vec<String>> {
    let mut trouble = Vec::new();
    for task in fs::read_dir(format!("/proc/{pid}/task")).context("the process has gone")? {
        let Ok(status) = fs::read_to_string(task?.path().join("status")) else { continue };
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim();
        if field("TracerPid:") != "0" || field("State:").starts_with(['t', 'T']) {
            let (state, tracer) = (field("State:"), field("TracerPid:"));
            trouble.push(format!("thread {} is left as {state}, traced by {tracer}", field("Pid:")));
        }
    }
    Ok(trouble)
}
