//! The command on real processes and core files, against what these know of themselves.

mod aarch64;
mod barriers;
mod common;
mod debuginfod;
mod executing;
mod history;
mod icvs;
mod leagues;
mod lists;
mod locals;
mod many_tasks;
mod pages;
mod pictures;
mod progress;
mod python;
mod refusals;
mod remarks;
mod stacks;
mod static_program;
mod task_waits;
mod truth;
mod two_runtimes;
mod unharmed;
mod unseen;
mod verdicts;
mod views;
