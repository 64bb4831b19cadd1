//! Pictures of graphs, drawn by Graphviz where it is installed.

use std::io::Write as _;
use std::process::{Command, Stdio};

use ompd_process::programs;

/// Draws a graph as SVG with the `dot` from the user's own `PATH`.
///
/// # Errors
/// A sentence on what is missing or went wrong.
pub fn svg(graph: &str) -> Result<String, String> {
    let program = programs::find("dot").ok_or(
        "there is no Graphviz to draw with (`dot` is not in PATH)\n  remedy: install the package graphviz, or use --dot and \
         draw it elsewhere",
    )?;
    let mut child = Command::new(program)
        .arg("-Tsvg")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("Graphviz (`dot`) cannot be run: {error}"))?;
    let input = child.stdin.take();
    let graph = graph.to_owned();
    // It may begin to write before it has read everything.
    let writer = std::thread::spawn(move || input.map(|mut input| input.write_all(graph.as_bytes())));
    let output = child.wait_with_output().map_err(|error| format!("Graphviz (`dot`) cannot be read: {error}"))?;
    let written = writer.join();
    match (output.status.success(), written) {
        (true, Ok(Some(Ok(())))) => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        _ => Err(format!("Graphviz (`dot`) did not draw the graph: it ended with {}", output.status)),
    }
}
