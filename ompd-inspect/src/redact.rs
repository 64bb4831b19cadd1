//! `--redact`: takes out of a report what says whose it is, so that it can be shown to others.
//!
//! It works on the finished text, whatever its form: no part of a report can be forgotten. Directories that the report names by
//! themselves are known exactly; in sentences paths are recognised.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;

use anstream::adapter::strip_str;
use ompd_report::escape::escape;
use serde_json::Value;

/// Directories of the system. Their names say nothing about the user.
const SYSTEM: [&str; 8] = ["/usr/", "/lib/", "/lib64/", "/bin/", "/sbin/", "/proc/", "/dev/", "/sys/"];
/// Below a system directory, but named by the site.
const LOCAL: &str = "/usr/local/";
/// Shorter names of users and hosts are parts of too many words.
const SHORTEST: usize = 2;

/// Directories known exactly at most: a damaged target may name any number, and each is looked for in the whole text. Beyond that
/// paths are recognised only.
const MOST_DIRECTORIES: usize = 10_000;

/// Columns of text that something is taken out of: no path may be broken across lines before.
pub const WIDTH: u16 = 4000;

/// The directories, and those around them, of all paths that a report in JSON names.
pub fn directories_of(report: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut left = vec![report];
    while let Some(value) = left.pop().filter(|_| found.len() < MOST_DIRECTORIES) {
        match value {
            Value::String(text) if text.starts_with('/') => found.extend(directories_around(Path::new(text))),
            Value::Array(list) => left.extend(list),
            Value::Object(object) => left.extend(object.values()),
            _ => {}
        }
    }
    found
}

/// The directories that lead to a path, but the root, that are of the user.
fn directories_around(path: &Path) -> impl Iterator<Item = String> {
    let names = path.ancestors().skip(1).filter(|directory| directory.parent().is_some());
    names.map(|directory| format!("{}/", directory.display())).filter(|directory| !is_of_system(directory))
}

/// True of a path that says nothing about the user.
fn is_of_system(path: &str) -> bool {
    SYSTEM.iter().any(|directory| path.starts_with(directory)) && !path.starts_with(LOCAL)
}

/// What to take out.
#[derive(Debug, Default)]
pub struct Redactor {
    /// Directories, each with a slash at its end.
    directories: BTreeSet<String>,
    /// Names of users and hosts, and what replaces each.
    names: BTreeMap<String, String>,
}

impl Redactor {
    /// For the user and the host of this process.
    pub fn of_this_user() -> Redactor {
        let mut redactor = Redactor::default();
        let by_id = user_name(rustix::process::geteuid().as_raw());
        let by_environment = ["USER", "LOGNAME", "SUDO_USER"].into_iter().filter_map(|name| std::env::var(name).ok());
        for name in by_environment.chain(by_id) {
            redactor.hide(&name, "USER".to_owned());
        }
        if let Ok(name) = nix::unistd::gethostname() {
            redactor.hide_host(&name.to_string_lossy());
        }
        // Error messages repeat what was given.
        let given = std::env::args_os().filter_map(|argument| std::path::absolute(argument).ok());
        let own = std::env::current_dir().ok().map(|directory| directory.join("file"));
        redactor.directories.extend(given.chain(own).flat_map(|path| directories_around(&path).collect::<Vec<_>>()));
        redactor
    }

    /// Takes out these directories too, each with a slash at its end.
    pub fn hide_directories(&mut self, directories: &BTreeSet<String>) {
        self.directories.extend(directories.iter().cloned());
    }

    /// Takes out the name of a host too. Each host gets a number.
    fn hide_host(&mut self, name: &str) {
        let short = name.split('.').next().unwrap_or(name);
        let numbers = self.names.values().filter_map(|shown| shown.strip_prefix("HOST")?.parse::<u64>().ok());
        let next = numbers.max().unwrap_or(0) + 1;
        if !self.names.contains_key(name) {
            [name, short].into_iter().for_each(|name| self.hide(name, format!("HOST{next}")));
        }
    }

    fn hide(&mut self, name: &str, shown: String) {
        // Root is no person, and "localhost" no name.
        if name.len() >= SHORTEST && name != "root" && name != "localhost" {
            self.names.entry(name.to_owned()).or_insert(shown);
        }
    }

    /// The text without directories of the user, names of users and hosts, and addresses of hosts. It has no colours: their
    /// codes would join the words beside them.
    pub fn redacted(&self, text: &str) -> String {
        let text = &strip_str(text).to_string();
        // A launcher may call the host otherwise, and a core may come from another one.
        const HOST: &str = "\"host\": \"";
        let mut all = Redactor { names: self.names.clone(), ..Redactor::default() };
        for (at, _) in text.match_indices(HOST) {
            all.hide_host(text[at + HOST.len()..].split('"').next().unwrap_or_default());
        }
        all.without_names(&without_addresses(&without_directories(&self.without_known_directories(text))))
    }

    fn without_known_directories(&self, text: &str) -> String {
        let mut text = text.to_owned();
        let mut longest_first: Vec<&String> = self.directories.iter().collect();
        longest_first.sort_by_key(|directory| std::cmp::Reverse(directory.len()));
        for directory in longest_first {
            // As it is written in JSON, and in text.
            let quoted = Value::from(directory.as_str()).to_string();
            let quoted = quoted.trim_matches('"');
            for written in [directory, quoted, &*escape(directory)] {
                if text.contains(written) {
                    text = text.replace(written, "");
                }
            }
        }
        text
    }

    fn without_names(&self, text: &str) -> String {
        words(
            text,
            |c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'),
            |word| {
                let whole = self.names.get(word).cloned();
                // As in user@host:port and host.domain.
                whole.unwrap_or_else(|| {
                    words(
                        word,
                        |c| c.is_alphanumeric() || matches!(c, '_' | '-'),
                        |part| self.names.get(part).cloned().unwrap_or_else(|| part.to_owned()),
                    )
                })
            },
        )
    }
}

/// The name of a user in `/etc/passwd`. Other sources of the C library are not asked: in a static program it cannot load them.
fn user_name(id: u32) -> Option<String> {
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let mut names = users.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(id)).then(|| name.to_owned())
    });
    names.next()
}

/// The text with each longest run of characters that `is_in` replaced by what `shown` gives for it.
fn words(text: &str, is_in: impl Fn(char) -> bool, shown: impl Fn(&str) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(begin) = rest.find(&is_in) {
        let (before, from) = rest.split_at(begin);
        let end = from.find(|c| !is_in(c)).unwrap_or(from.len());
        let (word, after) = from.split_at(end);
        out.push_str(before);
        out.push_str(&shown(word));
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Ends a path in a report: what stands around paths there.
fn ends_path(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c, '"' | '\'' | '<' | '>' | '|' | '(' | ')' | '{' | '}' | ',' | ';' | ':' | '=')
}

/// The text with the file name alone in place of each absolute path, except those below [`SYSTEM`].
fn without_directories(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(begin) = rest.find('/') {
        let (before, from) = rest.split_at(begin);
        out.push_str(before);
        let last = before.chars().next_back().or(out.chars().next_back());
        // Of tags and of addresses of the web.
        let is_other = last == Some('<') || from.starts_with("//") && last == Some(':');
        let is_path = !is_other && last.is_none_or(|c| ends_path(c) || c == '[' || c == '~');
        let end = path_end(from);
        let (path, after) = from.split_at(end);
        if is_path && !is_of_system(path) {
            let path = path.trim_end_matches('/');
            out.push_str(path.rsplit('/').next().unwrap_or(path));
        } else {
            out.push_str(path);
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Where the path ends that `text` begins with. A directory may have a blank in its name. A word after a blank belongs to the
/// path if it has a slash and does not begin with one.
fn path_end(text: &str) -> usize {
    let mut end = text.find(ends_path).unwrap_or(text.len());
    while let Some(next) = text[end..].strip_prefix(' ') {
        let word = next.find(ends_path).unwrap_or(next.len());
        match next[..word].find('/') {
            Some(slash) if slash > 0 => end += 1 + word,
            _ => break,
        }
    }
    end
}

/// The text with `ADDRESS` in place of each IP address but those of this machine.
fn without_addresses(text: &str) -> String {
    let is_own = |word: &str| {
        word.parse::<Ipv4Addr>()
            .map(|address| address.is_loopback() || address.is_unspecified())
            .or_else(|_| word.parse::<Ipv6Addr>().map(|address| address.is_loopback() || address.is_unspecified()))
    };
    let replaced = |word: &str| match is_own(word) {
        Ok(false) => "ADDRESS".to_owned(),
        _ => word.to_owned(),
    };
    words(
        text,
        |c| c.is_ascii_hexdigit() || matches!(c, ':' | '.'),
        |word| {
            // Of an address of four numbers the port follows behind a colon.
            match word.matches(':').count() {
                0 | 1 => words(word, |c| c.is_ascii_digit() || c == '.', replaced),
                _ => replaced(word),
            }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor() -> Redactor {
        let mut redactor = Redactor::default();
        redactor.hide("bob", "USER".to_owned());
        redactor.hide_host("n2.cluster.example");
        redactor.hide_host("n3");
        redactor
    }

    #[test]
    fn what_says_whose_it_is_is_replaced() {
        for (text, shown) in [
            ("process 7 /users/bob/run 7/solver", "process 7 solver"),
            ("\"file\": \"/scratch/x/app.c\",", "\"file\": \"app.c\","),
            ("/data/app.c:10 and /data/b.c:7", "app.c:10 and b.c:7"),
            ("rank 2 (n2, pid 7), n3 and n2.cluster.example", "rank 2 (HOST1, pid 7), HOST2 and HOST1"),
            ("\"host\": \"login1\", \"login1\"", "\"host\": \"HOST3\", \"HOST3\""),
            ("\u{1b}[1m/users/bob/app.c\u{1b}[0m of \u{1b}[31mbob\u{1b}[0m", "app.c of USER"),
            ("<title>a</title> http://www.example/2000/svg", "<title>a</title> http://www.example/2000/svg"),
            ("owner bob@n3:22", "owner USER@HOST2:22"),
            ("bobsled() in n20", "bobsled() in n20"),
            ("/usr/lib/libgomp.so.1 /dev/pts/0 /proc/7/fd", "/usr/lib/libgomp.so.1 /dev/pts/0 /proc/7/fd"),
            ("/usr/local/acme/lib.so", "lib.so"),
            ("socket 10.1.2.3:80 of 127.0.0.1:8080", "socket ADDRESS:80 of 127.0.0.1:8080"),
            ("[2001:db8::7]:80, ::1, 0:00:10, 5.2.1", "[ADDRESS]:80, ::1, 0:00:10, 5.2.1"),
            ("waits and/or locks, 3/4 done", "waits and/or locks, 3/4 done"),
            ("core: /users/bob/", "core: USER"),
            ("", ""),
        ] {
            assert_eq!(redactor().redacted(text), shown);
        }
    }

    #[test]
    fn directories_that_a_report_names_are_taken_out_whatever_their_names() {
        let report = serde_json::json!({
            "exe": "/data/My Dir, (b)/x: \"y\"/app", "os": [{"link": "/a\\b/fifo"}, 7], "path": "/usr/lib/libgomp.so.1",
        });
        let mut redactor = redactor();
        redactor.hide_directories(&directories_of(&report));
        let written = serde_json::to_string(&report).expect("JSON");
        let shown = r#"{"exe":"app","os":[{"link":"fifo"},7],"path":"/usr/lib/libgomp.so.1"}"#;
        assert_eq!(redactor.redacted(&written), shown);
        assert_eq!(redactor.redacted("reads /data/My Dir, (b)/feed of /a\\b/c"), "reads feed of c");
    }

    #[test]
    fn names_that_are_no_secret_stay() {
        let mut redactor = Redactor::default();
        for name in ["root", "localhost", "", "x"] {
            redactor.hide(name, "USER".to_owned());
        }
        assert!(redactor.names.is_empty());
    }
}
