//! Processes as procfs lists them: who is whose child, what each is called, and how much processor time it has used.
//!
//! Nothing here stops a process or reads its memory.

use std::collections::{HashMap, HashSet};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::{fs, io};

use procfs::process::Stat;

use super::procdir::ProcDir;
use crate::Environment;

/// More processes are not followed from child to child.
const MOST: usize = 1 << 16;

/// A process at the moment when it was listed.
#[derive(Debug, Clone)]
pub struct ProcessEntry {
    /// Its id.
    pub pid: i32,
    /// The process that started it, or that took it over when its own parent ended.
    pub parent: i32,
    /// Its name: `comm` of its first thread, at most 15 bytes (text of the process).
    pub name: String,
    /// State letter of its first thread (proc_pid_stat(5)).
    pub state: char,
    /// When it began, in ticks since boot: tells it from a later process with the same id.
    pub started: u64,
    /// Processor time it has used, in ticks (`sysconf(_SC_CLK_TCK)`).
    pub ticks: u64,
    /// How many threads it has.
    pub threads: i64,
    dir: ProcDir,
}

impl ProcessEntry {
    fn of(dir: ProcDir) -> io::Result<ProcessEntry> {
        let Stat { pid, ppid, comm, state, starttime, utime, stime, num_threads, .. } = dir.stat()?;
        Ok(ProcessEntry {
            pid,
            parent: ppid,
            name: comm,
            state,
            started: starttime,
            ticks: utime.saturating_add(stime),
            threads: num_threads,
            dir,
        })
    }

    /// The process `pid`; `None` if there is none.
    pub fn find(proc_root: &Path, pid: i32) -> Option<ProcessEntry> {
        ProcessEntry::of(ProcDir::new(proc_root, pid)).ok()
    }

    /// True if it has ended and waits for its parent to collect it.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x')
    }

    /// Path of its program, as it sees it (text of the process); `None` for kernel threads, and where it may not be read.
    pub fn exe(&self) -> Option<String> {
        self.dir.exe()
    }

    /// The effective user it runs as.
    pub fn user(&self) -> Option<u32> {
        fs::metadata(self.dir.path("")).ok().map(|meta| meta.uid())
    }

    /// The environment it was started with.
    pub fn environment(&self) -> Environment {
        self.dir.environment()
    }

    /// The arguments it was started with, that of its own name included; none where they may not be read.
    pub fn arguments(&self) -> Vec<String> {
        self.dir.arguments()
    }

    /// True if one of the files that it has mapped has such a path. False where that may not be read.
    pub fn maps(&self, is_such: impl Fn(&str) -> bool) -> bool {
        let maps = self.dir.maps().unwrap_or_default();
        maps.iter().any(|entry| entry.mapping.path.starts_with('/') && is_such(&entry.mapping.path))
    }
}

/// Every process, in the order of ids.
///
/// # Errors
/// There is no procfs.
pub fn processes(proc_root: &Path) -> io::Result<Vec<ProcessEntry>> {
    let mut pids = Vec::new();
    for entry in fs::read_dir(proc_root)? {
        pids.extend(entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    pids.sort_unstable();
    // Those that have ended meanwhile are left out.
    Ok(pids.into_iter().filter_map(|pid| ProcessEntry::find(proc_root, pid)).collect())
}

/// The processes that a process has started and that live, in the order of ids.
pub fn children(proc_root: &Path, pid: i32) -> Vec<ProcessEntry> {
    let dir = ProcDir::new(proc_root, pid);
    let mut children = match listed_children(&dir) {
        Some(pids) => pids.into_iter().filter_map(|pid| ProcessEntry::find(proc_root, pid)).collect(),
        None => processes(proc_root).unwrap_or_default(),
    };
    children.retain(|child: &ProcessEntry| child.parent == pid && !child.has_ended());
    children.sort_by_key(|child| child.pid);
    children
}

/// The children of a process, their children, and so on: parents before children. The process itself is left out.
pub fn descendants(proc_root: &Path, pid: i32) -> Vec<ProcessEntry> {
    let mut found: Vec<ProcessEntry> = Vec::new();
    let mut known = HashSet::from([pid]);
    let mut next = 0;
    // Without lists of children all processes are read, once.
    let by_parent = listed_children(&ProcDir::new(proc_root, pid)).is_none().then(|| by_parent(proc_root));
    let mut parent = pid;
    loop {
        let of_parent = match &by_parent {
            Some(by_parent) => by_parent.get(&parent).cloned().unwrap_or_default(),
            None => children(proc_root, parent),
        };
        found.extend(of_parent.into_iter().filter(|child| known.insert(child.pid)));
        let Some(entry) = found.get(next).filter(|_| found.len() < MOST) else { return found };
        parent = entry.pid;
        next += 1;
    }
}

fn by_parent(proc_root: &Path) -> HashMap<i32, Vec<ProcessEntry>> {
    let mut children: HashMap<i32, Vec<ProcessEntry>> = HashMap::new();
    let living = processes(proc_root).unwrap_or_default().into_iter().filter(|entry| !entry.has_ended());
    living.for_each(|entry| children.entry(entry.parent).or_default().push(entry));
    children
}

/// The children that the kernel lists for each thread (proc_pid_task_children(5)); `None` if it was built without that.
fn listed_children(dir: &ProcDir) -> Option<Vec<i32>> {
    let mut children = Vec::new();
    for tid in dir.tasks().unwrap_or_default() {
        match fs::read_to_string(dir.path(&format!("task/{tid}/children"))) {
            Ok(text) => children.extend(text.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok())),
            // The thread may be gone; the first one has the file as long as the process lives.
            Err(_) if tid == dir.pid => return None,
            Err(_) => {}
        }
    }
    Some(children)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_child_and_its_child_are_found_and_no_other() {
        let root = Path::new("/proc");
        // The shell says the id of its child, and both end with its standard input.
        let mut shell = Command::new("sh")
            .args(["-c", "exec 3<&0; cat <&3 & echo $!; wait"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut line = String::new();
        io::BufRead::read_line(&mut io::BufReader::new(shell.stdout.take().expect("a pipe")), &mut line)
            .expect("the id of the child");
        let grandchild: i32 = line.trim().parse().expect("a number");
        let child = i32::try_from(shell.id()).expect("a process id");
        let own = i32::try_from(std::process::id()).expect("a process id");
        let found: Vec<(i32, i32)> = descendants(root, own).iter().map(|entry| (entry.pid, entry.parent)).collect();
        let of_shell: Vec<i32> = children(root, child).iter().map(|entry| entry.pid).collect();
        drop(shell.stdin.take());
        shell.wait().expect("the end of the shell");
        // Other tests of this process may have children too.
        let place = |pid| found.iter().position(|(found, _)| *found == pid).expect("it is listed");
        assert!(place(child) < place(grandchild), "{found:?}");
        assert_eq!((found[place(child)].1, found[place(grandchild)].1), (own, child));
        assert_eq!(of_shell, [grandchild]);
        assert!(children(root, child).is_empty() && ProcessEntry::find(root, grandchild).is_none_or(|e| e.has_ended()));
    }

    /// What a kernel with CONFIG_PROC_CHILDREN shows, made by hand: not every kernel has it.
    #[test]
    fn lists_of_children_are_read() {
        let root = tempfile::tempdir().expect("a directory");
        let dir = root.path().join("7");
        for (tid, text) in [(7, "11 12 "), (8, ""), (9, "13")] {
            let task = dir.join(format!("task/{tid}"));
            fs::create_dir_all(&task).expect("a directory");
            fs::write(task.join("children"), text).expect("a file");
        }
        let mut listed = listed_children(&ProcDir::new(root.path(), 7)).expect("lists");
        listed.sort_unstable();
        assert_eq!(listed, [11, 12, 13]);
        fs::remove_file(dir.join("task/7/children")).expect("it is gone");
        assert_eq!(listed_children(&ProcDir::new(root.path(), 7)), None);
    }
}
