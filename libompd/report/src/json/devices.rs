//! What threads do on devices.

use ompd_runtime::model::{self, DeviceOperationKind};
use schemars::JsonSchema;
use serde::Serialize;

use super::Site;
use crate::words;

/// What a thread has begun on a device and not ended.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OnDevice {
    /// The construct. Absent: the operation is of none, or the companion has overwritten its begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub construct: Option<DeviceConstruct>,
    /// The operation that has not ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<DeviceOperation>,
}

/// A construct that is executed on a device.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DeviceConstruct {
    /// Name in `ompt_target_t`: `target`, `enter_data`, `exit_data`, `update`; of tasks `nowait`, `enter_data_nowait` and so on.
    pub kind: String,
    /// Number of the device.
    pub device: i32,
    /// The call of the runtime.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub called: Option<Site>,
}

/// An operation on a device.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DeviceOperation {
    /// `submit` for a kernel; else the name in `ompt_target_data_op_t`, such as `alloc` or `transfer_to_device`.
    pub kind: String,
    /// Bytes of data. Absent: a kernel, or 4 GiB or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u32>,
    /// Teams that a kernel was to have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub teams: Option<u32>,
    /// The call of the runtime.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub called: Option<Site>,
}

pub(super) fn on_device(of: &model::OnDevice) -> OnDevice {
    let construct = of.construct.as_ref().map(|construct| DeviceConstruct {
        kind: words::device_construct(construct.kind),
        device: construct.device,
        called: construct.called.as_ref().map(super::site),
    });
    let operation = of.operation.as_ref().map(|operation| {
        let (kind, bytes, teams) = match operation.kind {
            DeviceOperationKind::Data { number, bytes } => (words::data_operation(number), bytes, None),
            DeviceOperationKind::Submit { teams } => ("submit".to_owned(), None, Some(teams)),
        };
        DeviceOperation { kind, bytes, teams, called: operation.called.as_ref().map(super::site) }
    });
    OnDevice { construct, operation }
}
