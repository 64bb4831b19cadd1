//! Lines of the source at addresses.

use ompd_process::Addr;
use ompd_runtime::model::SourceLine;

use crate::process::Process;

/// The line at `addr`, with the innermost function there.
pub(crate) fn line_at(process: &Process<'_>, addr: Addr) -> Option<SourceLine> {
    let source = process.source(addr);
    let frame = source.first()?;
    let function = frame.function.as_deref().unwrap_or_default().to_owned();
    Some(SourceLine { file: frame.file.as_deref()?.to_owned(), function, line: frame.line? })
}

/// Where the code begins that was outlined into the function at `start`. It is the line of the directive, unless the
/// compiler left out what comes before the first statement.
pub(crate) fn construct_line(process: &Process<'_>, start: Addr) -> Option<SourceLine> {
    let source = process.source(start);
    let frame = source.last().filter(|frame| frame.body)?;
    let function = frame.function.as_deref().unwrap_or_default().to_owned();
    Some(SourceLine { file: frame.file.as_deref()?.to_owned(), function, line: frame.line? })
}
