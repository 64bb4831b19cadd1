//! What threads do outside of OpenMP.

use ompd_inspection::outside::{self as found, OutsideWait};
use schemars::JsonSchema;
use serde::Serialize;

/// What a thread does outside of OpenMP.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Outside {
    /// The library function that the program has called and that has not returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<Call>,
    /// What it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<Wait>,
    /// The same in words.
    pub text: String,
}

/// A call of a library function.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Call {
    /// The function, as `usleep` or `MPI_Recv`.
    pub function: String,
    /// The file of the program that calls it, as the compiler wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The function of the program that calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
}

/// What a thread waits for outside of OpenMP.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Wait {
    /// `system call`.
    pub kind: &'static str,
    /// The system call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_call: Option<String>,
}

/// `None` of a thread that is in no call and waits for nothing.
pub fn of(outside: &found::Outside) -> Option<Outside> {
    let call = outside.call.as_ref().map(call);
    let wait = outside.wait.as_ref().map(wait);
    (call.is_some() || wait.is_some()).then(|| Outside { call, wait, text: crate::outside::words(outside) })
}

fn call(call: &found::Call) -> Call {
    let site = call.site.as_ref();
    Call {
        function: call.function.to_string(),
        file: site.and_then(|site| site.file.as_deref()).map(str::to_owned),
        line: site.and_then(|site| site.line),
        caller: site.and_then(|site| site.function.as_deref()).map(str::to_owned),
    }
}

fn wait(wait: &OutsideWait) -> Wait {
    match wait {
        OutsideWait::SystemCall { name } => Wait { kind: "system call", system_call: Some(name.clone()) },
        _ => Wait { kind: "other", system_call: None },
    }
}
