//! What the user may say about where files are and how long the target may be held.

use std::path::PathBuf;
use std::time::Duration;

/// Whether a live process is stopped to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pause {
    /// Not if all its threads sleep while it is read. If one does not, all threads are stopped.
    #[default]
    Auto,
    /// All threads are stopped for each look.
    Brief,
    /// It is never stopped. What was read while a thread ran may be of different moments.
    Never,
}

/// Choices for opening a target; [`Default`] suits a process or core of this very machine.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// The executable, where it is not found by the name the target knows it under.
    pub exe: Option<PathBuf>,
    /// A directory that holds the target's file system (or a copy of its libraries), tried before anything else.
    pub lib_root: Option<PathBuf>,
    /// Directories with separate debug files, tried before `/usr/lib/debug`.
    pub debug_dirs: Vec<PathBuf>,
    /// Where procfs is mounted. It must show the same process ids as the kernel gives this process.
    pub proc_root: PathBuf,
    /// Whether a live process is stopped to be read.
    pub pause: Pause,
    /// The longest time for which a live process is held for one look. Its threads have three quarters of it to stop: if they
    /// do not, the look fails. After seven eighths long lists are not followed any further, at its end nothing is read any
    /// more, and what is missing is told.
    pub max_pause: Duration,
    /// Ask debuginfod servers for debug files that are nowhere else: runs `debuginfod-find`, which asks the servers named
    /// in `DEBUGINFOD_URLS` over the network. Never while a process is stopped, nor after it was.
    pub debuginfod: bool,
    /// Read live memory through `/proc/PID/mem` instead of `process_vm_readv`.
    pub force_proc_mem: bool,
}

impl Default for OpenOptions {
    fn default() -> Self {
        OpenOptions {
            exe: None,
            lib_root: None,
            debug_dirs: Vec::new(),
            proc_root: PathBuf::from("/proc"),
            pause: Pause::default(),
            max_pause: Duration::from_secs(5),
            debuginfod: false,
            force_proc_mem: false,
        }
    }
}
