//! What does not depend on a process: help, version, manual pages, completions, and where a report goes.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use test_programs::{Env, Launch, Opt, Running, Runtime, Skip, Toolchain, build};

use crate::common::{self, bounded, command, texts};
use crate::top::Screen;

fn successful(args: &[&str]) -> String {
    let (out, err, status) = texts(&bounded(command().args(args)));
    assert_eq!((err.as_str(), status), ("", 0), "{args:?}");
    out
}

#[test]
fn help_of_a_command_by_each_of_its_ways() {
    let short = successful(&["top", "--help"]);
    assert_eq!(successful(&["top", "-h"]), short);
    let all = successful(&["top", "--help-all"]);
    assert_eq!(successful(&["help", "top"]), all);
    for (option, is_short) in [("--count", true), ("--json", true), ("--proc-root", false), ("--lib-root", false)] {
        assert_eq!((short.contains(option), all.contains(option)), (is_short, true), "{option}");
    }
}

#[test]
fn help_fits_a_screen() {
    for args in [&["--help"][..], &["threads", "--help"], &["stacks", "--help"], &["job", "--help"], &["top", "--help"]]
    {
        for (columns, rows) in [(80, 60), (200, 55)] {
            let (out, err, status) = texts(&bounded(command().env("COLUMNS", columns.to_string()).args(args)));
            assert_eq!((err.as_str(), status), ("", 0), "{args:?}");
            assert!(out.lines().count() <= rows, "{args:?}: {out}");
            let longest = out.lines().max_by_key(|line| line.len()).expect("lines");
            assert!(longest.len() <= columns, "{args:?} at {columns}: {longest}");
            // Examples are laid out by hand: one that is broken across lines cannot be copied.
            let examples =
                out.lines().skip_while(|line| *line != "Examples:").skip(1).take_while(|line| !line.is_empty());
            let broken: Vec<&str> = examples.filter(|line| !line.starts_with("  ompd-inspect")).collect();
            assert!(broken.is_empty(), "{args:?}: {broken:?}");
        }
    }
}

#[test]
fn version_names_the_commit() {
    let version = successful(&["--version"]);
    let rest = version.strip_prefix(&format!("ompd-inspect {}", env!("CARGO_PKG_VERSION"))).expect("name and version");
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).current_dir(env!("CARGO_MANIFEST_DIR")).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    if git(&["ls-files", "--error-unmatch", "build.rs"]).is_none() {
        Skip::because("no commit to compare with: the sources are not in a git checkout").show();
        return;
    }
    let commit = rest.strip_prefix(" (commit ").and_then(|rest| rest.strip_suffix(")\n")).expect("a commit");
    // There may be a newer commit since it was built.
    let named = git(&["rev-parse", "--verify", &format!("{commit}^{{commit}}")]).expect("a commit of the checkout");
    assert_eq!((commit.len(), &named[..12]), (12, commit));
}

#[test]
fn manual_pages_have_every_command_and_option() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().to_str().expect("a plain path");
    assert_eq!(successful(&["manual", path]), "");
    let page = |name: &str| {
        let path = directory.path().join("man1").join(format!("{name}.1"));
        // An option is written \-\-like\-this.
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}")).replace("\\-", "-")
    };
    let main = page("ompd-inspect");
    assert!(main.contains("Where procfs is mounted") && page("ompd-inspect-job").contains("Where procfs is mounted"));
    // Examples keep their lines.
    assert!(
        main.contains("\n.SH EXAMPLES\n.nf\nompd-inspect 4711 ")
            && main.contains("\n.SH \"EXIT STATUS\"\n0 all was read")
    );
    assert!(page("ompd-inspect-top").contains("\n.SH NOTES\nKeys on a terminal") && !main.contains(".SH EXTRA"));
    let help = successful(&["--help-all"]);
    let words: Vec<&str> = help.split_whitespace().filter(|word| word.starts_with("--") && word.len() > 2).collect();
    assert!(words.len() > 20, "{help}");
    for option in words {
        let option = option.trim_end_matches(|c: char| !c.is_ascii_lowercase());
        assert!(main.contains(option), "{option} is not in the page");
    }
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let commands: Vec<&str> = commands.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(commands.contains(&"threads") && commands.contains(&"help"), "{commands:?}");
    for name in commands.into_iter().filter(|name| *name != "help") {
        assert!(page(&format!("ompd-inspect-{name}")).contains(".SH OPTIONS"), "{name}");
    }
    for script in ["ompd-inspect.bash", "_ompd-inspect", "ompd-inspect.fish"] {
        assert!(
            directory.path().join("completions").join(script).metadata().is_ok_and(|meta| meta.len() > 0),
            "{script}"
        );
    }
}

/// The completions that bash offers for the last of `words`.
fn completed(script: &Path, words: &[&str]) -> Vec<String> {
    // The function is called by the name that bash has learned.
    let line = "source \"$1\"; shift; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); \
                by=$(complete -p ompd-inspect); by=${by##*-F }; \
                \"${by%% *}\" ompd-inspect \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD - 1]}\"; \
                printf '%s\\n' \"${COMPREPLY[@]}\"";
    let output = Command::new("bash").args(["-c", line, "bash"]).arg(script).args(words).output().expect("bash");
    assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_and_options() {
    let directory = tempfile::tempdir().expect("a directory");
    let script = directory.path().join("ompd-inspect.bash");
    successful(&["completions", "bash", "-o", script.to_str().expect("a plain path")]);
    assert_eq!(completed(&script, &["ompd-inspect", "thr"]), ["threads"]);
    assert_eq!(completed(&script, &["ompd-inspect", "threads", "--max"]), ["--max-pause"]);
    assert_eq!(completed(&script, &["ompd-inspect", "--fail-on", "dea"]), ["deadlock"]);
    let commands = completed(&script, &["ompd-inspect", ""]);
    assert!(!commands.iter().any(|word| word == "job-node" || word == "manual"), "{commands:?}");
    // Without a word, bash offers files.
    for command in ["stacks", "history", "merge", "run"] {
        assert_eq!(completed(&script, &["ompd-inspect", command, ""]), [""], "{command}");
        let options = completed(&script, &["ompd-inspect", command, "-"]);
        assert!(options.len() > 3 && options.iter().all(|word| word.starts_with('-')), "{command}: {options:?}");
    }
    assert_eq!(completed(&script, &["ompd-inspect", "completions", "z"]), ["zsh"]);
    // No word stands for an argument.
    for command in ["threads", "top", "job", "merge", "run", "completions"] {
        let words = completed(&script, &["ompd-inspect", command, ""]);
        assert!(!words.iter().any(|word| word.contains(['[', '<'])), "{command}: {words:?}");
    }
}

#[test]
fn report_in_a_file_is_that_of_standard_output() {
    let executable = build("barrier_missing", Toolchain::Gcc, Opt::O2, &[]).expect("the program builds");
    let running = Running::start(&executable, Runtime::Libgomp, Env::Settled).expect("the program starts");
    let pid = running.pid.to_string();
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).to_str().expect("a plain path").to_owned();
    let report = path("report");
    for args in [&["icvs"][..], &["icvs", "--json"]] {
        let shown = successful(&[args, &[&pid, "--output", "-"]].concat());
        assert_eq!(successful(&[args, &[&pid, "-o", &report]].concat()), "");
        // Times differ from look to look.
        let known = |text: &str| text.split_whitespace().filter(|w| w.contains("nthreads-var")).count();
        let written = fs::read_to_string(&report).expect("the report");
        assert!(known(&written) > 0 && known(&written) == known(&shown), "{written}");
    }
    assert_eq!(fs::metadata(&report).expect("the report").permissions().mode() & 0o111, 0);
    // No colours, unless they are asked for by name.
    let forced = |when: &str| {
        successful(&["-o", &report, "--color", when, &pid]);
        fs::read_to_string(&report).expect("the report").contains('\u{1b}')
    };
    assert_eq!((forced("auto"), forced("always")), (false, true));
    // A link stays a link.
    let link = path("link");
    symlink("report", &link).expect("a link");
    successful(&["-o", &link, "threads", &pid]);
    assert!(fs::symlink_metadata(&link).expect("the link").is_symlink());
    let before = fs::read_to_string(&report).expect("the report");
    assert!(before.contains("barrier") && !before.contains('\u{1b}'), "{before}");
    successful(&["-o", "/dev/null", &pid]);
    // What was there stays if there is no report, and nothing else is left.
    for args in [&["-o", &*report, "/none/core"][..], &["-o", &report, "merge", "/none/report"]] {
        let (out, _, status) = texts(&bounded(command().args(args)));
        assert_eq!((out.as_str(), status), ("", 2), "{args:?}");
        assert_eq!(fs::read_to_string(&report).expect("the report"), before);
    }
    for wrong in ["/none/report", "/"] {
        let (out, err, status) = texts(&bounded(command().args(["-o", wrong, &pid])));
        assert_eq!((out.as_str(), status), ("", 2), "{err}");
        assert!(err.contains("cannot be written") && err.contains("--output"), "{err}");
    }
    let mut left: Vec<String> = fs::read_dir(directory.path())
        .expect("the directory")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    left.sort();
    assert_eq!(left, ["link", "report"]);
    running.release().expect("the program's end");
}

#[test]
fn commands_without_a_single_report_refuse_a_file_for_it() {
    for args in [&["top", "-o", "x", "1"][..], &["job", "--top", "-o", "x", "1"], &["run", "-o", "x", "true"]] {
        let (out, err, status) = texts(&bounded(command().args(args)));
        assert!(out.is_empty() && status != 0, "{args:?}: {out}");
        assert!(err.contains("no option --output\n  remedy: "), "{args:?}: {err}");
    }
}

/// What hangs and why is on the page, drawn and as text, and what runs in a browser is not made of the process.
#[test]
fn page_for_a_browser_has_every_view() {
    let executable = build("hangs/lock_cycle", Toolchain::Gcc, Opt::O2, &[]).expect("the program builds");
    let running = Launch::new(&executable, Runtime::Libgomp, Env::Settled).start_hanging().expect("the program hangs");
    let (pid, directory) = (running.pid.to_string(), tempfile::tempdir().expect("a directory"));
    let file = directory.path().join("hang.html");
    let (out, err, status) = texts(&bounded(command().args(["--html", "-o"]).arg(&file).arg(&pid)));
    assert_eq!((out.as_str(), err.as_str(), status), ("", "", 0));
    let page = fs::read_to_string(&file).expect("the page");
    for part in [
        "<b>DEADLOCK</b>",
        "each probably holds",
        "team 0",
        "b_first_body",
        "lock_cycle.c:",
        "nthreads-var",
        "How it was read",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert_eq!(page.matches("<script").count(), 2, "{page}");
    // Graphviz draws what waits for what.
    if ompd_process::programs::find("dot").is_some() {
        assert!(page.contains("<svg") && page.contains("end of the region of team 0"), "{page}");
    } else {
        Skip::because("no picture on the page: there is no Graphviz").show();
    }
    let without = command().env("PATH", directory.path()).args(["--html", &pid]).output().expect("its start");
    let (page, err, status) = texts(&without);
    assert!(
        status == 0
            && err.is_empty()
            && page.contains("No picture: there is no Graphviz")
            && page.ends_with("</html>\n"),
        "{err}{page}"
    );
    // What moved between two looks is on it too.
    let (page, _, _) = texts(&bounded(command().args(["--html", "--samples", "2", "--interval", "50ms", &pid])));
    assert!(page.contains("PROGRESS"), "{page}");
    for args in [&["--html", "threads", &pid][..], &["--html", &pid, &pid, "1"], &["--html", "--json", &pid]] {
        let (out, _, status) = texts(&bounded(command().args(args)));
        assert!(out.is_empty() && status == 2, "{args:?}: {out}");
    }
    progress_is_on_a_terminal_and_does_not_stay(&pid);
}

/// What takes longer than a second says so, and nothing of that is left above the report.
fn progress_is_on_a_terminal_and_does_not_stay(pid: &str) {
    let two_looks = ["--samples", "2", "--interval", "2s"];
    for (args, line) in [
        ([&two_looks[..], &[pid]].concat(), format!("ompd-inspect: inspecting {pid} (1s)")),
        ([&two_looks[..], &[pid, "0"]].concat(), "ompd-inspect: inspecting 2 processes: 0 are done (1s)".to_owned()),
    ] {
        let mut screen = Screen::of(60, 80, &args);
        screen.await_all(&[&line]);
        let (_, shown) = screen.end();
        assert!(shown.contains("DEADLOCK") && !shown.contains("(1s)"), "{shown}");
        let (out, err, _) = texts(&bounded(command().args(&args)));
        assert!(out.contains("DEADLOCK") && err.is_empty(), "{err}");
    }
}

/// Runs the program under a name and with arguments that say whose it is.
#[test]
fn redacted_report_says_nothing_of_its_user() {
    let mut executable = build("barrier_missing", Toolchain::Gcc, Opt::O2, &[]).expect("the program builds");
    let sources = format!("{}/../test-programs/", env!("CARGO_MANIFEST_DIR"));
    let sources = fs::canonicalize(sources).expect("the programs").to_str().expect("a plain path").to_owned();
    // A name that no rule for paths in sentences expects.
    let place = tempfile::Builder::new().prefix("Secret Dir, (zq): x").tempdir().expect("a directory");
    let copy = place.path().join("barrier missing");
    fs::copy(&executable.path, &copy).expect("a copy");
    executable.path = copy;
    let running = Launch::new(&executable, Runtime::Libgomp, Env::Settled)
        .argument("--token=hunter2")
        .variable("SLURM_PROCID", "0")
        .variable("SLURM_NTASKS", "1")
        .variable("SLURM_JOB_ID", "4711")
        .variable("SLURM_STEP_ID", "0")
        .variable("SLURMD_NODENAME", "login7");
    let running = running.start().expect("the program starts");
    let pid = running.pid.to_string();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("the name of the host");
    let secrets = ["hunter2", "/Secret Dir, (zq)", "zq", &sources, host.trim(), "login7", "zappa"];
    let shown = |args: &[&str]| {
        let output = bounded(command().env("USER", "zappa").args(args).args(["-v", &pid]));
        let (out, err, _) = texts(&output);
        assert!(!out.is_empty(), "{args:?}: {err}");
        out
    };
    let is_in = |secret: &str, text: &str| match secret.starts_with('/') {
        true => text.contains(secret),
        // A short name may be a part of other words.
        false => text.split(|c: char| !c.is_alphanumeric() && c != '-').any(|word| word == secret),
    };
    let found = |text: &str| secrets.iter().filter(|secret| is_in(secret, text)).copied().collect::<Vec<_>>();
    for view in [
        &[][..],
        &["--json"],
        &["--html"],
        &["doctor"],
        &["stacks"],
        &["stacks", "--folded"],
        &["threads"],
        &["waits", "--dot"],
    ] {
        let text = shown(&[view, &["--redact"]].concat());
        assert!(found(&text).is_empty(), "{view:?}: {:?} in {text}", found(&text));
        assert!(text.contains("barrier") || view.len() > 1, "{view:?}: {text}");
    }
    // It is there without.
    let there = ["/Secret Dir, (zq)", "zq", &sources, "login7"];
    assert_eq!(found(&shown(&["--json"])), there);
    assert_eq!(found(&shown(&["--json", "--arguments"])), [&["hunter2"], &there[..]].concat());
    let called = common::json(&["threads", &pid]).0["process"]["command"].clone();
    assert_eq!(called, executable.path.to_str().expect("a plain path"));
    let missing = place.path().join("core");
    let (_, err, _) = texts(&bounded(command().args(["--redact"]).arg(&missing)));
    assert!(err.contains("core: No such file") && found(&err).is_empty(), "{err}");
    let svg = shown(&["stacks", "--svg", "--redact"]);
    assert!(svg.contains("</title>") && svg.contains("http://www.w3.org/2000/svg"), "{svg}");
    let (_, err, status) = texts(&bounded(command().args(["merge", "--redact", "report"])));
    assert!(status == 2 && err.contains("remedy: "), "{err}");
    running.release().expect("the program's end");
}
