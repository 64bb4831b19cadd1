//! The terminal: taken over while the view is shown, and given back however the program ends.

use std::fs::File;
use std::io::{self, IsTerminal, stdin, stdout};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, raise};
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event, KeyEvent};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{Clear, ClearType, EnterAlternateScreen, enable_raw_mode};
use ratatui::{DefaultTerminal, Frame};

use crate::signals::Signals;

/// Signals that end the program.
const ENDS: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];

/// Takes the signals that end the program, and those that say that the size of the terminal has changed. No other thread may run
/// yet.
///
/// # Errors
/// The kernel refuses.
pub fn take_signals() -> io::Result<Signals> {
    Signals::take(ENDS.into_iter().chain([Signal::SIGWINCH]))
}

/// Whether a signal ends the program.
pub fn ends(signal: Signal) -> bool {
    ENDS.contains(&signal)
}

/// Ends the program by a signal, as if it had not been taken. Gives the exit status for a parent that ignores it.
pub fn die(signals: &Signals, signal: Signal) -> u8 {
    let _ = signals.before().thread_set_mask();
    let _ = raise(signal);
    u8::try_from(128 + signal as i32).unwrap_or(u8::MAX)
}

/// Where keys come from: standard input, or the controlling terminal. `None` if neither is a terminal.
fn keyboard() -> Option<Keyboard> {
    if stdin().is_terminal() {
        return Some(Keyboard::Input);
    }
    File::open("/dev/tty").ok().map(Keyboard::Terminal)
}

#[derive(Debug)]
enum Keyboard {
    Input,
    Terminal(File),
}

/// Whether a view can be shown and keys be read.
pub fn is_there() -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|name| name == "dumb");
    stdout().is_terminal() && !is_dumb && keyboard().is_some()
}

/// The terminal while the view is shown.
#[derive(Debug)]
pub struct Terminal {
    screen: DefaultTerminal,
    keyboard: Keyboard,
}

/// A terminal that is drawn as a whole the next time. (`ratatui::Terminal::clear` asks the terminal where its cursor is, which not
/// all answer.)
fn whole() -> io::Result<DefaultTerminal> {
    ratatui::Terminal::new(CrosstermBackend::new(stdout()))
}

/// What has happened.
#[derive(Debug, Default)]
pub struct Happened {
    /// Keys that were pressed.
    pub keys: Vec<KeyEvent>,
    /// A signal that ends the program.
    pub signal: Option<Signal>,
}

impl Terminal {
    /// Takes the terminal over: raw mode, and the alternate screen. A panic gives it back.
    ///
    /// # Errors
    /// There is none.
    pub fn take() -> io::Result<Terminal> {
        let keyboard = keyboard().ok_or_else(|| io::Error::other("there is no terminal to read keys from"))?;
        match ratatui::try_init() {
            Ok(screen) => Ok(Terminal { screen, keyboard }),
            Err(error) => {
                let _ = ratatui::try_restore();
                Err(error)
            }
        }
    }

    /// Draws.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn draw(&mut self, render: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.screen.draw(render).map(|_| ())
    }

    /// Columns.
    pub fn width(&self) -> u16 {
        self.screen.size().map_or(80, |size| size.width)
    }

    /// Waits for a key, a signal, or `other` to become readable, no longer than `time`.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn wait(&mut self, signals: &Signals, other: BorrowedFd<'_>, time: Option<Duration>) -> io::Result<Happened> {
        let timeout = match time {
            // Rounded up: otherwise the last part of a millisecond would be waited for without sleeping.
            Some(time) => u16::try_from(time.as_micros().div_ceil(1000)).unwrap_or(u16::MAX).into(),
            None => PollTimeout::NONE,
        };
        let stdin = stdin();
        let keys = match &self.keyboard {
            Keyboard::Input => stdin.as_fd(),
            Keyboard::Terminal(file) => file.as_fd(),
        };
        let mut descriptors =
            [keys, signals.as_fd(), other].map(|descriptor| PollFd::new(descriptor, PollFlags::POLLIN));
        match poll(&mut descriptors, timeout) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let state = descriptors[0].revents().unwrap_or(PollFlags::empty());
        let arrived: Vec<Signal> = signals.arrived().into_iter().map(|arrived| arrived.signal).collect();
        let signal = arrived.iter().copied().find(|signal| ends(*signal));
        let mut happened = Happened { keys: Vec::new(), signal };
        if happened.signal.is_none() && state.intersects(PollFlags::POLLHUP | PollFlags::POLLERR) {
            return Err(io::Error::other("it was closed"));
        }
        if arrived.contains(&Signal::SIGWINCH) {
            execute!(stdout(), Clear(ClearType::All))?;
            self.screen = whole()?;
        }
        while happened.signal.is_none() && event::poll(Duration::ZERO)? {
            if let Event::Key(key) = event::read()? {
                happened.keys.push(key);
            }
        }
        Ok(happened)
    }

    /// Stops the program as Ctrl-Z does, and takes the terminal over again when it continues.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn suspend(&mut self) -> io::Result<()> {
        self.screen.show_cursor()?;
        ratatui::try_restore()?;
        raise(Signal::SIGTSTP)?;
        enable_raw_mode()?;
        execute!(stdout(), EnterAlternateScreen)?;
        self.screen = whole()?;
        Ok(())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing.
        let _ = self.screen.show_cursor();
        let _ = ratatui::try_restore();
    }
}
