//! `ompd-inspect merge`: reports of the ranks of a job as one.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use anstream::ColorChoice;
use ompd_jobs::{Documents, Merged, Process, html, read, text, tree};
use ompd_report::escape::{self, escape};
use ompd_runtime::waits_for::Certainty;

use crate::args::{MergeArgs, MergeForm, Options};
use crate::graphviz;
use crate::inspecting::{COMPLETE, FAILED, NOT_INSPECTED, PARTIAL};
use crate::output::{Failure, Output};
use crate::progress::Progress;

/// Bytes that are read at a time.
const BUFFER: usize = 1 << 18;
/// Files that are named if nothing could be read.
const NAMED: usize = 4;

/// Reads the documents and shows what they say together. What cannot be read is named, and the rest counts.
///
/// # Errors
/// Nothing could be read, or written.
pub fn merge(args: &MergeArgs, options: &Options, color: ColorChoice) -> Result<u8, Failure> {
    let output = options.output()?;
    let mut all = Collected { files: (args.form.html && !options.json).then(BTreeMap::new), ..Collected::default() };
    let progress = Progress::of("reading reports");
    for name in &args.reports {
        progress.at(|| format!("{} are read", all.count));
        match name.as_str() {
            "-" => all.add("standard input", io::stdin().lock(), false),
            _ => match File::open(Path::new(name)) {
                Ok(file) => all.add(name, BufReader::with_capacity(BUFFER, file), true),
                Err(error) => all.merged.add_failure(name, &error.to_string()),
            },
        }
    }
    drop(progress);
    let Collected { merged, count, files } = all;
    if count == 0 {
        // Of a file that has no reports each line is one.
        let first = merged.failures.keys().next().map(|failure| escape(&failure.reason));
        let names: Vec<String> = args.reports.iter().take(NAMED).map(|name| escape(name)).collect();
        let more = if args.reports.len() > NAMED { " and others" } else { "" };
        return Err(Failure::with_remedy(
            format_args!("no report could be read: {}{more}: {}", names.join(", "), first.unwrap_or_default()),
            "make reports with ompd-inspect --json PID > FILE",
        ));
    }
    show(&merged, &args.form, &files.unwrap_or_default(), options, output, color)
}

/// Shows a merged report in the form that the options ask for. The exit status is that of the worst of it. `files`: those that have
/// the reports of processes.
///
/// # Errors
/// It cannot be written.
pub fn show(
    merged: &Merged,
    form: &MergeForm,
    files: &BTreeMap<Process, String>,
    options: &Options,
    output: Output,
    color: ColorChoice,
) -> Result<u8, Failure> {
    if options.json {
        output.document(&document(merged)?)?;
    } else if form.html {
        output.document(&html::page(merged, files))?;
    } else {
        let shown = match form {
            MergeForm { tree: true, .. } => tree::text(merged, output.width()),
            MergeForm { dot: true, .. } => tree::dot(merged),
            MergeForm { svg: true, .. } => graphviz::svg(&tree::dot(merged)).map_err(Failure::new)?,
            _ => text::page(merged, output.width()),
        };
        output.text(&shown, color)?;
    }
    let has = |word: &str| merged.answers.keys().any(|answer| answer.word == word);
    let verdicts =
        [("DEADLOCK", Certainty::Deadlock), ("SUSPECT", Certainty::Suspect), ("WAITING", Certainty::Waiting)];
    let worst = verdicts.into_iter().find(|(word, _)| has(word)).map(|(_, certainty)| certainty);
    if options.fail_on.zip(worst).is_some_and(|(on, worst)| on.includes(worst)) {
        return Ok(FAILED);
    }
    Ok(match (merged.failures.is_empty(), merged.inspected.is_empty()) {
        (true, _) => COMPLETE,
        (false, false) => PARTIAL,
        (false, true) => NOT_INSPECTED,
    })
}

/// The report as one line: lines of several programs that write to one pipe do not mix.
///
/// # Errors
/// It cannot be made.
pub fn document(merged: &Merged) -> Result<String, Failure> {
    let text =
        serde_json::to_string(merged).map_err(|error| Failure::new(format!("cannot write the report: {error}")))?;
    Ok(escape::json(&(text + "\n")).into_owned())
}

/// What was read up to now.
#[derive(Default)]
struct Collected {
    merged: Merged,
    /// Documents that could be read.
    count: usize,
    /// The file that has the report of a process, if that is wanted.
    files: Option<BTreeMap<Process, String>>,
}

impl Collected {
    /// Adds the documents of a stream, each when it is there.
    fn add(&mut self, name: &str, stream: impl BufRead, is_file: bool) {
        let mut documents = Documents::new(stream);
        for number in 1_usize.. {
            let source = if number == 1 { name.to_owned() } else { format!("{name}, document {number}") };
            match documents.read_next() {
                Ok(Some(text)) => match read(&source, text) {
                    Ok(other) => {
                        if let Some(files) = self.files.as_mut().filter(|_| is_file) {
                            // Only the first process of an answer is linked to.
                            let first = other.answers.values().filter_map(|members| members.first());
                            files.extend(first.map(|process| (process.clone(), name.to_owned())));
                        }
                        self.merged.merge(other);
                        self.count += 1;
                    }
                    Err(error) => self.merged.add_failure(&source, &error.to_string()),
                },
                Ok(None) if number == 1 => return self.merged.add_failure(name, "no report: it is empty"),
                Ok(None) => return,
                Err(error) => return self.merged.add_failure(&source, &error.to_string()),
            }
        }
    }
}
