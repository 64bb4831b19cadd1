//! `debug_search [--debuginfod] PID|CORE STEP...`: where the debug file of each module named was looked for. The step
//! `--stop` stops the process until the end; nothing may ask a server from then on.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use ompd_process::{Core, Live, OpenError, OpenOptions, Target};

fn main() -> ExitCode {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let debuginfod = args.first().is_some_and(|a| a == "--debuginfod");
    if debuginfod {
        args.remove(0);
    }
    let Some((target, steps)) = args.split_first() else {
        let _ = writeln!(std::io::stderr(), "usage: debug_search [--debuginfod] PID|CORE STEP...");
        return ExitCode::FAILURE;
    };
    match search(target, steps, &OpenOptions { debuginfod, ..OpenOptions::default() }) {
        Ok(lines) => {
            let _ = writeln!(std::io::stdout(), "{}", lines.join("\n"));
            ExitCode::SUCCESS
        }
        Err(e) => {
            let _ = writeln!(std::io::stderr(), "error: {e}");
            ExitCode::FAILURE
        }
    }
}

fn search(target: &str, steps: &[String], options: &OpenOptions) -> Result<Vec<String>, OpenError> {
    let mut lines = Vec::new();
    if let Ok(pid) = target.parse() {
        let mut live = Live::open(pid, options)?;
        for step in steps {
            match step.as_str() {
                "--stop" => live.stop()?,
                name => lines.extend(places(&live, name)),
            }
        }
    } else {
        let core = Core::open(Path::new(target), options)?;
        lines.extend(steps.iter().flat_map(|name| places(&core, name)));
    }
    Ok(lines)
}

/// `NAME: what was tried`.
fn places(target: &dyn Target, name: &str) -> Vec<String> {
    let module = target.modules().iter().find(|m| m.name().starts_with(name));
    let tried = match module.map(|m| &m.file) {
        Some(Ok(file)) => file.debug_search(),
        Some(Err(why)) => why.clone(),
        None => vec!["there is no such module".to_owned()],
    };
    tried.iter().map(|line| format!("{name}: {line}")).collect()
}
