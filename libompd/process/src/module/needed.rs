//! Who needs a module: chains of `DT_NEEDED` (gABI chapter 5, "Shared Object Dependencies").
//!
//! Files tell what a module asks for by name, not what the loader gave it. So the answer carries a doubt wherever the
//! files alone do not settle it.

use std::collections::VecDeque;

use super::Module;

/// How a module came to be loaded, as far as `DT_NEEDED` tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeededBy {
    /// Names of modules from the outermost to the module itself, each needed by the one before it. Just the module
    /// itself if nothing needs it: it was loaded by `dlopen` or `LD_PRELOAD`. (Raw text: escape before printing.)
    pub chain: Vec<String>,
    /// True if the chain begins at the executable, so that the loader brought the module in before `main`. Otherwise the
    /// first of the chain came by `dlopen` or `LD_PRELOAD`; files do not tell which of the two.
    pub loaded_at_start: bool,
    /// Names of all modules that need the module directly.
    pub direct: Vec<String>,
    /// What makes the chain uncertain: loaded files of the same name, files that are not at hand.
    pub doubt: Option<String>,
}

/// Who needs `module`, one of `modules`: the shortest chain from the executable; if there is none, the shortest from a
/// module that nothing needs. `exe` is the path of the executable as in [`crate::ProcessInfo::exe`].
///
/// `None` if `module` is not one of `modules`.
pub fn needed_by(modules: &[Module], exe: Option<&str>, module: &Module) -> Option<NeededBy> {
    let nodes: Vec<Node> = modules.iter().map(Node::of).collect();
    let place = |m: &Module| modules.iter().position(|other| other.path == m.path && other.base() == m.base());
    let exe = exe.and_then(|exe| modules.iter().position(|m| m.path == exe));
    Some(trace(&nodes, exe, place(module)?))
}

/// What counts of a module.
#[derive(Debug, Default)]
struct Node {
    name: String,
    soname: Option<String>,
    needed: Vec<String>,
    /// Its file is not at hand: what it needs is not known.
    unknown: bool,
}

impl Node {
    fn of(module: &Module) -> Node {
        let file = module.file.as_deref().ok();
        Node {
            name: module.name().to_owned(),
            soname: file.and_then(|f| f.soname()),
            needed: file.map(|f| f.needed()).unwrap_or_default(),
            unknown: file.is_none(),
        }
    }

    /// True if this module may be what a `DT_NEEDED` entry names, by its `DT_SONAME` or by its file name. The loader
    /// finds a file without `DT_SONAME` under its file name.
    fn answers(&self, needed: &str) -> bool {
        let name = needed.rsplit('/').next().unwrap_or(needed);
        self.soname.as_deref() == Some(needed) || (!name.is_empty() && self.name == name)
    }

    fn needs(&self, other: &Node) -> bool {
        self.needed.iter().any(|name| other.answers(name))
    }
}

fn trace(nodes: &[Node], exe: Option<usize>, of: usize) -> NeededBy {
    // Breadth first from the module outwards. `next[i]` is the module that `i` leads on to.
    let mut next: Vec<Option<usize>> = vec![None; nodes.len()];
    let mut queue = VecDeque::from([of]);
    let (mut outermost, mut at_start) = (None, false);
    let users = |of: usize| (0..nodes.len()).filter(move |user| *user != of && nodes[*user].needs(&nodes[of]));
    while let Some(at) = queue.pop_front() {
        if exe == Some(at) {
            (outermost, at_start) = (Some(at), true);
            break;
        }
        let mut needless = true;
        for user in users(at) {
            needless = false;
            if user != of && next[user].is_none() {
                next[user] = Some(at);
                queue.push_back(user);
            }
        }
        if needless {
            outermost = outermost.or(Some(at));
        }
    }
    let direct: Vec<usize> = users(of).collect();
    // Modules that need each other in a circle have no outermost one.
    let start = outermost.or(direct.first().copied()).unwrap_or(of);
    let mut path = vec![start];
    let mut at = start;
    while let Some(on) = next[at].filter(|_| at != of) {
        path.push(on);
        at = on;
    }
    NeededBy {
        doubt: doubt(nodes, &path, at_start),
        chain: path.iter().map(|i| nodes[*i].name.clone()).collect(),
        loaded_at_start: at_start,
        direct: direct.iter().map(|i| nodes[*i].name.clone()).collect(),
    }
}

fn doubt(nodes: &[Node], path: &[usize], at_start: bool) -> Option<String> {
    for link in path.windows(2) {
        let (user, used) = (&nodes[link[0]], &nodes[link[1]]);
        let wanted = user.needed.iter().find(|name| used.answers(name))?;
        let same = nodes.iter().filter(|n| n.answers(wanted)).count();
        if same > 1 {
            return Some(format!(
                "{same} loaded files are called {wanted}; which of them {} uses is not known",
                user.name
            ));
        }
    }
    let unknown = nodes.iter().filter(|n| n.unknown).count();
    (unknown > 0 && !at_start).then(|| format!("what {unknown} modules need is not known: their files are not at hand"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, needed: &[&str]) -> Node {
        let needed = needed.iter().map(|n| (*n).to_owned()).collect();
        Node { name: name.into(), soname: Some(name.into()), needed, unknown: false }
    }

    fn names(of: &NeededBy) -> Vec<&str> {
        of.chain.iter().map(String::as_str).collect()
    }

    #[test]
    fn the_shortest_chain_from_the_executable_wins() {
        let nodes = [
            node("program", &["liba", "libb"]),
            node("liba", &["libc1"]),
            node("libc1", &["libgomp"]),
            node("libb", &["libgomp"]),
            node("plugin", &["libgomp"]),
            node("libgomp", &["libc.so.6"]),
        ];
        let found = trace(&nodes, Some(0), 5);
        assert_eq!(names(&found), ["program", "libb", "libgomp"]);
        assert!(found.loaded_at_start && found.doubt.is_none());
        assert_eq!(found.direct, ["libc1", "libb", "plugin"]);
        assert_eq!(names(&trace(&nodes, Some(0), 0)), ["program"]);
        assert!(trace(&nodes, Some(0), 0).loaded_at_start);
    }

    #[test]
    fn without_a_chain_from_the_executable_it_begins_at_what_nothing_needs() {
        let nodes = [
            node("python3", &["libc.so.6"]),
            node("_x.so", &["libx"]),
            node("libx", &["libgomp-abc.so.1.0.0"]),
            node("libgomp-abc.so.1.0.0", &[]),
        ];
        let found = trace(&nodes, Some(0), 3);
        assert_eq!(names(&found), ["_x.so", "libx", "libgomp-abc.so.1.0.0"]);
        assert!(!found.loaded_at_start && found.doubt.is_none());
        assert_eq!(found.direct, ["libx"]);
        // Preloaded: nothing needs it.
        let alone = trace(&nodes, Some(0), 1);
        assert_eq!((names(&alone), alone.loaded_at_start, alone.direct.len()), (vec!["_x.so"], false, 0));
    }

    #[test]
    fn circles_end() {
        let nodes = [node("program", &[]), node("a", &["b", "a"]), node("b", &["a"]), node("c", &["a"])];
        assert_eq!(names(&trace(&nodes, Some(0), 1)), ["c", "a"]);
        assert_eq!(names(&trace(&nodes[..3], Some(0), 1)), ["b", "a"]);
        assert_eq!(names(&trace(&nodes[..3], None, 2)), ["a", "b"]);
    }

    #[test]
    fn names_match_by_soname_or_file_name() {
        let file = Node { soname: Some("libgomp.so.1".into()), ..node("libgomp.so.1.0.0", &[]) };
        assert!(file.answers("libgomp.so.1") && file.answers("libgomp.so.1.0.0") && !file.answers("libgomp.so"));
        assert!(file.answers("/opt/lib/libgomp.so.1.0.0") && !file.answers("/opt/lib/libgomp.so.1"));
        assert!(!Node::default().answers("/") && !Node::default().answers(""));
    }

    #[test]
    fn what_files_do_not_settle_is_a_doubt() {
        let twice = [node("program", &["libgomp.so.1"]), node("libgomp.so.1", &[]), node("libgomp.so.1", &[])];
        for of in [1, 2] {
            let found = trace(&twice, Some(0), of);
            assert_eq!(names(&found), ["program", "libgomp.so.1"]);
            assert!(found.doubt.is_some_and(|d| d.contains("2 loaded files") && d.contains("program")));
        }
        let lost = [node("libgomp", &[]), Node { unknown: true, ..node("program", &[]) }];
        let found = trace(&lost, Some(1), 0);
        assert!(!found.loaded_at_start && found.doubt.is_some_and(|d| d.contains("not at hand")));
    }
}
