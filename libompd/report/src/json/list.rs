//! The reports of several processes in one document.

use std::borrow::Cow;

use ompd_inspection::Inspection;
use ompd_runtime::waits_for::Certainty;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

use super::Report;

/// Name and version of the format, the value of the key `schema`.
pub const SCHEMA: &str = "ompd-inspect-list/1";

/// Several processes, in the order in which they were named or found.
#[derive(Debug, Serialize, JsonSchema)]
pub struct List {
    /// Name and version of this format: `ompd-inspect-list/1`.
    pub schema: &'static str,
    /// True if all were inspected, and each report is complete.
    pub complete: bool,
    /// The most certain verdict of all reports; absent if no report has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<&'static str>,
    /// The processes and cores.
    pub processes: Vec<Member>,
}

/// One of several processes.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Member {
    /// Process id, or path of a core file, as it was named or found.
    pub target: String,
    /// Process id of its parent, if it was found as a child (`--children`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<i32>,
    /// What was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Reference>")]
    pub report: Option<Report>,
    /// Why there is no report, and what to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// The most certain verdict of the report.
    #[serde(skip)]
    certainty: Option<Certainty>,
}

/// The schema of a report, which has a file of its own.
struct Reference;

impl JsonSchema for Reference {
    fn schema_name() -> Cow<'static, str> {
        "Report".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "description": "The report of one inspection.", "$ref": "report.schema.json" })
    }
}

/// A process that was inspected.
pub fn inspected(target: String, parent: Option<i32>, inspection: &Inspection) -> Member {
    let certainty = inspection.worst();
    Member { target, parent, report: Some(super::report(inspection)), refusal: None, certainty }
}

/// A process that was not inspected.
pub fn refused(target: String, parent: Option<i32>, refusal: String) -> Member {
    Member { target, parent, report: None, refusal: Some(refusal), certainty: None }
}

/// All of them.
pub fn list(processes: Vec<Member>) -> List {
    let worst = processes.iter().filter_map(|member| member.certainty).min();
    List {
        schema: SCHEMA,
        complete: processes.iter().all(|member| member.report.as_ref().is_some_and(|report| report.complete)),
        verdict: worst.map(Certainty::word),
        processes,
    }
}
