//! What is known of a runtime before anything is stopped.

use ompd_layout::Origin;
use ompd_process::{Addr, BuildId, NeededBy};

use super::Issue;

/// What is known of a runtime instance before anything is stopped: identity and how its layout was found.
#[derive(Debug, Clone)]
pub struct InstanceInfo {
    /// Implementation family, by its name ([`About::name`](crate::family::About::name)).
    pub family: &'static str,
    /// Product, as far as it can be told from the image (`GNU libgomp`, `LLVM libomp`, `Intel libiomp5`).
    pub product: &'static str,
    /// Path of the module as the target names it.
    pub path: String,
    /// Path of the file that was read in its stead, as this program sees it; `None` if there was none.
    pub file: Option<String>,
    /// Lowest mapped address of the module.
    pub base: Addr,
    /// Lowest mapped address of the library that reports to OMPT tools in its place; `None` if it does so itself, or nothing does.
    pub reports_from: Option<Addr>,
    /// Build-id of the module.
    pub build_id: Option<BuildId>,
    /// Why it is in the process, as far as the files of the other modules tell.
    pub needed_by: Option<NeededBy>,
    /// Origins that were tried, in order, with their outcome.
    pub origins: Vec<OriginReport>,
    /// Every value of the layout as `(name, value, origin, detail)`.
    pub layout: Vec<LayoutEntry>,
    /// What no origin gave.
    pub missing: Vec<Lack>,
    /// Trouble met while finding the layout.
    pub issues: Vec<Issue>,
}

/// Values of a layout that nobody knows, and what that costs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lack {
    /// What is not shown because of it, as a clause.
    pub cost: &'static str,
    /// `struct.field`, `sizeof(struct)` or a global's name.
    pub names: Vec<String>,
}

/// One origin that was tried.
#[derive(Debug, Clone)]
pub struct OriginReport {
    /// The kind of evidence.
    pub origin: Origin,
    /// Where it was looked for.
    pub detail: String,
    /// Values it gave.
    pub values: usize,
    /// Why it gave none, or what is worth knowing about it.
    pub note: Option<String>,
    /// Lines for whoever looks into it: places looked at with the outcome, functions that could not be decoded.
    pub details: Vec<String>,
}

/// One value of a layout.
#[derive(Debug, Clone)]
pub struct LayoutEntry {
    /// `struct.field`, `sizeof(struct)` or a global's name.
    pub name: String,
    /// Offset, size or address, in hex where it is an address or offset.
    pub value: String,
    /// The kind of evidence.
    pub origin: Origin,
    /// File, profile or function it was found in.
    pub detail: String,
}
