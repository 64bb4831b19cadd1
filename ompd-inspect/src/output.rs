//! What is written, and why nothing was.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::{File, Permissions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anstream::adapter::strip_str;
use anstream::{AutoStream, ColorChoice};
use ompd_process::OpenError;
use ompd_report::escape::escape;
use tempfile::NamedTempFile;

use crate::closed;
use crate::redact::{self, Redactor};

/// Why nothing was shown, and what to do about it, ready to print.
#[derive(Debug)]
pub struct Failure(String);

impl Failure {
    /// What failed and why, without a remedy.
    pub fn new(text: impl Into<String>) -> Failure {
        Failure(text.into())
    }

    /// As [`Failure::new`], with one thing to do about it. Both are text that is safe to print.
    pub fn with_remedy(text: impl std::fmt::Display, remedy: impl std::fmt::Display) -> Failure {
        Failure(format!("{text}\n  remedy: {remedy}"))
    }

    /// Adds what else the user may want to know.
    #[must_use]
    pub fn noting(mut self, note: impl std::fmt::Display) -> Failure {
        self.0.push_str(&format!("\n  note: {note}"));
        self
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        let text = escape(&error.to_string());
        match error.remedy() {
            Some(remedy) => Failure::with_remedy(text, escape(&remedy)),
            None => Failure(text),
        }
    }
}

/// A file that a report is written to.
#[derive(Debug)]
pub enum ReportFile {
    /// A regular file: it has the whole report, or stays as it was.
    Whole {
        /// Its path.
        path: PathBuf,
        /// What replaces it.
        new: NamedTempFile,
    },
    /// A device or a pipe.
    Other {
        /// Its path.
        path: PathBuf,
    },
}

impl ReportFile {
    /// Checks that a report can be written to `path`, before there is one. `option` names the option that gave the path.
    ///
    /// # Errors
    /// The file cannot be created, and why.
    pub fn prepare(path: &Path, option: &str) -> Result<ReportFile, Failure> {
        let refused = |error: io::Error| {
            Failure::with_remedy(
                cannot_write(path, &error),
                format_args!("give {option} a file in a directory that you may write to"),
            )
        };
        match path.metadata() {
            Ok(meta) if meta.is_dir() => Err(refused(io::ErrorKind::IsADirectory.into())),
            Ok(meta) if !meta.is_file() => Ok(ReportFile::Other { path: path.to_owned() }),
            found => {
                // The file that a link leads to is replaced, not the link.
                let path = if found.is_ok() { path.canonicalize().map_err(refused)? } else { path.to_owned() };
                let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
                // The umask takes from this mode, as from that of any new file.
                let mode = Permissions::from_mode(0o666);
                let new = tempfile::Builder::new().prefix(".ompd-inspect-").permissions(mode).tempfile_in(folder);
                Ok(ReportFile::Whole { new: new.map_err(refused)?, path })
            }
        }
    }

    /// Has `write` write the report.
    ///
    /// # Errors
    /// It cannot be written, and why.
    pub fn write(self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
        let (path, written) = match self {
            ReportFile::Other { path } => {
                let file = File::options().write(true).custom_flags(libc::O_NOCTTY).open(&path);
                let written = file.and_then(|mut file| buffered(&mut file, write));
                (path, unless_closed(written))
            }
            ReportFile::Whole { path, mut new } => {
                let written = buffered(new.as_file_mut(), write);
                let written = written.and_then(|()| Ok(new.persist(&path).map(drop)?));
                (path, written)
            }
        };
        written.map_err(|error| Failure::new(cannot_write(&path, &error)))
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> String {
    format!("{}: the report cannot be written: {error}", escape(&path.display().to_string()))
}

fn buffered(out: impl Write, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    write(&mut out).and_then(|()| out.flush())
}

/// Where a result goes, and what is taken out of it.
#[derive(Debug)]
pub struct Output {
    /// The file named by `--output`, or standard output.
    file: Option<ReportFile>,
    redactor: Option<Redactor>,
}

impl Output {
    /// Where `--output` says, its `path`: to a file, or to standard output if there is no such option, or for `-`. Call it before anything
    /// is read: no process is stopped for a report that cannot be written.
    ///
    /// # Errors
    /// The file cannot be created, or standard output is closed.
    pub fn open(path: Option<&Path>, redactor: Option<Redactor>) -> Result<Output, Failure> {
        let path = path.filter(|path| *path != Path::new("-"));
        if path.is_none() && closed::is_closed() {
            return Err(Failure::new("standard output is closed: there is nowhere to write the report"));
        }
        let file = path.map(|path| ReportFile::prepare(path, "--output")).transpose()?;
        Ok(Output { file, redactor })
    }

    /// Takes these directories out, if anything is taken out.
    pub fn hide_directories(&mut self, directories: &BTreeSet<String>) {
        if let Some(redactor) = &mut self.redactor {
            redactor.hide_directories(directories);
        }
    }

    /// Columns to lay text out for; `None` if it is not for a terminal.
    pub fn width(&self) -> Option<u16> {
        match self.redactor {
            Some(_) => Some(redact::WIDTH),
            None => self.file.is_none().then(terminal_width).flatten(),
        }
    }

    /// Writes text. A file gets its colours only for [`ColorChoice::Always`].
    ///
    /// # Errors
    /// It cannot be written.
    pub fn text(self, text: &str, color: ColorChoice) -> Result<(), Failure> {
        match self.file {
            None => {
                let text = redacted(self.redactor.as_ref(), text);
                write_all(&mut AutoStream::new(io::stdout(), color), &text).map_err(not_written)
            }
            Some(_) if color == ColorChoice::Always => self.document(text),
            Some(_) => self.document(&strip_str(text).to_string()),
        }
    }

    /// Writes a document.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn document(self, document: &str) -> Result<(), Failure> {
        let document = redacted(self.redactor.as_ref(), document);
        let write = |out: &mut dyn Write| out.write_all(document.as_bytes());
        match self.file {
            None => unless_closed(buffered(io::stdout().lock(), write)).map_err(not_written),
            Some(file) => file.write(write),
        }
    }

    /// Writes a page for a browser. `page` passes the page's texts through the function it is given. The page has code too, which
    /// must not be redacted.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn page(mut self, page: impl FnOnce(&dyn Fn(&str) -> String) -> String) -> Result<(), Failure> {
        let redactor = self.redactor.take();
        let page = page(&|text| redacted(redactor.as_ref(), text).into_owned());
        self.document(&page)
    }

    /// Has `write` write a document that may be too large for memory.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn with(self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
        if self.redactor.is_some() {
            let mut document = Vec::new();
            write(&mut document).map_err(not_written)?;
            return self.document(&String::from_utf8_lossy(&document));
        }
        match self.file {
            None => unless_closed(buffered(io::stdout().lock(), write)).map_err(not_written),
            Some(file) => file.write(write),
        }
    }
}

/// The text as it may be shown.
pub fn redacted<'a>(redactor: Option<&Redactor>, text: &'a str) -> Cow<'a, str> {
    redactor.map_or(Cow::Borrowed(text), |redactor| Cow::Owned(redactor.redacted(text)))
}

fn not_written(error: io::Error) -> Failure {
    Failure::new(format!("cannot write to standard output: {error}"))
}

/// Columns of standard output, if it is a terminal.
pub fn terminal_width() -> Option<u16> {
    io::stdout().is_terminal().then(terminal_size::terminal_size).flatten().map(|(width, _)| width.0)
}

/// Writes a text. A reader that has seen enough (`| head`) is no failure.
pub fn write_all(out: &mut impl Write, text: &str) -> io::Result<()> {
    unless_closed(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// The same result, but success where the reader has gone.
pub fn unless_closed(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}
