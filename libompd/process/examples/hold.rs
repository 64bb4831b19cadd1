//! `hold PID`: stops a process, says so, and lets it run on at the end of input. Without arguments: how to call it.

use std::io::{Read, Write};
use std::process::ExitCode;

use ompd_process::{Live, OpenOptions, Target};

fn main() -> ExitCode {
    let Some(pid) = std::env::args().nth(1).and_then(|p| p.parse().ok()) else {
        let _ = writeln!(std::io::stderr(), "usage: hold PID");
        return ExitCode::FAILURE;
    };
    let mut out = std::io::stdout();
    let held = Live::open(pid, &OpenOptions::default()).and_then(|mut live| live.stop().map(|()| live));
    match held {
        Ok(mut live) => {
            let _ = writeln!(out, "holding {} threads of process {pid}", live.threads().len());
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            let _ = writeln!(out, "held for {:?}", live.resume().unwrap_or_default());
            ExitCode::SUCCESS
        }
        Err(e) => {
            let _ = writeln!(out, "error: {e}; remedy: {}", e.remedy().unwrap_or_else(|| "none".into()));
            ExitCode::FAILURE
        }
    }
}
