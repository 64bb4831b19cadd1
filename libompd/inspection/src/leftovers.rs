//! What processes that were killed have left behind, and what misleads later ones.

use std::fs;
use std::path::Path;

use ompd_process::TargetKind;
use ompd_runtime::family::families;

use crate::Inspection;

/// Files are counted up to this number.
const MOST: usize = 100_000;

/// Files in `/dev/shm` by which processes of one family of runtimes register, and which have outlived them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftovers {
    /// How their names begin; the id of the process follows.
    pub prefix: &'static str,
    /// How many there are.
    pub count: usize,
}

/// The files that the families of the runtimes of a live process have left, as that process sees them. Looked for when it is
/// asked, for nothing else needs it.
pub fn leftovers(inspection: &Inspection) -> Vec<Leftovers> {
    let Some(pid) = inspection.process.pid.filter(|_| inspection.kind == TargetKind::Live) else { return Vec::new() };
    let root = format!("/proc/{pid}/root");
    let present = |name: &str| inspection.runtimes.iter().any(|runtime| runtime.instance.family == name);
    let prefixes = families().filter(|about| present(about.name)).filter_map(|about| about.registration);
    let of = |prefix| Leftovers { prefix, count: count(Path::new(&root), prefix) };
    prefixes.map(of).filter(|found| found.count > 0).collect()
}

fn count(root: &Path, prefix: &str) -> usize {
    let Ok(entries) = fs::read_dir(root.join("dev/shm")) else { return 0 };
    let is_left = |name: &str| {
        let pid = name.strip_prefix(prefix).and_then(|rest| rest.split('_').next()).unwrap_or_default();
        // Without procfs nobody can tell who lives.
        !pid.is_empty() && !root.join("proc").join(pid).exists() && root.join("proc/self").exists()
    };
    let names = entries.flatten().take(MOST).filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| is_left(name)).count()
}
