//! How a tool is found (OpenMP 5.2, 19.2), and what the variables of the environment do (21.3).

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use test_programs::Opt;

use crate::common::{preload, program};

/// A library with a tool, and how it behaves.
fn tool(name: &str, how: Option<&str>) -> Option<String> {
    let name = format!("-DNAME={name}");
    let how = how.map(|how| format!("-D{how}"));
    let flags: Vec<&str> =
        [Some("-shared"), Some("-fPIC"), Some(&name), how.as_deref()].into_iter().flatten().collect();
    Some(program("tool_choice", Opt::O2, &flags)?.path.display().to_string())
}

/// Standard output and standard error of a program with the library.
fn run(program: &Path, variables: &[(&str, &str)]) -> (String, String) {
    let mut command = Command::new(program);
    for name in ["OMP_TOOL", "OMP_TOOL_LIBRARIES", "OMP_TOOL_VERBOSE_INIT", "LD_LIBRARY_PATH"] {
        command.env_remove(name);
    }
    let output = command.env("LD_PRELOAD", preload()).envs(variables.iter().copied()).output().expect("it starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{variables:?}: {:?} {out}{errors}", output.status);
    (out, errors)
}

/// A program that links a tool of its own, with `how` it behaves.
fn with_own_tool(how: &str) -> Option<test_programs::Executable> {
    program("tool_choice", Opt::O2, &["-DPROGRAM", "-rdynamic", "-DNAME=own", how])
}

#[test]
fn the_first_tool_that_there_is_for_the_process_is_taken() {
    let Some(own) = with_own_tool("-DSTAYS") else { return };
    let declines = with_own_tool("-DDECLINES").expect("as above");
    let refuses = with_own_tool("-DREFUSES").expect("as above");
    let of = |name, how| tool(name, how).expect("as above");
    let (first, second) = (of("first", None), of("second", None));
    let (never, not_now) = (of("never", Some("DECLINES")), of("not_now", Some("REFUSES")));
    let no_tool = program("tool_hostile_module", Opt::O2, &["-shared", "-fPIC"]).expect("as above").path;
    let no_tool = no_tool.display();
    for (program, libraries, expected) in [
        (&own, first.clone(), "own begins\nprogram\nown ends\n"),
        (&declines, String::new(), "own declines\nprogram\n"),
        (&declines, first.clone(), "own declines\nfirst begins\nprogram\nfirst ends\n"),
        // What does not stay is the choice all the same.
        (&refuses, first.clone(), "own refuses\nprogram\n"),
        (&declines, format!("{not_now}:{first}"), "own declines\nnot_now refuses\nprogram\n"),
        (&declines, format!("{second}:{first}"), "own declines\nsecond begins\nprogram\nsecond ends\n"),
        (&declines, format!("{never}:{first}"), "own declines\nnever declines\nfirst begins\nprogram\nfirst ends\n"),
        // Names of nothing, of a library without a tool, and empty ones.
        (
            &declines,
            format!("/nowhere/tool.so::{no_tool}:{first}:"),
            "own declines\nfirst begins\nprogram\nfirst ends\n",
        ),
        (&declines, ":".to_owned(), "own declines\nprogram\n"),
    ] {
        let (out, errors) = run(&program.path, &[("OMP_TOOL_LIBRARIES", &libraries)]);
        assert_eq!(out, expected, "{libraries}: {errors}");
        assert_eq!(errors, "", "{libraries}");
    }
}

#[test]
fn omp_tool_disables_and_other_values_are_named() {
    let Some(own) = with_own_tool("-DSTAYS") else { return };
    let taken = "own begins\nprogram\nown ends\n";
    for (value, expected) in [
        ("disabled", "program\n"),
        ("DISABLED", "program\n"),
        (" disabled ", "program\n"),
        ("enabled", taken),
        ("Enabled", taken),
        ("", taken),
    ] {
        assert_eq!(run(&own.path, &[("OMP_TOOL", value)]), (expected.to_owned(), String::new()), "{value:?}");
    }
    let (out, errors) = run(&own.path, &[("OMP_TOOL", "yes")]);
    assert_eq!(out, taken);
    assert_eq!(errors, "libgomp_ompt: OMP_TOOL is \"yes\", and has to be enabled or disabled: taken for enabled\n");
}

#[test]
fn the_search_is_written_where_the_variable_says() {
    let Some(own) = with_own_tool("-DSTAYS") else { return };
    let search = "libgomp_ompt: ompt_start_tool in the address space: found\nlibgomp_ompt:   has a tool\n\
        libgomp_ompt: tool started\n";
    let does = "own begins\nprogram\nown ends\n";
    for value in ["stderr", "STDERR", "Stderr"] {
        assert_eq!(
            run(&own.path, &[("OMP_TOOL_VERBOSE_INIT", value)]),
            (does.to_owned(), search.to_owned()),
            "{value}"
        );
    }
    for value in ["stdout", "STDOUT"] {
        let (out, errors) = run(&own.path, &[("OMP_TOOL_VERBOSE_INIT", value)]);
        assert_eq!((out, errors), (format!("own begins\n{search}program\nown ends\n"), String::new()), "{value}");
    }
    for value in ["disabled", "Disabled", ""] {
        assert_eq!(run(&own.path, &[("OMP_TOOL_VERBOSE_INIT", value)]), (does.to_owned(), String::new()), "{value:?}");
    }
    let off = run(&own.path, &[("OMP_TOOL_VERBOSE_INIT", "stderr"), ("OMP_TOOL", "disabled")]);
    let said = "libgomp_ompt: OMP_TOOL is disabled\nlibgomp_ompt: no tool was started\n";
    assert_eq!(off, ("program\n".to_owned(), said.to_owned()));

    // A file, new and in place of another text; a link is not followed, and a file that cannot be made changes nothing.
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("log");
    let writes = |to: &Path| run(&own.path, &[("OMP_TOOL_VERBOSE_INIT", to.to_str().expect("a text"))]);
    for before in [None, Some("longer than the search, so that some of it would stay, if it were not cut.\n".repeat(9))]
    {
        if let Some(before) = before {
            fs::write(&file, before).expect("room");
        }
        assert_eq!(writes(&file), (does.to_owned(), String::new()));
        assert_eq!(fs::read_to_string(&file).expect("the library has written it"), search);
    }
    let (link, kept) = (folder.path().join("link"), folder.path().join("kept"));
    fs::write(&kept, "kept").expect("room");
    symlink(&kept, &link).expect("a link");
    assert_eq!(writes(&link), (does.to_owned(), String::new()));
    assert_eq!(fs::read_to_string(&kept).expect("as it was"), "kept");
    assert_eq!(writes(Path::new("/nowhere/log")), (does.to_owned(), String::new()));
}

#[test]
fn the_search_names_each_library_and_why_it_is_not_taken() {
    let Some(declines) = with_own_tool("-DDECLINES") else { return };
    let (first, never) = (tool("first", None).expect("as above"), tool("never", Some("DECLINES")).expect("as above"));
    let no_tool = program("tool_hostile_module", Opt::O2, &["-shared", "-fPIC"]).expect("as above").path;
    let no_tool = no_tool.display();
    let libraries = format!("/nowhere/tool.so:{no_tool}:{never}:{first}");
    let (_, errors) = run(&declines.path, &[("OMP_TOOL_LIBRARIES", &libraries), ("OMP_TOOL_VERBOSE_INIT", "stderr")]);
    let lines: Vec<&str> = errors.lines().filter_map(|line| line.strip_prefix("libgomp_ompt: ")).collect();
    let null = "  returned NULL: it has no tool for this process";
    let cannot = lines.get(3).copied().unwrap_or_default();
    assert!(cannot.starts_with("  cannot be loaded: /nowhere/tool.so: cannot open shared object file"), "{errors}");
    let expected = [
        "ompt_start_tool in the address space: found",
        null,
        "OMP_TOOL_LIBRARIES: /nowhere/tool.so",
        cannot,
        &format!("OMP_TOOL_LIBRARIES: {no_tool}"),
        "  has no ompt_start_tool",
        &format!("OMP_TOOL_LIBRARIES: {never}"),
        null,
        &format!("OMP_TOOL_LIBRARIES: {first}"),
        "  has a tool",
        "tool started",
    ];
    assert_eq!(lines, expected);
}
