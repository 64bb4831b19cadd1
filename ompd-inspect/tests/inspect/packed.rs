//! Cores that are compressed, come through a pipe, or are in a crash report: the same report as of the plain core.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use test_programs::{Env, Opt, Running, Runtime, Skip, Toolchain, build};

use crate::common::{self, bounded, command, texts};

/// A core of a steady program, and the report of it. `None`, said on standard error, where there is no gcore.
struct Plain {
    _directory: tempfile::TempDir,
    path: PathBuf,
    report: Value,
}

fn plain() -> Option<&'static Plain> {
    static PLAIN: OnceLock<Option<Plain>> = OnceLock::new();
    let make = || {
        let directory = tempfile::tempdir().expect("a directory");
        let executable = build("barrier_missing", Toolchain::Gcc, Opt::O2, &[]).expect("the program builds");
        let running = Running::start(&executable, Runtime::Libgomp, Env::Settled).expect("the program starts");
        let core = running.gcore(directory.path()).expect("gcore runs");
        running.release().expect("the program's end");
        let path = core.inspect_err(Skip::show).ok()?;
        let (report, status) = common::json(&[path.to_str().expect("a plain path")]);
        assert_eq!(status, 0, "{report}");
        Some(Plain { _directory: directory, path, report })
    };
    PLAIN.get_or_init(make).as_ref()
}

/// The report of a file, which has to be that of the plain core.
fn same(plain: &Plain, what: &str, command: &mut Command) {
    let (out, err, status) = texts(&bounded(command));
    assert_eq!((status, err.as_str()), (0, ""), "{what}");
    let report: Value = serde_json::from_str(&out).expect("JSON");
    assert!(report == plain.report, "{what}: another report");
}

/// What a tool makes of the core, in a file; `None`, said on standard error, where there is no such tool.
fn packed_by(plain: &Plain, directory: &Path, tool: &str, args: &[&str]) -> Option<PathBuf> {
    // The name says nothing: formats are known by their bytes.
    let path = directory.join(format!("{tool}-core"));
    let out = File::create(&path).expect("a file");
    match Command::new(tool).args(args).arg("-c").arg(&plain.path).stdout(out).stderr(Stdio::null()).status() {
        Ok(status) => {
            assert!(status.success(), "{tool} {args:?}");
            Some(path)
        }
        Err(error) => {
            Skip::because(format!("{tool} cannot be run: {error}")).show();
            None
        }
    }
}

#[test]
fn compressed_cores_give_the_report_of_the_plain_core() {
    let Some(plain) = plain() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    for (tool, args) in
        [("zstd", &["-q"][..]), ("lz4", &["-q", "-BD"]), ("lz4", &["-q", "-l"]), ("gzip", &["-1"]), ("xz", &["-0"])]
    {
        let Some(path) = packed_by(plain, directory.path(), tool, args) else { continue };
        // No file is left behind.
        let mut json = command();
        same(plain, &format!("{tool} {args:?}"), json.env("TMPDIR", directory.path()).arg("--json").arg(&path));
        let files = fs::read_dir(directory.path()).expect("the directory").count();
        fs::remove_file(&path).expect("the packed core");
        assert_eq!(files, 1, "{tool} left a file");
    }
    // Views and the history of such a core are those of the plain one.
    if let Some(path) = packed_by(plain, directory.path(), "gzip", &["-1"]) {
        for view in ["threads", "history"] {
            let shown = |path: &Path| texts(&bounded(command().arg(view).arg(path)));
            let (packed, original) = (shown(&path), shown(&plain.path));
            assert!(packed == original && !(packed.0 + &packed.1).is_empty(), "{view}: {}", original.1);
        }
    }
    // Two frames behind each other are one file.
    let bytes = fs::read(&plain.path).expect("the core");
    let (first, second) = bytes.split_at(bytes.len() / 3);
    let mut both = GzEncoder::new(Vec::new(), Compression::fast());
    both.write_all(first).expect("it is packed");
    let mut both = GzEncoder::new(both.finish().expect("it is packed"), Compression::fast());
    both.write_all(second).expect("it is packed");
    let path = directory.path().join("two");
    fs::write(&path, both.finish().expect("it is packed")).expect("a file");
    same(plain, "two members of gzip", command().arg("--json").arg(&path));
}

#[test]
fn standard_input_is_a_core() {
    let Some(plain) = plain() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let packed = packed_by(plain, directory.path(), "gzip", &["-1"]);
    for path in [Some(&plain.path), packed.as_ref()].into_iter().flatten() {
        let what = path.display().to_string();
        same(plain, &what, command().args(["--json", "-"]).stdin(File::open(path).expect("the core")));
        // The same through a pipe.
        let mut cat = Command::new("cat").arg(path).stdout(Stdio::piped()).spawn().expect("cat runs");
        same(plain, &format!("cat {what}"), command().args(["--json", "-"]).stdin(cat.stdout.take().expect("a pipe")));
        assert!(cat.wait().expect("its end").success());
    }
    let refused = |input: Stdio, words: &[&str]| {
        let (out, err, status) = texts(&bounded(command().arg("-").stdin(input)));
        assert_eq!((status, out.as_str()), (2, ""), "{err}");
        assert!(words.iter().all(|word| err.contains(word)), "{err}");
    };
    refused(Stdio::null(), &["standard input is empty", "remedy: "]);
    let mut echo = Command::new("echo").arg("no core").stdout(Stdio::piped()).spawn().expect("echo runs");
    refused(echo.stdout.take().expect("a pipe").into(), &["standard input: this is a text file", "remedy: "]);
    assert!(echo.wait().expect("its end").success());
}

/// Reports of apport as its problem_report.py writes them: first a header of gzip alone, then a line for each piece.
fn crash_report(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(bytes).expect("it is packed");
    let packed = packed.finish().expect("it is packed");
    let mut report =
        b"ProblemType: Crash\nArchitecture: amd64\nDate: Thu Jan  1 00:00:00 1970\nCoreDump: base64\n".to_vec();
    let (header, rest) = packed.split_at(10);
    for line in std::iter::once(header).chain(rest.chunks(300_000)) {
        report.extend_from_slice(format!(" {}\n", STANDARD.encode(line)).as_bytes());
    }
    report.extend_from_slice(b"ExecutablePath: /usr/bin/program\nProcStatus:\n Name:\tprogram\n");
    report
}

#[test]
fn a_crash_report_of_apport_holds_a_core() {
    let Some(plain) = plain() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str, bytes: &[u8]| {
        let path = directory.path().join(name);
        fs::write(&path, bytes).expect("a file");
        path
    };
    let report = crash_report(&fs::read(&plain.path).expect("the core"));
    same(plain, "apport", command().arg("--json").arg(file("program.crash", &report)));
    let refused = |path: &Path, word: &str| {
        let (out, err, status) = texts(&bounded(command().arg(path)));
        assert_eq!((status, out.as_str()), (2, ""), "{err}");
        assert!(err.contains(word) && err.contains("apport-unpack"), "{err}");
    };
    refused(&file("without", b"ProblemType: Crash\nDate: today\n"), "the report has no core");
    refused(&file("garbled", b"ProblemType: Crash\nCoreDump: base64\n !!!\n"), "Invalid");
    refused(&file("other", b"ProblemType: Crash\nCoreDump: base64\n QUJDREVGRw==\n"), "compressed in an unknown way");
}

#[test]
fn truncated_and_damaged_files_are_said_to_be_so() {
    let Some(plain) = plain() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    for (tool, args) in [("zstd", &["-q"][..]), ("lz4", &["-q"]), ("gzip", &["-1"]), ("xz", &["-0"])] {
        let Some(path) = packed_by(plain, directory.path(), tool, args) else { continue };
        let bytes = fs::read(&path).expect("the packed core");
        // gdb writes notes and threads at the start or at the end: with most of it gone, neither may be left.
        let cut = |length: usize| fs::write(&path, &bytes[..length]).expect("a cut file");
        cut(20);
        let (out, err, status) = texts(&bounded(command().arg(&path)));
        assert_eq!((status, out.as_str()), (2, ""), "{tool}: {err}");
        assert!(
            err.contains("cannot be unpacked after the first 0 bytes") && err.contains(&format!("({tool} -t)")),
            "{err}"
        );
        cut(bytes.len() / 4 * 3);
        let (out, err, status) = texts(&bounded(command().arg("--json").arg(&path)));
        match status {
            1 => {
                let report: Value = serde_json::from_str(&out).expect("JSON");
                assert!(
                    report["issues"].to_string().contains("cannot be unpacked after the first"),
                    "{tool}: {report}"
                );
            }
            2 => assert!(err.contains("cannot be unpacked after the first") && err.contains("remedy: copy"), "{err}"),
            other => panic!("{tool}: status {other}: {err}"),
        }
    }
}

/// A disk of 16 MiB; `None`, said on standard error, where none can be mounted. Unmounted when dropped.
struct SmallDisk {
    directory: tempfile::TempDir,
}

impl SmallDisk {
    fn mount() -> Option<SmallDisk> {
        let directory = tempfile::tempdir().expect("a directory");
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=16m", "tmpfs"]).arg(directory.path()).output();
        match mount {
            Ok(output) if output.status.success() => Some(SmallDisk { directory }),
            Ok(output) => {
                let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                Skip::because(format!("no file system can be mounted: {why}")).show();
                None
            }
            Err(error) => {
                Skip::because(format!("mount cannot be run: {error}")).show();
                None
            }
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.directory.path()).status();
    }
}

#[test]
fn a_full_disk_is_a_refusal_and_keeps_room() {
    let Some(disk) = SmallDisk::mount() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("packed");
    let mut random = Vec::new();
    File::open("/dev/urandom").expect("random bytes").take(20 << 20).read_to_end(&mut random).expect("random bytes");
    let mut packed = GzEncoder::new(File::create(&path).expect("a file"), Compression::fast());
    packed.write_all(&random).expect("it is packed");
    packed.finish().expect("it is packed");
    let (out, err, status) = texts(&bounded(command().env("TMPDIR", disk.directory.path()).arg(&path)));
    assert_eq!((status, out.as_str()), (2, ""), "{err}");
    assert!(err.contains("has no room for the core: 1") && err.contains("remedy: set TMPDIR to"), "{err}");
    assert!(err.contains("gunzip"), "{err}");
    // Nothing is left there, and zeros take no room at all.
    assert_eq!(fs::read_dir(disk.directory.path()).expect("the disk").count(), 0);
    let mut zeros = GzEncoder::new(File::create(&path).expect("a file"), Compression::fast());
    std::io::copy(&mut std::io::repeat(0).take(256 << 20), &mut zeros).expect("it is packed");
    zeros.finish().expect("it is packed");
    let (_, err, status) = texts(&bounded(command().env("TMPDIR", disk.directory.path()).arg(&path)));
    assert!(status == 2 && err.contains("neither a core file nor any other ELF file"), "{err}");
    let (_, err, status) = texts(&bounded(command().env("TMPDIR", "/none").arg(&path)));
    assert!(status == 2 && err.contains("no file can be made in /none") && err.contains("remedy: set TMPDIR"), "{err}");
}
