//! Programs that print what they know and then wait, on every libomp and libiomp5 that was fetched.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::Skip;

/// Every libomp and libiomp5 at hand: a directory whose `libomp.so.5` and `libgomp.so.1` are that file, and its path.
pub fn libomp_libraries() -> Vec<(tempfile::TempDir, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("runtimes");
    let mut files = vec![PathBuf::from("/usr/lib/llvm-14/lib/libomp.so.5"), root.join("libiomp5.so")];
    let below = |path: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(path).into_iter().flatten().filter_map(Result::ok).map(|e| e.path());
        let mut entries: Vec<PathBuf> = entries.collect();
        entries.sort();
        entries
    };
    for folder in below(&root) {
        for name in ["libomp.so", "libiomp5.so"] {
            files.push(folder.join(name));
        }
        files.extend(below(&folder.join("amd64")).into_iter().map(|package| package.join("libomp.so.5")));
    }
    let found = files.iter().filter_map(|file| file.canonicalize().ok()).map(|file| {
        let directory = tempfile::tempdir().expect("a directory");
        // What GCC has compiled asks for libgomp, in whose place libomp can be.
        for name in ["libomp.so.5", "libgomp.so.1"] {
            std::os::unix::fs::symlink(&file, directory.path().join(name)).expect("a link");
        }
        (directory, file.display().to_string())
    });
    found.collect()
}

/// A program that has printed what it knows, and waits. A drop kills it.
#[derive(Debug)]
pub struct Held {
    child: Child,
    stdin: Option<ChildStdin>,
    rest: BufReader<std::process::ChildStdout>,
    lines: Vec<String>,
}

impl Held {
    /// Starts the program. `None` if it cannot run on this library; the reason is printed.
    ///
    /// # Panics
    /// The program does not start for another reason.
    pub fn start(
        program: &Path,
        library: &Path,
        what: &str,
        variables: &[(&str, &str)],
        arguments: &[&str],
    ) -> Option<Held> {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            if ["OMP_", "KMP_", "LD_"].iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
                command.env_remove(&name);
            }
        }
        command.env("LD_LIBRARY_PATH", library).envs(variables.iter().copied()).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut held = Held::of(command.spawn().expect("the program starts"));
        loop {
            let mut line = String::new();
            if held.rest.read_line(&mut line).expect("its output can be read") == 0 {
                let mut text = String::new();
                let _ = held.child.stderr.take().expect("its errors").read_to_string(&mut text);
                // A newer C library is needed, or the program calls what the runtime is too old to have.
                let reasons = ["GLIBC_", "cannot open shared object", "undefined symbol: __kmpc_"];
                assert!(reasons.iter().any(|reason| text.contains(reason)), "{what}: {text}");
                Skip::because(format!("{what}: {}", text.trim_end())).show();
                return None;
            }
            if line.trim_end() == "ready" {
                return Some(held);
            }
            held.lines.push(line.trim_end().to_owned());
        }
    }

    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    fn of(mut child: Child) -> Held {
        let stdin = child.stdin.take();
        let rest = BufReader::new(child.stdout.take().expect("its output"));
        Held { child, stdin, rest, lines: Vec::new() }
    }

    /// All lines it printed.
    pub fn output(&self) -> String {
        self.lines.join("\n")
    }

    /// The words after the first in each line whose first word is `word`.
    pub fn told(&self, word: &str) -> Vec<Vec<&str>> {
        let words = self.lines.iter().map(|line| line.split(' ').collect::<Vec<_>>());
        words.filter(|words| words[0] == word).map(|words| words[1..].to_vec()).collect()
    }

    /// Continues it to its end. It may crash.
    pub fn go_on(mut self) {
        self.stdin.take().expect("its input").write_all(b"\n").expect("it reads");
        self.child.wait().expect("it ends");
    }

    /// Continues it to its end, which has to be a good one.
    pub fn end(mut self) {
        self.stdin.take().expect("its input").write_all(b"\n").expect("it reads");
        let mut text = String::new();
        self.rest.read_to_string(&mut text).expect("it writes");
        assert!(self.child.wait().expect("it ends").success() && text.contains("done"), "{text}");
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        crate::remove_registration(self.child.id());
    }
}
