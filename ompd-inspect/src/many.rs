//! Several processes and cores: which they are, and their reports one below the other.

use std::path::Path;

use ompd_inspection::Inspection;
use ompd_process::live::listing::{self, ProcessEntry};
use ompd_report::escape::escape;
use ompd_report::json::{self, list};
use ompd_report::text::overview::{self, Entry, Finding};
use ompd_report::text::{self, How, View};
use ompd_runtime::family::is_named_like_a_runtime;

use crate::args::Options;
use crate::inspecting::{Inspecting, NOT_INSPECTED, status};
use crate::output::Failure;
use crate::progress::Progress;

/// One of several targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Process id or path.
    pub name: String,
    /// The process it was found as a child of.
    pub parent: Option<i32>,
}

impl Target {
    fn named(name: &str) -> Target {
        Target { name: name.to_owned(), parent: None }
    }
}

/// The targets that the options and arguments ask for; `None` if that is one alone, which gets a report of its own.
///
/// # Errors
/// There is no such process, or a core was to have children.
pub fn targets(options: &Options, named: &[String]) -> Result<Option<Vec<Target>>, Failure> {
    let mut targets: Vec<Target> = named.iter().map(|name| Target::named(name)).collect();
    let is_list = named.len() > 1 || options.name.is_some() || options.user || options.children;
    if options.name.is_some() || options.user {
        targets.extend(found(options)?);
    }
    if options.children {
        targets = with_children(&options.proc_root, targets)?;
    }
    let mut known = std::collections::HashSet::new();
    targets.retain(|target| known.insert(target.name.clone()));
    Ok(is_list.then_some(targets))
}

/// Bytes of a process's own name that the kernel keeps.
const KEPT: usize = 15;

/// The processes that `--name` and `--user` ask for: if both, those that are meant by both.
fn found(options: &Options) -> Result<Vec<Target>, Failure> {
    let all = listing::processes(&options.proc_root).map_err(|error| {
        let root = escape(&options.proc_root.display().to_string());
        Failure::with_remedy(
            format_args!("processes cannot be listed: {root}: {error}"),
            "name process ids, or mount procfs",
        )
    })?;
    let own = i32::try_from(std::process::id()).ok();
    let us = rustix::process::geteuid().as_raw();
    let is_named = |process: &ProcessEntry| options.name.as_ref().is_none_or(|name| has_name(process, name));
    let is_ours =
        |process: &ProcessEntry| !options.user || process.user() == Some(us) && process.maps(is_named_like_a_runtime);
    let wanted = |process: &&ProcessEntry| {
        Some(process.pid) != own && !process.has_ended() && is_named(process) && is_ours(process)
    };
    let found: Vec<Target> = all.iter().filter(wanted).map(|process| Target::named(&process.pid.to_string())).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    // What others execute is not shown, but how they call it is.
    let is_foreign = |process: &&ProcessEntry| {
        let called = |name: &String| process.name == *name || name.get(..KEPT) == Some(&process.name);
        let is_program = || process.exe().is_none() && !process.arguments().is_empty();
        options.name.as_ref().is_some_and(called) && !process.has_ended() && is_program()
    };
    let foreign = all.iter().find(is_foreign).filter(|_| !options.user);
    Err(match &options.name {
        Some(name) if let Some(process) = foreign => Failure::with_remedy(
            format_args!(
                "process {} is called {}, and may not be looked at{}",
                process.pid,
                escape(name),
                process.user().map(|user| format!(": it runs as uid {user}")).unwrap_or_default()
            ),
            "look as that user, or as root",
        ),
        Some(name) if options.user => Failure::with_remedy(
            format_args!("no process of this user with an OpenMP runtime is called {}", escape(name)),
            "look for its id (pgrep -a NAME)",
        ),
        Some(name) => Failure::with_remedy(
            format_args!("no process is called {}", escape(name)),
            "look for it with pgrep -af: its program file may be called otherwise, as that of a script is",
        ),
        None => Failure::with_remedy(
            "no process of this user has loaded an OpenMP runtime",
            "name the process: a runtime that is built into the program is not seen from outside",
        ),
    })
}

/// Whether a process is called so: its program file, or the name it has given itself, of which the kernel keeps 15 bytes.
fn has_name(process: &ProcessEntry, name: &str) -> bool {
    // Kernel threads have no program.
    let Some(exe) = process.exe() else { return false };
    let file = Path::new(&exe).file_name().and_then(|file| file.to_str());
    // A script has a name of its own, which may be cut off, and the program file of its interpreter.
    let is_script = file.is_none_or(|file| !file.starts_with(&process.name));
    let cut = name.get(..KEPT).filter(|_| is_script && name.len() > KEPT);
    file == Some(name) || process.name == name || cut == Some(&process.name)
}

/// The targets, each followed by its descendants.
fn with_children(proc_root: &Path, targets: Vec<Target>) -> Result<Vec<Target>, Failure> {
    let mut all = Vec::new();
    for target in targets {
        let Ok(pid) = target.name.parse::<i32>() else {
            return Err(Failure::with_remedy(
                format_args!("{} is a core file: it has no child processes", escape(&target.name)),
                "name the cores of the children as well, without --children",
            ));
        };
        all.push(target);
        let children = listing::descendants(proc_root, pid).into_iter();
        all.extend(children.map(|child| Target { name: child.pid.to_string(), parent: Some(child.parent) }));
    }
    Ok(all)
}

/// What several inspections say together.
#[derive(Debug)]
pub struct Reports {
    /// Text or a JSON document.
    pub shown: String,
    /// The highest exit status of all.
    pub status: u8,
}

/// In which form reports are wanted.
#[derive(Debug, Clone, Copy)]
pub struct Form {
    /// The view, if they are text.
    pub view: View,
    /// One JSON document.
    pub json: bool,
    /// Columns of the terminal.
    pub width: Option<u16>,
}

/// Inspects all of them, one after the other.
///
/// # Errors
/// The document cannot be made.
pub fn reports(
    targets: &[Target],
    inspecting: &Inspecting<'_>,
    options: &Options,
    form: Form,
) -> Result<Reports, Failure> {
    let progress = Progress::of(&format!("inspecting {} processes", targets.len()));
    let mut collected = Collected::new(options, form);
    for (done, target) in targets.iter().enumerate() {
        progress.at(|| format!("{done} are done"));
        let outcome = inspecting.inspect(&target.name);
        collected.add(target, outcome.as_ref());
    }
    collected.finish()
}

/// The reports of those that were inspected up to now.
#[derive(Debug)]
pub struct Collected<'a> {
    options: &'a Options,
    form: Form,
    entries: Vec<Entry>,
    sections: Vec<String>,
    members: Vec<list::Member>,
    status: u8,
}

impl<'a> Collected<'a> {
    /// None yet.
    pub fn new(options: &'a Options, form: Form) -> Collected<'a> {
        Collected { options, form, entries: Vec::new(), sections: Vec::new(), members: Vec::new(), status: 0 }
    }

    /// Adds the result of one.
    pub fn add(&mut self, target: &Target, outcome: Result<&Inspection, &Failure>) {
        let Target { name, parent } = target;
        let status = outcome.map_or(NOT_INSPECTED, |inspection| status(inspection, self.options.fail_on));
        self.status = self.status.max(status);
        if self.form.json {
            self.members.push(match outcome {
                Ok(inspection) => list::inspected(name.clone(), *parent, inspection),
                Err(failure) => list::refused(name.clone(), *parent, failure.to_string()),
            });
            return;
        }
        let (called, finding) = match outcome {
            Ok(inspection) => (overview::name(inspection), Finding::of(inspection)),
            Err(_) => (None, Finding::Refused),
        };
        self.entries.push(Entry { target: name.clone(), name: called, parent: *parent, finding });
        self.sections.push(match outcome {
            Ok(inspection) => text::render(inspection, self.form.view, self.how()),
            Err(failure) => format!("{}: {failure}\n", escape(name)),
        });
    }

    fn how(&self) -> How {
        let Options { verbose, children, .. } = *self.options;
        How { width: self.form.width, verbose, with_children: children, ..How::default() }
    }

    /// The reports alone, without what stands above several.
    pub fn sections(self) -> String {
        self.sections.join("\n")
    }

    /// All of them together.
    ///
    /// # Errors
    /// The document cannot be made.
    pub fn finish(self) -> Result<Reports, Failure> {
        let status = self.status;
        if self.form.json {
            let shown = document(&list::list(self.members))?;
            return Ok(Reports { shown, status });
        }
        if !self.form.view.has_verdicts() {
            return Ok(Reports { shown: self.sections.join("\n"), status });
        }
        let overview = overview::render(&self.entries, self.how());
        // As in the overview, the worst first.
        let mut sections: Vec<_> = self.entries.iter().map(|entry| entry.finding).zip(self.sections).collect();
        sections.sort_by_key(|(finding, _)| *finding);
        let reports: Vec<String> = sections.into_iter().map(|(_, section)| section).collect();
        Ok(Reports { shown: format!("{overview}\n{}", reports.join("\n")), status })
    }
}

/// A JSON document, safe to print.
///
/// # Errors
/// It cannot be made.
pub fn document(of: &impl serde::Serialize) -> Result<String, Failure> {
    let text =
        serde_json::to_string_pretty(of).map_err(|error| Failure::new(format!("cannot write the report: {error}")))?;
    Ok(ompd_report::escape::json(&(text + "\n")).into_owned())
}

/// The JSON document of one inspection.
///
/// # Errors
/// As [`document`].
pub fn report(inspection: &Inspection) -> Result<String, Failure> {
    document(&json::report(inspection))
}
