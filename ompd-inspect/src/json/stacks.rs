//! Stacks in the JSON report.

use ompd_stack::{LogicalFrame, LogicalStack, Via};
use schemars::JsonSchema;
use serde::Serialize;

use super::hex;

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
    /// True if `construct_line` is the line at which the code of the construct's body begins, which is that of the
    /// directive or of the first statement in it.
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
    /// File mapped at the address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// Address in that file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<String>,
    /// How it relates to the frame before: `call` (it called it), `signal` (a signal interrupted it), `region` (it opened
    /// the region the frame before is the body of), `generated` (it is the body of what generated the task before), `around` (it is the
    /// body of the region the task before belongs to; what generated that is over, or not known).
    pub via: &'static str,
}

pub(super) fn stack(stack: &LogicalStack) -> Stack {
    Stack {
        lwp: stack.lwp,
        frames: stack.frames.iter().map(frame).collect(),
        in_call: stack
            .in_call
            .as_ref()
            .map(|call| InCall { construct: call.construct, function: call.function.as_deref().map(str::to_owned) }),
        idle: stack.idle,
        gap: stack.gap.clone(),
        end: End { complete: stack.end.is_complete(), reason: stack.end.to_string() },
    }
}

fn frame(frame: &LogicalFrame) -> Frame {
    let text = |text: &Option<std::sync::Arc<str>>| text.as_deref().map(str::to_owned);
    Frame {
        function: text(&frame.function),
        construct: frame.construct.as_ref().map(|c| c.name),
        construct_file: frame.construct.as_ref().and_then(|c| text(&c.file)),
        construct_line: frame.construct.as_ref().and_then(|c| c.line),
        construct_begins: frame.construct.as_ref().is_some_and(|c| c.begins).then_some(true),
        construct_called: frame.construct.as_ref().is_some_and(|c| c.called).then_some(true),
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
    }
}
