//! `cargo xtask layout check`: what is known of a runtime, and whether its origins agree.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use ompd_layout::profile::{Comparison, ExportView};
use ompd_layout::{FactSource, Facts};
use ompd_process::elf::ElfFile;

use super::{Family, count, open};

/// Arguments of `layout check`.
#[derive(Args)]
pub struct Arguments {
    /// Runtimes, stripped or not.
    #[arg(required = true)]
    elf: Vec<PathBuf>,
    /// Also tell what could not be decoded, and why each of the other profiles is not used.
    #[arg(long, short)]
    verbose: bool,
}

/// Runs the task.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let (mut contradictions, mut known) = (0, 0);
    for path in &arguments.elf {
        let file = open(path)?;
        let verdict = verdict(&file, arguments.verbose).with_context(|| path.display().to_string())?;
        println!("{}\n{}", path.display(), verdict.text);
        contradictions += verdict.contradictions;
        known += usize::from(verdict.profile.is_some());
    }
    println!("{} files, {known} with a profile, {contradictions} contradictions", arguments.elf.len());
    Ok(if contradictions > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// What is known of one file.
pub struct Verdict {
    /// Lines to print.
    pub text: String,
    /// Values two origins do not agree on.
    pub contradictions: usize,
    /// The profile selected.
    pub profile: Option<String>,
}

/// Asks every origin about a file and compares their answers, each with each.
pub fn verdict(file: &ElfFile, verbose: bool) -> Result<Verdict> {
    let analysis = ompd_runtime::analyse(file).context("this is no OpenMP runtime")?;
    let family = &Family::of(analysis.family);
    let mut text = String::new();
    let mut line = |key: &str, value: String| text.push_str(&format!("  {key:9} {value}\n"));
    line("family", format!("{}, {}", family.about.schema.family, file.machine()));
    line("build-id", ExportView::build_id(file).unwrap_or_else(|| "none".to_owned()));
    let nodes = ExportView::version_nodes(file);
    line("versions", if nodes.is_empty() { "none".to_owned() } else { nodes.join(" ") });
    let prints = family.shipped.classes.iter().flat_map(|class| &class.builds).map(|build| &build.fingerprint);
    let markers: BTreeSet<&str> =
        prints.flat_map(|p| p.exports.iter().chain(&p.no_exports)).map(String::as_str).collect();
    line("markers", markers.into_iter().filter(|name| file.exports(name)).collect::<Vec<_>>().join(" "));

    for ((source, facts), report) in analysis.origins.iter().zip(&analysis.reports) {
        let note = report.note.as_deref().map(|note| format!(" ({note})")).unwrap_or_default();
        let what = format!("{} values, {} globals, from {}{note}", count(facts), facts.globals.len(), source.detail);
        line(source.origin.word(), what);
        for detail in report.details.iter().filter(|_| verbose) {
            line("", detail.clone());
        }
    }

    let mut known: Vec<(FactSource, Facts)> = analysis.origins;
    let mut comparisons = Vec::new();
    let mut profile = None;
    match analysis.profile {
        Ok(chosen) => {
            let how = if chosen.by_build_id { "build-id" } else { "fingerprint" };
            line("profile", format!("{}, by {how}", chosen.profile.name));
            known.push((chosen.profile.source(), chosen.profile.facts.clone()));
            profile = Some(chosen.profile.name.clone());
        }
        Err(rejected) => {
            line("profile", "none".to_owned());
            for rejection in rejected {
                line("", rejection.to_string());
                if !rejection.mismatches.is_empty() {
                    let comparison = Comparison { confirmed: 0, mismatches: rejection.mismatches };
                    comparisons.push((format!("what the file says with {}", rejection.profile), comparison));
                }
            }
        }
    }
    for (n, (a, a_facts)) in known.iter().enumerate() {
        for (b, b_facts) in &known[n + 1..] {
            // Profiles know no globals.
            let comparison = Comparison::of_one_build((a, a_facts), (b, b_facts));
            comparisons.push((format!("{} with {}", a.origin, b.origin), comparison));
        }
    }
    let mut contradictions = 0;
    for (what, Comparison { confirmed, mismatches }) in comparisons {
        if confirmed + mismatches.len() > 0 {
            line("compared", format!("{what}: {confirmed} agree, {} contradict each other", mismatches.len()));
        }
        for mismatch in &mismatches {
            line("", mismatch.to_string());
        }
        contradictions += mismatches.len();
    }
    let facts: Vec<&Facts> = known.iter().map(|(_, facts)| facts).collect();
    let missing = family.missing(&facts);
    line("missing", if missing.is_empty() { "nothing".to_owned() } else { missing.join(" ") });
    Ok(Verdict { text, contradictions, profile })
}
