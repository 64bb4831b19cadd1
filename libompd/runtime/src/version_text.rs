//! Which OpenMP a runtime says it implements, in a text that it prints when it is asked for its settings. Such texts are in stripped
//! builds as well.

use ompd_layout::Origin;
use ompd_process::Target;
use ompd_process::elf::ElfFile;

use crate::model::{Fact, InstanceInfo, Reason};

/// Digits of `_OPENMP`: a year and a month.
const DIGITS: usize = 6;

/// The version in the runtime's file: six digits behind the text `before`, or shortly after it.
pub(crate) fn openmp_version(target: &dyn Target, info: &InstanceInfo, before: &[u8], unknown: Reason) -> Fact<u32> {
    let module = target.modules().iter().find(|module| module.base() == info.base);
    let file = module.and_then(|module| module.file.as_ref().ok());
    match file.and_then(|file| in_file(file, before)) {
        Some(version) => Fact::known(version, Origin::Table),
        None => Fact::unknown(unknown),
    }
}

fn in_file(file: &ElfFile, before: &[u8]) -> Option<u32> {
    let (_, texts) = file.plain_section(".rodata")?;
    in_texts(&texts, before)
}

/// Nothing where there are several that differ: one may be another library's.
fn in_texts(texts: &[u8], before: &[u8]) -> Option<u32> {
    let mut found = memchr::memmem::find_iter(texts, before).filter_map(|at| behind(texts.get(at + before.len()..)?));
    let first = found.next()?;
    found.all(|other| other == first).then_some(first)
}

/// The first number of that many digits on the rest of the line.
fn behind(texts: &[u8]) -> Option<u32> {
    const NEAR: usize = 32;
    let line = texts.get(..NEAR).unwrap_or(texts).split(|byte| matches!(byte, 0 | b'\n')).next()?;
    let number = line.split(|byte| !byte.is_ascii_digit()).find(|digits| digits.len() == DIGITS)?;
    std::str::from_utf8(number).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_behind_the_text() {
        let kmp = b"\0@(#) LLVM OMP API version: 5.0 (201611)\0@(#) built\0";
        assert_eq!(in_texts(kmp, b" OMP API version: "), Some(201_611));
        let gomp = b"OPENMP DISPLAY ENVIRONMENT BEGIN\n\0  _OPENMP = '202111'\n\0";
        assert_eq!(in_texts(gomp, b"_OPENMP = '"), Some(202_111));
    }

    #[test]
    fn no_number_or_two_are_none() {
        for texts in [
            &b"_OPENMP = '"[..],
            b"_OPENMP = '2021'\n",
            b"_OPENMP = '20211111'\n",
            b"_OPENMP = '\n202111'",
            b"_OPENMP = '201511'\0_OPENMP = '202111'",
            b"",
        ] {
            assert_eq!(in_texts(texts, b"_OPENMP = '"), None, "{}", texts.escape_ascii());
        }
    }
}
