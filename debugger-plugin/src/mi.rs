//! A client of GDB/MI: what cpptools and other front ends are to gdb.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use anyhow::{Context as _, Result, bail, ensure};

use crate::dap::{end, limited};
use crate::{GdbRelease, plugin};

/// What gdb prints when it takes a command.
const PROMPT: &str = "(gdb)";

/// A gdb that serves a front end. It is killed when this is dropped.
#[derive(Debug)]
pub struct Mi {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    number: u32,
    /// Records that came and were not waited for yet.
    records: Vec<String>,
}

impl Mi {
    /// gdb with the plugin. `library` is the directory with `libompd.so`.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(release: &GdbRelease, library: &Path) -> Result<Mi> {
        let mut command = limited(&release.command);
        command.args(["-nx", "-q", "--interpreter=mi"]);
        command.args(["-iex", &format!("source {}", plugin().display())]);
        command.args(["-iex", &format!("set openmp library {}", library.join("libompd.so").display())]);
        command.args(["-iex", "set style enabled on"]);
        // Otherwise gdb has no colours at all.
        command.env("TERM", "xterm-256color");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().context("starting gdb for a front end")?;
        let input = child.stdin.take().context("its input")?;
        let output = BufReader::new(child.stdout.take().context("its output")?);
        Ok(Mi { child, input, output, number: 0, records: Vec::new() })
    }

    /// The next record, or the prompt. A line that is none would break the protocol, and so would escape sequences.
    fn record(&mut self) -> Result<String> {
        let mut line = String::new();
        ensure!(self.output.read_line(&mut line)? > 0, "gdb has ended: {:#?}", self.records);
        let line = line.trim_end().to_owned();
        let kind = line.trim_start_matches(|one: char| one.is_ascii_digit());
        ensure!(kind.starts_with(['~', '&', '@', '^', '*', '+', '=']) || line == PROMPT, "{line:?} is no record");
        ensure!(!line.contains("\\033["), "escape sequences: {line}");
        Ok(line)
    }

    /// Keeps a record, or adds what was printed to a text.
    fn keep(&mut self, record: String, text: &mut String) -> Result<()> {
        match record.strip_prefix('~') {
            Some(printed) => *text += &plain(printed)?,
            None => self.records.push(record),
        }
        Ok(())
    }

    /// Executes a command of MI: its result, and the text that gdb has printed meanwhile.
    ///
    /// # Errors
    /// If the command fails.
    pub fn command(&mut self, command: &str) -> Result<(String, String)> {
        self.number += 1;
        let number = self.number;
        writeln!(self.input, "{number}{command}").context("gdb reads")?;
        self.input.flush()?;
        let begin = format!("{number}^");
        let mut text = String::new();
        loop {
            let record = self.record()?;
            if let Some(result) = record.strip_prefix(&begin) {
                ensure!(!result.starts_with("error"), "{command}: {result}");
                return Ok((result.to_owned(), text));
            }
            self.keep(record, &mut text)?;
        }
    }

    /// Executes a command of the console, and returns what it prints.
    ///
    /// # Errors
    /// If the command fails.
    pub fn console(&mut self, command: &str) -> Result<String> {
        let (result, mut text) = self.command(&format!("-interpreter-exec console {command:?}"))?;
        // A command that has let the process run is over at the second prompt.
        let mut prompts = if result.starts_with("running") { 2 } else { 0 };
        while prompts > 0 {
            let record = self.record().with_context(|| format!("{command}: {text}"))?;
            prompts -= i32::from(record == PROMPT);
            self.keep(record, &mut text)?;
        }
        Ok(text)
    }

    /// The next record that begins so, and the text before it. Other records before it are dropped.
    ///
    /// # Errors
    /// If gdb ends before.
    pub fn until(&mut self, begin: &str) -> Result<(String, String)> {
        let mut text = String::new();
        loop {
            let found = self.records.iter().position(|record| record.starts_with(begin));
            if let Some(at) = found {
                let record = self.records.swap_remove(at);
                self.records.clear();
                return Ok((record, text));
            }
            let record = self.record().with_context(|| format!("waiting for {begin}"))?;
            self.keep(record, &mut text)?;
        }
    }

    /// Ends gdb, which leaves a process to which it was attached.
    ///
    /// # Errors
    /// If it does not end well.
    pub fn finish(mut self) -> Result<()> {
        self.command("-gdb-exit")?;
        let status = self.child.wait()?;
        ensure!(status.success(), "gdb ended with {status}");
        Ok(())
    }
}

impl Drop for Mi {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// The text of a string of MI, which is one of C.
fn plain(quoted: &str) -> Result<String> {
    let Some(inner) = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        bail!("{quoted:?} is no string");
    };
    let mut text = String::new();
    let mut rest = inner.chars();
    while let Some(one) = rest.next() {
        match (one, if one == '\\' { rest.next() } else { None }) {
            (_, Some('n')) => text.push('\n'),
            (_, Some('t')) => text.push('\t'),
            (_, Some(other)) => text.push(other),
            (one, None) => text.push(one),
        }
    }
    Ok(text)
}
