//! What is written, and why nothing was.

use std::io::{self, IsTerminal, Write};

use ompd_process::OpenError;
use ompd_report::escape::escape;

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
