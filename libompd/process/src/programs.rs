//! Other programs that are run.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// The program of this name in the user's `PATH`. Only absolute directories count: the working directory may hold what came
/// with a core file.
pub fn find(name: &str) -> Option<PathBuf> {
    find_in(&std::env::var_os("PATH").unwrap_or_default(), name)
}

fn find_in(path: &OsStr, name: &str) -> Option<PathBuf> {
    let programs = std::env::split_paths(path).filter(|dir| dir.is_absolute()).map(|dir| dir.join(name));
    let runs = |file: &PathBuf| file.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
    programs.into_iter().find(runs)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::path::Path;

    use super::*;

    #[test]
    fn only_programs_in_absolute_directories_are_run() {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("dot");
        fs::write(&program, "#!/bin/sh\n").expect("it is written");
        fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("its mode");
        let list = std::env::join_paths([Path::new("."), Path::new("/no/such/dir"), folder.path()]).expect("a list");
        assert_eq!(find_in(&list, "dot"), Some(program.clone()));
        assert_eq!(find_in(OsStr::new(""), "dot"), None);
        assert_eq!(find_in(OsStr::new("."), "Cargo.toml"), None);
        fs::set_permissions(&program, Permissions::from_mode(0o644)).expect("its mode");
        assert_eq!(find_in(&list, "dot"), None);
    }
}
