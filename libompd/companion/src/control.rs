//! What the program tells the tool (`omp_control_tool`), and what is written to a file.

use std::ffi::{OsString, c_int};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;

use ompt_record::block::{PAGE, State};

use crate::block::{self, header, set_state, shape};
use crate::output;
use crate::parts;
use crate::settings::{Settings, say};

/// `omp_control_tool_success`
const SUCCESS: c_int = 0;
/// `omp_control_tool_ignored`
const IGNORED: c_int = 1;

/// Where the block goes when it is flushed.
static FILE: OnceLock<OsString> = OnceLock::new();

/// Has the block written to this file whenever it is flushed.
pub fn flush_to(file: OsString) {
    // The first one stays: it is set once, when the tool is initialised.
    let _ = FILE.set(file);
}

/// Does as the program says (OpenMP 5.2, 18.14).
pub fn obey(command: u64, modifier: u64) -> c_int {
    let Some(header) = header() else { return IGNORED };
    header.command.store(command, Relaxed);
    header.command_modifier.store(modifier, Relaxed);
    header.commands.fetch_add(1, Relaxed);
    // Once it was ended it stays so.
    let ended = State::from_number(header.state.load(Relaxed)) == Some(State::Ended);
    let next = match command {
        1 if !ended => State::Recording,
        2 if !ended => State::Paused,
        3 => {
            parts::ALL.iter().for_each(|part| (part.flush)());
            return if flush().is_ok() { SUCCESS } else { IGNORED };
        }
        4 => State::Ended,
        _ => return IGNORED,
    };
    parts::follow(next);
    set_state(next);
    SUCCESS
}

/// The runtime ends: writes the block for the last time. The program asked for nothing and gets no answer, so it is the user who is
/// told if it cannot be written.
pub fn flush_at_end() {
    if let Err(why) = flush() {
        let file = FILE.get().map(|file| file.display().to_string()).unwrap_or_default();
        say(&format!("OMPT_COMPANION_FILE={file}: it could not be written: {why}"));
    }
}

/// Writes the block to the file, if one is wanted. What happens meanwhile may be torn, and is found to be.
///
/// # Errors
/// If it cannot be written.
pub fn flush() -> io::Result<()> {
    let Some(file) = FILE.get() else { return Ok(()) };
    let (Some(header), Some(shape)) = (header(), shape()) else { return Err(io::ErrorKind::NotFound.into()) };
    let name = Settings::file_of(file, std::process::id());
    output::keep_earlier(&name, std::process::id(), header.began.load(Relaxed));
    let file = output::create(&name)?;
    let end = shape.ring_at(header.rings_used.load(Relaxed));
    let size = usize::try_from(end).unwrap_or(0);
    debug_assert_eq!(size % PAGE as usize, 0, "the block is made of pages");
    write_all(&file, block::base(), size)?;
    let modules = ompt_record::modules::write(&crate::modules::mapped());
    write_all(&file, modules.as_ptr(), modules.len())
}

fn write_all(file: &File, from: *const u8, size: usize) -> io::Result<()> {
    let mut written = 0;
    while written < size {
        // SAFETY: the caller's bytes; all of the block up to the last ring that was given away stays mapped.
        let count = unsafe { libc::write(file.as_raw_fd(), from.add(written).cast(), size - written) };
        match usize::try_from(count) {
            Ok(count) if count > 0 => written += count,
            _ => match io::Error::last_os_error() {
                why if why.kind() == io::ErrorKind::Interrupted => {}
                why => return Err(why),
            },
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::thread::JoinHandleExt as _;
    use std::sync::atomic::AtomicUsize;
    use std::sync::mpsc;

    use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

    use super::*;

    static HANDLED: AtomicUsize = AtomicUsize::new(0);

    extern "C" fn handle(_: c_int) {
        HANDLED.fetch_add(1, Relaxed);
    }

    fn pipe() -> (File, File) {
        let (read, write) = nix::unistd::pipe().expect("a pipe");
        (read.into(), write.into())
    }

    /// Waits until a thread of this process sleeps.
    fn await_asleep(tid: i32) {
        loop {
            let stat = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat")).expect("the thread");
            if stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" S")) {
                return;
            }
            std::thread::yield_now();
        }
    }

    /// A pipe takes less than is written. The first signal ends a call that has written some, the second one that has written nothing.
    #[test]
    fn what_a_signal_interrupts_is_written_all_the_same() {
        let action = SigAction::new(SigHandler::Handler(handle), SaFlags::empty(), SigSet::empty());
        // SAFETY: the handler adds to an atomic number.
        unsafe { sigaction(Signal::SIGUSR2, &action) }.expect("a handler");
        let bytes: Vec<u8> = (0..1_u32 << 20).map(|n| (n ^ n >> 8) as u8).collect();
        let (mut read, write) = pipe();
        let (say, told) = mpsc::channel();
        let copy = bytes.clone();
        let writer = std::thread::spawn(move || {
            say.send(nix::unistd::gettid().as_raw()).expect("it is waited for");
            write_all(&write, copy.as_ptr(), copy.len())
        });
        let tid = told.recv().expect("it begins");
        for signals in 1..=2 {
            await_asleep(tid);
            // SAFETY: the thread has not been joined.
            assert_eq!(unsafe { libc::pthread_kill(writer.as_pthread_t(), libc::SIGUSR2) }, 0);
            while HANDLED.load(Relaxed) < signals {
                std::thread::yield_now();
            }
        }
        let mut all = Vec::new();
        read.read_to_end(&mut all).expect("read");
        writer.join().expect("no panic").expect("written");
        assert!(all == bytes);
    }

    #[test]
    fn what_cannot_be_written_is_an_error() {
        let (read, write) = pipe();
        drop(read);
        let why = write_all(&write, [0_u8; 8].as_ptr(), 8).expect_err("nobody reads it");
        assert_eq!(why.kind(), io::ErrorKind::BrokenPipe);
    }
}
