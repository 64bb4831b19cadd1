//! A libgomp inside a statically linked program, found by nothing but a debugger's callbacks.

use crate::answers::everywhere;
use test_programs::{Env, Executable, Launch, Opt, Runtime, Skip, Toolchain, link_statically};

/// The two ways to link so.
const WAYS: [&str; 2] = ["-static", "-static-pie"];

fn linked(program: &str, flags: &[&str]) -> Option<Executable> {
    link_statically(program, Opt::O2, flags).inspect_err(Skip::show).ok()
}

fn run(program: &str) {
    for way in WAYS {
        let Some(executable) = linked(program, &[way]) else { continue };
        let running = Launch::new(&executable, Runtime::Libgomp, Env::Settled).start().expect("it starts");
        everywhere(&format!("{program} {way}"), Toolchain::Gcc, &running);
    }
}

macro_rules! programs {
    ($($name:ident),* $(,)?) => {$(
        #[test]
        fn $name() {
            run(stringify!($name));
        }
    )*};
}

programs!(barrier_missing, nested, serialized, tasks, lock, icvs, idle, user_pthread);
