//! A holder that is killed while it holds a process must leave that process running.
//!
//! Not built on the test harness: this program plays both parts, and kills the one that holds.

mod support;

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use ompd_target::{Live, OpenOptions, Target};

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if let [_, mode, pid] = &args[..]
        && mode == "hold"
    {
        return hold(pid.parse().expect("pid"));
    }
    let mut subject = support::Subject::start(&["threads", "6"]);
    for round in 0..5 {
        let mut holder = Command::new(std::env::current_exe().expect("own path"))
            .args(["hold", &subject.pid().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("start the holder");
        let mut line = String::new();
        BufReader::new(holder.stdout.take().expect("stdout")).read_line(&mut line).expect("holder's answer");
        assert_eq!(line.trim(), "holding 8", "round {round}");
        for task in std::fs::read_dir(format!("/proc/{}/task", subject.pid())).expect("tasks") {
            let stat = std::fs::read_to_string(task.expect("entry").path().join("stat")).expect("stat");
            assert!(stat.rsplit(')').next().is_some_and(|s| s.trim().starts_with('t')), "held: {stat}");
        }
        holder.kill().expect("kill -9");
        holder.wait().expect("wait");
        // Both the thread that answers and the one that counts run again.
        subject.ask(b'p');
    }
    let _ = writeln!(std::io::stderr(), "5 killed holders, the subject ran on each time");
}

fn hold(pid: i32) {
    let mut live = Live::open(pid, &OpenOptions::default()).expect("open");
    live.stop().expect("stop");
    let mut out = std::io::stdout();
    writeln!(out, "holding {}", live.threads().len()).expect("answer");
    out.flush().expect("answer");
    // Until killed.
    let mut line = String::new();
    let _ = std::io::stdin().read_line(&mut line);
}
