//! What a program asks of a runtime by calling one of its functions.

/// How a call of a runtime's function can lead back into the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It executes a parallel region, the caller being the encountering thread, and returns after its end.
    OpensRegion,
    /// It executes a `teams` region. Whether a runtime has a team for the league is its own affair, and may depend on the
    /// number of teams.
    OpensLeague,
    /// It makes a task, and executes it at once if it is undeferred.
    GeneratesTask,
    /// It makes several tasks. What it calls itself is one of them; what functions further in call may be any task of the team,
    /// because it waits for those it made.
    GeneratesTasks,
    /// It waits, or is a scheduling point for another reason, and may execute any task of the team.
    RunsTasks,
    /// It does not lead back into the program.
    Other,
}

/// One function of a runtime, in OpenMP's terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// The construct, or the API routine, that makes a compiler or program call it.
    pub construct: &'static str,
    /// How it can lead back into the program.
    pub role: Role,
    /// The compiler gives the call no line of its own: debug information shows that of whatever statement comes before.
    pub unplaced: bool,
}

impl Entry {
    pub(crate) const fn new(construct: &'static str, role: Role) -> Entry {
        Entry { construct, role, unplaced: false }
    }

    /// The same, called without a line.
    pub(crate) const fn unplaced(self) -> Entry {
        Entry { unplaced: true, ..self }
    }
}

impl Role {
    /// The program's function that such a call leads back into is the body of a region.
    pub fn opens(self) -> bool {
        matches!(self, Role::OpensRegion | Role::OpensLeague)
    }
}

/// A table of entries by the beginning of the function's name; the longest match counts.
pub(crate) type Table = &'static [(&'static str, Entry)];

/// The entry for a function in such a table.
pub(crate) fn look_up(table: Table, symbol: &str) -> Option<Entry> {
    table
        .iter()
        .filter(|(prefix, _)| symbol.starts_with(prefix))
        .max_by_key(|(prefix, _)| prefix.len())
        .map(|(_, e)| *e)
}
