//! A program that loads and unloads a library with OpenMP in it, twice.

use std::path::Path;
use std::process::Command;

use ompt_record::block::State;

use crate::common::{Held, history, libraries, program};

/// Runs the program on each runtime with this companion, and checks what was recorded. With a signal, the program sends it to itself
/// before and after it unloads the library.
pub fn regions_of_both_runs_are_recorded(companion: &Path, signal: Option<i32>) {
    if program("recorded", &[]).is_none() {
        return;
    }
    const PLUGIN: &str = "void work(void) {\n#pragma omp parallel num_threads(2)\n  {}\n}\n";
    const HOST: &str = r#"#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **arguments) {
  int signal = count > 2 ? atoi(arguments[2]) : 0;
  for (int n = 0; n < 2; n++) {
    void *plugin = dlopen(arguments[1], RTLD_NOW);
    if (!plugin) {
      fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
    ((void (*)(void))dlsym(plugin, "work"))();
    if (signal) raise(signal);
    dlclose(plugin);
    if (signal) raise(signal);
  }
  puts("ready");
  fflush(stdout);
  getchar();
  puts("done");
  return 0;
}
"#;
    let directory = tempfile::tempdir().expect("a directory");
    let build = |name: &str, source: &str, arguments: &[&str]| {
        let (file, made) = (directory.path().join(format!("{name}.c")), directory.path().join(name));
        std::fs::write(&file, source).expect("it is written");
        let done = Command::new("clang-14").arg(&file).arg("-o").arg(&made).args(arguments).output();
        let done = done.expect("clang runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        made
    };
    let plugin = build("plugin.so", PLUGIN, &["-fopenmp", "-shared", "-fPIC"]);
    let host = build("host", HOST, &["-ldl"]);
    let companion = companion.display().to_string();
    let signal = signal.map(|signal| signal.to_string());
    for (library, what) in libraries() {
        // Older ones, as libomp 13, crash in their `ompt_get_task_info` outside of regions.
        let signal = signal.as_deref().filter(|_| what.ends_with("runtimes/libiomp5.so"));
        let variables = [Some(("OMP_TOOL_LIBRARIES", &*companion)), signal.map(|n| ("OMPT_COMPANION_SNAPSHOT", n))];
        let variables: Vec<(&str, &str)> = variables.into_iter().flatten().collect();
        let arguments: Vec<&str> = plugin.to_str().into_iter().chain(signal).collect();
        let Some(running) = Held::start(&host, library.path(), &what, &variables, &arguments) else { continue };
        let history = history(running.pid());
        let regions: Vec<u64> = (history.threads.iter().flat_map(|thread| &thread.events))
            .filter(|event| event.kind == 3)
            .map(|event| event.region)
            .collect();
        assert_eq!(regions, [1, 2], "{what}");
        assert!(history.issues.is_empty(), "{what}: {:?}", history.issues);
        // LLVM's stay loaded, and have not ended then.
        let state = if what.ends_with("libiomp5.so") { State::Ended } else { State::Recording };
        assert_eq!(history.state, state, "{what}");
        // Each thread has one ring that it is in.
        let mut own: Vec<u64> = history.threads.iter().filter(|of| of.ended.is_none()).map(|of| of.lwp).collect();
        own.sort_unstable();
        assert!(own.windows(2).all(|pair| pair[0] != pair[1]), "{what}: {own:?}");
        running.end();
    }
}
