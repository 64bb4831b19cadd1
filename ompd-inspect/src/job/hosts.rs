//! Hosts that are asked by ssh or by ClusterShell.

use std::process::Command;
use std::time::Duration;

use clap::ValueEnum;
use ompd_jobs::{NoHosts, expand};
use ompd_process::programs;
use ompd_report::escape::escape;

use super::agents::Agent;
use crate::output::Failure;

/// The program by which hosts are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// One ssh for each host.
    Ssh,
    /// ClusterShell's clush, which knows groups of hosts and trees of gateways.
    Clush,
}

/// How many hosts are asked at once, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// Hosts at once.
    pub fanout: usize,
    /// Until a host has answered the connection.
    pub connect: Duration,
    /// Until its program has ended, if it is to end by itself.
    pub command: Option<Duration>,
}

/// The hosts of a list. ClusterShell expands it itself, for it knows groups (`@compute`).
///
/// # Errors
/// It is no list of hosts.
pub fn hosts(list: &str, by: By) -> Result<Vec<String>, Failure> {
    let wrong = |why: &str| {
        Failure::with_remedy(
            format_args!("{} is no list of hosts: {}", escape(list), escape(why)),
            "name hosts as n[1-64],login",
        )
    };
    if by == By::Ssh {
        return expand(list).map_err(|error| wrong(&error.to_string()));
    }
    // Of a list of very many hosts nodeset would write for hours.
    if let Err(error @ NoHosts::TooMany) = expand(list) {
        return Err(wrong(&error.to_string()));
    }
    let output = Command::new(program("nodeset")?).args(["--expand", "--", list]).output();
    let output = output.map_err(|error| Failure::new(format!("nodeset cannot be run: {error}")))?;
    if !output.status.success() {
        return Err(wrong(String::from_utf8_lossy(&output.stderr).trim()));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    expand(&text.split_whitespace().collect::<Vec<_>>().join(",")).map_err(|error| wrong(&error.to_string()))
}

/// The programs that ask the hosts.
///
/// # Errors
/// The program is not here.
pub fn agents(hosts: &[String], by: By, command: &[String], times: Times) -> Result<Vec<Agent>, Failure> {
    let seconds = |time: Duration| time.as_secs().max(1).to_string();
    let connect = seconds(times.connect);
    // Nobody is there to type a password.
    let batch = ["-o", "BatchMode=yes", "-o", &format!("ConnectTimeout={connect}")].map(str::to_owned);
    match by {
        By::Ssh => {
            let ssh = program("ssh")?;
            let agent = |host: &String| {
                let mut command_of_host = Command::new(&ssh);
                command_of_host.args(&batch).args(["-x", "-T", "--", host]).arg(quoted(command));
                Agent { label: host.clone(), command: command_of_host }
            };
            Ok(hosts.iter().map(agent).collect())
        }
        By::Clush => {
            let mut clush = Command::new(program("clush")?);
            // 0: none.
            let command_timeout = times.command.map_or_else(|| "0".to_owned(), seconds);
            clush.args(["--nostdin", "--fanout", &times.fanout.to_string(), "--command_timeout", &command_timeout]);
            clush.args(["--connect_timeout", &connect, "--color", "never", "--options", &batch.join(" ")]);
            clush.args(["-w", &hosts.join(","), "--"]).arg(quoted(command));
            Ok(vec![Agent { label: "clush".to_owned(), command: clush }])
        }
    }
}

fn program(name: &'static str) -> Result<std::path::PathBuf, Failure> {
    programs::find(name).ok_or_else(|| {
        let package = if name == "ssh" { "openssh-client" } else { "clustershell" };
        Failure::with_remedy(format_args!("there is no {name} in PATH"), format_args!("install the package {package}"))
    })
}

/// The command as the shell of another host reads it.
fn quoted(command: &[String]) -> String {
    let quote =
        |word: &String| match word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._:=@-".contains(&byte)) {
            true if !word.is_empty() => word.clone(),
            _ => format!("'{}'", word.replace('\'', "'\\''")),
        };
    command.iter().map(quote).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_command_survives_the_shell_of_the_other_host() {
        let words = ["printf", "%s\\n", "it's", "$HOME `id`", "", "a;b"].map(str::to_owned);
        let output = std::process::Command::new("sh").args(["-c", &quoted(&words)]).output().expect("a shell");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "it's\n$HOME `id`\n\na;b\n");
    }
}
