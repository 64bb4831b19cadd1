//! What procfs shows of the things that threads of a running process wait for: descriptors, children, other processes.
//!
//! Nothing here is read in a stop. What is read may be newer than what the stop has shown.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufReader, Read as _};
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use nix::dir::{Dir, Entry};
use nix::errno::Errno;
use nix::fcntl::{OFlag, readlinkat};
use nix::libc;
use nix::sys::stat::Mode;
use nix::time::{ClockId, clock_gettime};
use procfs::net::{TcpNetEntries, TcpNetEntry, TcpState, UnixNetEntries};
use procfs::{FromBufRead, FromBufReadSI, current_system_info};

use super::procdir::{ProcDir, in_parts};
use super::unix_socket;

/// Processes whose descriptors are looked at for the other end of a pipe or connection.
const MOST_PROCESSES: usize = 4096;
/// So many of them are worth a thread of ours.
const WORTH_A_THREAD: usize = 32;
/// Times that the processes are listed for it, as long as some end meanwhile.
const MOST_LISTINGS: u32 = 8;
/// Descriptors that are looked at for it, of all processes together.
const MOST_LINKS: usize = 1 << 16;
/// Children that are listed.
const MOST_CHILDREN: usize = 1024;
/// Descriptors that a set of `epoll` lists.
const MOST_WATCHED: usize = 1024;
/// Bytes of a table of sockets that are read.
const MOST_BYTES: u64 = 16 << 20;

/// A running process, for questions about what its threads wait for.
#[derive(Debug, Clone)]
pub struct Surroundings {
    process: ProcDir,
    /// The same where its descriptors and namespaces are: see [`ProcDir::by_living_thread`].
    living: OnceLock<ProcDir>,
}

/// An open descriptor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Descriptor {
    /// Its number.
    pub number: i32,
    /// What it refers to.
    pub kind: DescriptorKind,
    /// What its link in `/proc/PID/fd` says (text of the target).
    pub link: String,
}

/// How far the descriptors of one process were looked at.
enum Scan {
    /// Of which it has some open: their links, and how it has them.
    Complete(Vec<(String, Holder)>),
    /// Not all could be looked at, or there were too many.
    Partial(Vec<(String, Holder)>),
    Ended,
}

/// What a descriptor refers to. All texts are the target's.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DescriptorKind {
    /// A pipe without a name.
    Pipe,
    /// A pipe with a name (fifo(7)); the link is its path.
    Fifo,
    /// A socket.
    Socket,
    /// A terminal; the link is its path.
    Terminal,
    /// Something else with a path, which is the link.
    File,
    /// An event counter (eventfd(2)) and its count.
    Event(Option<u64>),
    /// A set of `epoll`, and the descriptors that it watches.
    Epoll(Vec<i32>),
    /// A timer (timerfd_create(2)).
    Timer,
    /// Signals (signalfd(2)).
    Signals,
    /// Something else.
    Other,
}

/// A descriptor that some process has open.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Holder {
    /// The process.
    pub pid: i32,
    /// It is the process under inspection.
    pub own: bool,
    /// Its name (its own text).
    pub name: Option<String>,
    /// The descriptor.
    pub descriptor: i32,
    /// It may be read from.
    pub reads: bool,
    /// It may be written to.
    pub writes: bool,
}

/// Who has files open.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holders {
    /// By what the links say.
    pub by_link: BTreeMap<String, Vec<Holder>>,
    /// False if descriptors of some processes could not be read, or there were too many.
    pub complete: bool,
}

/// One socket.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Socket {
    /// TCP.
    Tcp {
        /// Own address.
        local: SocketAddr,
        /// That of the peer; of one that listens no address.
        peer: Option<SocketAddr>,
        /// The link of the peer's descriptor, if the peer is in the same network namespace.
        peer_link: Option<String>,
    },
    /// A socket of the machine (unix(7)).
    Unix {
        /// Its path, if it has one (text of the target).
        path: Option<String>,
        /// The link of the peer's descriptor, if it has one and this process is in the same network namespace.
        peer_link: Option<String>,
    },
}

/// A process that another has made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Child {
    /// Its id.
    pub pid: i32,
    /// Its name (its own text).
    pub name: Option<String>,
    /// State letter of `/proc/PID/stat`.
    pub state: Option<char>,
}

/// What the kernel keeps a thread for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadState {
    /// State letter of `/proc/PID/task/TID/stat`.
    pub letter: char,
    /// In state D, the function of the kernel it sleeps in, where the kernel says so.
    pub channel: Option<String>,
}

impl Surroundings {
    pub(super) fn of(process: &ProcDir) -> Surroundings {
        Surroundings { process: process.clone(), living: OnceLock::new() }
    }

    fn living(&self) -> &ProcDir {
        self.living.get_or_init(|| self.process.by_living_thread())
    }

    /// What a descriptor is. `None` if it is closed, or not readable. A thread in state D may wait for a file on a
    /// server that does not answer. If `answers` returns false, the file itself is not examined.
    pub fn descriptor(&self, number: i32, answers: &dyn Fn() -> bool) -> Option<Descriptor> {
        let path = self.living().path(&format!("fd/{number}"));
        let link = fs::read_link(&path).ok()?.to_string_lossy().into_owned();
        let anonymous = link.strip_prefix("anon_inode:").map(|name| name.trim_matches(['[', ']']));
        let kind = match anonymous {
            Some("eventfd") => {
                let count = self.details(number).and_then(|text| field(&text, "eventfd-count:"));
                DescriptorKind::Event(count.and_then(|count| u64::from_str_radix(&count, 16).ok()))
            }
            Some("eventpoll") => DescriptorKind::Epoll(watched(&self.details(number).unwrap_or_default())),
            Some("timerfd") => DescriptorKind::Timer,
            Some("signalfd") => DescriptorKind::Signals,
            Some(_) => DescriptorKind::Other,
            None if link.starts_with("pipe:[") => DescriptorKind::Pipe,
            None if link.starts_with("socket:[") => DescriptorKind::Socket,
            None if is_terminal(&link) => DescriptorKind::Terminal,
            None if link.starts_with('/') && answers() && is_fifo(&path) => DescriptorKind::Fifo,
            None if link.starts_with('/') => DescriptorKind::File,
            None => DescriptorKind::Other,
        };
        Some(Descriptor { number, kind, link })
    }

    /// True if a descriptor is a timer that will expire, or a set of `epoll` that watches one (proc_pid_fdinfo(5)).
    pub fn has_limit(&self, number: i32) -> bool {
        let will_expire = |number: i32| {
            let left = self.details(number).and_then(|text| field(&text, "it_value:"));
            left.is_some_and(|left| left.bytes().any(|byte| (b'1'..=b'9').contains(&byte)))
        };
        match self.descriptor(number, &|| false).map(|descriptor| descriptor.kind) {
            Some(DescriptorKind::Timer) => will_expire(number),
            Some(DescriptorKind::Epoll(watched)) => watched.into_iter().any(will_expire),
            _ => false,
        }
    }

    /// `fdinfo` of a descriptor.
    fn details(&self, number: i32) -> Option<String> {
        self.living().text_of(&format!("fdinfo/{number}"))
    }

    /// The processes of the same user, this one included, that have files open with one of these links. For root, of all users.
    ///
    /// Processes begin and end meanwhile. One that ends may have left its descriptors to a child that was not listed
    /// yet. So the processes are listed again until none ends, and new ones are examined.
    pub fn holders(&self, links: &BTreeSet<String>) -> Holders {
        let mut found = Holders { complete: true, ..Holders::default() };
        let Some(user) = fs::metadata(self.process.path("")).ok().map(|of| of.uid()) else { return Holders::default() };
        // This program has descriptors. Before Linux 6.2 the size is 0 of every process (proc_readfd_count in fs/proc/fd.c).
        let are_counted = fs::metadata(self.process.root.join("self/fd")).is_ok_and(|of| of.len() > 0);
        let left = AtomicUsize::new(MOST_LINKS);
        // This program may have inherited descriptors of the program that started it.
        let this =
            fs::read_link(self.process.root.join("self")).ok().and_then(|link| link.to_str()?.parse::<i32>().ok());
        let mut seen: BTreeSet<i32> = this.into_iter().collect();
        let mut one_ended = true;
        for _ in 0..MOST_LISTINGS {
            if !one_ended {
                break;
            }
            one_ended = false;
            let Ok(entries) = fs::read_dir(&self.process.root) else { return Holders::default() };
            let listed = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
            let mut new: Vec<i32> = listed.filter(|pid| !seen.contains(pid)).collect();
            let most = MOST_PROCESSES.saturating_sub(seen.len());
            found.complete &= new.len() <= most;
            new.truncate(most);
            let scan_part =
                |part: &[i32]| Ok(part.iter().map(|pid| self.held_by(*pid, user, are_counted, links, &left)).collect());
            let Ok(scans) = in_parts(&new, WORTH_A_THREAD, scan_part) else { return Holders::default() };
            for (pid, scan) in new.into_iter().zip(scans) {
                found.complete &= !matches!(scan, Scan::Partial(_));
                match scan {
                    Scan::Complete(held) | Scan::Partial(held) => {
                        seen.insert(pid);
                        for (link, holder) in held {
                            found.by_link.entry(link).or_default().push(holder);
                        }
                    }
                    Scan::Ended => one_ended = true,
                }
            }
        }
        found.complete &= !one_ended;
        found.by_link.values_mut().for_each(|holders| holders.sort());
        found
    }

    /// What one process holds. Of all processes `left` descriptors are looked at. `are_counted`: the kernel shows how many it has.
    fn held_by(&self, pid: i32, user: u32, are_counted: bool, links: &BTreeSet<String>, left: &AtomicUsize) -> Scan {
        if left.load(Ordering::Relaxed) == 0 {
            return Scan::Partial(Vec::new());
        }
        let other = ProcDir::new(&self.process.root, pid);
        let failed = || if other.path("").exists() { Scan::Partial(Vec::new()) } else { Scan::Ended };
        let own = pid == self.process.pid;
        match fs::metadata(other.path("")) {
            Ok(of) if of.uid() == user => {}
            // It changed its user a moment ago.
            Ok(_) if own => return Scan::Complete(Vec::new()),
            // Only root may look at those of all users.
            Ok(_) if nix::unistd::geteuid().is_root() => {}
            Ok(_) => return Scan::Partial(Vec::new()),
            Err(_) => return failed(),
        }
        // Kernel threads have none, and large machines have thousands of those. Nor has a first thread that has ended: a folder of
        // threads has two links and one for each (proc_task_getattr in fs/proc/base.c).
        let has_none = are_counted && fs::metadata(other.path("fd")).is_ok_and(|of| of.len() == 0);
        let has_others = || fs::metadata(other.path("task")).is_ok_and(|of| of.nlink() > 3);
        let files = match (has_none || !are_counted) && has_others() {
            true => other.by_living_thread(),
            false if has_none => return if other.path("").exists() { Scan::Complete(Vec::new()) } else { Scan::Ended },
            false => other.clone(),
        };
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let Ok(mut directory) = Dir::open(&files.path("fd"), flags, Mode::empty()) else { return failed() };
        // The first error ends it: the next reads would fail in the same way, without an end.
        let Ok(listed) = directory.iter().take(MOST_LINKS).collect::<Result<Vec<Entry>, _>>() else { return failed() };
        let mut held = Vec::new();
        for number in listed.iter().filter_map(number) {
            let is_allowed =
                left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
            if !is_allowed {
                return Scan::Partial(held);
            }
            // From this directory on: from the root of the file system each link would take twice as long.
            let Ok(link) = readlinkat(&directory, number.to_string().as_str()) else { continue };
            let Some(link) = link.to_str().filter(|link| links.contains(*link)) else { continue };
            let (reads, writes) = files.text_of(&format!("fdinfo/{number}")).map_or((true, true), |text| access(&text));
            let name = other.task_name(pid);
            let holder = Holder { pid, own, name, descriptor: number, reads, writes };
            held.push((link.to_owned(), holder));
        }
        // A process that ends gives its descriptors up one by one, some before they are looked at.
        if !other.path("").exists() {
            return Scan::Ended;
        }
        Scan::Complete(held)
    }

    /// What sockets are, by the links of their descriptors; those of which nothing is known are left out.
    pub fn sockets(&self, links: &BTreeSet<String>) -> BTreeMap<String, Socket> {
        let link = |inode: u64| format!("socket:[{inode}]");
        let mut found = BTreeMap::new();
        for table in ["net/tcp", "net/tcp6"] {
            let entries =
                self.table(table).and_then(|file| TcpNetEntries::from_buf_read(file, current_system_info()).ok());
            let entries = entries.map(|entries| entries.0).unwrap_or_default();
            let peers: BTreeMap<(SocketAddr, SocketAddr), u64> =
                entries.iter().map(|of| ((of.local_address, of.remote_address), of.inode)).collect();
            for of in entries.iter().filter(|of| of.inode != 0 && links.contains(&link(of.inode))) {
                let listens = of.state == TcpState::Listen;
                let peer = peers.get(&(of.remote_address, of.local_address)).filter(|inode| !listens && **inode != 0);
                let TcpNetEntry { local_address: local, remote_address: remote, .. } = *of;
                let peer_link = peer.map(|inode| link(*inode));
                let socket = Socket::Tcp { local, peer: (!listens).then_some(remote), peer_link };
                found.insert(link(of.inode), socket);
            }
        }
        let namespace = |process: &Path| fs::read_link(process.join("ns/net")).ok();
        let is_near = namespace(&self.living().path("")) == namespace(&self.process.root.join("self"));
        let entries = self.table("net/unix").and_then(|file| UnixNetEntries::from_buf_read(file).ok());
        for of in entries.map(|entries| entries.0).unwrap_or_default() {
            if links.contains(&link(of.inode)) {
                let path = of.path.map(|path| path.to_string_lossy().into_owned());
                let peer = u32::try_from(of.inode).ok().filter(|_| is_near).and_then(unix_socket::peer);
                let peer_link = peer.map(|inode| link(inode.into()));
                found.insert(link(of.inode), Socket::Unix { path, peer_link });
            }
        }
        found
    }

    fn table(&self, name: &str) -> Option<BufReader<std::io::Take<fs::File>>> {
        let file = fs::File::open(self.living().path(name)).ok()?;
        Some(BufReader::new(file.take(MOST_BYTES)))
    }

    /// A process by its id, if it is a child of this one.
    pub fn child(&self, pid: i32) -> Option<Child> {
        let stat = ProcDir::new(&self.process.root, pid).stat().ok()?;
        (stat.ppid == self.process.pid).then_some(Child { pid, name: Some(stat.comm), state: Some(stat.state) })
    }

    /// All children; `None` if they cannot be listed.
    pub fn children(&self) -> Option<Vec<Child>> {
        let mut pids = BTreeSet::new();
        for tid in self.process.tasks().ok()? {
            let text = match self.process.text_of(&format!("task/{tid}/children")) {
                Some(text) => text,
                // The thread has ended, or the kernel has no such list.
                None if self.process.task_name(tid).is_none() => continue,
                None => return None,
            };
            pids.extend(text.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok()).take(MOST_CHILDREN));
        }
        Some(pids.into_iter().take(MOST_CHILDREN).filter_map(|pid| self.child(pid)).collect())
    }

    /// Other processes that have all of its memory (`clone` with `CLONE_VM`). Looked at are processes of the same user that
    /// execute the same file. If the kernel does not compare them (kcmp(2)), those count that use as much memory.
    pub fn sharers(&self) -> Vec<Child> {
        let file = |of: &ProcDir, path: &str| fs::metadata(of.path(path)).ok();
        let user = |of: &ProcDir| file(of, "").map(|of| of.uid());
        let program = |of: &ProcDir, path: &str| file(of, path).map(|of| (of.dev(), of.ino()));
        // The first thread may have ended, and has no memory then.
        let tasks = self.process.tasks().unwrap_or_default().into_iter();
        let mut own = tasks.filter_map(|tid| Some((tid, program(&self.process, &format!("task/{tid}/exe"))?)));
        let (Some((tid, executed)), Some(by)) = (own.next(), user(&self.process)) else { return Vec::new() };
        let Ok(entries) = fs::read_dir(&self.process.root) else { return Vec::new() };
        let pids = entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|pid| *pid != self.process.pid);
        let others = pids.map(|pid| ProcDir::new(&self.process.root, pid));
        let alike = others
            .filter(|other| user(other) == Some(by) && program(&other.by_living_thread(), "exe") == Some(executed));
        let memory = |of: &ProcDir| of.text_of("statm");
        let sharers = alike.take(MOST_PROCESSES).filter(|other| {
            let use_as_much = || memory(other).is_some_and(|used| memory(&self.process) == Some(used));
            have_same_memory(tid, other.pid).unwrap_or_else(use_as_much)
        });
        let shown = |of: ProcDir| {
            let stat = of.stat().ok()?;
            Some(Child { pid: of.pid, name: Some(stat.comm), state: Some(stat.state) })
        };
        sharers.filter_map(shown).collect()
    }

    /// Whether it has a descriptor whose link in `/proc/PID/fd` says this.
    pub fn has_descriptor(&self, link: &str) -> bool {
        let entries = fs::read_dir(self.living().path("fd")).into_iter().flatten().flatten();
        entries.take(MOST_LINKS).any(|entry| fs::read_link(entry.path()).is_ok_and(|of| of.as_os_str() == link))
    }

    /// The state of a thread; `None` if it has ended.
    pub fn thread(&self, tid: i32) -> Option<ThreadState> {
        let letter = self.process.task_stat(tid).ok()?.state;
        let channel = (letter == 'D').then(|| self.process.text_of(&format!("task/{tid}/wchan"))).flatten();
        let channel = channel.filter(|name| !name.is_empty() && name != "0");
        Some(ThreadState { letter, channel })
    }

    /// What a clock of the process shows: `CLOCK_REALTIME`, `CLOCK_MONOTONIC` and `CLOCK_BOOTTIME` by their numbers. `None` if it is
    /// another clock, or another time namespace's (time_namespaces(7)).
    pub fn clock(&self, number: i32) -> Option<Duration> {
        let namespace = |process: &Path| fs::read_link(process.join("ns/time")).ok();
        let clock = match number {
            0 => ClockId::CLOCK_REALTIME,
            1 => ClockId::CLOCK_MONOTONIC,
            7 => ClockId::CLOCK_BOOTTIME,
            _ => return None,
        };
        let same = clock == ClockId::CLOCK_REALTIME
            || namespace(&self.living().path("")) == namespace(&self.process.root.join("self"));
        same.then(|| clock_gettime(clock).ok().map(Duration::from)).flatten()
    }
}

/// Whether two processes have the same memory; `None` if the kernel does not say.
fn have_same_memory(one: i32, other: i32) -> Option<bool> {
    // linux/kcmp.h
    const KCMP_VM: i32 = 1;
    // SAFETY: the kernel compares what belongs to two process ids, and is given no address (kcmp(2)).
    let order = unsafe { libc::syscall(libc::SYS_kcmp, one, other, KCMP_VM, 0usize, 0usize) };
    Errno::result(order).ok().map(|order| order == 0)
}

fn number(entry: &Entry) -> Option<i32> {
    entry.file_name().to_str().ok()?.parse().ok()
}

/// The value of a line of `fdinfo`.
fn field(text: &str, key: &str) -> Option<String> {
    Some(text.lines().find_map(|line| line.strip_prefix(key))?.trim().to_owned())
}

/// Whether a descriptor may be read from and written to (open(2): O_WRONLY, O_RDWR; O_ACCMODE).
fn access(details: &str) -> (bool, bool) {
    let flags = field(details, "flags:").and_then(|flags| u32::from_str_radix(&flags, 8).ok());
    match flags.map(|flags| flags & 3) {
        Some(0) => (true, false),
        Some(1) => (false, true),
        _ => (true, true),
    }
}

/// The descriptors that a set of `epoll` watches: lines of `tfd: NUMBER events: …`.
fn watched(details: &str) -> Vec<i32> {
    let lines = details.lines().filter_map(|line| line.strip_prefix("tfd:"));
    lines.filter_map(|line| line.split_whitespace().next()?.parse().ok()).take(MOST_WATCHED).collect()
}

fn is_terminal(link: &str) -> bool {
    let numbered = |prefix: &str| {
        let rest = link.strip_prefix(prefix);
        rest.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_alphanumeric()))
    };
    matches!(link, "/dev/tty" | "/dev/console") || numbered("/dev/pts/") || numbered("/dev/tty")
}

fn is_fifo(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|of| of.file_type().is_fifo())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_fdinfo() {
        let pipe = "pos:\t0\nflags:\t0100001\nmnt_id:\t14\nino:\t8421\n";
        assert_eq!(
            (access(pipe), access("flags:\t02\n"), access("flags:\t0100000\n")),
            ((false, true), (true, true), (true, false))
        );
        assert_eq!(access(""), (true, true));
        let set = "pos:\t0\nflags:\t02\ntfd:        4 events:       19 data:        0  pos:0 ino:8 sdev:e\ntfd: x\ntfd:        7 events: 1\n";
        assert_eq!(watched(set), [4, 7]);
        assert_eq!(field("eventfd-count:               1f\n", "eventfd-count:"), Some("1f".to_owned()));
    }

    /// Ids that no process of the machine has, so that the kernel does not compare them.
    const OWN: i32 = 2_000_000_000;

    /// A process of a procfs that is made up, with the program that it executes and what `statm` says.
    fn process(root: &Path, pid: i32, program: &str, used: &str) -> ProcDir {
        let folder = root.join(pid.to_string());
        let task = folder.join("task").join(pid.to_string());
        fs::create_dir_all(folder.join("fd")).expect("its folder");
        fs::create_dir_all(&task).expect("its thread");
        for place in [&folder, &task] {
            std::os::unix::fs::symlink(root.join(program), place.join("exe")).expect("its program");
        }
        fs::write(folder.join("statm"), used).expect("its memory");
        let zeros = " 0".repeat(49);
        fs::write(folder.join("stat"), format!("{pid} (name of {pid}) S{zeros}\n")).expect("its state");
        ProcDir::new(root, pid)
    }

    #[test]
    fn processes_that_may_have_the_same_memory() {
        let root = tempfile::tempdir().expect("a folder");
        let root = root.path();
        for program in ["program", "other"] {
            fs::write(root.join(program), program).expect("a program");
        }
        let process = |pid, program, used| process(root, pid, program, used);
        let own = Surroundings::of(&process(OWN, "program", "100 7 5 1 0 20 0\n"));
        assert_eq!(own.sharers(), []);
        process(OWN + 1, "program", "100 7 5 1 0 21 0\n");
        process(OWN + 2, "other", "100 7 5 1 0 20 0\n");
        assert_eq!(own.sharers(), []);
        process(OWN + 3, "program", "100 7 5 1 0 20 0\n");
        let found = Child { pid: OWN + 3, name: Some(format!("name of {}", OWN + 3)), state: Some('S') };
        assert_eq!(own.sharers(), [found]);
        // Where kcmp(2) is allowed.
        let this = std::process::id().cast_signed();
        assert_ne!(have_same_memory(this, this), Some(false));
        assert_ne!(have_same_memory(this, nix::unistd::getppid().as_raw()), Some(true));
    }

    #[test]
    fn threads_are_known_by_their_ids_in_the_own_namespace() {
        let root = tempfile::tempdir().expect("a folder");
        let own = process(root.path(), OWN, "program", "");
        let say = |tid: i32, ids: &str| {
            let folder = own.path(&format!("task/{tid}"));
            fs::create_dir_all(&folder).expect("a thread");
            fs::write(folder.join("status"), format!("Name:\tx\nNSpid:\t{ids}\n")).expect("its ids");
        };
        fs::write(own.path("status"), format!("NSpid:\t{OWN}\n")).expect("its ids");
        say(OWN, &OWN.to_string());
        assert_eq!(own.inner_ids(), None, "it is in the same one");
        fs::write(own.path("status"), format!("NSpid:\t{OWN}\t40\t1\n")).expect("its ids");
        say(OWN, &format!("{OWN}\t40\t1"));
        say(OWN + 1, &format!("{}\t41\t2", OWN + 1));
        assert_eq!(own.inner_ids(), Some(BTreeMap::from([(1, OWN), (2, OWN + 1)])));
        let info = crate::ProcessInfo { inner_ids: own.inner_ids(), ..crate::ProcessInfo::default() };
        assert_eq!([1, 2, OWN].map(|id| info.thread_of_id(id)), [Some(OWN), Some(OWN + 1), None]);
        assert_eq!(crate::ProcessInfo::default().thread_of_id(7), Some(7));
    }

    #[test]
    fn descriptors_are_known_by_their_links() {
        let root = tempfile::tempdir().expect("a folder");
        let own = Surroundings::of(&process(root.path(), OWN, "program", ""));
        assert!(!own.has_descriptor("anon_inode:[io_uring]"));
        for (number, link) in [(0, "/dev/null"), (7, "anon_inode:[io_uring]")] {
            std::os::unix::fs::symlink(link, own.process.path(&format!("fd/{number}"))).expect("a descriptor");
        }
        assert!(own.has_descriptor("anon_inode:[io_uring]") && own.has_descriptor("/dev/null"));
        assert!(!own.has_descriptor("anon_inode:[eventpoll]"));
    }

    /// The first thread has ended, and its descriptors are gone.
    #[test]
    fn descriptors_are_those_of_a_thread_that_lives() {
        let root = tempfile::tempdir().expect("a folder");
        let own = process(root.path(), OWN, "program", "");
        let state = |folder: &Path, letter| {
            let zeros = " 0".repeat(49);
            fs::write(folder.join("stat"), format!("1 (name) {letter}{zeros}\n")).expect("its state");
        };
        for (tid, letter) in [(OWN, 'Z'), (OWN + 1, 'X'), (OWN + 2, 'S')] {
            let thread = own.path(&format!("task/{tid}"));
            fs::create_dir_all(thread.join("fd")).expect("a thread");
            state(&thread, letter);
        }
        let of_living = own.path(&format!("task/{}/fd/5", OWN + 2));
        std::os::unix::fs::symlink("pipe:[9]", of_living).expect("a descriptor");
        let found = |own: &ProcDir| Surroundings::of(own).descriptor(5, &|| true).map(|found| found.link);
        assert_eq!(found(&own), None);
        state(&own.path(""), 'Z');
        assert_eq!(found(&own), Some("pipe:[9]".to_owned()));
    }

    #[test]
    fn timers_have_a_limit_if_they_will_expire() {
        let root = tempfile::tempdir().expect("a folder");
        let own = Surroundings::of(&process(root.path(), OWN, "program", ""));
        fs::create_dir_all(own.process.path("fdinfo")).expect("a folder");
        let open = |number: i32, link: &str, details: &str| {
            let path = own.process.path(&format!("fd/{number}"));
            std::os::unix::fs::symlink(link, path).expect("a descriptor");
            fs::write(own.process.path(&format!("fdinfo/{number}")), details).expect("its details");
            own.has_limit(number)
        };
        let timer = |left: &str| format!("pos:\t0\nclockid: 1\nticks: 3\nit_value: {left}\nit_interval: (2, 0)\n");
        assert!(
            open(3, "anon_inode:[timerfd]", &timer("(1, 500)")) && open(4, "anon_inode:[timerfd]", &timer("(0, 7)"))
        );
        assert!(!open(5, "anon_inode:[timerfd]", &timer("(0, 0)")));
        assert!(!open(6, "pipe:[44]", &timer("(1, 0)")));
        assert!(open(7, "anon_inode:[eventpoll]", "tfd:        5 events: 19\ntfd:        3 events: 19\n"));
        assert!(!open(8, "anon_inode:[eventpoll]", "tfd:        5 events: 19\n"));
        assert!(!own.has_limit(9), "it is not open");
    }

    #[test]
    fn terminals_are_known_by_their_paths() {
        assert!(["/dev/pts/12", "/dev/tty", "/dev/ttyS0", "/dev/console"].iter().all(|link| is_terminal(link)));
        assert!(["/dev/pts/", "/dev/null", "/dev/tty/../x", "/tmp/tty1"].iter().all(|link| !is_terminal(link)));
    }
}
