//! Programs that say all they know and wait, on every libomp and libiomp5 at hand.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use ompd_process::{Live, OpenOptions};
use ompd_runtime::discover;
use ompd_runtime::evidence::Evidence;
use ompd_runtime::merge::merge;
use ompd_runtime::model::RuntimeSnapshot;
use ompd_runtime::names::FileNames;
use test_programs::Skip;

/// Directories in which `libomp.so.5` and `libgomp.so.1` are the runtime to try, and what it is.
pub fn libraries() -> Vec<(tempfile::TempDir, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test-programs/runtimes");
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

/// A program that has said all it knows, and waits. It is killed when this is dropped.
pub struct Held {
    child: Child,
    stdin: Option<ChildStdin>,
    rest: BufReader<std::process::ChildStdout>,
    lines: Vec<String>,
}

impl Held {
    /// Starts the program; `None`, with the reason told, if it cannot run on this library.
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
                assert!(text.contains("GLIBC_") || text.contains("cannot open shared object"), "{what}: {text}");
                Skip::because(format!("{what}: {}", text.trim_end())).show();
                return None;
            }
            if line.trim_end() == "ready" {
                return Some(held);
            }
            held.lines.push(line.trim_end().to_owned());
        }
    }

    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    fn of(mut child: Child) -> Held {
        let stdin = child.stdin.take();
        let rest = BufReader::new(child.stdout.take().expect("its output"));
        Held { child, stdin, rest, lines: Vec::new() }
    }

    /// All it has said.
    #[allow(dead_code, reason = "most who use this file ask for lines with a certain word")]
    pub fn output(&self) -> String {
        self.lines.join("\n")
    }

    /// What is behind the first word of the lines that begin with it.
    pub fn told(&self, word: &str) -> Vec<Vec<&str>> {
        let words = self.lines.iter().map(|line| line.split(' ').collect::<Vec<_>>());
        words.filter(|words| words[0] == word).map(|words| words[1..].to_vec()).collect()
    }

    /// What is read of it in one stop.
    #[allow(dead_code, reason = "some who use this file look at the process in another way")]
    pub fn snapshot(&self, what: &str) -> RuntimeSnapshot {
        let mut live = Live::open(self.child.id() as i32, &OpenOptions::default()).expect("it can be opened");
        let runtimes = discover(&live, &[]);
        assert_eq!(runtimes.len(), 1, "{what}: {runtimes:?}");
        live.stop().expect("it can be stopped");
        let raw = runtimes[0].snapshot(&live);
        live.resume();
        let names = FileNames::of(&live, &runtimes, &|_| None);
        merge(vec![raw], &Evidence::of_names(&names)).remove(0)
    }

    /// Lets it go on to its end, whatever that is.
    #[allow(dead_code, reason = "not all who use this file have programs that crash")]
    pub fn go_on(mut self) {
        self.stdin.take().expect("its input").write_all(b"\n").expect("it reads");
        self.child.wait().expect("it ends");
    }

    /// Lets it go on to its end.
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
    }
}
