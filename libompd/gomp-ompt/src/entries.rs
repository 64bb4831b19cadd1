//! The code of the entry points.

use crate::events::{barriers, cancel, doacross, locks, loops, regions, sections, target, tasks};
use crate::machine::entry;
use crate::names::{Entry, table};

macro_rules! code {
    ($($arguments:tt $name:ident => $function:path;)*) => {
        $(entry!($arguments, $name, { Entry::$name as usize }, $function);)*
    };
}

table!(code);
