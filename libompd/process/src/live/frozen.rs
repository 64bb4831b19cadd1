//! Whether the control group of a process is frozen: `docker pause`, `systemctl freeze`, batch systems.

use std::fs;
use std::path::Path;

use procfs::ProcessCGroup;
use procfs::process::MountInfo;

use super::cpus::directory;

/// True if a group that the process is in is frozen, by itself or with one around it (cgroup-v2 and freezer-subsystem documents of
/// the kernel). The kernel says so once all processes of the group are.
pub(super) fn is_frozen(groups: &[ProcessCGroup], mounts: &[MountInfo]) -> bool {
    groups.iter().any(|group| {
        let unified = group.hierarchy == 0;
        let is_freezer = |name: &String| name == "freezer";
        let holds = |mount: &&MountInfo| match unified {
            true => mount.fs_type == "cgroup2",
            false => mount.fs_type == "cgroup" && mount.super_options.contains_key("freezer"),
        };
        if !unified && !group.controllers.iter().any(is_freezer) {
            return false;
        }
        let places = mounts.iter().filter(holds).find_map(|mount| directory(mount, &group.pathname));
        places.is_some_and(|place| {
            if unified { says(&place, "cgroup.events", "frozen 1") } else { says(&place, "freezer.state", "FROZEN") }
        })
    })
}

/// A file of the group has this line.
fn says(group: &Path, file: &str, line: &str) -> bool {
    fs::read_to_string(group.join(file)).is_ok_and(|text| text.lines().any(|own| own == line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use procfs::FromBufRead;

    #[test]
    fn groups_of_both_versions_say_whether_they_are_frozen() {
        let root = tempfile::tempdir().expect("directory");
        let at = root.path().display();
        let text = format!(
            "32 31 0:29 / {at}/freezer rw,relatime - cgroup cgroup rw,freezer\n\
             41 31 0:38 / {at}/unified rw,relatime - cgroup2 cgroup2 rw\n"
        );
        let mounts = procfs::process::MountInfos::from_buf_read(text.as_bytes()).expect("mounts").0;
        let of =
            |text: &str| is_frozen(&procfs::ProcessCGroups::from_buf_read(text.as_bytes()).expect("groups").0, &mounts);
        for (place, text) in [
            ("freezer/a/freezer.state", "FROZEN\n"),
            ("freezer/b/freezer.state", "FREEZING\n"),
            ("unified/c/cgroup.events", "populated 1\nfrozen 1\n"),
            ("unified/d/cgroup.events", "populated 1\nfrozen 0\n"),
        ] {
            let place = root.path().join(place);
            fs::create_dir_all(place.parent().expect("a group")).expect("directory");
            fs::write(place, text).expect("its state");
        }
        assert!(of("3:freezer:/a\n0::/d\n") && of("3:freezer:/b\n0::/c\n"));
        assert!(!of("3:freezer:/b\n0::/d\n") && !of("3:cpu:/a\n") && !of("0::/none\n") && !of(""));
    }
}
