//! `ompd-inspect merge`: reports of the ranks of a job as one.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anstream::{AutoStream, ColorChoice};
use ompd_jobs::{Failure as Unread, Members, Merged, read, text};
use ompd_report::escape::escape;
use ompd_runtime::waits_for::Certainty;

use crate::args::{MergeArgs, Options};
use crate::inspecting::{COMPLETE, FAILED, NOT_INSPECTED, PARTIAL};
use crate::many;
use crate::output::{Failure, terminal_width, write_all};

/// Bytes of one document that are read.
const MOST_BYTES: u64 = 1 << 30;

/// Reads the documents and shows what they say together. What cannot be read is named, and the rest counts.
///
/// # Errors
/// Nothing could be read, or written.
pub fn merge(args: &MergeArgs, options: &Options, color: ColorChoice) -> Result<u8, Failure> {
    let mut merged = Merged::default();
    let mut count = 0_usize;
    for name in &args.reports {
        let document = document(name).and_then(|text| read(name, &text).map_err(|error| error.to_string()));
        match document {
            Ok(other) => {
                merged.merge(other);
                count += 1;
            }
            Err(reason) => {
                let failure = Unread { target: name.clone(), reason };
                merged.failures.insert(failure, Members::default());
            }
        }
    }
    if count == 0 {
        let first = merged.failures.keys().next().map(|failure| format!("{}: {}", failure.target, failure.reason));
        return Err(Failure::with_remedy(
            format_args!("no report could be read: {}", escape(&first.unwrap_or_default())),
            "make reports with ompd-inspect --json PID > FILE",
        ));
    }
    show(&merged, options, color)
}

/// Shows a merged report in the form that the options ask for. The exit status is that of the worst of it.
///
/// # Errors
/// It cannot be written.
pub fn show(merged: &Merged, options: &Options, color: ColorChoice) -> Result<u8, Failure> {
    let shown = match options.json {
        true => many::document(merged)?,
        false => text::page(merged, terminal_width()),
    };
    let written = match options.json {
        true => write_all(&mut io::stdout().lock(), &shown),
        false => write_all(&mut AutoStream::new(io::stdout(), color), &shown),
    };
    written.map_err(|error| Failure::new(format!("cannot write to standard output: {error}")))?;
    let has = |word: &str| merged.answers.keys().any(|answer| answer.word == word);
    let verdicts =
        [("DEADLOCK", Certainty::Deadlock), ("SUSPECT", Certainty::Suspect), ("WAITING", Certainty::Waiting)];
    let worst = verdicts.into_iter().find(|(word, _)| has(word)).map(|(_, certainty)| certainty);
    if options.fail_on.zip(worst).is_some_and(|(on, worst)| on.includes(worst)) {
        return Ok(FAILED);
    }
    let is_whole = merged.failures.is_empty() && merged.sizes.keys().all(|job| merged.absent(job).is_empty());
    Ok(match (is_whole, merged.inspected.is_empty()) {
        (true, _) => COMPLETE,
        (false, false) => PARTIAL,
        (false, true) => NOT_INSPECTED,
    })
}

fn document(name: &str) -> Result<Vec<u8>, String> {
    let mut text = Vec::new();
    let read = match name {
        "-" => io::stdin().lock().take(MOST_BYTES + 1).read_to_end(&mut text),
        _ => File::open(Path::new(name)).and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut text)),
    };
    read.map_err(|error| error.to_string())?;
    match text.len() as u64 > MOST_BYTES {
        true => Err("it is larger than 1 GiB".to_owned()),
        false => Ok(text),
    }
}
