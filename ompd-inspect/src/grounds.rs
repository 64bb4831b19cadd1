//! `doctor --why`: which bytes of the target a value rests on.

use std::time::{Duration, Instant};

use anstream::ColorChoice;
use ompd_inspection::grounds::{Kept, of_named};
use ompd_inspection::{Inspection, Wanted};
use ompd_report::escape::escape;
use ompd_report::fields::{self, Fields, Named};
use ompd_report::{json, text};

use crate::args::Options;
use crate::inputs::{self, Input};
use crate::inspecting::{COMPLETE, Inspecting, PARTIAL};
use crate::many;
use crate::output::Failure;
use crate::progress::Progress;

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
        return Err(Failure::with_remedy("a value of one look is asked about", "leave out --samples"));
    }
    let inspecting = Inspecting::new(options, false, true);
    let wanted = Wanted { samples: 1, ..inspecting.wanted() };
    let output = options.output()?;
    let found = match inputs::open(target, inspecting.open())? {
        Input::Named => of_named(target, inspecting.open(), wanted, |kept| search(kept, field))
            .map_err(|error| inputs::not_opened(target, error))?,
        Input::Core(core) => search(&Kept::of(&*core, wanted), field),
    }?;
    if options.json {
        output.document(&many::document(&found)?)?;
    } else {
        let text = text::grounds::render(&found, output.width());
        output.text(&text, color)?;
    }
    Ok(if found.not_searched == 0 { COMPLETE } else { PARTIAL })
}

/// The values of a report by name.
fn all(inspection: &Inspection) -> Fields {
    serde_json::to_value(json::report(inspection)).map(|report| fields::of(&report)).unwrap_or_default()
}

fn search(kept: &Kept<'_>, field: &str) -> Result<json::grounds::Grounds, Failure> {
    let known = all(&kept.inspection());
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
    let goes_on = |looks: usize| {
        progress.at(|| format!("{looks} looks"));
        began.elapsed() < LONGEST
    };
    let found = kept.grounds(|inspection| of(&all(inspection)), &goes_on);
    drop(progress);
    Ok(json::grounds::grounds(kept, &name, of(&known), &found))
}
