//! What the documentation shows as output of the command is what the command prints. `UPDATE_TRANSCRIPTS=1` writes it anew.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use test_programs::transcripts::{blocks, is_updated, words};
use test_programs::{Env, Launch, Opt, Runtime, Toolchain, build};

use crate::common::{bounded, command, texts};

/// Transcripts whose output is another at each run, or needs what not every machine has, and what checks them instead.
const ELSEWHERE: [(&str, &str, &str); 3] = [
    ("docs/top.md", "top --count 1", "times and order differ at each refresh: top.rs"),
    ("docs/python.md", "stacks", "wheels and a Python with debug information: python.rs, python_frames.rs"),
    ("docs/jobs.md", "merge --tree", "libraries of the system: jobs.rs"),
];

/// Those of the program of the demonstration: file and arguments.
const OF_THE_DEMO: [(&str, &str); 3] =
    [("docs/guide/hang.md", ""), ("docs/guide/hang.md", "stacks"), ("docs/guide/report.md", "threads")];

/// Those that other tests check with [`check`].
const BY_OTHERS: [(&str, &str); 2] = [("docs/jobs.md", "job"), ("README.md", "job")];

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
    let mut found = transcripts(&page).into_iter().filter(|transcript| transcript.arguments == arguments);
    let (Some(shown), None) = (found.next(), found.next()) else { panic!("{file}: not one `{arguments}`") };
    let printed: String = match is_part {
        true => printed.split_inclusive('\n').take(shown.output.lines().count()).collect(),
        false => printed.to_owned(),
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

#[test]
fn every_transcript_is_checked() {
    let root = path(".");
    let mut pages = vec![root.join("README.md")];
    for folder in ["docs", "docs/guide", "docs/internals"] {
        let files = fs::read_dir(root.join(folder)).expect(folder).map(|entry| entry.expect("a file").path());
        pages.extend(files.filter(|file| file.extension().is_some_and(|extension| extension == "md")));
    }
    let mut unchecked = Vec::new();
    let mut count = 0;
    for page in pages {
        let file = page.strip_prefix(&root).expect("a page below the root").to_str().expect("a plain path").to_owned();
        for transcript in transcripts(&fs::read_to_string(&page).expect("a page")) {
            count += 1;
            let is = |of: &str, arguments: &str| of == file && arguments == transcript.arguments;
            let is_checked = OF_THE_DEMO.iter().any(|(of, arguments)| is(of, arguments))
                || BY_OTHERS.iter().any(|(of, arguments)| is(of, arguments))
                || ELSEWHERE.iter().any(|(of, arguments, _)| is(of, arguments));
            if !is_checked {
                unchecked.push(format!("{file}: {}", transcript.arguments));
            }
        }
    }
    assert!(count >= OF_THE_DEMO.len() && unchecked.is_empty(), "{count}: {unchecked:?}");
}
