//! The control variables as lines of text.

use ompd_process::Target;
use ompd_runtime::family::variable_prefixes;
use ompd_runtime::model::{Fact, Setting};

use crate::space::Space;
use crate::types::Rc;

/// What the environment sets, and behind it what the runtime has, by the names of the specification.
pub(crate) fn lines(space: &Space) -> Result<Vec<String>, Rc> {
    let environment = space.target().process().environment.only(&variable_prefixes());
    let mut lines: Vec<String> =
        environment.variables().iter().map(|(name, value)| format!("{name}={value}")).collect();
    let known = |setting: &Setting| match &setting.value {
        Fact::Known { value, .. } => Some(format!("{}={value}", setting.name)),
        Fact::Unknown { .. } => None,
    };
    lines.extend(space.main()?.settings.iter().filter_map(known));
    Ok(lines)
}
