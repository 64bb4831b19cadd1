//! What the options say about an inspection, and one inspection by them.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use ompd_inspection::{Inspection, Turns, Verdicts, Wanted, Watched, inspect, inspect_core};
use ompd_process::{OpenError, OpenOptions};
use ompd_report::json;
use ompd_runtime::{DecodedCache, LayoutsFrom, Origin, decoded_cache};

use crate::args::{FailOn, Options};
use crate::inputs::{self, Input};
use crate::output::Failure;
use crate::progress::Progress;
use crate::redact;
use crate::stuck::Guard;

/// All was read.
pub const COMPLETE: u8 = 0;
/// Part of it was read, or there is no OpenMP runtime.
pub const PARTIAL: u8 = 1;
/// Nothing was inspected. Clap uses the same status for wrong usage.
pub const NOT_INSPECTED: u8 = 2;
/// There is a verdict that the user takes for a failure.
pub const FAILED: u8 = 3;

/// Time between two looks, unless it is given.
const INTERVAL: Duration = Duration::from_secs(1);

/// How targets are opened.
pub fn open_options(options: &Options) -> OpenOptions {
    OpenOptions {
        exe: options.exe.clone(),
        lib_root: options.lib_root.clone(),
        debug_dirs: options.debug_dir.clone(),
        debuginfod: options.debuginfod,
        proc_root: options.proc_root.clone(),
        pause: options.pause.into(),
        max_pause: options.max_pause,
        ..OpenOptions::default()
    }
}

/// The shortest time that a process may be held for one of many looks: a busy machine needs it to stop the threads.
const LEAST_PAUSE: Duration = Duration::from_millis(250);

/// How long a process may be held for one look if there is one in each interval: half of that.
pub fn longest_pause(open: &OpenOptions, interval: Duration) -> Duration {
    open.max_pause.min(LEAST_PAUSE.max(interval / 2))
}

/// What the layouts of runtimes are made from.
#[derive(Debug)]
pub struct Layouts {
    ignore: Vec<Origin>,
    /// Decode the code of known builds too.
    anew: bool,
    /// Of what is decoded of others.
    cache: Option<DecodedCache>,
}

impl Layouts {
    /// What the options say.
    pub fn new(options: &Options) -> Layouts {
        Layouts {
            ignore: options.ignore_origin.iter().copied().map(Into::into).collect(),
            anew: options.verify,
            cache: (!options.no_cache && !options.verify).then(decoded_cache),
        }
    }

    /// The same for an inspection.
    pub fn from(&self) -> LayoutsFrom<'_> {
        LayoutsFrom { ignore: &self.ignore, anew: self.anew, cache: self.cache.as_ref() }
    }
}

/// Inspections by the same options.
#[derive(Debug)]
pub struct Inspecting<'a> {
    options: &'a Options,
    open: OpenOptions,
    layouts: Layouts,
    /// Read the variables of the program.
    locals: bool,
    /// Find out whether it hangs.
    verdicts: Verdicts,
    /// Turns of looks, if several processes are inspected at once.
    turns: Option<Turns>,
    /// Those that reports have named, if something is taken out of them.
    directories: Mutex<BTreeSet<String>>,
}

impl<'a> Inspecting<'a> {
    /// With these options. `locals`: variables are read; `verdicts`: they are shown.
    pub fn new(options: &'a Options, locals: bool, verdicts: bool) -> Inspecting<'a> {
        Inspecting {
            options,
            open: open_options(options),
            layouts: Layouts::new(options),
            locals,
            verdicts: match verdicts || options.json || options.fail_on.is_some() {
                true => Verdicts::Confirmed,
                false => Verdicts::None,
            },
            turns: None,
            directories: Mutex::default(),
        }
    }

    /// The same, with the code of all runtimes decoded.
    pub fn decoding(self) -> Inspecting<'a> {
        Inspecting { layouts: Layouts { anew: true, ..self.layouts }, ..self }
    }

    /// The same for several processes at once. So many of them are read at the same time.
    pub fn taking_turns(self, count: usize) -> Inspecting<'a> {
        Inspecting { turns: Some(Turns::of(count)), ..self }
    }

    /// The directories that the reports have named, if something is taken out of them.
    pub fn directories(&self) -> BTreeSet<String> {
        self.directories.lock().map(|directories| directories.clone()).unwrap_or_default()
    }

    /// A live process, to be looked at again and again.
    ///
    /// # Errors
    /// It cannot be opened, and why.
    pub fn watched(&self, pid: i32) -> Result<Watched<'_>, OpenError> {
        Watched::open(pid, &self.open, self.wanted())
    }

    /// How targets are opened.
    pub fn open(&self) -> &OpenOptions {
        &self.open
    }

    /// What is read.
    pub fn wanted(&self) -> Wanted<'_> {
        Wanted {
            layouts: self.layouts.from(),
            locals: self.locals,
            verdicts: self.verdicts,
            samples: self.options.samples,
            interval: self.options.interval.unwrap_or(INTERVAL),
            turns: self.turns.as_ref(),
        }
    }

    /// Inspects a process or core.
    ///
    /// # Errors
    /// It cannot be opened, and why.
    pub fn inspect(&self, target: &str) -> Result<Inspection, Failure> {
        let wanted = self.wanted();
        let input = inputs::open(target, &self.open)?;
        let progress = Progress::of(&format!("inspecting {target}"));
        let stuck = Guard::of(target, self.open.max_pause, NOT_INSPECTED);
        let inspection = match input {
            Input::Named => inspect(target, &self.open, wanted),
            Input::Core(core) => inspect_core(&core, wanted),
        };
        drop((progress, stuck));
        let mut inspection = inspection.map_err(|error| inputs::not_opened(target, error))?;
        hide_arguments(&mut inspection, self.options);
        if self.options.redact
            && let Ok(report) = serde_json::to_value(json::report(&inspection))
            && let Ok(mut directories) = self.directories.lock()
        {
            directories.extend(redact::directories_of(&report));
        }
        Ok(inspection)
    }
}

/// Takes the arguments of the process out of an inspection, unless they are wanted. They may be confidential, and no view but JSON shows
/// them.
pub fn hide_arguments(inspection: &mut Inspection, options: &Options) {
    if !options.arguments {
        let process = &mut inspection.process;
        process.command = process.command.take().map(|command| without_arguments(&command, process.exe.as_deref()));
    }
}

/// How a process was called. The command line is in one text, in which a name with a blank is known by that of the executable.
fn without_arguments(command: &str, exe: Option<&str>) -> String {
    let named = exe.and_then(|exe| {
        let name = exe.rsplit('/').next()?;
        let end = command.find(name)? + name.len();
        command.get(..end).filter(|_| matches!(command.as_bytes().get(end), None | Some(b' ')))
    });
    named.or(command.split(' ').next()).unwrap_or_default().to_owned()
}

/// The exit status that tells of an inspection.
pub fn status(inspection: &Inspection, fail_on: Option<FailOn>) -> u8 {
    let fails = fail_on.zip(inspection.worst()).is_some_and(|(on, worst)| on.includes(worst));
    match (fails, inspection.complete()) {
        (true, _) => FAILED,
        (false, true) => COMPLETE,
        (false, false) => PARTIAL,
    }
}
