//! Maintenance tasks of this repository: `cargo xtask --help`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for developers, run by hand")]

mod bench;
mod budget;
mod compare_builds;
mod corrupt;
mod coverage;
mod debuggers;
mod ended;
mod faults;
#[cfg(test)]
mod house;
mod layout;
mod life;
mod matrix;
mod plugins;
mod real;
mod unknowns;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "xtask", about = "Maintenance tasks of this repository")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Measure what an inspection costs (start it with `ci/bench`).
    Bench(bench::Arguments),
    /// Compare instructions and allocations of frequent looks with a budget (start it with `ci/budget`).
    Budget(budget::Arguments),
    /// Compare what two builds of `ompd-inspect` say (start it with `ci/compare-builds`).
    CompareBuilds(compare_builds::Arguments),
    /// Change bytes in cores and their files, and look at them (start it with `ci/corrupt`).
    Corrupt(corrupt::Arguments),
    /// The table of what OMPT and OMPD describe, and what of it works.
    Coverage(coverage::Arguments),
    /// What the plugins can do in each release of gdb and LLDB (start it with `ci/debugger-table`).
    DebuggerTable(debuggers::Arguments),
    /// Let system calls of `ompd-inspect` fail, one after the other (start it with `ci/faults`).
    Faults(faults::Arguments),
    /// Layout profiles.
    #[command(subcommand)]
    Layout(layout::Task),
    /// Look at programs that work, change and end, and end looks (start it with `ci/life`).
    Life(life::Arguments),
    /// What the plugins for gdb can do, ours and LLVM's (start it with `ci/plugin-table`).
    PluginTable(plugins::Arguments),
    /// How well each fetched runtime is read (start it with `ci/matrix`).
    Matrix(matrix::Arguments),
    /// Look at real programs at random moments (start it with `ci/real`).
    Real(real::Arguments),
    /// How often each value is unknown while programs run, and why (start it with `ci/unknowns`).
    Unknowns(unknowns::Arguments),
}

fn main() -> anyhow::Result<ExitCode> {
    match Arguments::parse().task {
        Task::Bench(arguments) => bench::run(&arguments).map(|()| ExitCode::SUCCESS),
        Task::Budget(arguments) => budget::run(&arguments).map(|()| ExitCode::SUCCESS),
        Task::CompareBuilds(arguments) => compare_builds::run(&arguments).map(|()| ExitCode::SUCCESS),
        Task::Corrupt(arguments) => corrupt::run(&arguments).map(|()| ExitCode::SUCCESS),
        Task::Coverage(arguments) => coverage::run(&arguments).map(|()| ExitCode::SUCCESS),
        Task::DebuggerTable(arguments) => debuggers::run(&arguments).map(|()| ExitCode::SUCCESS),
        Task::Faults(arguments) => faults::run(&arguments).map(|()| ExitCode::SUCCESS),
        Task::Layout(task) => layout::run(&task),
        Task::Life(arguments) => life::run(&arguments).map(|()| ExitCode::SUCCESS),
        Task::PluginTable(arguments) => plugins::run(&arguments).map(|()| ExitCode::SUCCESS),
        Task::Matrix(arguments) => matrix::run(&arguments).map(|()| ExitCode::SUCCESS),
        Task::Real(arguments) => real::run(&arguments).map(|()| ExitCode::SUCCESS),
        Task::Unknowns(arguments) => unknowns::run(&arguments).map(|()| ExitCode::SUCCESS),
    }
}
