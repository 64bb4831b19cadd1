//! Teams and their barriers.

use std::ops::Deref;

use ompd_process::Addr;

use crate::entry::Construct;

use super::{CodeRef, Common, Fact, SourceLine, TeamId};

/// One team as its runtime has it: the threads executing one parallel region.
#[derive(Debug, Clone)]
pub struct RawTeam {
    /// Address of the runtime's descriptor (`gomp_team`, `kmp_team`). Serialized regions of libomp share one.
    pub descriptor: Addr,
    /// Members (`omp_get_num_threads`).
    pub size: Fact<u32>,
    /// Nesting level (`omp_get_level`), 1 for an outermost region.
    pub level: Fact<u32>,
    /// Enclosing regions, this one included, with more than one thread (`omp_get_active_level`).
    pub active_level: Fact<u32>,
    /// The team of the encountering thread; `Known(None)` at level 1.
    pub parent: Fact<Option<TeamId>>,
    /// Thread number of the encountering thread in the parent team (`omp_get_ancestor_thread_num`); 0 at level 1.
    pub primary_num: Fact<u32>,
    /// True if the region is executed by one thread.
    pub serialized: Fact<bool>,
    /// The function the region's body was outlined into, where the runtime records it.
    pub function: Fact<Addr>,
    /// Where the construct stands in the source, where the runtime records it.
    pub location: Fact<SourceLine>,
    /// LWP of each member by thread number, as far as found.
    pub members: Vec<Option<i32>>,
    /// Progress of the team's barrier.
    pub barrier: Fact<Barrier>,
    /// What an OMPT tool has filed with the region; 0 where there is no tool, or it has filed nothing.
    pub tool_data: Fact<u64>,
}

/// One team: as it was read, and what all evidence says of the construct it executes.
#[derive(Debug, Clone)]
pub struct Team {
    pub(crate) raw: RawTeam,
    /// The function the region's body was outlined into.
    pub function: Fact<CodeRef>,
    /// Where the construct stands in the source; of origin [`Dwarf`](ompd_layout::Origin::Dwarf) where the code of its body begins.
    pub location: Fact<SourceLine>,
    /// Which construct it is (`parallel`, `parallel for`, `teams`, …); only the stacks of its threads tell.
    pub construct: Fact<Construct>,
}

impl Deref for Team {
    type Target = RawTeam;

    fn deref(&self) -> &RawTeam {
        &self.raw
    }
}

impl From<RawTeam> for Team {
    /// The team with no other evidence than what was read.
    fn from(raw: RawTeam) -> Team {
        Team {
            function: raw.function.clone().map(CodeRef::new),
            location: raw.location.clone(),
            construct: Fact::unknown(Common::CallNotSeen),
            raw,
        }
    }
}

/// A team's barrier: the one all barriers inside its region use in turn, and the one at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Barrier {
    /// Members that have arrived at a barrier inside the region, as counted by the runtime; `None` where it keeps no count.
    pub inside: Option<u32>,
    /// A count that changes with every barrier the team passes; `None` where it could not be read.
    pub passed: Option<u64>,
    /// Members that have arrived at the end of the region; `None` where the runtime keeps no count.
    pub at_end: Option<u32>,
    /// Members it waits for.
    pub size: u32,
}
