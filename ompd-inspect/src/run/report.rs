//! The report on a program that hangs, or whose time is over.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use ompd_inspection::Inspection;
use ompd_process::live::listing::ProcessEntry;
use ompd_report::escape::escape;
use ompd_report::text::View;
use tempfile::NamedTempFile;

use crate::args::{FailOn, Options};
use crate::inspecting::Inspecting;
use crate::many::{Collected, Form, Target};
use crate::output::Failure;

/// Why there is a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occasion {
    /// A verdict says that the program hangs.
    Hang,
    /// Its time is over.
    Time,
}

/// A report.
#[derive(Debug)]
pub struct Reported {
    /// Why there is one.
    pub occasion: Occasion,
    /// For people.
    pub text: String,
    /// For programs.
    pub json: String,
}

/// Inspects the processes that are due, and if one of them hangs, the others of the family too. If the time is over all are
/// inspected. `None`: nothing hangs.
pub fn inspect(
    family: &[ProcessEntry],
    due: &[i32],
    occasion: Occasion,
    hangs: FailOn,
    inspecting: &Inspecting<'_>,
    options: &Options,
) -> Option<Reported> {
    let inspect = |process: &ProcessEntry| inspecting.inspect(&process.pid.to_string());
    let is_due = |process: &&ProcessEntry| due.contains(&process.pid);
    let mut outcomes: Vec<(i32, Result<Inspection, Failure>)> =
        family.iter().filter(is_due).map(|process| (process.pid, inspect(process))).collect();
    let has_hang = |inspection: &Inspection| inspection.worst().is_some_and(|worst| hangs.includes(worst));
    let hang = outcomes.iter().any(|(_, outcome)| outcome.as_ref().is_ok_and(has_hang));
    let occasion = match occasion {
        _ if hang => Occasion::Hang,
        Occasion::Time => Occasion::Time,
        Occasion::Hang => return None,
    };
    let is_single = family.len() == 1;
    let form = |json| Form { view: View::Summary, json, width: None };
    let options = Options { children: true, ..options.clone() };
    let (mut text, mut json) = (Collected::new(&options, form(false)), Collected::new(&options, form(true)));
    for process in family {
        let done = outcomes.iter().position(|(pid, _)| *pid == process.pid).map(|at| outcomes.swap_remove(at).1);
        let outcome = done.unwrap_or_else(|| inspect(process));
        let is_first = family.first().is_some_and(|first| first.pid == process.pid);
        let target = Target { name: process.pid.to_string(), parent: (!is_first).then_some(process.parent) };
        text.add(&target, outcome.as_ref());
        json.add(&target, outcome.as_ref());
    }
    let shown = |collected: Collected<'_>| match collected.finish() {
        Ok(reports) => reports.shown,
        Err(failure) => format!("ompd-inspect: {failure}\n"),
    };
    let text = if is_single { text.sections() } else { shown(text) };
    Some(Reported { occasion, text, json: shown(json) })
}

/// Where the report goes for programs. It is clear before the program starts that it can be written.
#[derive(Debug)]
pub enum OnHang {
    /// Nowhere.
    Nowhere,
    /// To a file, which is there as a whole or not at all.
    File {
        /// Its name.
        path: PathBuf,
        /// What takes its place.
        new: Option<NamedTempFile>,
    },
    /// To something that is no file, such as a pipe.
    Other {
        /// Its name.
        path: PathBuf,
    },
}

impl OnHang {
    /// Checks that the report can be written.
    ///
    /// # Errors
    /// It cannot, and why.
    pub fn prepare(path: Option<&Path>) -> Result<OnHang, Failure> {
        let Some(path) = path.map(Path::to_owned) else { return Ok(OnHang::Nowhere) };
        if path.metadata().is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
            return Ok(OnHang::Other { path });
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let new = match path.is_dir() {
            true => Err(io::ErrorKind::IsADirectory.into()),
            false => tempfile::Builder::new()
                .prefix(".ompd-inspect-")
                .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666))
                .tempfile_in(folder),
        };
        match new {
            Ok(new) => Ok(OnHang::File { path, new: Some(new) }),
            Err(error) => Err(cannot_write(&path, &error)),
        }
    }

    /// Writes it.
    ///
    /// # Errors
    /// It cannot be written, and why.
    pub fn write(&mut self, report: &str) -> Result<(), Failure> {
        match self {
            OnHang::Nowhere => Ok(()),
            OnHang::Other { path } => File::options()
                .write(true)
                .custom_flags(libc::O_NOCTTY)
                .open(&path)
                .and_then(|mut file| file.write_all(report.as_bytes()))
                .map_err(|error| cannot_write(path, &error)),
            OnHang::File { path, new } => {
                let Some(mut new) = new.take() else { return Ok(()) };
                let written = new.write_all(report.as_bytes()).and_then(|()| new.flush());
                let written = written.and_then(|()| new.persist(&path).map(drop).map_err(|error| error.error));
                written.map_err(|error| cannot_write(path, &error))
            }
        }
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::with_remedy(
        format_args!("{}: the report cannot be written: {error}", escape(&path.display().to_string())),
        "give --on-hang a file in a directory that may be written",
    )
}
