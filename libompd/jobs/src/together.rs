//! What the ranks of a job show about each other. Which are in which collective MPI call or in none, which move, and how far each
//! is in loops.
//!
//! No process knows what another one waits for: none of this is a verdict.

use std::collections::{BTreeMap, BTreeSet};

use ompd_report::escape::escape;

use crate::merged::{Counted, Counter, Extent, Members, Merged, MpiCall, PARTNERS, Partner, Reached};
use crate::ranks::RankSet;
use crate::words::{counted, digits, name, ranks, short};

/// Calls and counters that are shown.
const SHOWN: usize = 4;

/// Communicators, as [`MpiCall`] has them.
const WORLD: &str = "MPI_COMM_WORLD";
const SELF: &str = "MPI_COMM_SELF";
const ANOTHER: &str = "another";

/// Calls that may wait until a message is received (MPI 4.1, section 3.4).
const SENDS: [&str; 3] = ["MPI_Send", "MPI_Ssend", "MPI_Rsend"];

/// Operations that all processes of a communicator have to call (MPI 4.1, chapters 6 to 8, 11, 12 and 14).
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
    "Comm_accept",
    "Comm_connect",
    "Comm_create",
    "Comm_disconnect",
    "Comm_dup",
    "Comm_dup_with_info",
    "Comm_free",
    "Comm_set_info",
    "Comm_spawn",
    "Comm_spawn_multiple",
    "Comm_split",
    "Comm_split_type",
    "Dist_graph_create",
    "Dist_graph_create_adjacent",
    "Exscan",
    "File_close",
    "File_open",
    "File_preallocate",
    "File_read_all",
    "File_read_at_all",
    "File_read_ordered",
    "File_set_atomicity",
    "File_set_size",
    "File_set_view",
    "File_sync",
    "File_write_all",
    "File_write_at_all",
    "File_write_ordered",
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
        all.extend(sends(merged, job, inspected));
    }
    all.extend(partners(merged));
    all.extend(motions(merged));
    all.extend(counters(merged));
    all
}

/// The collective calls of one job, and the ranks that are in none.
fn collectives(merged: &Merged, job: &str, inspected: &RankSet) -> Vec<String> {
    let mut by_communicator: BTreeMap<(&str, Option<&str>), RankSet> = BTreeMap::new();
    let mut sites: Vec<(&MpiCall, &RankSet)> = Vec::new();
    for (call, members) in &merged.calls {
        let Some(of_job) = members.ranks.get(job) else { continue };
        if is_collective(&call.function) {
            let communicator = call.communicator.as_deref();
            by_communicator.entry((&call.function, communicator)).or_default().unite(of_job.clone());
            sites.push((call, of_job));
        }
    }
    if sites.is_empty() {
        return Vec::new();
    }
    sites.sort_by_key(|(_, of_call)| std::cmp::Reverse(of_call.len()));
    let mut all = Vec::new();
    let mut collective = RankSet::default();
    by_communicator.values().for_each(|of_call| collective.unite(of_call.clone()));
    let elsewhere = inspected.without(&collective);
    for (call, of_call) in sites.iter().take(SHOWN) {
        let all_of_it = if merged.absent(job).is_empty() { "" } else { " inspected" };
        let of = format!("{}{all_of_it}", digits(inspected.len()));
        let place = call.place.as_deref().map(|place| format!(", called at {}", escape(place))).unwrap_or_default();
        let verb = if of_call.len() == 1 { "is" } else { "are" };
        let communicator = of_communicator(call.communicator.as_deref());
        all.push(format!("{} of {of} {verb} in {}{communicator}{place}", ranks(of_call), escape(&call.function)));
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
    all.extend(differ(&by_communicator));
    all
}

/// A suspicion, if ranks are in different collective calls.
fn differ(calls: &BTreeMap<(&str, Option<&str>), RankSet>) -> Option<String> {
    // Only the rank itself takes part in a call of MPI_COMM_SELF.
    let common = calls.iter().filter(|((_, communicator), _)| *communicator != Some(SELF));
    let functions: BTreeSet<&str> = common.clone().map(|((function, _), _)| *function).collect();
    let communicators: BTreeSet<Option<&str>> = common.clone().map(|((_, communicator), _)| *communicator).collect();
    let two = communicators.contains(&Some(WORLD)) && communicators.contains(&Some(ANOTHER));
    if functions.len() < 2 && !two {
        return None;
    }
    let groups: Vec<String> = common
        .take(SHOWN)
        .map(|((function, communicator), of)| {
            let communicator = if two { of_communicator(*communicator) } else { String::new() };
            format!("{} in {}{communicator}", ranks(of), escape(function))
        })
        .collect();
    let which = match communicators.len() {
        _ if two => "All ranks have to call those of MPI_COMM_WORLD",
        1 if communicators.contains(&Some(WORLD)) => "All are of MPI_COMM_WORLD",
        _ => "Whether they are of the same communicator is unknown",
    };
    // A broadcast or reduction may be over for one rank before another has called it (MPI 4.1, section 6.1).
    Some(format!(
        "Suspicion: different collective calls at once ({}). {which}. A rank may leave such a call before others enter \
         it: --samples 2 shows whether they move",
        groups.join(", ")
    ))
}

/// ` of MPI_COMM_WORLD`.
fn of_communicator(name: Option<&str>) -> String {
    match name {
        Some(ANOTHER) => " of another communicator".to_owned(),
        Some(name) => format!(" of {}", escape(name)),
        None => String::new(),
    }
}

/// A suspicion, if all ranks send and none receives, as far as is known of their threads. Those whose receivers are known are in [`partners`].
fn sends(merged: &Merged, job: &str, inspected: &RankSet) -> Option<String> {
    let calls = || merged.calls.iter().filter_map(|(call, of)| Some((&*call.function, of.ranks.get(job)?)));
    let mut sending = RankSet::default();
    calls().for_each(|(_, of)| sending.unite(of.clone()));
    let mut known = RankSet::default();
    let edges = merged.partners.iter().filter(|(partner, _)| partner.job == job);
    edges.filter_map(|(_, of)| of.ranks.get(job)).for_each(|of| known.unite(of.clone()));
    let all_send = inspected.len() > 1
        && merged.absent(job).is_empty()
        && !merged.not_alone.ranks.contains_key(job)
        && inspected.without(&sending).is_empty()
        && calls().all(|(function, _)| SENDS.contains(&function));
    if !all_send || inspected.without(&known).is_empty() {
        return None;
    }
    let functions: BTreeSet<&str> = calls().map(|(function, _)| function).collect();
    let functions: Vec<&str> = functions.into_iter().collect();
    Some(format!(
        "Suspicion: all {} are in {}, and no rank is in a call that receives. A send may wait until its message is received: \
         --samples 2 shows whether they move",
        counted(inspected.len(), "rank"),
        functions.join(" or "),
    ))
}

/// Ranks that wait for a message of one rank, or until it receives theirs, and what that one does.
fn partners(merged: &Merged) -> Vec<String> {
    let edges: Vec<(&Partner, &RankSet)> = merged
        .partners
        .iter()
        .filter_map(|(partner, members)| Some((partner, members.ranks.get(&partner.job)?)))
        .collect();
    let next = |job: &str, rank: u64| {
        edges
            .iter()
            // What another thread does may end the wait.
            .find(|(partner, waiting)| partner.job == job && waiting.contains(rank) && !partner.not_alone)
            .map(|(partner, _)| *partner)
    };
    let mut all = Vec::new();
    let mut known: BTreeSet<(&str, u64)> = BTreeSet::new();
    let begins = edges.iter().filter_map(|(partner, waiting)| Some((&*partner.job, waiting.first()?)));
    for (job, first) in begins {
        let Some(cycle) = cycle(first, |rank| next(job, rank)) else { continue };
        if cycle.iter().any(|(rank, _)| !known.insert((job, *rank))) {
            continue;
        }
        let mut parts: Vec<String> = cycle.iter().take(SHOWN).map(|(rank, to)| step(*rank, to)).collect();
        if cycle.len() > SHOWN {
            parts.push(format!("and {} more", cycle.len() - SHOWN));
        }
        all.push(format!(
            "Suspicion: {} wait for each other: {}. Whether messages are on their way is unknown",
            counted(cycle.len() as u64, "rank"),
            parts.join(", ")
        ));
    }
    let others: Vec<(&Partner, RankSet)> = edges
        .iter()
        .map(|(partner, waiting)| {
            let mut in_cycles = RankSet::default();
            known
                .iter()
                .filter(|(job, _)| *job == partner.job)
                .for_each(|(_, rank)| in_cycles.unite(RankSet::one(*rank)));
            (*partner, waiting.without(&in_cycles))
        })
        .filter(|(_, waiting)| !waiting.is_empty())
        .collect();
    for (partner, waiting) in others.iter().take(SHOWN) {
        let place = places(merged, &partner.job, &RankSet::one(partner.rank));
        let place = if place.is_empty() { String::new() } else { format!(", which is in {place}") };
        let verb = if waiting.len() == 1 { "is" } else { "are" };
        let to = towards(&partner.function);
        all.push(format!(
            "{} {verb} in {} {to} rank {}{place}",
            ranks(waiting),
            escape(&partner.function),
            partner.rank
        ));
    }
    if others.len() > SHOWN || merged.more.contains(PARTNERS) {
        all.push("Others wait for other ranks; --json has them".to_owned());
    }
    all
}

/// The cycle that begins with a rank or that it waits for, by what each rank waits for; from its lowest rank on.
fn cycle<'p>(first: u64, next: impl Fn(u64) -> Option<&'p Partner>) -> Option<Vec<(u64, &'p Partner)>> {
    const MOST: usize = 1 << 10;
    let mut path: Vec<(u64, &Partner)> = Vec::new();
    let mut rank = first;
    while path.len() < MOST {
        if let Some(at) = path.iter().position(|(on_path, _)| *on_path == rank) {
            let mut cycle = path.split_off(at);
            let lowest = (0..cycle.len()).min_by_key(|at| cycle[*at].0).unwrap_or_default();
            cycle.rotate_left(lowest);
            return Some(cycle);
        }
        let partner = next(rank)?;
        path.push((rank, partner));
        rank = partner.rank;
    }
    None
}

/// `rank 0 in MPI_Recv from rank 1`.
fn step(rank: u64, to: &Partner) -> String {
    format!("rank {rank} in {} {} rank {}", escape(&to.function), towards(&to.function), to.rank)
}

fn towards(function: &str) -> &'static str {
    match function {
        "MPI_Wait" => "for a message from",
        _ if function.ends_with("end") => "to",
        _ => "from",
    }
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

/// The least and the farthest processes, where they have reached different counts. Which execution of a loop each is in is not
/// recorded.
fn counters(merged: &Merged) -> Vec<String> {
    let differ = merged.counters.iter().filter_map(|(counter, extent)| {
        let Extent { least, most, .. } = extent;
        let (least, most) = (least.first()?, most.last()?);
        (least.count != most.count).then_some((counter, least, most))
    });
    let differ: Vec<_> = differ.collect();
    let mut all: Vec<String> =
        differ.iter().take(SHOWN).map(|(counter, least, most)| far(counter, least, most)).collect();
    if differ.len() > SHOWN {
        all.push(format!(
            "Counts differ in {}; --json has them",
            counted((differ.len() - SHOWN) as u64, "more region")
        ));
    }
    all
}

fn far(Counter { what, region }: &Counter, least: &Reached, most: &Reached) -> String {
    let count = |reached: &Reached| match reached.of {
        Some(of) => format!("{} of {}", number(reached.count), number(of)),
        None => number(reached.count),
    };
    let (region, few, many) = (escape(region), count(least), count(most));
    let (least, most) = (name(&least.process), name(&most.process));
    const WHICH: &str = "Whether it is the same execution of the same loop is unknown";
    match what {
        Counted::HandedOut => format!(
            "Loops of the region at {region}: {few} iterations are handed out in {least}, {many} in {most}. {WHICH}"
        ),
        Counted::Next => format!(
            "Loops of the region at {region}: the next chunk begins at {few} in {least}, at {many} in {most}. {WHICH}"
        ),
        Counted::Barriers => format!(
            "Teams of the region at {region}: the barrier count is {few} in {least}, {many} in {most}. The count of a team \
             continues from region to region"
        ),
    }
}

fn number(number: i64) -> String {
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{}", digits(number.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::{COLLECTIVES, is_collective, sentences};
    use crate::merged::Merged;
    use crate::read;

    fn report(rank: u64, wait: &str) -> Merged {
        team(rank, wait, "")
    }

    /// With a team, in which the one that is in this wait is the first thread.
    fn team(rank: u64, wait: &str, others: &str) -> Merged {
        let text = format!(
            r#"{{"schema":"ompd-inspect/1","process":{{"pid":{0},"rank":{{"number":{rank},"size":4,"job":"7"}}}},
            "runtimes":[{{"threads":[{{"lwp":{0},"wait":{{"value":null}}}}{others}]}}],
            "os_threads":[{{"lwp":{0},"outside":{{"call":{{"function":"f","file":"a.c","line":{rank}}},"wait":{wait}}}}}]}}"#,
            100 + rank
        );
        read("test", text.as_bytes()).expect("a report")
    }

    fn told(reports: impl IntoIterator<Item = Merged>) -> String {
        let mut all = Merged::default();
        reports.into_iter().for_each(|report| all.merge(report));
        sentences(&all).join("\n")
    }

    const RECEIVES: &str =
        r#"{"mpi":"MPI_Recv","communicator":{"value":"MPI_COMM_WORLD","origin":"code"},"partner":{"value":"#;

    #[test]
    fn ranks_that_receive_from_each_other_are_suspected() {
        let from = |partner: u64| format!("{RECEIVES}{partner}}}}}");
        let text = told([report(0, &from(1)), report(1, &from(0)), report(2, &from(3)), report(3, "{}")]);
        let cycle = "Suspicion: 2 ranks wait for each other: rank 0 in MPI_Recv from rank 1, rank 1 in MPI_Recv from \
                     rank 0. Whether messages are on their way is unknown";
        assert!(text.contains(cycle), "{text}");
        assert!(text.contains("rank 2 is in MPI_Recv from rank 3, which is in f, a.c:3"), "{text}");
        // A rank that waits for one of a cycle is in none, also where it is the first to wait for that one.
        let text = told([report(0, &from(3)), report(1, &from(2)), report(2, &from(3)), report(3, &from(2))]);
        assert_eq!(text.matches("Suspicion: 2 ranks wait for each other: rank 2 in MPI_Recv from rank 3").count(), 1);
        assert!(
            text.contains("rank 0 is in MPI_Recv from rank 3") && text.contains("rank 1 is in MPI_Recv from rank 2")
        );
        // Of another communicator the numbers are others.
        let other = from(1).replace("MPI_COMM_WORLD", "0x84000001");
        assert_eq!(told([report(0, &other), report(1, &other.replace("1}}", "0}}"))]), "");
    }

    #[test]
    fn a_rank_with_another_thread_that_may_act_is_in_no_cycle() {
        let from = |partner: u64| format!("{RECEIVES}{partner}}}}}");
        let with = |other: &str| told([team(0, &from(1), other), report(1, &from(0))]);
        let suspicion = "Suspicion: 2 ranks wait for each other";
        assert!(with(r#",{"lwp":7,"wait":{"value":{"kind":"barrier"}}}"#).contains(suspicion));
        assert!(with(r#",{"lwp":7,"role":{"value":"idle worker"},"wait":{"value":null}}"#).contains(suspicion));
        for free in [r#",{"lwp":7,"wait":{"value":null}}"#, r#",{"lwp":7,"wait":{"unknown":"why"}}"#] {
            let text = with(free);
            assert!(!text.contains("Suspicion") && text.contains("rank 0 is in MPI_Recv from rank 1"), "{text}");
        }
    }

    #[test]
    fn different_collective_calls_are_suspected() {
        let call = |name: &str, on: &str| format!(r#"{{"mpi":"{name}","communicator":{{"value":"{on}"}}}}"#);
        let (barrier, sum) = (call("MPI_Barrier", "MPI_COMM_WORLD"), call("MPI_Allreduce", "MPI_COMM_WORLD"));
        let text = told([report(0, &barrier), report(1, &barrier), report(2, &sum)]);
        assert!(
            text.contains("Suspicion: different collective calls at once (rank 2 in MPI_Allreduce, 2 ranks (0-1) in")
        );
        assert!(text.contains("All are of MPI_COMM_WORLD"), "{text}");
        let other = |name: &str| call(name, "0x84000000");
        let text = told([report(0, &other("MPI_Barrier")), report(2, &other("MPI_Allreduce"))]);
        assert!(text.contains("Whether they are of the same communicator is unknown"), "{text}");
        // The same call of two communicators is not the same.
        let text = told([report(0, &barrier), report(1, &other("MPI_Barrier")), report(2, &other("MPI_Barrier"))]);
        assert!(
            text.contains(
                "calls at once (rank 0 in MPI_Barrier of MPI_COMM_WORLD, 2 ranks (1-2) in MPI_Barrier of another communicator). \
                 All ranks have to call those of MPI_COMM_WORLD."
            ),
            "{text}"
        );
        // A communicator that is unknown may be the same, and what a rank does by itself hinders nobody.
        for same in [r#"{"mpi":"MPI_Barrier"}"#, &call("MPI_Comm_dup", "MPI_COMM_SELF")] {
            let text = told([report(0, &barrier), report(1, same)]);
            assert!(text.contains("rank 0 of") && !text.contains("Suspicion"), "{text}");
        }
        let text = told([report(0, &barrier), report(1, "{}")]);
        assert!(!text.contains("Suspicion") && text.contains("rank 1 is in no collective call: f, a.c:1"), "{text}");
    }

    #[test]
    fn ranks_that_all_send_are_suspected() {
        let call = |name: &str| format!(r#"{{"mpi":"{name}"}}"#);
        let four = |names: [&str; 4]| told((0..).zip(names).map(|(rank, name)| report(rank, &call(name))));
        let text = four(["MPI_Send", "MPI_Send", "MPI_Ssend", "MPI_Send"]);
        let suspicion = "Suspicion: all 4 ranks are in MPI_Send or MPI_Ssend, and no rank is in a call that receives";
        assert!(text.contains(suspicion), "{text}");
        assert!(!four(["MPI_Send", "MPI_Send", "MPI_Recv", "MPI_Send"]).contains("Suspicion"));
        // Of a rank that was not inspected nothing is known, and a rank in no call may receive.
        let three = || (0..3).map(|rank| report(rank, &call("MPI_Send")));
        assert!(!told(three()).contains("Suspicion"));
        assert!(!told(three().chain([report(3, "{}")])).contains("Suspicion"));
        // Another thread may receive.
        let free = team(3, &call("MPI_Send"), r#",{"lwp":7,"wait":{"value":null}}"#);
        assert!(!told(three().chain([free])).contains("Suspicion"));
        assert!(told(three().chain([report(3, &call("MPI_Send"))])).contains("Suspicion"));
    }

    #[test]
    fn collective_calls_are_known() {
        assert!(COLLECTIVES.is_sorted());
        assert!(is_collective("MPI_Allreduce") && is_collective("MPI_Barrier"));
        assert!(!is_collective("MPI_Recv") && !is_collective("MPI_Wait") && !is_collective("Barrier"));
    }
}
