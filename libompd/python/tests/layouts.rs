//! The shipped layouts, against the headers of each CPython at hand.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use ompd_python::{GilPlace, Layout, Version};
use test_programs::Skip;
use test_programs::python::interpreters;

/// Prints a name and an offset a line, for CPython 3.8 to 3.12.
const PROGRAM: &str = r#"
#define Py_BUILD_CORE 1
#include <Python.h>
#include <stddef.h>
#include <stdio.h>
#include <internal/pycore_pystate.h>
#if PY_VERSION_HEX >= 0x03090000
#include <internal/pycore_interp.h>
#include <internal/pycore_runtime.h>
#endif
#if PY_VERSION_HEX >= 0x030b0000
#include <internal/pycore_code.h>
#include <internal/pycore_frame.h>
typedef _PyInterpreterFrame Frame;
typedef _PyCFrame Loop;
#else
#include <frameobject.h>
typedef PyFrameObject Frame;
#define f_owner f_lasti
#if PY_VERSION_HEX >= 0x030a0000
typedef CFrame Loop;
#endif
#endif
#define SAY(name, type, field) printf("%s %zu\n", name, offsetof(type, field))
int main(void) {
    SAY("interpreters_head", _PyRuntimeState, interpreters.head);
    SAY("interpreter_id", PyInterpreterState, id);
    SAY("interpreter_next", PyInterpreterState, next);
    SAY("thread_next", PyThreadState, next);
    SAY("thread_interpreter", PyThreadState, interp);
    SAY("thread_id", PyThreadState, thread_id);
    SAY("code_file", PyCodeObject, co_filename);
    SAY("code_name", PyCodeObject, co_name);
    SAY("code_first_line", PyCodeObject, co_firstlineno);
    SAY("object_type", PyObject, ob_type);
    SAY("bytes_size", PyVarObject, ob_size);
    SAY("bytes_data", PyBytesObject, ob_sval);
    SAY("text_length", PyASCIIObject, length);
    SAY("text_state", PyASCIIObject, state);
    printf("text_ascii_data %zu\n", sizeof(PyASCIIObject));
    printf("text_data %zu\n", sizeof(PyCompactUnicodeObject));
#if PY_VERSION_HEX >= 0x030b0000
    SAY("threads_head", PyInterpreterState, threads.head);
    SAY("native_thread_id", PyThreadState, native_thread_id);
    SAY("thread_frame", PyThreadState, cframe);
    SAY("loop_frame", Loop, current_frame);
    SAY("frame_previous", Frame, previous);
    SAY("frame_code", Frame, f_code);
    SAY("frame_instruction", Frame, prev_instr);
    SAY("frame_owner", Frame, owner);
    SAY("code_qualname", PyCodeObject, co_qualname);
    SAY("code_lines", PyCodeObject, co_linetable);
    SAY("code_instructions", PyCodeObject, co_code_adaptive);
    SAY("code_first_traceable", PyCodeObject, _co_firsttraceable);
#else
    SAY("threads_head", PyInterpreterState, tstate_head);
    SAY("thread_frame", PyThreadState, frame);
    SAY("frame_previous", Frame, f_back);
    SAY("frame_code", Frame, f_code);
    SAY("frame_instruction", Frame, f_lasti);
#if PY_VERSION_HEX >= 0x030a0000
    SAY("thread_loop", PyThreadState, cframe);
    SAY("code_lines", PyCodeObject, co_linetable);
#else
    SAY("code_lines", PyCodeObject, co_lnotab);
#endif
#endif
#if PY_VERSION_HEX >= 0x030a0000
    SAY("loop_previous", Loop, previous);
    SAY("thread_last_loop", PyThreadState, root_cframe);
    printf("loop_size %zu\n", sizeof(Loop));
#endif
#if PY_VERSION_HEX >= 0x030b0000 && PY_VERSION_HEX < 0x030c0000
    SAY("frame_is_entry", Frame, is_entry);
#endif
#if PY_VERSION_HEX >= 0x030c0000
    SAY("gil.at", PyInterpreterState, ceval.gil);
#else
    SAY("gil.at", _PyRuntimeState, ceval.gil);
#endif
    SAY("gil.last_holder", struct _gil_runtime_state, last_holder);
    SAY("gil.locked", struct _gil_runtime_state, locked);
    SAY("gil.cond", struct _gil_runtime_state, cond);
    SAY("gil.switch_cond", struct _gil_runtime_state, switch_cond);
    return 0;
}
"#;

/// What the headers of an interpreter say.
fn of_headers(interpreter: &Path, scratch: &Path) -> Result<BTreeMap<String, u64>, Skip> {
    let asked =
        Command::new(interpreter).args(["-c", "import sysconfig; print(sysconfig.get_paths()['include'])"]).output();
    let asked = asked.expect("the interpreter runs");
    let include = PathBuf::from(String::from_utf8(asked.stdout).expect("a path").trim_end());
    if !include.join("internal/pycore_pystate.h").is_file() {
        return Err(Skip::because(format!("{} has no headers of its inside", interpreter.display())));
    }
    let (source, program) = (scratch.join("offsets.c"), scratch.join("offsets"));
    std::fs::write(&source, PROGRAM).expect("a source file");
    let mut compiler = Command::new("cc");
    compiler.arg("-w").arg("-I").arg(&include).arg("-I").arg(include.join("internal"));
    let output = compiler.arg(&source).arg("-o").arg(&program).output().expect("a compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = Command::new(&program).output().expect("the program runs");
    let said = String::from_utf8(said.stdout).expect("names and numbers");
    let lines = said.lines().filter_map(|line| line.split_once(' '));
    Ok(lines.map(|(name, offset)| (name.to_owned(), offset.parse().expect("an offset"))).collect())
}

/// The offset of this name in a layout.
fn shipped(layout: &Layout, name: &str) -> Option<u64> {
    let GilPlace { at, last_holder, locked, .. } = layout.gil;
    let sleeping = layout.gil.sleeping();
    Some(match name {
        "interpreters_head" => layout.interpreters_head,
        "interpreter_id" => layout.interpreter_id,
        "interpreter_next" => layout.interpreter_next,
        "threads_head" => layout.threads_head,
        "thread_next" => layout.thread_next,
        "thread_interpreter" => layout.thread_interpreter,
        "thread_id" => layout.thread_id,
        "native_thread_id" => layout.native_thread_id?,
        "thread_frame" => layout.thread_frame,
        "thread_loop" => layout.thread_loop,
        "thread_last_loop" => layout.thread_last_loop,
        "loop_frame" => layout.loop_frame,
        "loop_previous" => layout.loop_previous,
        "loop_size" => layout.loop_size,
        "frame_previous" => layout.frame_previous,
        "frame_code" => layout.frame_code,
        "frame_instruction" => layout.frame_instruction,
        "frame_owner" => layout.frame_owner,
        "frame_is_entry" => layout.frame_is_entry,
        "code_file" => layout.code_file,
        "code_name" => layout.code_name,
        "code_qualname" => layout.code_qualname?,
        "code_lines" => layout.code_lines,
        "code_first_line" => layout.code_first_line,
        "code_instructions" => layout.code_instructions?,
        "code_first_traceable" => layout.code_first_traceable,
        "object_type" => layout.object_type,
        "bytes_size" => layout.bytes_size,
        "bytes_data" => layout.bytes_data,
        "text_length" => layout.text_length,
        "text_state" => layout.text_state,
        "text_ascii_data" => layout.text_ascii_data,
        "text_data" => layout.text_data,
        "gil.at" => at,
        "gil.last_holder" => last_holder,
        "gil.locked" => locked,
        "gil.cond" => sleeping.start,
        "gil.switch_cond" => sleeping.end,
        _ => return None,
    })
}

fn compare(minor: u8) {
    let interpreters = match interpreters(minor) {
        Ok(found) => found,
        Err(skip) => return skip.show(),
    };
    let layout = Layout::shipped(Version { major: 3, minor, micro: None }).expect("a layout");
    for interpreter in interpreters {
        let scratch = tempfile::tempdir().expect("a folder");
        let headers = match of_headers(&interpreter, scratch.path()) {
            Ok(headers) => headers,
            Err(skip) => {
                skip.show();
                continue;
            }
        };
        assert!(headers.len() > 25, "{headers:?}");
        for (name, offset) in &headers {
            assert_eq!(shipped(&layout, name), Some(*offset), "{name} in {}", interpreter.display());
        }
        let _ = writeln!(std::io::stderr(), "{}: {} offsets as in the headers", interpreter.display(), headers.len());
    }
}

#[test]
fn layout_of_3_8_is_that_of_its_headers() {
    compare(8);
}

#[test]
fn layout_of_3_9_is_that_of_its_headers() {
    compare(9);
}

#[test]
fn layout_of_3_10_is_that_of_its_headers() {
    compare(10);
}

#[test]
fn layout_of_3_11_is_that_of_its_headers() {
    compare(11);
}

#[test]
fn layout_of_3_12_is_that_of_its_headers() {
    compare(12);
}
