//! `cargo xtask matrix`: every runtime that can be had by a package name, and how well it is read.
//!
//! Each runtime is checked twice. The first check compares the layout derived from its file with an independent truth.
//! The second compares reports on programs that run on it with what these programs say of themselves. Only observed
//! results are written, and a single wrong value makes the whole fail.

mod fetched;
mod layouts;
mod records;
mod trial;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use clap::Args;
use test_programs::guest::{Kept, KeptRuntime, KeptValues};

use crate::bench::built_beside;
use fetched::Fetched;
use layouts::{Layouts, Score, Truth};
use trial::{Outcome, Trial};

/// Arguments of `matrix`.
#[derive(Args)]
pub struct Arguments {
    /// Write the result to docs/support-matrix.md too.
    #[arg(long, conflicts_with = "check")]
    write: bool,
    /// Only look whether anything is wrong, on what is here; that may be nothing.
    #[arg(long)]
    check: bool,
    /// Leave out what takes a process: are the layouts derived from the files right?
    #[arg(long, requires = "check")]
    files: bool,
    /// Write down what is decoded of each runtime that is here and proved: libompd/runtime/src/*/profiles/decoded.txt.
    #[arg(long, conflicts_with_all = ["write", "check"])]
    records: bool,
    /// Say what is unknown or lacking, too.
    #[arg(long, short)]
    verbose: bool,
}

/// One runtime.
struct Row {
    what: String,
    machine: &'static str,
    layouts: Layouts,
    /// Live and from a core; nothing when only files are looked at.
    trials: Option<(Trial, Trial)>,
}

/// Makes the table, prints it, and says what is wrong.
///
/// # Errors
/// When there is nothing to look at, or, after everything is printed and written, when anything is wrong.
pub fn run(arguments: &Arguments) -> Result<()> {
    let all = fetched::all()?;
    if all.is_empty() && arguments.check {
        println!("skipped: no runtimes of other releases and makers are here; ci/fetch gets them");
        return Ok(());
    }
    ensure!(!all.is_empty(), "there are no runtimes; ci/fetch gets them");
    if arguments.records {
        return records::write(&all);
    }
    let inspect = if arguments.files { None } else { Some(built_beside("ompd-inspect")?) };
    let libc = fetched::libc()?;

    let mut rows = Vec::new();
    let mut without = Vec::new();
    let mut wrong = Vec::new();
    let mut recorded = 0;
    for Fetched { what, library } in all {
        let Some(library) = library else {
            without.push(what);
            continue;
        };
        let layouts = layouts::examine(&library.elf).with_context(|| format!("{what} is no OpenMP runtime"))?;
        let mut trials = None;
        if let Some(inspect) = &inspect {
            eprintln!("{what} ...");
            match trial::run(inspect, &library, layouts.family, libc.as_ref()) {
                Ok(both) => trials = Some(both),
                Err(why) => wrong.push(format!("{what}: {why:#}")),
            }
        }
        let row = Row { machine: fetched::machine(&library.elf), what, layouts, trials };
        wrong.extend(row.wrong());
        match records::check(&library.elf, &row.layouts) {
            Ok(true) => recorded += 1,
            Ok(false) => {}
            Err(why) => wrong.push(format!("{}: {why:#}", row.what)),
        }
        if arguments.verbose {
            row.unknown().iter().for_each(|line| eprintln!("  {line}"));
        }
        rows.push(row);
    }
    // Stable: within a family the order of the folders, by release.
    rows.sort_by_key(|row| row.layouts.family != trial::GNU);

    if arguments.check {
        let judged: usize = rows.iter().map(|row| row.layouts.code.judged() + row.layouts.table.judged()).sum();
        let reported: usize = rows.iter().flat_map(Row::outcomes).map(|(_, o)| o.compared - o.unknown.len()).sum();
        let wrong = wrong.len();
        println!(
            "{} runtimes, {recorded} with a record of what is decoded; {judged} derived values and {reported} reported ones compared, {wrong} wrong",
            rows.len()
        );
    } else {
        let text = document(&rows, &without, libc.is_some())?;
        print!("{text}");
        if arguments.write {
            let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/support-matrix.md");
            fs::write(&file, text).context("writing docs/support-matrix.md")?;
        }
    }
    ensure!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}

impl Score {
    /// Values the truth knows.
    fn judged(&self) -> usize {
        self.right + self.wrong.len()
    }

    fn cell(&self) -> String {
        match (self.judged(), self.unjudged) {
            (0, 0) => "–".to_owned(),
            (0, more) => format!("+{more}"),
            (judged, 0) => format!("{}/{judged}", self.right),
            (judged, more) => format!("{}/{judged} +{more}", self.right),
        }
    }
}

impl Row {
    fn outcomes(&self) -> impl Iterator<Item = (&'static str, &Outcome)> {
        let both = self.trials.iter().flat_map(|(live, core)| [("live", live), ("core", core)]);
        both.filter_map(|(kind, trial)| Some((kind, trial.as_ref().ok()?)))
    }

    fn wrong(&self) -> Vec<String> {
        let layouts = self.layouts.code.wrong.iter().chain(&self.layouts.table.wrong).cloned();
        let reports = self.outcomes().flat_map(|(kind, o)| o.wrong.iter().map(move |line| format!("{kind}, {line}")));
        layouts.chain(reports).map(|line| format!("{}: {line}", self.what)).collect()
    }

    fn unknown(&self) -> Vec<String> {
        let lines = |(kind, o): (_, &Outcome)| -> Vec<String> {
            let unknown = o.unknown.iter().map(|line| format!("{kind}, {line}: unknown"));
            unknown.chain(o.lacking.iter().map(|line| format!("{kind}, {line}"))).collect()
        };
        self.outcomes().flat_map(lines).collect()
    }
}

/// Numbered remarks below the table.
#[derive(Default)]
struct Notes(BTreeMap<String, usize>);

impl Notes {
    fn refer(&mut self, why: &str) -> String {
        let next = self.0.len() + 1;
        format!("[{}]", self.0.entry(why.to_owned()).or_insert(next))
    }

    fn trial(&mut self, trial: &Trial) -> String {
        let outcome = match trial {
            Ok(outcome) => outcome,
            Err(why) => return format!("– {}", self.refer(why)),
        };
        let Outcome { compared, unknown, wrong, lacking } = outcome;
        match (unknown.len(), wrong.len(), lacking.len()) {
            (0, 0, 0) => format!("passed: {compared}"),
            (0, 0, _) => {
                // The same of every program, which stands before it.
                let all: BTreeSet<&str> = lacking.iter().filter_map(|line| Some(line.split_once(": ")?.1)).collect();
                let all = all.into_iter().collect::<Vec<_>>().join(", ");
                format!("passed: {compared} {}", self.refer(&format!("the reports say, too: {all}")))
            }
            (unknown, 0, _) => format!("partial: {} of {compared}", compared - unknown),
            (_, wrong, _) => format!("**{wrong} of {compared} wrong**"),
        }
    }
}

/// The whole page.
fn document(rows: &[Row], without: &[String], has_libc: bool) -> Result<String> {
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").context("the kernel's version")?;
    let glibc = trial::machine_glibc()?.iter().map(u32::to_string).collect::<Vec<_>>().join(".");
    let mut text = String::from(
        "# Support matrix\n\n\
         Made by `ci/matrix`; do not edit. Every OpenMP runtime that can be had by a package name, and how well it is \
         read.\n\n\
         - **layout**: the shipped layout in use, chosen by build-id or by what the file exports, and only if no \
         derived value contradicts it.\n\
         - **truth**: what derived values are judged by. `DWARF`: debug information of this very build. `exports`: the \
         shipped layout, made from another build, that exported names or the build-id alone lead to; no derived value \
         has a say in it. `symbols`: only addresses of variables, from the symbol table.\n\
         - **code**: values decoded from instructions, **table**: values the runtime describes itself with. `39/40 +3`: \
         of 40 values the truth knows 39 are right; it does not know three more.\n\
         - **left**: values the truth knows that neither code nor table gives. They come from debug information or the \
         shipped layout, else they are unknown.\n",
    );
    let programs = trial::PROGRAMS.map(|name| format!("`{name}`")).join(", ");
    writeln!(
        text,
        "- **live**, **core**: the programs {programs} run on this runtime and are inspected, running and from the core \
         `gcore` makes of them. The numbers are values of the reports, compared with what the programs say of \
         themselves. `passed`: all are known and right. `partial: 440 of 450`: what is known is right, the rest is \
         reported as unknown, and so is every value that depends on a part of the layout nobody knows.\n"
    )?;
    let machine = std::env::consts::ARCH;
    // The rest names the build, which is nobody's business.
    let kernel = kernel.split('-').next().unwrap_or_default().trim();
    write!(text, "Made on {machine}, Linux {kernel}, glibc {glibc}.")?;
    if has_libc {
        write!(text, " Programs on runtimes that need a newer glibc use the one of Debian trixie.")?;
    }
    text += "\n\n| runtime | machine | layout | truth | code | table | left | live | core |\n";
    text += "|---|---|---|---|---|---|---|---|---|\n";
    let mut notes = Notes::default();
    for row in rows {
        let Layouts { class, truth, code, table, underived, .. } = &row.layouts;
        let judged = code.judged() + table.judged() > 0;
        let (truth, left) = match truth {
            Truth::Dwarf(_) => ("DWARF".to_owned(), underived.to_string()),
            Truth::Class(_) => ("exports".to_owned(), underived.to_string()),
            Truth::None(why) if judged => (format!("symbols {}", notes.refer(why)), "–".to_owned()),
            Truth::None(why) => (format!("none {}", notes.refer(why)), "–".to_owned()),
        };
        let class = class.unwrap_or("–");
        let (live, core) = match &row.trials {
            Some((live, core)) => (notes.trial(live), notes.trial(core)),
            None => ("**failed**".to_owned(), "**failed**".to_owned()),
        };
        let (what, machine, code, table) = (&row.what, row.machine, code.cell(), table.cell());
        writeln!(text, "| {what} | {machine} | {class} | {truth} | {code} | {table} | {left} | {live} | {core} |")?;
    }
    text.push('\n');
    let mut notes: Vec<(String, usize)> = notes.0.into_iter().collect();
    notes.sort_by_key(|(_, number)| *number);
    for (why, number) in notes {
        writeln!(text, "- [{number}] {why}.")?;
    }
    if !without.is_empty() {
        writeln!(text, "- Bring no runtime and use the system's: {}.", without.join("; "))?;
    }
    if let Some(kept) = Kept::read()? {
        emulated(&mut text, &kept)?;
    }
    Ok(text)
}

/// What was last found on an emulated machine.
fn emulated(text: &mut String, kept: &Kept) -> Result<()> {
    let Kept { machine, date, kernel, emulator, runtimes } = kept;
    write!(
        text,
        "\n## On an emulated {machine} machine\n\n\
         Made by `ci/{machine}` on {date}: Linux {kernel} on {emulator}. Test programs run there and are inspected, running and \
         from the core that the kernel writes of them. `1200 (3)`: of 1200 values three are unknown, the others right.\n\n\
         - **hangs**, **healthy**: programs that hang, each with the right verdict, cause and owners, and programs that do not, \
         each without a verdict.\n\
         - **same**: cores of which the report on x86-64 has the same bytes as the report there.\n\n\
         | runtime | live | core | hangs | healthy | same |\n|---|---|---|---|---|---|\n"
    )?;
    for (what, KeptRuntime { live, core, hangs, healthy, same }) in runtimes {
        let cell = |KeptValues { compared, wrong, unknown }: &KeptValues| match (wrong, unknown) {
            (0, 0) => compared.to_string(),
            (0, unknown) => format!("{compared} ({unknown})"),
            (wrong, _) => format!("**{wrong} of {compared} wrong**"),
        };
        let (live, core) = (cell(live), cell(core));
        writeln!(text, "| {what} | {live} | {core} | {hangs} | {healthy} | {same} |")?;
    }
    Ok(())
}
