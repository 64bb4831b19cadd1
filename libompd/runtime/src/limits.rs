//! Caps on walks through target memory: what is read may be garbage, and a walk must end all the same.

/// Teams a chain of enclosing teams may have.
pub(crate) const TEAM_DEPTH: usize = 1024;
/// Members of one team, and threads in one pool.
pub(crate) const TEAM_SIZE: u64 = 1 << 18;
/// Generating tasks a task may have.
pub(crate) const TASK_DEPTH: usize = 1 << 14;
/// Tasks read in one snapshot.
pub(crate) const TASKS: usize = 1 << 20;
/// Entries of the table of threads looked at.
pub(crate) const THREADS: u64 = 1 << 18;
/// Locks read in one snapshot.
pub(crate) const LOCKS: u64 = 1 << 18;
/// Bytes of a string.
pub(crate) const STRING: u64 = 4096;
