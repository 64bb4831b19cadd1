//! A client of the Debug Adapter Protocol: what an editor is to gdb and to LLDB.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use test_programs::Skip;

use crate::lldb::{self, LldbRelease};
use crate::{GdbRelease, plugin};

/// After so many seconds a debugger is ended that does not end by itself.
const LONGEST: &str = "60";
/// gdb speaks the protocol from this version on.
pub const FIRST_GDB: u32 = 14;
/// LLDB has names of threads and frames by formats from this version on.
pub const FIRST_LLDB_WITH_FORMATS: u32 = 18;
/// LLDB can have an editor ask for everything anew from this version on.
pub const FIRST_LLDB_WITH_INVALIDATED: u32 = 20;

/// Which debugger answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adapter {
    /// gdb, with its version.
    Gdb(u32),
    /// `lldb-dap`, or `lldb-vscode`, with its version.
    Lldb(u32),
}

/// How a session comes to a process.
#[derive(Debug, Clone, Copy)]
pub enum Target<'a> {
    /// By its process id.
    Pid(i32),
    /// A core file.
    Core(&'a Path),
    /// A server of the debugger on this machine, by its port.
    Port(u16),
    /// A server that gdb starts, with this command line.
    Pipe(&'a str),
}

/// A debugger that serves an editor. It is killed when this is dropped.
#[derive(Debug)]
pub struct Dap {
    /// Which debugger it is.
    pub adapter: Adapter,
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    sequence: i64,
    events: VecDeque<Value>,
    answers: VecDeque<Value>,
    /// What was printed and not waited for yet. It comes by another way than stops.
    text: String,
    /// Commands that LLDB runs at its start.
    init: Vec<String>,
}

impl Dap {
    /// gdb with the plugin. `library` is the directory with `libompd.so`.
    ///
    /// # Errors
    /// If it cannot be started. The inner error says why this gdb has no such protocol.
    pub fn gdb(release: &GdbRelease, library: &Path) -> Result<Result<Dap, Skip>> {
        if release.version < FIRST_GDB {
            let why = format!("gdb {} has no DAP, which came with gdb {FIRST_GDB}", release.version);
            return Ok(Err(Skip::because(why)));
        }
        let mut command = limited(&release.command);
        command.args(["-nx", "-q", "-i=dap", "-iex", &format!("source {}", plugin().display())]);
        command.args(["-iex", &format!("set openmp library {}", library.join("libompd.so").display())]);
        command.args(["-iex", "set style enabled on"]);
        // Otherwise gdb has no colours at all.
        command.env("TERM", "xterm-256color");
        Ok(Ok(Dap::start(Adapter::Gdb(release.version), command, Vec::new())?))
    }

    /// LLDB with the plugin. `library` is the directory with `libompd.so`.
    ///
    /// # Errors
    /// If it cannot be started. The inner error says why this LLDB has no such protocol.
    pub fn lldb(release: &LldbRelease, library: &Path) -> Result<Result<Dap, Skip>> {
        let Some(program) = &release.dap else {
            return Ok(Err(Skip::because(format!("LLDB {} has no lldb-dap here; \"ci/fetch lldb\"", release.version))));
        };
        let mut command = limited(program);
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        let init = vec![
            format!("command script import {}", lldb::plugin().display()),
            format!("openmp settings set library {}", library.join("libompd.so").display()),
        ];
        Ok(Ok(Dap::start(Adapter::Lldb(release.version), command, init)?))
    }

    fn start(adapter: Adapter, mut command: Command, init: Vec<String>) -> Result<Dap> {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().context("starting a debugger for an editor")?;
        let input = child.stdin.take().context("its input")?;
        let output = BufReader::new(child.stdout.take().context("its output")?);
        let (events, answers) = (VecDeque::new(), VecDeque::new());
        let mut dap = Dap { adapter, child, input, output, sequence: 0, events, answers, text: String::new(), init };
        let client = json!({"adapterID": "test", "linesStartAt1": true, "supportsInvalidatedEvent": true});
        dap.request("initialize", &client)?;
        Ok(dap)
    }

    /// Comes to a process or core of a program, and returns the event of its stop.
    ///
    /// # Errors
    /// If the debugger refuses.
    pub fn attach(&mut self, program: &Path, target: Target<'_>) -> Result<Value> {
        let mut arguments = json!({"program": program, "initCommands": self.init, "stopOnEntry": true});
        if matches!(self.adapter, Adapter::Lldb(_)) {
            // As `docs/editors.md` says.
            arguments["customThreadFormat"] = json!("${script.thread:openmp_lldb.dap.thread}");
            arguments["customFrameFormat"] = json!("${script.frame:openmp_lldb.dap.frame}");
            arguments["commandEscapePrefix"] = json!("");
        }
        match target {
            Target::Pid(pid) => arguments["pid"] = json!(pid),
            Target::Core(file) => arguments["coreFile"] = json!(file),
            Target::Port(port) => arguments["attachCommands"] = json!([format!("gdb-remote 127.0.0.1:{port}")]),
            Target::Pipe(command) => arguments["target"] = json!(format!("| {command}")),
        }
        // LLDB announces this within the request to attach.
        let attaching = self.send("attach", &arguments)?;
        self.event("initialized")?;
        // LLDB up to 19 has answered by now. Others answer behind the next request.
        let configuring = self.send("configurationDone", &json!({}))?;
        let mut waiting = vec![attaching, configuring];
        while !waiting.is_empty() {
            let answer = self.answer()?;
            let number = answer["request_seq"].as_i64();
            ensure!(answer["success"] == true, "{answer}");
            waiting.retain(|one| Some(*one) != number);
        }
        self.event("stopped")
    }

    fn send(&mut self, command: &str, arguments: &Value) -> Result<i64> {
        self.sequence += 1;
        let request = json!({"seq": self.sequence, "type": "request", "command": command, "arguments": arguments});
        let request = request.to_string();
        write!(self.input, "Content-Length: {}\r\n\r\n{request}", request.len()).context("the debugger reads")?;
        self.input.flush()?;
        Ok(self.sequence)
    }

    /// The next message. Whatever else is on the stream is an error: it would break the protocol.
    fn message(&mut self) -> Result<Value> {
        let mut length = None;
        loop {
            let mut line = String::new();
            ensure!(self.output.read_line(&mut line)? > 0, "the debugger has ended");
            let header = line.trim_end();
            if header.is_empty() && length.is_some() {
                break;
            }
            let size = header.strip_prefix("Content-Length: ").and_then(|size| size.parse().ok());
            length = Some(size.with_context(|| format!("{line:?} is no header"))?);
        }
        let mut body = vec![0; length.context("a length")?];
        self.output.read_exact(&mut body)?;
        serde_json::from_slice(&body).with_context(|| String::from_utf8_lossy(&body).into_owned())
    }

    /// Keeps the next message.
    fn keep(&mut self) -> Result<()> {
        let message = self.message()?;
        match message["type"].as_str() {
            Some("response") => self.answers.push_back(message),
            Some("event") if message["event"] == "output" => {
                self.text += message["body"]["output"].as_str().unwrap_or_default();
            }
            Some("event") => self.events.push_back(message),
            _ => bail!("neither answer nor event: {message}"),
        }
        Ok(())
    }

    /// The next answer.
    fn answer(&mut self) -> Result<Value> {
        loop {
            match self.answers.pop_front() {
                Some(answer) => return Ok(answer),
                None => self.keep()?,
            }
        }
    }

    /// Sends a request, and returns the body of the answer.
    ///
    /// # Errors
    /// If the request is refused, with the answer.
    pub fn request(&mut self, command: &str, arguments: &Value) -> Result<Value> {
        let number = self.send(command, arguments)?;
        let mut answer = self.answer()?;
        ensure!(answer["request_seq"] == number, "{command}: another answer: {answer}");
        ensure!(answer["success"] == true, "{command}: {answer}");
        Ok(answer["body"].take())
    }

    /// The next event of this name; those before it are dropped.
    ///
    /// # Errors
    /// If the debugger ends before.
    pub fn event(&mut self, name: &str) -> Result<Value> {
        loop {
            while let Some(mut event) = self.events.pop_front() {
                if event["event"] == name {
                    return Ok(event["body"].take());
                }
            }
            self.keep()
                .with_context(|| format!("{:?}: waiting for the event {name}; printed: {}", self.adapter, self.text))?;
        }
    }

    /// What was printed since the last call, once it contains a part.
    ///
    /// # Errors
    /// If the debugger ends before.
    pub fn printed(&mut self, part: &str) -> Result<String> {
        while !self.text.contains(part) {
            self.keep().with_context(|| format!("waiting for {part}: {}", self.text))?;
        }
        Ok(std::mem::take(&mut self.text))
    }

    /// The names of events that have come and were not asked for, which are dropped.
    pub fn drained(&mut self) -> Vec<String> {
        self.events.drain(..).map(|event| event["event"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Runs a command from the debug console, for a frame if one is selected, and returns what it has printed.
    ///
    /// # Errors
    /// If the command fails.
    pub fn console(&mut self, command: &str, frame: Option<i64>) -> Result<String> {
        // LLDB takes a line for an expression otherwise, unless there is an empty prefix for commands.
        let expression = match self.adapter {
            Adapter::Lldb(version) if version < FIRST_LLDB_WITH_FORMATS => format!("`{command}"),
            _ => command.to_owned(),
        };
        let mut arguments = json!({"expression": expression, "context": "repl"});
        if let Some(frame) = frame {
            // By this LLDB knows which frame its user selects.
            self.request("scopes", &json!({"frameId": frame}))?;
            arguments["frameId"] = json!(frame);
        }
        let body = self.request("evaluate", &arguments)?;
        let text = body["result"].as_str().context("a result")?;
        // Up to 19, LLDB shows the command before.
        let text = text.strip_prefix(&format!("(lldb) {command}\n")).unwrap_or(text);
        Ok(text.trim_end_matches('\n').to_owned())
    }

    /// The threads, by id and name.
    ///
    /// # Errors
    /// If the request is refused.
    pub fn threads(&mut self) -> Result<Vec<(i64, String)>> {
        let body = self.request("threads", &json!({}))?;
        let threads = body["threads"].as_array().context("threads")?;
        let name = |thread: &Value| thread["name"].as_str().unwrap_or_default().to_owned();
        threads.iter().map(|thread| Ok((thread["id"].as_i64().context("an id")?, name(thread)))).collect()
    }

    /// The frames of a thread, as the editor lists them.
    ///
    /// # Errors
    /// If the request is refused.
    pub fn stack(&mut self, thread: i64) -> Result<Vec<Value>> {
        let mut body = self.request("stackTrace", &json!({"threadId": thread, "startFrame": 0, "levels": 100}))?;
        match body["stackFrames"].take() {
            Value::Array(frames) => Ok(frames),
            other => bail!("no frames: {other}"),
        }
    }

    /// Leaves the process, which continues, and waits for the end of the debugger.
    ///
    /// # Errors
    /// If that fails.
    pub fn detach(mut self) -> Result<()> {
        self.request("disconnect", &json!({"terminateDebuggee": false}))?;
        let status = self.child.wait()?;
        ensure!(status.success(), "{:?} ended with {status}", self.adapter);
        Ok(())
    }
}

impl Drop for Dap {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// Ends what [`limited`] runs, and waits for its end. What limits it ends it when it gets this signal.
pub(crate) fn end(child: &mut Child) {
    // Both fail only when it was reaped already.
    if let (Ok(None), Ok(pid)) = (child.try_wait(), i32::try_from(child.id())) {
        let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
    }
    let _ = child.wait();
}

/// A command that is ended after a while.
pub(crate) fn limited(program: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=1", "--foreground", LONGEST]).arg(program);
    command
}
