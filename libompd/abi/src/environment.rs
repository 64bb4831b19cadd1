//! The control variables as lines of text.

use std::collections::HashSet;

use ompd_process::Target;
use ompd_runtime::family::variable_prefixes;
use ompd_runtime::icvs::{REGISTRY, STACKSIZE};
use ompd_runtime::model::IcvValue;

use crate::space::Space;
use crate::types::Rc;

/// What the runtime has: by the names of the specification, and by those of the variables of the environment that set it. Of what was
/// not read, what the environment says comes first.
pub(crate) fn lines(space: &Space) -> Result<Vec<String>, Rc> {
    let main = space.main()?;
    let settings: Vec<(&str, &IcvValue)> =
        main.settings.iter().filter_map(|setting| Some((setting.name, setting.value.value()?))).collect();
    let mut read: Vec<(&str, String)> =
        settings.iter().filter_map(|(name, value)| of_environment(name, value)).collect();
    read.extend(settings.iter().map(|(name, value)| (*name, value.to_string())));
    let own = space.own_settings(main.instance.base);
    read.extend(own.into_iter().map(|(name, value)| (name, value.to_string())));
    let told: HashSet<&str> = read.iter().map(|(name, _)| *name).collect();
    let environment = space.target().process().environment.only(&variable_prefixes());
    let said = environment.variables().iter().filter(|(name, _)| !told.contains(name.as_str()));
    let said = said.map(|(name, value)| format!("{name}={value}"));
    Ok(said.chain(read.iter().map(|(name, value)| format!("{name}={value}"))).collect())
}

/// A control variable of the process by the variable of the environment that sets it, with a value that could be put there.
fn of_environment(name: &str, value: &IcvValue) -> Option<(&'static str, String)> {
    let entry = REGISTRY.iter().find(|entry| entry.name() == name)?;
    let variable = *entry.variables.first().filter(|variable| **variable != name)?;
    // A number alone is one of kilobytes there.
    let unit = if entry.name() == STACKSIZE.name() { "B" } else { "" };
    Some((variable, format!("{value}{unit}")))
}
