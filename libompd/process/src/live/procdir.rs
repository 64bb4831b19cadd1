//! What procfs says about a process (proc(5)), and why the kernel refuses access to it.
//!
//! The target chooses names in procfs. They need not be UTF-8, but the parsers want text. So everything is read as
//! bytes and converted with replacement characters first.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read as _};
use std::num::NonZero;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::thread::Builder;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use procfs::process::{MMPermissions, MemoryMaps, MountInfo, MountInfos, Schedstat, Stat, Status};
use procfs::{FromBufRead, FromRead, ProcessCGroup, ProcessCGroups};

use crate::environment::{self, Environment};
use crate::error::{DenialCause, OpenError};
use crate::image::Mapping;

/// Bit of CAP_SYS_PTRACE in a capability set (linux/capability.h).
const CAP_SYS_PTRACE: u32 = 19;

/// More than files of one thread have that are read by thousands.
const SMALL: usize = 16 << 10;

/// `/proc/PID`.
#[derive(Debug, Clone)]
pub(super) struct ProcDir {
    pub root: PathBuf,
    pub pid: i32,
    dir: PathBuf,
}

/// A stretch of mapped addresses.
#[derive(Debug, Clone)]
pub(super) struct MapEntry {
    pub mapping: Mapping,
    /// Not even the process itself may read it.
    pub unreadable: bool,
    /// Other processes may have it as well, and see what this one writes.
    pub shared: bool,
}

/// What `ask_part` finds out of threads or processes, in order. Of many several parts are asked at once: so many of them are `worth` a
/// thread of ours.
pub(super) fn in_parts<T: Send>(
    ids: &[i32],
    worth: usize,
    ask_part: impl Fn(&[i32]) -> io::Result<Vec<T>> + Sync,
) -> io::Result<Vec<T>> {
    /// Threads that are started at most.
    const MOST: usize = 8;
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    let parts = ids.len().div_ceil(worth).clamp(1, processors.min(MOST));
    let mut parts = ids.chunks(ids.len().div_ceil(parts).max(1));
    let first = parts.next().unwrap_or_default();
    let ask_part = &ask_part;
    std::thread::scope(|scope| {
        let others: Vec<_> =
            parts.map(|part| (part, Builder::new().spawn_scoped(scope, move || ask_part(part)))).collect();
        let mut all: Vec<T> = ask_part(first)?;
        for (part, other) in others {
            // Where none can be started, or it has panicked, this one does its work.
            let found = other.ok().and_then(|other| other.join().ok());
            all.extend(found.unwrap_or_else(|| ask_part(part))?);
        }
        Ok(all)
    })
}

/// Small files of many threads, read one after the other: paths are looked up from `/proc/PID/task` on, and into one buffer.
#[derive(Debug)]
pub(super) struct Tasks {
    dir: OwnedFd,
    path: String,
    bytes: Vec<u8>,
}

impl Tasks {
    /// Those of all threads of a process.
    pub fn of(process: &ProcDir) -> io::Result<Tasks> {
        let dir = fs::File::open(process.path("task"))?.into();
        Ok(Tasks { dir, path: String::new(), bytes: vec![0; SMALL] })
    }

    /// What `ask` finds out of each thread, in order. Of many threads several are asked at once.
    pub fn ask_all<T: Send>(
        process: &ProcDir,
        tids: &[i32],
        ask: impl Fn(&mut Tasks, i32) -> T + Sync,
    ) -> io::Result<Vec<T>> {
        /// So many threads are worth one of ours.
        const WORTH: usize = 100;
        in_parts(tids, WORTH, |part| {
            let mut tasks = Tasks::of(process)?;
            Ok(part.iter().map(|tid| ask(&mut tasks, *tid)).collect())
        })
    }

    /// A file of the thread `tid` that the kernel makes in one piece, or its first [`SMALL`] bytes; `None` if it cannot be read.
    pub fn read(&mut self, tid: i32, name: &str) -> Option<Cow<'_, str>> {
        self.path.clear();
        write!(self.path, "{tid}/{name}").ok()?;
        let file = openat(&self.dir, self.path.as_str(), OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty()).ok()?;
        let mut length = 0;
        loop {
            match nix::unistd::read(&file, self.bytes.get_mut(length..)?) {
                Ok(0) => break,
                Ok(read) => length += read,
                Err(Errno::EINTR) => {}
                Err(_) => return None,
            }
            // All of it comes at once (single_open in fs/seq_file.c); to ask for more takes as long as to ask for all.
            if length < SMALL && self.bytes.get(..length)?.ends_with(b"\n") {
                break;
            }
        }
        let bytes = self.bytes.get(..length)?;
        // Nearly always it is text. To check that is faster.
        Some(str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed))
    }

    /// See [`ProcDir::task_name`].
    pub fn name(&mut self, tid: i32) -> Option<String> {
        let text = self.read(tid, "comm")?;
        Some(text.strip_suffix('\n').unwrap_or(&text).to_owned())
    }
}

impl ProcDir {
    pub fn new(root: &Path, pid: i32) -> ProcDir {
        ProcDir { root: root.to_owned(), pid, dir: root.join(pid.to_string()) }
    }

    pub fn path(&self, below: &str) -> PathBuf {
        self.dir.join(below)
    }

    /// The same process by a thread that lives, if its first one has ended: `fd`, `fdinfo`, `ns`, `net` and `exe` of that show
    /// nothing any more (`exit_files` and `exit_task_namespaces` in kernel/exit.c). `stat` and `task` are not to be read by it.
    pub fn by_living_thread(&self) -> ProcDir {
        let has_ended = |stat: io::Result<Stat>| stat.is_ok_and(|stat| matches!(stat.state, 'Z' | 'X'));
        if !has_ended(self.stat()) {
            return self.clone();
        }
        let mut tids = self.tasks().unwrap_or_default().into_iter();
        let living = tids.find(|tid| *tid != self.pid && !has_ended(self.task_stat(*tid)));
        let dir = living.map_or_else(|| self.dir.clone(), |tid| self.path(&format!("task/{tid}")));
        ProcDir { dir, ..self.clone() }
    }

    /// One of its files. The kernel does not tell how long they are, and makes them anew for each read: the first one is a large one.
    fn text(&self, name: &str) -> io::Result<String> {
        let mut bytes = Vec::with_capacity(SMALL);
        fs::File::open(self.path(name))?.take(u64::MAX).read_to_end(&mut bytes)?;
        Ok(String::from_utf8(bytes).unwrap_or_else(|text| String::from_utf8_lossy(text.as_bytes()).into_owned()))
    }

    /// A file of it that may be long, or the beginning of it; `None` if it cannot be read.
    pub fn text_of(&self, name: &str) -> Option<String> {
        const MOST: u64 = 1 << 20;
        let mut bytes = Vec::new();
        fs::File::open(self.path(name)).ok()?.take(MOST).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// `stat` of the process.
    pub fn stat(&self) -> io::Result<Stat> {
        Stat::from_read(self.text("stat")?.as_bytes()).map_err(io::Error::other)
    }

    /// `stat` of one of its threads.
    pub fn task_stat(&self, tid: i32) -> io::Result<Stat> {
        Stat::from_read(self.text(&format!("task/{tid}/stat"))?.as_bytes()).map_err(io::Error::other)
    }

    /// `status` of the process.
    pub fn status(&self) -> io::Result<Status> {
        // The first line holds the name, which may contain the separator the parser splits at.
        let text = self.text("status")?;
        let rest = text.split_once('\n').map_or("", |(_, rest)| rest);
        Status::from_buf_read(format!("Name:\t-\n{rest}").as_bytes()).map_err(io::Error::other)
    }

    /// The control groups it is in, one of each hierarchy.
    pub fn control_groups(&self) -> io::Result<Vec<ProcessCGroup>> {
        let groups = ProcessCGroups::from_buf_read(self.text("cgroup")?.as_bytes()).map_err(io::Error::other)?;
        Ok(groups.0)
    }

    /// What is mounted where in the process's mount namespace.
    pub fn mounts(&self) -> io::Result<Vec<MountInfo>> {
        Ok(MountInfos::from_buf_read(self.text("mountinfo")?.as_bytes()).map_err(io::Error::other)?.0)
    }

    /// `TracerPid` of one of its threads.
    pub fn task_tracer(&self, tid: i32) -> Option<i32> {
        self.task_line(tid, "TracerPid:")?.parse().ok().filter(|pid| *pid != 0)
    }

    /// One line of `status` of one of its threads, which is all that is wanted of thousands of threads.
    pub fn task_line(&self, tid: i32, key: &str) -> Option<String> {
        let text = self.task_status(tid)?;
        Some(text.lines().find_map(|l| l.strip_prefix(key))?.trim().to_owned())
    }

    /// `syscall` of one of its threads (proc_pid_syscall(5)).
    pub fn task_call(&self, tid: i32) -> Option<String> {
        self.text(&format!("task/{tid}/syscall")).ok()
    }

    /// `status` of one of its threads, as text: parsing all of it would take too long for thousands.
    pub fn task_status(&self, tid: i32) -> Option<String> {
        self.text(&format!("task/{tid}/status")).ok()
    }

    /// Its threads by their ids in its own PID namespace, if that is another than the one of this procfs.
    pub fn inner_ids(&self) -> Option<BTreeMap<i32, i32>> {
        // `NSpid` has the id in each namespace, the own one last (proc_pid_status(5)).
        let inner = |text: String| {
            let ids = text.lines().find_map(|line| line.strip_prefix("NSpid:"))?.split_whitespace();
            ids.skip(1).last()?.parse::<i32>().ok()
        };
        inner(self.text("status").ok()?)?;
        let tids = self.tasks().ok()?.into_iter();
        Some(tids.filter_map(|tid| Some((inner(self.task_status(tid)?)?, tid))).collect())
    }

    /// True if a descriptor of the process is a socket.
    pub fn is_socket(&self, descriptor: u64) -> bool {
        let target = fs::read_link(self.path(&format!("fd/{descriptor}")));
        target.is_ok_and(|target| target.to_string_lossy().starts_with("socket:"))
    }

    /// Thread ids, as listed now.
    pub fn tasks(&self) -> io::Result<Vec<i32>> {
        let mut tids = Vec::new();
        for entry in fs::read_dir(self.path("task"))? {
            if let Some(tid) = entry?.file_name().to_str().and_then(|n| n.parse().ok()) {
                tids.push(tid);
            }
        }
        Ok(tids)
    }

    /// `comm` of a thread; `None` if it is gone.
    pub fn task_name(&self, tid: i32) -> Option<String> {
        let text = self.text(&format!("task/{tid}/comm")).ok()?;
        Some(text.strip_suffix('\n').unwrap_or(&text).to_owned())
    }

    /// How long a thread has executed, in nanoseconds, and how often it was given a processor; `None` where the kernel does not count
    /// that (proc_pid_schedstat(5)).
    pub fn task_runs(&self, tid: i32) -> Option<[u64; 2]> {
        runs(&self.text(&format!("task/{tid}/schedstat")).ok()?)
    }

    /// Processor time a thread has used; `None` if it is gone. In units of 10 ms where the kernel keeps no `schedstat`.
    pub fn task_cpu_time(&self, tid: i32) -> Option<Duration> {
        let exact = || self.task_runs(tid).map(|[time, _]| Duration::from_nanos(time));
        // A tick is that long on all machines (USER_HZ).
        const TICK: Duration = Duration::from_millis(10);
        let rough = || {
            let ticks = self.task_stat(tid).map(|stat| stat.utime.saturating_add(stat.stime)).ok()?;
            Some(TICK.saturating_mul(u32::try_from(ticks).unwrap_or(u32::MAX)))
        };
        exact().or_else(rough)
    }

    /// The command line, arguments joined by spaces.
    pub fn command(&self) -> Option<String> {
        Some(self.arguments().join(" ")).filter(|command| !command.is_empty())
    }

    /// The arguments of the command line, that of the program's own name included.
    pub fn arguments(&self) -> Vec<String> {
        let text = self.text("cmdline").unwrap_or_default();
        let text = text.trim_end_matches('\0');
        text.split('\0').filter(|_| !text.is_empty()).map(str::to_owned).collect()
    }

    /// The environment the process was started with.
    pub fn environment(&self) -> Environment {
        let mut bytes = Vec::new();
        let file = fs::File::open(self.path("environ"));
        match file.and_then(|file| file.take(environment::MAX_BYTES + 1).read_to_end(&mut bytes)) {
            Ok(_) if bytes.len() as u64 > environment::MAX_BYTES => Environment::unknown("it is too large"),
            Ok(_) => Environment::parse(&bytes),
            Err(why) => Environment::unknown(format_args!("it cannot be read: {why}")),
        }
    }

    /// Target of the `exe` link, without the kernel's ` (deleted)`.
    pub fn exe(&self) -> Option<String> {
        let path = fs::read_link(self.path("exe")).ok()?.to_string_lossy().into_owned();
        Some(path.strip_suffix(" (deleted)").map_or(path.clone(), str::to_owned))
    }

    /// All mappings, in address order.
    pub fn maps(&self) -> io::Result<Vec<MapEntry>> {
        parse_maps(&self.text("maps")?)
    }

    /// Finds out why the kernel refused access to the process or to its thread `tid`.
    pub fn explain_denial(&self, tid: i32) -> OpenError {
        let pid = self.pid;
        if let Some(tracer) = self.task_tracer(tid) {
            // The kernel names the thread that traces.
            let own = ProcDir::new(&self.root, tracer);
            let tracer = own.status().map_or(tracer, |status| status.tgid);
            let name = ProcDir::new(&self.root, tracer).task_name(tracer).unwrap_or_else(|| "unknown".into());
            return OpenError::OtherTracer { pid, tracer, name };
        }
        match Circumstances::gather(self) {
            Ok(found) => OpenError::Denied { pid, cause: found.cause() },
            Err(e) if e.kind() == io::ErrorKind::NotFound => OpenError::NoSuchProcess { pid },
            Err(source) => OpenError::Io { what: format!("status of process {pid}"), source },
        }
    }
}

/// What `schedstat` says: see [`ProcDir::task_runs`].
pub(super) fn runs(text: &str) -> Option<[u64; 2]> {
    let stat = Schedstat::from_read(text.as_bytes()).ok()?;
    Some([stat.sum_exec_runtime, stat.pcount])
}

/// The path of a mapping is cut off by hand before the rest goes to the parser. The parser fails on some names that a
/// process can give to its files.
fn parse_maps(text: &str) -> io::Result<Vec<MapEntry>> {
    let mut out = Vec::new();
    for line in text.lines() {
        let columns = line.splitn(6, ' ').take(5).map(str::len).sum::<usize>() + 5;
        // The kernel writes a newline in a name as `\012` here (and only here).
        let path = line.get(columns..).unwrap_or("").trim_start().replace("\\012", "\n");
        let fixed = line.get(..columns).unwrap_or(line);
        let maps =
            MemoryMaps::from_buf_read(format!("{} \n", fixed.trim_end()).as_bytes()).map_err(io::Error::other)?;
        for m in maps {
            let mapping = Mapping {
                start: m.address.0,
                end: m.address.1,
                offset: m.offset,
                path: path.to_owned(),
                exec: Some(m.perms.contains(MMPermissions::EXECUTE)),
            };
            out.push(MapEntry {
                mapping,
                unreadable: !m.perms.contains(MMPermissions::READ),
                shared: m.perms.contains(MMPermissions::SHARED),
            });
        }
    }
    Ok(out)
}

/// What decides whether one process may inspect another (ptrace(2), "Ptrace access mode checking").
#[derive(Debug, Clone)]
struct Circumstances {
    our_uid: u32,
    their_uids: [u32; 3],
    capable: bool,
    yama: Option<u32>,
    seccomp: bool,
}

impl Circumstances {
    fn gather(target: &ProcDir) -> io::Result<Circumstances> {
        let own_root = Path::new("/proc");
        let us = ProcDir::new(own_root, i32::try_from(std::process::id()).map_err(io::Error::other)?).status()?;
        let them = target.status()?;
        let yama = fs::read_to_string(own_root.join("sys/kernel/yama/ptrace_scope")).ok();
        Ok(Circumstances {
            our_uid: us.fuid,
            their_uids: [them.ruid, them.euid, them.suid],
            capable: us.capeff & (1 << CAP_SYS_PTRACE) != 0,
            yama: yama.and_then(|v| v.trim().parse().ok()),
            seccomp: us.seccomp == Some(2),
        })
    }

    fn cause(&self) -> DenialCause {
        if let Some(scope @ 3..) = self.yama {
            return DenialCause::Yama { scope };
        }
        if self.capable {
            return DenialCause::Privileged;
        }
        if let Some(theirs) = self.their_uids.into_iter().find(|uid| *uid != self.our_uid) {
            return DenialCause::OtherUser { ours: self.our_uid, theirs };
        }
        match self.yama {
            Some(scope @ (1 | 2)) => DenialCause::Yama { scope },
            _ if self.seccomp => DenialCause::Seccomp,
            _ => DenialCause::NotDumpable,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain() -> Circumstances {
        Circumstances { our_uid: 1000, their_uids: [1000; 3], capable: false, yama: Some(0), seccomp: false }
    }

    #[test]
    fn each_circumstance_gets_its_own_cause() {
        let c = plain;
        assert_eq!(c().cause(), DenialCause::NotDumpable);
        assert_eq!(Circumstances { seccomp: true, ..c() }.cause(), DenialCause::Seccomp);
        assert_eq!(Circumstances { yama: Some(1), ..c() }.cause(), DenialCause::Yama { scope: 1 });
        assert_eq!(Circumstances { yama: None, ..c() }.cause(), DenialCause::NotDumpable);
        let other = Circumstances { their_uids: [1000, 0, 0], yama: Some(1), ..c() };
        assert_eq!(other.cause(), DenialCause::OtherUser { ours: 1000, theirs: 0 });
        assert_eq!(Circumstances { capable: true, ..other.clone() }.cause(), DenialCause::Privileged);
        assert_eq!(Circumstances { capable: true, yama: Some(3), ..c() }.cause(), DenialCause::Yama { scope: 3 });
    }

    #[test]
    fn hostile_file_names_do_not_break_the_map() {
        let text = "00400000-00401000 r-xp 00001000 fe:01 42                         /SYSV\n\
                    7f0000000000-7f0000001000 ---p 00000000 00:00 0 \n\
                    7f0000002000-7f0000003000 rw-p 00000000 00:00 0                          [stack:\n\
                    7f0000004000-7f0000005000 r--s 00000000 00:01 7                          /a  b (deleted)\n";
        let maps = parse_maps(text).unwrap();
        let paths: Vec<&str> = maps.iter().map(|m| m.mapping.path.as_str()).collect();
        assert_eq!(paths, ["/SYSV", "", "[stack:", "/a  b (deleted)"]);
        assert_eq!(
            (maps[0].mapping.start, maps[0].mapping.offset, maps[0].mapping.exec),
            (0x400000, 0x1000, Some(true))
        );
        assert!(maps[1].unreadable && !maps[3].unreadable);
        assert_eq!(maps.iter().map(|m| m.shared).collect::<Vec<_>>(), [false, false, false, true]);
        assert!(parse_maps("what is this\n").is_err());
    }
}
