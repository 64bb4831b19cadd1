//! How many processors a process may use: the affinity of its threads, and the quota of its control group.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use nix::errno::Errno;
use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;
use procfs::ProcessCGroup;
use procfs::process::MountInfo;

use super::procdir::ProcDir;
use crate::Cpus;

/// Where the kernel lists the processors that are in use (Documentation/ABI/testing/sysfs-devices-system-cpu).
const ONLINE: &str = "/sys/devices/system/cpu/online";
/// Processor numbers beyond any kernel's NR_CPUS are not believed.
const MAX_CPU: u32 = 1 << 16;

/// `None` if not a single thread's affinity could be read.
pub(super) fn usable(process: &ProcDir, groups: &[ProcessCGroup], mounts: &[MountInfo]) -> Option<Cpus> {
    // A mask may name processors that the machine could have and has not.
    let online = fs::read_to_string(ONLINE).ok().and_then(|text| parse_list(&text));
    let is_online = |cpu: &u32| online.as_ref().is_none_or(|online| online.contains(cpu));
    let mut allowed = BTreeSet::new();
    let mut of_threads: Vec<(i32, Arc<[u32]>)> = Vec::new();
    let mut last: Option<(CpuSet, Arc<[u32]>)> = None;
    // Threads that end meanwhile are passed over.
    for tid in process.tasks().ok()? {
        let own: Arc<[u32]> = match sched_getaffinity(Pid::from_raw(tid)) {
            Ok(set) => match &last {
                // Most threads have the same one.
                Some((known, list)) if *known == set => Arc::clone(list),
                _ => {
                    let cpus = (0..CpuSet::count()).filter(|cpu| set.is_set(*cpu) == Ok(true)).map(|cpu| cpu as u32);
                    let list: Arc<[u32]> = cpus.filter(is_online).collect();
                    last = Some((set, Arc::clone(&list)));
                    list
                }
            },
            Err(Errno::ESRCH) => continue,
            // More processors than fit into the set: as text there is no limit.
            Err(_) => match process.task_line(tid, "Cpus_allowed_list:") {
                Some(mask) => parse_list(&mask)?.into_iter().filter(is_online).collect(),
                None => continue,
            },
        };
        allowed.extend(own.iter().copied());
        of_threads.push((tid, own));
    }
    of_threads.sort_unstable_by_key(|(tid, _)| *tid);
    let quota = quota(groups, mounts);
    (!allowed.is_empty()).then_some(Cpus { allowed: allowed.len() as u32, quota, of_threads })
}

/// Parses a list such as `0-3,8`.
fn parse_list(text: &str) -> Option<BTreeSet<u32>> {
    let mut cpus = BTreeSet::new();
    for range in text.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        cpus.extend(first..=last.min(MAX_CPU));
    }
    Some(cpus)
}

/// The smallest quota of all groups the process is in: cgroups(7), and the kernel's cgroup-v2 and sched-bwc documents.
fn quota(groups: &[ProcessCGroup], mounts: &[MountInfo]) -> Option<f64> {
    let mut smallest: Option<f64> = None;
    for group in groups {
        let unified = group.hierarchy == 0;
        if !unified && !group.controllers.iter().any(|c| c == "cpu") {
            continue;
        }
        let holds = |m: &&MountInfo| match unified {
            true => m.fs_type == "cgroup2",
            false => m.fs_type == "cgroup" && m.super_options.contains_key("cpu"),
        };
        let Some(found) = mounts.iter().filter(holds).find_map(|m| Some((m, directory(m, &group.pathname)?))) else {
            continue;
        };
        let (mount, leaf) = found;
        for dir in leaf.ancestors().take_while(|dir| dir.starts_with(&mount.mount_point)) {
            if let Some(limit) = if unified { limit(dir) } else { limit_v1(dir) } {
                smallest = Some(smallest.map_or(limit, |s| s.min(limit)));
            }
        }
    }
    smallest
}

/// What is mounted in our own mount namespace, and so by our own procfs: files of groups are read by this process.
pub(super) fn mounts() -> Vec<MountInfo> {
    let own = i32::try_from(std::process::id()).ok().map(|pid| ProcDir::new(Path::new("/proc"), pid));
    own.and_then(|own| own.mounts().ok()).unwrap_or_default()
}

/// Where the group lies below the mount; `None` if it lies outside of what is mounted there.
pub(super) fn directory(mount: &MountInfo, group: &str) -> Option<PathBuf> {
    let below = Path::new(group).strip_prefix(&mount.root).ok()?;
    // `/..` leads to groups outside of our namespace (cgroup_namespaces(7)).
    let plain = below.components().all(|c| matches!(c, Component::Normal(_)));
    plain.then(|| mount.mount_point.join(below))
}

/// `cpu.max`: microseconds (or `max`) in each period of so many microseconds.
fn limit(dir: &Path) -> Option<f64> {
    let text = fs::read_to_string(dir.join("cpu.max")).ok()?;
    let (quota, period) = text.trim().split_once(' ')?;
    ratio(quota, period)
}

/// The same in two files; -1 stands for no limit.
fn limit_v1(dir: &Path) -> Option<f64> {
    let read = |name: &str| fs::read_to_string(dir.join(name)).ok();
    ratio(read("cpu.cfs_quota_us")?.trim(), read("cpu.cfs_period_us")?.trim())
}

fn ratio(quota: &str, period: &str) -> Option<f64> {
    let (quota, period): (u64, u64) = (quota.parse().ok()?, period.parse().ok()?);
    (quota > 0 && period > 0).then(|| quota as f64 / period as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use procfs::FromBufRead;

    fn groups(text: &str) -> Vec<ProcessCGroup> {
        procfs::ProcessCGroups::from_buf_read(text.as_bytes()).expect("groups").0
    }

    fn mounts(text: &str) -> Vec<MountInfo> {
        procfs::process::MountInfos::from_buf_read(text.as_bytes()).expect("mounts").0
    }

    fn write(path: PathBuf, text: &str) {
        fs::create_dir_all(path.parent().expect("parent")).expect("directory");
        fs::write(path, text).expect("write");
    }

    #[test]
    fn lists_of_processors() {
        assert_eq!(parse_list("0-3,8\n"), Some(BTreeSet::from([0, 1, 2, 3, 8])));
        assert_eq!(parse_list("5"), Some(BTreeSet::from([5])));
        assert_eq!(parse_list("3-1").map(|l| l.len()), Some(0));
        assert_eq!(parse_list("0-4294967295").map(|l| l.len()), Some(MAX_CPU as usize + 1));
        assert_eq!(parse_list(""), None);
        assert_eq!(parse_list("0-x"), None);
    }

    #[test]
    fn the_smallest_limit_on_the_way_up_counts() {
        let root = tempfile::tempdir().expect("directory");
        let at = root.path().display();
        let mounted = mounts(&format!("41 31 0:38 / {at} rw,relatime - cgroup2 cgroup2 rw\n"));
        let of = |path: &str| quota(&groups(&format!("0::{path}\n")), &mounted);
        write(root.path().join("a/cpu.max"), "max 100000\n");
        write(root.path().join("a/b/cpu.max"), "150000 100000\n");
        write(root.path().join("a/b/c/cpu.max"), "400000 100000\n");
        assert_eq!(of("/a/b/c"), Some(1.5));
        assert_eq!(of("/a/b"), Some(1.5));
        assert_eq!(of("/a"), None);
        assert_eq!(of("/"), None);
        write(root.path().join("a/b/cpu.max"), "0 0\n");
        assert_eq!(of("/a/b/c"), Some(4.0));
        assert_eq!(of("/no/such/group"), None);
    }

    #[test]
    fn groups_outside_of_the_mount_are_not_read() {
        let outside = tempfile::tempdir().expect("directory");
        let inside = outside.path().join("inside");
        write(outside.path().join("cpu.max"), "100000 100000\n");
        write(inside.join("cpu.max"), "200000 100000\n");
        let mounted = mounts(&format!("41 31 0:38 /pod {} rw,relatime - cgroup2 cgroup2 rw\n", inside.display()));
        assert_eq!(quota(&groups("0::/pod\n"), &mounted), Some(2.0));
        assert_eq!(quota(&groups("0::/\n"), &mounted), None);
        assert_eq!(quota(&groups("0::/pod/../..\n"), &mounted), None);
        assert_eq!(quota(&groups("0::/../other\n"), &mounted), None);
    }

    #[test]
    fn version_1_has_two_files_in_the_hierarchy_of_the_cpu_controller() {
        let root = tempfile::tempdir().expect("directory");
        let at = root.path().display();
        let mounted = mounts(&format!(
            "33 31 0:30 / {at}/memory rw,relatime - cgroup cgroup rw,memory\n\
             32 31 0:29 / {at}/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"
        ));
        let group = groups("9:memory:/m\n2:cpu,cpuacct:/g\n0::/\n");
        write(root.path().join("cpu/g/cpu.cfs_quota_us"), "-1\n");
        write(root.path().join("cpu/g/cpu.cfs_period_us"), "100000\n");
        assert_eq!(quota(&group, &mounted), None);
        write(root.path().join("cpu/g/cpu.cfs_quota_us"), "50000\n");
        assert_eq!(quota(&group, &mounted), Some(0.5));
        assert_eq!(quota(&group, &[]), None);
    }
}
