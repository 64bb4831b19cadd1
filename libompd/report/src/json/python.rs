//! Python in the JSON report.

use ompd_stack::{GilHolder, LayoutOrigin};
use schemars::JsonSchema;
use serde::Serialize;

use ompd_inspection::Inspection;

/// One CPython in the process.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Python {
    /// The file that has it, as the process saw it.
    pub path: String,
    /// Its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Where its layout comes from: `headers` (a table in this program, made from its headers) or `process` (it describes itself).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layout: Option<&'static str>,
    /// Threads that it knows, by LWP.
    pub threads: Vec<i32>,
    /// How many threads it knows that the process does not have: fork left them behind.
    #[serde(skip_serializing_if = "is_zero")]
    pub gone: usize,
    /// Its global interpreter lock; subinterpreters may have their own.
    pub gils: Vec<Gil>,
    /// Why something of it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A global interpreter lock.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Gil {
    /// True if a thread holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<bool>,
    /// The thread that holds it; absent if fork left that behind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<i32>,
    /// Threads that sleep until they get it.
    pub waiting: Vec<i32>,
    /// Why it is unknown who holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// All of them.
pub(super) fn python(inspection: &Inspection) -> Vec<Python> {
    inspection.stacks.python.iter().map(one).collect()
}

fn one(python: &ompd_stack::Python) -> Python {
    Python {
        path: python.path.clone(),
        version: python.version.clone(),
        layout: python.layout.map(|origin| match origin {
            LayoutOrigin::Headers => "headers",
            LayoutOrigin::Process => "process",
        }),
        threads: python.threads.clone(),
        gone: python.gone,
        gils: python.gils.iter().map(gil).collect(),
        problem: python.problem.clone(),
    }
}

fn gil(gil: &ompd_stack::Gil) -> Gil {
    Gil {
        held: gil.holder.as_ref().ok().map(|holder| *holder != GilHolder::Nobody),
        holder: match gil.holder {
            Ok(GilHolder::Thread(lwp)) => Some(lwp),
            _ => None,
        },
        waiting: gil.waiting.clone(),
        unknown: gil.holder.as_ref().err().cloned(),
    }
}
