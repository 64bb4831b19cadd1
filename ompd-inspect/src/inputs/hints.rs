//! What the user may have meant by an argument that names nothing.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, PermissionsExt};
use std::path::Path;

use ompd_process::{OpenError, programs};
use ompd_report::escape::escape;

use crate::args::command_line;
use crate::output::Failure;

/// That a word is no target, if it resembles a command and there is no such file.
pub fn mistyped(word: &str) -> Option<Failure> {
    let command = command(word).filter(|_| !Path::new(word).exists())?;
    Some(Failure::with_remedy(
        format_args!("there is no command and no file called {word}"),
        format_args!("did you mean: {command}"),
    ))
}

/// Why a target was not opened, with what may have been meant.
pub fn not_opened(target: &str, error: OpenError) -> Failure {
    let kind = match &error {
        OpenError::Io { source, .. } => Some(source.kind()),
        _ => None,
    };
    if kind == Some(io::ErrorKind::NotFound)
        && let Some(failure) = mistyped(target)
    {
        return failure;
    }
    let gone = matches!(error, OpenError::NoSuchProcess { .. } | OpenError::Zombie { .. });
    let no_process = matches!(error, OpenError::NoSuchProcess { .. });
    let system = match kind {
        Some(io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => looks_like_core(target),
        _ => gone,
    };
    let remedy = match (kind, &error) {
        (Some(io::ErrorKind::PermissionDenied), _) => {
            Some("read it as its owner or as root, or have a copy made that you may read".to_owned())
        }
        (_, OpenError::NotCore { path, .. }) => instead_of(path),
        _ => None,
    };
    let mut failure = match remedy {
        Some(remedy) => Failure::with_remedy(escape(&error.to_string()), remedy),
        None => Failure::from(error),
    };
    if no_process && Path::new(target).exists() {
        failure = failure.noting(format_args!("there is a file of that name; write ./{target} to inspect it"));
    }
    if kind == Some(io::ErrorKind::NotFound) && target.bytes().all(|byte| byte.is_ascii_lowercase()) {
        failure = failure.noting("commands are listed by ompd-inspect --help");
    }
    // Only looked for, never run.
    if system && programs::find("coredumpctl").is_some() {
        let which = process_of_core(target).map_or_else(String::new, |pid| format!(" {pid}"));
        failure = failure
            .noting(format_args!("if it crashed, systemd may have kept its core: coredumpctl dump{which} -o core"));
    }
    failure
}

/// What to name instead of a file that is no core.
fn instead_of(path: &Path) -> Option<String> {
    let name = escape(&path.display().to_string());
    let meta = path.metadata().ok()?;
    let is_program = || {
        let mut start = [0; 4];
        File::open(path).and_then(|file| file.read_exact_at(&mut start, 0)).is_ok() && &start == b"\x7fELF"
    };
    match meta.file_type() {
        // As abrt keeps a crash.
        kind if kind.is_dir() && path.join("coredump").is_file() => {
            Some(format!("name the core in it: {name}/coredump"))
        }
        kind if kind.is_fifo() => Some(format!("send it to standard input: ompd-inspect - < {name}")),
        kind if kind.is_file() && meta.permissions().mode() & 0o111 != 0 && is_program() => {
            Some(format!("name a process that runs it by its id, or start it: ompd-inspect run -- {name}"))
        }
        _ => None,
    }
}

/// The command that a word which is no file resembles, as it would be written.
fn command(word: &str) -> Option<String> {
    /// How alike two words are: 0 for nothing in common, 1 for the same. As much as clap asks of options.
    const ALIKE: f64 = 0.8;
    if word.is_empty() || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return None;
    }
    if word == "summary" {
        return Some("ompd-inspect PID (the summary has no command)".to_owned());
    }
    let alike = |name: &str| strsim::jaro(word, name);
    let cli = command_line();
    let names = cli.get_subcommands().map(clap::Command::get_name);
    let best = names.max_by(|one, two| alike(one).total_cmp(&alike(two)))?;
    (alike(best) > ALIKE).then(|| format!("ompd-inspect {best}"))
}

/// True for names that kernels and systemd give cores.
fn looks_like_core(target: &str) -> bool {
    let name = target.rsplit('/').next().unwrap_or(target);
    name == "core" || name.starts_with("core.")
}

/// The process whose core it would be: a number alone, `core.PID`, or systemd's
/// `core.COMM.UID.BOOT.PID.TIME` (systemd-coredump(8)), perhaps compressed.
fn process_of_core(target: &str) -> Option<u32> {
    if let Ok(pid) = target.parse() {
        return Some(pid);
    }
    let name = target.rsplit('/').next().unwrap_or(target);
    let name = [".zst", ".lz4", ".xz", ".gz"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    match name.split('.').rev().collect::<Vec<_>>()[..] {
        [pid, "core"] => pid.parse().ok(),
        [_, pid, boot, _, ..] if boot.len() == 32 && name.starts_with("core.") => pid.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_like_commands_are_recognised() {
        for (word, meant) in [
            ("thread", Some("ompd-inspect threads")),
            ("treads", Some("ompd-inspect threads")),
            ("stack", Some("ompd-inspect stacks")),
            ("wait", Some("ompd-inspect waits")),
            ("doctr", Some("ompd-inspect doctor")),
            ("core", None),
            ("program", None),
            ("", None),
            ("./thread", None),
        ] {
            assert_eq!(command(word).as_deref(), meant, "{word}");
        }
    }

    #[test]
    fn names_of_cores_hold_the_process() {
        let systemd =
            "/var/lib/systemd/coredump/core.a\\x2eb.1000.0123456789abcdef0123456789abcdef.4711.1700000000000000.zst";
        for (target, pid) in
            [("4711", Some(4711)), ("core.4711", Some(4711)), (systemd, Some(4711)), ("core", None), ("a.1.2.3", None)]
        {
            assert_eq!(process_of_core(target), pid, "{target}");
        }
    }
}
