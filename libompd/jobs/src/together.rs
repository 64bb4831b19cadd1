//! What the ranks of a job say about each other: who is in which collective call of MPI and who is not, who moves, who is behind.
//!
//! No process knows what another one waits for: none of this is a verdict.

use std::collections::BTreeMap;

use ompd_report::escape::escape;

use crate::merged::{Counter, Extent, Members, Merged, MpiCall, Reached};
use crate::ranks::RankSet;
use crate::text::{counted, digits, name, ranks, short};

/// Calls and counters that are shown.
const SHOWN: usize = 4;

/// Operations that all processes of a communicator have to call (MPI 4.1, chapters 6 to 8, 12 and 14).
const COLLECTIVES: &[&str] = &[
    "Allgather",
    "Allgatherv",
    "Allreduce",
    "Alltoall",
    "Alltoallv",
    "Alltoallw",
    "Barrier",
    "Bcast",
    "Cart_create",
    "Cart_sub",
    "Comm_create",
    "Comm_disconnect",
    "Comm_dup",
    "Comm_dup_with_info",
    "Comm_free",
    "Comm_split",
    "Comm_split_type",
    "Dist_graph_create",
    "Dist_graph_create_adjacent",
    "Exscan",
    "File_close",
    "File_open",
    "File_read_all",
    "File_read_at_all",
    "File_set_size",
    "File_set_view",
    "File_sync",
    "File_write_all",
    "File_write_at_all",
    "Finalize",
    "Gather",
    "Gatherv",
    "Graph_create",
    "Init",
    "Init_thread",
    "Intercomm_create",
    "Intercomm_merge",
    "Neighbor_allgather",
    "Neighbor_allgatherv",
    "Neighbor_alltoall",
    "Neighbor_alltoallv",
    "Neighbor_alltoallw",
    "Reduce",
    "Reduce_scatter",
    "Reduce_scatter_block",
    "Scan",
    "Scatter",
    "Scatterv",
    "Win_allocate",
    "Win_allocate_shared",
    "Win_create",
    "Win_create_dynamic",
    "Win_fence",
    "Win_free",
];

/// Whether all processes of a communicator have to call it.
pub(crate) fn is_collective(function: &str) -> bool {
    function.strip_prefix("MPI_").is_some_and(|name| COLLECTIVES.binary_search(&name).is_ok())
}

/// What there is to say of a job, a sentence each.
pub(crate) fn sentences(merged: &Merged) -> Vec<String> {
    let mut all = Vec::new();
    for (job, inspected) in &merged.inspected.ranks {
        all.extend(collectives(merged, job, inspected));
    }
    all.extend(motions(merged));
    all.extend(counters(merged));
    all
}

/// The collective calls of one job, and the ranks that are in none.
fn collectives(merged: &Merged, job: &str, inspected: &RankSet) -> Vec<String> {
    let mut by_function: BTreeMap<&str, RankSet> = BTreeMap::new();
    let mut sites: Vec<(&MpiCall, &RankSet)> = Vec::new();
    let mut in_mpi = RankSet::default();
    for (call, members) in &merged.calls {
        let Some(of_job) = members.ranks.get(job) else { continue };
        in_mpi.unite(of_job);
        if is_collective(&call.function) {
            by_function.entry(&call.function).or_default().unite(of_job);
            sites.push((call, of_job));
        }
    }
    if sites.is_empty() {
        return Vec::new();
    }
    sites.sort_by_key(|(_, of_call)| std::cmp::Reverse(of_call.len()));
    let mut all = Vec::new();
    let mut collective = RankSet::default();
    by_function.values().for_each(|of_function| collective.unite(of_function));
    let elsewhere = inspected.without(&collective);
    for (call, of_call) in sites.iter().take(SHOWN) {
        let all_of_it = if merged.absent(job).is_empty() { "" } else { " inspected" };
        let of = format!("{}{all_of_it}", digits(inspected.len()));
        let place = call.place.as_deref().map(|place| format!(", called at {}", escape(place))).unwrap_or_default();
        let verb = if of_call.len() == 1 { "is" } else { "are" };
        all.push(format!("{} of {of} {verb} in {}{place}", ranks(of_call), escape(&call.function)));
    }
    if sites.len() > SHOWN {
        all.push(format!("{} in other collective calls", counted((sites.len() - SHOWN) as u64, "group")));
    }
    if !elsewhere.is_empty() {
        let verb = if elsewhere.len() == 1 { "is" } else { "are" };
        let places = places(merged, job, &elsewhere);
        let what = if places.is_empty() { String::new() } else { format!(": {places}") };
        all.push(format!("{} {verb} in no collective call{what}", ranks(&elsewhere)));
    }
    if by_function.len() > 1 {
        let groups: Vec<String> = by_function
            .iter()
            .take(SHOWN)
            .map(|(function, of)| format!("{} in {}", ranks(of), escape(function)))
            .collect();
        all.push(format!(
            "Suspicion: different collective calls at once ({}). On the same communicator they never end; which \
             communicators these are is unknown",
            groups.join(", ")
        ));
    }
    all
}

/// Where the main threads of some ranks are.
fn places(merged: &Merged, job: &str, of: &RankSet) -> String {
    let at = |members: &Members| members.ranks.get(job).is_some_and(|ranks| !ranks.common(of).is_empty());
    let places: Vec<String> =
        merged.places.iter().filter(|(_, members)| at(members)).map(|(place, _)| escape(&place.text)).collect();
    match places.len() {
        0 => String::new(),
        1..=2 => places.join("; "),
        more => format!("{}; {}; and {} more places", places[0], places[1], more - 2),
    }
}

/// Who has moved between the looks.
fn motions(merged: &Merged) -> Vec<String> {
    let of = |moved| merged.motions.iter().find(|(motion, _)| motion.moved == moved).map(|(_, members)| members);
    let mut all = Vec::new();
    let moved = of(Some(true));
    if let Some(still) = of(Some(false)) {
        let verb = if still.len() == 1 { "has" } else { "have" };
        all.push(match moved {
            None => format!("Between the looks no process has moved: {}", short(still)),
            Some(moved) => {
                let moving = if moved.len() == 1 { "has" } else { "have" };
                format!("Between the looks {} {verb} not moved; {} {moving}", short(still), short(moved))
            }
        });
    } else if let Some(moved) = moved {
        let verb = if moved.len() == 1 { "has" } else { "have" };
        all.push(format!("Between the looks {} {verb} moved", short(moved)));
    }
    if let Some(unknown) = of(None) {
        all.push(format!(
            "Whether {} moved between the looks is unknown: no frame of the program is on a stack",
            short(unknown)
        ));
    }
    all
}

/// Who is behind, where processes have reached different counts.
fn counters(merged: &Merged) -> Vec<String> {
    let ends = |extent: &Extent| Some((extent.least.first()?.clone(), extent.most.last()?.clone()));
    let differ = merged.counters.iter().filter_map(|(counter, extent)| {
        let (least, most) = ends(extent)?;
        (least.count != most.count).then_some((counter, least, most))
    });
    differ.take(SHOWN).map(|(counter, least, most)| behind(counter, &least, &most)).collect()
}

fn behind(Counter { what, region }: &Counter, least: &Reached, most: &Reached) -> String {
    let count = |reached: &Reached| match reached.of {
        Some(of) => format!("{} of {}", digits(reached.count), digits(of)),
        None => digits(reached.count),
    };
    format!(
        "In the region at {} {} is behind: {} {}; {} has {}",
        escape(region),
        name(&least.process),
        count(least),
        escape(what),
        name(&most.process),
        count(most)
    )
}

#[cfg(test)]
mod tests {
    use super::{COLLECTIVES, is_collective};

    #[test]
    fn collective_calls_are_known() {
        assert!(COLLECTIVES.is_sorted());
        assert!(is_collective("MPI_Allreduce") && is_collective("MPI_Barrier"));
        assert!(!is_collective("MPI_Recv") && !is_collective("MPI_Wait") && !is_collective("Barrier"));
    }
}
