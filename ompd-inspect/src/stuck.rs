//! The end of a command that waits for a page of a process.

use std::io::{self, Write as _};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::Builder;
use std::time::Duration;

use ompd_process::live::ReadWatch;
use ompd_report::escape::escape;

use crate::output::Failure;

/// Time between two questions whether a read goes on.
const AGAIN: Duration = Duration::from_millis(500);

/// A read takes at least so much longer than the process may be held before it is given up.
const LONGER: Duration = Duration::from_secs(2);

/// As long as it lives, a read that does not end ends the command: the kernel wakes such a reader for nothing else.
#[derive(Debug)]
pub struct Guard {
    /// Ends its thread.
    _ends: Sender<()>,
}

impl Guard {
    /// For an inspection of `target`, which may be held for so long.
    /// `None` for a core, the reads of which end. `status` is that of a command that has inspected nothing.
    pub fn of(target: &str, max_pause: Duration, status: u8) -> Option<Guard> {
        target.parse::<i32>().ok()?;
        let target = escape(target);
        let (ends, end) = channel::<()>();
        let watch = move || {
            let mut reads = ReadWatch::default();
            while end.recv_timeout(AGAIN) == Err(RecvTimeoutError::Timeout) {
                if reads.longest() > max_pause + LONGER {
                    let text = format_args!("{target}: a read of its memory does not end, and the process runs again");
                    let remedy = "what supplies the page has to answer: a process with userfaultfd, or a server of files; or try \
                                  --pause never";
                    // Nothing is left to be done if standard error is closed.
                    let _ = writeln!(io::stderr(), "ompd-inspect: {}", Failure::with_remedy(text, remedy));
                    std::process::exit(status.into());
                }
            }
        };
        // Without the thread the command waits until it is ended.
        Builder::new().name("reads".to_owned()).spawn(watch).ok()?;
        Some(Guard { _ends: ends })
    }
}
