//! Debug files from servers, by way of elfutils' `debuginfod-find` (debuginfod-find(1)).
//!
//! It asks the servers named in `DEBUGINFOD_URLS` over the network, so it runs only if the user said so. It may take as
//! long as it likes (its own limit is `DEBUGINFOD_TIMEOUT`); no process is held meanwhile.

use std::ffi::OsStr;
use std::io::{ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::programs;
use crate::symbol::BuildId;

/// Name of the program.
const PROGRAM: &str = "debuginfod-find";
/// It is ended if it has not answered by then.
const LIMIT: Duration = Duration::from_secs(60);
/// Bytes kept of each of its outputs: a path, or an error message.
const MAX_OUTPUT: usize = 64 << 10;
/// Bytes of an error message that are passed on.
const MAX_MESSAGE: usize = 200;
/// Between two looks at a program that has closed its outputs and not yet ended.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// The permission to ask servers, shared by all files of one target.
#[derive(Debug, Clone, Default)]
pub(crate) struct Debuginfod {
    closed: Arc<AtomicBool>,
}

impl Debuginfod {
    /// Withdraws the permission: nothing slow may happen from now on.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    /// The debug file of build-id `id`, as it was delivered: not yet verified. Otherwise why there is none.
    pub fn fetch(&self, id: &BuildId) -> Result<PathBuf, String> {
        let why = |why: &str| format!("{PROGRAM} debuginfo {id}: {why}");
        if self.closed.load(Ordering::SeqCst) {
            return Err(why("not asked, because the process has been stopped meanwhile"));
        }
        let program = programs::find(PROGRAM).ok_or_else(|| why("there is no such program in PATH"))?;
        run(&program, id, LIMIT).map_err(|e| why(&e))
    }
}

/// The program, ended at the latest when nobody waits for it any more.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Both do nothing if it has ended and was waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How long the program may still take.
struct Deadline {
    began: Instant,
    limit: Duration,
}

impl Deadline {
    fn left(&self) -> Result<Duration, String> {
        let left = self.limit.saturating_sub(self.began.elapsed());
        if left.is_zero() { Err(format!("no answer within {:?}", self.limit)) } else { Ok(left) }
    }
}

fn run(program: &Path, id: &BuildId, limit: Duration) -> Result<PathBuf, String> {
    let deadline = Deadline { began: Instant::now(), limit };
    let mut command = Command::new(program);
    command.arg("debuginfo").arg(id.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = Running(command.spawn().map_err(|e| format!("cannot be started: {e}"))?);
    let (Some(out), Some(err)) = (child.0.stdout.take(), child.0.stderr.take()) else {
        return Err("its output cannot be read".into());
    };
    let [out, err] = listen(out, err, &deadline)?;
    let status = wait(&mut child.0, &deadline)?;
    if !status.success() {
        let text = String::from_utf8_lossy(&err[..err.len().min(MAX_MESSAGE)]).into_owned();
        let message = text.lines().map(str::trim).rfind(|l| !l.is_empty());
        return Err(message.map_or_else(|| format!("ended with {status}"), str::to_owned));
    }
    // One line: where it has put the file.
    let line = out.strip_suffix(b"\n").unwrap_or(&out);
    let path = Path::new(OsStr::from_bytes(line));
    if !path.is_absolute() || line.iter().any(|b| matches!(b, b'\n' | 0)) {
        return Err("its answer is not a path".into());
    }
    Ok(path.to_owned())
}

/// Reads both outputs to their ends. What exceeds the cap is read and dropped.
fn listen(mut out: impl Read + AsFd, mut err: impl Read + AsFd, deadline: &Deadline) -> Result<[Vec<u8>; 2], String> {
    let (mut texts, mut open) = ([Vec::new(), Vec::new()], [true, true]);
    let trouble = |e: &dyn std::fmt::Display| format!("its output cannot be read: {e}");
    while open.contains(&true) {
        let left = deadline.left()?;
        // A pipe at its end would be ready for ever, so it is no longer asked about.
        let events = |index: usize| if open[index] { PollFlags::POLLIN } else { PollFlags::empty() };
        let mut fds = [PollFd::new(out.as_fd(), events(0)), PollFd::new(err.as_fd(), events(1))];
        let asked: &mut [PollFd<'_>] = match open {
            [true, false] => &mut fds[..1],
            [false, true] => &mut fds[1..],
            _ => &mut fds,
        };
        match poll(asked, PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(e) => return Err(trouble(&e)),
        }
        let ready = fds.map(|fd| fd.any() == Some(true));
        for index in 0..2 {
            if !(open[index] && ready[index]) {
                continue;
            }
            let mut buf = [0; 4096];
            let read = if index == 0 { out.read(&mut buf) } else { err.read(&mut buf) };
            match read {
                Ok(0) => open[index] = false,
                Ok(n) => {
                    let room = MAX_OUTPUT.saturating_sub(texts[index].len());
                    texts[index].extend_from_slice(&buf[..n.min(room)]);
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(trouble(&e)),
            }
        }
    }
    Ok(texts)
}

/// Its exit status, which normally is there as soon as its outputs are closed.
fn wait(child: &mut Child, deadline: &Deadline) -> Result<ExitStatus, String> {
    loop {
        match child.try_wait().map_err(|e| format!("its end cannot be seen: {e}"))? {
            Some(status) => return Ok(status),
            None => std::thread::sleep(deadline.left()?.min(LOOK_AGAIN)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A program of that name in a directory of its own.
    fn script(text: &str) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join(PROGRAM);
        std::fs::write(&path, text).expect("script");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("mode");
        (dir, path)
    }

    /// What a program with this text answers. A child that another test starts while the script is written inherits the
    /// open file. Until that child calls execve(2), the kernel refuses to execute the script.
    fn answer(text: &str, limit: Duration) -> Result<PathBuf, String> {
        let (_dir, path) = script(&format!("#!/bin/sh\n{text}\n"));
        loop {
            match run(&path, &BuildId(vec![0xab, 0xcd]), limit) {
                Err(e) if e.contains("Text file busy") => {}
                other => return other,
            }
        }
    }

    #[test]
    fn its_answer_is_a_path_or_the_reason_it_gives() {
        assert_eq!(answer("echo /cache/$1/$2", LIMIT), Ok(PathBuf::from("/cache/debuginfo/abcd")));
        let refused = answer("echo 'Server query failed: No such file or directory' >&2; exit 1", LIMIT);
        assert_eq!(refused, Err("Server query failed: No such file or directory".into()));
        assert!(answer("exit 3", LIMIT).is_err_and(|e| e.contains('3')));
        for nonsense in ["", "echo relative/path", "echo /a; echo /b"] {
            assert_eq!(answer(nonsense, LIMIT), Err("its answer is not a path".into()), "{nonsense}");
        }
        // More than a pipe holds, on both outputs: it must not block.
        let flood = "head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2";
        assert_eq!(answer(flood, LIMIT), Err("its answer is not a path".into()));
        // Output that is closed early is no end.
        assert!(answer("exec >&- 2>&-; exit 7", LIMIT).is_err_and(|e| e.contains('7')));
    }

    #[test]
    fn it_is_ended_when_it_takes_too_long() {
        let late = answer("exec sleep 1000", Duration::ZERO);
        assert!(late.as_ref().is_err_and(|e| e.contains("no answer within")), "{late:?}");
    }

    #[test]
    fn a_withdrawn_permission_says_so() {
        let server = Debuginfod::default();
        server.clone().close();
        assert!(server.fetch(&BuildId(vec![1])).is_err_and(|e| e.contains("not asked")));
    }
}
