//! A process of which only a list of mapped files is left: addresses have names, and memory cannot be read.

use crate::arch::Arch;
use crate::image::{self, Image};
use crate::live::Surroundings;
use crate::memory::{Addr, ReadError, ReadFault};
use crate::module::Module;
use crate::options::OpenOptions;
use crate::symbol::BuildId;
use crate::thread::Thread;
use crate::{ProcessInfo, Target, TargetKind};

/// A mapped file, as the list has it.
#[derive(Debug, Clone)]
pub struct ListedFile {
    /// It is the executable.
    pub is_exe: bool,
    /// Target address minus file address.
    pub bias: u64,
    /// First address, and the one behind the last.
    pub range: std::ops::Range<u64>,
    /// Build-id, if the list has one.
    pub build_id: Option<BuildId>,
    /// Path as the process named it.
    pub path: String,
}

/// The process.
#[derive(Debug)]
pub struct Listed {
    arch: Arch,
    modules: Vec<Module>,
    process: ProcessInfo,
    issues: Vec<String>,
}

impl Listed {
    /// Opens the listed files, where they are and are those that were mapped. `None` if none of them is.
    pub fn open(files: Vec<ListedFile>, options: &OpenOptions) -> Option<Listed> {
        let (mut arch, mut modules, mut issues) = (None, Vec::new(), Vec::new());
        let mut process = ProcessInfo::default();
        for file in files {
            let image = Image {
                path: file.path.clone(),
                deleted: false,
                bias: file.bias,
                ranges: Vec::from([file.range.clone()]),
                build_id: file.build_id.clone(),
                arch: None,
                first: file.range.clone(),
                head: Vec::new(),
            };
            let opened = image::open_by_name(&image, file.is_exe, options);
            if let Ok(opened) = &opened {
                arch.get_or_insert(opened.arch());
                issues.extend(image::exe_not_used(options, opened).filter(|_| file.is_exe));
            }
            if let (Err(why), true) = (&opened, file.is_exe) {
                issues.push(format!(
                    "the executable {} is not at hand ({}): give it with --exe PATH",
                    file.path,
                    why.join("; ")
                ));
            }
            process.exe = process.exe.or(file.is_exe.then(|| file.path.clone()));
            modules.push(Module {
                path: file.path,
                bias: file.bias,
                ranges: image.ranges,
                build_id: file.build_id,
                file: opened,
            });
        }
        modules.sort_by_key(Module::base);
        Some(Listed { arch: arch?, modules, process, issues })
    }
}

impl Target for Listed {
    fn kind(&self) -> TargetKind {
        TargetKind::Core
    }

    fn arch(&self) -> Arch {
        self.arch
    }

    fn read(&self, addr: Addr, buf: &mut [u8]) -> Result<(), ReadError> {
        Err(ReadError { addr, len: buf.len() as u64, why: ReadFault::Unmapped })
    }

    fn is_shared(&self, _: Addr) -> Option<bool> {
        None
    }

    fn maps(&self, _: &str) -> bool {
        false
    }

    fn surroundings(&self) -> Option<Surroundings> {
        None
    }

    fn modules(&self) -> &[Module] {
        &self.modules
    }

    fn threads(&self) -> &[Thread] {
        &[]
    }

    fn process(&self) -> &ProcessInfo {
        &self.process
    }

    fn issues(&self) -> &[String] {
        &self.issues
    }
}
