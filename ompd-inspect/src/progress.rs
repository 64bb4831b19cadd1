//! How far a command is, on the terminal, when it takes more than a second.

use std::io::{self, IsTerminal as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ompd_report::escape::escape;

/// Time before the first line: answers that come sooner need none.
const DELAY: Duration = Duration::from_secs(1);
/// Time between two lines.
const INTERVAL: Duration = Duration::from_millis(250);

/// There is one line on the terminal.
static IS_SHOWN: AtomicBool = AtomicBool::new(false);

/// A line on standard error that says what is being done, how far it is, and since when. It is taken away at the end.
///
/// There is none where standard error is no terminal, and none while there is one already: what is begun last is a part of that.
pub struct Progress {
    bar: ProgressBar,
    what: String,
    /// Ends when its channel does.
    shower: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Of what is begun now. `what` may have text of the target in it.
    pub fn of(what: &str) -> Progress {
        let what = escape(what);
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        if !io::stderr().is_terminal() || IS_SHOWN.swap(true, Ordering::Relaxed) {
            return Progress { bar, what, shower: None };
        }
        bar.set_message(what.clone());
        if let Ok(style) = ProgressStyle::with_template("ompd-inspect: {msg} ({elapsed})") {
            bar.set_style(style);
        }
        let (ends, end) = mpsc::channel();
        let shown = bar.clone();
        let show = move || {
            if end.recv_timeout(DELAY) == Err(RecvTimeoutError::Timeout) {
                shown.set_draw_target(ProgressDrawTarget::stderr());
                shown.enable_steady_tick(INTERVAL);
                // Nothing is ever sent: this is the end.
                let _ = end.recv();
            }
            shown.finish_and_clear();
        };
        // Without the thread nothing is shown.
        let shower = thread::Builder::new().name("progress".to_owned()).spawn(show).ok();
        Progress { bar, what, shower: shower.map(|thread| (ends, thread)) }
    }

    /// Says how far it is.
    pub fn at(&self, how_far: impl FnOnce() -> String) {
        if self.shower.is_some() {
            self.bar.set_message(format!("{}: {}", self.what, how_far()));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((ends, thread)) = self.shower.take() {
            drop(ends);
            // It has nothing to say but a panic, and the report is worth more than that.
            let _ = thread.join();
            IS_SHOWN.store(false, Ordering::Relaxed);
        }
    }
}
