//! Stacks in the JSON report.

use std::sync::Arc;

use ompd_runtime::entry::Construct;
use ompd_stack::{FrameVariables, Language, LogicalFrame, LogicalStack, Via};
use schemars::JsonSchema;
use serde::Serialize;

use super::hex;
use ompd_inspection::Inspection;

/// One thread's stack as its source reads.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Stack {
    /// Kernel thread id.
    pub lwp: i32,
    /// Innermost first. Frames of runtimes are left out.
    pub frames: Vec<Frame>,
    /// Set if the thread is inside a call of a runtime's function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_call: Option<InCall>,
    /// True if the thread was made by a runtime and is in no region.
    pub idle: bool,
    /// What could not be said of the stack as the source reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<String>,
    /// How far the thread's own stack could be followed.
    pub end: End,
}

/// How far a thread's own stack could be followed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct End {
    /// True if that was to where the thread began.
    pub complete: bool,
    /// Why it ends there.
    pub reason: String,
}

/// A call into a runtime.
#[derive(Debug, Serialize, JsonSchema)]
pub struct InCall {
    /// What the program asked for: `barrier`, `taskwait`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub construct: Option<&'static str>,
    /// The function called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
}

/// One frame.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Frame {
    /// Function of the source; for the body of a construct that which contains the construct.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Set for the body of a construct: `parallel`, `task`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub construct: Option<&'static str>,
    /// File of the construct.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub construct_file: Option<String>,
    /// Line of the construct's directive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub construct_line: Option<u32>,
    /// `python` for a function of Python; absent for machine code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<&'static str>,
    /// True if `construct_line` is where the code of the construct's body begins: the line of the directive or of the first
    /// statement in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub construct_begins: Option<bool>,
    /// True if `function` is not what contains the construct, but the very function that the program gave to the runtime.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub construct_called: Option<bool>,
    /// Source file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Line it executes, or calls from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Inlined into the next frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inlined: Option<bool>,
    /// Thread on whose stack it is; absent if it is on none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lwp: Option<i32>,
    /// Address it executes at, or its callee returns to; where its code begins, if it is on no stack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// File mapped at the address; `[JIT code]` if a JIT compiler made the code there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// Address in that file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<String>,
    /// How it relates to the frame before. `call`: it called that frame. `signal`: a signal interrupted it. `region`: it opened
    /// the region whose body that frame is. `generated`: it is the body of what generated the task before. `around`: it is the
    /// body of the region that the task before belongs to; what generated that task is over, or unknown.
    pub via: &'static str,
    /// With `--locals`: its parameters and variables, as far as debug information tells of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variables: Option<Vec<Variable>>,
    /// With `--locals`: why `variables` is empty, or does not have all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variables_missing: Option<String>,
}

/// A variable in scope where a frame executes.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Variable {
    /// Its name; `.omp.iv`, `.omp.lb` and `.omp.ub` are counters clang makes for loops.
    pub name: String,
    /// Its type as debug information describes it.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Its value as text: numbers in decimal, pointers in hexadecimal, texts in double quotes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Why there is no value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
    /// In the body of a construct, where it is proven. True if it is shared with what is outward of the body, false if it is the
    /// body's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared: Option<bool>,
    /// True if it is a parameter of the source's function.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub parameter: bool,
    /// What has to be known about the value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// All of them.
pub(super) fn stacks(inspection: &Inspection) -> Vec<Stack> {
    let variables = |index: usize| inspection.locals.as_ref().and_then(|all| all.get(index)).map(Vec::as_slice);
    inspection.stacks.logical.iter().enumerate().map(|(index, one)| stack(one, variables(index))).collect()
}

fn stack(stack: &LogicalStack, variables: Option<&[Arc<FrameVariables>]>) -> Stack {
    let of = |index: usize| variables.and_then(|all| all.get(index)).map(Arc::as_ref);
    Stack {
        lwp: stack.lwp,
        frames: stack.frames.iter().enumerate().map(|(index, one)| frame(one, of(index))).collect(),
        in_call: stack.in_call.as_ref().map(|call| InCall {
            construct: call.construct.map(Construct::word),
            function: call.function.as_deref().map(str::to_owned),
        }),
        idle: stack.idle,
        gap: stack.gap.clone(),
        end: End { complete: stack.end.is_complete(), reason: stack.end.to_string() },
    }
}

fn variable(variable: &ompd_stack::Variable) -> Variable {
    Variable {
        name: variable.name.clone(),
        type_name: variable.type_name.clone(),
        value: variable.value.as_ref().ok().cloned(),
        unavailable: variable.value.as_ref().err().cloned(),
        shared: variable.shared,
        parameter: variable.parameter,
        note: variable.note.clone(),
    }
}

fn frame(frame: &LogicalFrame, variables: Option<&FrameVariables>) -> Frame {
    let text = |text: &Option<std::sync::Arc<str>>| text.as_deref().map(str::to_owned);
    Frame {
        function: text(&frame.function),
        construct: frame.construct.as_ref().map(|c| c.name.word()),
        construct_file: frame.construct.as_ref().and_then(|c| text(&c.file)),
        construct_line: frame.construct.as_ref().and_then(|c| c.line),
        construct_begins: frame.construct.as_ref().is_some_and(|c| c.begins).then_some(true),
        construct_called: frame.construct.as_ref().is_some_and(|c| c.called).then_some(true),
        language: (frame.language == Language::Python).then_some("python"),
        file: text(&frame.file),
        line: frame.line,
        inlined: frame.inlined.then_some(true),
        lwp: frame.lwp,
        address: frame.addr.map(hex),
        module: frame.module.as_ref().map(|(module, _)| module.to_string()),
        offset: frame.module.as_ref().map(|(_, offset)| format!("{offset:#x}")),
        via: match frame.via {
            Via::Call => "call",
            Via::Signal => "signal",
            Via::Region => "region",
            Via::Generated => "generated",
            Via::Around => "around",
        },
        variables: variables.map(|frame| frame.variables.iter().map(variable).collect()),
        variables_missing: variables.and_then(|frame| frame.missing.clone()),
    }
}
