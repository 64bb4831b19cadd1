//! The library as a debugger uses it, on programs that know what they are doing.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "every call of the interface is unsafe, and what callers owe it stands at the head of the crate"
)]

/// A test of each program, by the `run` of the file.
macro_rules! programs {
    ($($name:ident),* $(,)?) => {$(
        #[test]
        fn $name() {
            run(stringify!($name));
        }
    )*};
}

mod answers;
mod callbacks;
mod client;
mod companions_stops;
mod contract;
mod current;
mod debugger;
mod defects;
mod extension;
mod fragile;
mod lists;
mod oracle;
mod own_stops;
mod package;
mod partial;
mod phases;
mod plugin;
mod sample;
mod static_program;
mod stops;
mod told;
mod tool;
mod traced;
mod wrong;
