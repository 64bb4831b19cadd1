//! Functions that compilers make of the bodies of constructs.

/// What the name of such a function tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Outlined<'n> {
    /// The function that contains the construct, as symbol tables have it, where the name tells.
    pub(crate) container: Option<&'n str>,
    /// It only prepares the call of another one that has the body: the next function further in belongs to the same
    /// construct.
    pub(crate) wrapper: Wrapper,
}

/// Which functions share a construct with the one they call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrapper {
    /// It calls the body of a task.
    Task,
    /// It may call a function of its own name with the mark of a debug version, which has the body.
    Debug,
    /// So it may, and it is the body of a `target` construct.
    Target,
}

/// What `raw`, a name out of a symbol table or debug information, tells of a function; `None` if it is an ordinary one.
///
/// GCC: `F._omp_fn.N` (gcc/omp-low.cc, create_omp_child_function_name). clang: `.omp_outlined.`, since LLVM 17
/// `F.omp_outlined`, each with a suffix that makes it unique; `.omp_task_entry.`; with debug information the body is in a
/// function of its own, `.omp_outlined._debug__` or `F.omp_outlined_debug__` (clang/lib/CodeGen/{CGOpenMPRuntime.cpp,
/// CGStmtOpenMP.cpp}). flang: `F..omp_par` (mlir and LLVM's OMPIRBuilder.cpp). Of `target` clang and flang make
/// `__omp_offloading_DEVICE_FILE_F_lLINE`, with the numbers of the source file in hexadecimal digits (OMPIRBuilder.cpp,
/// `TargetRegionEntryInfo::getTargetRegionEntryFnName`).
pub(crate) fn outlined(raw: &str) -> Option<Outlined<'_>> {
    if let Some(container) = offloading(raw) {
        return Some(Outlined { container: Some(container), wrapper: Wrapper::Target });
    }
    const MARKS: &[(&str, Wrapper)] = &[
        ("._omp_fn.", Wrapper::Debug),
        (".omp_task_entry.", Wrapper::Task),
        (".omp_outlined", Wrapper::Debug),
        ("..omp_par", Wrapper::Debug),
    ];
    let mark_at = |at: usize| MARKS.iter().find(|(mark, _)| raw[at..].starts_with(mark));
    let (at, wrapper) = raw.match_indices('.').find_map(|(at, _)| Some((at, mark_at(at)?.1)))?;
    Some(Outlined { container: Some(&raw[..at]).filter(|name| !name.is_empty()), wrapper })
}

/// The function that contains a `target` construct, by the name clang gives its body.
fn offloading(raw: &str) -> Option<&str> {
    let numbers = raw.strip_prefix("__omp_offloading_")?;
    let (device, rest) = numbers.split_once('_')?;
    let (file, rest) = rest.split_once('_')?;
    let hexadecimal = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let (container, line) = rest.rsplit_once("_l")?;
    let line = line.split(['_', '.']).next().unwrap_or_default();
    let is_body =
        hexadecimal(device) && hexadecimal(file) && !line.is_empty() && line.bytes().all(|b| b.is_ascii_digit());
    Some(container).filter(|name| is_body && !name.is_empty())
}

/// The function that contains a construct, if `name` is that of a function compilers made of its body: `Some(None)` if it is,
/// and does not tell.
pub fn container(name: &str) -> Option<Option<&str>> {
    outlined(name).map(|body| body.container)
}

/// True if `name` is that of a helper: a function compilers make for a runtime to call that is no body. It copies,
/// initialises, combines or destroys variables (GCC: gcc/omp-low.cc, create_task_copyfn; clang:
/// clang/lib/CodeGen/CGOpenMPRuntime.cpp).
pub(crate) fn is_helper(name: &str) -> bool {
    const MARKS: &[&str] = &[
        "._omp_cpyfn.",
        ".omp_task_dup.",
        ".omp_task_privates",
        ".omp_task_destructor",
        ".omp.reduction.",
        ".omp.copyprivate.",
        ".omp_combiner.",
        ".omp_initializer.",
        ".red_init.",
        ".red_comb.",
        ".red_fini.",
    ];
    MARKS.iter().any(|mark| name.contains(mark))
}

/// True if `inner`, called by `outer` directly, has the body of the same construct.
pub(crate) fn is_body_of(inner: &str, outer: &str) -> bool {
    match outlined(outer).map(|o| o.wrapper) {
        Some(Wrapper::Task) => outlined(inner).is_some_and(|i| i.wrapper != Wrapper::Task),
        Some(Wrapper::Debug | Wrapper::Target) => inner.contains("_debug__") && !outer.contains("_debug__"),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names;

    #[test]
    fn names_of_outlined_functions() {
        let function = |raw: &str| outlined(raw).map(|o| names::source_name(o.container.unwrap_or_default(), None));
        assert_eq!(function("main._omp_fn.0").as_deref(), Some("main"));
        assert_eq!(function("_ZN4Grid5relaxEi._omp_fn.1.constprop.0").as_deref(), Some("Grid::relax"));
        assert_eq!(function("__m_MOD_step._omp_fn.3").as_deref(), Some("m::step"));
        assert_eq!(function(".omp_outlined..5").as_deref(), Some(""));
        assert_eq!(function("solve.omp_outlined_debug__.3").as_deref(), Some("solve"));
        assert_eq!(function(".omp_task_entry.").as_deref(), Some(""));
        assert_eq!(function("__omp_offloading_fd02_3a2c1_main_l8").as_deref(), Some("main"));
        assert_eq!(
            function("__omp_offloading_fd02_3a2c1__ZN4Grid5relaxEi_l40_debug__").as_deref(),
            Some("Grid::relax")
        );
        for numbers in ["main_l8", "_3a_main_l8", "fd__main_l8", "fg_3a_main_l8", "fd_3g_main_l8"] {
            assert_eq!(function(&format!("__omp_offloading_{numbers}")), None);
        }
        for end in ["main_l", "main_l8x", "main_lx8", "_l8"] {
            assert_eq!(function(&format!("__omp_offloading_fd02_3a2c1_{end}")), None);
        }
        assert_eq!(function("solve"), None);
        assert_eq!(function("_omp_fn"), None);
        assert!(is_helper("main._omp_cpyfn.3") && is_helper("main.omp.reduction.reduction_func"));
        assert!(!is_helper("main._omp_fn.0") && !is_helper("combine"));
    }

    #[test]
    fn a_wrapper_and_its_body_are_one_construct() {
        assert!(is_body_of(".omp_outlined._debug__", ".omp_outlined."));
        assert!(is_body_of(".omp_outlined._debug__.1", ".omp_outlined..5"));
        assert!(is_body_of(".omp_outlined..3", ".omp_task_entry."));
        assert!(!is_body_of(".omp_outlined..1", ".omp_outlined."));
        assert!(!is_body_of("solve", ".omp_task_entry."));
        assert!(!is_body_of(".omp_task_entry.", ".omp_task_entry..4"));
    }
}
