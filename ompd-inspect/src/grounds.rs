//! `doctor --why`: which bytes of the target a value rests on.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anstream::ColorChoice;
use ompd_inspection::grounds::{Kept, of_named};
use ompd_inspection::{Inspection, Wanted};
use ompd_process::Pause;
use ompd_report::escape::escape;
use ompd_report::fields::{self, Fields, Named};
use ompd_report::{json, text};
use serde_json::Value;

use crate::args::Options;
use crate::inputs::{self, Input};
use crate::inspecting::{COMPLETE, Inspecting, PARTIAL, hide_arguments};
use crate::many;
use crate::output::Failure;
use crate::progress::Progress;
use crate::redact;

/// The search ends after this time.
const LONGEST: Duration = Duration::from_secs(30);
/// So many names are shown of those that a part may stand for.
const SHOWN: usize = 10;

/// Shows what the value of this name rests on.
///
/// # Errors
/// The target cannot be opened, or has no such value.
pub fn why(field: &str, target: &str, options: &Options, color: ColorChoice) -> Result<u8, Failure> {
    if options.samples > 1 {
        return Err(Failure::with_remedy("--why looks once", "leave out --samples"));
    }
    let inspecting = Inspecting::new(options, false, true);
    if inspecting.open().pause == Pause::Never {
        return Err(Failure::with_remedy("--why stops the process once", "leave out --pause never"));
    }
    let wanted = Wanted { samples: 1, ..inspecting.wanted() };
    let mut output = options.output()?;
    let (found, directories) = match inputs::open(target, inspecting.open())? {
        Input::Named => of_named(target, inspecting.open(), wanted, |kept| search(kept, field, options))
            .map_err(|error| inputs::not_opened(target, error))?,
        Input::Core(core) => search(&Kept::of(&*core, wanted), field, options),
    }?;
    output.hide_directories(&directories);
    if options.json {
        output.document(&many::document(&found)?)?;
    } else {
        let text = text::grounds::render(&found, output.width());
        output.text(&text, color)?;
    }
    Ok(if found.is_complete() { COMPLETE } else { PARTIAL })
}

/// The report, as `--json` shows it.
fn report(mut inspection: Inspection, options: &Options) -> Value {
    hide_arguments(&mut inspection, options);
    serde_json::to_value(json::report(&inspection)).unwrap_or_default()
}

/// What was found, and the directories that the report names.
type Found = (json::grounds::Grounds, BTreeSet<String>);

fn search(kept: &Kept<'_>, field: &str, options: &Options) -> Result<Found, Failure> {
    let inspection = kept.inspection();
    let issues = inspection.all_issues().map(|issue| format!("{}: {}", issue.subject, issue.what)).collect();
    let document = report(inspection, options);
    let known = fields::of(&document);
    let name = match fields::named(&known, field) {
        Named::One(name) => name,
        Named::Several(names) => {
            let shown: Vec<String> = names.iter().take(SHOWN).map(|name| escape(name)).collect();
            let more = if names.len() > SHOWN { ", ..." } else { "" };
            let text = format!("{} may be one of {} values", escape(field), names.len());
            return Err(Failure::with_remedy(text, format!("name one of {}{more}", shown.join(", "))));
        }
        Named::Nothing => {
            let text = format!("no value is called {}", escape(field));
            return Err(Failure::with_remedy(text, "name it as --json does, as answer.word or threads.LWP.wait"));
        }
    };
    let of = |fields: &Fields| {
        fields::below(fields, &name).map(|(name, value)| (name.clone(), value.clone())).collect::<Fields>()
    };
    let progress = Progress::of(&format!("looking for what {name} rests on"));
    let began = Instant::now();
    let continues = |looks: usize| {
        progress.at(|| format!("{looks} looks"));
        began.elapsed() < LONGEST
    };
    let found = kept.grounds(|inspection| of(&fields::of(&report(inspection, options))), &continues);
    drop(progress);
    let directories = if options.redact { redact::directories_of(&document) } else { BTreeSet::new() };
    Ok((json::grounds::grounds(kept, &name, of(&known), &found, issues, !options.redact), directories))
}
