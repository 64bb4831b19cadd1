//! What the user asks for, by environment variables. Read once, when the tool is initialised.

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use ompt_record::block::Shape;

use crate::output::variable;

/// Events of each thread (`OMPT_COMPANION_EVENTS`): a quarter of a megabyte.
const EVENTS: u64 = 4096;
/// Threads at a time (`OMPT_COMPANION_THREADS`).
const THREADS: u64 = 1024;
/// Regions and tasks that are not over and whose origin is remembered.
const REGIONS: u64 = 1024;
const TASKS: u64 = 16384;

/// All of them.
#[derive(Debug)]
pub struct Settings {
    /// The parts of the block.
    pub shape: Shape,
    /// Whether it records from the beginning (`OMPT_COMPANION_START`: `recording` or `paused`).
    pub records: bool,
    /// Where the block is written to when it is flushed and at the end (`OMPT_COMPANION_FILE`); `%p` is the process id.
    pub file: Option<OsString>,
}

impl Settings {
    /// Those of the environment. What is wrong is told on standard error, and left at its default.
    pub fn read() -> Settings {
        let events = number("OMPT_COMPANION_EVENTS", EVENTS, 64..=1 << 20);
        let threads = number("OMPT_COMPANION_THREADS", THREADS, 1..=1 << 16);
        let shape = Shape::new(threads, events.next_power_of_two(), REGIONS, TASKS);
        let start = variable("OMPT_COMPANION_START").unwrap_or_default();
        let records = match start.to_string_lossy().trim().to_ascii_lowercase().as_str() {
            "" | "recording" => true,
            "paused" => false,
            _ => {
                refuse("OMPT_COMPANION_START", &start, "it is neither \"recording\" nor \"paused\"; it records");
                true
            }
        };
        let file = variable("OMPT_COMPANION_FILE").filter(|file| !file.is_empty());
        Settings {
            shape: shape.unwrap_or(Shape { rings: THREADS, events: EVENTS, regions: REGIONS, tasks: TASKS }),
            records,
            file,
        }
    }

    /// The name of the file, with the process id in it.
    pub fn file_of(file: &OsStr, pid: u32) -> PathBuf {
        let mut name = Vec::new();
        let mut bytes = file.as_bytes().iter().copied().peekable();
        while let Some(byte) = bytes.next() {
            if byte == b'%' && bytes.peek() == Some(&b'p') {
                bytes.next();
                name.extend_from_slice(pid.to_string().as_bytes());
            } else {
                name.push(byte);
            }
        }
        PathBuf::from(OsString::from_vec(name))
    }
}

fn number(name: &str, otherwise: u64, range: std::ops::RangeInclusive<u64>) -> u64 {
    let Some(text) = variable(name) else { return otherwise };
    let asked = text.to_str().and_then(|text| text.trim().parse().ok()).filter(|number| range.contains(number));
    asked.unwrap_or_else(|| {
        let (least, most) = (range.start(), range.end());
        refuse(name, &text, &format!("it is no number from {least} to {most}; {otherwise} is taken"));
        otherwise
    })
}

fn refuse(name: &str, text: &OsStr, why: &str) {
    say(&format!("{name}={}: {why}", text.display()));
}

/// Tells the user on standard error what does not go as wished.
pub fn say(text: &str) {
    // A program whose standard error is closed has nobody to tell.
    let _ = writeln!(std::io::stderr(), "ompt_companion: {text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_id_is_put_into_the_name() {
        assert_eq!(Settings::file_of(OsStr::new("a.%p.%q%"), 17), PathBuf::from("a.17.%q%"));
    }
}
