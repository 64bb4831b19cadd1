//! What the documentation shows as output of the command is what the command prints. `UPDATE_TRANSCRIPTS=1` writes it anew.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use test_programs::transcripts::{blocks, is_updated, words};
use test_programs::{Env, Launch, Opt, Runtime, Toolchain, build};

use crate::common::{bounded, command, texts};

/// Those of the program of the demonstration: file and arguments.
const OF_THE_DEMO: [(&str, &str); 4] = [
    ("docs/guide/hang.md", ""),
    ("docs/guide/hang.md", "stacks"),
    ("docs/guide/report.md", "threads"),
    ("docs/top.md", "top --count 2"),
];

/// Those that other tests check with [`check`] or [`check_nth`], and how many of these arguments a page has.
const BY_OTHERS: [(&str, &str, usize); 5] = [
    ("README.md", "job", 1),
    ("docs/jobs.md", "job", 1),
    ("docs/jobs.md", "merge --tree", 1),
    ("docs/python.md", "stacks", 2),
    ("docs/python.md", "", 1),
];

/// What sessions of debuggers begin with, which the tests of the plugins check.
const SESSIONS: [(&str, &str); 4] = [
    ("docs/gdb-plugin.md", "(gdb) "),
    ("docs/lldb-plugin.md", "(lldb) "),
    ("docs/editors.md", "gdb 16\n"),
    ("docs/editors.md", "LLDB 19\n"),
];

fn path(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file)
}

/// A block of a page that begins with a command after `$ `.
struct Transcript {
    /// Without the name of the program and the last word, which names the target.
    arguments: String,
    /// Where in the page the command and its output are.
    place: Range<usize>,
    output: String,
}

fn transcripts(page: &str) -> Vec<Transcript> {
    let blocks = blocks(page, "$ ompd-inspect ").into_iter().map(|place| {
        let (first, output) = page[place.clone()].split_once('\n').expect("a command and its output");
        let words: Vec<&str> = first.split(' ').skip(2).collect();
        let arguments = words.split_last().map(|(_, arguments)| arguments.join(" ")).unwrap_or_default();
        Transcript { arguments, output: output.to_owned(), place }
    });
    blocks.collect()
}

/// Checks the one transcript of a page with these arguments. `target` is what it names instead of the last word there. With
/// `is_part`, the page shows the first lines.
pub fn check(file: &str, arguments: &str, target: &str, printed: &str, is_part: bool) {
    let page = fs::read_to_string(path(file)).expect(file);
    let count = transcripts(&page).iter().filter(|transcript| transcript.arguments == arguments).count();
    assert_eq!(count, 1, "{file}: `{arguments}`");
    check_nth(file, (arguments, 0), target, printed, is_part);
}

/// As [`check`], for one of several transcripts with the same arguments, counted from 0.
pub fn check_nth(file: &str, (arguments, nth): (&str, usize), target: &str, printed: &str, is_part: bool) {
    let page = fs::read_to_string(path(file)).expect(file);
    let mut found = transcripts(&page).into_iter().filter(|transcript| transcript.arguments == arguments);
    let shown = found.nth(nth).unwrap_or_else(|| panic!("{file}: no `{arguments}` with number {nth}"));
    let printed: String = match is_part {
        true => printed.split_inclusive('\n').take(shown.output.lines().count()).collect(),
        false => format!("{}\n", printed.trim_end()),
    };
    if is_updated() {
        let command = ["ompd-inspect", arguments, target].into_iter().filter(|word| !word.is_empty());
        let block = format!("$ {}\n{printed}", command.collect::<Vec<_>>().join(" "));
        let page = [&page[..shown.place.start], &block, &page[shown.place.end..]].concat();
        fs::write(path(file), page).expect(file);
        return;
    }
    let (mut shown, mut printed) = (words(&shown.output), words(&printed));
    if is_part {
        // Longer numbers may have moved words to the next line.
        let least = shown.len().min(printed.len());
        assert!(least > 0 && shown.len().abs_diff(printed.len()) < 8, "{file}: {shown:?}, and not {printed:?}");
        shown.truncate(least);
        printed.truncate(least);
    }
    assert_eq!(shown, printed, "{file}, {arguments}: UPDATE_TRANSCRIPTS=1 writes what is printed now");
}

#[test]
fn transcripts_of_the_demo_are_current() {
    let executable = build("hang", Toolchain::Gcc, Opt::O2, &[]).expect("the program builds");
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("hang");
    fs::copy(&executable.path, &path).expect("a copy with the name that readers know");
    let executable = test_programs::Executable { path, ..executable };
    let running = Launch::new(&executable, Runtime::Libgomp, Env::Settled).start_hang().expect("the program hangs");
    let pid = running.pid.to_string();
    for (file, arguments) in OF_THE_DEMO {
        let words = arguments.split_whitespace();
        let (printed, err, status) = texts(&bounded(command().args(words).arg(&pid)));
        assert_eq!((err.as_str(), status), ("", 0), "{arguments}: {printed}");
        check(file, arguments, &pid, &printed, false);
    }
    check_picture(&pid);
}

/// The picture in the README: a terminal with the report.
const PICTURE: &str = "docs/hang.svg";

/// The picture has the words of the report.
fn check_picture(pid: &str) {
    let (printed, err, status) = texts(&bounded(command().args(["--color", "always", pid])));
    assert_eq!((err.as_str(), status), ("", 0), "{printed}");
    let report = format!("$ ompd-inspect {pid}\n{printed}");
    let svg = anstyle_svg::Term::new().render_svg(&report);
    if is_updated() {
        fs::write(path(PICTURE), svg).expect(PICTURE);
        return;
    }
    let shown = fs::read_to_string(path(PICTURE)).expect(PICTURE);
    let [shown, printed] = [shown, svg].map(|svg| words(&text_of(&svg)));
    assert_eq!(shown, printed, "{PICTURE}: UPDATE_TRANSCRIPTS=1 draws what is printed now");
}

/// The text between the tags of a picture, below its styles.
fn text_of(svg: &str) -> String {
    let (_, drawn) = svg.split_once("</style>").expect("styles");
    let texts = drawn.split('<').filter_map(|tag| tag.split_once('>')).map(|(_, text)| text);
    texts.collect()
}

/// Blocks of a page that have no language and begin with nothing that a test compares.
fn unchecked(file: &str, page: &str) -> Vec<String> {
    let outputs = blocks(page, "").into_iter().map(|place| &page[place]);
    let is_session = |block: &str| SESSIONS.iter().any(|(of, begin)| *of == file && block.starts_with(begin));
    let others = outputs.filter(|block| !block.starts_with("$ ompd-inspect ") && !is_session(block));
    let lines = others.map(|block| format!("{file}: {}", block.lines().next().unwrap_or_default()));
    lines.chain(unchecked_commands(file, page)).collect()
}

/// Transcripts of the command that no test checks.
fn unchecked_commands(file: &str, page: &str) -> Vec<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for transcript in transcripts(page) {
        *counts.entry(transcript.arguments).or_default() += 1;
    }
    let is_checked = |arguments: &str, count: usize| {
        OF_THE_DEMO.iter().any(|(of, those)| (*of, *those, 1) == (file, arguments, count))
            || BY_OTHERS.contains(&(file, arguments, count))
    };
    let unchecked = counts.into_iter().filter(|(arguments, count)| !is_checked(arguments, *count));
    unchecked.map(|(arguments, count)| format!("{file}: {count} of `{arguments}`")).collect()
}

/// A block that shows output has no language, and a test compares it with a run. Any other block names its language.
#[test]
fn every_block_of_output_is_checked() {
    let root = path(".");
    let mut pages = vec![root.join("README.md"), root.join("CONTRIBUTING.md"), root.join("SECURITY.md")];
    for folder in ["docs", "docs/guide", "docs/internals", "debugger-plugin/openmp_core"] {
        let files = fs::read_dir(root.join(folder)).expect(folder).map(|entry| entry.expect("a file").path());
        pages.extend(files.filter(|file| file.extension().is_some_and(|extension| extension == "md")));
    }
    let mut wrong = Vec::new();
    let mut count = 0;
    for page in pages {
        let file = page.strip_prefix(&root).expect("a page below the root").to_str().expect("a plain path").to_owned();
        let text = fs::read_to_string(&page).expect("a page");
        count += transcripts(&text).len();
        wrong.extend(unchecked(&file, &text));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let known = OF_THE_DEMO.len() + BY_OTHERS.iter().map(|(.., count)| count).sum::<usize>();
    assert_eq!(count, known, "transcripts of the command");
}

#[test]
fn output_that_no_test_compares_is_found() {
    let page = "# A page\n\n```sh\nompd-inspect 1\n```\n\n```\nDEADLOCK  of nobody\n```\n\n```\n$ ompd-inspect waits 1\nx\n```\n";
    assert_eq!(unchecked("docs/top.md", page), ["docs/top.md: DEADLOCK  of nobody", "docs/top.md: 1 of `waits`"]);
    assert_eq!(unchecked("docs/top.md", "```\n$ ompd-inspect top --count 2 1\nx\n```\n"), [""; 0]);
}
