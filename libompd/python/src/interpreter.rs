//! Where in a process CPython is, and which version.

use std::fmt;

use ompd_process::{Addr, Module, Target, TargetExt};

use crate::Unknown;
use crate::layout::Layout;

/// A version of CPython.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    /// 3.
    pub major: u8,
    /// 11 of 3.11.7.
    pub minor: u8,
    /// 7 of 3.11.7, where the process says so.
    pub micro: Option<u8>,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)?;
        self.micro.map_or(Ok(()), |micro| write!(f, ".{micro}"))
    }
}

/// The variable that every CPython since 3.7 has, and nothing else.
const RUNTIME: &str = "_PyRuntime";

/// A CPython in a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interpreter {
    /// The module that has it, as the target names it (text of the target).
    pub path: String,
    /// Lowest address of that module.
    pub base: Addr,
    /// Its version, where it could be found out.
    pub version: Option<Version>,
    /// `_PyRuntime`.
    pub runtime: Addr,
    /// The offsets of its structs.
    pub layout: Result<Layout, Unknown>,
    pub(crate) types: Result<Types, Unknown>,
}

/// Addresses of the types that objects name: what an object is, is checked with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Types {
    pub(crate) code: Addr,
    pub(crate) text: Addr,
    pub(crate) bytes: Addr,
    pub(crate) frame: Addr,
}

impl Types {
    fn of(module: &Module) -> Result<Types, Unknown> {
        let find = |name| module.symbol(name).map(|symbol| symbol.addr).ok_or(Unknown::Type(name));
        Ok(Types {
            code: find("PyCode_Type")?,
            text: find("PyUnicode_Type")?,
            bytes: find("PyBytes_Type")?,
            frame: find("PyFrame_Type")?,
        })
    }
}

impl Interpreter {
    /// Every CPython of a process; usually one or none.
    pub fn all(target: &dyn Target) -> Vec<Interpreter> {
        target.modules().iter().filter_map(|module| Interpreter::of(target, module)).collect()
    }

    /// True if all code of a module with this path belongs to the interpreter, as its name says.
    pub fn is_interpreters(path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        name.starts_with("libpython") || name.starts_with("python")
    }

    fn of(target: &dyn Target, module: &Module) -> Option<Interpreter> {
        if !module.exports(RUNTIME) {
            return None;
        }
        let runtime = module.symbol(RUNTIME)?.addr;
        let version = stated(target, module).or_else(|| named(&module.path));
        let layout = version.ok_or(Unknown::Version).and_then(|version| Layout::of(target, version, runtime));
        let types = Types::of(module);
        Some(Interpreter { path: module.path.clone(), base: module.base(), version, runtime, layout, types })
    }
}

/// The version in `Py_Version`, which CPython has since 3.11: `PY_VERSION_HEX`.
fn stated(target: &dyn Target, module: &Module) -> Option<Version> {
    let hex = target.read_u32(module.symbol("Py_Version")?.addr).ok()?;
    let [major, minor, micro, _] = hex.to_be_bytes();
    Some(Version { major, minor, micro: Some(micro) })
}

/// The version in the name of a file: `python3.9`, `libpython3.8.so.1.0`.
fn named(path: &str) -> Option<Version> {
    let name = path.rsplit('/').next()?;
    let (major, rest) = name.strip_prefix("lib").unwrap_or(name).strip_prefix("python")?.split_once('.')?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    Some(Version { major: major.parse().ok()?, minor: rest[..end].parse().ok()?, micro: None })
}

#[cfg(test)]
mod tests {
    use super::{Version, named};

    #[test]
    fn names_of_files_have_versions() {
        let version = |minor| Some(Version { major: 3, minor, micro: None });
        assert_eq!(named("/usr/bin/python3.9"), version(9));
        assert_eq!(named("/x/libpython3.8.so.1.0"), version(8));
        assert_eq!(named("/x/libpython3.10d.so.1.0"), version(10));
        assert_eq!([named("/usr/bin/python3"), named("/x/libpython3.so"), named("/x/blender-3.1")], [None; 3]);
    }
}
